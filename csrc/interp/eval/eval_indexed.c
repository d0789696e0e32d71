/* Boxes and windows at places that are computed at run time: dynamic-slice, dynamic-update-slice, gather and scatter.
 */
#include "../algorithm/arrays.h"
#include "../blocks.h"
#include "../algorithm/windows.h"
#include "combine.h"

/* --- dynamic-slice and dynamic-update-slice: a box whose start, clamped so that the box fits, is given at run time.
 * --- */

/* Start indices follow operand `first - 1`: one scalar a dimension, or all in one vector as in old programs. */
static int clamped_starts(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t first,
                          const int64_t *box, int64_t *at) {
  const interp_value *x = operands[0];
  bool vector = op->n_operands == first + 1 && operands[first]->rank == 1;
  assert(vector || op->n_operands == first + x->rank);
  if (vector) TRY(interp_need_size(ctx, op, operands, first, 0, x->rank, "the number of dimensions is"));
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t start = vector ? interp_element_index(operands[first], d) : interp_element_index(operands[first + d], 0);
    assert(box[d] <= x->dims[d]);
    at[d] = interp_clamp(start, 0, x->dims[d] - box[d]);
  }
  return 0;
}

/* In elements. */
static int64_t offset_of(uint32_t rank, const int64_t *at, const int64_t *strides) {
  int64_t offset = 0;
  for (uint32_t d = 0; d < rank; d++) offset += at[d] * strides[d];
  return offset;
}

/* f32[10] from start 8, size 4 gives elements 6 to 9: the start is clamped, as XLA does. */
int interp_eval_dynamic_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_ints *sizes = ir_get_ints(op, IR_ATTR_DYNAMIC_SLICE_SIZES);
  int64_t dims[IR_MAX_RANK], at[IR_MAX_RANK], from[IR_MAX_RANK];
  assert(sizes->n == x->rank);
  for (uint32_t d = 0; d < x->rank; d++) dims[d] = interp_min(sizes->v[d], x->dims[d]);
  TRY(clamped_starts(ctx, op, operands, 1, dims, at));
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  interp_strides(x->rank, x->dims, from);
  int status = interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, dims, r->data, x->data,
                               offset_of(x->rank, at, from), from);
  return interp_deliver(status, r, out);
}

/* In place where nobody reads the operand afterwards, which makes loops that fill an array linear. */
int interp_eval_dynamic_update_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                     interp_value **out) {
  const interp_value *update = operands[1];
  int64_t at[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK];
  for (uint32_t d = 0; d < update->rank; d++)
    if (update->dims[d] > operands[0]->dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "the update has %lld elements along dimension %u, the operand only %lld",
                         (long long)update->dims[d], d, (long long)operands[0]->dims[d]);
  TRY(clamped_starts(ctx, op, operands, 2, update->dims, at));
  interp_value *r = operands[0] == operands[1] ? NULL : interp_reuse(ctx, operands, 0);
  if (!r) {
    r = interp_array(ctx, operands[0]->dtype, operands[0]->rank, operands[0]->dims);
    if (!r) return interp_failed(ctx);
    int copied = interp_copy_bytes(ctx, r->data, operands[0]->data, interp_bytes(r));
    if (copied) return interp_deliver(copied, r, out);
  }
  size_t bytes = base_dtype_bytes(r->dtype);
  interp_strides(r->rank, r->dims, to);
  interp_strides(r->rank, update->dims, from);
  char *place = (char *)r->data + offset_of(r->rank, at, to) * (int64_t)bytes;
  int status = interp_strided_copy(ctx, bytes, r->rank, update->dims, place, to, update->data, from);
  return interp_deliver(status, r, out);
}

/* --- gather: windows of the operand at given starts, clamped into range. --- */

typedef struct gather_copy {
  size_t bytes;
  char *to;
  const char *from;
} gather_copy;

/* A row of a window, with any strides on both sides. */
static int gather_row(void *self, int64_t big, int64_t big_stride, int64_t small, int64_t small_stride, int64_t n) {
  const gather_copy *g = self;
  int64_t bytes = (int64_t)g->bytes;
  interp_copy_row(g->bytes, g->to + small * bytes, small_stride, g->from + big * bytes, big_stride, n);
  return 0;
}

/* The result's dims: offset dims take the window's sizes, the others the indices' batch dims, in order.
 * offset_dims are where a window's dimensions lie in the result; collapsed ones and batching ones have
 * none. */
static void gather_numbers(const ir_op *op, const interp_window_dims *a, const interp_value *indices, uint32_t big_rank,
                           const int64_t *slices, int64_t *dims) {
  uint32_t batch = 0, big = 0;
  for (uint32_t d = 0; d < op->type->rank; d++) {
    if (ir_ints_has(a->window, d)) continue;
    if (batch == a->index_vector_dim) batch++;
    assert(batch < indices->rank);
    dims[d] = indices->dims[batch++];
  }
  for (uint32_t i = 0; i < a->window->n; i++) {
    while (ir_ints_has(a->collapsed, big) || ir_ints_has(a->big_batch, big)) big++;
    assert(big < big_rank);
    dims[a->window->v[i]] = slices[big++];
  }
  (void)big_rank;
}

/* Windows are clamped into the operand (StableHLO: gather). */
int interp_eval_gather(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 2);
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

