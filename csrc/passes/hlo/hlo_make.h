/* Making HLO ops within a pass. What a maker returns when memory has run out is NULL, which all of them pass on, so
 * that a pass looks at x->failed once, at its end. */
#ifndef XLAC_PASSES_HLO_HLO_MAKE_H
#define XLAC_PASSES_HLO_HLO_MAKE_H

#include "../../ir/ir.h"

typedef struct hlo_maker {
  ir_module *m;
  const ir_op *before; /* new ops go right before it, with its metadata */
  bool failed;
  ir_computation *sums[BASE_DTYPE_COUNT]; /* add(a, b) of scalars, where made */
} hlo_maker;

ir_op *hlo_make(hlo_maker *x, ir_opcode opcode, const ir_type *type, uint32_t n, ir_op *const *operands);
ir_op *hlo_unary(hlo_maker *x, ir_opcode opcode, ir_op *a);
ir_op *hlo_binary(hlo_maker *x, ir_opcode opcode, ir_op *a, ir_op *b); /* of a's type */
ir_op *hlo_convert(hlo_maker *x, ir_op *a, base_dtype dtype);          /* a itself where it has the type */
ir_op *hlo_scalar(hlo_maker *x, base_dtype dtype, double value);
/* Operand dimension i is dimension dims[i] of the result. */
ir_op *hlo_broadcast(hlo_maker *x, ir_op *a, const ir_type *type, uint32_t n, const int64_t *dims);
/* Dimension i of the result is a's dimension permutation[i]; laid out row by row. */
ir_op *hlo_transpose(hlo_maker *x, ir_op *a, const int64_t *permutation);
ir_op *hlo_splat(hlo_maker *x, const ir_type *type, double value);
/* Sum over the dimensions given. */
ir_op *hlo_sum(hlo_maker *x, ir_op *a, const ir_type *type, uint32_t n, const int64_t *dims);
ir_op *hlo_element(hlo_maker *x, ir_op *tuple, uint32_t index);
ir_op *hlo_tuple(hlo_maker *x, const ir_type *type, ir_op *const *elements);
/* A static tensor, quantised in nothing, laid out row by row; a tuple is none. */
bool hlo_is_plain(const ir_type *t);

#endif
