/* Compiles what was lowered. */
#include "../../driver/compile.h"
#include "run.h"

/* The session's options, on its runtime: executables of one session share threads and memory. m goes in any case. */
int tfs_compile_module(tfs_session *s, ir_module *m, cpu_executable **out, xlac_error *err) {
  driver_options options = {.cpu = s->options.cpu};
  options.cpu.runtime = s->runtime;
  int status = driver_compile(m, &options, NULL, out, err);
  ir_module_destroy(m);
  return status;
}
