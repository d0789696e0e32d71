/* The custom-call target "TopK": the k largest elements of each row, descending, and their indices; k is the results'
 * last dimension. Floats compare by total order, so NaN comes first and 0 before -0; equal elements keep their order.
 */
#include "interp.h"

/* An integer that orders as the element does. */
static uint64_t topk_key(base_dtype type, const void *p) {
  const base_dtype_info *info = base_dtype_of(type);
  assert(info->bits >= 1 && info->bits <= 64);
  uint64_t bits = 0, sign = 1ull << (info->bits - 1);
  if (info->kind == BASE_KIND_SINT) return (uint64_t)base_load_i64(type, p) ^ 1ull << 63;
  memcpy(&bits, p, info->bytes);
  if (info->kind != BASE_KIND_FLOAT) return bits;
  return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

typedef struct topk_entry {
  uint64_t key;
  int64_t index;
} topk_entry;

/* Whether a comes before b in the result. */
static bool topk_before(topk_entry a, topk_entry b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

/* Moves the entry at `at` down a heap of n whose first entry is the one that comes last. */
static void topk_sink(topk_entry *heap, int64_t n, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= n) return;
    if (child + 1 < n && topk_before(heap[child], heap[child + 1])) child++;
    if (!topk_before(heap[at], heap[child])) return;
    topk_entry swap = heap[at];
    heap[at] = heap[child], heap[child] = swap;
    at = child;
  }
}

/* The first k entries of a row of n, in order, by a heap of the k best so far. */
static void topk_row(base_dtype type, const char *row, int64_t n, topk_entry *heap, int64_t k) {
  size_t bytes = base_dtype_bytes(type);
  assert(k >= 0 && k <= n);
  for (int64_t i = 0; i < k; i++) heap[i] = (topk_entry){topk_key(type, row + (size_t)i * bytes), i};
  for (int64_t i = k / 2; i-- > 0;) topk_sink(heap, k, i);
  for (int64_t i = k; i < n && k > 0; i++) {
    topk_entry entry = {topk_key(type, row + (size_t)i * bytes), i};
    if (!topk_before(entry, heap[0])) continue;
    heap[0] = entry;
    topk_sink(heap, k, 0);
  }
  for (int64_t left = k - 1; left > 0; left--) {
    topk_entry swap = heap[0];
    heap[0] = heap[left], heap[left] = swap;
    topk_sink(heap, left, 0);
  }
}

static bool topk_fits(const ir_op *op, interp_value *const *operands) {
  const ir_type *t = op->type;
  if (op->n_operands != 1 || operands[0]->kind != INTERP_ARRAY || operands[0]->rank == 0) return false;
  if (base_dtype_is_complex(operands[0]->dtype) || !ir_is_tuple(t) || t->n_elements != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *e = t->elements[i];
    if (!ir_is_tensor(e) || e->rank != operands[0]->rank) return false;
    for (uint32_t d = 0; d < e->rank; d++)
      if (d + 1 < e->rank ? e->dims[d] != operands[0]->dims[d] : e->dims[d] < 0 || e->dims[d] > operands[0]->dims[d])
        return false;
  }
  const ir_type *values = t->elements[0], *indices = t->elements[1];
  return values->count == indices->count && values->dtype == operands[0]->dtype &&
         base_dtype_is_integer(indices->dtype);
}

static int topk_custom_rows(interp_ctx *ctx, const interp_value *in, interp_value *values, interp_value *indices) {
  int64_t n = in->dims[in->rank - 1], k = values->dims[values->rank - 1];
  size_t bytes = base_dtype_bytes(in->dtype), index_bytes = base_dtype_bytes(indices->dtype), heap_bytes;
  topk_entry *heap =
      base_mul((size_t)k, sizeof *heap, &heap_bytes) ? base_malloc(ctx->options.alloc, heap_bytes) : NULL;
  if (!heap) return base_oom(ctx->err, "TopK");
  int status = 0;
  for (int64_t row = 0; k > 0 && row < in->count / n && status == 0; row++) {
    const char *from = (const char *)in->data + (size_t)(row * n) * bytes;
    topk_row(in->dtype, from, n, heap, k);
    for (int64_t i = 0; i < k; i++) {
      memcpy((char *)values->data + (size_t)(row * k + i) * bytes, from + (size_t)heap[i].index * bytes, bytes);
      base_store_i64(indices->dtype, (char *)indices->data + (size_t)(row * k + i) * index_bytes, heap[i].index);
    }
    status = interp_tick(ctx, (uint64_t)n * 4);
  }
  base_free(ctx->options.alloc, heap);
  return status;
}

int interp_custom_topk(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (!topk_fits(op, operands))
    return interp_fail(ctx, op, XLAC_E_EVAL, "TopK takes [..., n] and gives ([..., k], integer [..., k]) with k <= n");
  interp_value *result = interp_zeros(ctx, op->type);
  if (!result) return base_oom(ctx->err, "TopK");
  int status = topk_custom_rows(ctx, operands[0], result->elements[0], result->elements[1]);
  if (status != 0) return interp_release(result), status;
  *out = result;
  return 0;
}
