/* map: a computation on scalars for each place of its arrays. As in XLA, scalars may stand beside arrays. */
#include "../algorithm/arrays.h"

enum { MAP_LANES = 1 << 14 };

/* Scalars are repeated once for a block of lanes; arrays advance. */
static int map_lanes(interp_ctx *ctx, const ir_op *op, interp_body *body, interp_value *const *operands,
                     interp_value *const *x, interp_value *r, const void **args) {
  for (int64_t at = 0; at < r->count; at += MAP_LANES) {
    int64_t n = interp_min(MAP_LANES, r->count - at);
    for (uint32_t i = 0; i < op->n_operands; i++)
      args[i] =
          (const char *)x[i]->data + (operands[i]->rank == r->rank ? at * (int64_t)base_dtype_bytes(x[i]->dtype) : 0);
    void *to = (char *)r->data + at * (int64_t)base_dtype_bytes(r->dtype);
    TRY(interp_apply(ctx, body, n, args, &to));
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* The operand whose dimensions the result has: the first that is not a scalar, if any. All that are none must agree. */
static int map_full(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t *full) {
  *full = 0;
  for (uint32_t i = 0; i < op->n_operands && operands[*full]->rank == 0; i++) *full = i;
  if (operands[*full]->rank == 0) *full = 0;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (operands[i]->rank != 0) TRY(interp_need_same_dims(ctx, op, operands, i, *full));
  return 0;
}

/* A scalar repeated for as many elements as are worked on at a time. */
static interp_value *map_repeat(interp_ctx *ctx, interp_value *scalar, int64_t count) {
  int64_t n = interp_min(MAP_LANES, count);
  interp_value *r = interp_array(ctx, scalar->dtype, 1, &n);
  if (r) interp_fill(base_dtype_bytes(r->dtype), r->data, n, scalar->data);
  interp_release(scalar);
  return r;
}

/* Operands in the types of the computation's parameters. */
static int map_operands(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, const interp_value *full,
                        interp_value **x) {
  const ir_computation *c = op->called[0];
  for (uint32_t i = 0; i < op->n_operands; i++) {
    x[i] = interp_as(ctx, operands[i], c->params[i]->type->dtype);
    if (x[i] && operands[i]->rank != full->rank) x[i] = map_repeat(ctx, x[i], full->count);
    if (!x[i]) return interp_failed(ctx);
  }
  return 0;
}

/* The body is prepared once and applied to blocks of MAP_LANES elements. */
int interp_eval_map(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_computation *c = op->called[0];
  uint32_t n = op->n_operands, full;
  if (c->n_params != n || n == 0 || !ir_is_scalar(ir_root(c)->type))
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s does not make an element of %u", c->name->s, n);
  TRY(map_full(ctx, op, operands, &full));
  interp_body *body = NULL;
  interp_value *r = NULL, **x = INTERP_SCRATCH(ctx, interp_value *, n);
  const void **args = INTERP_SCRATCH(ctx, const void *, n);
  int status = x && args ? 0 : interp_failed(ctx);
  if (x) memset(x, 0, n * sizeof *x);
  if (status == 0) status = map_operands(ctx, op, operands, operands[full], x);
  if (status == 0) status = interp_body_prepare(ctx, c, &body);
  if (status == 0) {
    r = interp_array(ctx, ir_root(c)->type->dtype, operands[full]->rank, operands[full]->dims);
    status = r ? map_lanes(ctx, op, body, operands, x, r, args) : interp_failed(ctx);
  }
  if (body) interp_body_free(body);
  if (x) interp_release_all(n, x);
  interp_scratch_free(ctx, x);
  interp_scratch_free(ctx, args);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}
