/* Cholesky and triangular-solve, in f64 or c128 as the interpreter has them, and in its order: a block for each matrix
 * that is factored, column after column; a thread for each right-hand side. */
#include "routine.h"

typedef struct cu_linalg {
  base_dtype type, wide;
  const char *c, *w; /* their names */
  bool is_complex;
} cu_linalg;

static cu_linalg cu_linalg_of(cuda_routine *r, base_dtype t) {
  bool is_complex = base_dtype_is_complex(t);
  base_dtype wide = is_complex ? XLAC_C128 : XLAC_F64;
  if (is_complex) cuda_print_needs(&r->print, cuda_type(t));
  if (is_complex) cuda_print_needs(&r->print, cuda_type(wide));
  return (cu_linalg){t, wide, cuda_type(t), cuda_type(wide), is_complex};
}

/* "auto <name> = [&](...) -> ...": the op on two wide numbers. */
static void cu_linalg_put_op(cuda_routine *r, const cu_linalg *x, const char *name, scalar_code code) {
  base_putf(r->print.out, "  auto %s = [&](%s a, %s b) -> %s { return ", name, x->w, x->w, x->w);
  cuda_print_combine(&r->print, code, x->wide, "a", "b");
  BASE_PUT(r->print.out, "; };\n");
}

/* "load", "narrowed", "conjugate", "times", "minus" and "over". */
static void cu_linalg_put_ops(cuda_routine *r, const cu_linalg *x) {
  base_text *out = r->print.out;
  base_putf(out, "  auto load = [&](const char *from, idx at) -> %s { const %s v = ((const %s *)from)[at]; return ",
            x->w, x->c, x->c);
  cuda_print_convert(&r->print, x->wide, x->type, "v");
  base_putf(out, "; };\n  auto narrowed = [&](%s v) -> %s { return ", x->w, x->c);
  cuda_print_convert(&r->print, x->type, x->wide, "v");
  base_putf(out, "; };\n  auto conjugate = [&](%s v) -> %s { return %s; };\n", x->w, x->w,
            x->is_complex ? "math_c128{v.re, -v.im}" : "v");
  cu_linalg_put_op(r, x, "times", SCALAR_MULTIPLY);
  cu_linalg_put_op(r, x, "minus", SCALAR_SUBTRACT);
  cu_linalg_put_op(r, x, "over", SCALAR_DIVIDE);
}

/* The sums of a column are each thread's own; the diagonal's root is waited for. */
bool cuda_print_cholesky(cuda_routine *r) {
  const ir_type *t = r->op->type;
  base_text *out = r->print.out;
  cu_linalg x = cu_linalg_of(r, (base_dtype)t->dtype);
  long long n = (long long)t->dims[t->rank - 1];
  bool lower = ir_get_bool(r->op, IR_ATTR_LOWER, false);
  const char *real = x.is_complex ? "v.re" : "v", *of_real = x.is_complex ? "math_c128{v, 0}" : "v";
  r->launch->scratch = t->count * (x.is_complex ? 16 : 8);
  r->launch->grid = t->count / (n * n);
  cuda_routine_head(r, 1, 1);
  cu_linalg_put_ops(r, &x);
  base_putf(out, "  auto real = [&](%s v) -> double { return %s; };\n", x.w, real);
  base_putf(out, "  auto of_real = [&](double v) -> %s { return %s; };\n", x.w, of_real);
  base_putf(out, "  const idx n = %lld, base = blockIdx.x * n * n;\n  %s *w = (%s *)scratch + base;\n", n, x.w, x.w);
  base_putf(out,
            "  __shared__ bool definite;\n  if (threadIdx.x == 0) definite = true;\n"
            "  for (idx j = 0; j < n; j++) {\n  __syncthreads();\n"
            "  for (idx i = j + threadIdx.x; i < n; i += %d) {\n",
            CUDA_BLOCK_THREADS);
  base_putf(out, "  %s v = %s;\n", x.w,
            lower ? "load(in0, base + i * n + j)" : "conjugate(load(in0, base + j * n + i))");
  BASE_PUT(out,
           "  if (i == j) v = of_real(real(v));\n"
           "  for (idx k = 0; k < j; k++) {\n  const auto p = times(w[i * n + k], conjugate(w[j * n + k]));\n"
           "  v = i == j ? of_real(real(v) - real(p)) : minus(v, p);\n  }\n"
           "  if (i == j && !(real(v) > 0)) definite = false;\n"
           "  w[i * n + j] = i == j ? of_real(sqrt(real(v))) : v;\n  }\n  __syncthreads();\n");
  base_putf(
      out,
      "  for (idx i = j + 1 + threadIdx.x; i < n; i += %d) w[i * n + j] = over(w[i * n + j], w[j * n + j]);\n  }\n"
      "  __syncthreads();\n",
      CUDA_BLOCK_THREADS);
  cuda_print_needs(&r->print, "base_f64_of");
  base_putf(
      out,
      "  const double none = base_f64_of(0x7FF8000000000000ull);\n  for (idx e = threadIdx.x; e < n * n; e += %d) {\n",
      CUDA_BLOCK_THREADS);
  base_putf(out, "  const idx i = e / n, j = e %% n;\n  %s v = of_real(0);\n", x.w);
  base_puts(out, lower ? "  if (j <= i) v = w[i * n + j];\n" : "  if (j >= i) v = conjugate(w[j * n + i]);\n");
  base_putf(out, "  if (!definite) v = %s;\n  ((%s *)out0)[base + e] = narrowed(v);\n  }\n",
            x.is_complex ? "math_c128{none, none}" : "none", x.c);
  cuda_routine_close(r, "a block for each matrix");
  return true;
}

