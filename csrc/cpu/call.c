/* The CPU's side of a call. cpu_call works on bare pointers, one a leaf, as the API and the Python extension have
 * them; cpu_call_values works on the interpreter's values, and makes its result. Both may run on any number of
 * threads at once: the executable is immutable, and what a call changes is in its cpu_run and its frame. */
#include "../interp/device.h"
#include "linalg/lapack.h"
#include "routine.h"
#include "threaded/list.h"
#include "turns.h"

/* --- one call on bare memory --- */

/* Tells the executable's owner what was copied, and which results lie in the memory of arguments. Nothing where
 * all is 0. */
static void call_count(cpu_run *run) {
  const plan_program *p = cpu_plan_of(run->exe);
  rt_tally *t = &run->tally;
  for (uint32_t i = 0; i < p->n_donations; i++) {
    const plan_donation *d = &p->donations[i];
    if (d->result == UINT32_MAX || run->results[d->result] != run->arguments[d->argument]) continue;
    t->reused++;
    t->reused_bytes += p->buffers[d->argument].bytes; /* arguments' buffers come first */
  }
  t->reused += p->spare_bytes ? p->n_spares : 0;
  t->reused_bytes += p->spare_bytes;
  if (t->copies | t->protecting | t->reused) run->exe->count(run->exe->count_ctx, t);
}

/* NumPy may hand over arrays at any address; kernels need the alignment of C for the element, of its part for
 * complex. */
static bool call_is_misaligned(const ir_type *t, const void *p) {
  if (!ir_is_tensor(t)) return false;
  const base_dtype_info *d = base_dtype_of((base_dtype)t->dtype);
  return (uintptr_t)p % (d->kind == BASE_KIND_COMPLEX ? d->bytes / 2u : d->bytes) != 0;
}

/* Whether an argument may be one that kernels can't read as it is: misaligned, or of a type whose bytes have spare
 * bits (a pred that is neither 0 nor 1, an s4 with something in its upper half). The second is a fact of the
 * program's types. */
static bool call_is_suspect(const cpu_executable *exe, void *const *arguments) {
  bool suspect = exe->needs_care;
  for (uint32_t i = 0; i < exe->base.n_arguments; i++)
    suspect |= call_is_misaligned(exe->base.argument_types[i], arguments[i]);
  return suspect;
}

/* Copies of what is misaligned or holds bits that its type has not. */
typedef struct call_copies {
  interp_value **values; /* by argument; NULL from the first that is not made */
  void **pointers;
} call_copies;

/* Frees the copies, also those of a list that was made in part only. */
static void call_drop_copies(const cpu_run *run, call_copies *c) {
  for (uint32_t i = 0; c->values && i < run->exe->base.n_arguments && c->values[i]; i++) interp_release(c->values[i]);
  base_free(run->exe->alloc, c->values);
  base_free(run->exe->alloc, c->pointers);
}

/* A value that kernels can read, for one argument: a copy where something is wrong with it, else the memory as it
 * is. NULL when out of memory, or interrupted. */
static interp_value *call_clean(cpu_run *run, const ir_type *t, void *argument) {
  interp_value *v = ir_is_tensor(t) ? interp_lend(run->exe->alloc, t->dtype, t->rank, t->dims, argument, NULL, NULL)
                                    : interp_token(&run->ctx);
  interp_value *clean = v ? interp_clean(&run->ctx, v) : NULL;
  interp_release(v);
  return clean;
}

/* After a failure what was made is still in c, for call_drop_copies. */
static int call_make_copies(cpu_run *run, void *const *arguments, call_copies *c) {
  assert(!c->values && !c->pointers);
  const rt_executable *exe = &run->exe->base;
  size_t n = exe->n_arguments + (size_t)1;
  c->values = base_malloc(run->exe->alloc, n * sizeof *c->values);
  c->pointers = base_malloc(run->exe->alloc, n * sizeof *c->pointers);
  if (c->values) memset(c->values, 0, n * sizeof *c->values);
  if (!c->values || !c->pointers) return base_oom(run->ctx.err, "the arguments");
  for (uint32_t i = 0; i < exe->n_arguments; i++) {
    c->values[i] = call_clean(run, exe->argument_types[i], arguments[i]);
    if (!c->values[i]) return interp_failed(&run->ctx);
    c->pointers[i] = c->values[i]->data;
  }
  return 0;
}

/* The interpreter's options of a call. Natives are those of the executable, whose library may be another one than
 * that of the caller's other programs. */
