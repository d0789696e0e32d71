/* Ops that move whole values about: constants, tuples, tokens, and what only passes its operand on.
 *
 * None of them copies data: values are shared by reference. */
#include "../interp.h"

int interp_eval_constant(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  const ir_literal *l = op->u.literal;
  assert(l);
  if (l->elided) {
    int status =
        interp_fail(ctx, op, XLAC_E_EVAL, "the constant's values are not in the text: it was written as {...}");
    return base_hint(ctx->err, status, "print the module with large constants, or make the constant a parameter");
  }
  return (*out = interp_from_literal(ctx, l)) ? 0 : interp_failed(ctx);
}

/* For ops whose meaning is outside of the values: opt-barrier, domain and the like. */
int interp_eval_first(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)ctx, (void)op;
  assert(op->n_operands >= 1);
  *out = interp_retain(operands[0]);
  return 0;
}

/* Values are immutable while shared, so a copy costs nothing. */
int interp_eval_copy(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return interp_eval_first(ctx, op, operands, out);
}

int interp_eval_tuple(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return (*out = interp_tuple(ctx, op->n_operands, operands)) ? 0 : interp_failed(ctx);
}

/* A new reference. */
static int eval_element(const interp_value *tuple, int64_t index, interp_value **out) {
  assert(tuple);
  assert(tuple->kind == INTERP_TUPLE && index >= 0 && index < tuple->n_elements && tuple->elements[index]);
  *out = interp_retain(tuple->elements[index]);
  return 0;
}

int interp_eval_get_tuple_element(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)ctx;
  return eval_element(operands[0], ir_get_int(op, IR_ATTR_INDEX, 0), out);
}

/* Of (operand, result, ...). */
int interp_eval_tuple_element_1(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)ctx, (void)op;
  return eval_element(operands[0], 1, out);
}

/* Order is the plan's, so tokens carry nothing. */
int interp_eval_after_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)op, (void)operands;
  return (*out = interp_token(ctx)) ? 0 : interp_failed(ctx);
}

/* As a scalar of op's type. */
static int eval_number(interp_ctx *ctx, const ir_op *op, int64_t number, interp_value **out) {
  if (!(*out = interp_array_for(ctx, op))) return interp_failed(ctx);
  assert((*out)->count == 1);
  base_store_i64((base_dtype)(*out)->dtype, (*out)->data, number);
  return 0;
}

int interp_eval_replica_id(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  return eval_number(ctx, op, ctx->options.replica, out);
}

int interp_eval_partition_id(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  return eval_number(ctx, op, ctx->options.partition, out);
}
