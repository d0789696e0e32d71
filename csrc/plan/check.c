/* Proof of a plan, from its steps and places alone: nothing that is still to be read is written over, and a result that
 * takes the memory of an argument does so when nobody reads the argument any more. It knows nothing of how places were
 * chosen. Work is proportional to the steps and to the pairs of buffers that are alive together. */
#include "plan.h"

typedef struct proof_run {
  const plan_program *p;
  xlac_error *err;
  uint32_t *by_first, *alive;
  uint32_t n, n_alive;
} proof_run;

static int proof_fail(const proof_run *x, uint32_t step, const char *what, uint32_t a, uint32_t b) {
  const ir_op *op = x->p->steps[step].op;
  return base_fail(x->err, XLAC_E_INTERNAL,
                   "plan of %s: step %u (%s) %s: buffer %u (steps %u to %u) and buffer %u (steps %u to %u)",
                   x->p->computation->name->s, step, op->name->s, what, a, x->p->buffers[a].first,
                   x->p->buffers[a].last, b, x->p->buffers[b].first, x->p->buffers[b].last);
}

static bool proof_overlap(const plan_buffer *a, const plan_buffer *b) {
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* b is written at b->first, in memory that a has. */
static int proof_pair(const proof_run *x, uint32_t a, uint32_t b) {
  const plan_buffer *old = &x->p->buffers[a], *now = &x->p->buffers[b];
  if (!proof_overlap(old, now) || old->last < now->first) return 0;
  bool passes_on = old->last == now->first && old->first < now->first && old->offset == now->offset;
  if (passes_on && plan_may_overwrite(&x->p->steps[now->first], x->p->buffers, a, b)) return 0;
  return proof_fail(x, now->first, "writes what is still needed", a, b);
}

static bool proof_in_frame(const plan_buffer *b) {
  return b->place == PLAN_FRAME && b->first != UINT32_MAX && b->bytes > 0;
}

static int proof_frame(proof_run *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    const plan_buffer *b = &x->p->buffers[x->by_first[i]];
    uint32_t kept = 0;
    if (b->offset < (int64_t)x->p->n_buffers * (int64_t)sizeof(void *) || b->offset + b->bytes > x->p->frame_bytes)
      return proof_fail(x, b->first, "writes outside of the frame", x->by_first[i], x->by_first[i]);
    for (uint32_t k = 0; k < x->n_alive; k++) {
      if (x->p->buffers[x->alive[k]].last < b->first) continue;
      TRY(proof_pair(x, x->alive[k], x->by_first[i]));
      x->alive[kept++] = x->alive[k];
    }
    x->n_alive = kept;
    x->alive[x->n_alive++] = x->by_first[i];
  }
  return 0;
}

/* All is read after it was written, and the steps that buffers name are those. */
static int proof_order(const proof_run *x) {
  for (uint32_t s = 0; s < x->p->n_steps; s++) {
    const plan_step *step = &x->p->steps[s];
    for (uint32_t i = 0; i < step->n_in; i++) {
      const plan_buffer *b = &x->p->buffers[step->in[i]];
      bool made = b->place == PLAN_FRAME || b->place == PLAN_RESULT;
      if (made && b->bytes && (b->first == UINT32_MAX || b->first >= s))
        return proof_fail(x, s, "reads what is not there yet", step->in[i], step->in[i]);
      if (b->place == PLAN_FRAME && b->last < s)
        return proof_fail(x, s, "reads what is gone", step->in[i], step->in[i]);
    }
  }
  return 0;
}

/* Result buffer r may be the memory of the entry's argument `over`, or of a loop's body is (stays). */
static int proof_over(const proof_run *x, uint32_t r, uint32_t argument) {
  const plan_buffer *now = &x->p->buffers[r], *old = &x->p->buffers[argument];
  if (now->first == UINT32_MAX || old->last == UINT32_MAX || old->last < now->first) return 0;
  const plan_step *step = &x->p->steps[now->first];
  if (step->kind == PLAN_COPY && step->in[0] == argument) return 0; /* of itself to itself */
  if (old->last == now->first && plan_may_overwrite(step, x->p->buffers, argument, r)) return 0;
  return proof_fail(x, now->first, "writes over an argument that is still read", argument, r);
}

