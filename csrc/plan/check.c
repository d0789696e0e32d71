/* Proof of a plan, from its steps and places alone: nothing that is still to be read is written over, and a result that
 * takes the memory of an argument does so when nobody reads the argument any more. Between an async start and its done,
 * what the start reads is read, and what it writes is written, at any time: buffers that it reads, writes or works in
 * must live until the done, and nobody else may read its results before. It knows nothing of how places were
 * chosen. Work is proportional to the steps and to the pairs of buffers that are alive together. */
#include "plan.h"

/* by_first: the frame's buffers, sorted by the step that writes them; alive: those that are, at the present one. */
typedef struct proof_run {
  const plan_program *p;
  xlac_error *err;
  uint32_t *by_first, *alive;
  uint32_t *there; /* by buffer that a start writes: the done after which it may be read; else 0 */
  uint32_t n, n_alive;
} proof_run;

/* INTERNAL: it is our fault, whatever the program. */
static int proof_fail(const proof_run *x, uint32_t step, const char *what, uint32_t a, uint32_t b) {
  const ir_op *op = x->p->steps[step].op;
  return base_fail(x->err, XLAC_E_INTERNAL,
                   "plan of %s: step %u (%s) %s: buffer %u (steps %u to %u) and buffer %u (steps %u to %u)",
                   x->p->computation->name->s, step, op->name->s, what, a, x->p->buffers[a].first,
                   x->p->buffers[a].last, b, x->p->buffers[b].first, x->p->buffers[b].last);
}

/* Between a start and its done nobody reads buffer b, over which the start writes. */
static int proof_unread(const proof_run *x, uint32_t b, uint32_t start, uint32_t done) {
  assert(start <= done && done <= x->p->n_steps);
  for (uint32_t s = start + 1; s < done; s++)
    for (uint32_t i = 0; i < x->p->steps[s].n_in; i++)
      if (x->p->steps[s].in[i] == b) return proof_fail(x, s, "reads what is being written over", b, b);
  return 0;
}

/* b is written at b->first, in memory that a has. Fine if a is dead by then, or dies at that step, which may write
 * over it. */
static int proof_pair(const proof_run *x, uint32_t a, uint32_t b) {
  assert(a < x->p->n_buffers && b < x->p->n_buffers);
  const plan_buffer *old = &x->p->buffers[a], *now = &x->p->buffers[b];
  if (!plan_places_overlap(old, now) || old->last < now->first) return 0;
  uint32_t end = plan_end_of(&x->p->steps[now->first], now->first);
  bool passes_on = old->last == end && old->first < now->first && old->offset == now->offset;
  if (passes_on && end != now->first) TRY(proof_unread(x, a, now->first, end));
  if (passes_on && plan_may_overwrite(&x->p->steps[now->first], x->p->buffers, a, b)) return 0;
  return proof_fail(x, now->first, "writes what is still needed", a, b);
}

/* Buffers that have a place there at all. */
static bool proof_in_frame(const plan_buffer *b) {
  return (b->place == PLAN_FRAME || b->place == PLAN_SPARE) && b->first != UINT32_MAX && b->bytes > 0;
}

/* Within an argument that is donated and that nobody reads any more. */
static int proof_spare(const proof_run *x, uint32_t id) {
  const plan_buffer *b = &x->p->buffers[id];
  if (b->number >= x->p->n_spares) return proof_fail(x, b->first, "has no such spare argument", id, id);
  uint32_t spare = x->p->spares[b->number];
  const plan_buffer *old = &x->p->buffers[spare];
  if (b->offset < 0 || b->offset + b->bytes > old->bytes || !b->type)
    return proof_fail(x, b->first, "writes outside of an argument that is donated", id, spare);
  if (old->last == UINT32_MAX || old->last < b->first) return 0;
  bool passes_on = old->last == b->first && b->offset == 0;
  if (passes_on && plan_may_overwrite(&x->p->steps[b->first], x->p->buffers, spare, id)) return 0;
  return proof_fail(x, b->first, "writes over an argument that is still read", spare, id);
}

/* Within the frame, behind its table; or in a spare argument. */
static int proof_place(const proof_run *x, uint32_t id) {
  assert(id < x->p->n_buffers);
  const plan_buffer *b = &x->p->buffers[id];
  int64_t table = (int64_t)x->p->n_buffers * x->p->device.buffer_bytes;
  if (b->place == PLAN_SPARE) return proof_spare(x, id);
  if (b->offset >= table && b->offset + b->bytes <= x->p->frame_bytes) return 0;
  return proof_fail(x, b->first, "writes outside of the frame", id, id);
}

