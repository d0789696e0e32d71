/* call, fusion, conditional and while.
 *
 * What the callee gets by interp_take is its own, where nobody reads the value afterwards: it may
 * overwrite it. */
#include "../interp.h"

/* Operands that nobody reads afterwards are the callee's, which may update them in place. */
int interp_eval_call(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_called == 1);
  interp_value *few[16], **args = few;
  if (op->n_operands > 16 && !(args = base_malloc(ctx->options.alloc, op->n_operands * sizeof *args)))
    return base_oom(ctx->err, "the arguments of a call");
  for (uint32_t k = 0; k < op->n_operands; k++) args[k] = interp_take(ctx, operands, k);
  int status = interp_call_move(ctx, op->called[0], op->n_operands, args, out);
  if (args != few) base_free(ctx->options.alloc, args);
  return status;
}

/* Which branch: true is 0; an index out of range means the last one. */
static int branch_of(interp_ctx *ctx, const ir_op *op, const interp_value *selector, uint32_t *branch) {
  if (selector->kind != INTERP_ARRAY || selector->count != 1)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the branch selector must be a scalar");
  int64_t v = base_load_i64(selector->dtype, selector->data);
  if (selector->dtype == XLAC_PRED) v = v ? 0 : 1;
  *branch = v >= 0 && v < op->n_called ? (uint32_t)v : op->n_called - 1;
  return 0;
}

/* Operand b + 1 is branch b's argument; the other branches' arguments are left alone. */
int interp_eval_conditional(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_called >= 1 && op->n_operands == op->n_called + 1);
  uint32_t branch = 0;
  TRY(branch_of(ctx, op, operands[0], &branch));
  interp_value *arg = interp_take(ctx, operands, branch + 1);
  return interp_call_move(ctx, op->called[branch], 1, &arg, out);
}

/* Borrows the state: the body must find it as it was. */
static int while_condition(interp_ctx *ctx, const ir_op *op, interp_value *state, bool *go_on) {
  assert(state);
  interp_value *flag = NULL;
  TRY(interp_call(ctx, op->called[0], 1, &state, &flag));
  bool is_flag = flag->kind == INTERP_ARRAY && flag->dtype == XLAC_PRED && flag->count == 1;
  if (is_flag) *go_on = *(const unsigned char *)flag->data != 0;
  interp_release(flag);
  return is_flag ? 0 : interp_fail(ctx, op, XLAC_E_EVAL, "the condition must give a scalar pred");
}

/* The body takes over the state, so that with nobody else holding it in-place ops reuse its buffers. */
int interp_eval_while(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_called == 2 && op->n_operands == 1);
  interp_value *state = interp_take(ctx, operands, 0);
  for (;;) {
    bool go_on = false;
    int status = while_condition(ctx, op, state, &go_on);
    if (status == 0 && !go_on) break;
    interp_value *next = NULL;
    if (status == 0) status = interp_tick(ctx, 1);
    if (status == 0) {
      status = interp_call_move(ctx, op->called[1], 1, &state, &next);
    } else {
      interp_release(state);
    }
    if (status != 0) return status;
    state = next;
  }
  *out = state;
  return 0;
}
