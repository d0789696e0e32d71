/* Arithmetic, logic, selections, conversions. */
#include <math.h>

#include "algebraic_simplification.h"

/* The other operand where one of a commutative op's is a constant of this value; NULL where none is. */
static ir_op *hs_beside(const ir_op *op, double value) {
  ir_op *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  return hs_is(b, value) ? a : hs_is(a, value) ? b : NULL;
}

/* op of op. */
static bool hs_is_twice(const ir_op *op) {
  return ir_operand(op, 0)->opcode == op->opcode;
}

/* Minus zero is what changes no float; plus zero would turn minus zero into itself. */
static ir_op *hs_add(hs_run *s, ir_op *op) {
  (void)s;
  bool real = base_dtype_is_float((base_dtype)op->type->dtype);
  if (!real && !hs_is_integral(op->type)) return NULL;
  return hs_beside(op, real ? -0.0 : 0.0);
}

/* Not for floats: inf - inf is NaN. x - 0.0 is x, also for -0.0. */
static ir_op *hs_subtract(hs_run *s, ir_op *op) {
  bool whole = hs_is_integral(op->type);
  if (whole && ir_operand(op, 0) == ir_operand(op, 1)) return hlo_splat(&s->x, op->type, 0);
  return hs_is(ir_operand(op, 1), 0.0) ? ir_operand(op, 0) : NULL;
}

/* Not for floats: 0 * inf is NaN, and 0 * -1 is -0. */
static ir_op *hs_multiply(hs_run *s, ir_op *op) {
  ir_op *other = hs_beside(op, 1);
  if (other || !hs_is_integral(op->type)) return other;
  return hs_beside(op, 0) ? hlo_splat(&s->x, op->type, 0) : NULL;
}

/* A float that is a power of two, with a reciprocal that is a normal number of the type too: dividing by the one and
 * multiplying by the other round the same number. */
static bool hs_power_of_two(const ir_op *op, double *reciprocal) {
  const ir_op *c = op->opcode == IR_OP_BROADCAST ? ir_operand(op, 0) : op;
  base_dtype t = (base_dtype)op->type->dtype;
  int exponent = 0;
  if (c->opcode != IR_OP_CONSTANT || !ir_is_scalar(c->type) || (t != XLAC_F32 && t != XLAC_F64)) return false;
  double v = base_load_f64(t, c->u.literal->data);
  double mantissa = frexp(v, &exponent);
  if (!isfinite(v) || (mantissa != 0.5 && mantissa != -0.5) || exponent < -120 || exponent > 120) return false;
  *reciprocal = 1 / v;
  return true;
}

/* x / 1, and floats by a power of two. x / x is 1 for no type: integers may be zero, floats NaN. */
static ir_op *hs_divide(hs_run *s, ir_op *op) {
  double reciprocal = 0;
  if (hs_is(ir_operand(op, 1), 1)) return ir_operand(op, 0);
  if (!hs_power_of_two(ir_operand(op, 1), &reciprocal)) return NULL;
  ir_op *factor = hlo_splat(&s->x, op->type, reciprocal);
  return factor ? hlo_make(&s->x, IR_OP_MULTIPLY, op->type, 2, (ir_op *[]){ir_operand(op, 0), factor}) : NULL;
}

/* x % 1 is 0 for integers; for floats it is a fraction. */
static ir_op *hs_remainder(hs_run *s, ir_op *op) {
  if (hs_is_integral(op->type) && hs_is(ir_operand(op, 1), 1)) return hlo_splat(&s->x, op->type, 0);
  return hs_sign_remainder(s, op);
}

/* pow(x, 1) is x for all x, NaN too. pow(x, 2) and x * x may round differently. */
static ir_op *hs_power(hs_run *s, ir_op *op) {
  (void)s;
  return hs_is(ir_operand(op, 1), 1) ? ir_operand(op, 0) : NULL;
}

/* max(x, x) is x, NaN too. */
static ir_op *hs_extreme(hs_run *s, ir_op *op) {
  (void)s;
  return ir_operand(op, 0) == ir_operand(op, 1) ? ir_operand(op, 0) : NULL;
}

/* Truth values have one bit, and signed numbers are read as signed: -1. */
static double hs_all_ones(const ir_type *t) {
  if (t->dtype == XLAC_PRED) return 1;
  return base_dtype_is_unsigned((base_dtype)t->dtype) ? ldexp(1, base_dtype_of((base_dtype)t->dtype)->bits) - 1 : -1;
}

/* hs_is compares doubles, which hold integers of up to 53 bits exactly. */
static bool hs_is_ones(const ir_op *op) {
  return base_dtype_of((base_dtype)op->type->dtype)->bits < 54 && hs_is(op, hs_all_ones(op->type));
}

