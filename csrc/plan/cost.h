/* What steps cost, by the shapes alone. Counted as XLA counts: an elementwise op is one operation an element; the
 * elementary functions are counted apart; a product is a multiplication and an addition; moves are none. */
#ifndef XLAC_PLAN_COST_H
#define XLAC_PLAN_COST_H

#include "plan.h"

typedef struct plan_cost {
  double flops, transcendentals;
  double read, written; /* bytes of buffers */
} plan_cost;

/* Of one op on its whole operands; read and written stay 0. A loop, branch or call costs nothing itself. */
plan_cost plan_op_cost(const ir_op *op);
/* Of value i of a kernel: an op on all of its iterations. */
plan_cost plan_value_cost(const kernel *k, uint32_t i);
/* Of what a step does itself, not of its nested programs. */
plan_cost plan_step_cost(const plan_program *p, const plan_step *s);

#endif
