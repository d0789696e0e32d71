/* CUDA C++ to machine code by NVRTC. */
#include <stdio.h>

#include "cache.h"
#include "executable.h"

enum { CU_COMPILE_OPTIONS = 4, CU_COMPILE_MORE = 2, CU_COMPILE_KNOWN = 64 };

/* What is compiled for. */
typedef struct cu_compile_target {
  char option[48]; /* "--gpu-architecture=sm_90" */
  bool portable;   /* the driver is given PTX, and makes machine code of it: NVRTC does not know this GPU, or the
                    kernel calls what only the driver has */
} cu_compile_target;

/* What becomes of a source. */
typedef struct cu_compile_image {
  char *code;
  size_t bytes;
} cu_compile_image;

static int cu_compile_check(const cuda_driver *d, cuda_compile_result result, const char *doing, xlac_error *err) {
  if (result == 0) return 0;
  const char *text = d->nvrtcGetErrorString(result);
  return base_fail(err, XLAC_E_DEVICE, "%s: NVRTC %d.%d says %s", doing, d->compiler_major, d->compiler_minor,
                   text ? text : "nothing");
}

/* NULL where there is none. */
static char *cu_compile_log(const cuda_driver *d, cuda_source_handle program, base_alloc alloc) {
  size_t n = 0;
  char *log = NULL;
  if (d->nvrtcGetProgramLogSize(program, &n) == 0 && n > 0 && (log = base_malloc(alloc, n + 1))) {
    log[n] = 0;
    if (d->nvrtcGetProgramLog(program, log)) log[0] = 0;
  }
  return log;
}

/* Whether ptxas, which says for each kernel how many bytes it spills, says so of more than none. */
static bool cu_compile_spills(const cuda_driver *d, cuda_source_handle program, base_alloc alloc) {
  static const char says[] = " bytes spill stores";
  char *log = cu_compile_log(d, program, alloc);
  bool spills = false;
  for (const char *at = log; at && !spills && (at = strstr(at, says)); at++)
    spills = at >= log + 2 && (at[-1] != '0' || at[-2] != ' ');
  base_free(alloc, log);
  return spills;
}

/* The beginning of the log, which has the first error. */
static int cu_compile_failed(const cuda_driver *d, cuda_source_handle program, base_alloc alloc, xlac_error *err) {
  char *log = cu_compile_log(d, program, alloc);
  int status = base_fail(err, XLAC_E_INTERNAL, "NVRTC refuses a kernel that xlac has printed: %.600s", log ? log : "");
  base_free(alloc, log);
  return status;
}

/* The newest that NVRTC knows and that this GPU runs. */
static int cu_compile_choose(const cuda_device *d, bool portable, cu_compile_target *out, xlac_error *err) {
  const cuda_driver *c = &d->driver;
  int n = 0, known[CU_COMPILE_KNOWN], own = 10 * d->major + d->minor, best = 0;
  if (c->nvrtcGetNumSupportedArchs(&n) || n > CU_COMPILE_KNOWN || c->nvrtcGetSupportedArchs(known)) n = 0;
  for (int i = 0; i < n; i++)
    if (known[i] <= own && known[i] > best) best = known[i];
  if (n > 0 && best == 0)
    return base_hint(
        err,
        base_fail(err, XLAC_E_DEVICE, "NVRTC %d.%d compiles for no GPU as old as this one, %s of capability %d.%d",
                  c->compiler_major, c->compiler_minor, d->name, d->major, d->minor),
        "install an older NVRTC, or name it in XLAC_NVRTC");
  out->portable = portable || (n > 0 && best != own);
  snprintf(out->option, sizeof out->option, "--gpu-architecture=%s_%d", out->portable ? "compute" : "sm",
           n > 0 ? best : own);
  return 0;
}

static int cu_compile_take(const cuda_driver *d, cuda_source_handle program, bool portable, base_alloc alloc,
                           cu_compile_image *image, xlac_error *err) {
  size_t n = 0;
  TRY(cu_compile_check(d, (portable ? d->nvrtcGetPTXSize : d->nvrtcGetCUBINSize)(program, &n),
                       "asking for machine code", err));
  char *code = base_malloc(alloc, n);
  if (!code) return base_oom(err, "machine code");
  int status =
      cu_compile_check(d, (portable ? d->nvrtcGetPTX : d->nvrtcGetCUBIN)(program, code), "taking machine code", err);
  if (status)
    base_free(alloc, code);
  else
    *image = (cu_compile_image){code, n};
  return status;
}

