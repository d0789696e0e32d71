/* Large Cholesky and LU factorisations, panel by panel: what follows a panel is shared between threads by columns, and
 * between panels the caller is asked whether to stop. Matrices are column-major. How they are cut depends on sizes
 * alone, so the bits are the same for any number of threads. */
#ifndef XLAC_CPU_LINALG_FACTOR_H
#define XLAC_CPU_LINALG_FACTOR_H

#include "../../include/xlac_ffi.h"
#include "../gemm/blas.h"

enum { CPU_FACTOR_LEAST = 384 /* rows and columns of what is worth it */ };

typedef struct cpu_factor {
  xlac_ffi_frame *frame; /* whose parallel_for does it, and whose caller is asked; no more of it is looked at */
  /* stopped: the caller wanted it to stop, and the matrix is half done. */
  bool is_complex, is_double, stopped;
  size_t element; /* bytes */
  cpu_blas_fortran_fn *potrf, *trsm, *herk, *gemm, *getrf, *laswp;
} cpu_factor;

/* type: s, d, c or z. false where the library lacks something. */
bool cpu_factor_begin(cpu_factor *f, const cpu_blas *b, xlac_ffi_frame *frame, char type);
/* The triangle `uplo` of the n x n matrix at a, in place. Returns LAPACK's info. */
int32_t cpu_factor_cholesky(cpu_factor *f, char uplo, int64_t n, char *a);
/* The m x n matrix at a, in place, with min(m, n) pivots. Returns LAPACK's info. */
int32_t cpu_factor_lu(cpu_factor *f, int64_t m, int64_t n, char *a, int32_t *pivots);

#endif
