/* Eigenvalues of symmetric matrices, and singular values: Jacobi's rotations, half of all columns with the other half
 * at a time (Brent and Luk's order), until what is beside the diagonal is small. */
#include <float.h>
#include <math.h>

#include "../orthogonal.h"

enum { EIG_MOST_SWEEPS = 30, EIG_SYMMETRIC = 0, EIG_SYMMETRIC_XLA = 1, EIG_SVD = 0, EIG_SVD_XLA = 1 };

static ir_value eig_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

static double eig_epsilon(ir_value v) {
  return opt_type(v)->dtype == XLAC_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

/* Elements [row0 + i, column0 + i], i < n: [batch, n]. */
static ir_value eig_diagonal(tfl_op *x, ir_value a, int64_t row, int64_t column, int64_t n) {
  int64_t last = 2;
  ir_value v = tfl_slice(x, tfl_slice(x, a, 1, row, row + n), 2, column, column + n);
  if (!v.op) return v;
  const int64_t *dims = opt_type(v)->dims;
  ir_value on = tfl_compare(x, "EQ", tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, on, v, tfl_like(x, v, 0)), 0, 1, &last);
}

/* Goes on while `far` holds somewhere, for some sweeps at most. */
static ir_value eig_go_on(tfl_op *x, const tfl_pairs *p, ir_value far, ir_value step) {
  double most = (double)(EIG_MOST_SWEEPS * (p->n > 1 ? p->n - 1 : 1));
  return eig_op(x, IR_OP_AND, tfl_any(x, far), tfl_compare(x, "LT", step, tfl_like(x, step, most)));
}

static ir_value eig_pad(tfl_op *x, ir_value v, int64_t rows, int64_t columns) {
  int64_t low[] = {0, 0, 0}, high[] = {0, rows, columns};
  if (!v.op || (rows == 0 && columns == 0)) return v;
  return tfl_pad(x, v, tfl_scalar(x, (base_dtype)opt_type(v)->dtype, 0), low, high, NULL);
}

/* --- symmetric matrices --- */

/* One triangle, and itself turned. */
static ir_value eig_symmetric(tfl_op *x, ir_value a, bool lower) {
  int64_t turn[] = {0, 2, 1};
  if (!a.op) return a;
  const int64_t *dims = opt_type(a)->dims;
  ir_value row = tfl_iota(x, XLAC_S32, 3, dims, 1), column = tfl_iota(x, XLAC_S32, 3, dims, 2);
  return opt_select(x->rw, tfl_compare(x, lower ? "GE" : "LE", row, column), a, tfl_transpose(x, a, turn));
}

/* Whether what is beside the diagonal is not small beside all: [batch]. */
static ir_value eig_far(tfl_op *x, ir_value a) {
  int64_t both[] = {1, 2};
  if (!a.op) return a;
  const int64_t *dims = opt_type(a)->dims;
  ir_value beside = tfl_compare(x, "NE", tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  ir_value size = eig_op(x, IR_OP_MULTIPLY, a, a), all = tfl_reduce(x, IR_OP_ADD, size, 0, 2, both);
  ir_value off = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, beside, size, tfl_like(x, size, 0)), 0, 2, both);
  double limit = eig_epsilon(a) * eig_epsilon(a) / 16;
  return tfl_compare(x, "GT", off, tfl_with(x, IR_OP_MULTIPLY, all, limit));
}

/* a becomes diagonal, v has the vectors; both with n places. */
static int eig_rotate_symmetric(tfl_op *x, const tfl_pairs *p, ir_value *a, ir_value *v) {
  ir_value step = tfl_scalar(x, XLAC_S32, 0), all[4], c = {NULL, 0}, s = {NULL, 0};
  ir_value inits[] = {tfl_any(x, eig_far(x, *a)), step, *a, *v};
  tfl_repeat r;
  TRY(tfl_repeat_begin(x, &r, 4, inits));
  ir_value m = r.state[2], first = eig_diagonal(x, m, 0, 0, p->half),
           second = eig_diagonal(x, m, p->half, p->half, p->half);
  tfl_angle(x, first, second, eig_diagonal(x, m, 0, p->half, p->half), &c, &s);
  m = tfl_rotate(x, p, tfl_rotate(x, p, m, 1, c, s), 2, c, s);
  step = tfl_with(x, IR_OP_ADD, r.state[1], 1);
  ir_value next[] = {eig_go_on(x, p, eig_far(x, m), step), step, m, tfl_rotate(x, p, r.state[3], 2, c, s)};
  tfl_repeat_end(x, &r, next, all);
  *a = all[2];
  *v = all[3];
  return x->status;
}

