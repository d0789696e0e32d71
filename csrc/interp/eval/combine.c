/* Queued updates.
 *
 * scatter's result is defined as applying updates one after the other. Updates of different places don't
 * disturb one another, so they are queued and combined together; the first one whose place is in the queue
 * already makes the queue run. A hash set of places, emptied by counting a round up, finds that out. */
#include "combine.h"

enum { COMBINE_QUEUE = 2048, COMBINE_MARK_BITS = 12, COMBINE_MARKS = 1 << COMBINE_MARK_BITS };

typedef struct combine_mark {
  int64_t place;
  uint32_t round; /* the mark counts in this round of the queue only, so that emptying the set costs nothing */
} combine_mark;

/* Then nothing need be computed, only copied in order. */
bool interp_combine_overwrites(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  return c->n_params == 2 && root->opcode == IR_OP_PARAMETER && root->u.number == 1 &&
         c->params[0]->type->dtype == c->params[1]->type->dtype;
}

/* targets and updates stay the caller's lists. On failure there is nothing to end. */
int interp_combine_begin(interp_combine *c, interp_ctx *ctx, interp_fold *fold, bool overwrite, void **targets,
                         void **updates) {
  *c = (interp_combine){.ctx = ctx, .fold = fold, .overwrite = overwrite, .targets = targets, .updates = updates};
  c->round = 1;
  if (overwrite || interp_fold_in_place(fold)) return 0; /* no queue needed */
  c->places = INTERP_SCRATCH(ctx, int64_t, COMBINE_QUEUE);
  c->sources = INTERP_SCRATCH(ctx, int64_t, COMBINE_QUEUE);
  c->marks = INTERP_SCRATCH(ctx, combine_mark, COMBINE_MARKS);
  c->old = interp_fold_buffers(ctx, fold->n, fold->acc, COMBINE_QUEUE);
  c->added = interp_fold_buffers(ctx, fold->n, fold->x, COMBINE_QUEUE);
  c->fresh = interp_fold_buffers(ctx, fold->n, fold->acc, COMBINE_QUEUE);
  if (c->places && c->sources && c->marks && c->old && c->added && c->fresh) {
    memset(c->marks, 0, COMBINE_MARKS * sizeof *c->marks);
    return 0;
  }
  interp_combine_end(c);
  return interp_failed(ctx);
}

void interp_combine_end(interp_combine *c) {
  interp_scratch_free(c->ctx, c->places);
  interp_scratch_free(c->ctx, c->sources);
  interp_scratch_free(c->ctx, c->marks);
  interp_fold_buffers_free(c->ctx, c->fold->n, c->old);
  interp_fold_buffers_free(c->ctx, c->fold->n, c->added);
  interp_fold_buffers_free(c->ctx, c->fold->n, c->fresh);
  c->places = c->sources = NULL;
  c->marks = NULL;
  c->old = c->added = c->fresh = NULL;
}

/* Notes the place in the set; false when it is there already. The set is at most half full. */
static bool combine_mark_place(interp_combine *c, int64_t place) {
  uint64_t h = (uint64_t)place * 0x9e3779b97f4a7c15u >> (64 - COMBINE_MARK_BITS);
  for (; c->marks[h].round == c->round; h = (h + 1) % COMBINE_MARKS)
    if (c->marks[h].place == place) return false;
  c->marks[h] = (combine_mark){place, c->round};
  return true;
}

/* Places are distinct, so all updates can be computed before any is written. */
int interp_combine_flush(interp_combine *c) {
  if (c->n_queued == 0) return 0;
  interp_fold *f = c->fold;
  for (uint32_t i = 0; i < f->n; i++) {
    interp_copy_listed(base_dtype_bytes(f->acc[i]), c->old[i], c->targets[i], c->places, c->n_queued);
    interp_copy_listed(base_dtype_bytes(f->x[i]), c->added[i], c->updates[i], c->sources, c->n_queued);
  }
  TRY(interp_fold_apply(c->ctx, f, c->n_queued, c->old, c->added, c->fresh));
  for (uint32_t i = 0; i < f->n; i++)
    interp_spread_listed(base_dtype_bytes(f->acc[i]), c->targets[i], c->fresh[i], c->places, c->n_queued);
  c->n_queued = 0;
  if (++c->round == 0) {
    memset(c->marks, 0, COMBINE_MARKS * sizeof *c->marks);
    c->round = 1;
  }
  return 0;
}

/* A run through the fold's in-place kernel: whole where both sides are contiguous, else element by element. */
static void combine_in_place(interp_combine *c, int64_t place, int64_t place_step, int64_t source, int64_t source_step,
                             int64_t n) {
  int64_t bytes = (int64_t)base_dtype_bytes(c->fold->acc[0]);
  char *to = (char *)c->targets[0] + place * bytes;
  const char *from = (const char *)c->updates[0] + source * bytes;
  if (place_step == 1 && source_step == 1) {
    c->fold->kernel(n, to, from, to);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    char *at = to + i * place_step * bytes;
    c->fold->kernel(1, at, from + i * source_step * bytes, at);
  }
}

/* The order of calls is the order of updates. */
int interp_combine_row(interp_combine *c, int64_t place, int64_t place_step, int64_t source, int64_t source_step,
                       int64_t n) {
  if (c->overwrite) {
    int64_t bytes = (int64_t)base_dtype_bytes(c->fold->acc[0]);
    interp_copy_row((size_t)bytes, (char *)c->targets[0] + place * bytes, place_step,
                    (const char *)c->updates[0] + source * bytes, source_step, n);
    return 0;
  }
  if (interp_fold_in_place(c->fold)) {
    combine_in_place(c, place, place_step, source, source_step, n);
    return 0;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = place + i * place_step;
    if (c->n_queued == COMBINE_QUEUE) TRY(interp_combine_flush(c));
    if (!combine_mark_place(c, at)) {
      TRY(interp_combine_flush(c));
      (void)combine_mark_place(c, at);
    }
    c->places[c->n_queued] = at;
    c->sources[c->n_queued++] = source + i * source_step;
  }
  return 0;
}
