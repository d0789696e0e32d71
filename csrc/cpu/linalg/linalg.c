/* cholesky and triangular-solve by LAPACK and BLAS, on row-major matrices as stored: to column-major eyes each is its
 * transpose, so upper is lower, left is right, and nothing is moved. */
#include <math.h>

#include "factor.h"
#include "../move/move.h"
#include "../routine.h"

/* LINALG_PIECE_WORK: multiplications for a thread at a time. LINALG_LEAST_SIDES: right-hand sides that are worth a
 * call. */
enum { LINALG_PIECE_WORK = 1 << 18, LINALG_CALL_WORK = 256, LINALG_LEAST_SIDES = 32 };

/* The library's functions by their Fortran types: pointers first, then the length of each character argument. */
typedef void linalg_potrf_fn(char *uplo, int32_t *n, void *a, int32_t *lda, int32_t *info, size_t one);
typedef void linalg_trsm_fn(char *side, char *uplo, char *trans, char *diag, int32_t *m, int32_t *n, void *alpha,
                            const void *a, int32_t *lda, void *b, int32_t *ldb, size_t, size_t, size_t, size_t);

/* What is known before a run. The letters are BLAS's, for what it sees. */
typedef struct linalg_plan {
  linalg_potrf_fn *potrf;
  linalg_trsm_fn *trsm;
  base_dtype dtype;
  size_t bytes; /* of an element */
  char side, uplo, trans, diag;
  int64_t batch, n, rows, columns; /* n: of the triangular matrix; rows and columns of the sides */
  int64_t pieces, sides;           /* a batch's pieces, of so many right-hand sides */
} linalg_plan;

/* One run: shared by its threads. */
typedef struct linalg_run {
  const linalg_plan *p;
  const char *a, *b;
  char *out;
} linalg_run;

/* *out is the library's function for the type, or NULL. That is also NULL where no library can be had: then the
 * interpreter evaluates the op. */
static int linalg_find(const cpu_prepare_run *x, base_dtype t, const char *name, cpu_blas_fortran_fn **out) {
  char full[16] = {t == XLAC_F32 ? 's' : t == XLAC_F64 ? 'd' : t == XLAC_C64 ? 'c' : t == XLAC_C128 ? 'z' : 0};
  const cpu_blas *blas = NULL;
  *out = NULL;
  if (!full[0]) return 0;
  memcpy(full + 1, name, strlen(name) + 1);
  TRY(cpu_blas_lazy_get(x->options->blas, &blas, x->err));
  if (blas) *out = cpu_blas_find(blas, full);
  return 0;
}

/* Sizes of a batch of matrices; false where t is none, or one with sizes beyond the library's 32 bits. */
static bool linalg_matrix(const ir_type *t, linalg_plan *p) {
  if (!ir_is_tensor(t) || t->rank < 2) return false;
  p->dtype = t->dtype;
  p->bytes = base_dtype_bytes(t->dtype);
  p->rows = t->dims[t->rank - 2], p->columns = t->dims[t->rank - 1];
  p->batch = p->rows && p->columns ? t->count / (p->rows * p->columns) : 0;
  return p->rows <= INT32_MAX && p->columns <= INT32_MAX;
}

/* The routine is made: name, code, and its plan, kept in the arena. */
static int linalg_give(cpu_prepare_run *x, const linalg_plan *p, const char *name, cpu_routine_fn *code) {
  x->out->name = name;
  x->data = base_arena_memdup(x->arena, p, sizeof *p);
  x->out->work = (uint64_t)p->batch * (uint64_t)(p->rows * p->columns) * (uint64_t)(p->n / 4 + 1);
  x->code = code;
  return x->data ? 0 : base_oom(x->err, "linear algebra");
}

/* Pieces of the batch, or of one item's. A call of the library takes as long as LINALG_CALL_WORK. */
static size_t linalg_grain(int64_t work) {
  return work < LINALG_PIECE_WORK ? (size_t)(LINALG_PIECE_WORK / (work + LINALG_CALL_WORK) + 1) : 1;
}

/* --- cholesky --- */

