/* Runs programs. A unit runs when all that it waits for is there. What a branch that is not taken would give is
 * dead, and so is what is made of it, up to a merge. Source: the behaviour of common_runtime/executor.cc and
 * propagator_state.cc.
 *
 * One thread runs units one after another from a queue; compiled units use all threads within. A loop is a frame
 * with iterations, each with its own places for the values that units wait for. An iteration is freed when nothing
 * is under way in it and no earlier one is left, and a frame with its last iteration. */
#include "run.h"

#include <stdio.h>
#include <time.h>

typedef struct tfs_frame tfs_frame;
typedef struct tfs_iteration tfs_iteration;

/* Bits of an iteration's state of a unit; and how often the caller is asked whether to stop, in units. */
enum { TFS_MERGE_LIVE = 1, TFS_FIRED = 2, TFS_TICKS = 64 };

/* One turn of a loop, or the only one of the outermost frame. Everything is in one block. */
struct tfs_iteration {
  tfs_frame *frame;
  tfs_iteration *next;
  tfs_frame *children;
  uint64_t number;
  uint64_t outstanding;  /* units that are ready, frames opened here that are not done */
  uint32_t *wait, *dead; /* by local place: arrivals to come, dead ones so far */
  uint8_t *state;
  tfs_value *slots;
};

/* The value of an Enter for all iterations, given anew to each. */
typedef struct tfs_constant {
  uint32_t unit;
  tfs_value value; /* kind DEAD for a dead one */
} tfs_constant;
BASE_VEC(tfs_constants, tfs_constant);
BASE_VEC(tfs_unit_ids, uint32_t);

/* A loop that is running. The same static frame may run several times at once: once for each iteration of the loop
 * around it. */
struct tfs_frame {
  uint32_t number; /* of the static frame */
  uint32_t pending_enters;
  tfs_iteration *parent;     /* NULL for the outermost */
  tfs_frame *sibling;        /* the next that this iteration has opened */
  tfs_frame *before, *after; /* of all */
  tfs_iteration *first, *last;
  tfs_constants constants; /* of Enters that hold for all iterations */
  tfs_unit_ids dead_exits; /* in the last iteration */
};

/* A unit whose inputs are all there, and in which iteration. */
typedef struct tfs_ready {
  uint32_t unit;
  tfs_iteration *at;
} tfs_ready;
BASE_VEC(tfs_ready_list, tfs_ready);

/* `in` and `out` have room for the widest unit, and hold values only while one runs. */
struct tfs_run {
  tfs_context *ctx;
  tfs_program *p;
  const tfs_value *args;
  tfs_value *results;
  base_alloc alloc;
  tfs_ready_list queue;
  uint32_t head;
  tfs_frame *frames;
  tfs_value *in, *out; /* of the present unit */
};

/* Host ops know the run only by name. */
tfs_context *tfs_context_of(tfs_run *run) {
  assert(run->ctx);
  return run->ctx;
}

/* The caller's function is asked every so many units, loops of functions included; within compiled code the
 * executable asks itself. */
int tfs_tick(tfs_context *ctx) {
  assert(ctx->session);
  if (++ctx->ticks % TFS_TICKS || !ctx->options.interrupted || !ctx->options.interrupted(ctx->options.interrupt_ctx))
    return 0;
  return base_fail(ctx->err, XLAC_E_INTERRUPTED, "the run was interrupted");
}

static int tfs_run_oom(const tfs_run *run) {
  return base_oom(run->ctx->err, "running a graph");
}

/* Seconds on a clock that only goes forward. */
static double tfs_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- frames and iterations --- */

