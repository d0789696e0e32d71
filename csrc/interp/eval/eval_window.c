/* Ops over windows with a computation: reduce-window and select-and-scatter. */
#include "../algorithm/placement.h"
#include "fold.h"
#include "combine.h"
#include "../blocks.h"

/* --- reduce_window ---
 *
 * reduce-window: one part of the output at a time, each element of the window combines with all placements at once.
 * Padding and holes take no part: a placement that meets no element keeps its initial value. */

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

/* One window element for all placements of the part that it meets. */
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

/* Window elements in row-major order, so that every placement sees its elements in order, as XLA's
 * evaluator does. */
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

/* Buffers for the largest part, which is the first. */
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

/* Operands: n arrays, n initial values; all with one window. */
int interp_eval_reduce_window(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands % 2 == 0);
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

/* --- select_and_scatter ---
 *
 * select-and-scatter: every window of the operand selects one of its elements, and the window's source element is
 * combined into the result there. Selection runs over all placements at once, one window element after the other. */

enum { CHOICE_LANES = 1 << 14 };

typedef struct choice_run {
  interp_ctx *ctx;
  interp_body *select;
  const interp_value *x;
  size_t bytes;      /* of an operand element */
  int64_t *numbers;  /* 0, 1, 2, ...: the operand's elements by number, to be moved about like the elements */
  char *best;        /* of the present part: the chosen elements ... */
  int64_t *best_at;  /* ... and their numbers, -1 before the first */
  char *old, *fresh; /* one box's */
  int64_t *old_at, *fresh_at;
  uint8_t *keep;
} choice_run;

static void choice_count(void *numbers, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) ((int64_t *)numbers)[i] = i;
}

/* choice_free is due in any case. */
static int choice_alloc(choice_run *r, int64_t lanes) {
  r->numbers = INTERP_SCRATCH(r->ctx, int64_t, r->x->count);
  r->best = interp_scratch(r->ctx, lanes, r->bytes);
  r->best_at = INTERP_SCRATCH(r->ctx, int64_t, lanes);
  r->old = interp_scratch(r->ctx, lanes, r->bytes);
  r->fresh = interp_scratch(r->ctx, lanes, r->bytes);
  r->old_at = INTERP_SCRATCH(r->ctx, int64_t, lanes);
  r->fresh_at = INTERP_SCRATCH(r->ctx, int64_t, lanes);
  r->keep = INTERP_SCRATCH(r->ctx, uint8_t, lanes);
  if (!r->numbers || !r->best || !r->best_at || !r->old || !r->fresh || !r->old_at || !r->fresh_at || !r->keep)
    return interp_failed(r->ctx);
  return interp_in_blocks(r->ctx, r->x->count, choice_count, r->numbers);
}

static void choice_free(choice_run *r) {
  void *all[] = {r->numbers, r->best, r->best_at, r->old, r->fresh, r->old_at, r->fresh_at, r->keep};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) interp_scratch_free(r->ctx, all[i]);
}

/* Lanes where nothing was chosen yet, or the choice so far is not selected against the new element, take that. */
static void choice_merge(choice_run *r, int64_t lanes) {
  for (int64_t i = 0; i < lanes; i++) {
    if (r->old_at[i] >= 0 && r->keep[i]) continue;
    r->old_at[i] = r->fresh_at[i];
    memcpy(r->old + (size_t)i * r->bytes, r->fresh + (size_t)i * r->bytes, r->bytes);
  }
}

/* select(old, fresh) true keeps the old element. The elements' numbers go the same way as the elements. */
static int choice_step(choice_run *r, const interp_window_walk *w) {
  interp_ctx *ctx = r->ctx;
  int64_t dense[IR_MAX_RANK];
  char *best = r->best + w->part_at * (int64_t)r->bytes;
  int64_t *best_at = r->best_at + w->part_at;
  interp_strides(w->rank, w->count, dense);
  TRY(interp_strided_copy(ctx, r->bytes, w->rank, w->count, r->old, dense, best, w->part_strides));
  TRY(interp_strided_copy(ctx, 8, w->rank, w->count, r->old_at, dense, best_at, w->part_strides));
  TRY(interp_copy_box(ctx, r->bytes, w->rank, w->count, r->fresh, r->x->data, w->operand_at, w->operand_strides));
  TRY(interp_copy_box(ctx, 8, w->rank, w->count, r->fresh_at, r->numbers, w->operand_at, w->operand_strides));
  TRY(interp_apply(ctx, r->select, w->lanes, (const void *[]){r->old, r->fresh}, (void *[]){r->keep}));
  choice_merge(r, w->lanes);
  TRY(interp_strided_copy(ctx, r->bytes, w->rank, w->count, best, w->part_strides, r->old, dense));
  return interp_strided_copy(ctx, 8, w->rank, w->count, best_at, w->part_strides, r->old_at, dense);
}

