/* The plan's tiles (plan_tile): their kernels run row after row (some at a time), so that what one writes the next
 * finds in the cache. Values that nobody reads after the group are never written to the frame. Softmax and
 * normalisations are such. */
#ifndef XLAC_CPU_TILE_GROUP_H
#define XLAC_CPU_TILE_GROUP_H

#include "../run.h"

typedef struct cpu_group cpu_group;

/* What the steps of a tile of p run as. The code of its kernels is there. */
XLAC_MUST_USE int cpu_group_make(const plan_program *p, const cpu_code *code, const plan_tile *t, base_arena *arena,
                                 const cpu_group **out, xlac_error *err);
uint32_t cpu_group_first(const cpu_group *g);
uint32_t cpu_group_steps(const cpu_group *g);
/* Of `given`, below: whether it names the step; only the first steps can be named. */
enum { CPU_GROUP_GIVEN = 64 };
static inline bool cpu_group_is_given(uint64_t given, uint32_t step) {
  return step < CPU_GROUP_GIVEN && given >> step & 1;
}
/* Ranges of rows, for each of which what products read is packed by itself; 0: it is packed for all before. */
int64_t cpu_group_ranges(const cpu_group *g);
/* One range for n tables of pointers, in which the group's products find the same to be packed: once for all. */
void cpu_group_run_range(const cpu_run *run, const cpu_group *g, const plan_program *p, void *const *const *pointers,
                         uint32_t n, int64_t range);
/* pointers: to the program's buffers. given: bit i: what step number i of the group, a product, reads whole is packed
 * already, where its frame is. */
XLAC_MUST_USE int cpu_group_run(cpu_run *run, const cpu_group *g, const plan_program *p, void *const *pointers,
                                uint64_t given);

#endif
