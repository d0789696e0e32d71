/* stablehlo-legalize-deprecated-ops, and what others use of it: the lowering of einsum and torch_index_select, and
 * dot_general's dimension numbers. */
#ifndef XLAC_PASSES_STABLEHLO_LEGALIZE_DEPRECATED_OPS_H
#define XLAC_PASSES_STABLEHLO_LEGALIZE_DEPRECATED_OPS_H

#include "../rewrite/rewrite.h"

/* With fail_on_unused, map and rng are errors: nothing replaces them. */
XLAC_MUST_USE int opt_legalize_deprecated(ir_module *m, bool fail_on_unused, xlac_error *err);

opt_pattern_fn opt_einsum, opt_torch_index_select;
/* #stablehlo.dot: lists of dimensions. */
const ir_mattr *opt_dot_dims(opt_rewriter *rw, uint32_t n_batch, const int64_t *lhs_batch, const int64_t *rhs_batch,
                             uint32_t n_contract, const int64_t *lhs_contract, const int64_t *rhs_contract);

#endif
