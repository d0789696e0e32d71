/* Memory that is used again. Fresh memory costs a page fault for every 4 KB, which is dearer than filling it; a block
 * that was given back costs nothing. Blocks come in size classes, four for each power of two, and the one given back
 * last is taken first. Large ones are mapped on huge pages, where the system grants them. */
#ifndef XLAC_RUNTIME_RECYCLE_H
#define XLAC_RUNTIME_RECYCLE_H

#include "../base/memory.h"
#include "../base/status.h"

enum {
  BASE_BLOCK_ALIGN = 64,
  BASE_BLOCK_PREFIX = 32 /* bytes before each block, aligned to 32, that are its holder's to use */
};

/* Reference counted: by its owners, and by every block that is out, so that blocks may outlive their owners. All
 * functions are thread-safe, and may go on in a child after fork. */
typedef struct base_recycler base_recycler;

typedef struct base_recycler_info {
  uint64_t taken, reused;    /* blocks taken so far, and how many of them had been used before */
  uint64_t live, live_bytes; /* out now, in bytes of their classes */
  uint64_t peak_bytes;       /* the most that was out at a time */
  uint64_t kept, kept_bytes; /* waiting to be taken */
  uint64_t limit_bytes;      /* the most that is kept */
} base_recycler_info;

XLAC_MUST_USE int base_recycler_create(base_recycler **out, base_alloc alloc, xlac_error *err);
base_recycler *base_recycler_retain(base_recycler *r);
void base_recycler_release(base_recycler *r); /* NULL is fine */

/* At least `bytes`, which may be 0, aligned to BASE_BLOCK_ALIGN; not cleared. NULL when out of memory, also after
 * giving back to the system all that was kept. */
void *base_recycler_take(base_recycler *r, size_t bytes);
void base_recycler_give(void *block); /* NULL is fine */
/* Gives back to the system what is kept beyond `keep` bytes, and says how much that was. */
uint64_t base_recycler_trim(base_recycler *r, uint64_t keep);
/* The most bytes to keep from now on. */
void base_recycler_limit(base_recycler *r, uint64_t bytes);
void base_recycler_get(base_recycler *r, base_recycler_info *out);

#endif
