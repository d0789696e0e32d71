/* Matrices of few rows and columns: a library's functions take longer to begin than to compute them. */
#ifndef XLAC_CPU_LINALG_SMALL_H
#define XLAC_CPU_LINALG_SMALL_H

#include "lapack_inside.h"

enum { LAPACK_SMALL = 8 /* rows and columns, at most */ };

/* For getrf, potrf and trsm of real numbers; NULL: the library does it. What it gives takes no memory and may run on
 * any thread. */
lapack_small_fn *lapack_small_of(const lapack_job *j);

#endif
