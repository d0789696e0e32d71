/* The custom calls that JAX makes for linear algebra on CPUs, "lapack_dpotrf_ffi" and its kin, by the LAPACK in
 * OpenBLAS. */
#ifndef XLAC_CPU_LAPACK_H
#define XLAC_CPU_LAPACK_H

#include "blas.h"

/* Whether target is built in: one of these that the library has (NULL: there is none), or one that needs no library.
 * Then *out is filled; it must stay where it is. */
bool cpu_native_find(const cpu_blas *b, const char *target, interp_native *out);

interp_find_native_fn cpu_native; /* the same; ctx: the cpu_blas, or NULL */

/* Built-in natives for the interpreter, with a library that is opened when first asked for. Thread-safe. */
typedef struct cpu_natives cpu_natives;
XLAC_MUST_USE int cpu_natives_create(cpu_natives **out, const char *blas_path, base_alloc alloc, xlac_error *err);
void cpu_natives_destroy(cpu_natives *n); /* NULL is fine */
interp_find_native_fn cpu_natives_find;   /* ctx: the cpu_natives */

#endif
