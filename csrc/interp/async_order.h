/* Which step of a run evaluates a wrapped computation. Lanes may take any from the start to the done, and the result
 * must be the same: the interpreter replays such orders on one thread. */
#ifndef XLAC_INTERP_ASYNC_ORDER_H
#define XLAC_INTERP_ASYNC_ORDER_H

#include "interp.h"

/* Whether the start leaves its computation to a later step of its frame, *at. */
bool interp_async_waits(interp_ctx *ctx, const ir_op *start, uint32_t *at);
/* Notes that element 1 of `tuple` is to be computed before step `at`. */
XLAC_MUST_USE int interp_async_leave(interp_ctx *ctx, const ir_op *start, uint32_t at, interp_value *tuple);
/* Computes what is due before `step` of the present frame. */
XLAC_MUST_USE int interp_async_run(interp_ctx *ctx, uint32_t step);
/* Forgets what the present frame has left: it ends. */
void interp_async_drop(interp_ctx *ctx);

#endif
