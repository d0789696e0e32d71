/* One thread a participant; the caller's waits, polls for interruption, and gathers what they give.
 *
 * Participants are threads with an interpreter each; hub.c is where they meet. A failure of one stops all,
 * and its error is the run's. */
#include "parallel.h"
#include <pthread.h>
#include <stdio.h>
#include "hub.h"
#include "../../ir/verify/verify.h"
#include "../algorithm/arrays.h"
#include "../probe.h"

#define STACK_BYTES ((size_t)8 << 20) /* computations nest on it as deep as on a main thread's */
#define POLL_MILLISECONDS 20

typedef struct parallel_seat {
  ir_module *module;
  interp_options options;
  const interp_program *program;
  uint32_t number;
  int status;
  interp_value *result;
  xlac_error err;
  pthread_t thread;
} parallel_seat;

static bool seat_interrupted(void *hub) {
  return interp_hub_stopped(hub);
}

/* On the participant's thread, with its own error record. */
static int seat_run(parallel_seat *s) {
  interp_ctx ctx;
  TRY(interp_begin(&ctx, s->module, &s->options, &s->err));
  int status = interp_run_in(&ctx, s->program->computation, s->program->n_args, s->program->args, &s->result);
  interp_end(&ctx);
  return status;
}

static void *seat_main(void *seat) {
  parallel_seat *s = seat;
  s->status = seat_run(s);
  interp_hub_finish(s->options.hub, s->number, s->status != 0);
  return NULL;
}

/* Starts the threads; *n of them run afterwards, also on failure. */
static int parallel_start(parallel_seat *seats, uint32_t count, uint32_t *n, xlac_error *err) {
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) != 0) return base_oom(err, "threads");
  int status = 0;
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  for (*n = 0; *n < count && status == 0; ++*n) {
    if (pthread_create(&seats[*n].thread, &attr, seat_main, &seats[*n]) == 0) continue;
    status = base_fail(err, XLAC_E_OUT_OF_MEMORY, "the system gives no thread for participant %u of %u", *n, count);
    break;
  }
  pthread_attr_destroy(&attr);
  return status;
}

/* The error of the first participant that failed by itself and was not merely stopped. */
static int parallel_error(const parallel_seat *seats, uint32_t count, const interp_grid *grid, bool interrupted,
                          xlac_error *err) {
  const parallel_seat *found = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (seats[i].status == 0) continue;
    if (!found || (found->err.code == XLAC_E_INTERRUPTED && seats[i].err.code != XLAC_E_INTERRUPTED)) found = &seats[i];
  }
  if (!found) return 0;
  if (!err) return found->status;
  *err = found->err;
  if (interrupted || found->err.code == XLAC_E_INTERRUPTED) return found->status;
  char text[sizeof err->message];
  snprintf(text, sizeof text, "in replica %lld, partition %lld: %.400s", (long long)(found->number / grid->partitions),
           (long long)(found->number % grid->partitions), found->err.message);
  memcpy(err->message, text, sizeof text);
  return found->status;
}

/* One tuple for each participant. */
static int parallel_outfeeds(const interp_hub *hub, uint32_t count, const interp_options *options,
                             interp_value **outfeeds, xlac_error *err) {
  interp_ctx ctx = {.options = *options, .err = err};
  for (uint32_t i = 0; i < count; i++) {
    interp_value **values;
    uint32_t n = interp_hub_fed_out(hub, i, &values);
    interp_value *fed = interp_tuple(&ctx, n, values);
    if (!fed || !(outfeeds[i] = interp_own(&ctx, fed))) return interp_failed(&ctx);
  }
  return 0;
}

/* Participants whose threads could not be started count as failed, so that the others don't wait for them. */
static int parallel_run(parallel_seat *seats, uint32_t count, interp_hub *hub, const interp_options *options,
                        const interp_grid *grid, xlac_error *err) {
  uint32_t started = 0;
  bool interrupted = false;
  int status = parallel_start(seats, count, &started, err);
  if (status) interp_hub_stop(hub);
  for (uint32_t i = started; i < count; i++) interp_hub_finish(hub, i, true);
  while (!interp_hub_wait(hub, POLL_MILLISECONDS)) {
    if (interrupted || !options->interrupted || !options->interrupted(options->interrupt_ctx)) continue;
    interrupted = true;
    interp_hub_stop(hub);
  }
  for (uint32_t i = 0; i < started; i++) pthread_join(seats[i].thread, NULL);
  return status ? status : parallel_error(seats, count, grid, interrupted, err);
}

