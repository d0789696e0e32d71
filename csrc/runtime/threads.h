/* A thread pool with a deterministic parallel-for. Respects CPU affinity and cgroup CPU quotas; survives fork (a child
 * starts fresh threads on first use); a pool of size 1 makes no thread. */
#ifndef XLAC_RUNTIME_THREADS_H
#define XLAC_RUNTIME_THREADS_H

#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/status.h"

typedef struct rt_pool rt_pool;

/* How many CPUs this process may really use: min(affinity mask, ceil(cgroup v1/v2 quota / period)), at least 1. */
uint32_t rt_cpu_count(void);

/* threads == 0 asks for rt_cpu_count(). Threads start on first use. NULL and an error when out of memory. */
XLAC_MUST_USE int rt_pool_create(rt_pool **out, uint32_t threads, base_alloc alloc, xlac_error *err);
void rt_pool_destroy(rt_pool *p); /* waits for running work */
uint32_t rt_pool_size(const rt_pool *p);
/* Threads started so far (0 for a pool of size 1). */
uint32_t rt_pool_started(const rt_pool *p);

/* Calls fn(ctx, begin, end) over disjoint ranges covering [0, n), each a multiple of `grain` long but the last. How
 * ranges are cut depends on n and grain only, never on the number of threads, so results are the same for any pool.
 * Returns when all are done; the caller's thread takes part. Nested calls run inline, and so does all when p is NULL.
 * After fork the child may go on with a pool, except from inside fn. Thread-safe. */
void rt_parallel_for(rt_pool *p, size_t n, size_t grain, void (*fn)(void *ctx, size_t begin, size_t end), void *ctx);

/* A wish to stop, or to do only a part. `asked` is called between ranges, on the thread that called rt_parallel_for;
 * once it has said true, ranges that have not begun are left out, here and in all later calls under the same wish.
 * Where `parts` is not 0, rt_parallel_for runs only its share number `part` of the ranges: all shares together are
 * the whole. */
typedef struct rt_stop {
  bool (*asked)(void *ctx);
  void *ctx;
  atomic_bool stopped;
  uint32_t part, parts;
} rt_stop;
/* Until it is called with NULL, rt_parallel_for on p by this thread heeds `stop`. What is stopped has left its work
 * half done: only for those who can bear that. Inside of a range, where nothing else is heeded: the calls nested in it.
 */
void rt_pool_heed(rt_pool *p, rt_stop *stop);
/* For long ranges to ask, in between: whether what they do is not wanted any more. Any thread; p may be NULL. */
bool rt_pool_stopping(rt_pool *p);
/* Whether this thread runs a part that is not the last: what takes the results of all parts is left to that. */
bool rt_pool_is_partial(rt_pool *p);

#endif
