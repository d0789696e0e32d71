/* Signs of integers: what isn't negative needs no look at its sign, and remainders by powers of two are bits. JAX takes
 * every index and every remainder for one that may be negative. */
#include <math.h>

#include "algebraic_simplification.h"

enum { SIGN_DEPTH = 4, SIGN_MOST = 1 << 30 };

/* Whether op's elements are one integer from 1 to SIGN_MOST. */
static bool sign_positive(const ir_op *op, double *value) {
  const ir_op *c = op->opcode == IR_OP_BROADCAST ? ir_operand(op, 0) : op;
  if (c->opcode != IR_OP_CONSTANT || !ir_is_scalar(c->type) || c->u.literal->elided) return false;
  *value = base_load_f64((base_dtype)c->type->dtype, c->u.literal->data);
  return *value >= 1 && *value <= SIGN_MOST;
}

static bool sign_compares(const ir_op *op, const ir_op *x, ir_direction d) {
  return op->opcode == IR_OP_COMPARE && ir_operand(op, 0) == x && hs_is_integral(x->type) &&
         hs_is(ir_operand(op, 1), 0) && (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION) == d;
}

/* What is below 0 is not 0: of x < 0 and x != 0 the first; or NULL. */
ir_op *hs_sign_of_both(const ir_op *op) {
  for (uint32_t i = 0; i < 2; i++) {
    ir_op *below = ir_operand(op, i), *other = ir_operand(op, 1 - i);
    if (below->opcode != IR_OP_COMPARE || !sign_compares(below, ir_operand(below, 0), IR_DIRECTION_LT)) continue;
    if (sign_compares(other, ir_operand(below, 0), IR_DIRECTION_NE)) return below;
  }
  return NULL;
}

/* The remainder r of select(r < 0, r + m, r), r = x % m, m positive: x - m * floor(x / m). NULL: op is none. */
static const ir_op *sign_floored(const ir_op *op, double *m) {
  double added = 0;
  const ir_op *sum = ir_operand(op, 1), *r = ir_operand(op, 2);
  if (r->opcode != IR_OP_REMAINDER || sum->opcode != IR_OP_ADD || !sign_positive(ir_operand(r, 1), m)) return NULL;
  if (!sign_compares(ir_operand(op, 0), r, IR_DIRECTION_LT)) return NULL;
  for (uint32_t i = 0; i < 2; i++)
    if (ir_operand(sum, i) == r && sign_positive(ir_operand(sum, 1 - i), &added) && added == *m) return r;
  return NULL;
}

/* A conversion between integers, or of truth values, that keeps the sign. */
static bool sign_is_kept(const ir_op *op) {
  const base_dtype_info *from = base_dtype_of((base_dtype)ir_operand_type(op, 0)->dtype);
  const base_dtype_info *to = base_dtype_of((base_dtype)op->type->dtype);
  if (from->kind == BASE_KIND_PRED) return to->bits > 1;
  return from->kind == to->kind ? from->bits <= to->bits : from->kind == BASE_KIND_UINT && from->bits < to->bits;
}

static bool sign_is_plus(const ir_op *op, int depth) {
  double m = 0;
  const base_dtype_info *info = ir_is_tensor(op->type) ? base_dtype_of((base_dtype)op->type->dtype) : NULL;
  if (!info || (info->kind != BASE_KIND_UINT && info->kind != BASE_KIND_SINT && info->kind != BASE_KIND_PRED))
    return false;
  if (info->kind != BASE_KIND_SINT) return true;
  if (depth == 0) return false;
#define PLUS(i) sign_is_plus(ir_operand(op, i), depth - 1)
  switch (op->opcode) {
    case IR_OP_CONSTANT:
      return hs_is(op, 0) || sign_positive(op, &m);
    case IR_OP_IOTA:
      return info->bits >= 32 && op->type->count <= INT32_MAX;
    case IR_OP_BROADCAST:
    case IR_OP_RESHAPE:
    case IR_OP_TRANSPOSE:
    case IR_OP_SLICE:
    case IR_OP_REMAINDER:
      return PLUS(0);
    case IR_OP_CONVERT:
      return sign_is_kept(op) && PLUS(0);
    case IR_OP_AND:
    case IR_OP_MAXIMUM:
      return PLUS(0) || PLUS(1);
    case IR_OP_MINIMUM:
      return PLUS(0) && PLUS(1);
    case IR_OP_CLAMP:
      return PLUS(0) && PLUS(2);
    case IR_OP_SELECT:
      return (PLUS(1) && PLUS(2)) || sign_floored(op, &m);
    default:
      return false;
  }
#undef PLUS
}

/* A comparison with 0 of what isn't negative: 1 or 0, or -1 where it depends on more than the sign. */
int hs_sign_compares(const ir_op *op) {
  ir_direction d = (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION);
  const bool right = hs_is(ir_operand(op, 1), 0), left = !right && hs_is(ir_operand(op, 0), 0);
  if ((!right && !left) || !hs_is_integral(ir_operand_type(op, 0))) return -1;
  bool below = d == (right ? IR_DIRECTION_LT : IR_DIRECTION_GT),
       above = d == (right ? IR_DIRECTION_GE : IR_DIRECTION_LE);
  if ((!below && !above) || !sign_is_plus(ir_operand(op, left), SIGN_DEPTH)) return -1;
  return above;
}

static ir_op *sign_bits(hs_run *s, const ir_op *op, ir_op *x, double m) {
  int exponent = 0;
  if (frexp(m, &exponent) != 0.5) return NULL;
  ir_op *mask = hlo_splat(&s->x, op->type, m - 1);
  return mask ? hlo_binary(&s->x, IR_OP_AND, x, mask) : NULL;
}

/* x % 2^k of what isn't negative. */
ir_op *hs_sign_remainder(hs_run *s, ir_op *op) {
  double m = 0;
  if (!hs_is_integral(op->type) || !sign_positive(ir_operand(op, 1), &m)) return NULL;
  return sign_is_plus(ir_operand(op, 0), SIGN_DEPTH) ? sign_bits(s, op, ir_operand(op, 0), m) : NULL;
}

/* The same of any integer, rounded down: the last bits of two's complement. */
ir_op *hs_sign_select(hs_run *s, ir_op *op) {
  double m = 0;
  const ir_op *r = hs_is_integral(op->type) ? sign_floored(op, &m) : NULL;
  return r ? sign_bits(s, op, ir_operand(r, 0), m) : NULL;
}
