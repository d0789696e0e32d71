/* The reference interpreter as a device: it takes whole modules, and runs all of them. */
#ifndef XLAC_INTERP_DEVICE_H
#define XLAC_INTERP_DEVICE_H

#include "../runtime/device.h"
#include "interp.h"

/* Custom calls by a library that a room above finds: opened for each executable, with the path of its build options. */
typedef struct interp_library {
  int (*open)(void **out, const char *path, base_alloc alloc, xlac_error *err);
  interp_find_native_fn *find; /* its ctx is what open has given; NULL where the build says no library */
  void (*close)(void *library);
} interp_library;

/* What a caller of a device asks for, and nothing else: no allocator, no natives. */
void interp_read_call_options(interp_options *out, const rt_call_options *call);

/* A call of an executable on pointers to arrays (runtime/device.h). */
typedef int interp_call_fn(const rt_executable *exe, const rt_call_options *options, void *const *arguments,
                           void *const *results, const rt_trace *trace, xlac_error *err);
/* The same on values: their arrays, depth first. result has the memory that results go to. */
XLAC_MUST_USE int interp_call_arrays(base_alloc alloc, interp_call_fn *call, const rt_executable *exe,
                                     const rt_call_options *options, uint32_t n, interp_value *const *args,
                                     interp_value *result, const rt_trace *trace, xlac_error *err);

/* Its builds want the module alone; its executables run on the caller's thread, and on values where a shape is known
 * only when it runs. `library` stays. *out: a new reference. */
XLAC_MUST_USE int interp_device_create(rt_device **out, const interp_library *library, uint32_t ordinal,
                                       base_alloc alloc, xlac_error *err);

#endif
