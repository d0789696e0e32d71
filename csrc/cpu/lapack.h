/* The custom calls that JAX makes for linear algebra on CPUs, "lapack_dpotrf_ffi" and its kin, by the LAPACK in
 * OpenBLAS. */
#ifndef XLAC_CPU_LAPACK_H
#define XLAC_CPU_LAPACK_H

#include "blas.h"

/* Whether target is one of them and the library has it. Then *out is filled; it must stay where it is. */
bool cpu_lapack_find(const cpu_blas *b, const char *target, interp_native *out);

/* Whether a target is one of theirs by its name: only for these is the library worth opening. */
bool cpu_lapack_is_target(const char *target);

interp_find_native_fn cpu_lapack_native; /* the same; ctx: the cpu_blas_lazy */

#endif
