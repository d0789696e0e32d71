/* The parts of chlo-legalize-to-stablehlo: a pattern for each kind of op. A pattern that does not know a case sets
 * nothing, and the pass then says so. */
#ifndef XLAC_PASSES_CHLO_CHLO_H
#define XLAC_PASSES_CHLO_CHLO_H

#include "../rewrite/rewrite.h"

/* Which ops go: all; those that HLO of XLA 0.10.2 has no op for; or, for the executor, those whose expansion has the
 * same bits. */
typedef enum opt_chlo_set { OPT_CHLO_ALL, OPT_CHLO_NOT_IN_HLO, OPT_CHLO_EXACT } opt_chlo_set;

/* chlo-legalize-to-stablehlo on the ops of the set. */
XLAC_MUST_USE int opt_legalize_chlo(ir_module *m, opt_chlo_set set, xlac_error *err);

opt_pattern_fn opt_chlo_math, opt_chlo_broadcast, opt_chlo_constant, opt_chlo_constant_like, opt_chlo_top_k,
    opt_chlo_scan, opt_chlo_ragged_dot;
/* Whether the op, one of HLO's too, must be expanded for XLA. */
bool opt_chlo_is_not_in_hlo(const ir_op *op);
/* Whether the op is of OPT_CHLO_EXACT. */
bool opt_chlo_is_exact(const ir_op *op);
/* v as a value of `type`, which has the same element type and a shape that fits. */
ir_value opt_as_type(opt_rewriter *rw, ir_value v, const ir_type *type);

#endif
