/* Quantised types in HLO form, spelt out: stored integers, and arithmetic on the real values that they stand for. Run
 * by the driver before planning, since kernels and the executor know no quantised types. */
#ifndef XLAC_PASSES_QUANT_QUANTISED_EXPANDER_H
#define XLAC_PASSES_QUANT_QUANTISED_EXPANDER_H

#include "../../ir/ir.h"

/* Makes every quantised type its storage type. Ops that compute with quantised values get real operands, and their
 * results are quantised again, as the interpreter has it: the same bits, but for sums in another order. Leaves the
 * whole module as it is where some type has several scales that are not along one dimension, or is dynamic. The module
 * is to be verified anew. Linear. */
XLAC_MUST_USE int opt_expand_quantised(ir_module *m, xlac_error *err);

#endif