static void call_set_options(const cpu_executable *exe, const rt_call_options *options, interp_options *out) {
  interp_read_call_options(out, options);
  out->alloc = exe->alloc;
  out->natives = cpu_native;
  out->natives_ctx = exe->blas;
}

/* The call's context, which is all zeros. The interpreter's tables are made only where some step needs them: they cost
 * more than a small program. */
static int call_begin(cpu_run *run, const rt_call_options *options, xlac_error *err) {
  assert(!run->ctx.plans && !run->ctx.options.registry);
  if (!run->exe->needs_interpreter) {
    call_set_options(run->exe, options, &run->ctx.options);
    run->ctx.err = err;
    interp_seed(&run->ctx);
    return 0;
  }
  interp_options own;
  call_set_options(run->exe, options, &own);
  return interp_begin(&run->ctx, run->exe->base.module, &own, err);
}

/* What is traced: what the caller asks for, or steps, without JSON, where only the options want to be told of them. */
static const rt_trace *call_trace(const rt_trace *trace, const rt_call_options *options) {
  static const rt_trace steps = {RT_TRACE_STEPS, NULL};
  return trace || !options->step ? trace : &steps;
}

/* Counting alone needs no clock, and so leaves the run as it is. */
static int call_begin_trace(cpu_run *run, const rt_trace *trace, cpu_profile *profile, xlac_error *err) {
  TRY(cpu_profile_begin(profile, base_alloc_libc, run->exe, trace->kind == RT_TRACE_LANES, err));
  if (trace->kind != RT_TRACE_COUNTS) run->profile = profile;
  return 0;
}

/* Writes the profile of a call that succeeded. Of one that failed there is nothing to be said. */
static void call_end_trace(cpu_run *run, const rt_trace *trace, const rt_call_options *options, cpu_profile *profile,
                           int status) {
  profile->ran = run->ran;
  if (status == 0 && trace->json) cpu_profile_put(profile, trace->json);
  if (status == 0 && options->step) cpu_profile_tell(profile, options);
  cpu_profile_end(profile);
}

/* A call from its beginning to its end. */
typedef struct call_state {
  cpu_run run;
  call_copies copies;
  char *frame;
  bool begun;
} call_state;

/* All that comes before the first step; call_leave follows, also after a failure. A small call is some hundred
 * instructions, so that these are part of their callers. */
static inline __attribute__((always_inline)) int call_enter(call_state *c, void *const *arguments, void *const *results,
                                                            const rt_call_options *options, xlac_error *err) {
  const cpu_executable *exe = c->run.exe;
  const plan_program *p = cpu_plan_of(exe);
  assert(!p->interpreted && p->n_arguments == exe->base.n_arguments);
  TRY(call_begin(&c->run, options, err));
  c->begun = true;
  if (call_is_suspect(exe, arguments)) {
    TRY(call_make_copies(&c->run, arguments, &c->copies));
    arguments = c->copies.pointers;
  }
  c->run.arguments = arguments;
  c->run.results = results;
  c->frame = rt_recycler_take(rt_host_memory(exe->host), (size_t)p->frame_bytes);
  return c->frame ? 0 : plan_out_of_memory(p, err);
}

static inline __attribute__((always_inline)) void call_leave(call_state *c) {
  const cpu_executable *exe = c->run.exe;
  rt_recycler_give(c->frame);
  if (exe->count && c->run.arguments) call_count(&c->run);
  if (c->copies.values || c->copies.pointers) call_drop_copies(&c->run, &c->copies);
  if (c->begun && exe->needs_interpreter) interp_end(&c->run.ctx);
}

static inline __attribute__((always_inline)) void call_init(call_state *c, const cpu_executable *exe,
                                                            const rt_call_options *options) {
  c->run = (cpu_run){.exe = exe, .stop = {.asked = options->interrupted, .ctx = options->interrupt_ctx}};
  c->copies = (call_copies){NULL, NULL};
  c->frame = NULL;
  c->begun = false;
}

/* In the frames of this one function lies all that a call needs: nothing is allocated but the frame, which is used
 * again. */
int cpu_call(const rt_executable *base, const rt_call_options *options, void *const *arguments, void *const *results,
             const rt_trace *trace, xlac_error *err) {
  const cpu_executable *exe = (const cpu_executable *)base;
  call_state c;
  cpu_profile profile;
  call_init(&c, exe, options);
  trace = call_trace(trace, options);
  if (trace) TRY(call_begin_trace(&c.run, trace, &profile, err));
  int status = call_enter(&c, arguments, results, options, err);
  if (status == 0) status = cpu_run_program(&c.run, cpu_plan_of(exe), c.run.arguments, results, c.frame);
  call_leave(&c);
  if (trace) call_end_trace(&c.run, trace, options, &profile, status);
  return status;
}

