/* The door: arguments checked and taken apart into leaves, results made. */
#include "linalg/lapack.h"
#include "run.h"

BASE_VEC(call_leaves, void *);

static bool call_take_leaves(base_alloc alloc, const interp_value *v, call_leaves *leaves) {
  if (v->kind != INTERP_TUPLE) return BASE_VEC_PUSH(alloc, leaves, v->data);
  for (uint32_t i = 0; i < v->n_elements; i++)
    if (!call_take_leaves(alloc, v->elements[i], leaves)) return false;
  return true;
}

/* An array on a block of the runtime's. */
static interp_value *call_new_array(cpu_run *run, const ir_type *t) {
  int64_t bytes = ir_type_bytes(t);
  void *block = base_recycler_take(cpu_runtime_memory(run->exe->runtime), (size_t)bytes);
  if (!block) return NULL;
  interp_value *v = interp_lend(run->exe->alloc, t->dtype, t->rank, t->dims, block, base_recycler_give, block);
  if (!v) base_recycler_give(block);
  return v;
}

/* A value of type t with memory for its arrays. NULL when out of memory. */
static interp_value *call_new_value(cpu_run *run, const ir_type *t) {
  interp_ctx *ctx = &run->ctx;
  if (ir_is_token(t)) return interp_token(ctx);
  if (ir_is_tensor(t)) return call_new_array(run, t);
  interp_value **parts = base_malloc(ctx->options.alloc, (size_t)t->n_elements * sizeof *parts), *v = NULL;
  uint32_t n = 0;
  while (parts && n < t->n_elements && (parts[n] = call_new_value(run, t->elements[n]))) n++;
  if (parts && n == t->n_elements) v = interp_tuple(ctx, n, parts);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(ctx->options.alloc, parts);
  return v;
}

