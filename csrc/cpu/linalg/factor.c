/* Right-looking factorisations over LAPACK's panels and BLAS's products. */
#include "factor.h"

/* FACTOR_PANEL: columns factored by one thread at a time. FACTOR_COLUMNS: columns, or rows, that a thread takes of
 * what follows the panel. */
enum { FACTOR_PANEL = 128, FACTOR_COLUMNS = 128 };

/* The library's functions by their Fortran types: pointers first, then the length of each character argument. */
typedef void factor_potrf_fn(char *uplo, int32_t *n, void *a, int32_t *lda, int32_t *info, size_t);
typedef void factor_trsm_fn(char *side, char *uplo, char *trans, char *diag, int32_t *m, int32_t *n, const void *alpha,
                            const void *a, int32_t *lda, void *b, int32_t *ldb, size_t, size_t, size_t, size_t);
typedef void factor_herk_fn(char *uplo, char *trans, int32_t *n, int32_t *k, const void *alpha, const void *a,
                            int32_t *lda, const void *beta, void *c, int32_t *ldc, size_t, size_t);
typedef void factor_gemm_fn(char *ta, char *tb, int32_t *m, int32_t *n, int32_t *k, const void *alpha, const void *a,
                            int32_t *lda, const void *b, int32_t *ldb, const void *beta, void *c, int32_t *ldc, size_t,
                            size_t);
typedef void factor_getrf_fn(int32_t *m, int32_t *n, void *a, int32_t *lda, int32_t *pivots, int32_t *info);
typedef void factor_laswp_fn(int32_t *n, void *a, int32_t *lda, int32_t *first, int32_t *last, int32_t *pivots,
                             int32_t *step);

/* One panel: columns k to k + width, and what is done with it. */
typedef struct factor_panel {
  const cpu_factor *f;
  char uplo;
  char *a;
  int64_t m, n, k, width;
  int32_t *pivots;
} factor_panel;

/* The library's function of that name for a type, or NULL. */
static cpu_blas_fortran_fn *factor_find(const cpu_blas *b, char type, const char *name) {
  assert(strlen(name) < 15);
  char full[16] = {type};
  memcpy(full + 1, name, strlen(name) + 1);
  return cpu_blas_find(b, full);
}

/* Complex matrices have herk where real ones have syrk: their arguments are the same. */
bool cpu_factor_begin(cpu_factor *f, const cpu_blas *b, xlac_ffi_frame *frame, char type) {
  *f = (cpu_factor){.frame = frame, .is_complex = type == 'c' || type == 'z', .is_double = type == 'd' || type == 'z'};
  f->element = (size_t)(f->is_double ? 8 : 4) * (f->is_complex ? 2 : 1);
  f->potrf = factor_find(b, type, "potrf");
  f->trsm = factor_find(b, type, "trsm");
  f->herk = factor_find(b, type, f->is_complex ? "herk" : "syrk");
  f->gemm = factor_find(b, type, "gemm");
  f->getrf = factor_find(b, type, "getrf");
  f->laswp = factor_find(b, type, "laswp");
  return f->potrf && f->trsm && f->herk && f->gemm && f->getrf && f->laswp;
}

/* 1, and -1, of either precision and kind. */
static const void *factor_number(const cpu_factor *f, bool minus) {
  static const double wide[2][2] = {{1, 0}, {-1, 0}};
  static const float narrow[2][2] = {{1, 0}, {-1, 0}};
  return f->is_double ? (const void *)wide[minus] : (const void *)narrow[minus];
}

/* The element's address. Also one past the end, where a block is empty. */
static char *factor_at(const factor_panel *p, int64_t row, int64_t column) {
  assert(row >= 0 && row <= p->m && column >= 0 && column <= p->n);
  return p->a + (size_t)(column * p->m + row) * p->f->element;
}

