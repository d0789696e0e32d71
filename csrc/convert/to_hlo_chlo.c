/* CHLO's functions that a few HLO ops give exactly. The others are expanded by passes, or run by the interpreter. */
#include "to_hlo.h"

/* A scalar 1 of the operand's element type, spread over `type`. */
static ir_op *chlo_ones(to_hlo_op *x, const ir_type *type) {
  const ir_type *scalar = ir_scalar(x->t->to, (base_dtype)type->dtype);
  ir_literal *one = scalar ? ir_literal_new(x->t->to, scalar) : NULL;
  ir_op *made = one ? to_hlo_emit(x, IR_OP_CONSTANT, scalar, 0, NULL, 0) : NULL;
  if (!made) return NULL;
  base_store_f64((base_dtype)type->dtype, one->data, 1);
  made->u.literal = one;
  made = to_hlo_emit(x, IR_OP_BROADCAST, type, 1, &made, 0);
  return made && ir_set_ints(made, IR_ATTR_DIMENSIONS, 0, NULL) ? made : NULL;
}

/* atan(x) is atan2(x, 1); XLA 0.10.2 has no op of one operand. Not of complex numbers. */
static int chlo_atan(to_hlo_op *x, const ir_type *type) {
  ir_op *operands[2] = {x->operands[0], chlo_ones(x, type)};
  if (!operands[1]) return to_hlo_no_memory(x->t);
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_ATAN2, type, 2, operands, 0));
}

bool to_hlo_is_simple_chlo(const ir_op *op) {
  if (op->opcode == IR_OP_CHLO_TAN || op->opcode == IR_OP_SQUARE) return true;
  return op->opcode == IR_OP_ATAN && base_dtype_is_float((base_dtype)op->type->dtype);
}

int to_hlo_simple_chlo(to_hlo_op *x) {
  const ir_type *type = to_hlo_result_type(x);
  if (!type) return to_hlo_no_memory(x->t);
  if (x->op->opcode == IR_OP_ATAN) return chlo_atan(x, type);
  if (x->op->opcode == IR_OP_CHLO_TAN) return to_hlo_results(x, to_hlo_emit(x, IR_OP_TAN, type, 1, x->operands, 0));
  ir_op *operands[2] = {x->operands[0], x->operands[0]};
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_MULTIPLY, type, 2, operands, 0));
}
