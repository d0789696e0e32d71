/* What steps cost, by the shapes alone: passes/op_cost.h. */
#ifndef XLAC_PLAN_COST_H
#define XLAC_PLAN_COST_H

#include "../passes/op_cost.h"
#include "plan.h"

typedef opt_cost plan_cost;

/* Of value i of a kernel: an op on all of its iterations. */
plan_cost plan_value_cost(const kernel *k, uint32_t i);
/* Of what a step does itself, not of its nested programs. Zero flops for what only moves data. */
plan_cost plan_step_cost(const plan_program *p, const plan_step *s);

/* What fusion's model predicts, in cycles of one thread: of a kernel by itself; of all kernels of a tile, run as one.
 */
double plan_kernel_cycles(const plan_program *p, const plan_step *s);
double plan_tile_cycles(const plan_program *p, const plan_tile *t);

#endif
