/* reassociate: sums and products of floats in another order, for numerics="fast". Bits change; what is NaN or infinite
 * because an operand is stays so.
 * Requires: nothing. Preserves: what algebraic-simplification preserves. */
#include <math.h>

#include "algebraic_simplification.h"

/* The number that a constant or a broadcast of one has everywhere. */
static bool re_number(const ir_op *op, double *out) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  if (op->opcode != IR_OP_CONSTANT || op->u.literal->elided || !ir_is_tensor(op->type) || op->type->count != 1)
    return false;
  *out = base_load_f64((base_dtype)op->type->dtype, op->u.literal->data);
  return true;
}

/* v as a number of type t, if it is a normal one there. */
static bool re_normal(base_dtype t, double v, double *out) {
  assert(t == XLAC_F32 || t == XLAC_F64 || t == XLAC_F16 || t == XLAC_BF16);
  static const double least[] = {
      [XLAC_F32] = 0x1p-126, [XLAC_F64] = 0x1p-1022, [XLAC_F16] = 0x1p-14, [XLAC_BF16] = 0x1p-126};
  char element[16] __attribute__((aligned(16)));
  base_store_f64(t, element, v);
  *out = base_load_f64(t, element);
  return *out - *out == 0 && fabs(*out) >= least[t];
}

/* Floats of 8 bits and less are only stored in: their sums are rounded op by op. */
static bool re_is_float(const ir_op *op) {
  base_dtype t = (base_dtype)op->type->dtype;
  return t == XLAC_F32 || t == XLAC_F64 || t == XLAC_F16 || t == XLAC_BF16;
}

/* op(x, number), in either order. */
static ir_op *re_part(const ir_op *op, double *number) {
  if (re_number(ir_operand(op, 1), number)) return ir_operand(op, 0);
  return re_number(ir_operand(op, 0), number) ? ir_operand(op, 1) : NULL;
}

/* (x . a) . b is x . (a . b), where that is a normal number (or, of sums, a finite one).
 * (x + 2) + 3 is x + 5; rounding happens once instead of twice. */
static ir_op *re_chain(hs_run *s, ir_op *op) {
  double a = 0, b = 0, both = 0;
  ir_op *inner = re_is_float(op) ? re_part(op, &b) : NULL;
  if (!inner || inner->opcode != op->opcode || inner->type != op->type) return NULL;
  ir_op *x = re_part(inner, &a);
  double v = op->opcode == IR_OP_ADD ? a + b : a * b;
  bool normal = re_normal((base_dtype)op->type->dtype, v, &both);
  if (!x || a - a != 0 || b - b != 0 || !(normal || (op->opcode == IR_OP_ADD && v == 0))) return NULL;
  return hlo_binary(&s->x, (ir_opcode)op->opcode, x, hlo_splat(&s->x, op->type, both));
}

/* A division by a number is a product with its reciprocal, where that is a normal number; one by a square root, maybe
 * broadcast, a product with rsqrt. */
static ir_op *re_divide(hs_run *s, ir_op *op) {
  double y = 0, by = 0;
  ir_op *below = ir_operand(op, 1), *root = below->opcode == IR_OP_BROADCAST ? ir_operand(below, 0) : below;
  if (!re_is_float(op)) return NULL;
  if (re_number(below, &y)) {
    if (!re_normal((base_dtype)op->type->dtype, 1 / y, &by)) return NULL;
    return hlo_binary(&s->x, IR_OP_MULTIPLY, ir_operand(op, 0), hlo_splat(&s->x, op->type, by));
  }
  if (root->opcode != IR_OP_SQRT || !hlo_is_plain(ir_operand_type(root, 0))) return NULL;
  ir_op *inverse = hlo_unary(&s->x, IR_OP_RSQRT, ir_operand(root, 0));
  const ir_attr *dims = below == root ? NULL : ir_attr_find(below, IR_ATTR_DIMENSIONS);
  if (below != root && inverse) {
    inverse = hlo_make(&s->x, IR_OP_BROADCAST, below->type, 1, &inverse);
    if (inverse && dims && !ir_attr_set(inverse, *dims)) s->x.failed = true;
  }
  return hlo_binary(&s->x, IR_OP_MULTIPLY, ir_operand(op, 0), inverse);
}

const hs_row hs_loose_rules[] = {
    {IR_OP_ADD, re_chain},
    {IR_OP_MULTIPLY, re_chain},
    {IR_OP_DIVIDE, re_divide},
    {IR_OP_INVALID, NULL},
};