/* Results in the memory of arguments, and all that was copied. */
static void call_count(cpu_run *run) {
  const plan_program *p = run->exe->program;
  cpu_tally *t = &run->tally;
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

static int call_in_frame(cpu_run *run, void *const *arguments, void *const *results) {
  const plan_program *p = run->exe->program;
  char *frame = base_recycler_take(cpu_runtime_memory(run->exe->runtime), (size_t)p->frame_bytes);
  if (!frame) return plan_out_of_memory(p, run->ctx.err);
#if !defined(NDEBUG) || defined(XLAC_POISON)
  memset(frame, 0xA5, (size_t)p->frame_bytes); /* who reads what nobody wrote shall not find zeros */
#endif
  run->arguments = arguments;
  run->results = results;
  int status = cpu_run_program(run, p, arguments, results, frame);
  base_recycler_give(frame);
  if (run->exe->count) call_count(run);
  return status;
}

/* --- on bare memory --- */

static bool call_is_narrow(const ir_type *t) {
  return ir_is_tensor(t) && base_dtype_of((base_dtype)t->dtype)->bits < 8;
}

static bool call_is_misaligned(const ir_type *t, const void *p) {
  if (!ir_is_tensor(t)) return false;
  const base_dtype_info *d = base_dtype_of((base_dtype)t->dtype);
  return (uintptr_t)p % (d->kind == BASE_KIND_COMPLEX ? d->bytes / 2u : d->bytes) != 0;
}

/* Whether an argument may be one that kernels can't read as it is. */
static bool call_is_suspect(const cpu_executable *exe, void *const *arguments) {
  bool suspect = false;
  for (uint32_t i = 0; i < exe->program->n_arguments; i++)
    suspect |= call_is_narrow(exe->argument_types[i]) || call_is_misaligned(exe->argument_types[i], arguments[i]);
  return suspect;
}

/* Copies of what is misaligned or holds bits that its type has not. */
static int call_cleaned_leaves(cpu_run *run, void *const *arguments, void *const *results) {
  const cpu_executable *exe = run->exe;
  uint32_t n = exe->program->n_arguments, made = 0;
  interp_value **clean = base_malloc(exe->alloc, (n + 1u) * sizeof *clean);
  void **pointers = base_malloc(exe->alloc, (n + 1u) * sizeof *pointers);
  int status = clean && pointers ? 0 : base_oom(run->ctx.err, "the arguments");
  while (status == 0 && made < n) {
    const ir_type *t = exe->argument_types[made];
    interp_value *v = NULL;
    if (ir_is_tensor(t))
      v = interp_lend(exe->alloc, t->dtype, t->rank, t->dims, arguments[made], NULL, NULL);
    else
      v = interp_token(&run->ctx);
    if (!v) {
      status = base_oom(run->ctx.err, "the arguments");
    } else if (!(clean[made] = interp_clean(&run->ctx, v))) {
      status = interp_failed(&run->ctx);
    } else {
      pointers[made] = clean[made]->data;
      made++;
    }
    interp_release(v);
  }
  if (status == 0) status = call_in_frame(run, pointers, results);
  for (uint32_t i = 0; i < made; i++) interp_release(clean[i]);
  base_free(exe->alloc, clean);
  base_free(exe->alloc, pointers);
  return status;
}

static interp_options call_options(const cpu_executable *exe, const interp_options *options) {
  interp_options own = *options;
  own.alloc = exe->alloc;
  own.natives = cpu_native;
  own.natives_ctx = exe->blas;
  return own;
}

/* A run without the interpreter's tables. */
static void call_begin_light(cpu_run *run, const interp_options *options, xlac_error *err) {
  memset(&run->ctx, 0, sizeof run->ctx);
  run->ctx.options = call_options(run->exe, options);
  run->ctx.err = err;
  interp_seed(&run->ctx);
}

int cpu_execute_leaves(const cpu_executable *exe, const interp_options *options, void *const *arguments,
                       void *const *results, cpu_profile *profile, xlac_error *err) {
  cpu_run run = {.exe = exe, .stop = {.asked = options->interrupted, .ctx = options->interrupt_ctx}};
  run.profile = profile && !profile->quiet ? profile : NULL;
  assert(!exe->program->interpreted);
  if (exe->needs_interpreter) {
    interp_options own = call_options(exe, options);
    TRY(interp_begin(&run.ctx, exe->m, &own, err));
  } else {
    call_begin_light(&run, options, err);
  }
  bool suspect = call_is_suspect(exe, arguments);
  int status = suspect ? call_cleaned_leaves(&run, arguments, results) : call_in_frame(&run, arguments, results);
  if (exe->needs_interpreter) interp_end(&run.ctx);
  if (profile) profile->ran = run.ran;
  return status;
}

/* --- on values --- */

static int call_values(const cpu_executable *exe, const interp_options *options, uint32_t n, interp_value *const *args,
                       interp_value *result, cpu_profile *profile, xlac_error *err) {
  call_leaves arguments = {NULL, 0, 0}, results = {NULL, 0, 0};
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) ok = call_take_leaves(exe->alloc, args[i], &arguments);
  ok = ok && call_take_leaves(exe->alloc, result, &results);
  assert(!ok || (arguments.n == exe->program->n_arguments && results.n == exe->program->n_results));
  int status = ok ? cpu_execute_leaves(exe, options, arguments.items, results.items, profile, err)
                  : base_oom(err, "a call's arguments");
  BASE_VEC_FREE(exe->alloc, &arguments);
  BASE_VEC_FREE(exe->alloc, &results);
  return status;
}

static int call_planned(const cpu_executable *exe, const interp_options *options, uint32_t n, interp_value *const *args,
                        interp_value **out, cpu_profile *profile, xlac_error *err) {
  cpu_run maker = {.exe = exe};
  call_begin_light(&maker, options, err);
  interp_value *result = call_new_value(&maker, ir_root(exe->m->entry)->type);
  if (!result) return plan_out_of_memory(exe->program, err);
  int status = call_values(exe, options, n, args, result, profile, err);
  if (status) {
    interp_release(result);
    return status;
  }
  *out = result;
  return 0;
}

int cpu_execute_profiled(const cpu_executable *exe, const interp_options *options, uint32_t n_args,
                         interp_value *const *args, interp_value **out, cpu_profile *profile, xlac_error *err) {
  const ir_computation *entry = exe->m->entry;
  TRY(interp_check_args(entry, n_args, args, err));
  if (!exe->program->interpreted) return call_planned(exe, options, n_args, args, out, profile, err);
  interp_ctx ctx;
  interp_options own = call_options(exe, options);
  TRY(interp_begin(&ctx, exe->m, &own, err));
  int status = interp_run_in(&ctx, entry, n_args, args, out);
  interp_end(&ctx);
  return status;
}

int cpu_execute(const cpu_executable *exe, const interp_options *options, uint32_t n_args, interp_value *const *args,
                interp_value **out, xlac_error *err) {
  return cpu_execute_profiled(exe, options, n_args, args, out, NULL, err);
}
