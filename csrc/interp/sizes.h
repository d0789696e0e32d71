/* Sizes that are known only when an op runs, those of dynamic dimensions. Types agree before a run, sizes may not: an
 * evaluator of several operands asks here for what its loops rely on, and the engine asks of each result whether it is
 * what its type says, so that whoever reads a static size in a type may count on it. */
#ifndef XLAC_INTERP_SIZES_H
#define XLAC_INTERP_SIZES_H

#include "interp.h"

bool interp_same_dims(const interp_value *a, const interp_value *b);
/* Whether v, an array of t's rank, is within what t says: static sizes as they are, dynamic ones up to their bound. */
bool interp_dims_fit(const ir_type *t, const interp_value *v);

/* Fails unless operand k has the dimensions of operand `with`. */
XLAC_MUST_USE int interp_need_same_dims(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k,
                                        uint32_t with);
/* Fails unless operands first + 1 ... first + n - 1 have the dimensions of operand `first`. */
XLAC_MUST_USE int interp_need_one_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t first,
                                       uint32_t n);
/* Fails unless dimension d of operand k has the size of dimension e of operand `with`. */
XLAC_MUST_USE int interp_need_same_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k,
                                        uint32_t d, uint32_t with, uint32_t e);
/* Fails unless dimension d of operand k has `size` elements, as `why` says. */
XLAC_MUST_USE int interp_need_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k,
                                   uint32_t d, int64_t size, const char *why);

/* Fails unless v, what op gives, has the element types and sizes that op's type says. */
XLAC_MUST_USE int interp_check_result(interp_ctx *ctx, const ir_op *op, const interp_value *v);

#endif
