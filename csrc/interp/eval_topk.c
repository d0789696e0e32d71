/* topk: the k first elements of each row in descending (or ascending) total order, equal ones by place. */
#include "sort_keys.h"

/* Whether a comes after b in the result. */
static inline bool keyed_after(const interp_keyed *a, const interp_keyed *b) {
  return a->key != b->key ? a->key > b->key : a->at > b->at;
}

/* Restores the heap (the latest element on top) of n elements below place i. */
static void heap_sink(interp_keyed *heap, int64_t n, int64_t i) {
  interp_keyed x = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && keyed_after(&heap[child + 1], &heap[child])) child++;
    if (!keyed_after(&heap[child], &x)) break;
    heap[i] = heap[child];
  }
  heap[i] = x;
}

/* The k first of n keyed elements, in order, at the front of v. */
static void keep_first(interp_keyed *v, int64_t n, int64_t k) {
  assert(k <= n);
  for (int64_t i = k / 2; i-- > 0;) heap_sink(v, k, i);
  for (int64_t i = k; i < n && k > 0; i++) {
    if (keyed_after(&v[i], &v[0])) continue;
    v[0] = v[i];
    heap_sink(v, k, 0);
  }
  for (int64_t i = k - 1; i > 0; i--) {
    interp_keyed last = v[0];
    v[0] = v[i];
    v[i] = last;
    heap_sink(v, i, 0);
  }
}

int interp_topk_rows(interp_ctx *ctx, const interp_value *x, int64_t k, bool largest, interp_value *values,
                     interp_value *indices) {
  int64_t n = x->dims[x->rank - 1], bytes = (int64_t)base_dtype_bytes(x->dtype), rows = n > 0 ? x->count / n : 0;
  interp_keyed *v = INTERP_SCRATCH(ctx, interp_keyed, n);
  int status = v ? 0 : interp_failed(ctx);
  for (int64_t row = 0; row < rows && status == 0; row++) {
    const char *from = (const char *)x->data + row * n * bytes;
    char *to = (char *)values->data + row * k * bytes;
    interp_sort_keys(x->dtype, from, n, false, largest, v);
    keep_first(v, n, k);
    for (int64_t i = 0; i < k; i++) {
      memcpy(to + i * bytes, from + v[i].at * bytes, (size_t)bytes);
      base_store_i64(indices->dtype, (char *)indices->data + (row * k + i) * (int64_t)base_dtype_bytes(indices->dtype),
                     v[i].at);
    }
    status = interp_tick(ctx, (uint64_t)n * 4);
  }
  interp_scratch_free(ctx, v);
  return status;
}

int interp_eval_topk(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  int64_t dims[IR_MAX_RANK];
  assert(ir_is_tuple(op->type) && op->type->n_elements == 2 && x->rank > 0);
  if (!interp_sort_keyable(x->dtype))
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s elements have no order", base_dtype_of(x->dtype)->text);
  int64_t n = x->dims[x->rank - 1], k = ir_get_int(op, IR_ATTR_K, 0);
  if (k > n)
    return interp_fail(ctx, op, XLAC_E_EVAL, "k is %lld, but the operand's last dimension has the run-time size %lld",
                       (long long)k, (long long)n);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = k;
  interp_value *results[2] = {interp_array(ctx, x->dtype, x->rank, dims),
                              interp_array(ctx, op->type->elements[1]->dtype, x->rank, dims)};
  int status = results[0] && results[1] ? 0 : interp_failed(ctx);
  if (status == 0) status = interp_topk_rows(ctx, x, k, ir_get_bool(op, IR_ATTR_LARGEST, true), results[0], results[1]);
  if (status == 0) return interp_finish_all(ctx, op, 2, results, out);
  interp_release_all(2, results);
  return status;
}
