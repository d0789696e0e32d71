/* What the passes on quantised programs share: types, arithmetic on storage, and which ops compute with real values.
 * A quantised type !quant.uniform<i8:f32, 0.5:3> stores i8 (storage) and stands for f32 (expressed): real = (stored -
 * 3) * 0.5. Scales and zero points are one for all, or one for each index along `axis`; axis -1: one for all. */
#ifndef XLAC_PASSES_QUANT_QUANT_H
#define XLAC_PASSES_QUANT_QUANT_H

#include "../rewrite/rewrite.h"

/* --- quant_arith.c: types --- */
/* At any depth: in tuples and futures too. */
bool mq_is_quantised(const ir_type *t);
/* An operand or a result of op. */
bool mq_touches(const ir_op *op);
/* The same type with the storage's element type in place of a quantised one. NULL when out of memory. */
const ir_type *mq_storage(ir_module *m, const ir_type *t);
/* A tensor type with the expressed element type in place of a quantised one. */
const ir_type *mq_expressed(ir_module *m, const ir_type *t);
/* The attributes with storage types in place of quantised ones; d itself where there are none. */
const ir_mdict *mq_storage_dict(ir_module *m, const ir_mdict *d);

/* --- quant_arith.c: arithmetic is the interpreter's, op by op, so that results are too --- */
/* `a op values`, where values are one for all, or n along dimension `axis`. opcode is ADD, SUBTRACT, MULTIPLY or
 * DIVIDE. */
ir_value mq_apply(opt_rewriter *rw, ir_opcode opcode, ir_value a, int32_t axis, uint32_t n, const double *values);
/* Into the storage's range; v is an integer or float. */
ir_value mq_clamp(opt_rewriter *rw, const ir_quant *q, ir_value v);
/* Rounds and converts what is in units of the scale, with the zero point added, to storage. */
ir_value mq_store(opt_rewriter *rw, const ir_quant *q, ir_value v);
ir_value mq_quantise(opt_rewriter *rw, const ir_quant *q, ir_value real);
ir_value mq_dequantise(opt_rewriter *rw, const ir_quant *q, ir_value stored);
ir_value mq_requantise(opt_rewriter *rw, const ir_quant *from, const ir_quant *to, ir_value stored);
/* The sum of two of the same quantised type. */
ir_value mq_sum(opt_rewriter *rw, const ir_quant *q, ir_value a, ir_value b);
/* All zero points are 0. */
bool mq_is_centred(const ir_quant *q);
double *mq_zero_points(opt_rewriter *rw, const ir_quant *q);

/* --- quant_product.c --- */
/* stablehlo.dot, dot_general or convolution of storage operands, accumulated in integers; types are what operands and
 * result were. A value of NULL and rw not failed: it can't be done in 32-bit integers. */
typedef struct mq_product {
  const ir_type *lhs, *rhs, *result;
} mq_product;
ir_value mq_multiply(opt_rewriter *rw, const ir_op *op, const mq_product *types);

#endif