/* x op(a) = b is op(a)^T x^T = b^T: "a" and "at" look where that is. */
bool cuda_print_triangular_solve(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = op->type;
  base_text *out = r->print.out;
  const ir_transpose form = (ir_transpose)ir_get_word(op, IR_ATTR_TRANSPOSE_A);
  cu_linalg x = cu_linalg_of(r, (base_dtype)t->dtype);
  bool right = !ir_get_bool(op, IR_ATTR_LEFT_SIDE, false), adjoint = form == IR_TRANSPOSE_ADJOINT;
  bool transpose = (adjoint || form == IR_TRANSPOSE_YES) != right;
  bool lower = ir_get_bool(op, IR_ATTR_LOWER, false) != transpose;
  long long rows = (long long)t->dims[t->rank - 2], columns = (long long)t->dims[t->rank - 1];
  long long n = right ? columns : rows, m = right ? rows : columns;
  if (ir_operand_type(op, 0)->dtype != t->dtype || ir_operand_type(op, 1)->dtype != t->dtype) return false;
  r->launch->scratch = t->count * (x.is_complex ? 16 : 8);
  cuda_routine_open(r, 2, 1, t->count / n);
  cu_linalg_put_ops(r, &x);
  base_putf(out, "  const idx N = %lld, M = %lld;\n", n, m);
  base_putf(out, "  const idx matrix = n / %lld * %lld, base = n / %lld * %lld, side = n %% %lld;\n", m, n * n, m,
            n * m, m);
  base_putf(out, "  auto a = [&](idx i, idx k) -> %s { return %s(load(in0, matrix + %s)); };\n", x.w,
            adjoint ? "conjugate" : "", transpose ? "k * N + i" : "i * N + k");
  base_putf(out, "  auto at = [&](idx i) -> idx { return base + %s; };\n", right ? "side * N + i" : "i * M + side");
  base_putf(out, "  %s *x = (%s *)scratch;\n  for (idx step = 0; step < N; step++) {\n  const idx i = %s;\n", x.w, x.w,
            lower ? "step" : "N - 1 - step");
  base_putf(out,
            "  %s v = load(in1, at(i));\n  for (idx k = %s; k < %s; k++) v = minus(v, times(a(i, k), x[at(k)]));\n",
            x.w, lower ? "0" : "i + 1", lower ? "i" : "N");
  if (!ir_get_bool(op, IR_ATTR_UNIT_DIAGONAL, false)) BASE_PUT(out, "  v = over(v, a(i, i));\n");
  base_putf(out, "  x[at(i)] = v;\n  ((%s *)out0)[at(i)] = narrowed(v);\n  }\n", x.c);
  cuda_routine_close(r, "a thread for each right-hand side");
  return true;
}