/* Chooses for one part of the placements, then combines its source elements in order. */
static int choice_part(choice_run *r, const ir_window *window, const int64_t *counts, const interp_parts *p,
                       interp_combine *c) {
  interp_window_walk w;
  memset(r->best, 0, (size_t)p->lanes * r->bytes);
  for (int64_t i = 0; i < p->lanes; i++) r->best_at[i] = -1;
  interp_window_walk_begin(&w, window, r->x->dims, counts, p->low, p->high);
  while (interp_window_walk_next(&w)) TRY(choice_step(r, &w));
  for (int64_t i = 0; i < p->lanes; i++)
    if (r->best_at[i] >= 0) TRY(interp_combine_row(c, r->best_at[i], 1, p->at + i, 1, 1));
  return 0;
}

/* Parts of the placements, which are the source's elements. */
static int choice_parts(choice_run *r, const ir_window *window, const interp_value *source, interp_combine *c) {
  interp_parts p;
  if (!interp_parts_begin(&p, source->rank, source->dims, CHOICE_LANES)) return 0;
  int status = choice_alloc(r, p.lanes);
  while (status == 0) {
    status = choice_part(r, window, source->dims, &p, c);
    if (!interp_parts_next(&p)) break;
  }
  choice_free(r);
  return status == 0 ? interp_combine_flush(c) : status;
}

static const ir_window scalar_window = {.n = 0};

/* result holds the initial value everywhere. */
static int select_and_scatter_run(interp_ctx *ctx, const ir_op *op, interp_fold *f, interp_value *const *operands,
                                  const interp_value *x, interp_value *source, interp_value *result) {
  const ir_window *window = ir_get_window(op);
  int64_t counts[IR_MAX_RANK];
  interp_combine c;
  choice_run r = {.ctx = ctx, .x = x, .bytes = base_dtype_bytes(x->dtype)};
  if (!window) window = &scalar_window;
  TRY(interp_window_counts(ctx, op, window, x->dims, counts));
  for (uint32_t d = 0; d < x->rank; d++)
    TRY(interp_need_size(ctx, op, operands, 1, d, counts[d], "the number of placements of the window is"));
  TRY(interp_body_prepare(ctx, op->called[0], &r.select));
  int status = interp_combine_begin(&c, ctx, f, interp_combine_overwrites(op->called[1]), &result->data, &source->data);
  if (status == 0) {
    status = choice_parts(&r, window, source, &c);
    interp_combine_end(&c);
  }
  interp_body_free(r.select);
  return status;
}

/* Operands: array, source, initial value. The gradient of max pooling is its use: select is ge, scatter is
 * add. */
int interp_eval_select_and_scatter(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  interp_fold f;
  assert(op->n_called == 2 && op->n_operands == 3);
  const ir_computation *select = op->called[0];
  base_dtype t = select->n_params == 2 ? (base_dtype)select->params[0]->type->dtype : BASE_DTYPE_INVALID;
  if (t == BASE_DTYPE_INVALID || t != select->params[1]->type->dtype || !ir_is_scalar(ir_root(select)->type) ||
      ir_root(select)->type->dtype != XLAC_PRED)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s does not compare two elements", select->name->s);
  TRY(interp_fold_begin(ctx, op, op->called[1], 1, false, &f));
  interp_value *x = interp_as(ctx, operands[0], t), *source = NULL, *init = NULL, *r = NULL;
  int status = x ? interp_fold_operands(ctx, &f, operands + 2, operands + 1, &init, &source) : interp_failed(ctx);
  if (status == 0 && !(r = interp_array(ctx, f.acc[0], x->rank, x->dims))) status = interp_failed(ctx);
  if (status == 0) status = interp_fill_array(ctx, r, init->data);
  if (status == 0) status = select_and_scatter_run(ctx, op, &f, operands, x, source, r);
  interp_release(x);
  interp_release(source);
  interp_release(init);
  interp_fold_end(ctx, &f);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}
