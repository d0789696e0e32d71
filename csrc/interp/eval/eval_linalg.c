/* cholesky and triangular-solve. Every type computes in f64 (complex ones in c128) and rounds once at the end.
 *
 * A batch is worked on matrix by matrix: widened, computed, rounded back. The two algorithms are written
 * once, in linalg_kernel.h, and included for reals and for complex numbers. */
#include "../algorithm/cplx.h"
#include "../blocks.h"

enum { LINALG_TICK = 1 << 16 /* elements between looks at interruptions */ };

#define T double
#define K(name) real_##name
#define MUL(a, b) ((a) * (b))
#define SUB(a, b) ((a) - (b))
#define DIV(a, b) ((a) / (b))
#define CONJ(a) (a)
#define REAL(a) (a)
#define FROM_REAL(a) (a)
#define NOT_A_NUMBER NAN
#include "../algorithm/linalg_kernel.h"
#undef T
#undef K
#undef MUL
#undef SUB
#undef DIV
#undef CONJ
#undef REAL
#undef FROM_REAL
#undef NOT_A_NUMBER
#define T cplx
#define K(name) complex_##name
#define MUL(a, b) cplx_mul(a, b)
#define SUB(a, b) cplx_sub(a, b)
#define DIV(a, b) cplx_div(a, b)
#define CONJ(a) cplx_conj(a)
#define REAL(a) ((a).re)
#define FROM_REAL(a) cplx_of(a, 0)
#define NOT_A_NUMBER cplx_of(NAN, NAN)
#include "../algorithm/linalg_kernel.h"
#undef T
#undef K
#undef MUL
#undef SUB
#undef DIV
#undef CONJ
#undef REAL
#undef FROM_REAL
#undef NOT_A_NUMBER

/* How element type `type` is computed. */
typedef struct linalg_form {
  base_dtype type, wide;
  size_t bytes, wide_bytes;
  bool is_complex;
} linalg_form;

static linalg_form linalg_form_of(base_dtype type) {
  assert(base_dtype_is_float(type) || base_dtype_is_complex(type));
  bool is_complex = base_dtype_is_complex(type);
  base_dtype wide = is_complex ? XLAC_C128 : XLAC_F64;
  return (linalg_form){type, wide, base_dtype_bytes(type), base_dtype_bytes(wide), is_complex};
}

/* n elements, 0 when that overflows; the caller frees. */
static void *linalg_buffer(interp_ctx *ctx, linalg_form form, int64_t n) {
  size_t bytes;
  return base_mul((size_t)n, form.wide_bytes, &bytes) ? base_malloc(ctx->options.alloc, bytes) : NULL;
}

/* The verifier knows this of static programs. */
static int linalg_check(interp_ctx *ctx, const ir_op *op, const interp_value *v) {
  if (v->kind != INTERP_ARRAY || v->rank < 2 || !(base_dtype_is_float(v->dtype) || base_dtype_is_complex(v->dtype)))
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s takes matrices of a float or complex type",
                       ir_opcode_text(op->opcode));
  return 0;
}

/* lower: which triangle is read, and which kind of factor is given. */
static int cholesky_batch(interp_ctx *ctx, linalg_form form, const interp_value *a, bool lower, interp_value *out) {
  assert(a->rank >= 2 && out->count == a->count && a->dtype == form.type);
  int64_t n = a->dims[a->rank - 1], size = n * n, batch = size ? a->count / size : 0;
  void *wide = linalg_buffer(ctx, form, size), *work = linalg_buffer(ctx, form, size);
  int status = wide && work ? 0 : base_oom(ctx->err, "cholesky");
  for (int64_t i = 0; i < batch && status == 0; i++) {
    size_t at = (size_t)(i * size) * form.bytes;
    status = interp_convert(ctx, form.wide, wide, form.type, (const char *)a->data + at, size);
    if (status == 0)
      status = form.is_complex ? complex_cholesky_matrix(ctx, work, wide, n, lower)
                               : real_cholesky_matrix(ctx, work, wide, n, lower);
    if (status == 0) status = interp_convert(ctx, form.type, (char *)out->data + at, form.wide, wide, size);
  }
  base_free(ctx->options.alloc, wide);
  base_free(ctx->options.alloc, work);
  return status;
}

int interp_eval_cholesky(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 1);
  const interp_value *a = operands[0];
  TRY(linalg_check(ctx, op, a));
  if (a->dims[a->rank - 1] != a->dims[a->rank - 2])
    return interp_fail(ctx, op, XLAC_E_EVAL, "cholesky takes square matrices, not %lld by %lld",
                       (long long)a->dims[a->rank - 2], (long long)a->dims[a->rank - 1]);
  interp_value *v = interp_array(ctx, a->dtype, a->rank, a->dims);
  if (!v) return base_oom(ctx->err, "cholesky");
  int status = cholesky_batch(ctx, linalg_form_of(a->dtype), a, ir_get_bool(op, IR_ATTR_LOWER, false), v);
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}

