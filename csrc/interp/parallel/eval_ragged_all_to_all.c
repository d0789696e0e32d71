/* ragged-all-to-all of one participant: each update copies rows of the input into the output at run-time offsets. */
#include "../blocks.h"

/* operands: input, output, input offsets, send sizes, output offsets, receive sizes. */
static int ragged_update(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value *dst,
                         int64_t i) {
  assert(i >= 0 && i < operands[2]->count);
  int64_t at[4]; /* input offset, send size, output offset, receive size */
  for (uint32_t k = 0; k < 4; k++) {
    const interp_value *v = operands[2 + k];
    at[k] = base_load_i64(v->dtype, (const char *)v->data + (size_t)i * base_dtype_bytes(v->dtype));
  }
  const interp_value *src = operands[0];
  int64_t row = src->dims[0] ? src->count / src->dims[0] : 0, n = at[1];
  if (n < 0 || at[0] < 0 || at[2] < 0 || n > src->dims[0] || n > dst->dims[0] || at[0] > src->dims[0] - n ||
      at[2] > dst->dims[0] - n)
    return interp_fail(ctx, op, XLAC_E_EVAL,
                       "update %lld of %lld rows from row %lld to row %lld does not fit its operands", (long long)i,
                       (long long)n, (long long)at[0], (long long)at[2]);
  if (n != at[3])
    return interp_fail(ctx, op, XLAC_E_EVAL, "update %lld sends %lld rows but receives %lld", (long long)i,
                       (long long)n, (long long)at[3]);
  size_t row_bytes = (size_t)row * base_dtype_bytes(src->dtype);
  return interp_copy_bytes(ctx, (char *)dst->data + (size_t)at[2] * row_bytes,
                           (const char *)src->data + (size_t)at[0] * row_bytes, (size_t)n * row_bytes);
}

static bool ragged_shapes_fit(interp_value *const *operands) {
  for (uint32_t k = 0; k < 6; k++)
    if (operands[k]->kind != INTERP_ARRAY || operands[k]->rank == 0) return false;
  for (uint32_t k = 3; k < 6; k++)
    if (operands[k]->count != operands[2]->count) return false;
  const interp_value *in = operands[0], *out = operands[1];
  if (in->dtype != out->dtype || in->rank != out->rank) return false;
  for (uint32_t d = 1; d < in->rank; d++)
    if (in->dims[d] != out->dims[d]) return false;
  return true;
}

int interp_eval_ragged_all_to_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 6);
  if (ctx->options.hub) return interp_collective_many(ctx, op, op->type, operands, out);
  TRY(interp_collective_alone(ctx, op));
  if (!ragged_shapes_fit(operands))
    return interp_fail(ctx, op, XLAC_E_EVAL,
                       "input and output must differ in rows only, offsets and sizes be of one length");
  interp_value *dst = interp_make_unique(ctx, interp_retain(operands[1]));
  if (!dst) return interp_failed(ctx);
  int status = 0;
  for (int64_t i = 0; i < operands[2]->count && status == 0; i++) status = ragged_update(ctx, op, operands, dst, i);
  if (status != 0) return interp_release(dst), status;
  *out = dst;
  return 0;
}