/* As hs_beside. */
static ir_op *hs_beside_ones(const ir_op *op) {
  ir_op *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  return hs_is_ones(b) ? a : hs_is_ones(a) ? b : NULL;
}

/* x & x, x & 0, x & ~0. */
static ir_op *hs_and(hs_run *s, ir_op *op) {
  if (ir_operand(op, 0) == ir_operand(op, 1)) return ir_operand(op, 0);
  if (hs_beside(op, 0)) return hlo_splat(&s->x, op->type, 0);
  ir_op *other = hs_beside_ones(op);
  return other ? other : hs_sign_of_both(op);
}

/* x | ~0 is all ones, whichever side they are on. */
static ir_op *hs_or(hs_run *s, ir_op *op) {
  (void)s;
  if (ir_operand(op, 0) == ir_operand(op, 1)) return ir_operand(op, 0);
  ir_op *other = hs_beside(op, 0);
  if (other) return other;
  if (!hs_beside_ones(op)) return NULL;
  return hs_is_ones(ir_operand(op, 0)) ? ir_operand(op, 0) : ir_operand(op, 1);
}

/* x ^ x is 0 for integers and truth values, which are all that xor takes. */
static ir_op *hs_xor(hs_run *s, ir_op *op) {
  return ir_operand(op, 0) == ir_operand(op, 1) ? hlo_splat(&s->x, op->type, 0) : hs_beside(op, 0);
}

/* A shift by nothing; larger amounts have rules of their own. */
static ir_op *hs_shift(hs_run *s, ir_op *op) {
  (void)s;
  return hs_is(ir_operand(op, 1), 0) ? ir_operand(op, 0) : NULL;
}

/* An op that undoes itself. */
static ir_op *hs_involution(hs_run *s, ir_op *op) {
  (void)s;
  return hs_is_twice(op) ? hs_as(op, ir_operand(ir_operand(op, 0), 0)) : NULL;
}

/* One that does nothing the second time. */
static ir_op *hs_idempotent(hs_run *s, ir_op *op) {
  (void)s;
  return hs_is_twice(op) ? hs_as(op, ir_operand(op, 0)) : NULL;
}

/* Every value of `a` is one of `b`. */
static bool hs_holds_all(const ir_type *b, const ir_type *a) {
  const base_dtype_info *x = base_dtype_of((base_dtype)a->dtype), *y = base_dtype_of((base_dtype)b->dtype);
  if (x->kind == BASE_KIND_SINT && y->kind == BASE_KIND_SINT) return x->bits <= y->bits;
  if (x->kind == BASE_KIND_UINT && y->kind == BASE_KIND_UINT) return x->bits <= y->bits;
  if (x->kind == BASE_KIND_UINT && y->kind == BASE_KIND_SINT) return x->bits < y->bits;
  bool wide = b->dtype == XLAC_F32 || b->dtype == XLAC_F64;
  if (x->kind == BASE_KIND_SINT || x->kind == BASE_KIND_UINT) return wide && x->bits <= y->mantissa_bits;
  return x->kind == BASE_KIND_FLOAT && wide && (a->dtype == b->dtype || x->bits < y->bits);
}

/* A conversion by way of a type that holds all values of the first. Integers that go by way of floats may saturate
 * where they would wrap.
 * f32 -> f64 -> f32 is nothing; f32 -> bf16 -> f32 rounds and stays. */
static ir_op *hs_convert(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  if (from->type == op->type) return from;
  if (from->opcode != IR_OP_CONVERT) return NULL;
  ir_op *first = ir_operand(from, 0);
  if (!ir_is_tensor(first->type) || !hs_holds_all(from->type, first->type)) return NULL;
  if (first->type == op->type) return first;
  if (hs_is_integral(first->type) && !hs_is_integral(from->type) && hs_is_integral(op->type)) return NULL;
  return hlo_make(&s->x, IR_OP_CONVERT, op->type, 1, &first);
}

/* Of different widths the shapes differ, so those are left. */
static ir_op *hs_bitcast_convert(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  if (from->type == op->type) return from;
  if (from->opcode != IR_OP_BITCAST_CONVERT) return NULL;
  ir_op *first = ir_operand(from, 0);
  if (first->type == op->type) return first;
  bool same_width =
      base_dtype_of((base_dtype)first->type->dtype)->bits == base_dtype_of((base_dtype)from->type->dtype)->bits &&
      base_dtype_of((base_dtype)from->type->dtype)->bits == base_dtype_of((base_dtype)op->type->dtype)->bits;
  return same_width ? hlo_make(&s->x, IR_OP_BITCAST_CONVERT, op->type, 1, &first) : NULL;
}

