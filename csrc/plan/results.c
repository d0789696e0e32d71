/* Where results lie. A buffer of the frame becomes result memory itself, once; what else is a result is copied. A
 * result that may be given the memory of an argument (of a loop's body: that of its present value) is computed over it
 * where the step that makes it is the last to read the argument and may do so; else it is copied there at the end, when
 * nobody reads arguments any more. */
#include "build.h"

#define RESULTS_KEPT (UINT32_MAX - 1) /* the number of a buffer that is copied to a result at the end */

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

/* The entry may give result i an argument's memory; a loop's body has its own rule. Such a result must end up in the
 * argument's memory, if only by a copy. */
static bool results_has_alias(const plan_build *x, uint32_t i) {
  return !x->body && results_over(x, i) != UINT32_MAX;
}

/* From buffer `from` to a new one like `to`. A step of its own, in the order of calls: copies that read arguments
 * come before those that write over them. */
static int results_copy(plan_build *x, const ir_op *root, uint32_t from, plan_buffer to, uint32_t *id) {
  assert(from < x->buffers.n);
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

/* The result's memory is the caller's. */
static int results_copy_out(plan_build *x, const ir_op *root, uint32_t from, uint32_t result) {
  uint32_t id = 0;
  return results_copy(x, root, from, (plan_buffer){.place = PLAN_RESULT, .number = result}, &id);
}

/* Arguments that are results elsewhere than in their own place, while their place may be another result's, are copied
 * aside first. */
static int results_put_aside(plan_build *x, const ir_op *root, uint32_t *from) {
  assert(x->p->over);
  const plan_buffer *b = &x->buffers.items[*from];
  if (b->place != PLAN_ARGUMENT) return 0;
  for (uint32_t i = 0; i < x->p->n_results; i++)
    if (x->p->over[i] == b->number)
      return results_copy(x, root, *from, (plan_buffer){.place = PLAN_FRAME, .number = RESULTS_KEPT}, from);
  return 0;
}

/* Takes buffers of the frame for results, and makes the copies that may come before all results are there. later[i]:
 * the buffer that is to be copied to result i at the end, or UINT32_MAX. A value that is two results is computed in
 * the first one's memory and copied to the other. */
static int results_first(plan_build *x, const ir_op *root, uint32_t at, bool *stays, uint32_t *later) {
  assert(stays && later);
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

/* Whether the step that makes `made` is the last to read the argument, and may write over it. An argument that nobody
 * reads, or that is read before only, is free. */
static bool results_may_go_over(const plan_build *x, uint32_t argument, uint32_t made) {
  assert(argument < x->p->n_arguments && made < x->buffers.n);
  const plan_buffer *b = &x->buffers.items[made];
  uint32_t from = x->leaves.items[argument], last = x->buffers.items[from].last; /* arguments' leaves come first */
  if (b->first == UINT32_MAX) return false;
  if (last == UINT32_MAX || last < b->first) return true;
  const plan_step *s = &x->steps.items[b->first];
  return last == plan_end_of(s, b->first) && plan_may_overwrite(s, x->buffers.items, from, made);
}

/* A value of the frame that dies where `made` is computed, and that may be under it: it can lie in result memory, too,
 * and over the argument that gives it. UINT32_MAX where there is none. */
static uint32_t results_find_under(const plan_build *x, uint32_t over, uint32_t made) {
  assert(x->buffers.items[made].first != UINT32_MAX);
  uint32_t at = x->buffers.items[made].first;
  const plan_step *s = &x->steps.items[at];
  for (uint32_t i = 0; i < s->n_in; i++) {
    const plan_buffer *b = &x->buffers.items[s->in[i]];
    bool is_free = b->place == PLAN_FRAME && b->number < RESULTS_KEPT && b->type && b->first != UINT32_MAX;
    if (!is_free || b->last != at || !plan_may_overwrite(s, x->buffers.items, s->in[i], made)) continue;
    if (over == UINT32_MAX || results_may_go_over(x, over, s->in[i])) return s->in[i];
  }
  return UINT32_MAX;
}

/* Result i is computed in its own memory from the first of a chain of values, each written over the one before. */
static void results_place_chain(plan_build *x, uint32_t i, uint32_t over, uint32_t made) {
  for (uint32_t under; (under = results_find_under(x, over, made)) != UINT32_MAX; made = under) {
    x->buffers.items[under].place = PLAN_RESULT;
    x->buffers.items[under].number = i;
    x->buffers.items[under].borrowed = true;
  }
}

/* The rest of the buffers taken: over the argument, or in memory of the result's own. Results that have an alias but
 * can't be computed over it stay in the frame and are copied at the end (later). */
static void results_place(plan_build *x, uint32_t at, bool *stays, uint32_t *later) {
  for (uint32_t i = 0; i < x->p->n_results; i++) {
    plan_buffer *b = results_buffer(x, at + i);
    uint32_t over = results_over(x, i);
    if (b->place != PLAN_FRAME || b->number != UINT32_MAX || b->bytes == 0 || later[i] != UINT32_MAX) continue;
    bool goes_over = over != UINT32_MAX && results_may_go_over(x, over, x->leaves.items[at + i]);
    if (results_has_alias(x, i) && !goes_over) {
      later[i] = x->leaves.items[at + i];
      b->number = RESULTS_KEPT;
      continue;
    }
    stays[i] = x->body && goes_over;
    b->place = stays[i] ? PLAN_ARGUMENT : PLAN_RESULT;
    b->number = i;
    if (!x->body) results_place_chain(x, i, results_has_alias(x, i) ? over : UINT32_MAX, x->leaves.items[at + i]);
  }
}

/* Why the result is copied to the argument's memory at the end, before those copies are steps. */
static void results_say_why(const plan_build *x, plan_donation *d, uint32_t made) {
  const plan_buffer *b = &x->buffers.items[made], *from = &x->buffers.items[x->leaves.items[d->argument]];
  bool computed = b->place == PLAN_FRAME && b->number != UINT32_MAX && b->first != UINT32_MAX;
  d->why = PLAN_DONATION_OTHER;
  if (!computed || from->last == UINT32_MAX || from->last < b->first) return;
  d->why = from->last > b->first ? PLAN_DONATION_LATER : PLAN_DONATION_ELSEWHERE;
  d->made = b->op;
  d->reader = x->steps.items[from->last].op;
}

/* For explanations, and for callers who ask whether memory was saved. */
static void results_note_donations(const plan_build *x, uint32_t at, const uint32_t *later) {
  for (uint32_t i = 0; i < x->p->n_donations; i++) {
    plan_donation *d = &x->donations[i];
    if (d->result == UINT32_MAX) continue;
    d->in_place = later[d->result] == UINT32_MAX;
    if (!d->in_place) results_say_why(x, d, x->leaves.items[at + d->result]);
  }
}

/* Equal types, not only sizes: whoever passes memory on sees the result as the argument was. */
static bool results_may_lie(const plan_build *x, const bool *taken, uint32_t argument, uint32_t made) {
  assert(argument < x->p->n_arguments);
  const plan_buffer *from = &x->buffers.items[x->leaves.items[argument]], *b = &x->buffers.items[made];
  if (taken[argument] || from->bytes != b->bytes || !ir_is_tensor(from->type) || !ir_same_bare(from->type, b->type))
    return false;
  return results_may_go_over(x, argument, made);
}

/* An argument of result i's type that nobody needs any more when `made`, the first value in its memory, is computed:
 * one that is read then, or that of the same number. */
static uint32_t results_find_dead(const plan_build *x, const bool *taken, uint32_t i, uint32_t made) {
  const plan_step *s = &x->steps.items[x->buffers.items[made].first];
  for (uint32_t k = 0; k < s->n_in; k++) {
    const plan_buffer *from = &x->buffers.items[s->in[k]];
    bool argument = from->place == PLAN_ARGUMENT && from->first == UINT32_MAX;
    if (argument && results_may_lie(x, taken, from->number, made)) return from->number;
  }
  return i < x->p->n_arguments && results_may_lie(x, taken, i, made) ? i : UINT32_MAX;
}

/* By result: the first value that lies in its memory. */
static void results_find_made(const plan_build *x, uint32_t *made) {
  for (uint32_t i = 0; i < x->p->n_results; i++) made[i] = UINT32_MAX;
  for (uint32_t b = 0; b < x->buffers.n; b++) {
    const plan_buffer *v = &x->buffers.items[b];
    if (v->place != PLAN_RESULT) continue;
    if (made[v->number] == UINT32_MAX || v->first < x->buffers.items[made[v->number]].first) made[v->number] = b;
  }
}

/* Of a branch or a function: which results may lie where arguments do, so that who calls it can pass memory on. The
 * program is the same whether that is done or not. Results that are arguments handed through come first: their
 * argument is surely theirs. */
static int results_let_over(plan_build *x, uint32_t at) {
  uint32_t *over = plan_ids(x, x->p->n_results), *made = plan_ids(x, x->p->n_results);
  bool *taken = base_arena_zalloc(x->arena, (size_t)x->p->n_arguments + 1);
  if (x->failed || !taken) return results_no_memory(x);
  results_find_made(x, made);
  for (uint32_t i = 0; i < x->p->n_results; i++) over[i] = UINT32_MAX;
  for (uint32_t i = 0; i < x->p->n_results; i++) { /* those that are handed through */
    const plan_buffer *b = results_buffer(x, at + i);
    if (b->place != PLAN_ARGUMENT || b->bytes == 0 || taken[b->number]) continue;
    over[i] = b->number;
    taken[b->number] = true;
  }
  for (uint32_t i = 0; i < x->p->n_results; i++) {
    const plan_buffer *b = results_buffer(x, at + i);
    if (b->place != PLAN_RESULT || b->number != i || b->bytes == 0) continue;
    over[i] = results_find_dead(x, taken, i, made[i]);
    if (over[i] != UINT32_MAX) taken[over[i]] = true;
  }
  x->p->over = over;
  return 0;
}

/* The last thing to be built: all steps are there. */
int plan_build_results(plan_build *x, const ir_computation *c) {
  plan_leaves root = x->values[ir_root(c)->id];
  assert(root.n > 0 || ir_is_tuple(ir_root(c)->type));
  x->p->n_results = root.n;
  bool *stays = base_arena_zalloc(x->arena, (size_t)root.n + 1);
  uint32_t *later = BASE_ARRAY(x->arena, uint32_t, (size_t)root.n + 1);
  if (!stays || !later) return results_no_memory(x);
  TRY(results_first(x, ir_root(c), root.at, stays, later));
  results_place(x, root.at, stays, later);
  results_note_donations(x, root.at, later);
  for (uint32_t i = 0; i < root.n; i++)
    if (later[i] != UINT32_MAX) TRY(results_copy_out(x, ir_root(c), later[i], i));
  if (x->depth > 1 && !x->body) TRY(results_let_over(x, root.at));
  x->p->stays = stays;
  return 0;
}
