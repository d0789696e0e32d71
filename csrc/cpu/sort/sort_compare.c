/* Comparators as keys: compare(f(p), f(q)) by < or >, where f is nothing or what makes all zeros and all NaNs equal,
 * and chains of them: first, or first equal and then the rest. */
#include "../../interp/algorithm/sort_keys.h"
#include "sort.h"

/* One side of a comparison: a parameter, maybe made canonical. */
typedef struct compare_side {
  int64_t parameter;
  bool zeros_equal, nan_equal;
  uint64_t nan;
} compare_side;

static bool compare_constant(const ir_op *op, uint64_t *bits) {
  if (op->opcode != IR_OP_CONSTANT || !op->u.literal || op->u.literal->elided || op->type->count != 1) return false;
  *bits = 0;
  memcpy(bits, op->u.literal->data, base_dtype_bytes(op->type->dtype));
  return true;
}

static bool compare_is(const ir_op *op, ir_direction direction) {
  return op->opcode == IR_OP_COMPARE && ir_get_word(op, IR_ATTR_DIRECTION) == (int)direction &&
         ir_get_word(op, IR_ATTR_TYPE) != IR_COMPARISON_TOTALORDER;
}

/* Sides of `select(test(p), constant, rest)`, which stand one within the other, in either order. */
static bool compare_side_of(const ir_op *op, compare_side *s) {
  *s = (compare_side){.parameter = -1};
  for (int depth = 0; op->opcode == IR_OP_SELECT && depth < 2; depth++) {
    const ir_op *test = ir_operand(op, 0);
    uint64_t value, zero;
    if (!compare_constant(ir_operand(op, 1), &value) || test->n_operands != 2) return false;
    const ir_op *p = ir_operand(test, 0), *q = ir_operand(test, 1);
    if (p->opcode != IR_OP_PARAMETER || (s->parameter >= 0 && s->parameter != p->u.number)) return false;
    s->parameter = p->u.number;
    if (compare_is(test, IR_DIRECTION_NE) && p == q && !s->nan_equal) {
      s->nan_equal = true;
      s->nan = value;
    } else if (compare_is(test, IR_DIRECTION_EQ) && compare_constant(q, &zero) && zero == 0 && value == 0 &&
               !s->zeros_equal) {
      s->zeros_equal = true;
    } else {
      return false;
    }
    op = ir_operand(op, 2);
  }
  if (op->opcode != IR_OP_PARAMETER || (s->parameter >= 0 && s->parameter != op->u.number)) return false;
  s->parameter = op->u.number;
  return true;
}

static bool compare_is_nan(base_dtype t, uint64_t bits) {
  double v = base_load_f64(t, &bits);
  return v != v;
}

static bool compare_has_keys(base_dtype t) {
  if (base_dtype_is_float(t)) return t == XLAC_F16 || t == XLAC_BF16 || t == XLAC_F32 || t == XLAC_F64;
  return interp_sort_keyable(t);
}

/* compare(f(p), f(q)) in one of the given directions, as a key. */
static bool compare_key_of(const ir_op *op, ir_direction less, ir_direction greater, cpu_sort_key *k) {
  compare_side a, b;
  if (op->opcode != IR_OP_COMPARE) return false;
  const ir_direction direction = (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION);
  const ir_comparison type = (ir_comparison)ir_get_word(op, IR_ATTR_TYPE);
  bool is_less = direction == less;
  if (!is_less && direction != greater) return false;
  if (!compare_side_of(ir_operand(op, 0), &a) || !compare_side_of(ir_operand(op, 1), &b)) return false;
  bool same = a.zeros_equal == b.zeros_equal && a.nan_equal == b.nan_equal && a.nan == b.nan;
  base_dtype t = ir_operand_type(op, 0)->dtype;
  if ((a.parameter ^ b.parameter) != 1 || !same || !compare_has_keys(t)) return false;
  *k = (cpu_sort_key){.operand = (uint32_t)(a.parameter / 2), .dtype = t, .nan = a.nan};
  k->descending = is_less == (a.parameter % 2 == 1);
  if (!base_dtype_is_float(t)) {
    bool as_is = type == IR_COMPARISON_NONE || type == IR_COMPARISON_TOTALORDER || t == XLAC_PRED ||
                 type == (base_dtype_is_signed(t) ? IR_COMPARISON_SIGNED : IR_COMPARISON_UNSIGNED);
    return as_is && !a.nan_equal; /* zero is zero */
  }
  bool total = type == IR_COMPARISON_TOTALORDER;
  if (a.nan_equal && !compare_is_nan(t, a.nan)) return false;
  k->zeros_equal = a.zeros_equal || !total;
  k->nan_equal = a.nan_equal;
  k->no_nan = !total;
  return true;
}

static bool compare_same_key(const cpu_sort_key *a, const cpu_sort_key *b) {
  return a->operand == b->operand && a->zeros_equal == b->zeros_equal && a->nan_equal == b->nan_equal &&
         a->no_nan == b->no_nan && a->nan == b->nan;
}

/* or(first, and(first equal, rest)), operands in any order: *rest. */
static bool compare_chain(const ir_op *op, cpu_sort_key *k, const ir_op **rest) {
  if (op->opcode != IR_OP_OR) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_op *first = ir_operand(op, i), *both = ir_operand(op, 1 - i);
    if (both->opcode != IR_OP_AND || !compare_key_of(first, IR_DIRECTION_LT, IR_DIRECTION_GT, k)) continue;
    for (uint32_t j = 0; j < 2; j++) {
      cpu_sort_key equal;
      if (!compare_key_of(ir_operand(both, j), IR_DIRECTION_EQ, IR_DIRECTION_EQ, &equal) ||
          !compare_same_key(k, &equal))
        continue;
      *rest = ir_operand(both, 1 - j);
      return true;
    }
  }
  return false;
}

uint32_t cpu_sort_keys_of(const ir_computation *c, cpu_sort_key *keys) {
  const ir_op *op = ir_root(c);
  for (uint32_t n = 0; n < CPU_SORT_KEYS; n++) {
    if (compare_key_of(op, IR_DIRECTION_LT, IR_DIRECTION_GT, &keys[n])) return n + 1;
    if (!compare_chain(op, &keys[n], &op)) return 0;
  }
  return 0;
}
