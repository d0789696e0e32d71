/* The order of steps: the one of three whose values need least memory at a time. */
#ifndef XLAC_PLAN_ORDER_H
#define XLAC_PLAN_ORDER_H

#include "plan.h"

/* Puts the n ops of `ops`, which come after their operands, into the order that p's steps are to have, and notes in p
 * what was chosen. by_id: zeros by op id, zeros again after. n log n in operands. Only the order of `ops` changes.
 * Where control edges or async chains fix the order, nothing does. */
XLAC_MUST_USE int plan_order_ops(plan_program *p, const fusion_plan *f, uint32_t n, ir_op **ops, uint32_t *by_id,
                                 base_arena *scratch, xlac_error *err);

#endif
