/* reduce-window: one part of the output at a time, each element of the window combines with all placements at once.
 * Padding and holes take no part: a placement that meets no element keeps its initial value. */
#include "../algorithm/placement.h"

#include "fold.h"

enum { PART_LANES = 1 << 14 };

typedef struct reduce_window_run {
  interp_ctx *ctx;
  interp_fold *fold;
  uint32_t n;
  interp_value **x, **results;
  void **acc, **some, **next,
      **elements; /* of the present part: all, those of one box, their successors, what they meet */
} reduce_window_run;

/* Element copies between the part's accumulators and a dense list of one box's lanes. */
static int box_copy(reduce_window_run *r, const interp_window_walk *w, bool out) {
  int64_t dense[IR_MAX_RANK];
  interp_strides(w->rank, w->count, dense);
  for (uint32_t i = 0; i < r->n; i++) {
    size_t bytes = base_dtype_bytes(r->fold->acc[i]);
    char *part = (char *)r->acc[i] + w->part_at * (int64_t)bytes;
    if (out)
      TRY(interp_strided_copy(r->ctx, bytes, w->rank, w->count, r->some[i], dense, part, w->part_strides));
    else
      TRY(interp_strided_copy(r->ctx, bytes, w->rank, w->count, part, w->part_strides, r->next[i], dense));
  }
  return 0;
}

static int window_step(reduce_window_run *r, const interp_window_walk *w) {
  for (uint32_t i = 0; i < r->n; i++)
    TRY(interp_copy_box(r->ctx, base_dtype_bytes(r->fold->x[i]), w->rank, w->count, r->elements[i], r->x[i]->data,
                        w->operand_at, w->operand_strides));
  if (!w->whole) {
    TRY(box_copy(r, w, true));
    TRY(interp_fold_apply(r->ctx, r->fold, w->lanes, r->some, r->elements, r->next));
    return box_copy(r, w, false);
  }
  TRY(interp_fold_apply(r->ctx, r->fold, w->lanes, r->acc, r->elements, r->next));
  void **swap = r->acc;
  r->acc = r->next;
  r->next = swap;
  return 0;
}

static int reduce_window_part(reduce_window_run *r, const ir_window *window, const int64_t *counts,
                              const interp_parts *p, interp_value *const *init) {
  interp_window_walk w;
  for (uint32_t i = 0; i < r->n; i++)
    interp_fill(base_dtype_bytes(r->fold->acc[i]), r->acc[i], p->lanes, init[i]->data);
  interp_window_walk_begin(&w, window, r->x[0]->dims, counts, p->low, p->high);
  while (interp_window_walk_next(&w)) TRY(window_step(r, &w));
  for (uint32_t i = 0; i < r->n; i++) {
    size_t bytes = base_dtype_bytes(r->fold->acc[i]);
    memcpy((char *)r->results[i]->data + (size_t)p->at * bytes, r->acc[i], (size_t)p->lanes * bytes);
  }
  return 0;
}

static int reduce_window_parts(reduce_window_run *r, const ir_window *window, const int64_t *counts,
                               interp_value *const *init) {
  interp_parts p;
  if (!interp_parts_begin(&p, r->x[0]->rank, counts, PART_LANES)) return 0;
  interp_fold *f = r->fold;
  r->acc = interp_fold_buffers(r->ctx, r->n, f->acc, p.lanes);
  r->some = interp_fold_buffers(r->ctx, r->n, f->acc, p.lanes);
  r->next = interp_fold_buffers(r->ctx, r->n, f->acc, p.lanes);
  r->elements = interp_fold_buffers(r->ctx, r->n, f->x, p.lanes);
  int status = r->acc && r->some && r->next && r->elements ? 0 : interp_failed(r->ctx);
  while (status == 0) {
    status = reduce_window_part(r, window, counts, &p, init);
    if (!interp_parts_next(&p)) break;
  }
  interp_fold_buffers_free(r->ctx, r->n, r->acc);
  interp_fold_buffers_free(r->ctx, r->n, r->some);
  interp_fold_buffers_free(r->ctx, r->n, r->next);
  interp_fold_buffers_free(r->ctx, r->n, r->elements);
  return status;
}

/* The window a rank-0 operand has: none. */
static const ir_window no_window = {.n = 0};

static int reduce_window_all(interp_ctx *ctx, const ir_op *op, interp_fold *f, interp_value *const *init,
                             interp_value **x, interp_value **results) {
  const ir_window *window = ir_get_window(op);
  int64_t counts[IR_MAX_RANK];
  reduce_window_run r = {ctx, f, f->n, x, results, NULL, NULL, NULL, NULL};
  if (!window) window = &no_window;
  assert(window->n == x[0]->rank);
  TRY(interp_window_counts(ctx, op, window, x[0]->dims, counts));
  for (uint32_t i = 0; i < f->n; i++)
    if (!(results[i] = interp_array(ctx, f->acc[i], window->n, counts))) return interp_failed(ctx);
  return reduce_window_parts(&r, window, counts, init);
}

int interp_eval_reduce_window(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  uint32_t n = op->n_operands / 2;
  interp_fold f;
  TRY(interp_need_one_size(ctx, op, operands, 0, n));
  TRY(interp_fold_begin(ctx, op, op->called[0], n, true, &f));
  interp_value **lists = (interp_value **)interp_fold_list(ctx, 3 * n), **init = lists, **x = lists + n;
  interp_value **results = lists + 2 * n;
  int status = lists ? interp_fold_operands(ctx, &f, operands + n, operands, init, x) : interp_failed(ctx);
  if (status == 0) {
    status = reduce_window_all(ctx, op, &f, init, x, results);
    interp_release_all(n, init);
    interp_release_all(n, x);
    if (status == 0)
      status = interp_finish_all(ctx, op, n, results, out);
    else
      interp_release_all(n, results);
  }
  interp_scratch_free(ctx, lists);
  interp_fold_end(ctx, &f);
  return status;
}
