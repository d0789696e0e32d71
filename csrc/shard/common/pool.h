/* Memory for what lives as long as the look at one op. One thread at a time. */
#ifndef XLAC_SHARD_COMMON_POOL_H
#define XLAC_SHARD_COMMON_POOL_H

#include "../../base/memory.h"

/* A bump allocator that keeps its block. NULL and `failed` when memory has run out. */
typedef struct shard_pool {
  base_alloc alloc;
  char *block;
  size_t at, cap;
  void *old; /* blocks that were too small, linked; freed when the pool is emptied */
  bool failed;
} shard_pool;
void shard_pool_init(shard_pool *p, base_alloc alloc);
void shard_pool_free(shard_pool *p);
void shard_pool_empty(shard_pool *p);
void *shard_pool_alloc(shard_pool *p, size_t size);

#endif