/* Whether a comparison of a value with itself holds: 1, 0, or -1 where it depends on the value. */
static int hs_compares_same(const ir_op *op) {
  const ir_direction d = (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION);
  if (!hs_is_integral(ir_operand_type(op, 0))) return -1;
  return d == IR_DIRECTION_EQ || d == IR_DIRECTION_GE || d == IR_DIRECTION_LE;
}

/* A comparison with itself, of what isn't negative with 0, of truth values with true or false. */
static ir_op *hs_compare(hs_run *s, ir_op *op) {
  ir_op *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  if (a == b && hs_compares_same(op) >= 0) return hlo_splat(&s->x, op->type, hs_compares_same(op));
  if (hs_sign_compares(op) >= 0) return hlo_splat(&s->x, op->type, hs_sign_compares(op));
  bool ne = ir_get_word(op, IR_ATTR_DIRECTION) == IR_DIRECTION_NE,
       eq = ir_get_word(op, IR_ATTR_DIRECTION) == IR_DIRECTION_EQ;
  if (a->type->dtype != XLAC_PRED) return NULL;
  return (ne && hs_is(b, 0)) || (eq && hs_is(b, 1)) ? hs_as(op, a) : NULL;
}

/* Whose choice of branches is turned round. */
static ir_op *hs_select_swapped(hs_run *s, ir_op *op) {
  ir_op *pred = ir_operand(op, 0);
  ir_op *operands[] = {ir_operand(pred, 0), ir_operand(op, 2), ir_operand(op, 1)};
  return hlo_make(&s->x, IR_OP_SELECT, op->type, 3, operands);
}

/* The predicate may be a scalar; select(p, true, false) is p only where it has the result's shape. */
static ir_op *hs_select(hs_run *s, ir_op *op) {
  ir_op *pred = ir_operand(op, 0), *yes = ir_operand(op, 1), *no = ir_operand(op, 2);
  if (yes == no || hs_is(pred, 1)) return hs_as(op, yes);
  if (hs_is(pred, 0)) return hs_as(op, no);
  if (pred->opcode == IR_OP_NOT) return hs_select_swapped(s, op);
  if (op->type->dtype != XLAC_PRED) return hs_sign_select(s, op);
  if (pred->type != op->type) return NULL;
  if (hs_is(yes, 1) && hs_is(no, 0)) return pred;
  return hs_is(yes, 0) && hs_is(no, 1) ? hlo_make(&s->x, IR_OP_NOT, op->type, 1, &pred) : NULL;
}

/* real(complex(a, b)) is a, imag(...) is b. */
static ir_op *hs_part(hs_run *s, ir_op *op) {
  (void)s;
  ir_op *whole = ir_operand(op, 0);
  if (whole->opcode != IR_OP_COMPLEX) return NULL;
  return hs_as(op, ir_operand(whole, op->opcode == IR_OP_IMAG));
}

/* complex(real(x), imag(x)) is x. */
static ir_op *hs_complex(hs_run *s, ir_op *op) {
  (void)s;
  ir_op *re = ir_operand(op, 0), *im = ir_operand(op, 1);
  if (re->opcode != IR_OP_REAL || im->opcode != IR_OP_IMAG || ir_operand(re, 0) != ir_operand(im, 0)) return NULL;
  return hs_as(op, ir_operand(re, 0));
}

const hs_row hs_math_rules[] = {
    {IR_OP_ADD, hs_add},
    {IR_OP_SUBTRACT, hs_subtract},
    {IR_OP_MULTIPLY, hs_multiply},
    {IR_OP_DIVIDE, hs_divide},
    {IR_OP_REMAINDER, hs_remainder},
    {IR_OP_POWER, hs_power},
    {IR_OP_MAXIMUM, hs_extreme},
    {IR_OP_MINIMUM, hs_extreme},
    {IR_OP_AND, hs_and},
    {IR_OP_OR, hs_or},
    {IR_OP_XOR, hs_xor},
    {IR_OP_SHIFT_LEFT, hs_shift},
    {IR_OP_SHIFT_RIGHT_LOGICAL, hs_shift},
    {IR_OP_SHIFT_RIGHT_ARITHMETIC, hs_shift},
    {IR_OP_NEGATE, hs_involution},
    {IR_OP_NOT, hs_involution},
    {IR_OP_ABS, hs_idempotent},
    {IR_OP_CEIL, hs_idempotent},
    {IR_OP_FLOOR, hs_idempotent},
    {IR_OP_CONVERT, hs_convert},
    {IR_OP_BITCAST_CONVERT, hs_bitcast_convert},
    {IR_OP_COMPARE, hs_compare},
    {IR_OP_SELECT, hs_select},
    {IR_OP_REAL, hs_part},
    {IR_OP_IMAG, hs_part},
    {IR_OP_COMPLEX, hs_complex},
    {IR_OP_INVALID, NULL},
};
