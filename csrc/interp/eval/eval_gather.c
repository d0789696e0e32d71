/* gather: windows of the operand at given starts, clamped into range. */
#include "../algorithm/windows.h"
#include "../blocks.h"

typedef struct gather_copy {
  size_t bytes;
  char *to;
  const char *from;
} gather_copy;

static int gather_row(void *self, int64_t big, int64_t big_stride, int64_t small, int64_t small_stride, int64_t n) {
  const gather_copy *g = self;
  int64_t bytes = (int64_t)g->bytes;
  interp_copy_row(g->bytes, g->to + small * bytes, small_stride, g->from + big * bytes, big_stride, n);
  return 0;
}

/* The result's dims: offset dims take the window's sizes, the others the indices' batch dims, in order. */
static void gather_numbers(const ir_op *op, const interp_window_dims *a, const interp_value *indices, uint32_t big_rank,
                           const int64_t *slices, int64_t *dims) {
  uint32_t batch = 0, big = 0;
  for (uint32_t d = 0; d < op->type->rank; d++) {
    if (interp_position(a->window, d) >= 0) continue;
    if (batch == a->index_vector_dim) batch++;
    assert(batch < indices->rank);
    dims[d] = indices->dims[batch++];
  }
  for (uint32_t i = 0; i < a->window->n; i++) {
    while (interp_position(a->collapsed, big) >= 0 || interp_position(a->big_batch, big) >= 0) big++;
    assert(big < big_rank);
    dims[a->window->v[i]] = slices[big++];
  }
  (void)big_rank;
}

int interp_eval_gather(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0], *indices = operands[1];
  const ir_ints *sizes = ir_get_ints(op, IR_ATTR_SLICE_SIZES);
  interp_window_dims a = {ir_get_ints(op, IR_ATTR_OFFSET_DIMS),
                          ir_get_ints(op, IR_ATTR_COLLAPSED_SLICE_DIMS),
                          ir_get_ints(op, IR_ATTR_START_INDEX_MAP),
                          ir_get_ints(op, IR_ATTR_OPERAND_BATCHING_DIMS),
                          ir_get_ints(op, IR_ATTR_START_INDICES_BATCHING_DIMS),
                          ir_get_int(op, IR_ATTR_INDEX_VECTOR_DIM, 0)};
  int64_t slices[IR_MAX_RANK], dims[IR_MAX_RANK];
  interp_windows w;
  assert(sizes->n == x->rank);
  TRY(interp_windows_check(ctx, op, &a, operands, 0, 1));
  for (uint32_t d = 0; d < x->rank; d++) slices[d] = interp_min(sizes->v[d], x->dims[d]);
  gather_numbers(op, &a, indices, x->rank, slices, dims);
  interp_value *r = interp_array(ctx, x->dtype, op->type->rank, dims);
  if (!r) return interp_failed(ctx);
  gather_copy copy = {base_dtype_bytes(x->dtype), r->data, x->data};
  int status = x->count == 0 ? interp_zero_bytes(ctx, r->data, interp_bytes(r)) : 0; /* no element to clamp to */
  interp_windows_make(&w, &a, indices, x->rank, x->dims, slices, r->rank, dims, true);
  if (status == 0) status = interp_windows_each(ctx, &w, gather_row, &copy);
  return interp_deliver(status, r, out);
}
