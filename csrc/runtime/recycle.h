/* Memory that is used again. Fresh memory costs a page fault for every 4 KB, which is dearer than filling it; a block
 * that was given back costs nothing. Blocks come in size classes, four for each power of two, and the one given back
 * last is taken first. Large ones are mapped on huge pages, where the system grants them. */
#ifndef XLAC_RUNTIME_RECYCLE_H
#define XLAC_RUNTIME_RECYCLE_H

#include "../base/memory.h"
#include "../base/status.h"

enum {
  RT_BLOCK_ALIGN = 64,
  RT_BLOCK_PREFIX = 32 /* bytes before each block, aligned to 32, that are its holder's to use */
};

/* Reference counted: by its owners, and by every block that is out, so that blocks may outlive their owners. All
 * functions are thread-safe, and may go on in a child after fork. */
typedef struct rt_recycler rt_recycler;

typedef struct rt_recycler_info {
  uint64_t taken, reused;    /* blocks taken so far, and how many of them had been used before */
  uint64_t live, live_bytes; /* out now, in bytes of their classes */
  uint64_t peak_bytes;       /* the most that was out at a time */
  uint64_t kept, kept_bytes; /* waiting to be taken */
  uint64_t limit_bytes;      /* the most that is kept */
} rt_recycler_info;

XLAC_MUST_USE int rt_recycler_create(rt_recycler **out, base_alloc alloc, xlac_error *err);
rt_recycler *rt_recycler_retain(rt_recycler *r);
void rt_recycler_release(rt_recycler *r); /* NULL is fine */

/* At least `bytes`, which may be 0, aligned to RT_BLOCK_ALIGN; not cleared. NULL when out of memory, also after
 * giving back to the system all that was kept. */
void *rt_recycler_take(rt_recycler *r, size_t bytes);
void rt_recycler_give(void *block); /* NULL is fine */
/* Gives back to the system what is kept beyond `keep` bytes, and says how much that was. */
uint64_t rt_recycler_trim(rt_recycler *r, uint64_t keep);
/* The most bytes to keep from now on. */
void rt_recycler_limit(rt_recycler *r, uint64_t bytes);
void rt_recycler_get(rt_recycler *r, rt_recycler_info *out);

#endif
