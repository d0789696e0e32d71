/* Values: arrays, tuples and tokens as the interpreter has them, made and read by callers. */
#include "api.h"

/* Zeros count as no bytes, also beside sizes whose product does not fit. */
int api_array_bytes(uint32_t dtype, uint32_t rank, const int64_t *dims, size_t *bytes, xlac_error *err) {
  assert(bytes && (rank == 0 || dims));
  if (dtype == BASE_DTYPE_INVALID || dtype >= BASE_DTYPE_COUNT)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "element type number %u is unknown", dtype);
  if (rank > IR_MAX_RANK) return base_fail(err, XLAC_E_TOO_LARGE, "rank %u is over %d", rank, IR_MAX_RANK);
  size_t total = base_dtype_bytes((base_dtype)dtype);
  bool fits = true, empty = false;
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] < 0)
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "dimension %u is negative: %lld", d, (long long)dims[d]);
    empty |= dims[d] == 0;
    fits = fits && base_mul(total, (size_t)dims[d], &total) && total <= INT64_MAX;
  }
  if (!fits && !empty) return base_fail(err, XLAC_E_TOO_LARGE, "an array's size is over 2^63 bytes");
  *bytes = empty ? 0 : total;
  return 0;
}

/* The data must stay unchanged until release(ctx) is called, by whichever thread drops the last reference. */
int xlac_value_lend(xlac_value **out, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                    void (*release)(void *ctx), void *ctx, xlac_error *err) {
  size_t bytes;
  TRY(api_array_bytes(dtype, rank, dims, &bytes, err));
  if (data == NULL && bytes) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the array has %zu bytes but no data", bytes);
  void *memory = (void *)(uintptr_t)data; /* lent values are never written */
  interp_value *v = interp_lend(base_alloc_libc, (base_dtype)dtype, rank, dims, memory, release, ctx);
  if (v == NULL) return base_oom(err, "lending an array");
  *out = api_value_out(v);
  return 0;
}

/* What interp's makers need of a context. */
static interp_ctx maker_context(xlac_error *err) {
  return (interp_ctx){.options = {.alloc = base_alloc_libc}, .err = err};
}

/* data may be NULL: zeros. */
int xlac_value_copy(xlac_value **out, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                    xlac_error *err) {
  size_t bytes;
  TRY(api_array_bytes(dtype, rank, dims, &bytes, err));
  interp_ctx ctx = maker_context(err);
  interp_value *v = interp_array(&ctx, (base_dtype)dtype, rank, dims);
  if (v == NULL) return base_oom(err, "making an array");
  if (bytes && data) memcpy(v->data, data, bytes);
  if (bytes && data == NULL) memset(v->data, 0, bytes);
  *out = api_value_out(v);
  return 0;
}

/* Takes new references to the elements. */
int xlac_value_tuple(xlac_value **out, uint32_t n, xlac_value *const *elements, xlac_error *err) {
  assert(out && (n == 0 || elements));
  interp_ctx ctx = maker_context(err);
  /* an element handle is the inner struct under another name, so the arrays of pointers are the same too */
  interp_value *v = interp_tuple(&ctx, n, (interp_value *const *)(const void *)elements);
  if (v == NULL) return base_oom(err, "making a tuple");
  *out = api_value_out(v);
  return 0;
}

int xlac_value_token(xlac_value **out, xlac_error *err) {
  interp_ctx ctx = maker_context(err);
  interp_value *v = interp_token(&ctx);
  if (v == NULL) return base_oom(err, "making a token");
  *out = api_value_out(v);
  return 0;
}

/* Pointers are the value's own, good as long as a reference is held. */
void xlac_value_get(const xlac_value *value, xlac_value_info *out) {
  const interp_value *v = api_value(value);
  *out = (xlac_value_info){.kind = v->kind};
  if (v->kind == INTERP_TUPLE) out->n_elements = v->n_elements;
  if (v->kind != INTERP_ARRAY) return;
  out->dtype = v->dtype;
  out->rank = v->rank;
  out->dims = v->dims;
  out->count = v->count;
  out->bytes = (size_t)v->count * base_dtype_bytes((base_dtype)v->dtype);
  out->data = v->data;
}

/* Borrowed from the tuple; NULL past the end and of what is not a tuple. */
xlac_value *xlac_value_element(const xlac_value *value, uint32_t index) {
  const interp_value *v = api_value(value);
  return v->kind == INTERP_TUPLE && index < v->n_elements ? api_value_out(v->elements[index]) : NULL;
}

void xlac_value_retain(xlac_value *v) {
  interp_retain(api_value(v));
}
void xlac_value_release(xlac_value *v) {
  interp_release(api_value(v));
}