/* What is not a result of the factor: zeros beside it, or NaN everywhere. */
static void linalg_finish_factor(const linalg_plan *p, char *a, bool definite) {
  double nan64[2] = {(double)NAN, (double)NAN};
  float nan32[2] = {NAN, NAN};
  bool is_double = p->dtype == XLAC_F64 || p->dtype == XLAC_C128;
  const void *nan_ = is_double ? (const void *)nan64 : (const void *)nan32;
  for (int64_t i = 0; i < p->n; i++) {
    char *row = a + (size_t)(i * p->n) * p->bytes;
    size_t before = (size_t)i * p->bytes, after = (size_t)(p->n - i - 1) * p->bytes;
    /* As XLA does where a matrix has no factor. */
    for (int64_t j = 0; !definite && j < p->n; j++) memcpy(row + (size_t)j * p->bytes, nan_, p->bytes);
    if (!definite) continue;
    if (p->uplo == 'U') /* to LAPACK: ours is the lower one */
      memset(row + before + p->bytes, 0, after);
    else
      memset(row, 0, before);
  }
}

/* Matrices begin to end, each by one thread; for rt_parallel_for. */
static void linalg_factor_items(void *ctx, size_t begin, size_t end) {
  const linalg_run *r = ctx;
  const linalg_plan *p = r->p;
  size_t size = (size_t)(p->n * p->n) * p->bytes;
  for (size_t i = begin; i < end; i++) {
    char *a = r->out + i * size, uplo = p->uplo;
    int32_t n = (int32_t)p->n, lda = n, info = 0;
    if (r->a != r->out) memcpy(a, r->a + i * size, size);
    p->potrf(&uplo, &n, a, &lda, &info, 1);
    linalg_finish_factor(p, a, info == 0);
  }
}

/* The frame's parallel_for counts in 64 bits, the pool's in size_t. */
typedef struct linalg_range {
  void (*fn)(void *ctx, uint64_t begin, uint64_t end);
  void *ctx;
} linalg_range;

static void linalg_range_run(void *ctx, size_t begin, size_t end) {
  const linalg_range *x = ctx;
  x->fn(x->ctx, begin, end);
}

/* What cpu_factor needs of a frame: here the pool's threads. */
static void linalg_parallel_for(xlac_ffi_frame *frame, uint64_t n, uint64_t grain,
                                void (*fn)(void *ctx, uint64_t begin, uint64_t end), void *ctx) {
  linalg_range x = {fn, ctx};
  rt_parallel_for(frame->inside, (size_t)n, (size_t)grain, linalg_range_run, &x);
}

/* Whether the call that this is part of is to stop. */
static bool linalg_interrupted(xlac_ffi_frame *frame) {
  return rt_pool_stopping(frame->inside);
}

/* Large ones, each by all threads, with a look at whether to stop between panels. */
static int linalg_factor_large(const cpu_routine_run *r, cpu_factor *f) {
  const linalg_plan *p = r->data;
  size_t size = (size_t)(p->n * p->n) * p->bytes;
  for (int64_t i = 0; i < p->batch && !f->stopped; i++) {
    char *a = (char *)r->out[0] + (size_t)i * size;
    cpu_move_bytes(r->run->exe->pool, a, (const char *)r->in[0] + (size_t)i * size, (int64_t)size);
    int32_t info = cpu_factor_cholesky(f, p->uplo, p->n, a);
    if (!f->stopped) linalg_finish_factor(p, a, info == 0);
  }
  return 0;
}

/* The routine: by size, all threads at one matrix, or one thread at each. */
static int linalg_factor(const cpu_routine_run *r) {
  const linalg_plan *p = r->data;
  const cpu_blas *blas = cpu_executable_blas(r->run->exe);
  char type = p->dtype == XLAC_F32 ? 's' : p->dtype == XLAC_F64 ? 'd' : p->dtype == XLAC_C64 ? 'c' : 'z';
  cpu_factor f;
  xlac_ffi_frame frame = {
      .inside = r->run->exe->pool, .parallel_for = linalg_parallel_for, .interrupted = linalg_interrupted};
  if (p->n >= CPU_FACTOR_LEAST && cpu_factor_begin(&f, blas, &frame, type)) return linalg_factor_large(r, &f);
  linalg_run run = {.p = p, .a = r->in[0], .out = r->out[0]};
  rt_parallel_for(r->run->exe->pool, (size_t)p->batch, linalg_grain(p->n * p->n * p->n / 3), linalg_factor_items, &run);
  return 0;
}

/* Matrices that aren't square, and types that the library has not, are left to the interpreter. */
int cpu_prepare_cholesky(cpu_prepare_run *x) {
  linalg_plan p = {.side = 'L'};
  if (!linalg_matrix(x->op->type, &p) || p.rows != p.columns) return 0;
  cpu_blas_fortran_fn *fn = NULL;
  TRY(linalg_find(x, p.dtype, "potrf", &fn));
  if (!fn) return 0;
  memcpy(&p.potrf, &fn, sizeof fn);
  p.n = p.rows;
  p.uplo = ir_get_bool(x->op, IR_ATTR_LOWER, false) ? 'U' : 'L';
  x->out->in_place = 1;
  return linalg_give(x, &p, "cholesky", linalg_factor);
}

