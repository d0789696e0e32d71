/* Compiles what was lowered. */
#include "../../driver/compile.h"
#include "run.h"

/* The session's options, on its devices: executables of one session share threads and memory. m goes in any case. */
int tfs_compile_module(tfs_session *s, ir_module *m, rt_executable **out, xlac_error *err) {
  const driver_options options = {.alloc = s->alloc, .devices = s->devices, .build = s->options.build};
  int status = driver_compile(m, &options, NULL, out, err);
  ir_module_destroy(m);
  return status;
}