/* A place that was only added has a vector of its own, and gets a value larger than all. */
static ir_value eig_mark_padding(tfl_op *x, ir_value keys, ir_value v, int64_t n, double key) {
  if (!v.op || opt_type(v)->dims[2] == n) return keys;
  int64_t dims[] = {opt_type(v)->dims[0], opt_type(v)->dims[2]};
  ir_value own = tfl_reshape(x, tfl_slice(x, v, 1, n, n + 1), 2, dims);
  return opt_select(x->rw, tfl_compare(x, "NE", own, tfl_like(x, own, 0)), tfl_like(x, keys, key), keys);
}

/* arg 0: SelfAdjointEigV2, 1: XlaSelfAdjointEig. */
int tfl_row_symmetric_eigen(tfl_op *x) {
  int64_t dims[3];
  ir_value a = {NULL, 0};
  tfl_pairs p;
  bool xla = x->row->arg == EIG_SYMMETRIC_XLA, vectors = xla || tfl_attr_bool(x, "compute_v");
  TRY(tfl_matrices(x, dims, &a));
  if (dims[1] != dims[2]) return tfl_fail(x, "the matrices are not square");
  int64_t n = dims[1];
  TRY(tfl_pairs_of(x, n, &p));
  a = eig_pad(x, eig_symmetric(x, a, !xla || tfl_attr_bool(x, "lower")), p.n - n, p.n - n);
  if (!a.op) return x->status;
  ir_value v = tfl_identity(x, (base_dtype)opt_type(a)->dtype, dims[0], p.n);
  TRY(eig_rotate_symmetric(x, &p, &a, &v));
  ir_value keys = eig_mark_padding(x, eig_diagonal(x, a, 0, 0, p.n), v, n, INFINITY);
  tfl_order_columns(x, false, &keys, &v, 0, NULL);
  tfl_out_batch(x, 0, tfl_slice(x, keys, 1, 0, n));
  if (vectors)
    tfl_out_batch(x, 1, tfl_slice(x, tfl_slice(x, v, 1, 0, n), 2, 0, n));
  else
    tfl_out(x, 1, tfl_full(x, tfl_out_dtype(x, 1), 1, (int64_t[]){0}, 0));
  return x->status;
}

/* --- singular values: columns are turned until they are at right angles --- */

static ir_value eig_column_products(tfl_op *x, ir_value a, ir_value b) {
  int64_t rows = 1;
  return tfl_reduce(x, IR_OP_ADD, eig_op(x, IR_OP_MULTIPLY, a, b), 0, 1, &rows);
}

/* Two columns are not at right angles as far as rounding lets them. */
static ir_value eig_not_right(tfl_op *x, ir_value first, ir_value second, ir_value off) {
  if (!off.op) return off;
  ir_value limit = opt_unary(x->rw, IR_OP_SQRT, eig_op(x, IR_OP_MULTIPLY, first, second));
  limit = tfl_with(x, IR_OP_MULTIPLY, limit, eig_epsilon(off));
  return tfl_compare(x, "GT", opt_unary(x->rw, IR_OP_ABS, off), limit);
}

