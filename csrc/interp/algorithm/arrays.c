/* Helpers that the evaluators of structured ops share. */
#include "arrays.h"
#include "../blocks.h"
#include "../../ir/check/check.h"

/* n may be 0: the pointer is then not NULL, but not to be read through. */
void *interp_scratch(interp_ctx *ctx, int64_t n, size_t size) {
  size_t bytes = 0;
  assert(n >= 0 && size > 0);
  void *p = base_mul((size_t)n, size, &bytes) ? base_malloc(ctx->options.alloc, bytes) : NULL;
  if (!p) base_oom(ctx->err, "evaluating an op");
  return p;
}

int interp_deliver(int status, interp_value *r, interp_value **out) {
  if (status == 0)
    *out = r;
  else
    interp_release(r);
  return status;
}

/* Only u64 has values beyond int64. */
int64_t interp_index(base_dtype t, const void *p) {
  if (t != XLAC_U64) return base_load_i64(t, p);
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

interp_value *interp_copy_as(interp_ctx *ctx, const interp_value *v, base_dtype t) {
  assert(v->kind == INTERP_ARRAY);
  interp_value *r = interp_array(ctx, t, v->rank, v->dims);
  if (!r) return NULL;
  int status = t == v->dtype ? interp_copy_bytes(ctx, r->data, v->data, interp_bytes(v))
                             : interp_convert(ctx, t, r->data, (base_dtype)v->dtype, v->data, v->count);
  if (status == 0) return r;
  interp_release(r);
  return NULL;
}

/* No copy where the type is right already. */
interp_value *interp_as(interp_ctx *ctx, interp_value *v, base_dtype t) {
  return v->dtype == t ? interp_retain(v) : interp_copy_as(ctx, v, t);
}

/* Rounds once, from the type that an evaluator computed in. */
int interp_finish(interp_ctx *ctx, base_dtype t, interp_value *result, interp_value **out) {
  if (!result) return interp_failed(ctx);
  if (result->dtype == t) {
    *out = result;
    return 0;
  }
  interp_value *converted = interp_as(ctx, result, t);
  interp_release(result);
  if (!converted) return interp_failed(ctx);
  *out = converted;
  return 0;
}

void interp_release_all(uint32_t n, interp_value **values) {
  for (uint32_t i = 0; i < n; i++) interp_release(values[i]);
}

int interp_finish_all(interp_ctx *ctx, const ir_op *op, uint32_t n, interp_value **results, interp_value **out) {
  bool tuple = ir_is_tuple(op->type);
  assert(tuple ? op->type->n_elements == n : n == 1);
  int status = 0;
  for (uint32_t i = 0; i < n && status == 0; i++) {
    const ir_type *t = tuple ? op->type->elements[i] : op->type;
    interp_value *r = results[i];
    results[i] = NULL;
    status = interp_finish(ctx, t->dtype, r, &results[i]);
  }
  if (status == 0 && !tuple) {
    *out = results[0];
    return 0;
  }
  interp_value *r = status == 0 ? interp_tuple(ctx, n, results) : NULL;
  interp_release_all(n, results);
  if (status != 0) return status;
  if (!r) return interp_failed(ctx);
  *out = r;
  return 0;
}

int64_t interp_count(uint32_t rank, const int64_t *dims) {
  int64_t n = 1;
  for (uint32_t d = 0; d < rank; d++) n *= dims[d];
  return n;
}

int interp_copy_box(interp_ctx *ctx, size_t bytes, uint32_t rank, const int64_t *dims, void *to, const void *from,
                    int64_t from_at, const int64_t *from_strides) {
  int64_t to_strides[IR_MAX_RANK];
  interp_strides(rank, dims, to_strides);
  return interp_strided_copy(ctx, bytes, rank, dims, to, to_strides, (const char *)from + from_at * (int64_t)bytes,
                             from_strides);
}

/* --- Zero-filled values of any type: contexts of async ops, results nobody sends to. --- */

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
