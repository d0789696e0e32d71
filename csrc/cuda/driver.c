/* Finding the driver and the libraries beside it. Each that isn't found is named with what was tried, and a driver that
 * lacks an entry point by that one. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  CU_DRIVER_LEAST = 12000, /* CUDA 12.0: the oldest whose entry points are all in the table */
  CU_DRIVER_NEWER = 12040  /* from which on nodes that run by conditions may have copies in them */
};

/* Notes of what was tried, cut where there is no room. */
static void cu_driver_note(char *notes, size_t room, const char *what) {
  size_t n = strlen(notes);
  assert(n < room);
  snprintf(notes + n, room - n, "%s%s", n ? ", " : "", what);
}

/* --- entry points --- */

/* The names of a library's, each with its zero, and one more; they are bound to members of cuda_driver that lie in the
 * same order. */
#define CUDA_CALL(result, name, parameters) #name "\0"
#define CUDA_NEWER(result, name, parameters)
#define CUDA_COMPILER(result, name, parameters)
#define CUDA_BLAS(result, name, parameters)
#define CUDA_NCCL(result, name, parameters)
static const char cu_driver_calls[] =
#include "driver.def"
    ;
#define CUDA_CALL(result, name, parameters)
#define CUDA_NEWER(result, name, parameters) #name "\0"
#define CUDA_COMPILER(result, name, parameters)
#define CUDA_BLAS(result, name, parameters)
#define CUDA_NCCL(result, name, parameters)
static const char cu_driver_newer_calls[] =
#include "driver.def"
    ;
#define CUDA_CALL(result, name, parameters)
#define CUDA_NEWER(result, name, parameters)
#define CUDA_COMPILER(result, name, parameters) #name "\0"
#define CUDA_BLAS(result, name, parameters)
#define CUDA_NCCL(result, name, parameters)
static const char cu_driver_compiler_calls[] =
#include "driver.def"
    ;
#define CUDA_CALL(result, name, parameters)
#define CUDA_NEWER(result, name, parameters)
#define CUDA_COMPILER(result, name, parameters)
#define CUDA_BLAS(result, name, parameters) #name "\0"
#define CUDA_NCCL(result, name, parameters)
static const char cu_driver_blas_calls[] =
#include "driver.def"
    ;
#define CUDA_CALL(result, name, parameters)
#define CUDA_NEWER(result, name, parameters)
#define CUDA_COMPILER(result, name, parameters)
#define CUDA_BLAS(result, name, parameters)
#define CUDA_NCCL(result, name, parameters) #name "\0"
static const char cu_driver_nccl_calls[] =
#include "driver.def"
    ;

/* All of a library; *missing is the first that there is none of. A pointer to an object becomes one to a function by
 * way of memcpy, since ISO C has no cast for that. */
static bool cu_driver_bind(cuda_driver *d, size_t first, const char *names, void *library, const char **missing) {
  char *at = (char *)d + first;
  for (const char *name = names; *name; name += strlen(name) + 1, at += sizeof(void *)) {
    void *symbol = dlsym(library, name);
    *missing = name;
    if (!symbol) return false;
    memcpy(at, &symbol, sizeof symbol);
  }
  return true;
}

/* --- libraries that may be missing --- */

/* What a library is called, newer ones first, and where wheels put it, below the folder of packages. */
typedef struct cu_driver_library {
  size_t first; /* of its entry points in cuda_driver */
  const char *calls, *names[3], *folders[3];
} cu_driver_library;

