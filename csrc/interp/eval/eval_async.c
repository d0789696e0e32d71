/* Async ops on one thread: start evaluates at once, or leaves that to a later step (async_order.h); done hands the
 * result over. Also copy-start and copy-done.
 *
 * HLO's shapes: async-start gives ((operands), result, contexts...), async-done gives the result; copy-
 * start gives (destination, source, context). */
#include "../async_order.h"

/* Contexts are opaque words that nobody looks into: zeros. Elements from `from` on; on failure those made
 * so far are in the list. */
static int async_contexts(interp_ctx *ctx, const ir_type *t, uint32_t from, interp_value **elements) {
  for (uint32_t i = from; i < t->n_elements; i++)
    if (!(elements[i] = interp_zeros(ctx, t->elements[i]))) return interp_failed(ctx);
  return 0;
}

/* first and second stay the caller's references. */
int interp_async_tuple(interp_ctx *ctx, const ir_op *op, interp_value *first, interp_value *second,
                       interp_value **out) {
  const ir_type *t = op->type;
  if (!ir_is_tuple(t) || t->n_elements < 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the result of %s must be a tuple of at least two elements",
                       ir_opcode_text(op->opcode));
  size_t bytes = (size_t)t->n_elements * sizeof(interp_value *);
  interp_value **elements = base_malloc(ctx->options.alloc, bytes);
  if (!elements) return base_oom(ctx->err, "an async op's result");
  memset(elements, 0, bytes);
  assert(first && second);
  elements[0] = first, elements[1] = second;
  int status = async_contexts(ctx, t, 2, elements);
  if (status == 0 && !(*out = interp_tuple(ctx, t->n_elements, elements)))
    status = base_oom(ctx->err, "an async op's result");
  for (uint32_t i = 2; i < t->n_elements; i++) interp_release(elements[i]);
  base_free(ctx->options.alloc, elements);
  return status;
}

/* Where it waits, the result's place holds a token until the computation has run. */
int interp_eval_async_start(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_computation *wrapped = ir_async_wrapped(op);
  if (!wrapped) return interp_fail(ctx, op, XLAC_E_EVAL, "async-start wraps no computation");
  interp_value *result = NULL, *inputs = NULL;
  uint32_t at = 0;
  bool later = interp_async_waits(ctx, op, &at);
  if (!later) TRY(interp_call(ctx, wrapped, op->n_operands, operands, &result));
  int status = 0;
  if (later && !(result = interp_token(ctx))) status = base_oom(ctx->err, "an async op's result");
  if (status == 0 && !(inputs = interp_tuple(ctx, op->n_operands, operands)))
    status = base_oom(ctx->err, "an async op's operands");
  if (status == 0) status = interp_async_tuple(ctx, op, inputs, result, out);
  interp_release(inputs);
  interp_release(result);
  if (status == 0 && later) status = interp_async_leave(ctx, op, at, *out);
  return status;
}

/* A step of the chain that changes nothing. */
int interp_eval_async_update(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)ctx, (void)op;
  assert(op->n_operands == 1);
  *out = interp_retain(operands[0]);
  return 0;
}

/* Malformed chains are errors of the program's, as types of async ops are hardly checked before. */
static int async_element(interp_ctx *ctx, const ir_op *op, const interp_value *v, uint32_t index, interp_value **out) {
  if (v->kind != INTERP_TUPLE || v->n_elements <= index)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s takes a tuple of more than %u elements", ir_opcode_text(op->opcode),
                       index);
  *out = interp_retain(v->elements[index]);
  return 0;
}

/* The computation has run by now: the engine sees to that before this step. */
int interp_eval_async_done(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return async_element(ctx, op, operands[0], 1, out);
}

/* (destination, source, context): values are immutable while shared, so the copy is the source itself. */
int interp_eval_copy_start(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return interp_async_tuple(ctx, op, operands[0], operands[0], out);
}

int interp_eval_copy_done(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return async_element(ctx, op, operands[0], 0, out);
}