/* --- triangular-solve --- */

/* Some right-hand sides of one item: columns of b where the matrix stands left, rows where it stands right. */
static void linalg_solve_piece(const linalg_run *r, int64_t item, int64_t piece) {
  assert(item >= 0 && item < r->p->batch && piece >= 0 && piece < r->p->pieces);
  static const double one64[2] = {1, 0};
  static const float one32[2] = {1, 0};
  const linalg_plan *p = r->p;
  bool columns = p->side == 'R'; /* to BLAS */
  bool is_double = p->dtype == XLAC_F64 || p->dtype == XLAC_C128;
  int64_t from = piece * p->sides, all = columns ? p->columns : p->rows,
          n = all - from < p->sides ? all - from : p->sides;
  size_t at = (size_t)(item * p->rows * p->columns + from * (columns ? 1 : p->columns)) * p->bytes;
  int32_t m = (int32_t)(columns ? n : p->columns), k = (int32_t)(columns ? p->rows : n);
  int32_t lda = (int32_t)p->n, ldb = (int32_t)p->columns;
  char side = p->side, uplo = p->uplo, trans = p->trans, diag = p->diag;
  p->trsm(&side, &uplo, &trans, &diag, &m, &k, is_double ? (void *)(uintptr_t)one64 : (void *)(uintptr_t)one32,
          r->a + (size_t)(item * p->n * p->n) * p->bytes, &lda, r->out + at, &ldb, 1, 1, 1, 1);
}

/* Pieces begin to end of all items; for rt_parallel_for. */
static void linalg_solve_pieces(void *ctx, size_t begin, size_t end) {
  const linalg_run *r = ctx;
  for (size_t i = begin; i < end; i++) linalg_solve_piece(r, (int64_t)i / r->p->pieces, (int64_t)i % r->p->pieces);
}

/* The routine. BLAS solves in place, so the sides are copied to the result first. */
static int linalg_solve(const cpu_routine_run *r) {
  const linalg_plan *p = r->data;
  linalg_run run = {.p = p, .a = r->in[0], .b = r->in[1], .out = r->out[0]};
  if (!p->batch) return 0;
  cpu_move_bytes(r->run->exe->pool, run.out, run.b, p->batch * p->rows * p->columns * (int64_t)p->bytes);
  rt_parallel_for(r->run->exe->pool, (size_t)(p->batch * p->pieces), linalg_grain(p->n * p->n * p->sides),
                  linalg_solve_pieces, &run);
  return 0;
}

/* How sides are cut depends on sizes alone: the bits are the same for any number of threads. */
int cpu_prepare_triangular_solve(cpu_prepare_run *x) {
  linalg_plan p = {.side = 'R'};
  const ir_transpose form = (ir_transpose)ir_get_word(x->op, IR_ATTR_TRANSPOSE_A);
  if (!linalg_matrix(x->op->type, &p) || ir_operand_type(x->op, 0)->dtype != p.dtype) return 0;
  cpu_blas_fortran_fn *fn = NULL;
  TRY(linalg_find(x, p.dtype, "trsm", &fn));
  if (!fn) return 0;
  memcpy(&p.trsm, &fn, sizeof fn);
  bool left = ir_get_bool(x->op, IR_ATTR_LEFT_SIDE, false);
  p.side = left ? 'R' : 'L';
  p.n = left ? p.rows : p.columns;
  assert(p.batch == 0 || p.n > 0);
  p.uplo = ir_get_bool(x->op, IR_ATTR_LOWER, false) ? 'U' : 'L';
  p.trans = form == IR_TRANSPOSE_ADJOINT ? 'C' : form == IR_TRANSPOSE_YES ? 'T' : 'N';
  p.diag = ir_get_bool(x->op, IR_ATTR_UNIT_DIAGONAL, false) ? 'U' : 'N';
  int64_t sides = left ? p.columns : p.rows;
  /* As many sides as make a piece worth a call, and no more than there are. */
  p.sides = LINALG_PIECE_WORK / (p.n * p.n + 1) + 1;
  if (p.sides < LINALG_LEAST_SIDES) p.sides = LINALG_LEAST_SIDES;
  if (p.sides > sides) p.sides = sides ? sides : 1;
  p.pieces = sides ? (sides + p.sides - 1) / p.sides : 1;
  return linalg_give(x, &p, "trsm", linalg_solve);
}