/* The state has, beside the number of rounds, how many went by without a turn: n - 1 of these are a whole sweep. */
static int eig_rotate_columns(tfl_op *x, const tfl_pairs *p, ir_value *w, ir_value *v) {
  ir_value step = tfl_scalar(x, XLAC_S32, 0), all[5], c = {NULL, 0}, s = {NULL, 0};
  ir_value inits[] = {tfl_scalar(x, XLAC_PRED, 1), step, step, *w, *v};
  tfl_repeat r;
  TRY(tfl_repeat_begin(x, &r, 5, inits));
  ir_value top = tfl_slice(x, r.state[3], 2, 0, p->half), low = tfl_slice(x, r.state[3], 2, p->half, p->n);
  ir_value first = eig_column_products(x, top, top), second = eig_column_products(x, low, low);
  ir_value off = eig_column_products(x, top, low), turn = eig_not_right(x, first, second, off);
  if (!turn.op) return x->status ? x->status : (x->status = base_oom(x->err, "lowering"));
  tfl_angle(x, first, second, opt_select(x->rw, turn, off, tfl_like(x, off, 0)), &c, &s);
  ir_value quiet = tfl_with(x, IR_OP_ADD, r.state[2], 1);
  quiet = opt_select(x->rw, tfl_any(x, turn), tfl_like(x, quiet, 0), quiet);
  step = tfl_with(x, IR_OP_ADD, r.state[1], 1);
  ir_value sweep = tfl_like(x, quiet, (double)(p->n > 1 ? p->n - 1 : 1));
  ir_value next[] = {eig_go_on(x, p, tfl_compare(x, "LT", quiet, sweep), step), step, quiet,
                     tfl_rotate(x, p, r.state[3], 2, c, s), tfl_rotate(x, p, r.state[4], 2, c, s)};
  tfl_repeat_end(x, &r, next, all);
  *w = all[3];
  *v = all[4];
  return x->status;
}

/* [batch, m, n] with m >= n. u is [batch, m, m], or its first n columns where `thin`. Columns in order of their lengths
 * are q r with a diagonal r, whose signs u takes. */
static int eig_svd(tfl_op *x, ir_value a, bool thin, ir_value *s, ir_value *u, ir_value *v) {
  tfl_pairs p;
  int64_t m = opt_type(a)->dims[1], n = opt_type(a)->dims[2], batch = opt_type(a)->dims[0], map[] = {0, 2};
  base_dtype dtype = (base_dtype)opt_type(a)->dtype;
  TRY(tfl_pairs_of(x, n, &p));
  ir_value w = eig_pad(x, a, 0, p.n - n), turned = tfl_identity(x, dtype, batch, p.n), r = {NULL, 0};
  TRY(eig_rotate_columns(x, &p, &w, &turned));
  ir_value sizes = opt_unary(x->rw, IR_OP_SQRT, eig_column_products(x, w, w));
  ir_value keys = eig_mark_padding(x, sizes, turned, n, -1);
  tfl_order_columns(x, true, &keys, &w, 1, &turned);
  *s = tfl_slice(x, keys, 1, 0, n);
  *v = tfl_slice(x, tfl_slice(x, turned, 1, 0, n), 2, 0, n);
  TRY(tfl_qr(x, tfl_slice(x, w, 2, 0, n), thin, u, &r));
  ir_value heads = eig_diagonal(x, r, 0, 0, n);
  if (!heads.op || !u->op) return x->status;
  ir_value below = tfl_compare(x, "LT", heads, tfl_like(x, heads, 0));
  ir_value signs = opt_select(x->rw, below, tfl_like(x, heads, -1), tfl_like(x, heads, 1));
  int64_t all[] = {batch, thin ? n : m}, low[] = {0, 0}, high[] = {0, all[1] - n};
  if (high[1] > 0) signs = tfl_pad(x, signs, tfl_scalar(x, dtype, 1), low, high, NULL);
  if (signs.op) *u = eig_op(x, IR_OP_MULTIPLY, *u, opt_broadcast_in_dim(x->rw, signs, opt_type(*u), map));
  return x->status;
}

/* arg 0: Svd, 1: XlaSvd. */
int tfl_row_svd(tfl_op *x) {
  int64_t dims[3], turn[] = {0, 2, 1};
  ir_value a = {NULL, 0}, s = {NULL, 0}, u = {NULL, 0}, v = {NULL, 0};
  bool xla = x->row->arg == EIG_SVD_XLA, vectors = xla || tfl_attr_bool(x, "compute_uv");
  bool thin = xla || !tfl_attr_bool(x, "full_matrices");
  TRY(tfl_matrices(x, dims, &a));
  bool wide = dims[1] < dims[2];
  if (wide) a = tfl_transpose(x, a, turn);
  if (!a.op) return x->status;
  TRY(eig_svd(x, a, thin, &s, &u, &v));
  tfl_out_batch(x, 0, s);
  if (vectors) {
    tfl_out_batch(x, 1, wide ? v : u);
    tfl_out_batch(x, 2, wide ? u : v);
    return x->status;
  }
  for (uint32_t i = 1; i < 3; i++) tfl_out(x, i, tfl_full(x, tfl_out_dtype(x, i), 1, (int64_t[]){0}, 0));
  return x->status;
}
