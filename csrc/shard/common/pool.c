/* A bump allocator whose one block grows to what the largest op needs. */
#include "pool.h"

#include <assert.h>
#include <string.h>

void shard_pool_init(shard_pool *p, base_alloc alloc) {
  *p = (shard_pool){.alloc = alloc};
}

/* Blocks that have become too small are linked by their first bytes, which allocations never use: `at` begins at 16. */
static void pool_drop(shard_pool *p) {
  while (p->old) {
    void *next = NULL;
    memcpy(&next, p->old, sizeof next);
    base_free(p->alloc, p->old);
    p->old = next;
  }
}

/* A pool that was never used has nothing to give back. */
void shard_pool_free(shard_pool *p) {
  pool_drop(p);
  base_free(p->alloc, p->block);
  p->block = NULL;
  p->at = p->cap = 0;
}

void shard_pool_empty(shard_pool *p) {
  if (p->old) pool_drop(p);
  p->at = 16;
}

/* Sixteen-byte aligned. The block grows to what the largest op needs and is then used again, so that a whole run of
 * propagation allocates a handful of times. */
void *shard_pool_alloc(shard_pool *p, size_t size) {
  assert(!p->block || p->at <= p->cap);
  size = (size + 15) & ~(size_t)15;
  if (!p->block || size > p->cap - p->at) {
    size_t cap = p->cap < 16384 ? 16384 : p->cap;
    while (cap < size + 32) cap *= 2;
    cap = p->block ? cap * 2 : cap;
    char *block = base_malloc(p->alloc, cap);
    if (!block) {
      p->failed = true;
      return NULL;
    }
    if (p->block) {
      memcpy(p->block, &p->old, sizeof p->old); /* the first bytes of a block are for this */
      p->old = p->block;
    }
    p->block = block;
    p->cap = cap;
    p->at = 16;
  }
  void *at = p->block + p->at;
  p->at += size;
  return at;
}
