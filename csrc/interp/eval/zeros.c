/* Zero-filled values of any type: contexts of async ops, results nobody sends to. */
#include "../../ir/verify/check.h"
#include "../blocks.h"

enum { ZEROS_MAX_PARTS = 1 << 20 }; /* a short text can nest tuples so that they double at each level */

static interp_value *zeros_at_depth(interp_ctx *ctx, const ir_type *t, uint32_t depth, uint32_t *parts);

static interp_value *zeros_tuple(interp_ctx *ctx, const ir_type *t, uint32_t depth, uint32_t *parts) {
  interp_value **elements = base_malloc(ctx->options.alloc, (size_t)t->n_elements * sizeof *elements);
  interp_value *v = NULL;
  uint32_t n = 0;
  if (elements) {
    while (n < t->n_elements && (elements[n] = zeros_at_depth(ctx, t->elements[n], depth + 1, parts))) n++;
    if (n == t->n_elements) v = interp_tuple(ctx, n, elements);
    for (uint32_t i = 0; i < n; i++) interp_release(elements[i]);
  }
  base_free(ctx->options.alloc, elements);
  return v;
}

/* Types nest no deeper than the reader allows, some hundreds; the limit here only guards hand-made ones. */
static interp_value *zeros_at_depth(interp_ctx *ctx, const ir_type *t, uint32_t depth, uint32_t *parts) {
  if (depth > 4096 || ++*parts > ZEROS_MAX_PARTS) return NULL;
  if (t->kind == IR_TYPE_TUPLE) return zeros_tuple(ctx, t, depth, parts);
  if (t->kind == IR_TYPE_BUFFER && t->inner) t = t->inner;
  if (t->kind != IR_TYPE_TENSOR) return interp_token(ctx);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dims[d] >= 0) continue;
    int status = interp_fail(ctx, NULL, XLAC_E_EVAL, "nothing says what size dimension %u of %s has", d, IR_SHOW(t));
    (void)status;
    return NULL;
  }
  interp_value *v = interp_array(ctx, t->dtype, t->rank, t->dims);
  if (!v || interp_zero_bytes(ctx, v->data, interp_bytes(v)) == 0) return v;
  interp_release(v);
  return NULL;
}

interp_value *interp_zeros(interp_ctx *ctx, const ir_type *t) {
  uint32_t parts = 0;
  interp_value *v = zeros_at_depth(ctx, t, 0, &parts);
  bool unsaid = !v && !(ctx->err && ctx->err->code);
  if (unsaid && base_oom(ctx->err, "zeros of a type")) return NULL;
  return v;
}
