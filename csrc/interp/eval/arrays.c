/* Helpers that the evaluators of structured ops share. */
#include "arrays.h"

#include "../blocks.h"

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

interp_value *interp_as(interp_ctx *ctx, interp_value *v, base_dtype t) {
  return v->dtype == t ? interp_retain(v) : interp_copy_as(ctx, v, t);
}

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

int64_t interp_position(const ir_ints *v, int64_t d) {
  for (uint32_t i = 0; i < v->n; i++)
    if (v->v[i] == d) return i;
  return -1;
}

int interp_copy_box(interp_ctx *ctx, size_t bytes, uint32_t rank, const int64_t *dims, void *to, const void *from,
                    int64_t from_at, const int64_t *from_strides) {
  int64_t to_strides[IR_MAX_RANK];
  interp_strides(rank, dims, to_strides);
  return interp_strided_copy(ctx, bytes, rank, dims, to, to_strides, (const char *)from + from_at * (int64_t)bytes,
                             from_strides);
}