/* --- scatter ---
 *
 * scatter: windows of updates combined into the operands, in the order of the indices. A window that does not fit whole
 * into the operand is skipped, as XLA does. */

/* Queues the row's updates: combine.c. */
static int scatter_row(void *self, int64_t big, int64_t big_stride, int64_t small, int64_t small_stride, int64_t n) {
  return interp_combine_row(self, big, big_stride, small, small_stride, n);
}

static void scatter_windows(const ir_op *op, const interp_value *x, const interp_value *indices,
                            const interp_value *updates, interp_windows *w) {
  int64_t slices[IR_MAX_RANK];
  interp_window_dims a = interp_scatter_dims(op, x->rank, updates->dims, slices);
  interp_windows_make(w, &a, indices, x->rank, x->dims, slices, updates->rank, updates->dims, false);
}

/* Fails where a window is larger than the array, as the verifier does where both sizes are known to it. */
static int scatter_check_window(interp_ctx *ctx, const ir_op *op, const interp_window_dims *a, const interp_value *x,
                                const int64_t *slices) {
  for (uint32_t d = 0; d < x->rank; d++) {
    if (slices[d] <= x->dims[d] || ir_ints_has(a->collapsed, d) || ir_ints_has(a->big_batch, d)) continue;
    return interp_fail(
        ctx, op, XLAC_E_EVAL,
        "the updates' window has the run-time size %lld in dimension %u of operand 0, which has %lld: it "
        "must be no larger",
        (long long)slices[d], d, (long long)x->dims[d]);
  }
  return 0;
}

/* The operands are of one size, the updates too, there is an update for each index, and its window fits. */
static int scatter_check(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t n) {
  int64_t slices[IR_MAX_RANK];
  TRY(interp_need_one_size(ctx, op, operands, 0, n));
  TRY(interp_need_one_size(ctx, op, operands, n + 1, n));
  interp_window_dims a = interp_scatter_dims(op, operands[0]->rank, operands[n + 1]->dims, slices);
  TRY(scatter_check_window(ctx, op, &a, operands[0], slices));
  TRY(interp_windows_check(ctx, op, &a, operands, 0, n));
  return interp_windows_check_small(ctx, op, &a, operands, n + 1, n);
}

static bool is_among(const interp_value *v, uint32_t n, interp_value *const *list) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

/* The arrays to update, in the computation's types: operands that nobody reads any more, so that a loop of
 * scatters does not copy each time, else copies. Asked for before the computation is prepared, as
 * interp_reuse demands. An operand that is given twice must be copied, or one update would change both. */
static int scatter_targets(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t n,
                           interp_value **targets) {
  const ir_computation *c = op->called[0];
  for (uint32_t i = 0; i < n; i++) {
    interp_value *x = operands[i];
    base_dtype t = i < c->n_params ? (base_dtype)c->params[i]->type->dtype : (base_dtype)x->dtype;
    bool alone = !is_among(x, i, operands) && !is_among(x, op->n_operands - i - 1, operands + i + 1);
    if (x->dtype == t && alone) targets[i] = interp_reuse(ctx, operands, i);
    if (!targets[i]) targets[i] = interp_copy_as(ctx, x, t);
    if (!targets[i]) return interp_failed(ctx);
  }
  return 0;
}

/* targets, x: arrays in the computation's types; to, from: their data, as interp_combine takes them. */
static int scatter_run(interp_ctx *ctx, const ir_op *op, interp_fold *f, interp_value *const *operands,
                       interp_value *const *targets, interp_value **x, void **to, void **from) {
  interp_windows w;
  interp_combine c;
  bool overwrite = f->n == 1 && interp_combine_overwrites(op->called[0]);
  for (uint32_t i = 0; i < f->n; i++) {
    if (!(x[i] = interp_as(ctx, operands[f->n + 1 + i], f->x[i]))) return interp_failed(ctx);
    assert(targets[i]->dtype == f->acc[i]);
    to[i] = targets[i]->data;
    from[i] = x[i]->data;
  }
  scatter_windows(op, targets[0], operands[f->n], x[0], &w);
  TRY(interp_combine_begin(&c, ctx, f, overwrite, to, from));
  int status = interp_windows_each(ctx, &w, scatter_row, &c);
  if (status == 0) status = interp_combine_flush(&c);
  interp_combine_end(&c);
  return status;
}

/* Operands: n arrays, the indices, n updates. */
int interp_eval_scatter(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands % 2 == 1 && op->n_called == 1);
  uint32_t n = op->n_operands / 2;
  interp_fold f = {.body = NULL};
  TRY(scatter_check(ctx, op, operands, n));
  void **lists = interp_fold_list(ctx, 4 * n);
  if (!lists) return interp_failed(ctx);
  interp_value **targets = (interp_value **)lists, **x = targets + n;
  int status = scatter_targets(ctx, op, operands, n, targets);
  if (status == 0) status = interp_fold_begin(ctx, op, op->called[0], n, false, &f);
  if (status == 0) status = scatter_run(ctx, op, &f, operands, targets, x, lists + 2 * n, lists + 3 * n);
  interp_fold_end(ctx, &f);
  interp_release_all(n, x);
  if (status == 0)
    status = interp_finish_all(ctx, op, n, targets, out);
  else
    interp_release_all(n, targets);
  interp_scratch_free(ctx, lists);
  return status;
}
