/* CUDA C++ to machine code by NVRTC. */
#include <stdio.h>

#include "executable.h"

enum { CU_COMPILE_OPTIONS = 4 };

static int cu_compile_check(const cuda_driver *d, cuda_compile_result result, const char *doing, xlac_error *err) {
  if (result == 0) return 0;
  const char *text = d->nvrtcGetErrorString(result);
  return base_fail(err, XLAC_E_DEVICE, "%s: NVRTC %d.%d says %s", doing, d->compiler_major, d->compiler_minor,
                   text ? text : "nothing");
}

/* The beginning of the log, which has the first error. */
static int cu_compile_failed(const cuda_driver *d, cuda_source_handle program, base_alloc alloc, xlac_error *err) {
  size_t n = 0;
  char *log = NULL;
  if (d->nvrtcGetProgramLogSize(program, &n) == 0 && n > 0 && (log = base_malloc(alloc, n + 1))) {
    log[n] = 0;
    if (d->nvrtcGetProgramLog(program, log)) log[0] = 0;
  }
  int status = base_fail(err, XLAC_E_INTERNAL, "NVRTC refuses a kernel that xlac has printed: %.600s", log ? log : "");
  base_free(alloc, log);
  return status;
}

static int cu_compile_take(const cuda_driver *d, cuda_source_handle program, base_alloc alloc, char **image,
                           xlac_error *err) {
  size_t n = 0;
  TRY(cu_compile_check(d, d->nvrtcGetCUBINSize(program, &n), "asking for machine code", err));
  char *code = base_malloc(alloc, n);
  if (!code) return base_oom(err, "machine code");
  int status = cu_compile_check(d, d->nvrtcGetCUBIN(program, code), "taking machine code", err);
  if (status)
    base_free(alloc, code);
  else
    *image = code;
  return status;
}

/* Without contraction a float is what each operation rounds it to, as on the CPU. `wide`: it has integers of 128 bits.
 */
static int cu_compile_program(const cuda_device *d, cuda_source_handle program, bool fast, bool wide, base_alloc alloc,
                              char **image, xlac_error *err) {
  char architecture[48];
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", d->major, d->minor);
  const char *const options[CU_COMPILE_OPTIONS] = {architecture, fast ? "--fmad=true" : "--fmad=false", "--std=c++17",
                                                   "--device-int128"};
  cuda_compile_result result = d->driver.nvrtcCompileProgram(program, CU_COMPILE_OPTIONS - !wide, options);
  if (result) return cu_compile_failed(&d->driver, program, alloc, err);
  return cu_compile_take(&d->driver, program, alloc, image, err);
}

int cuda_compile(const cuda_device *d, const char *source, bool fast, base_alloc alloc, char **image, xlac_error *err) {
  cuda_source_handle program = NULL;
  const cuda_driver *c = &d->driver;
  if (!c->compiler_library)
    return base_hint(
        err, base_fail(err, XLAC_E_DEVICE, "no NVRTC, which compiles kernels: tried %.700s", c->compiler_missing),
        "pip install nvidia-cuda-nvrtc, or name the library in XLAC_NVRTC");
  TRY(cu_compile_check(c, c->nvrtcCreateProgram(&program, source, "xlac.cu", 0, NULL, NULL), "reading kernels", err));
  int status = cu_compile_program(d, program, fast, strstr(source, "__int128") != NULL, alloc, image, err);
  c->nvrtcDestroyProgram(&program);
  return status;
}