/* The next iteration of f, waiting for all that its units wait for at first. */
static int tfs_new_iteration(tfs_run *run, tfs_frame *f, tfs_iteration **out) {
  assert(f->number < run->p->n_frames);
  const tfs_static_frame *s = &run->p->frames[f->number];
  size_t slots = s->n_slots * sizeof(tfs_value), counts = s->n_units * sizeof(uint32_t);
  tfs_iteration *it = base_malloc(run->alloc, sizeof *it + slots + 2 * counts + s->n_units);
  if (!it) return tfs_run_oom(run);
  *it = (tfs_iteration){.frame = f, .number = f->last ? f->last->number + 1 : 0};
  it->slots = (tfs_value *)(it + 1);
  it->wait = (uint32_t *)(void *)((char *)it->slots + slots);
  it->dead = it->wait + s->n_units;
  it->state = (uint8_t *)(it->dead + s->n_units);
  memset(it->slots, 0, slots);
  memset(it->dead, 0, counts + s->n_units);
  memcpy(it->wait, s->first_wait, counts);
  if (f->last) f->last->next = it;
  if (!f->first) f->first = it;
  f->last = it;
  *out = it;
  return 0;
}

/* A frame begins with its first iteration. `parent` has it among its children, and is not done before it is. */
static int tfs_new_frame(tfs_run *run, uint32_t number, tfs_iteration *parent, tfs_frame **out) {
  assert(number < run->p->n_frames);
  tfs_iteration *it = NULL;
  tfs_frame *f = base_malloc(run->alloc, sizeof *f);
  if (!f) return tfs_run_oom(run);
  *f = (tfs_frame){.number = number, .parent = parent, .pending_enters = run->p->frames[number].n_enters};
  f->after = run->frames;
  if (run->frames) run->frames->before = f;
  run->frames = f;
  if (parent) {
    f->sibling = parent->children;
    parent->children = f;
    parent->outstanding++;
  }
  *out = f;
  return tfs_new_iteration(run, f, &it);
}

/* Values that arrived and were never used go here, too: of a run that failed. */
static void tfs_free_iteration(tfs_run *run, tfs_iteration *it) {
  uint32_t n = run->p->frames[it->frame->number].n_slots;
  for (uint32_t i = 0; i < n; i++) tfs_drop(&it->slots[i]);
  base_free(run->alloc, it);
}

/* With all its iterations. The children's list of the parent is the caller's business. */
static void tfs_free_frame(tfs_run *run, tfs_frame *f) {
  for (tfs_iteration *it = f->first, *next = NULL; it; it = next) {
    next = it->next;
    tfs_free_iteration(run, it);
  }
  for (uint32_t i = 0; i < f->constants.n; i++) tfs_drop(&f->constants.items[i].value);
  BASE_VEC_FREE(run->alloc, &f->constants);
  BASE_VEC_FREE(run->alloc, &f->dead_exits);
  if (f->before) f->before->after = f->after;
  if (f->after) f->after->before = f->before;
  if (run->frames == f) run->frames = f->after;
  base_free(run->alloc, f);
}

/* --- arrivals --- */

/* A unit runs once in an iteration. */
static int tfs_make_ready(tfs_run *run, uint32_t unit, tfs_iteration *it) {
  assert(!(it->state[run->p->units[unit].local] & TFS_FIRED));
  tfs_ready r = {unit, it};
  it->state[run->p->units[unit].local] |= TFS_FIRED;
  it->outstanding++;
  return BASE_VEC_PUSH(run->alloc, &run->queue, r) ? 0 : tfs_run_oom(run);
}

/* A cluster has its first node's role, which says nothing. */
static bool tfs_is_merge(const tfs_unit *u) {
  return u->role == TF_ROLE_MERGE && !u->is_cluster;
}

/* The first live value is the merge's. All dead: the merge is dead; but a dead Enter alone makes it so, since the
 * NextIteration would be made of it. */
static int tfs_arrive_at_merge(tfs_run *run, tfs_iteration *it, const tfs_out *e, const tfs_value *v, bool dead,
                               bool from_enter) {
  const tfs_unit *u = &run->p->units[e->unit];
  uint32_t k = u->local;
  if (e->slot == TF_CONTROL) {
    it->wait[k]--;
  } else if (dead) {
    it->dead[k] = from_enter ? u->n_in : it->dead[k] + 1;
  } else if (!(it->state[k] & TFS_MERGE_LIVE)) {
    it->state[k] |= TFS_MERGE_LIVE;
    it->slots[u->slot + (uint32_t)e->slot] = tfs_keep(*v);
  }
  bool ready = it->wait[k] == 0 && ((it->state[k] & TFS_MERGE_LIVE) || it->dead[k] >= u->n_in);
  return ready && !(it->state[k] & TFS_FIRED) ? tfs_make_ready(run, e->unit, it) : 0;
}

