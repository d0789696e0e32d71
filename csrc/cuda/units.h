/* A source's kernels in units of some each, which NVRTC compiles at the same time and which have files and modules of
 * their own. How kernels are shared out depends on them alone, so that files fit every machine; those that take long
 * are by themselves. */
#ifndef XLAC_CUDA_UNITS_H
#define XLAC_CUDA_UNITS_H

#include "context.h"
#include "print/source.h"

/* --- compile.c --- */
/* What NVRTC gets: kernels of a source, or a text. */
typedef struct cuda_compiled {
  const cuda_source *source; /* NULL: the text */
  const uint32_t *kernels;
  uint32_t n_kernels;
  base_sum functions; /* of the source's: cuda_source_functions_sum */
  const char *text;
  bool portable; /* no machine code, but what the driver makes it of */
} cuda_compiled;
/* Machine code for the device, in memory of alloc's, from disk or made. Any thread. DEVICE: no NVRTC; INTERNAL: the
 * text has errors. */
XLAC_MUST_USE int cuda_compile(const cuda_device *d, const cuda_compiled *what, base_alloc alloc, char **image,
                               xlac_error *err);

/* --- units.c --- */
typedef struct cuda_units cuda_units;
/* Compiles and loads all kernels, on as many threads as there are CPUs, which use alloc at the same time. Nobody
 * changes the source meanwhile. *out is to be given back where this fails, too. Entered. As cuda_compile; INTERRUPTED.
 */
XLAC_MUST_USE int cuda_units_make(cuda_units **out, cuda_device *d, const cuda_source *source, base_alloc alloc,
                                  xlac_error *err);
/* Of a kernel, by number. */
cuda_function cuda_units_function(const cuda_units *u, uint32_t number);
/* Gives back what the driver has of them. Entered; NULL is fine. */
void cuda_units_unload(cuda_units *u);
void cuda_units_destroy(cuda_units *u);

#endif