static int parallel_check(const interp_grid *grid, xlac_error *err) {
  int64_t n;
  if (grid->replicas < 1 || grid->partitions < 1 || !base_mul_i64(grid->replicas, grid->partitions, &n) ||
      n > INTERP_MAX_PARTICIPANTS)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%lld x %lld participants; expected 1 to %d in all",
                     (long long)grid->replicas, (long long)grid->partitions, INTERP_MAX_PARTICIPANTS);
  return 0;
}

/* Verifying a module again costs nothing. */
static int parallel_verify(const interp_grid *grid, xlac_error *err) {
  const ir_verify_options lenient = {.xla_compat = true};
  for (int64_t i = 0; i < grid->replicas * grid->partitions; i++)
    TRY(ir_verify(grid->programs[i].computation->module, &lenient, err));
  return 0;
}

int interp_run_parallel(const interp_options *options, const interp_grid *grid, interp_value **results,
                        interp_value **outfeeds, xlac_error *err) {
  assert(options && grid && results);
  interp_options own = *options;
  TRY(parallel_check(grid, err));
  TRY(parallel_verify(grid, err));
  if (!own.alloc.fn) own.alloc = base_alloc_libc;
  uint32_t count = (uint32_t)(grid->replicas * grid->partitions);
  parallel_seat *seats = base_malloc(own.alloc, count * sizeof *seats);
  interp_hub *hub = interp_hub_create(own.alloc, grid);
  int status = seats && hub ? 0 : base_oom(err, "a parallel run");
  for (uint32_t i = 0; i < count && !status; i++) {
    memset(&seats[i], 0, sizeof seats[i]);
    seats[i].module = grid->programs[i].computation->module;
    seats[i].options = own;
    seats[i].options.interrupted = seat_interrupted;
    seats[i].options.interrupt_ctx = hub;
    seats[i].options.hub = hub;
    seats[i].options.replica = i / grid->partitions;
    seats[i].options.partition = i % grid->partitions;
    seats[i].program = &grid->programs[i];
    seats[i].number = i;
  }
  bool ran = !status;
  if (!status) status = parallel_run(seats, count, hub, options, grid, err);
  if (!status && outfeeds) status = parallel_outfeeds(hub, count, &own, outfeeds, err);
  for (uint32_t i = 0; i < count && ran; i++) {
    results[i] = status ? NULL : seats[i].result;
    if (status) interp_release(seats[i].result);
  }
  interp_hub_destroy(hub);
  base_free(own.alloc, seats);
  return status;
}

/* --- parallel ---
 *
 * interpreter.run_parallel of upstream's tests. Its called computations are the programs, replica by replica, then what
 * gives the infeed; its operands are the programs' arguments one after another, its results theirs. */

typedef struct nested_run {
  interp_grid grid;
  uint32_t n, n_infeed;
  interp_program *programs;
  interp_value **results, **infeed;
} nested_run;

/* programs = [[@a, @b], [@c, @d]]: replicas are rows. */
static bool nested_grid(const ir_op *op, nested_run *r) {
  const ir_mattr *programs = ir_mattr_of(op, "programs");
  if (!programs || programs->kind != IR_M_ARRAY || programs->v.list->n == 0) return false;
  const ir_mattr *row = programs->v.list->v[0];
  if (row->kind != IR_M_ARRAY || row->v.list->n == 0) return false;
  r->grid.replicas = programs->v.list->n;
  r->grid.partitions = row->v.list->n;
  r->grid.partition_major = true;
  int64_t n;
  if (!base_mul_i64(r->grid.replicas, r->grid.partitions, &n) || n > op->n_called) return false;
  r->n = (uint32_t)n;
  r->n_infeed = op->n_called - r->n;
  return true;
}

