/* OpenBLAS, opened with dlopen: nothing links with it. It may be SciPy's build from the wheel scipy-openblas32,
 * whose names all begin with scipy_, or a library of the system's. It is kept to one thread: a product is cut into
 * pieces here, by its sizes alone, and the pieces go to our pool; so the bits don't depend on how many threads
 * there are. */
#include "blas.h"

#include <dlfcn.h>

enum {
  BLAS_ROW_MAJOR = 101,
  BLAS_PLAIN = 111,
  BLAS_TRANSPOSED = 112,
  BLAS_PIECE_ROWS = 96,      /* rows of C that a piece has at least */
  BLAS_PIECE_COLUMNS = 256,  /* and columns, where all rows are one piece */
  BLAS_PIECE_WORK = 1 << 21, /* and products */
  BLAS_CALL_WORK = 1 << 29   /* and at most in one call of the library, which nobody can interrupt */
};

typedef void blas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                           const float *b, int ldb, float beta, float *c, int ldc);
typedef void blas_dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                           const double *b, int ldb, double beta, double *c, int ldc);

/* An open library. What it gives is immutable; any number of threads may call it. */
struct cpu_blas {
  void *library;
  blas_sgemm_fn *sgemm;
  blas_dgemm_fn *dgemm;
  const char *prefix; /* of all its names */
  const char *config;
  char path[];
};

/* NULL where the library has no such name. */
static void *blas_symbol(void *library, const char *prefix, const char *name) {
  assert(library && prefix && name);
  char full[80] = "";
  size_t n = strlen(prefix), m = strlen(name);
  assert(n + m < sizeof full);
  memcpy(full, prefix, n);
  memcpy(full + n, name, m + 1);
  return dlsym(library, full);
}

/* Finds the functions, with or without the prefix that SciPy's build gives its names. A pointer to an object
 * becomes one to a function by way of memcpy, since ISO C has no cast for that. */
static bool blas_bind(cpu_blas *b, const char *prefix) {
  void *s = blas_symbol(b->library, prefix, "cblas_sgemm"), *d = blas_symbol(b->library, prefix, "cblas_dgemm");
  void *threads = blas_symbol(b->library, prefix, "openblas_set_num_threads");
  void *config = blas_symbol(b->library, prefix, "openblas_get_config");
  if (!s || !d || !threads) return false;
  void (*set_threads)(int) = NULL;
  char *(*get_config)(void) = NULL;
  memcpy(&b->sgemm, &s, sizeof s);
  memcpy(&b->dgemm, &d, sizeof d);
  memcpy(&set_threads, &threads, sizeof threads);
  memcpy(&get_config, &config, sizeof config);
  set_threads(1);
  b->prefix = prefix;
  b->config = get_config ? get_config() : "";
  return true;
}

/* Whether there is a library at `path` with the functions that products need; it is open then. */
static bool blas_try(cpu_blas *b, const char *path) {
  /* It stays: loading it again, for the next program with a product, would cost more than all of compiling. */
  b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!b->library) return false;
  if (blas_bind(b, "scipy_") || blas_bind(b, "")) return true;
  dlclose(b->library);
  b->library = NULL;
  return false;
}

/* *out is NULL where there is no such library. Fails only when out of memory. */
static int blas_open_one(cpu_blas **out, const char *path, base_alloc alloc, xlac_error *err) {
  size_t n = strlen(path) + 1;
  cpu_blas *b = base_malloc(alloc, sizeof *b + n);
  *out = NULL;
  if (!b) return base_oom(err, "BLAS");
  *b = (cpu_blas){.config = ""};
  memcpy(b->path, path, n);
  if (blas_try(b, path))
    *out = b;
  else
    base_free(alloc, b);
  return 0;
}

/* `path` first, then names that the loader knows to find. A path that can't be opened is not an error: others are
 * tried. */
int cpu_blas_open(cpu_blas **out, const char *path, base_alloc alloc, xlac_error *err) {
  static const char *const names[] = {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so",
                                      "libopenblas.dylib"};
  *out = NULL;
  if (path) TRY(blas_open_one(out, path, alloc, err));
  for (size_t i = 0; !*out && i < sizeof names / sizeof *names; i++) TRY(blas_open_one(out, names[i], alloc, err));
  return 0;
}

/* The library itself stays in the process. */
void cpu_blas_close(cpu_blas *b, base_alloc alloc) {
  if (!b) return;
  dlclose(b->library);
  base_free(alloc, b);
}

/* LAPACK's names have an underscore at their end, and the library's prefix at their beginning. */
cpu_blas_fortran_fn *cpu_blas_find(const cpu_blas *b, const char *name) {
  char full[40] = "";
  cpu_blas_fortran_fn *fn = NULL;
  size_t n = strlen(name);
  if (n + 2 > sizeof full) return NULL;
  memcpy(full, name, n);
  full[n] = '_';
  void *symbol = blas_symbol(b->library, b->prefix, full);
  memcpy(&fn, &symbol, sizeof symbol);
  return fn;
}

