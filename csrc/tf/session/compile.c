/* Compiles what was lowered. */
#include "../../cpu/prepare.h"
#include "../../ir/verify/verify.h"
#include "run.h"

int tfs_compile_module(tfs_session *s, ir_module *m, cpu_executable **out, xlac_error *err) {
  const ir_verify_options lenient = {.xla_compat = true};
  cpu_options options = s->options.cpu;
  ir_module *ir = NULL;
  int status = cpu_copy_for_compiling(m, &ir, err);
  ir_module_destroy(m);
  if (status) return status;
  status = ir_verify(ir, &lenient, err);
  if (status == 0) status = cpu_run_passes(ir, options.fast, NULL, err);
  if (status) {
    ir_module_destroy(ir);
    return status;
  }
  options.runtime = s->runtime;
  return cpu_compile(out, ir, &options, err);
}