static const cu_driver_library cu_driver_compiler = {offsetof(cuda_driver, nvrtcVersion),
                                                     cu_driver_compiler_calls,
                                                     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                                                     {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib"}};
static const cu_driver_library cu_driver_blas = {offsetof(cuda_driver, cublasLtCreate),
                                                 cu_driver_blas_calls,
                                                 {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                                                 {"nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cu12/lib"}};
static const cu_driver_library cu_driver_nccl = {offsetof(cuda_driver, ncclGetErrorString),
                                                 cu_driver_nccl_calls,
                                                 {"libnccl.so.2", "libnccl.so", "libnccl.so.2"},
                                                 {"nvidia/nccl/lib", "nvidia/cu13/lib", "nvidia/cu12/lib"}};
enum { CU_DRIVER_NAMES = 3 };

/* What is being looked for. */
typedef struct cu_driver_search {
  cuda_driver *d;
  const cu_driver_library *what;
  cuda_library *out;
} cu_driver_search;

/* Libraries stay: what they gave out is in use for as long as the process lives. */
static bool cu_driver_try(const cu_driver_search *s, const char *path) {
  const char *missing = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  cu_driver_note(s->out->missing, sizeof s->out->missing, path);
  if (!library) return false;
  if (!cu_driver_bind(s->d, s->what->first, s->what->calls, library, &missing)) {
    cu_driver_note(s->out->missing, sizeof s->out->missing, "which has no ");
    cu_driver_note(s->out->missing, sizeof s->out->missing, missing);
    dlclose(library);
    return false;
  }
  s->out->handle = library;
  snprintf(s->out->path, sizeof s->out->path, "%s", path);
  return true;
}

/* Each name in folder/below. */
static bool cu_driver_try_folder(const cu_driver_search *s, const char *folder, size_t n, const char *below) {
  char path[512];
  for (size_t i = 0; i < CU_DRIVER_NAMES; i++) {
    int length = snprintf(path, sizeof path, "%.*s/%s/%s", (int)n, folder, below, s->what->names[i]);
    if (length > 0 && (size_t)length < sizeof path && cu_driver_try(s, path)) return true;
  }
  return false;
}

/* In folders of Python's packages, with colons between them. */
static bool cu_driver_try_wheels(const cu_driver_search *s, const char *folders) {
  for (const char *at = folders; at && *at;) {
    size_t n = strcspn(at, ":");
    for (size_t i = 0; n && i < CU_DRIVER_NAMES; i++)
      if (cu_driver_try_folder(s, at, n, s->what->folders[i])) return true;
    at += n + (at[n] == ':');
  }
  return false;
}

/* The order of cuda.pathfinder: a path or a driver that somebody chose, which may be NULL; wheels; a toolkit's folder;
 * what the system's linker finds. */
static void cu_driver_find(cuda_driver *d, const char *path, const cu_driver_library *what, cuda_library *out) {
  const char *missing = NULL;
  const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  const char *chosen = getenv("XLAC_CUDA_DRIVER");
  const cu_driver_search s = {d, what, out};
  if (path && *path && cu_driver_try(&s, path)) return;
  if (chosen && *chosen && cu_driver_bind(d, what->first, what->calls, d->driver_library, &missing)) {
    out->handle = d->driver_library;
    snprintf(out->path, sizeof out->path, "%s", chosen);
    return;
  }
  if (cu_driver_try_wheels(&s, getenv("XLAC_CUDA_PACKAGES"))) return;
  for (int i = 0; i < 3; i++)
    if (homes[i] && *homes[i] && cu_driver_try_folder(&s, homes[i], strlen(homes[i]), "lib64")) return;
  for (size_t i = 0; i < CU_DRIVER_NAMES; i++)
    if (cu_driver_try(&s, what->names[i])) return;
}

/* --- the driver --- */

static int cu_driver_none(const char *tried, const char *why, xlac_error *err) {
  return base_hint(err, base_fail(err, XLAC_E_DEVICE, "no CUDA driver: %s can't be loaded (%s)", tried, why),
                   "install NVIDIA's driver, or name the library in XLAC_CUDA_DRIVER; device=\"cpu\" needs none");
}

static int cu_driver_load(cuda_driver *d, const char *chosen, xlac_error *err) {
  const char *path = chosen ? chosen : "libcuda.so.1", *missing = NULL;
  d->driver_library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!d->driver_library) {
    const char *why = dlerror();
    return cu_driver_none(path, why ? why : "no reason given", err);
  }
  if (!cu_driver_bind(d, offsetof(cuda_driver, cuInit), cu_driver_calls, d->driver_library, &missing))
    return base_hint(err, base_fail(err, XLAC_E_DEVICE, "the CUDA driver %s is too old: it has no %s", path, missing),
                     "install a driver for CUDA 12 or later");
  return 0;
}

static int cu_driver_init(cuda_driver *d, xlac_error *err) {
  TRY(cuda_check(d, d->cuInit(0), "beginning to use the CUDA driver", err));
  TRY(cuda_check(d, d->cuDriverGetVersion(&d->version), "asking the CUDA driver for its version", err));
  if (d->version < CU_DRIVER_LEAST)
    return base_hint(
        err,
        base_fail(err, XLAC_E_DEVICE, "the CUDA driver is for CUDA %d.%d", d->version / 1000, d->version % 1000 / 10),
        "install a driver for CUDA 12 or later");
  const char *missing = NULL;
  d->conditions =
      d->version >= CU_DRIVER_NEWER && cu_driver_bind(d, offsetof(cuda_driver, cuGraphConditionalHandleCreate),
                                                      cu_driver_newer_calls, d->driver_library, &missing);
  return 0;
}

int cuda_driver_begin(cuda_driver *out, xlac_error *err) {
  const char *chosen = getenv("XLAC_CUDA_DRIVER");
  memset(out, 0, sizeof *out);
  if (chosen && !*chosen) chosen = NULL;
  TRY(cu_driver_load(out, chosen, err));
  return cu_driver_init(out, err);
}

int cuda_driver_open(cuda_driver *out, xlac_error *err) {
  TRY(cuda_driver_begin(out, err));
  cu_driver_find(out, getenv("XLAC_NVRTC"), &cu_driver_compiler, &out->compiler);
  if (out->compiler.handle && out->nvrtcVersion(&out->compiler_major, &out->compiler_minor))
    out->compiler.handle = NULL;
  return 0;
}

void cuda_driver_find_blas(cuda_driver *d) {
  assert(!d->blas.handle && !d->blas.missing[0]);
  cu_driver_find(d, getenv("XLAC_CUBLASLT"), &cu_driver_blas, &d->blas);
}

void cuda_driver_find_nccl(cuda_driver *d) {
  assert(!d->nccl.handle && !d->nccl.missing[0]);
  cu_driver_find(d, getenv("XLAC_NCCL"), &cu_driver_nccl, &d->nccl);
}

/* Names and texts are the driver's: nobody here has to know them all. */
int cuda_check(const cuda_driver *d, cuda_result result, const char *doing, xlac_error *err) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (d->cuGetErrorName(result, &name) || !name) name = "an unknown error";
  if (d->cuGetErrorString(result, &text) || !text) text = "no text";
  base_code code = result == CUDA_OUT_OF_MEMORY ? XLAC_E_OUT_OF_MEMORY : XLAC_E_DEVICE;
  return base_fail(err, code, "%s: the CUDA driver says %s (%d, %s)", doing, name, result, text);
}
