/* Running a module in the reference interpreter.
 *
 * A module is counted as running while it is interpreted, without holding its lock: other threads may read
 * it, edits fail. MLIR form is translated first, under the lock, and the translation is nobody else's. */
#include "../driver/devices.h"
#include "api.h"
#include "../interp/parallel/parallel.h"
#include "../convert/convert.h"

/* What XLA accepts runs, also where it breaks XLA's own documentation. Free when nothing has changed since last time.
 */
static int check_run(ir_module *m, xlac_error *err) {
  const ir_verify_options lenient = {.xla_compat = true};
  TRY(api_check_whole(m, err));
  return ir_verify(m, &lenient, err);
}

/* Verifies and counts the module as running, so that nobody edits it meanwhile. Every success is followed
 * by end_run. */
static int begin_run(xlac_module *m, xlac_error *err) {
  api_lock(m);
  int status = check_run(m->ir, err);
  if (status == 0) m->running++;
  return api_done(m, status);
}

static void end_run(xlac_module *m) {
  api_lock(m);
  assert(m->running > 0);
  m->running--;
  api_unlock(m);
}

/* Pointers stay the caller's for the time of the run. */
static rt_call_options run_call_options(const xlac_interpret_options *options) {
  return (rt_call_options){.interrupted = options->interrupted,
                           .interrupt_ctx = options->interrupt_ctx,
                           .registry = api_registry(options->registry),
                           .seed = options->seed,
                           .probes = (interp_probes *)options->probes,
                           .replica = options->replica,
                           .partition = options->partition,
                           .async_order = (uint8_t)options->async_order,
                           .async_seed = options->async_seed,
                           .step = options->step,
                           .step_ctx = options->step_ctx};
}

/* Errors: struct_size, as of all options. Options of this library's own size are read where they are: every call comes
 * by here. */
int api_read_call_options(rt_call_options *out, const xlac_interpret_options *given, xlac_error *err) {
  assert(out);
  if (given && given->struct_size == sizeof *given) {
    *out = run_call_options(given);
    return 0;
  }
  xlac_interpret_options options;
  TRY(api_read_interpret_options(&options, given, err));
  *out = run_call_options(&options);
  return 0;
}

/* The library is what custom calls to LAPACK and the like are looked up in: opened for the run, closed
 * after. */
static int run_checked(ir_module *ir, const xlac_interpret_options *options, uint32_t n_args, xlac_value *const *args,
                       xlac_value **out, xlac_error *err) {
  const rt_call_options call = run_call_options(options);
  interp_options inner;
  interp_value *result = NULL;
  interp_read_call_options(&inner, &call);
  inner.alloc = base_alloc_libc;
  inner.natives = driver_interp_library->find;
  TRY(driver_interp_library->open(&inner.natives_ctx, options->blas_path, inner.alloc, err));
  int status = interp_run(ir, &inner, n_args, (interp_value *const *)(const void *)args, &result, err);
  driver_interp_library->close(inner.natives_ctx);
  if (status == 0) *out = api_value_out(result);
  return status;
}

/* A module in MLIR form runs as what it means in HLO form; the translation costs little beside a run. */
static int run_mlir(xlac_module *m, const xlac_interpret_options *options, uint32_t n_args, xlac_value *const *args,
                    xlac_value **out, xlac_error *err) {
  const convert_to_hlo_options executable = {.executable = true};
  ir_module *ir = NULL;
  api_lock(m);
  TRY(api_done(m, convert_to_hlo(&ir, m->ir, &executable, err)));
  int status = run_checked(ir, options, n_args, args, out, err);
  ir_module_destroy(ir);
  return status;
}

int xlac_interpret(xlac_module *m, const xlac_interpret_options *given, uint32_t n_args, xlac_value *const *args,
                   xlac_value **out, xlac_error *err) {
  xlac_interpret_options options;
  TRY(api_read_interpret_options(&options, given, err));
  if (options.async_order > XLAC_ASYNC_SHUFFLED)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no async order %u", options.async_order);
  if (xlac_module_is_mlir(m)) return run_mlir(m, &options, n_args, args, out, err);
  TRY(begin_run(m, err));
  int status = run_checked(m->ir, &options, n_args, args, out, err);
  end_run(m);
  return status;
}

/* --- Running a module with several participants in the reference interpreter. --- */

/* Verifies and counts the module as running, so that nobody edits it meanwhile. Unlike begin_run, MLIR
 * form stays as it is until each program is known. */
static int parallel_begin(xlac_module *m, xlac_error *err) {
  api_lock(m);
  int status = 0;
  if (m->ir->form != IR_FORM_MLIR)
    status = check_run(m->ir, err);
  else if (!ir_verified_as(m->ir))
    status = stablehlo_verify(m->ir, err);
  if (status == 0) m->running++;
  return api_done(m, status);
}

