/* scatter: windows of updates combined into the operands, in the order of the indices. A window that does not fit whole
 * into the operand is skipped, as XLA does. */
#include "combine.h"
#include "../algorithm/windows.h"

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
    if (slices[d] <= x->dims[d] || interp_position(a->collapsed, d) >= 0 || interp_position(a->big_batch, d) >= 0)
      continue;
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

/* The arrays to update, in the computation's types: operands that nobody reads any more, so that a loop of scatters
 * does not copy each time, else copies. Asked for before the computation is prepared, as interp_reuse demands. */
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

int interp_eval_scatter(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
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
