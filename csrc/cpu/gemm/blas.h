/* Matrix products by OpenBLAS, found at run time. */
#ifndef XLAC_CPU_GEMM_BLAS_H
#define XLAC_CPU_GEMM_BLAS_H

#include "../../runtime/threads.h"
#include "../../plan/plan.h"

typedef struct cpu_blas cpu_blas;

/* Opens the library at `path` (NULL: the usual names), kept to one thread of its own, since work is cut into pieces
 * here. *out is NULL when there is none: not an error. */
XLAC_MUST_USE int cpu_blas_open(cpu_blas **out, const char *path, base_alloc alloc, xlac_error *err);
void cpu_blas_close(cpu_blas *b, base_alloc alloc);

/* The same, opened by the first who needs it. Thread-safe. */
typedef struct cpu_blas_lazy cpu_blas_lazy;
XLAC_MUST_USE int cpu_blas_lazy_create(cpu_blas_lazy **out, const char *path, base_alloc alloc, xlac_error *err);
void cpu_blas_lazy_destroy(cpu_blas_lazy *l); /* NULL is fine */
/* *out is NULL where there is none, or l is NULL. Fails only when out of memory. */
XLAC_MUST_USE int cpu_blas_lazy_get(cpu_blas_lazy *l, const cpu_blas **out, xlac_error *err);
/* What has been opened so far, or NULL. Once it is there it stays as long as l. */
const cpu_blas *cpu_blas_lazy_opened(cpu_blas_lazy *l);

/* C = A * B for all batches. Pieces depend on the sizes only, so the bits are the same for any number of threads. */
void cpu_blas_dot(const cpu_blas *b, const plan_dot *dot, rt_pool *pool, const void *a, const void *right, void *c);
/* The function of that name in Fortran's convention ("dpotrf": the library's dpotrf_), or NULL. */
typedef void cpu_blas_fortran_fn(void);
cpu_blas_fortran_fn *cpu_blas_find(const cpu_blas *b, const char *name);
/* What dlopen knows the library by. */
const char *cpu_blas_library(const cpu_blas *b);
/* What the library says of itself: "scipy-openblas 0.3.30 ..."; "" where it says nothing, or b is NULL. */
const char *cpu_blas_describe(const cpu_blas *b);

#endif
