/* Where results lie. A buffer of the frame becomes result memory itself, once; what else is a result is copied. A
 * result that may be given the memory of an argument (of a loop's body: that of its present value) is computed over it
 * where the step that makes it is the last to read the argument and may do so; else it is copied there at the end, when
 * nobody reads arguments any more. */
#include "build.h"

static int results_no_memory(const plan_build *x) {
  return base_oom(x->err, "a plan");
}

static plan_buffer *results_buffer(const plan_build *x, uint32_t i) {
  return &x->buffers.items[x->leaves.items[i]];
}

/* The argument whose memory result i may be given, or UINT32_MAX. */
static uint32_t results_over(const plan_build *x, uint32_t i) {
  if (x->body) return i < x->p->n_arguments ? i : UINT32_MAX;
  return x->p->over ? x->p->over[i] : UINT32_MAX;
}

static bool results_has_alias(const plan_build *x, uint32_t i) {
  return !x->body && results_over(x, i) != UINT32_MAX;
}

/* From buffer `from` to a new one like `to`. */
static int results_copy(plan_build *x, const ir_op *root, uint32_t from, plan_buffer to, uint32_t *id) {
  uint32_t *in = plan_ids(x, 1), *out = plan_ids(x, 1);
  to.type = x->buffers.items[from].type;
  to.bytes = x->buffers.items[from].bytes;
  to.op = root;
  *id = plan_new_buffer(x, to);
  if (x->failed) return results_no_memory(x);
  in[0] = from;
  out[0] = *id;
  return plan_add_step(
      x, (plan_step){.kind = PLAN_COPY, .op = root, .n_in = 1, .n_out = 1, .in = in, .out = out, .frame = UINT32_MAX});
}

static int results_copy_out(plan_build *x, const ir_op *root, uint32_t from, uint32_t result) {
  uint32_t id = 0;
  return results_copy(x, root, from, (plan_buffer){.place = PLAN_RESULT, .number = result}, &id);
}

/* Arguments that are results elsewhere than in their own place, while their place may be another result's, are copied
 * aside first. */
static int results_put_aside(plan_build *x, const ir_op *root, uint32_t *from) {
  const plan_buffer *b = &x->buffers.items[*from];
  if (b->place != PLAN_ARGUMENT) return 0;
  for (uint32_t i = 0; i < x->p->n_results; i++)
    if (x->p->over[i] == b->number)
      return results_copy(x, root, *from, (plan_buffer){.place = PLAN_FRAME, .number = 0}, from);
  return 0;
}

/* Takes buffers of the frame for results, and makes the copies that may come before all results are there. later[i]:
 * the buffer that is to be copied to result i at the end, or UINT32_MAX. */
static int results_first(plan_build *x, const ir_op *root, uint32_t at, bool *stays, uint32_t *later) {
  for (uint32_t i = 0; i < x->p->n_results; i++) {
    uint32_t b = x->leaves.items[at + i], over = results_over(x, i);
    bool unchanged = over != UINT32_MAX && x->leaves.items[over] == b;
    later[i] = UINT32_MAX;
    if ((x->body && unchanged) || x->buffers.items[b].bytes == 0) {
      stays[i] = x->body && unchanged;
      continue;
    }
    if (x->buffers.items[b].place == PLAN_FRAME && x->buffers.items[b].number != UINT32_MAX) {
      x->buffers.items[b].number = UINT32_MAX; /* taken: a second result of the same value is a copy */
      continue;
    }
    if (unchanged || !results_has_alias(x, i)) {
      TRY(results_copy_out(x, root, b, i));
      continue;
    }
    TRY(results_put_aside(x, root, &b));
    later[i] = b;
  }
  return 0;
}

/* Whether the step that makes `made` is the last to read the argument, and may write over it. */
static bool results_may_go_over(const plan_build *x, uint32_t argument, uint32_t made) {
  const plan_buffer *b = &x->buffers.items[made];
  uint32_t from = x->leaves.items[argument], last = x->buffers.items[from].last; /* arguments' leaves come first */
  if (b->first == UINT32_MAX) return false;
  if (last == UINT32_MAX || last < b->first) return true;
  return last == b->first && plan_may_overwrite(&x->steps.items[b->first], x->buffers.items, from, made);
}

/* The rest of the buffers taken: over the argument, or in memory of the result's own. */
static void results_place(plan_build *x, uint32_t at, bool *stays, uint32_t *later) {
  for (uint32_t i = 0; i < x->p->n_results; i++) {
    plan_buffer *b = results_buffer(x, at + i);
    uint32_t over = results_over(x, i);
    if (b->place != PLAN_FRAME || b->number != UINT32_MAX || b->bytes == 0 || later[i] != UINT32_MAX) continue;
    bool goes_over = over != UINT32_MAX && results_may_go_over(x, over, x->leaves.items[at + i]);
    if (results_has_alias(x, i) && !goes_over) {
      later[i] = x->leaves.items[at + i];
      b->number = 0;
      continue;
    }
    stays[i] = x->body && goes_over;
    b->place = stays[i] ? PLAN_ARGUMENT : PLAN_RESULT;
    b->number = i;
    if (stays[i]) ((plan_step *)&x->steps.items[b->first])->in_place = x->steps.items[b->first].kind == PLAN_EVAL;
  }
}

static void results_note_donations(const plan_build *x, const uint32_t *later) {
  for (uint32_t i = 0; i < x->p->n_donations; i++) {
    plan_donation *d = (plan_donation *)(uintptr_t)&x->p->donations[i];
    d->in_place = d->result != UINT32_MAX && later[d->result] == UINT32_MAX;
  }
}

int plan_build_results(plan_build *x, const ir_computation *c) {
  plan_leaves root = x->values[ir_root(c)->id];
  x->p->n_results = root.n;
  bool *stays = base_arena_zalloc(x->arena, (size_t)root.n + 1);
  uint32_t *later = BASE_ARRAY(x->arena, uint32_t, (size_t)root.n + 1);
  if (!stays || !later) return results_no_memory(x);
  TRY(results_first(x, ir_root(c), root.at, stays, later));
  results_place(x, root.at, stays, later);
  for (uint32_t i = 0; i < root.n; i++)
    if (later[i] != UINT32_MAX) TRY(results_copy_out(x, ir_root(c), later[i], i));
  results_note_donations(x, later);
  x->p->stays = stays;
  return 0;
}
