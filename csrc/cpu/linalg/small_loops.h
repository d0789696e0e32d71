/* The factorisations of small matrices of SMALL_T, included for each type. a and b are column-major without gaps. */

/* As LAPACK's: rows are exchanged so that the pivot is the largest of its column, the first of equal ones; a pivot of
 * zero does not end it, and the first is what is returned, counted from 1. */
static int32_t SMALL_NAME(lu)(int64_t m, int64_t n, SMALL_T *a, int32_t *pivots) {
  int32_t info = 0;
  for (int64_t k = 0; k < m && k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < m; i++)
      if (SMALL_ABS(a[i + k * m]) > SMALL_ABS(a[p + k * m])) p = i;
    pivots[k] = (int32_t)p + 1;
    SMALL_T pivot = a[p + k * m];
    if (pivot == 0) {
      info = info ? info : (int32_t)k + 1;
      continue;
    }
    for (int64_t j = 0; p != k && j < n; j++) {
      SMALL_T t = a[k + j * m];
      a[k + j * m] = a[p + j * m], a[p + j * m] = t;
    }
    for (int64_t i = k + 1; i < m; i++) a[i + k * m] /= pivot;
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = k + 1; i < m; i++) a[i + j * m] -= a[i + k * m] * a[k + j * m];
  }
  return info;
}

/* Of the triangle that is stored: element (i, k) is `down` after (0, k), and `across` apart. Returns the leading minor
 * that is not positive, counted from 1. */
static int32_t SMALL_NAME(cholesky)(int64_t n, int64_t down, int64_t across, SMALL_T *a) {
  for (int64_t k = 0; k < n; k++) {
    SMALL_T *column = a + k * across, pivot = column[k * down];
    if (!(pivot > 0)) return (int32_t)k + 1;
    column[k * down] = pivot = SMALL_SQRT(pivot);
    for (int64_t i = k + 1; i < n; i++) column[i * down] /= pivot;
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = j; i < n; i++) a[i * down + j * across] -= column[i * down] * column[j * down];
  }
  return 0;
}

/* b, m x n, becomes x of op(a) x = b, or on the other side of x op(a) = b; element (i, k) of op(a) is `down` after
 * (0, k), and `across` apart. */
static void SMALL_NAME(solve)(const small_triangle *t, int64_t m, int64_t n, const SMALL_T *a, SMALL_T *b) {
  int64_t order = t->left ? m : n, lines = t->left ? n : m, step = t->left ? 1 : m, line = t->left ? m : 1;
  int64_t down = t->left ? t->down : t->across, across = t->left ? t->across : t->down;
  for (int64_t i = 0; i < order; i++) {
    int64_t k = t->forward ? i : order - 1 - i, from = t->forward ? k + 1 : 0, to = t->forward ? order : k;
    for (int64_t l = 0; l < lines; l++) {
      SMALL_T *x = b + l * line;
      if (!t->unit) x[k * step] /= a[k * (down + across)];
      for (int64_t r = from; r < to; r++) x[r * step] -= a[r * down + k * across] * x[k * step];
    }
  }
}

#undef SMALL_T
#undef SMALL_NAME
#undef SMALL_ABS
#undef SMALL_SQRT
