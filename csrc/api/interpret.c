/* Running a module in the reference interpreter. */
#include "../driver/devices.h"
#include "api.h"

/* Verifies and counts the module as running, so that nobody edits it meanwhile. */
static int begin_run(xlac_module *m, xlac_error *err) {
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  /* What XLA accepts runs, also where it breaks XLA's own documentation. Free when nothing has changed since last time.
   */
  const ir_verify_options lenient = {.xla_compat = true};
  if (status == 0) status = ir_verify(m->ir, &lenient, err);
  if (status == 0) m->running++;
  return api_done(m, status);
}

static void end_run(xlac_module *m) {
  api_lock(m);
  assert(m->running > 0);
  m->running--;
  api_unlock(m);
}

static rt_call_options run_call_options(const xlac_interpret_options *options) {
  return (rt_call_options){.interrupted = options->interrupted,
                           .interrupt_ctx = options->interrupt_ctx,
                           .registry = api_registry(options->registry),
                           .seed = options->seed,
                           .probes = (interp_probes *)options->probes,
                           .replica = options->replica,
                           .partition = options->partition,
                           .async_order = (uint8_t)options->async_order,
                           .async_seed = options->async_seed};
}

int api_read_call_options(rt_call_options *out, const xlac_interpret_options *given, xlac_error *err) {
  xlac_interpret_options options;
  TRY(api_read_interpret_options(&options, given, err));
  *out = run_call_options(&options);
  return 0;
}

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
  const stablehlo_to_hlo_options executable = {.executable = true};
  ir_module *ir = NULL;
  api_lock(m);
  TRY(api_done(m, stablehlo_to_hlo(&ir, m->ir, &executable, err)));
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
