/* No include guard: the two algorithms of eval_linalg.c, included once for reals and once for complex numbers. The
 * includer defines T (the number), K(name) (this instance's name for it), MUL, SUB, DIV, CONJ and REAL. */

/* Row i, columns 0..i of the factor, from its lower triangle in place; the rows above are done. false: not positive
 * definite. */
static bool K(cholesky_row)(T *w, int64_t n, int64_t i) {
  assert(i >= 0 && i < n);
  T *row = w + i * n;
  for (int64_t j = 0; j < i; j++) {
    const T *other = w + j * n;
    T v = row[j];
    for (int64_t k = 0; k < j; k++) v = SUB(v, MUL(row[k], CONJ(other[k])));
    row[j] = DIV(v, other[j]);
  }
  double diagonal = REAL(row[i]);
  for (int64_t k = 0; k < i; k++) diagonal -= REAL(MUL(row[k], CONJ(row[k])));
  if (!(diagonal > 0)) return false;
  row[i] = FROM_REAL(sqrt(diagonal));
  return true;
}

/* The lower triangle of the matrix whose factor we compute, zeros above. */
static int K(cholesky_load)(interp_ctx *ctx, T *w, const T *a, int64_t n, bool lower) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) w[i * n + j] = j > i ? FROM_REAL(0) : lower ? a[i * n + j] : CONJ(a[j * n + i]);
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* a is replaced by its factor L (a = L L^H), or by the transposed, conjugated one where `lower` is not
 * set. A matrix that is not positive definite becomes NaN, as in XLA. w is scratch of the same size. */
static int K(cholesky_matrix)(interp_ctx *ctx, T *w, T *a, int64_t n, bool lower) {
  TRY(K(cholesky_load)(ctx, w, a, n, lower));
  bool definite = true;
  for (int64_t i = 0; i < n && definite; i++) {
    definite = K(cholesky_row)(w, n, i);
    TRY(interp_tick(ctx, (uint64_t)(i * i / 2 + 16)));
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) a[i * n + j] = !definite ? NOT_A_NUMBER : lower ? w[i * n + j] : CONJ(w[j * n + i]);
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* Solves t x = b for lower or upper t (n by n), b (n by m) becoming x. By substitution, row by row; a unit
 * diagonal is not read. */
static int K(solve_matrix)(interp_ctx *ctx, const T *t, T *b, int64_t n, int64_t m, bool lower, bool unit) {
  for (int64_t step = 0; step < n; step++) {
    int64_t i = lower ? step : n - 1 - step;
    T *row = b + i * m;
    for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++) {
      T factor = t[i * n + k];
      const T *other = b + k * m;
      for (int64_t c = 0; c < m; c++) row[c] = SUB(row[c], MUL(factor, other[c]));
      TRY(interp_tick(ctx, (uint64_t)m));
    }
    for (int64_t c = 0; c < m && !unit; c++) row[c] = DIV(row[c], t[i * n + i]);
    TRY(interp_tick(ctx, (uint64_t)m));
  }
  return 0;
}

/* dst is src (rows by columns) transposed, conjugated when asked. */
static int K(matrix_copy)(interp_ctx *ctx, T *dst, const T *src, int64_t rows, int64_t columns, bool transpose,
                          bool conjugate) {
  assert(dst != src);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns;) {
      int64_t from = j, end = columns - j < LINALG_TICK ? columns : j + LINALG_TICK;
      for (; j < end; j++) {
        T v = src[i * columns + j];
        dst[transpose ? j * rows + i : i * columns + j] = conjugate ? CONJ(v) : v;
      }
      TRY(interp_tick(ctx, (uint64_t)(end - from)));
    }
  return 0;
}
