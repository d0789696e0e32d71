/* Recognising argmax and argmin by their computation:
 *   better = p0 > p2 or p0 != p0
 *   (select(better, p0, p2), select(better or (p0 == p2 and p1 < p3), p1, p3)) */
#include "arg_reduce.h"

/* In order of the computation: p0 and p1 the pair so far, p2 and p3 the next one. */
static bool arg_is_parameter(const ir_op *op, int64_t number) {
  return op->opcode == IR_OP_PARAMETER && op->u.number == number;
}

/* compare(parameter a, parameter b) in this direction, as numbers. */
static bool arg_compares(const ir_op *op, ir_direction direction, int64_t a, int64_t b) {
  if (op->opcode != IR_OP_COMPARE || ir_get_word(op, IR_ATTR_DIRECTION) != (int)direction) return false;
  const ir_comparison type = (ir_comparison)ir_get_word(op, IR_ATTR_TYPE);
  base_dtype t = ir_operand_type(op, 0)->dtype;
  const ir_comparison own = base_dtype_is_float(t)    ? IR_COMPARISON_FLOAT
                            : base_dtype_is_signed(t) ? IR_COMPARISON_SIGNED
                                                      : IR_COMPARISON_UNSIGNED;
  if (type != IR_COMPARISON_NONE && type != own) return false;
  return arg_is_parameter(ir_operand(op, 0), a) && arg_is_parameter(ir_operand(op, 1), b);
}

/* Floats: "greater, or not a number"; integers: greater. */
static bool arg_is_better(const ir_op *op, ir_direction direction) {
  if (arg_compares(op, direction, 0, 2)) return !base_dtype_is_float(ir_operand_type(op, 0)->dtype);
  if (op->opcode != IR_OP_OR) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (arg_compares(ir_operand(op, i), direction, 0, 2) && arg_compares(ir_operand(op, 1 - i), IR_DIRECTION_NE, 0, 0))
      return true;
  return false;
}

/* p0 == p2 and p1 < p3 */
static bool arg_is_earlier(const ir_op *op) {
  if (op->opcode != IR_OP_AND) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (arg_compares(ir_operand(op, i), IR_DIRECTION_EQ, 0, 2) &&
        arg_compares(ir_operand(op, 1 - i), IR_DIRECTION_LT, 1, 3))
      return true;
  return false;
}

/* select(?, parameter a, parameter b). */
static bool arg_selects(const ir_op *op, int64_t a, int64_t b) {
  return op->opcode == IR_OP_SELECT && arg_is_parameter(ir_operand(op, 1), a) && arg_is_parameter(ir_operand(op, 2), b);
}

/* `or` and `and` are commutative, so both orders are looked at. */
static bool arg_body_goes(const ir_computation *c, ir_direction direction) {
  const ir_op *root = ir_root(c);
  if (c->n_params != 4 || root->opcode != IR_OP_TUPLE || root->n_operands != 2) return false;
  const ir_op *value = ir_operand(root, 0), *place = ir_operand(root, 1);
  if (!arg_selects(value, 0, 2) || !arg_selects(place, 1, 3)) return false;
  if (!arg_is_better(ir_operand(value, 0), direction)) return false;
  const ir_op *keeps = ir_operand(place, 0);
  if (keeps->opcode != IR_OP_OR) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (arg_is_better(ir_operand(keeps, i), direction) && arg_is_earlier(ir_operand(keeps, 1 - i))) return true;
  return false;
}

/* Operands, the computation's parameters and the result must all agree, since loops are chosen by these types. */
static bool arg_types_fit(const ir_op *op) {
  assert(op->n_operands == 4 && op->n_called == 1 && op->called[0]->n_params == 4);
  const ir_computation *c = op->called[0];
  base_dtype value = ir_operand_type(op, 0)->dtype, place = ir_operand_type(op, 1)->dtype;
  for (uint32_t i = 0; i < 4; i++) {
    base_dtype t = i % 2 ? place : value;
    if (!ir_is_tensor(ir_operand_type(op, i)) || ir_operand_type(op, i)->has_dynamic) return false;
    if (c->params[i]->type->dtype != t || ir_operand_type(op, i)->dtype != t) return false;
  }
  if (!ir_is_tuple(op->type) || op->type->elements[0]->dtype != value || op->type->elements[1]->dtype != place)
    return false;
  if (place != XLAC_S32 && place != XLAC_S64) return false;
  if (base_dtype_is_float(value))
    return value == XLAC_F32 || value == XLAC_F64 || value == XLAC_F16 || value == XLAC_BF16;
  return base_dtype_is_integer(value) && base_dtype_of(value)->bits == 8 * base_dtype_bytes(value);
}

/* Whether op's value is its own index along dimension d.
 * An iota of the full shape, or one of less rank that is spread. */
static bool arg_counts(const ir_op *op, int64_t d) {
  while (op->opcode == IR_OP_BROADCAST) {
    int64_t at = ir_ints_at(ir_get_ints(op, IR_ATTR_DIMENSIONS), d);
    if (at < 0 || ir_operand_type(op, 0)->dims[at] != op->type->dims[d]) return false;
    d = at;
    op = ir_operand(op, 0);
  }
  return op->opcode == IR_OP_IOTA && ir_get_int(op, IR_ATTR_IOTA_DIMENSION, 0) == d && op->type->dims[d] <= INT32_MAX;
}

/* Cheap checks first: it is asked for every reduction. */
bool opt_arg_reduction_of(const ir_op *op, opt_arg_reduction *r) {
  if (op->opcode != IR_OP_REDUCE || op->n_operands != 4 || op->n_called != 1 || op->n_control_preds) return false;
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  bool largest = arg_body_goes(op->called[0], IR_DIRECTION_GT);
  if (dims->n != 1 || (!largest && !arg_body_goes(op->called[0], IR_DIRECTION_LT)) || !arg_types_fit(op)) return false;
  *r = (opt_arg_reduction){.smallest = !largest, .dim = (uint32_t)dims->v[0]};
  r->counts = arg_counts(ir_operand(op, 1), dims->v[0]);
  return true;
}