/* The value is held by its place from now on. */
static int tfs_arrive(tfs_run *run, tfs_iteration *it, const tfs_out *e, const tfs_value *v, bool dead,
                      bool from_enter) {
  const tfs_unit *u = &run->p->units[e->unit];
  uint32_t k = u->local;
  if (u->frame != it->frame->number)
    return base_fail(run->ctx->err, XLAC_E_BAD_ARGUMENT, "'%.100s' takes a value of another loop", u->name->s);
  if (tfs_is_merge(u)) return tfs_arrive_at_merge(run, it, e, v, dead, from_enter);
  assert(it->wait[k] > 0);
  if (dead)
    it->dead[k]++;
  else if (e->slot != TF_CONTROL)
    it->slots[u->slot + (uint32_t)e->slot] = tfs_keep(*v);
  return --it->wait[k] == 0 ? tfs_make_ready(run, e->unit, it) : 0;
}

/* All that a unit gives, to iteration `it`. out is NULL where all of it is dead. */
static int tfs_give_all(tfs_run *run, uint32_t unit, const tfs_value *out, tfs_iteration *it) {
  const tfs_unit *u = &run->p->units[unit];
  bool enter = u->role == TF_ROLE_ENTER && !u->is_cluster;
  for (uint32_t i = 0; i < u->n_edges; i++) {
    const tfs_out *e = &run->p->edges[u->first_edge + i];
    bool dead = out == NULL || (e->output != TF_CONTROL && out[e->output].kind == TFS_DEAD);
    const tfs_value *v = out && e->output != TF_CONTROL ? &out[e->output] : NULL;
    TRY(tfs_arrive(run, it, e, v, dead, enter));
  }
  return 0;
}

/* --- loops --- */

/* The frame is opened by the first Enter that runs, and known among the children by its number. */
static int tfs_enter(tfs_run *run, uint32_t unit, const tfs_value *out, tfs_iteration *at) {
  const tfs_unit *u = &run->p->units[unit];
  tfs_frame *f = at->children;
  assert(u->child_frame > 0 && u->child_frame < run->p->n_frames);
  while (f && f->number != u->child_frame) f = f->sibling;
  if (!f) TRY(tfs_new_frame(run, u->child_frame, at, &f));
  f->pending_enters--;
  if (!u->constant_enter) return tfs_give_all(run, unit, out, f->first);
  tfs_constant c = {unit, out ? tfs_keep(out[0]) : (tfs_value){.kind = TFS_DEAD}};
  if (!BASE_VEC_PUSH(run->alloc, &f->constants, c)) return tfs_run_oom(run);
  for (tfs_iteration *it = f->first; it; it = it->next) TRY(tfs_give_all(run, unit, out, it));
  return 0;
}

/* To the iteration after this one, made by the first that needs it. A dead one begins no iteration, which is how
 * loops end. */
static int tfs_next(tfs_run *run, uint32_t unit, const tfs_value *out, tfs_iteration *at) {
  tfs_frame *f = at->frame;
  tfs_iteration *it = at->next;
  if (!f->parent) return base_fail(run->ctx->err, XLAC_E_BAD_ARGUMENT, "a NextIteration outside of loops");
  if (!out) return 0;
  if (!it) {
    TRY(tfs_new_iteration(run, f, &it));
    f->dead_exits.n = 0;
    for (uint32_t i = 0; i < f->constants.n; i++) {
      tfs_constant *c = &f->constants.items[i];
      TRY(tfs_give_all(run, c->unit, c->value.kind == TFS_DEAD ? NULL : &c->value, it));
    }
  }
  return tfs_give_all(run, unit, out, it);
}

/* A dead Exit of an iteration that is not the last says nothing yet: a later one may give the value. `dead_exits`
 * are of the last iteration so far. */
