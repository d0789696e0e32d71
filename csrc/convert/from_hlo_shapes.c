/* From HLO form to MLIR form: ops whose translation is several ops on shapes. */
#include "from_hlo.h"

/* --- bitcast --- */

static int from_hlo_transpose(from_hlo_op *x, ir_value *v, const int64_t *permutation) {
  const ir_type *from = v->op->types[v->index];
  int64_t dims[IR_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < from->rank; i++) {
    dims[i] = from->dims[permutation[i]];
    same = same && permutation[i] == i;
  }
  if (same) return 0;
  const ir_type *to = ir_tensor(x->t->to, (base_dtype)from->dtype, from->rank, dims, NULL, NULL, x->t->err);
  ir_op *made = to ? from_hlo_emit(x, IR_OP_TRANSPOSE, to, 1, v) : NULL;
  if (!made) return from_hlo_no_memory(x->t);
  *v = (ir_value){made, 0};
  return from_hlo_put(x, made, "permutation", ir_m_i64s(x->t->to, from->rank, permutation));
}

static int from_hlo_retype(from_hlo_op *x, ir_opcode opcode, base_dtype dtype, uint32_t rank, const int64_t *dims,
                           ir_value *v) {
  const ir_type *to = ir_tensor(x->t->to, dtype, rank, dims, NULL, NULL, x->t->err);
  if (!to) return from_hlo_no_memory(x->t);
  if (to == v->op->types[v->index]) return 0;
  ir_op *made = from_hlo_emit(x, opcode, to, 1, v);
  if (!made) return from_hlo_no_memory(x->t);
  *v = (ir_value){made, 0};
  return 0;
}

/* From n elements of one type to as many bits of another: all in one dimension, with the parts of a wider element in a
 * second one. */
static int from_hlo_rebit(from_hlo_op *x, base_dtype to, ir_value *v) {
  const ir_type *from = v->op->types[v->index];
  int64_t wide = base_dtype_of((base_dtype)from->dtype)->bits, narrow = base_dtype_of(to)->bits;
  int64_t dims[2] = {from->count, 1};
  if (wide == narrow) return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, from->rank, from->dims, v);
  if (wide > narrow) {
    dims[1] = wide / narrow;
    TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)from->dtype, 1, dims, v));
    return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, 2, dims, v);
  }
  dims[0] = from->count / (narrow / wide);
  dims[1] = narrow / wide;
  TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)from->dtype, 2, dims, v));
  return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, 1, dims, v);
}

static bool from_hlo_plain_layout(const ir_type *type) {
  const ir_layout *l = type->layout;
  return !l || (l->n_tiles == 0 && !l->levels && l->n_splits == 0);
}

/* Dimensions from major to minor. */
static void from_hlo_order(const ir_type *type, int64_t *order) {
  for (uint32_t i = 0; i < type->rank; i++)
    order[i] = type->layout ? type->layout->minor_to_major[type->rank - 1 - i] : i;
}

/* The bytes in memory stay: so the operand's dimensions are put in the order of memory, reshaped, and put back in the
 * result's order. */
int from_hlo_bitcast(from_hlo_op *x) {
  const ir_type *from = ir_operand(x->op, 0)->type, *to = x->op->type;
  int64_t order[IR_MAX_RANK], back[IR_MAX_RANK], dims[IR_MAX_RANK];
  ir_value v;
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->has_dynamic || to->has_dynamic ||
      !from_hlo_plain_layout(from) || !from_hlo_plain_layout(to))
    return base_hint(x->t->err,
                     from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_LAYOUT,
                                   "StableHLO has no bitcast between tiled layouts or dynamic dimensions"),
                     "say by reshape, transpose and bitcast-convert what it does");
  TRY(from_hlo_whole(x, x->operands[0], &v));
  from_hlo_order(from, order);
  TRY(from_hlo_transpose(x, &v, order));
  if (from->dtype != to->dtype) TRY(from_hlo_rebit(x, (base_dtype)to->dtype, &v));
  from_hlo_order(to, order);
  for (uint32_t i = 0; i < to->rank; i++) {
    dims[i] = to->dims[order[i]];
    back[order[i]] = i;
  }
  TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)to->dtype, to->rank, dims, &v));
  TRY(from_hlo_transpose(x, &v, back));
  x->result = from_hlo_of_value(x->t, v);
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* --- dynamic reshape --- */

