/* Finding the driver and NVRTC. Each library that isn't found is named with what was tried, and a driver that lacks an
 * entry point by that one. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { CU_DRIVER_LEAST = 12000 }; /* CUDA 12.0: the oldest whose entry points are all in the table */

/* A name of a library, in the order in which they are tried; newer ones first. */
static const char *const cu_driver_compiler_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
/* Where wheels put it, below the folder of packages. */
static const char *const cu_driver_wheel_folders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib"};

/* Notes of what was tried, cut where there is no room. */
static void cu_driver_note(char *notes, size_t room, const char *what) {
  size_t n = strlen(notes);
  assert(n < room);
  snprintf(notes + n, room - n, "%s%s", n ? ", " : "", what);
}

/* The entry points of libcuda; *missing is the first that there is none of. A pointer to an object becomes one to a
 * function by way of memcpy, since ISO C has no cast for that. */
static bool cu_driver_bind(cuda_driver *d, const char **missing) {
  void *symbol = NULL;
#define CUDA_CALL(result, name, parameters)                      \
  *missing = #name;                                              \
  if (!(symbol = dlsym(d->driver_library, #name))) return false; \
  memcpy(&d->name, &symbol, sizeof symbol);
#define CUDA_COMPILER(result, name, parameters)
#include "driver.def"
  return true;
}

static bool cu_driver_bind_compiler(cuda_driver *d, void *library) {
  void *symbol = NULL;
#define CUDA_CALL(result, name, parameters)
#define CUDA_COMPILER(result, name, parameters)        \
  if (!(symbol = dlsym(library, #name))) return false; \
  memcpy(&d->name, &symbol, sizeof symbol);
#include "driver.def"
  d->compiler_library = library;
  return true;
}

/* --- NVRTC --- */

/* Libraries stay: what they gave out is in use for as long as the process lives. */
static bool cu_driver_try_compiler(cuda_driver *d, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  cu_driver_note(d->compiler_missing, sizeof d->compiler_missing, path);
  if (!library) return false;
  if (!cu_driver_bind_compiler(d, library)) {
    dlclose(library);
    return false;
  }
  snprintf(d->compiler_path, sizeof d->compiler_path, "%s", path);
  return true;
}

/* Each name in folder/below. */
static bool cu_driver_try_folder(cuda_driver *d, const char *folder, size_t n, const char *below) {
  char path[512];
  for (size_t i = 0; i < sizeof cu_driver_compiler_names / sizeof *cu_driver_compiler_names; i++) {
    int length = snprintf(path, sizeof path, "%.*s/%s/%s", (int)n, folder, below, cu_driver_compiler_names[i]);
    if (length > 0 && (size_t)length < sizeof path && cu_driver_try_compiler(d, path)) return true;
  }
  return false;
}

/* In folders of Python's packages, with colons between them. */
static bool cu_driver_try_wheels(cuda_driver *d, const char *folders) {
  for (const char *at = folders; at && *at;) {
    size_t n = strcspn(at, ":");
    for (size_t i = 0; n && i < sizeof cu_driver_wheel_folders / sizeof *cu_driver_wheel_folders; i++)
      if (cu_driver_try_folder(d, at, n, cu_driver_wheel_folders[i])) return true;
    at += n + (at[n] == ':');
  }
  return false;
}

/* The order of cuda.pathfinder: the simulating driver and XLAC_NVRTC, which somebody chose; wheels; a toolkit's
 * folder; what the system's linker finds. */
static void cu_driver_find_compiler(cuda_driver *d, bool chosen) {
  const char *path = getenv("XLAC_NVRTC"), *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  if (chosen && cu_driver_bind_compiler(d, d->driver_library)) {
    snprintf(d->compiler_path, sizeof d->compiler_path, "%s", getenv("XLAC_CUDA_DRIVER"));
    return;
  }
  if (path && *path && cu_driver_try_compiler(d, path)) return;
  if (cu_driver_try_wheels(d, getenv("XLAC_CUDA_PACKAGES"))) return;
  for (int i = 0; i < 3; i++)
    if (homes[i] && *homes[i] && cu_driver_try_folder(d, homes[i], strlen(homes[i]), "lib64")) return;
  for (size_t i = 0; i < sizeof cu_driver_compiler_names / sizeof *cu_driver_compiler_names; i++)
    if (cu_driver_try_compiler(d, cu_driver_compiler_names[i])) return;
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
  if (!cu_driver_bind(d, &missing))
    return base_hint(err, base_fail(err, XLAC_E_DEVICE, "the CUDA driver %s is too old: it has no %s", path, missing),
                     "install a driver for CUDA 12 or later");
  return 0;
}

static int cu_driver_begin(cuda_driver *d, xlac_error *err) {
  TRY(cuda_check(d, d->cuInit(0), "beginning to use the CUDA driver", err));
  TRY(cuda_check(d, d->cuDriverGetVersion(&d->version), "asking the CUDA driver for its version", err));
  if (d->version < CU_DRIVER_LEAST)
    return base_hint(
        err,
        base_fail(err, XLAC_E_DEVICE, "the CUDA driver is for CUDA %d.%d", d->version / 1000, d->version % 1000 / 10),
        "install a driver for CUDA 12 or later");
  return 0;
}

int cuda_driver_open(cuda_driver *out, xlac_error *err) {
  const char *chosen = getenv("XLAC_CUDA_DRIVER");
  memset(out, 0, sizeof *out);
  if (chosen && !*chosen) chosen = NULL;
  TRY(cu_driver_load(out, chosen, err));
  TRY(cu_driver_begin(out, err));
  cu_driver_find_compiler(out, chosen != NULL);
  if (out->compiler_library && out->nvrtcVersion(&out->compiler_major, &out->compiler_minor))
    out->compiler_library = NULL;
  return 0;
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
