/* Probes, inside the interpreter. */
#ifndef XLAC_INTERP_PROBE_H
#define XLAC_INTERP_PROBE_H

#include "interp.h"

/* Keeps v, of which the caller gives a reference that nobody writes to; consumes it. Nonzero: out of memory. */
XLAC_MUST_USE int interp_probes_add(interp_probes *p, const base_istr *id, interp_value *v, xlac_error *err);
/* What the probe `id` saw the iteration'th time (from 0), borrowed; NULL when it did not come to that. */
interp_value *interp_probes_find(interp_probes *p, const base_istr *id, uint64_t iteration);

/* interpreter.probe. */
XLAC_MUST_USE int interp_probe(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out);
/* The ops of the dialect check. eval_check.c */
XLAC_MUST_USE int interp_check(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out);
/* Custom calls to check.eq, check.expect_eq, check.expect_almost_eq and check.expect_close. */
XLAC_MUST_USE int interp_check_call(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                    interp_value **out);

#endif