static int tfs_exit(tfs_run *run, uint32_t unit, const tfs_value *out, tfs_iteration *at) {
  tfs_frame *f = at->frame;
  if (!f->parent) return base_fail(run->ctx->err, XLAC_E_BAD_ARGUMENT, "an Exit outside of loops");
  if (out) return tfs_give_all(run, unit, out, f->parent);
  if (at != f->last) return 0;
  return BASE_VEC_PUSH(run->alloc, &f->dead_exits, unit) ? 0 : tfs_run_oom(run);
}

/* `out` NULL: the unit was dead. */
static int tfs_propagate(tfs_run *run, uint32_t unit, const tfs_value *out, tfs_iteration *at) {
  const tfs_unit *u = &run->p->units[unit];
  if (!u->is_cluster && u->role == TF_ROLE_ENTER) return tfs_enter(run, unit, out, at);
  if (!u->is_cluster && u->role == TF_ROLE_EXIT) return tfs_exit(run, unit, out, at);
  if (!u->is_cluster && u->role == TF_ROLE_NEXT_ITERATION) return tfs_next(run, unit, out, at);
  return tfs_give_all(run, unit, out, at);
}

/* The frame is done: its exits that gave nothing are dead. f is freed; its parent counts it no more in tfs_settle. */
static int tfs_end_frame(tfs_run *run, tfs_frame *f) {
  assert(f->parent && !f->first);
  tfs_iteration *parent = f->parent;
  for (uint32_t i = 0; i < f->dead_exits.n; i++) TRY(tfs_give_all(run, f->dead_exits.items[i], NULL, parent));
  for (tfs_frame **at = &parent->children; *at; at = &(*at)->sibling)
    if (*at == f) {
      *at = f->sibling;
      break;
    }
  tfs_free_frame(run, f);
  return 0;
}

/* Frees iterations that nothing can reach any more, and frames without iterations. An iteration that is done lets
 * the next be done, and the last one its frame, and that the iteration around: a loop instead of calls. */
static int tfs_settle(tfs_run *run, tfs_iteration *it) {
  while (it->outstanding == 0 && it->frame->parent) {
    tfs_frame *f = it->frame;
    if (it != f->first || (it->number == 0 && f->pending_enters > 0)) return 0;
    f->first = it->next;
    tfs_free_iteration(run, it);
    if (f->first) {
      it = f->first;
      continue;
    }
    it = f->parent;
    TRY(tfs_end_frame(run, f));
    it->outstanding--;
  }
  return 0;
}

/* --- units --- */

/* Adds the node's name to an error that has none. The innermost name is the one that says something, so an error
 * that begins with a node's name is left alone. */
static int tfs_blame(const tfs_run *run, const tfs_unit *u, int status) {
  xlac_error *err = run->ctx->err;
  char message[sizeof err->message];
  if (!err || status == -XLAC_E_INTERRUPTED || strstr(err->message, "node '") == err->message) return status;
  memcpy(message, err->message, sizeof message);
  if (u->is_cluster)
    snprintf(err->message, sizeof err->message, "cluster '%.100s': %.300s", u->name->s, message);
  else
    snprintf(err->message, sizeof err->message, "node '%.120s' (op %.60s): %.300s", u->name->s, u->node->op->name->s,
             message);
  return status;
}

/* A host op's outputs must be all set or all nothing; what it left in `in` is dropped afterwards. */
static int tfs_run_unit(tfs_run *run, tfs_unit *u) {
  tfs_call c = {.run = run,
                .unit = u,
                .node = u->node,
                .n_in = u->n_in,
                .n_out = u->n_out,
                .in = run->in,
                .out = run->out,
                .alloc = run->alloc,
                .err = run->ctx->err};
  switch ((tfs_unit_kind)u->kind) {
    case TFS_UNIT_ARG:
      run->out[0] = tfs_keep(run->args[u->number]);
      return 0;
    case TFS_UNIT_RESULT:
      run->results[u->number] = run->in[0];
      run->in[0].kind = TFS_NONE;
      return 0;
    case TFS_UNIT_HOST:
      return u->host->fn(&c);
    case TFS_UNIT_CALL:
      return tfs_run_functions(&c);
    case TFS_UNIT_COMPUTE:
      return tfs_run_compute(&c);
  }
  return 0;
}