/* b becomes the solution with the triangular matrix a. how: side, uplo, trans and diag, a letter each. */
static void factor_trsm(const factor_panel *p, const char *how, int64_t m, int64_t n, const char *a, char *b) {
  assert(m >= 0 && n >= 0 && strlen(how) == 4);
  char side = how[0], uplo = how[1], trans = how[2], diag = how[3];
  int32_t rows = (int32_t)m, columns = (int32_t)n, ld = (int32_t)p->m;
  factor_trsm_fn *trsm = (factor_trsm_fn *)(void (*)(void))p->f->trsm;
  trsm(&side, &uplo, &trans, &diag, &rows, &columns, factor_number(p->f, false), a, &ld, b, &ld, 1, 1, 1, 1);
}

/* c -= a b, in the forms given. how: the two letters of trans. */
static void factor_gemm(const factor_panel *p, const char *how, int64_t m, int64_t n, int64_t k, const char *a,
                        const char *b, char *c) {
  assert(strlen(how) == 2);
  char ta = how[0], tb = how[1];
  int32_t rows = (int32_t)m, columns = (int32_t)n, inner = (int32_t)k, ld = (int32_t)p->m;
  factor_gemm_fn *gemm = (factor_gemm_fn *)(void (*)(void))p->f->gemm;
  if (m > 0 && n > 0)
    gemm(&ta, &tb, &rows, &columns, &inner, factor_number(p->f, true), a, &ld, b, &ld, factor_number(p->f, false), c,
         &ld, 1, 1);
}

static int64_t factor_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Asked between panels. Once true, always true: the matrix is left half done. */
static bool factor_stops(cpu_factor *f) {
  f->stopped = f->stopped || f->frame->interrupted(f->frame);
  return f->stopped;
}

/* --- Cholesky: row blocks below the panel's square (or column blocks beside it), then the rest by column blocks --- */

/* Blocks begin to end of the panel beside its square: solved with the square's factor. */
static void factor_solve_blocks(void *ctx, uint64_t begin, uint64_t end) {
  assert(begin <= end);
  const factor_panel *p = ctx;
  const char *square = factor_at(p, p->k, p->k);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    int64_t at = p->k + p->width + i * FACTOR_COLUMNS, n = factor_min(FACTOR_COLUMNS, p->n - at);
    if (p->uplo == 'L')
      factor_trsm(p, "RLCN", n, p->width, square, factor_at(p, at, p->k));
    else
      factor_trsm(p, "LUCN", p->width, n, square, factor_at(p, p->k, at));
  }
}

/* Columns begin to end, in blocks, of what follows: minus the product of the panel with its own adjoint. Each block's
 * own square by herk, which leaves the other triangle alone, and the rest of it by gemm. */
static void factor_update_blocks(void *ctx, uint64_t begin, uint64_t end) {
  assert(begin <= end);
  const factor_panel *p = ctx;
  factor_herk_fn *herk = (factor_herk_fn *)(void (*)(void))p->f->herk;
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    int64_t first = p->k + p->width, at = first + i * FACTOR_COLUMNS, n = factor_min(FACTOR_COLUMNS, p->n - at);
    bool lower = p->uplo == 'L';
    const char *own = lower ? factor_at(p, at, p->k) : factor_at(p, p->k, at);
    char uplo = p->uplo, trans = lower ? 'N' : p->f->is_complex ? 'C' : 'T';
    int32_t size = (int32_t)n, inner = (int32_t)p->width, ld = (int32_t)p->m;
    herk(&uplo, &trans, &size, &inner, factor_number(p->f, true), own, &ld, factor_number(p->f, false),
         factor_at(p, at, at), &ld, 1, 1);
    if (lower)
      factor_gemm(p, "NC", p->n - at - n, n, p->width, factor_at(p, at + n, p->k), own, factor_at(p, at + n, at));
    else
      factor_gemm(p, "CN", at - first, n, p->width, factor_at(p, p->k, first), own, factor_at(p, first, at));
  }
}

