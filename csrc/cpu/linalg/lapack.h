/* The custom calls that JAX makes for linear algebra on CPUs, "lapack_dpotrf_ffi" and its kin, by the LAPACK in
 * OpenBLAS. */
#ifndef XLAC_CPU_LINALG_LAPACK_H
#define XLAC_CPU_LINALG_LAPACK_H

#include "../../interp/interp.h"
#include "../gemm/blas.h"

/* Finds the built-in call of a target: one of these, where the library has it, or one that needs no library. ctx: the
 * cpu_blas_lazy, or NULL for no library. *out must stay where it is. Thread-safe. */
interp_find_native_fn cpu_native;

#endif