/* The sizes, which HLO has as scalars, become one tensor. */
int from_hlo_dynamic_reshape(from_hlo_op *x) {
  ir_value *operands, two[2];
  const ir_type *type;
  const int64_t one = 1;
  uint32_t n = x->op->n_operands;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_type(x->t, x->op, x->op->type, &type));
  if (n < 2) return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_OPERANDS, "has no sizes");
  base_dtype dtype = (base_dtype)operands[1].op->types[operands[1].index]->dtype;
  const int64_t sizes = n - 1;
  const ir_type *list = ir_tensor(x->t->to, dtype, 1, &sizes, NULL, NULL, NULL);
  for (uint32_t i = 1; i < n; i++) TRY(from_hlo_retype(x, IR_OP_RESHAPE, dtype, 1, &one, &operands[i]));
  ir_op *joined = list ? from_hlo_emit(x, IR_OP_CONCATENATE, list, n - 1, operands + 1) : NULL;
  if (!joined) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, joined, "dimension", ir_m_i64(x->t->to, 0)));
  two[0] = operands[0];
  two[1] = (ir_value){joined, 0};
  ir_op *made;
  TRY(from_hlo_make(x, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, 2, two, 0, &made));
  return from_hlo_done(x, made);
}

/* --- convolution --- */

/* Whether every value of one number type is one of the other too. */
static bool from_hlo_fits(base_dtype from, base_dtype to) {
  const base_dtype_info *a = base_dtype_of(from), *b = base_dtype_of(to);
  if (a->kind == BASE_KIND_PRED) return b->kind != BASE_KIND_PRED;
  if (a->kind == BASE_KIND_FLOAT && b->kind == BASE_KIND_FLOAT)
    return a->exponent_bits <= b->exponent_bits && a->mantissa_bits <= b->mantissa_bits;
  if (a->kind == BASE_KIND_FLOAT) return b->kind == BASE_KIND_COMPLEX && a->bits * 2 <= b->bits;
  if (b->kind == BASE_KIND_FLOAT) return a->kind != BASE_KIND_COMPLEX && a->bits <= b->mantissa_bits;
  if (a->kind == b->kind) return a->bits <= b->bits;
  return a->kind == BASE_KIND_UINT && b->kind == BASE_KIND_SINT && a->bits < b->bits;
}

/* StableHLO's operands are of one element type. */
static int from_hlo_common_dtype(from_hlo_op *x, ir_value *operands) {
  base_dtype a = (base_dtype)ir_operand(x->op, 0)->type->dtype, b = (base_dtype)ir_operand(x->op, 1)->type->dtype;
  if (a == b) return 0;
  bool left = from_hlo_fits(a, b);
  if (!left && !from_hlo_fits(b, a))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_OPERANDS, "no operand's element type holds the other's values");
  ir_value *v = &operands[left ? 0 : 1];
  const ir_type *type = ir_type_with_dtype(x->t->to, v->op->types[v->index], left ? b : a);
  *v = (ir_value){type ? from_hlo_emit(x, IR_OP_CONVERT, type, 1, v) : NULL, 0};
  return v->op ? 0 : from_hlo_no_memory(x->t);
}

int from_hlo_convolution(from_hlo_op *x) {
  ir_value *operands;
  ir_op *made;
  if (ir_attr_find(x->op, IR_ATTR_SPARSITY_CONFIG))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "StableHLO has no convolution with a sparsity_config");
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_common_dtype(x, operands));
  TRY(from_hlo_make(x, IR_OP_CONVOLUTION, 2, operands, 0, &made));
  TRY(from_hlo_attrs(x, made));
  TRY(from_hlo_window(x, made));
  return from_hlo_done(x, made);
}
