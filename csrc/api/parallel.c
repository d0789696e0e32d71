/* Running a module with several participants in the reference interpreter. */
#include "../interp/parallel.h"
#include "api.h"

/* Verifies and counts the module as running, so that nobody edits it meanwhile. */
static int parallel_begin(xlac_module *m, xlac_error *err) {
  const ir_verify_options lenient = {.xla_compat = true};
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0) status = ir_verify(m->ir, &lenient, err);
  if (status == 0) m->running++;
  return api_done(m, status);
}

static void parallel_end(xlac_module *m) {
  api_lock(m);
  assert(m->running > 0);
  m->running--;
  api_unlock(m);
}

static const ir_computation *program_of(const ir_module *m, const char *name) {
  if (!name) return m->entry;
  IR_FOR_COMPUTATIONS(c, m) {
    if (strcmp(c->name->s, name) == 0) return c;
  }
  return NULL;
}

static int parallel_programs(const ir_module *m, uint32_t n, const xlac_program *from, interp_program *to,
                             xlac_error *err) {
  for (uint32_t i = 0; i < n; i++) {
    to[i].computation = program_of(m, from[i].name);
    if (!to[i].computation)
      return base_fail(err, XLAC_E_UNKNOWN_NAME, "program %u is %.200s, which is no computation of the module", i,
                       from[i].name);
    to[i].n_args = from[i].n_args;
    to[i].args = (interp_value *const *)(const void *)from[i].args;
    to[i].n_infeed = from[i].n_infeed;
    to[i].infeed = (interp_value *const *)(const void *)from[i].infeed;
  }
  return 0;
}

static int parallel_run_checked(ir_module *m, const xlac_interpret_options *options, interp_grid *grid, uint32_t n,
                                const xlac_program *programs, xlac_value **results, xlac_value **outfeeds,
                                xlac_error *err) {
  interp_options inner = {.alloc = base_alloc_libc};
  interp_program *own = base_malloc(base_alloc_libc, n * sizeof *own);
  if (!own) return base_oom(err, "the programs");
  if (options) {
    inner.interrupted = options->interrupted;
    inner.interrupt_ctx = options->interrupt_ctx;
    inner.registry = api_registry(options->registry);
    inner.seed = options->seed;
  }
  grid->programs = own;
  int status = parallel_programs(m, n, programs, own, err);
  if (!status)
    status =
        interp_run_parallel(m, &inner, grid, (interp_value **)(void *)results, (interp_value **)(void *)outfeeds, err);
  base_free(base_alloc_libc, own);
  return status;
}

int xlac_run_parallel(xlac_module *m, const xlac_interpret_options *options, int64_t replicas, int64_t partitions,
                      const xlac_program *programs, xlac_value **results, xlac_value **outfeeds, xlac_error *err) {
  int64_t n;
  if (replicas < 1 || partitions < 1 || !base_mul_i64(replicas, partitions, &n) || n > INTERP_MAX_PARTICIPANTS)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%lld x %lld participants; expected 1 to %d in all", (long long)replicas,
                     (long long)partitions, INTERP_MAX_PARTICIPANTS);
  interp_grid grid = {.replicas = replicas, .partitions = partitions};
  TRY(parallel_begin(m, err));
  int status = parallel_run_checked(m->ir, options, &grid, (uint32_t)n, programs, results, outfeeds, err);
  parallel_end(m);
  return status;
}
