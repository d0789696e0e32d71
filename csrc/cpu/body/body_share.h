/* Units of work shared between threads in a bounded number of ranges, each with memory of its own in the step's
 * scratch memory: for routines whose ranges need more than fits on a stack. Ranges depend on the sizes alone. */
#ifndef XLAC_CPU_BODY_BODY_SHARE_H
#define XLAC_CPU_BODY_BODY_SHARE_H

#include "../../interp/algorithm/arrays.h"
#include "body.h"
#include "../routine.h"
#include "../vm/vm_inside.h"

enum { CPU_SHARES = 16 };

typedef struct cpu_share {
  int64_t units, grain;
  int64_t bytes; /* of a range's memory */
} cpu_share;

/* Cuts `units` into at most CPU_SHARES ranges of at least `least` units. Returns the bytes of all ranges' memory. */
static inline int64_t cpu_share_make(cpu_share *s, int64_t units, int64_t least, int64_t bytes) {
  s->units = units;
  s->grain = interp_max(interp_max(least, 1), (units + CPU_SHARES - 1) / CPU_SHARES);
  s->bytes = (bytes + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  return (units + s->grain - 1) / s->grain * s->bytes;
}
/* The memory of the range that begins at `begin`, in the step's scratch memory `all`. */
static inline char *cpu_share_memory(const cpu_share *s, void *all, size_t begin) {
  return (char *)all + (int64_t)begin / s->grain * s->bytes;
}
/* All units, on the pool's threads where there is more than one range. */
static inline void cpu_share_run(const cpu_share *s, rt_pool *pool, void (*fn)(void *, size_t, size_t), void *ctx) {
  if (s->units <= s->grain)
    fn(ctx, 0, (size_t)s->units);
  else
    rt_parallel_for(pool, (size_t)s->units, (size_t)s->grain, fn, ctx);
}

/* a * b, or much. */
static inline int64_t cpu_share_work(int64_t a, int64_t b) {
  int64_t product = 0;
  return base_mul_i64(a, b, &product) && product < (int64_t)1 << 60 ? product : (int64_t)1 << 60;
}

/* Memory handed out piece by piece, each aligned. With `at` NULL it only counts. */
static inline void *cpu_share_take(char **at, int64_t *used, int64_t bytes) {
  char *p = *at ? *at + *used : NULL;
  *used += (bytes + 63) & ~(int64_t)63;
  return p;
}

#endif