/* By name, "main"; NULL names the entry. */
static ir_computation *program_of(const ir_module *m, const char *name) {
  if (!name) return m->entry;
  IR_FOR_COMPUTATIONS(c, m) {
    if (strcmp(c->name->s, name) == 0) return c;
  }
  return NULL;
}

/* A function of a module in MLIR form, as the entry of a module of its own in HLO form. */
static int program_translate(xlac_module *m, ir_computation *function, ir_module **out, xlac_error *err) {
  const convert_to_hlo_options executable = {.executable = true, .entry = function};
  api_lock(m);
  return api_done(m, convert_to_hlo(out, m->ir, &executable, err));
}

/* What the participants run: n = replicas x partitions programs, replica by replica. */
typedef struct parallel_programs {
  uint32_t n;
  interp_program *programs;
  ir_module **made; /* by participant: a translation it is the first to use, or NULL */
} parallel_programs;

/* Programs of one function share one translation. */
static int program_find(xlac_module *m, parallel_programs *p, const xlac_program *from, uint32_t i, xlac_error *err) {
  ir_computation *c = program_of(m->ir, from[i].name);
  if (!c)
    return base_fail(err, XLAC_E_UNKNOWN_NAME, "program %u is %.200s, which is not a computation of the module", i,
                     from[i].name ? from[i].name : "the entry");
  p->programs[i].computation = c;
  if (m->ir->form != IR_FORM_MLIR) return 0;
  for (uint32_t k = 0; k < i; k++) {
    if (program_of(m->ir, from[k].name) != c) continue;
    p->programs[i].computation = p->programs[k].computation;
    return 0;
  }
  TRY(program_translate(m, c, &p->made[i], err));
  p->programs[i].computation = p->made[i]->entry;
  return 0;
}

/* Arguments and infeed are borrowed from the caller's list. */
static int parallel_find(xlac_module *m, parallel_programs *p, const xlac_program *from, xlac_error *err) {
  for (uint32_t i = 0; i < p->n; i++) {
    TRY(program_find(m, p, from, i, err));
    p->programs[i].n_args = from[i].n_args;
    p->programs[i].args = (interp_value *const *)(const void *)from[i].args;
    p->programs[i].n_infeed = from[i].n_infeed;
    p->programs[i].infeed = (interp_value *const *)(const void *)from[i].infeed;
  }
  return 0;
}

/* partition_major: StableHLO orders the members of a cross-replica-and-partition group by partition first,
 * HLO by replica. */
static int parallel_run_checked(xlac_module *m, const xlac_interpret_options *options, interp_grid *grid, uint32_t n,
                                const xlac_program *programs, xlac_value **results, xlac_value **outfeeds,
                                xlac_error *err) {
  interp_options inner = {.alloc = base_alloc_libc};
  parallel_programs p = {.n = n};
  p.programs = base_malloc(base_alloc_libc, n * sizeof *p.programs);
  p.made = base_malloc(base_alloc_libc, n * sizeof *p.made);
  int status = p.programs && p.made ? 0 : base_oom(err, "the programs");
  if (p.made) memset(p.made, 0, n * sizeof *p.made);
  inner.interrupted = options->interrupted;
  inner.interrupt_ctx = options->interrupt_ctx;
  inner.registry = api_registry(options->registry);
  inner.seed = options->seed;
  inner.probes = (interp_probes *)options->probes;
  grid->programs = p.programs;
  grid->partition_major = m->ir->form == IR_FORM_MLIR;
  if (!status) status = parallel_find(m, &p, programs, err);
  if (!status)
    status =
        interp_run_parallel(&inner, grid, (interp_value **)(void *)results, (interp_value **)(void *)outfeeds, err);
  for (uint32_t i = 0; p.made && i < n; i++)
    if (p.made[i]) ir_module_destroy(p.made[i]);
  base_free(base_alloc_libc, p.made);
  base_free(base_alloc_libc, p.programs);
  return status;
}

/* results and outfeeds have a place for each participant. */
int xlac_run_parallel(xlac_module *m, const xlac_interpret_options *given, int64_t replicas, int64_t partitions,
                      const xlac_program *programs, xlac_value **results, xlac_value **outfeeds, xlac_error *err) {
  xlac_interpret_options options;
  int64_t n;
  TRY(api_read_interpret_options(&options, given, err));
  if (replicas < 1 || partitions < 1 || !base_mul_i64(replicas, partitions, &n) || n > INTERP_MAX_PARTICIPANTS)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%lld x %lld participants; expected 1 to %d in all", (long long)replicas,
                     (long long)partitions, INTERP_MAX_PARTICIPANTS);
  interp_grid grid = {.replicas = replicas, .partitions = partitions};
  TRY(parallel_begin(m, err));
  int status = parallel_run_checked(m, &options, &grid, (uint32_t)n, programs, results, outfeeds, err);
  end_run(m);
  return status;
}
