/* topk: the k first elements of each row in descending (or ascending) total order, equal ones by place. */
#include "../blocks.h"
#include "../algorithm/sort_keys.h"

enum { TOPK_SINK = 32 /* element operations that sinking one element takes */ };

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

/* A row whose k first are sought: they lie at the front of v, as a heap until all elements have been seen. */
typedef struct topk_row {
  const interp_value *x;
  const char *from;
  int64_t k;
  bool largest;
  interp_keyed *v;
} topk_row;

static void topk_keys(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  interp_sort_keys(r->x->dtype, r->from + begin * (int64_t)base_dtype_bytes(r->x->dtype), end - begin, false,
                   r->largest, r->v + begin);
  for (int64_t i = begin; i < end; i++) r->v[i].at = i;
}

/* Elements before k are sunk from the last to the first, so that all places after them are heaps already. */
static void topk_heap(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = begin; i < end; i++) heap_sink(r->v, r->k, r->k / 2 - 1 - i);
}

static void topk_sift(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = r->k + begin; i < r->k + end; i++) {
    if (keyed_after(&r->v[i], &r->v[0])) continue;
    r->v[0] = r->v[i];
    heap_sink(r->v, r->k, 0);
  }
}

static void topk_drain(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = r->k - 1 - begin; i > r->k - 1 - end; i--) {
    interp_keyed last = r->v[0];
    r->v[0] = r->v[i];
    r->v[i] = last;
    heap_sink(r->v, i, 0);
  }
}

/* The k first elements of the row, in order, at the front of v. */
static int keep_first(interp_ctx *ctx, topk_row *r, int64_t n) {
  assert(r->k <= n);
  TRY(interp_in_blocks(ctx, n, topk_keys, r));
  if (r->k == 0) return 0;
  TRY(interp_in_heavy_blocks(ctx, r->k / 2, TOPK_SINK, topk_heap, r));
  TRY(interp_in_heavy_blocks(ctx, n - r->k, 4, topk_sift, r)); /* few of them stay */
  return interp_in_heavy_blocks(ctx, r->k - 1, TOPK_SINK, topk_drain, r);
}

int interp_topk_rows(interp_ctx *ctx, const interp_value *x, int64_t k, bool largest, interp_value *values,
                     interp_value *indices) {
  int64_t n = x->dims[x->rank - 1], bytes = (int64_t)base_dtype_bytes(x->dtype), rows = n > 0 ? x->count / n : 0;
  interp_keyed *v = INTERP_SCRATCH(ctx, interp_keyed, n);
  int status = v ? 0 : interp_failed(ctx);
  for (int64_t row = 0; row < rows && status == 0; row++) {
    const char *from = (const char *)x->data + row * n * bytes;
    char *to = (char *)values->data + row * k * bytes;
    topk_row r = {x, from, k, largest, v};
    status = keep_first(ctx, &r, n);
    for (int64_t i = 0; i < k && status == 0; i++) {
      memcpy(to + i * bytes, from + v[i].at * bytes, (size_t)bytes);
      base_store_i64(indices->dtype, (char *)indices->data + (row * k + i) * (int64_t)base_dtype_bytes(indices->dtype),
                     v[i].at);
    }
    if (status == 0) status = interp_tick(ctx, (uint64_t)k);
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
