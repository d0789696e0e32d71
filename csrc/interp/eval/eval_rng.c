/* rng and rng-get-and-update-state: xlac's own documented generator (docs/rng.md).
 *
 * XLA leaves the numbers of these two ops open. xlac's are Philox4x32-10 blocks with the run's seed as key and one
 * 128-bit counter per run, which rng-get-and-update-state also reads and advances. So a run's numbers follow from its
 * seed alone. */
#include "../interp.h"
#include "../algorithm/rng_stream.h"

enum { RNG_CHUNK = 2048 };

static int rng_check(interp_ctx *ctx, const ir_op *op, bool normal, interp_value *const *operands) {
  if (op->n_operands != 2 || operands[0]->kind != INTERP_ARRAY || operands[1]->kind != INTERP_ARRAY ||
      operands[0]->count != 1 || operands[1]->count != 1 || operands[0]->dtype != op->type->dtype ||
      operands[1]->dtype != op->type->dtype)
    return interp_fail(ctx, op, XLAC_E_EVAL, "rng takes two scalars of its result's element type %s",
                       base_dtype_of(op->type->dtype)->text);
  if (base_dtype_is_complex(op->type->dtype) || (normal && !base_dtype_is_float(op->type->dtype)))
    return interp_fail(ctx, op, XLAC_E_EVAL, "rng has no %s distribution of %s", normal ? "normal" : "uniform",
                       base_dtype_of(op->type->dtype)->text);
  return 0;
}

int interp_eval_rng(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  bool normal = strcmp(ir_get_str(op, IR_ATTR_DISTRIBUTION), "rng_normal") == 0;
  TRY(rng_check(ctx, op, normal, operands));
  interp_value *v = interp_array_for(ctx, op);
  if (!v) return base_oom(ctx->err, "random numbers");
  rng_stream stream = {.key = ctx->options.seed, .counter = {ctx->rng_state[0], ctx->rng_state[1]}};
  size_t bytes = base_dtype_bytes(v->dtype);
  rng_bounds bounds = rng_bounds_of((base_dtype)v->dtype, normal, operands[0]->data, operands[1]->data);
  int status = 0;
  for (int64_t i = 0; i < v->count && status == 0; i++) {
    if (i % RNG_CHUNK == 0) status = interp_tick(ctx, RNG_CHUNK * 16);
    rng_element(&stream, &bounds, (char *)v->data + (size_t)i * bytes);
  }
  ctx->rng_state[0] = stream.counter.low, ctx->rng_state[1] = stream.counter.high;
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}

/* The state before the op, low word first, as XLA gives it; its first state is xlac's first state too. */
int interp_eval_rng_get_and_update_state(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                         interp_value **out) {
  (void)operands;
  if (op->type->dtype != XLAC_U64 || op->type->count != 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the generator's state has type u64[2]");
  interp_value *v = interp_array_for(ctx, op);
  if (!v) return base_oom(ctx->err, "the generator's state");
  memcpy(v->data, ctx->rng_state, sizeof ctx->rng_state);
  rng_counter c = {ctx->rng_state[0], ctx->rng_state[1]};
  c = rng_advance(c, (uint64_t)ir_get_int(op, IR_ATTR_DELTA, 0));
  ctx->rng_state[0] = c.low, ctx->rng_state[1] = c.high;
  *out = v;
  return 0;
}