static uint32_t proof_argument_buffer(const plan_program *p, uint32_t leaf) {
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (p->buffers[i].place == PLAN_ARGUMENT && p->buffers[i].number == leaf && p->buffers[i].first == UINT32_MAX)
      return i;
  return UINT32_MAX;
}

static int proof_results(const proof_run *x) {
  for (uint32_t i = 0; i < x->p->n_interface; i++) {
    uint32_t id = x->p->interface[i];
    const plan_buffer *b = &x->p->buffers[id];
    bool result = b->place == PLAN_RESULT, stays = b->place == PLAN_ARGUMENT && b->first != UINT32_MAX;
    uint32_t leaf = stays ? b->number : result && x->p->over ? x->p->over[b->number] : UINT32_MAX;
    uint32_t argument = leaf == UINT32_MAX ? leaf : proof_argument_buffer(x->p, leaf);
    if (argument != UINT32_MAX) TRY(proof_over(x, id, argument));
  }
  return 0;
}

/* What lies in the memory of a result, or of an argument that is changed in place: one after another, the result last.
 * `last`: the last of them so far, by result and by argument. */
static int proof_lent(const proof_run *x, uint32_t *last) {
  for (uint32_t i = 0; i < x->p->n_interface; i++) {
    uint32_t id = x->p->interface[i];
    const plan_buffer *b = &x->p->buffers[id];
    uint32_t *at = &last[b->number + (b->place == PLAN_ARGUMENT ? x->p->n_results : 0)], before = *at;
    if (b->first == UINT32_MAX) continue;
    *at = id;
    if (before == UINT32_MAX) continue;
    const plan_buffer *old = &x->p->buffers[before];
    bool fits = old->lent && old->first < b->first && old->last <= b->first && b->bytes > 0;
    bool over = fits && old->last == b->first && !plan_may_overwrite(&x->p->steps[b->first], x->p->buffers, before, id);
    if (!fits || over) return proof_fail(x, b->first, "writes what is still needed", before, id);
  }
  for (uint32_t i = 0; i < x->p->n_results + x->p->n_arguments; i++)
    if (last[i] != UINT32_MAX && x->p->buffers[last[i]].lent)
      return proof_fail(x, x->p->buffers[last[i]].first, "leaves another value in a result", last[i], last[i]);
  return 0;
}

/* Counting sort of the frame's buffers by the step that writes them. */
static bool proof_sort(proof_run *x, base_arena *scratch) {
  const plan_program *p = x->p;
  uint32_t *at = base_arena_zalloc(scratch, ((size_t)p->n_steps + 2) * sizeof *at);
  x->by_first = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_buffers + 1);
  x->alive = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_buffers + 1);
  if (!at || !x->by_first || !x->alive) return false;
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (proof_in_frame(&p->buffers[i])) at[p->buffers[i].first + 1]++, x->n++;
  for (uint32_t s = 0; s < p->n_steps; s++) at[s + 1] += at[s];
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (proof_in_frame(&p->buffers[i])) x->by_first[at[p->buffers[i].first]++] = i;
  return true;
}

static int proof_program(const plan_program *p, base_alloc alloc, xlac_error *err) {
  proof_run x = {.p = p, .err = err};
  base_arena scratch;
  base_arena_init(&scratch, alloc);
  int status = proof_sort(&x, &scratch) ? proof_order(&x) : base_oom(err, "the proof of a plan");
  if (status == 0) status = proof_frame(&x);
  if (status == 0) status = proof_results(&x);
  uint32_t *last = BASE_ARRAY(&scratch, uint32_t, (size_t)p->n_results + p->n_arguments + 1);
  if (status == 0 && !last) status = base_oom(err, "the proof of a plan");
  for (uint32_t i = 0; status == 0 && i < p->n_results + p->n_arguments; i++) last[i] = UINT32_MAX;
  if (status == 0) status = proof_lent(&x, last);
  base_arena_free(&scratch);
  return status;
}

int plan_check(const plan_program *p, base_alloc alloc, xlac_error *err) {
  if (p->interpreted) return 0;
  TRY(proof_program(p, alloc, err));
  for (uint32_t i = 0; i < p->n_steps; i++)
    for (uint32_t k = 0; k < p->steps[i].n_nested; k++) TRY(plan_check(p->steps[i].nested[k], alloc, err));
  return 0;
}