/* --- calls in turns --- */

/* One of them until its first turn. */
static int call_enter_turn(call_state *c, cpu_turn *t, const rt_turn *given, bool alone, xlac_error *err) {
  const cpu_executable *exe = c->run.exe;
  TRY(call_enter(c, given->arguments, given->results, &given->options, alone ? err : &t->err));
  t->frame = c->frame;
  cpu_bind_program(cpu_plan_of(exe), c->run.arguments, c->run.results, c->frame);
  return 0;
}

int cpu_call_in_turns(const rt_executable *base, rt_pool *pool, uint32_t n, const rt_turn *given, const rt_trace *trace,
                      uint32_t *failed, xlac_error *err) {
  const cpu_executable *exe = (const cpu_executable *)base;
  cpu_profile profile;
  cpu_turn *turns = rt_recycler_take(rt_host_memory(exe->host), n * (sizeof *turns + sizeof(call_state)));
  call_state *calls = (call_state *)(void *)(turns + n);
  int status = turns ? 0 : base_oom(err, "the calls of a group");
  uint32_t entered = 0;
  assert(n > 0 && base->meetings != RT_NO_TURNS);
  for (*failed = 0; entered < n && status == 0; entered++) {
    call_init(&calls[entered], exe, &given[entered].options);
    turns[entered] = (cpu_turn){.run = &calls[entered].run, .unread = given[entered].unread};
    *failed = entered;
    status = call_enter_turn(&calls[entered], &turns[entered], &given[entered], !pool, err);
  }
  trace = call_trace(trace, &given->options);
  bool traced = trace && status == 0;
  if (traced) traced = (status = call_begin_trace(&calls->run, trace, &profile, err)) == 0;
  if (status == 0) status = cpu_turns_run(turns, n, pool, failed);
  if (status && pool && turns && err && turns[*failed].err.code) *err = turns[*failed].err;
  for (uint32_t i = 0; i < entered; i++) {
    cpu_turn_end(&turns[i]);
    call_leave(&calls[i]);
  }
  if (traced) call_end_trace(&calls->run, trace, &given->options, &profile, status);
  rt_recycler_give(turns);
  return status;
}

/* --- on values --- */

/* An array on a recycled block of the host's, which goes back there with the last reference to the value. */
static interp_value *call_new_array(const cpu_executable *exe, const ir_type *t) {
  assert(ir_is_tensor(t));
  int64_t bytes = ir_type_bytes(t);
  void *block = rt_recycler_take(rt_host_memory(exe->host), (size_t)bytes);
  if (!block) return NULL;
  interp_value *v = interp_lend(exe->alloc, t->dtype, t->rank, t->dims, block, rt_recycler_give, block);
  if (!v) rt_recycler_give(block);
  return v;
}

/* A value of type t with memory for its arrays. NULL when out of memory. */
static interp_value *call_new_value(const cpu_executable *exe, interp_ctx *ctx, const ir_type *t) {
  if (ir_is_token(t)) return interp_token(ctx);
  if (ir_is_tensor(t)) return call_new_array(exe, t);
  interp_value **parts = base_malloc(exe->alloc, (size_t)t->n_elements * sizeof *parts), *v = NULL;
  uint32_t n = 0;
  while (parts && n < t->n_elements && (parts[n] = call_new_value(exe, ctx, t->elements[n]))) n++;
  if (parts && n == t->n_elements) v = interp_tuple(ctx, n, parts);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(exe->alloc, parts);
  return v;
}

/* The result is made first: a call writes to memory that is there. On failure *out is left as it was. */
int cpu_call_values(const rt_executable *base, const rt_call_options *options, uint32_t n, interp_value *const *args,
                    interp_value **out, const rt_trace *trace, xlac_error *err) {
  const cpu_executable *exe = (const cpu_executable *)base;
  const ir_computation *entry = base->module->entry;
  TRY(interp_check_args(entry, n, args, err));
  interp_ctx maker = {.err = err};
  maker.options.alloc = exe->alloc;
  interp_value *result = call_new_value(exe, &maker, ir_root(entry)->type);
  if (!result) return plan_out_of_memory(base->plan, err);
  int status = interp_call_arrays(exe->alloc, cpu_call, base, options, n, args, result, trace, err);
  if (status) {
    interp_release(result);
    return status;
  }
  *out = result;
  return 0;
}
