/* Simplification of arithmetic, comparisons and selections. Integer identities hold always; of floats only those that
 * keep every bit: x * 1.0, x - 0.0 and x + -0.0 are x, but x + 0.0 is not (-0.0 + 0.0 is 0.0), and x * 0.0 is not 0.0
 * (NaN). */
#include "mlir_simplify.h"

#include "../rewrite/fold.h"

/* --- neutral elements --- */

/* Predicates count: add and multiply are or and and on them. */
static bool simplify_math_is_integral(const ir_type *t) {
  return ir_is_tensor(t) && !t->quant && (t->dtype == XLAC_PRED || base_dtype_is_integer((base_dtype)t->dtype));
}

/* A uniform float constant of exactly this value and sign. */
static bool simplify_math_is_float(ir_value v, double value) {
  const void *p = opt_uniform(v);
  base_dtype dtype = p ? (base_dtype)opt_type(v)->dtype : BASE_DTYPE_INVALID;
  if (!p || !base_dtype_is_float(dtype)) return false;
  double found = base_load_f64(dtype, p);
  return found == value && __builtin_signbit(found) == __builtin_signbit(value);
}

/* All bits set. */
static bool simplify_math_is_full(ir_value v) {
  const unsigned char *p = opt_uniform(v);
  const ir_type *t = opt_type(v);
  if (!p || !simplify_math_is_integral(t)) return false;
  if (t->dtype == XLAC_PRED) return *p != 0;
  uint32_t bits = base_dtype_of((base_dtype)t->dtype)->bits;
  /* Stored values are read as int64: -1 for signed types, the largest number for unsigned ones. */
  int64_t full = base_dtype_is_signed((base_dtype)t->dtype) || bits == 64 ? -1 : ((int64_t)1 << bits) - 1;
  return opt_is_int(v, full);
}

/* The constant goes to the right. */
static int simplify_math_commute(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(op->n_operands == 2);
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  (void)rw;
  if (a.op->opcode != IR_OP_CONSTANT || b.op->opcode == IR_OP_CONSTANT) return 0;
  ir_set_operand(op, 0, b);
  ir_set_operand(op, 1, a);
  *changed = true;
  return 0;
}

/* Neutral elements are looked for on the right only: constants are brought there first. */
static int simplify_math_add(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (opt_is_int(b, 0) || simplify_math_is_float(b, -0.0)) return opt_simplify_into(rw, op, a, changed);
  return simplify_math_commute(rw, op, changed);
}

/* x - x is 0 for integers; of floats it could be NaN. */
static int simplify_math_subtract(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (opt_is_int(b, 0) || simplify_math_is_float(b, 0.0)) return opt_simplify_into(rw, op, a, changed);
  bool same = opt_same_value(a, b) && simplify_math_is_integral(op->type) && opt_is_static(op->type);
  return same ? opt_simplify_to_new(rw, op, opt_splat_int(rw, op->type, 0), changed) : 0;
}

/* 0 absorbs integers. */
static int simplify_math_multiply(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (opt_is_int(b, 0)) return opt_simplify_into(rw, op, b, changed);
  if (opt_is_int(b, 1) || simplify_math_is_float(b, 1.0)) return opt_simplify_into(rw, op, a, changed);
  return simplify_math_commute(rw, op, changed);
}

/* Constants are operand 1 by now (simplify_math_commute). */
static int simplify_math_and(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (opt_is_int(b, 0)) return opt_simplify_into(rw, op, b, changed);
  if (simplify_math_is_full(b)) return opt_simplify_into(rw, op, a, changed);
  return simplify_math_commute(rw, op, changed);
}

static int simplify_math_or(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (simplify_math_is_full(b)) return opt_simplify_into(rw, op, b, changed);
  if (opt_is_int(b, 0)) return opt_simplify_into(rw, op, a, changed);
  return simplify_math_commute(rw, op, changed);
}

/* Only static shapes: a splat needs one. */
static int simplify_math_xor(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (opt_is_int(b, 0)) return opt_simplify_to(rw, op, a, changed);
  bool same = opt_same_value(a, b) && simplify_math_is_integral(op->type) && opt_is_static(op->type);
  if (same) return opt_simplify_to_new(rw, op, opt_splat_int(rw, op->type, 0), changed);
  return simplify_math_commute(rw, op, changed);
}

/* --- comparisons --- */

/* The direction with operands exchanged; EQ and NE are their own. */
static ir_direction simplify_math_mirrored(ir_direction direction) {
  static const uint8_t mirrored[] = {
      [IR_DIRECTION_EQ] = IR_DIRECTION_EQ, [IR_DIRECTION_NE] = IR_DIRECTION_NE, [IR_DIRECTION_GE] = IR_DIRECTION_LE,
      [IR_DIRECTION_GT] = IR_DIRECTION_LT, [IR_DIRECTION_LE] = IR_DIRECTION_GE, [IR_DIRECTION_LT] = IR_DIRECTION_GT};
  return (ir_direction)mirrored[direction];
}

/* The constant goes to the right. */
static int simplify_math_swap_compare(opt_rewriter *rw, ir_op *op, ir_direction direction, bool *changed) {
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  opt_set(rw, (ir_value){op, 0}, "comparison_direction",
          ir_m_enum(rw->m, "stablehlo", "comparison_direction", simplify_math_mirrored(direction)));
  TRY(opt_rewriter_status(rw));
  ir_set_operand(op, 0, b);
  ir_set_operand(op, 1, a);
  *changed = true;
  return 0;
}