/* Sweeps over the buffers by the step that writes them, with the list of those that are alive: dead ones drop out on
 * the way. */
static int proof_frame(proof_run *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    const plan_buffer *b = &x->p->buffers[x->by_first[i]];
    uint32_t kept = 0;
    TRY(proof_place(x, x->by_first[i]));
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

/* Whether buffer b is what step s waits for. */
static bool proof_is_awaited(const proof_run *x, uint32_t s, uint32_t b) {
  return x->there[b] == s && x->p->steps[s].kind == PLAN_DONE;
}

/* All is read after it was written, and the steps that buffers name are those. */
static int proof_order(const proof_run *x) {
  for (uint32_t s = 0; s < x->p->n_steps; s++) {
    const plan_step *step = &x->p->steps[s];
    for (uint32_t i = 0; i < step->n_in; i++) {
      const plan_buffer *b = &x->p->buffers[step->in[i]];
      bool inner = b->place == PLAN_FRAME || b->place == PLAN_SPARE || b->place == PLAN_TILE;
      bool made = inner || b->place == PLAN_RESULT;
      if (made && b->bytes && (b->first == UINT32_MAX || b->first >= s))
        return proof_fail(x, s, "reads what is not there yet", step->in[i], step->in[i]);
      uint32_t there = x->there[step->in[i]];
      if (there && there >= s && !proof_is_awaited(x, s, step->in[i]))
        return proof_fail(x, s, "reads what is still being written", step->in[i], step->in[i]);
      if (inner && b->last < s) return proof_fail(x, s, "reads what is gone", step->in[i], step->in[i]);
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
  uint32_t end = plan_end_of(step, now->first);
  if (end != now->first) TRY(proof_unread(x, argument, now->first, end));
  if (old->last == end && plan_may_overwrite(step, x->p->buffers, argument, r)) return 0;
  return proof_fail(x, now->first, "writes over an argument that is still read", argument, r);
}

/* --- async chains --- */

/* b must have its memory until the done. Constants have theirs for ever. */
static int proof_lives(const proof_run *x, uint32_t step, uint32_t b, uint32_t done) {
  const plan_buffer *buffer = &x->p->buffers[b];
  if (buffer->place == PLAN_CONSTANT || (buffer->last != UINT32_MAX && buffer->last >= done)) return 0;
  return proof_fail(x, step, "starts what goes on with memory that is donated before it is done", b, b);
}

/* Room for the task and for the program that it runs. */
static bool proof_has_frame(const proof_run *x, const plan_step *s) {
  int64_t bytes = x->p->device.task_bytes + (s->n_nested ? s->nested[0]->frame_bytes : 0);
  return s->frame != UINT32_MAX && x->p->buffers[s->frame].place == PLAN_FRAME &&
         x->p->buffers[s->frame].bytes >= bytes;
}

/* The chain's two ends know each other, and what goes on in between has its memory. */
static int proof_start(proof_run *x, uint32_t step) {
  assert(x->p->steps[step].kind == PLAN_START);
  const plan_step *s = &x->p->steps[step];
  const plan_chain *c = s->chain;
  bool paired = c && c->start == step && c->done > step && c->done < x->p->n_steps;
  if (!paired || x->p->steps[c->done].kind != PLAN_DONE || x->p->steps[c->done].chain != c || !proof_has_frame(x, s))
    return base_fail(x->err, XLAC_E_INTERNAL, "plan of %s: step %u (%s) starts what no step waits for, or has no room",
                     x->p->computation->name->s, step, s->op->name->s);
  for (uint32_t i = 0; i < s->n_in; i++) TRY(proof_lives(x, step, s->in[i], c->done));
  for (uint32_t i = 0; i < s->n_out; i++) {
    TRY(proof_lives(x, step, s->out[i], c->done));
    x->there[s->out[i]] = c->done;
  }
  return proof_lives(x, step, s->frame, c->done);
}

/* Before anything else: other checks use the dones' numbers. */
static int proof_chains(proof_run *x) {
  for (uint32_t i = 0; i < x->p->n_steps; i++)
    if (x->p->steps[i].kind == PLAN_START) TRY(proof_start(x, i));
  return 0;
}

/* --- results --- */

/* The argument as it comes in, which no step writes. */
static uint32_t proof_argument_buffer(const plan_program *p, uint32_t leaf) {
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (p->buffers[i].place == PLAN_ARGUMENT && p->buffers[i].number == leaf && p->buffers[i].first == UINT32_MAX)
      return i;
  return UINT32_MAX;
}

/* Where results have memory of arguments, by donation or in a loop's body. */
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

/* Values in the memory of one result, or of one argument that is changed in place, follow one another. */
static int proof_follow(const proof_run *x, uint32_t a, uint32_t b) {
  const plan_buffer *old = &x->p->buffers[a], *now = &x->p->buffers[b];
  if (old->first > now->first) return proof_follow(x, b, a);
  if (!old->bytes || !now->bytes) return 0;
  if (!old->borrowed && now->borrowed) return proof_fail(x, now->first, "writes over a result", a, b);
  if (old->last < now->first) return 0;
  bool passes_on = old->last == now->first && old->first < now->first;
  if (passes_on && plan_may_overwrite(&x->p->steps[now->first], x->p->buffers, a, b)) return 0;
  return proof_fail(x, now->first, "writes over a value in a result's memory that is still needed", a, b);
}

/* Those of one memory are few. */
static int proof_borrowed(const proof_run *x, base_arena *scratch) {
  const plan_program *p = x->p;
  uint32_t *next = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_interface + 1);
  uint32_t *head = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_results + p->n_arguments + 1);
  if (!next || !head) return base_oom(x->err, "the proof of a plan");
  for (uint32_t i = 0; i < p->n_results + p->n_arguments; i++) head[i] = UINT32_MAX;
  for (uint32_t i = 0; i < p->n_interface; i++) {
    uint32_t id = p->interface[i];
    const plan_buffer *b = &p->buffers[id];
    bool result = b->place == PLAN_RESULT;
    if (b->first == UINT32_MAX) continue;
    if (b->number >= (result ? p->n_results : p->n_arguments))
      return proof_fail(x, b->first, "has no such result", id, id);
    uint32_t *at = &head[b->number + (result ? 0 : p->n_results)];
    for (uint32_t k = *at; k != UINT32_MAX; k = next[k]) TRY(proof_follow(x, p->interface[k], id));
    next[i] = *at;
    *at = i;
  }
  return 0;
}

/* Counting sort of the frame's buffers by the step that writes them. x->n is how many there are. False when out of
 * memory. */
static bool proof_sort(proof_run *x, base_arena *scratch) {
  const plan_program *p = x->p;
  uint32_t *at = base_arena_zalloc(scratch, ((size_t)p->n_steps + 2) * sizeof *at);
  x->by_first = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_buffers + 1);
  x->alive = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_buffers + 1);
  x->there = base_arena_zalloc(scratch, ((size_t)p->n_buffers + 1) * sizeof *x->there);
  if (!at || !x->by_first || !x->alive || !x->there) return false;
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (proof_in_frame(&p->buffers[i])) at[p->buffers[i].first + 1]++, x->n++;
  for (uint32_t s = 0; s < p->n_steps; s++) at[s + 1] += at[s];
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (proof_in_frame(&p->buffers[i])) x->by_first[at[p->buffers[i].first]++] = i;
  return true;
}

/* One program by itself; programs that its steps run have frames of their own. */
static int proof_program(const plan_program *p, base_alloc alloc, xlac_error *err) {
  proof_run x = {.p = p, .err = err};
  base_arena scratch;
  base_arena_init(&scratch, alloc);
  int status = proof_sort(&x, &scratch) ? proof_chains(&x) : base_oom(err, "the proof of a plan");
  if (status == 0) status = proof_order(&x);
  if (status == 0) status = proof_frame(&x);
  if (status == 0) status = proof_results(&x);
  if (status == 0) status = proof_borrowed(&x, &scratch);
  base_arena_free(&scratch);
  return status;
}

/* Programs that several steps run are checked once for each: plans are small. */
int plan_check(const plan_program *p, base_alloc alloc, xlac_error *err) {
  assert(p);
  if (p->interpreted) return 0;
  TRY(proof_program(p, alloc, err));
  for (uint32_t i = 0; i < p->n_steps; i++)
    for (uint32_t k = 0; k < p->steps[i].n_nested; k++) TRY(plan_check(p->steps[i].nested[k], alloc, err));
  return 0;
}