/* x op(a) = b is op(a)^T x^T = b^T: right sides become left ones by transposing on the way in and out. */
typedef struct solve_plan {
  bool right, lower, unit, transpose, conjugate;
  int64_t n, m, rows, columns; /* t is n by n; b is rows by columns, of m right-hand sides */
} solve_plan;

static solve_plan solve_plan_of(const ir_op *op, const interp_value *b) {
  const ir_transpose form = (ir_transpose)ir_get_word(op, IR_ATTR_TRANSPOSE_A);
  bool adjoint = form == IR_TRANSPOSE_ADJOINT;
  solve_plan p = {.right = !ir_get_bool(op, IR_ATTR_LEFT_SIDE, false), .conjugate = adjoint};
  p.transpose = (adjoint || form == IR_TRANSPOSE_YES) != p.right;
  p.lower = ir_get_bool(op, IR_ATTR_LOWER, false) != p.transpose;
  p.unit = ir_get_bool(op, IR_ATTR_UNIT_DIAGONAL, false);
  p.rows = b->dims[b->rank - 2], p.columns = b->dims[b->rank - 1];
  p.n = p.right ? p.columns : p.rows, p.m = p.right ? p.rows : p.columns;
  return p;
}

typedef struct solve_buffers {
  void *wide, *matrix, *sides;
} solve_buffers;

/* dst is src (rows by columns), transposed or conjugated. A matrix, transposed or conjugated or both. */
static int solve_copy(interp_ctx *ctx, linalg_form form, void *dst, const void *src, int64_t rows, int64_t columns,
                      bool transpose, bool conjugate) {
  return form.is_complex ? complex_matrix_copy(ctx, dst, src, rows, columns, transpose, conjugate)
                         : real_matrix_copy(ctx, dst, src, rows, columns, transpose, conjugate);
}

/* x A = b is solved as A^T x^T = b^T. */
static int solve_one(interp_ctx *ctx, const solve_plan *p, linalg_form form, const solve_buffers *s, const void *a,
                     const void *b, void *out) {
  TRY(interp_convert(ctx, form.wide, s->wide, form.type, a, p->n * p->n));
  TRY(solve_copy(ctx, form, s->matrix, s->wide, p->n, p->n, p->transpose, p->conjugate));
  TRY(interp_convert(ctx, form.wide, s->wide, form.type, b, p->n * p->m));
  TRY(solve_copy(ctx, form, s->sides, s->wide, p->rows, p->columns, p->right, false));
  if (form.is_complex) {
    TRY(complex_solve_matrix(ctx, s->matrix, s->sides, p->n, p->m, p->lower, p->unit));
  } else {
    TRY(real_solve_matrix(ctx, s->matrix, s->sides, p->n, p->m, p->lower, p->unit));
  }
  TRY(solve_copy(ctx, form, s->wide, s->sides, p->n, p->m, p->right, false));
  return interp_convert(ctx, form.type, out, form.wide, s->wide, p->n * p->m);
}

/* One set of buffers for all matrices. */
static int solve_batch(interp_ctx *ctx, const solve_plan *p, linalg_form form, const interp_value *a,
                       const interp_value *b, interp_value *out) {
  assert(a->dtype == form.type && b->dtype == form.type && out->count == b->count);
  int64_t size = p->n * p->n, side = p->n * p->m, batch = side ? b->count / side : 0;
  solve_buffers s = {linalg_buffer(ctx, form, size > side ? size : side), linalg_buffer(ctx, form, size),
                     linalg_buffer(ctx, form, side)};
  int status = s.wide && s.matrix && s.sides ? 0 : base_oom(ctx->err, "triangular-solve");
  for (int64_t i = 0; i < batch && status == 0; i++) {
    size_t at = (size_t)(i * side) * form.bytes;
    status = solve_one(ctx, p, form, &s, (const char *)a->data + (size_t)(i * size) * form.bytes,
                       (const char *)b->data + at, (char *)out->data + at);
  }
  base_free(ctx->options.alloc, s.wide);
  base_free(ctx->options.alloc, s.matrix);
  base_free(ctx->options.alloc, s.sides);
  return status;
}

int interp_eval_triangular_solve(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 2);
  const interp_value *a = operands[0], *b = operands[1];
  TRY(linalg_check(ctx, op, a));
  TRY(linalg_check(ctx, op, b));
  solve_plan p = solve_plan_of(op, b);
  bool fits = a->rank == b->rank && a->dtype == b->dtype && a->dims[a->rank - 1] == p.n && a->dims[a->rank - 2] == p.n;
  for (uint32_t d = 0; fits && d + 2 < a->rank; d++) fits = a->dims[d] == b->dims[d];
  if (!fits) return interp_fail(ctx, op, XLAC_E_EVAL, "the triangular matrices do not fit the right-hand sides");
  interp_value *v = interp_array(ctx, b->dtype, b->rank, b->dims);
  if (!v) return base_oom(ctx->err, "triangular-solve");
  int status = solve_batch(ctx, &p, linalg_form_of(b->dtype), a, b, v);
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}