/* Operands are dealt out to the programs in order of their parameters. */
static int nested_programs(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, nested_run *r) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    interp_program *p = &r->programs[i];
    p->computation = op->called[i];
    p->n_args = p->computation->n_params;
    p->args = operands + at;
    p->n_infeed = r->n_infeed;
    p->infeed = r->infeed;
    if (p->n_args > op->n_operands - at)
      return interp_fail(ctx, op, XLAC_E_ARGUMENT_COUNT, "has %u operands, its programs take more", op->n_operands);
    at += p->n_args;
  }
  if (at != op->n_operands)
    return interp_fail(ctx, op, XLAC_E_ARGUMENT_COUNT, "has %u operands, its programs take %u", op->n_operands, at);
  for (uint32_t i = 0; i < r->n_infeed; i++) TRY(interp_call(ctx, op->called[r->n + i], 0, NULL, &r->infeed[i]));
  return 0;
}

/* The results of all, those of a program with several out of their tuple. */
static int nested_results(interp_ctx *ctx, const ir_op *op, base_arena *arena, const nested_run *r,
                          interp_value **out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n; i++) n += r->results[i]->kind == INTERP_TUPLE ? r->results[i]->n_elements : 1;
  interp_value **flat = BASE_ARRAY(arena, interp_value *, n + 1u);
  if (!flat) return base_oom(ctx->err, "the results of participants");
  n = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    interp_value *v = r->results[i];
    if (v->kind != INTERP_TUPLE) flat[n++] = v;
    for (uint32_t k = 0; k < v->n_elements; k++) flat[n++] = v->elements[k];
  }
  uint32_t wanted = ir_is_tuple(op->type) ? op->type->n_elements : 1;
  if (n != wanted) return interp_fail(ctx, op, XLAC_E_EVAL, "has %u results, its programs give %u", wanted, n);
  *out = ir_is_tuple(op->type) ? interp_tuple(ctx, n, flat) : interp_retain(flat[0]);
  return *out ? 0 : base_oom(ctx->err, "the results of participants");
}

/* A run of its own: the outer run's hub is not theirs. */
static int nested_run_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, base_arena *arena,
                          nested_run *r, interp_value **out) {
  interp_options options = ctx->options;
  options.hub = NULL;
  TRY(nested_programs(ctx, op, operands, r));
  r->grid.programs = r->programs;
  TRY(interp_run_parallel(&options, &r->grid, r->results, NULL, ctx->err));
  return nested_results(ctx, op, arena, r, out);
}

static int nested_eval(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, base_arena *arena,
                       interp_value **out) {
  nested_run r = {.n = 0};
  if (!nested_grid(op, &r)) return interp_fail(ctx, op, XLAC_E_EVAL, "programs is not a grid of functions");
  r.programs = base_arena_zalloc(arena, r.n * sizeof *r.programs);
  r.results = base_arena_zalloc(arena, r.n * sizeof *r.results);
  r.infeed = base_arena_zalloc(arena, (r.n_infeed + 1u) * sizeof *r.infeed);
  if (!r.programs || !r.results || !r.infeed) return base_oom(ctx->err, "participants");
  int status = nested_run_all(ctx, op, operands, arena, &r, out);
  for (uint32_t i = 0; i < r.n; i++) interp_release(r.results[i]);
  for (uint32_t i = 0; i < r.n_infeed; i++) interp_release(r.infeed[i]);
  return status;
}

/* Ops of dialects that only the interpreter knows, by name. */
int interp_eval_unregistered(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  base_arena arena;
  if (strcmp(op->u.name->s, "interpreter.probe") == 0) return interp_probe(ctx, op, operands, out);
  if (strncmp(op->u.name->s, "check.", 6) == 0) return interp_check(ctx, op, operands, out);
  if (strcmp(op->u.name->s, "interpreter.run_parallel") != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s is not known to the interpreter", op->u.name->s);
  base_arena_init(&arena, ctx->options.alloc);
  int status = nested_eval(ctx, op, operands, &arena, out);
  base_arena_free(&arena);
  return status;
}