/* Blocks of a step write different columns, so threads don't wait for one another but between the two steps. */
int32_t cpu_factor_cholesky(cpu_factor *f, char uplo, int64_t n, char *a) {
  assert(n <= INT32_MAX && (uplo == 'L' || uplo == 'U'));
  factor_panel p = {.f = f, .uplo = uplo, .a = a, .m = n, .n = n};
  factor_potrf_fn *potrf = (factor_potrf_fn *)(void (*)(void))f->potrf;
  for (p.k = 0; p.k < n && !factor_stops(f); p.k += p.width) {
    p.width = factor_min(FACTOR_PANEL, n - p.k);
    int32_t size = (int32_t)p.width, ld = (int32_t)n, info = 0;
    potrf(&uplo, &size, factor_at(&p, p.k, p.k), &ld, &info, 1);
    /* Not positive definite: the number of the leading minor, counted from 1 in the whole matrix. */
    if (info) return info + (int32_t)p.k;
    uint64_t blocks = (uint64_t)((n - p.k - p.width + FACTOR_COLUMNS - 1) / FACTOR_COLUMNS);
    f->frame->parallel_for(f->frame, blocks, 1, factor_solve_blocks, &p);
    f->frame->parallel_for(f->frame, blocks, 1, factor_update_blocks, &p);
  }
  return 0;
}

/* --- LU --- */

/* Column blocks beside the panel: those before it only exchange rows. The rest is solved with the panel's square, and
 * loses the product of both. */
static void factor_lu_blocks(void *ctx, uint64_t begin, uint64_t end) {
  assert(begin <= end);
  const factor_panel *p = ctx;
  int64_t before = (p->k + FACTOR_COLUMNS - 1) / FACTOR_COLUMNS;
  factor_laswp_fn *laswp = (factor_laswp_fn *)(void (*)(void))p->f->laswp;
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    bool left = i < before;
    int64_t at = left ? i * FACTOR_COLUMNS : p->k + p->width + (i - before) * FACTOR_COLUMNS;
    int64_t n = factor_min(FACTOR_COLUMNS, (left ? p->k : p->n) - at), below = p->k + p->width;
    int32_t columns = (int32_t)n, ld = (int32_t)p->m, first = (int32_t)p->k + 1, step = 1;
    int32_t last = (int32_t)(p->k + p->width);
    /* The rows that the panel exchanged, in these columns too. */
    laswp(&columns, factor_at(p, 0, at), &ld, &first, &last, p->pivots, &step);
    if (left) continue;
    factor_trsm(p, "LLNU", p->width, n, factor_at(p, p->k, p->k), factor_at(p, p->k, at));
    factor_gemm(p, "NN", p->m - below, n, p->width, factor_at(p, below, p->k), factor_at(p, p->k, at),
                factor_at(p, below, at));
  }
}

/* A pivot of zero doesn't end the factorisation: the first is what is returned, as LAPACK does. */
int32_t cpu_factor_lu(cpu_factor *f, int64_t m, int64_t n, char *a, int32_t *pivots) {
  assert(m <= INT32_MAX && n <= INT32_MAX);
  factor_panel p = {.f = f, .a = a, .m = m, .n = n, .pivots = pivots};
  factor_getrf_fn *getrf = (factor_getrf_fn *)(void (*)(void))f->getrf;
  int64_t least = factor_min(m, n);
  int32_t result = 0;
  for (p.k = 0; p.k < least && !factor_stops(f); p.k += p.width) {
    p.width = factor_min(FACTOR_PANEL, least - p.k);
    int32_t rows = (int32_t)(m - p.k), columns = (int32_t)p.width, ld = (int32_t)m, info = 0;
    getrf(&rows, &columns, factor_at(&p, p.k, p.k), &ld, pivots + p.k, &info);
    if (info > 0 && result == 0) result = info + (int32_t)p.k;
    /* The panel's pivots count from its own first row. */
    for (int64_t i = p.k; i < p.k + p.width; i++) pivots[i] += (int32_t)p.k;
    uint64_t blocks = (uint64_t)((p.k + FACTOR_COLUMNS - 1) / FACTOR_COLUMNS +
                                 (n - p.k - p.width + FACTOR_COLUMNS - 1) / FACTOR_COLUMNS);
    f->frame->parallel_for(f->frame, blocks, 1, factor_lu_blocks, &p);
  }
  return result;
}
