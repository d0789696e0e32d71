/* LU, Cholesky and triangular systems of small matrices. */
#include "small.h"

#include <math.h>

/* A triangular matrix, op(a): see small_loops.h. */
typedef struct small_triangle {
  bool left, unit, forward;
  int64_t down, across;
} small_triangle;

#define SMALL_T double
#define SMALL_NAME(n) small_f64_##n
#define SMALL_ABS fabs
#define SMALL_SQRT sqrt
#include "small_loops.h"
#define SMALL_T float
#define SMALL_NAME(n) small_f32_##n
#define SMALL_ABS fabsf
#define SMALL_SQRT sqrtf
#include "small_loops.h"

static int32_t small_lu(const lapack_job *j, void *a, void *pivots) {
  return j->is_double ? small_f64_lu(j->m, j->n, a, pivots) : small_f32_lu(j->m, j->n, a, pivots);
}

static int32_t small_cholesky(const lapack_job *j, void *a, void *info) {
  bool lower = j->letters['U'] == 'L';
  int64_t down = lower ? 1 : j->n, across = lower ? j->n : 1;
  (void)info;
  return j->is_double ? small_f64_cholesky(j->n, down, across, a) : small_f32_cholesky(j->n, down, across, a);
}

/* The first unknown is known first where op(a) is lower, and on the other side where it is upper. */
static int32_t small_solve(const lapack_job *j, void *a, void *b) {
  bool left = j->letters['S'] == 'L', across = j->letters['T'] != 'N', lower = (j->letters['U'] == 'L') != across;
  int64_t order = left ? j->m : j->n;
  small_triangle t = {.left = left, .unit = j->letters['D'] == 'U', .forward = left == lower};
  t.down = across ? order : 1, t.across = across ? 1 : order;
  if (j->is_double)
    small_f64_solve(&t, j->m, j->n, a, b);
  else
    small_f32_solve(&t, j->m, j->n, a, b);
  return 0;
}

lapack_small_fn *lapack_small_of(const lapack_job *j) {
  static const struct {
    const char *name;
    lapack_small_fn *fn;
  } all[] = {{"getrf", small_lu}, {"potrf", small_cholesky}, {"trsm", small_solve}};
  assert(j->routine && j->m >= 0 && j->n >= 0);
  if (j->is_complex || j->m > LAPACK_SMALL || j->n > LAPACK_SMALL) return NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i].name, j->routine->name) == 0) return all[i].fn;
  return NULL;
}