/* Times of host ops are not taken: looking at the clock would be most of them. */
static int tfs_run_alive(tfs_run *run, tfs_unit *u) {
  bool timed = u->kind == TFS_UNIT_COMPUTE || u->kind == TFS_UNIT_CALL;
  double began = timed ? tfs_now() : 0;
  TRY(tfs_tick(run->ctx));
  int status = tfs_run_unit(run, u);
  u->stats.runs++;
  if (timed) u->stats.run_seconds += tfs_now() - began;
  return status ? tfs_blame(run, u, status) : 0;
}

/* The inputs move from the iteration's places to run->in; a merge has one of them. A control trigger runs also on
 * dead inputs. */
static int tfs_run_ready(tfs_run *run, tfs_ready r) {
  tfs_unit *u = &run->p->units[r.unit];
  tfs_iteration *it = r.at;
  bool dead = tfs_is_merge(u) ? !(it->state[u->local] & TFS_MERGE_LIVE)
                              : it->dead[u->local] > 0 && u->role != TF_ROLE_CONTROL_TRIGGER;
  assert(it->state[u->local] & TFS_FIRED);
  for (uint32_t i = 0; i < u->n_in; i++) {
    run->in[i] = it->slots[u->slot + i];
    it->slots[u->slot + i].kind = TFS_NONE;
  }
  memset(run->out, 0, u->n_out * sizeof *run->out);
  u->stats.dead += dead;
  int status = dead ? 0 : tfs_run_alive(run, u);
  for (uint32_t i = 0; i < u->n_in; i++) tfs_drop(&run->in[i]);
  if (status == 0) status = tfs_propagate(run, r.unit, dead ? NULL : run->out, it);
  for (uint32_t i = 0; i < u->n_out; i++) tfs_drop(&run->out[i]);
  if (status) return status;
  it->outstanding--;
  return tfs_settle(run, it);
}

/* --- the whole --- */

/* Units of the outermost frame that wait for nothing begin. */
static int tfs_start(tfs_run *run) {
  tfs_frame *root = NULL;
  size_t widest = run->p->widest + (size_t)1;
  run->in = base_malloc(run->alloc, 2 * widest * sizeof *run->in);
  if (!run->in) return tfs_run_oom(run);
  memset(run->in, 0, 2 * widest * sizeof *run->in);
  run->out = run->in + widest;
  TRY(tfs_new_frame(run, 0, NULL, &root));
  const tfs_static_frame *s = &run->p->frames[0];
  for (uint32_t k = 0; k < s->n_units; k++)
    if (s->first_wait[k] == 0 && !tfs_is_merge(&run->p->units[s->units[k]]))
      TRY(tfs_make_ready(run, s->units[k], root->first));
  return 0;
}

/* First in, first out; the queue moves down when half of it is behind. */
static tfs_ready tfs_pop(tfs_run *run) {
  assert(run->head < run->queue.n);
  tfs_ready r = run->queue.items[run->head++];
  if (run->head == run->queue.n) {
    run->head = run->queue.n = 0;
  } else if (run->head >= 4096 && run->head > run->queue.n / 2) {
    run->queue.n -= run->head;
    memmove(run->queue.items, run->queue.items + run->head, run->queue.n * sizeof *run->queue.items);
    run->head = 0;
  }
  return r;
}

/* Whatever way it ends, all frames are freed, and with them every value that was on its way. */
int tfs_run_program(tfs_context *ctx, tfs_program *p, const tfs_value *args, tfs_value *results) {
  assert(p->session == ctx->session);
  tfs_run run = {.ctx = ctx, .p = p, .args = args, .results = results, .alloc = p->session->alloc};
  if (ctx->depth >= TFS_MOST_DEPTH)
    return base_fail(ctx->err, XLAC_E_TOO_DEEP, "functions call functions over %d deep", TFS_MOST_DEPTH);
  ctx->depth++;
  int status = tfs_start(&run);
  while (status == 0 && run.head < run.queue.n) status = tfs_run_ready(&run, tfs_pop(&run));
  ctx->depth--;
  while (run.frames) tfs_free_frame(&run, run.frames);
  BASE_VEC_FREE(run.alloc, &run.queue);
  base_free(run.alloc, run.in);
  return status;
}