/* Predicates against a constant that makes no difference. */
static bool simplify_math_is_identity(const ir_op *op, ir_direction direction) {
  ir_value b = opt_operand(op, 1);
  if (opt_type(b)->dtype != XLAC_PRED) return false;
  return direction == IR_DIRECTION_NE ? opt_is_int(b, 0) : direction == IR_DIRECTION_EQ && opt_is_int(b, 1);
}

/* On floats x == x may be false, so only integers are simplified. */
static int simplify_math_compare(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_direction direction = (ir_direction)ir_m_get_word(op, "comparison_direction");
  const ir_comparison kind = (ir_comparison)ir_m_get_word(op, "compare_type");
  ir_value a = opt_operand(op, 0), b = opt_operand(op, 1);
  if (simplify_math_is_identity(op, direction)) return opt_simplify_to(rw, op, a, changed);
  if (!simplify_math_is_integral(opt_type(a)) || (kind != IR_COMPARISON_SIGNED && kind != IR_COMPARISON_UNSIGNED))
    return 0;
  if (opt_same_value(a, b) && opt_is_static(op->type)) {
    bool holds = direction == IR_DIRECTION_EQ || direction == IR_DIRECTION_GE || direction == IR_DIRECTION_LE;
    return opt_simplify_to_new(rw, op, opt_splat_int(rw, op->type, holds), changed);
  }
  bool swap = a.op->opcode == IR_OP_CONSTANT && b.op->opcode != IR_OP_CONSTANT;
  return swap ? simplify_math_swap_compare(rw, op, direction, changed) : 0;
}

/* --- selections --- */

/* Both sides equal, or a predicate that is known for all elements. */
static int simplify_math_select_operand(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(op->n_operands == 3);
  ir_value t = opt_operand(op, 1), f = opt_operand(op, 2);
  if (opt_same_value(t, f)) return opt_simplify_to(rw, op, t, changed);
  const unsigned char *pred = opt_uniform(opt_operand(op, 0));
  return pred ? opt_simplify_to(rw, op, *pred ? t : f, changed) : 0;
}

/* select(!p, a, b) is select(p, b, a), also where the negation is broadcast first. */
static int simplify_math_select_not(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_op *by = ir_operand(op, 0);
  ir_value pred = {NULL, 0};
  if (by->opcode == IR_OP_NOT) {
    pred = opt_operand(by, 0);
  } else if (by->opcode == IR_OP_BROADCAST && ir_operand(by, 0)->opcode == IR_OP_NOT && opt_has_one_use(rw, by)) {
    uint32_t n = 0;
    const int64_t *dims = opt_ints(rw, by, "broadcast_dimensions", &n);
    if (!dims || opt_type(opt_operand(ir_operand(by, 0), 0))->rank != n) return 0;
    pred = opt_broadcast_in_dim(rw, opt_operand(ir_operand(by, 0), 0), by->type, dims);
  } else {
    return 0;
  }
  ir_value all[] = {pred, opt_operand(op, 2), opt_operand(op, 1)};
  return opt_simplify_to_new(rw, op, opt_make(rw, IR_OP_SELECT, op->type, 3, all), changed);
}

/* All three operands constants: by the folder, within its bounds. */
static int simplify_math_select_constants(opt_rewriter *rw, ir_op *op, bool *changed) {
  return opt_fold(rw, op, rw->folder->max_elements, changed);
}

/* --- conversions and parts --- */

/* To the type it has: opt_simplify_into asks for that. */
static int simplify_math_convert(opt_rewriter *rw, ir_op *op, bool *changed) {
  return opt_simplify_into(rw, op, opt_operand(op, 0), changed);
}

/* complex(real(x), imag(x)) is x. */
static int simplify_math_complex(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *real = ir_operand(op, 0), *imag = ir_operand(op, 1);
  if (real->opcode != IR_OP_REAL || imag->opcode != IR_OP_IMAG) return 0;
  if (!opt_same_value(opt_operand(real, 0), opt_operand(imag, 0))) return 0;
  return opt_simplify_to(rw, op, opt_operand(real, 0), changed);
}

/* real(complex(a, b)) is a; imag(complex(a, b)) is b. */
static int simplify_math_part(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *whole = ir_operand(op, 0);
  if (whole->opcode != IR_OP_COMPLEX) return 0;
  return opt_simplify_to(rw, op, opt_operand(whole, op->opcode == IR_OP_IMAG), changed);
}

const opt_pattern opt_math_patterns[] = {
    {IR_OP_ADD, simplify_math_add},
    {IR_OP_SUBTRACT, simplify_math_subtract},
    {IR_OP_MULTIPLY, simplify_math_multiply},
    {IR_OP_AND, simplify_math_and},
    {IR_OP_OR, simplify_math_or},
    {IR_OP_XOR, simplify_math_xor},
    {IR_OP_MAXIMUM, simplify_math_commute},
    {IR_OP_MINIMUM, simplify_math_commute},
    {IR_OP_COMPARE, simplify_math_compare},
    {IR_OP_SELECT, simplify_math_select_operand},
    {IR_OP_SELECT, simplify_math_select_not},
    {IR_OP_SELECT, simplify_math_select_constants},
    {IR_OP_CONVERT, simplify_math_convert},
    {IR_OP_COMPLEX, simplify_math_complex},
    {IR_OP_REAL, simplify_math_part},
    {IR_OP_IMAG, simplify_math_part},
    {IR_OP_INVALID, NULL},
};