/* *again: it spills, and was compiled only to be found out. NULL: it is taken as it is. */
static int cu_compile_program(const cuda_driver *d, cuda_source_handle program, const char *const *options, int n,
                              bool portable, bool *again, base_alloc alloc, cu_compile_image *image, xlac_error *err) {
  cuda_compile_result result = d->nvrtcCompileProgram(program, n, options);
  if (result) return cu_compile_failed(d, program, alloc, err);
  if (again) *again = cu_compile_spills(d, program, alloc);
  return again && *again ? 0 : cu_compile_take(d, program, portable, alloc, image, err);
}

/* Sources with integers of 128 bits need an option of their own. ptxas weighs registers against blocks that run beside
 * each other, and takes some spilling into the bargain: the kernels of such a source may have more registers
 * instead, for one block if need be. What does not spill is never compiled twice. */
static int cu_compile_source(const cuda_driver *c, const char *source, const char *const *options, bool portable,
                             base_alloc alloc, cu_compile_image *image, xlac_error *err) {
  const char *all[CU_COMPILE_OPTIONS + CU_COMPILE_MORE];
  int n = CU_COMPILE_OPTIONS, status = 0;
  bool again = strstr(source, ", " CUDA_SOURCE_BLOCKS) != NULL;
  memcpy(all, options, CU_COMPILE_OPTIONS * sizeof *all);
  if (strstr(source, "__int128")) all[n++] = "--device-int128";
  for (bool asks = again; status == 0; asks = false) {
    cuda_source_handle program = NULL;
    TRY(cu_compile_check(c, c->nvrtcCreateProgram(&program, source, "xlac.cu", 0, NULL, NULL), "reading kernels", err));
    status = cu_compile_program(c, program, all, n, portable, asks ? &again : NULL, alloc, image, err);
    c->nvrtcDestroyProgram(&program);
    if (!asks || !again) break;
    all[n++] = "-D" CUDA_SOURCE_BLOCKS "=1";
  }
  assert(n <= CU_COMPILE_OPTIONS + CU_COMPILE_MORE);
  return status;
}

/* What it is a sum of, besides how it is compiled. */
static base_sum cu_compile_sum(const cuda_compiled *what, base_sum so_far) {
  if (!what->source) return base_sum_of(so_far, what->text, strlen(what->text));
  return cuda_source_sum(what->source, what->kernels, what->n_kernels, so_far);
}

static int cu_compile_text(const cuda_driver *c, const cuda_compiled *what, const char *const *options, bool portable,
                           base_alloc alloc, cu_compile_image *made, xlac_error *err) {
  base_text out;
  if (!what->source) return cu_compile_source(c, what->text, options, portable, alloc, made, err);
  base_text_init(&out, alloc);
  cuda_source_put(what->source, what->kernels, what->n_kernels, &out);
  const char *text = base_text_cstr(&out);
  int status =
      text ? cu_compile_source(c, text, options, portable, alloc, made, err) : base_oom(err, "the text of kernels");
  base_text_free(&out);
  return status;
}

int cuda_compile(const cuda_device *d, const cuda_compiled *what, base_alloc alloc, char **image, xlac_error *err) {
  const cuda_driver *c = &d->driver;
  cu_compile_target target;
  /* Without contraction a float is what each operation rounds it to, as on the CPU. */
  bool fast = what->source && what->source->fast;
  char how[128], path[CUDA_CACHE_PATH];
  cu_compile_image made = {NULL, 0};
  if (!c->compiler.handle)
    return base_hint(
        err, base_fail(err, XLAC_E_DEVICE, "no NVRTC, which compiles kernels: tried %.700s", c->compiler.missing),
        "pip install nvidia-cuda-nvrtc, or name the library in XLAC_NVRTC");
  TRY(cu_compile_choose(d, what->portable, &target, err));
  const char *const options[CU_COMPILE_OPTIONS] = {target.option, fast ? "--fmad=true" : "--fmad=false", "--std=c++17",
                                                   "--ptxas-options=-v"};
  snprintf(how, sizeof how, "%s %s NVRTC %d.%d", target.option, options[1], c->compiler_major, c->compiler_minor);
  bool kept = cuda_cache_path(cu_compile_sum(what, base_sum_of(what->functions, how, strlen(how))), path, sizeof path);
  if (kept && (*image = cuda_cache_read(path, alloc))) return 0;
  TRY(cu_compile_text(c, what, options, target.portable, alloc, &made, err));
  if (kept) cuda_cache_write(path, made.code, made.bytes);
  *image = made.code;
  return 0;
}
