/* Products of some rows, of f32 and f64: B is read as stored, since there is too little to do with it to be worth a
 * copy.
 *
 * Every sum is over k in ascending order, with fused multiply-add where the CPU has it: nothing depends on how the work
 * is cut. */
#ifndef XLAC_CPU_GEMM_DOT_FEW_H
#define XLAC_CPU_GEMM_DOT_FEW_H

#include "../../runtime/threads.h"
#include "../../plan/plan.h"

/* Whether this is to be taken for `dot`, rather than packing or BLAS. */
bool cpu_few_is_better(const plan_dot *dot);

/* Immutable; the instructions are those of the CPU where it was made. NULL when out of memory. */
typedef struct cpu_few cpu_few;
const cpu_few *cpu_few_make(const plan_dot *dot, base_arena *arena);
/* One rt_parallel_for. */
void cpu_few_run(const cpu_few *few, rt_pool *pool, const void *a, const void *b, void *c);

#endif