const char *cpu_blas_library(const cpu_blas *b) {
  return b->path;
}

const char *cpu_blas_describe(const cpu_blas *b) {
  return b ? b->config : "";
}

/* One product at work. Pieces are numbered row of pieces by row of pieces, and batch after batch. */
typedef struct blas_run {
  const cpu_blas *b;
  const plan_dot *dot;
  const char *a, *right;
  char *c;
  int64_t rows, columns, across, pieces; /* of C in a piece; pieces beside each other, and in a batch */
  rt_pool *pool;
} blas_run;

/* Rows from..to and columns left..right of the product of one batch. */
static void blas_part(const blas_run *r, int64_t batch, int64_t from, int64_t to, int64_t left, int64_t right) {
  const plan_dot *d = r->dot;
  int64_t size = d->dtype == XLAC_F64 ? 8 : 4;
  assert(0 <= from && from < to && to <= d->m && 0 <= left && left < right && right <= d->n);
  const char *a = r->a + (batch * d->stride_a + from * (d->transpose_a ? 1 : d->lda)) * size;
  const char *b = r->right + (batch * d->stride_b + left * (d->transpose_b ? d->ldb : 1)) * size;
  char *c = r->c + ((batch * d->m + from) * d->n + left) * size;
  int ta = d->transpose_a ? BLAS_TRANSPOSED : BLAS_PLAIN, tb = d->transpose_b ? BLAS_TRANSPOSED : BLAS_PLAIN;
  int m = (int)(to - from), n = (int)(right - left), k = (int)d->k, ldc = (int)d->n;
  if (d->dtype == XLAC_F64)
    r->b->dgemm(BLAS_ROW_MAJOR, ta, tb, m, n, k, 1, (const double *)(const void *)a, (int)d->lda,
                (const double *)(const void *)b, (int)d->ldb, 0, (double *)(void *)c, ldc);
  else
    r->b->sgemm(BLAS_ROW_MAJOR, ta, tb, m, n, k, 1, (const float *)(const void *)a, (int)d->lda,
                (const float *)(const void *)b, (int)d->ldb, 0, (float *)(void *)c, ldc);
}

/* A piece in several calls where it is large, so that a run can be interrupted in between. */
static void blas_piece(const blas_run *r, int64_t batch, int64_t from, int64_t to, int64_t left, int64_t right) {
  int64_t column = (to - from) * r->dot->k, columns = column ? BLAS_CALL_WORK / column + 1 : right - left;
  columns = (columns + 255) & ~(int64_t)255; /* depends on sizes alone, as all cuts do */
  for (int64_t at = left; at < right && !(at > left && rt_pool_stopping(r->pool)); at += columns)
    blas_part(r, batch, from, to, at, at + columns < right ? at + columns : right);
}

static int64_t blas_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* For rt_parallel_for. */
static void blas_pieces(void *ctx, size_t begin, size_t end) {
  const blas_run *r = ctx;
  for (size_t i = begin; i < end; i++) {
    int64_t piece = (int64_t)i % r->pieces, from = piece / r->across * r->rows, left = piece % r->across * r->columns;
    blas_piece(r, (int64_t)i / r->pieces, from, blas_min(from + r->rows, r->dot->m), left,
               blas_min(left + r->columns, r->dot->n));
  }
}

/* By rows; where these are too few for more than one piece, by columns. Sizes alone decide. */
static void blas_cut(blas_run *r) {
  const plan_dot *d = r->dot;
  int64_t row_work = d->n * d->k, rows = row_work > 0 ? BLAS_PIECE_WORK / row_work + 1 : d->m;
  if (rows < BLAS_PIECE_ROWS) rows = BLAS_PIECE_ROWS;
  assert(d->m > 0 && d->n > 0 && "plan_dot_of takes no empty products");
  r->rows = blas_min(rows, d->m);
  r->columns = d->n;
  int64_t down = (d->m + r->rows - 1) / r->rows;
  if (down == 1) {
    int64_t columns = BLAS_PIECE_WORK / (d->m * d->k + 1) / 64 * 64 + 64;
    r->columns = columns < BLAS_PIECE_COLUMNS ? BLAS_PIECE_COLUMNS : columns;
  }
  r->across = (d->n + r->columns - 1) / r->columns;
  r->pieces = down * r->across;
}

/* Pieces with little work are run several to a range. */
void cpu_blas_dot(const cpu_blas *b, const plan_dot *dot, rt_pool *pool, const void *a, const void *right, void *c) {
  blas_run r = {.b = b, .pool = pool, .dot = dot, .a = a, .right = right, .c = c};
  blas_cut(&r);
  int64_t each = dot->m * dot->n * dot->k / r.pieces + 1;
  size_t grain = each < BLAS_PIECE_WORK ? (size_t)(BLAS_PIECE_WORK / each + 1) : 1;
  rt_parallel_for(pool, (size_t)(dot->batch * r.pieces), grain, blas_pieces, &r);
}
