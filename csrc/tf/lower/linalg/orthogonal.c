/* Decompositions of matrices by rotations (eigenvalues, singular values) and reflections (Qr), all matrices of a
 * batch at once. StableHLO has none of these as ops: they are loops of elementwise ops, slices and small products,
 * the same on all devices. */
#include <float.h>
#include <math.h>

#include "../repeat.h"
#include "../windows.h"

static int tfl_qr(tfl_op *x, ir_value a, bool thin, ir_value *q, ir_value *r);

/* Pairs of columns that rotations work on: place i and place i + half; after each round all but the first move on by
 * one, so that after n - 1 rounds each has met each. */
typedef struct tfl_pairs {
  int64_t n, half; /* n is even */
  int32_t *next;   /* where place i's next content is */
} tfl_pairs;

/* --- columns, rotations, order --- */

static ir_value orth_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* The matrices of input 0 as [batch, m, n]; fails for what is not real. */
static int tfl_matrices(tfl_op *x, int64_t dims[3], ir_value *out) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2 || !base_dtype_is_float((base_dtype)t->dtype))
    return tfl_fail(x, "it takes matrices of real numbers, found rank %u", t->rank);
  dims[0] = tfl_count(t->rank - 2, t->dims);
  dims[1] = t->dims[t->rank - 2];
  dims[2] = t->dims[t->rank - 1];
  if (dims[1] == 0 || dims[2] == 0) return tfl_fail(x, "the matrices have no elements");
  base_dtype wide = t->dtype == XLAC_F64 ? XLAC_F64 : XLAC_F32;
  *out = tfl_cast(x, tfl_reshape(x, tfl_in(x, 0), 3, dims), wide);
  return x->status;
}

/* v, [batch, ...], as output i with the batch's own dimensions. */
static void tfl_out_batch(tfl_op *x, uint32_t i, ir_value v) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t dims[TFL_MOST_DIMS + 2];
  if (!v.op) return;
  uint32_t lead = t->rank - 2, rest = opt_type(v)->rank - 1;
  for (uint32_t d = 0; d < lead; d++) dims[d] = t->dims[d];
  for (uint32_t d = 0; d < rest; d++) dims[lead + d] = opt_type(v)->dims[d + 1];
  tfl_out(x, i, tfl_cast(x, tfl_reshape(x, v, lead + rest, dims), tfl_out_dtype(x, i)));
}

/* A constant 0/1 matrix [batch, n, n]. */
static ir_value tfl_identity(tfl_op *x, base_dtype dtype, int64_t batch, int64_t n) {
  int64_t dims[] = {batch, n, n};
  return tfl_cast(
      x, tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2)), dtype);
}

/* [batch, m, k] [batch, k, n] */
static ir_value tfl_batch_dot(tfl_op *x, ir_value a, ir_value b) {
  const tfl_dot d = {
      .n_batch = 1, .n_contract = 1, .a_batch = {0}, .b_batch = {0}, .a_contract = {2}, .b_contract = {1}};
  if (!a.op || !b.op) return a;
  return tfl_dot_general(x, a, b, &d, (base_dtype)opt_type(a)->dtype);
}

/* --- pairs --- */

/* An odd n gets a place more. `next` is the round robin of a tournament: the first stays, the others go round. */
static int tfl_pairs_of(tfl_op *x, int64_t n, tfl_pairs *p) {
  assert(n > 0);
  *p = (tfl_pairs){.n = n + n % 2, .half = (n + 1) / 2};
  if (p->n > (1 << 15)) return tfl_fail(x, "matrices of %lld rows or columns are too large", (long long)n);
  p->next = BASE_ARRAY(x->arena, int32_t, (size_t)p->n);
  if (!p->next) return x->status = base_oom(x->err, "lowering");
  int32_t half = (int32_t)p->half, last = (int32_t)p->n - 1;
  p->next[0] = 0;
  if (half == 1) p->next[1] = 1;
  for (int32_t i = 1; i < half; i++) p->next[i] = i == 1 ? half : i - 1;
  for (int32_t i = half; i <= last && half > 1; i++) p->next[i] = i == last ? half - 1 : i + 1;
  return 0;
}

/* [batch, half] along v's dimensions 0 and d. */
static ir_value orth_spread(tfl_op *x, ir_value v, ir_value like, uint32_t d) {
  int64_t map[] = {0, d};
  return v.op && like.op ? opt_broadcast_in_dim(x->rw, v, opt_type(like), map) : (ir_value){NULL, 0};
}

/* Dimension d of v, [..., n, ...]: both halves turned by an angle, [batch, half] cosine and sine, and moved on. */
static ir_value tfl_rotate(tfl_op *x, const tfl_pairs *p, ir_value v, uint32_t d, ir_value cosine, ir_value sine) {
  assert(p->n == 2 * p->half);
  if (!v.op) return v;
  ir_value top = tfl_slice(x, v, d, 0, p->half), low = tfl_slice(x, v, d, p->half, p->n);
  ir_value c = orth_spread(x, cosine, top, d), s = orth_spread(x, sine, top, d);
  ir_value both[] = {orth_op(x, IR_OP_SUBTRACT, orth_op(x, IR_OP_MULTIPLY, c, top), orth_op(x, IR_OP_MULTIPLY, s, low)),
                     orth_op(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, s, top), orth_op(x, IR_OP_MULTIPLY, c, low))};
  return tfl_take(x, tfl_concat(x, 2, both, d), tfl_constant_i32(x, 1, &p->n, p->next), d, 0);
}

/* Cosine and sine of the angle that makes `off` zero beside `first` and `second`; no turn where off is 0. */
static void tfl_angle(tfl_op *x, ir_value first, ir_value second, ir_value off, ir_value *cosine, ir_value *sine) {
  if (!off.op) return;
  ir_value zero = tfl_like(x, off, 0), one = tfl_like(x, off, 1), none = tfl_compare(x, IR_DIRECTION_EQ, off, zero);
  ir_value twice = tfl_with(x, IR_OP_MULTIPLY, opt_select(x->rw, none, one, off), 2);
  ir_value z = orth_op(x, IR_OP_DIVIDE, orth_op(x, IR_OP_SUBTRACT, second, first), twice);
  ir_value root = opt_unary(x->rw, IR_OP_SQRT, tfl_with(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, z, z), 1));
  ir_value t = orth_op(x, IR_OP_DIVIDE, one, orth_op(x, IR_OP_ADD, opt_unary(x->rw, IR_OP_ABS, z), root));
  t = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, z, zero), opt_unary(x->rw, IR_OP_NEGATE, t), t);
  t = opt_select(x->rw, none, zero, t);
  *cosine = opt_unary(x->rw, IR_OP_RSQRT, tfl_with(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, t, t), 1));
  *sine = orth_op(x, IR_OP_MULTIPLY, t, *cosine);
}

/* --- order --- */

/* For each key how many come before it: [batch, n]. Equal keys keep their order, so that ranks are a permutation. */
static ir_value orth_ranks(tfl_op *x, bool descending, ir_value keys) {
  const ir_type *t = opt_type(keys);
  int64_t n = t->dims[1], dims[] = {t->dims[0], n, n}, own[] = {0, 1}, other[] = {0, 2}, last = 2;
  const ir_type *square = tfl_type(x, (base_dtype)t->dtype, 3, dims);
  ir_value a = opt_broadcast_in_dim(x->rw, keys, square, own), b = opt_broadcast_in_dim(x->rw, keys, square, other);
  ir_value before = tfl_compare(x, descending ? IR_DIRECTION_GT : IR_DIRECTION_LT, b, a),
           same = tfl_compare(x, IR_DIRECTION_EQ, b, a);
  ir_value earlier =
      tfl_compare(x, IR_DIRECTION_LT, tfl_iota(x, XLAC_S32, 3, dims, 2), tfl_iota(x, XLAC_S32, 3, dims, 1));
  before = orth_op(x, IR_OP_OR, before, orth_op(x, IR_OP_AND, same, earlier));
  return tfl_reduce(x, IR_OP_ADD, tfl_cast(x, before, XLAC_S32), 0, 1, &last);
}

/* keys [batch, n] put in order, and the columns of v, [batch, rows, n], with them. By a product with a permutation
 * matrix, since gathers would need indices for each matrix of the batch. */
static void tfl_order_columns(tfl_op *x, bool descending, ir_value *keys, ir_value *v, uint32_t n_more,
                              ir_value *more) {
  if (!keys->op) return;
  const ir_type *t = opt_type(*keys);
  int64_t n = t->dims[1], dims[] = {t->dims[0], n, n}, map[] = {0, 1}, from = 1;
  ir_value ranks = orth_ranks(x, descending, *keys);
  if (!ranks.op) return;
  ranks = opt_broadcast_in_dim(x->rw, ranks, tfl_type(x, XLAC_S32, 3, dims), map);
  ir_value hot = tfl_compare(x, IR_DIRECTION_EQ, ranks, tfl_iota(x, XLAC_S32, 3, dims, 2));
  const ir_type *square = tfl_type(x, (base_dtype)t->dtype, 3, dims);
  ir_value spread = opt_broadcast_in_dim(x->rw, *keys, square, map);
  if (!spread.op || !hot.op) return;
  *keys = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, hot, spread, tfl_like(x, spread, 0)), 0, 1, &from);
  ir_value moves = tfl_cast(x, hot, (base_dtype)t->dtype);
  *v = tfl_batch_dot(x, *v, moves);
  for (uint32_t i = 0; i < n_more; i++) more[i] = tfl_batch_dot(x, more[i], moves);
}

/* --- Jacobi's rotations --- */

/* Sweeps after which even a matrix with NaNs ends. Jacobi's method converges quadratically: six or so are usual. */
enum { EIG_MOST_SWEEPS = 30, EIG_SYMMETRIC = 0, EIG_SYMMETRIC_XLA = 1, EIG_SVD = 0, EIG_SVD_XLA = 1 };

static ir_value eig_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* The distance of 1 to the next number. */
static double eig_epsilon(ir_value v) {
  return opt_type(v)->dtype == XLAC_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

/* Elements [row0 + i, column0 + i], i < n: [batch, n]. */
static ir_value eig_diagonal(tfl_op *x, ir_value a, int64_t row, int64_t column, int64_t n) {
  assert(n > 0);
  int64_t last = 2;
  ir_value v = tfl_slice(x, tfl_slice(x, a, 1, row, row + n), 2, column, column + n);
  if (!v.op) return v;
  const int64_t *dims = opt_type(v)->dims;
  ir_value on = tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, on, v, tfl_like(x, v, 0)), 0, 1, &last);
}

/* Goes on while `far` holds somewhere, for some sweeps at most. */
static ir_value eig_go_on(tfl_op *x, const tfl_pairs *p, ir_value far, ir_value step) {
  double most = (double)(EIG_MOST_SWEEPS * (p->n > 1 ? p->n - 1 : 1));
  return eig_op(x, IR_OP_AND, tfl_any(x, far), tfl_compare(x, IR_DIRECTION_LT, step, tfl_like(x, step, most)));
}

/* Zeros below and to the right. */
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
  return opt_select(x->rw, tfl_compare(x, lower ? IR_DIRECTION_GE : IR_DIRECTION_LE, row, column), a,
                    tfl_transpose(x, a, turn));
}

/* Whether what is beside the diagonal is not small beside all: [batch]. */
static ir_value eig_far(tfl_op *x, ir_value a) {
  int64_t both[] = {1, 2};
  if (!a.op) return a;
  const int64_t *dims = opt_type(a)->dims;
  ir_value beside =
      tfl_compare(x, IR_DIRECTION_NE, tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  ir_value size = eig_op(x, IR_OP_MULTIPLY, a, a), all = tfl_reduce(x, IR_OP_ADD, size, 0, 2, both);
  ir_value off = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, beside, size, tfl_like(x, size, 0)), 0, 2, both);
  double limit = eig_epsilon(a) * eig_epsilon(a) / 16;
  return tfl_compare(x, IR_DIRECTION_GT, off, tfl_with(x, IR_OP_MULTIPLY, all, limit));
}

/* a becomes diagonal, v has the vectors; both with n places. Rotates rows and columns, so that each round makes
 * the elements of n/2 pairs zero. */
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
  return opt_select(x->rw, tfl_compare(x, IR_DIRECTION_NE, own, tfl_like(x, own, 0)), tfl_like(x, keys, key), keys);
}

/* arg 0: SelfAdjointEigV2, 1: XlaSelfAdjointEig. Eigenvalues rise. Output 1 is empty where vectors are not asked
 * for. */
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

/* [batch, half]: the inner products of columns. */
static ir_value eig_column_products(tfl_op *x, ir_value a, ir_value b) {
  int64_t rows = 1;
  return tfl_reduce(x, IR_OP_ADD, eig_op(x, IR_OP_MULTIPLY, a, b), 0, 1, &rows);
}

/* Two columns are not at right angles as far as rounding lets them. */
static ir_value eig_not_right(tfl_op *x, ir_value first, ir_value second, ir_value off) {
  if (!off.op) return off;
  ir_value limit = opt_unary(x->rw, IR_OP_SQRT, eig_op(x, IR_OP_MULTIPLY, first, second));
  limit = tfl_with(x, IR_OP_MULTIPLY, limit, eig_epsilon(off));
  return tfl_compare(x, IR_DIRECTION_GT, opt_unary(x->rw, IR_OP_ABS, off), limit);
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
  ir_value next[] = {eig_go_on(x, p, tfl_compare(x, IR_DIRECTION_LT, quiet, sweep), step), step, quiet,
                     tfl_rotate(x, p, r.state[3], 2, c, s), tfl_rotate(x, p, r.state[4], 2, c, s)};
  tfl_repeat_end(x, &r, next, all);
  *w = all[3];
  *v = all[4];
  return x->status;
}

/* [batch, m, n] with m >= n. u is [batch, m, m], or its first n columns where `thin`. Columns in order of their lengths
 * are q r with a diagonal r, whose signs u takes. */
static int eig_svd(tfl_op *x, ir_value a, bool thin, ir_value *s, ir_value *u, ir_value *v) {
  assert(opt_type(a)->dims[1] >= opt_type(a)->dims[2]);
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
  ir_value below = tfl_compare(x, IR_DIRECTION_LT, heads, tfl_like(x, heads, 0));
  ir_value signs = opt_select(x->rw, below, tfl_like(x, heads, -1), tfl_like(x, heads, 1));
  int64_t all[] = {batch, thin ? n : m}, low[] = {0, 0}, high[] = {0, all[1] - n};
  if (high[1] > 0) signs = tfl_pad(x, signs, tfl_scalar(x, dtype, 1), low, high, NULL);
  if (signs.op) *u = eig_op(x, IR_OP_MULTIPLY, *u, opt_broadcast_in_dim(x->rw, signs, opt_type(*u), map));
  return x->status;
}

/* arg 0: Svd, 1: XlaSvd. A wide matrix is turned; u and v change places. */
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

/* --- Householder's reflections --- */

/* One of Householder's reflections, I - scale u u', for each matrix of the batch. */
typedef struct qr_step {
  ir_value u, scale; /* [batch, m]; [batch]: what is taken away is scale u u' */
} qr_step;

static ir_value qr_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* Column k of r, [batch, m]. */
static ir_value qr_column(tfl_op *x, ir_value r, ir_value k) {
  if (!r.op) return r;
  int64_t batch = opt_type(r)->dims[0], m = opt_type(r)->dims[1], sizes[] = {batch, m, 1}, dims[] = {batch, m};
  ir_value zero = tfl_scalar(x, XLAC_S64, 0), starts[] = {zero, zero, k};
  return tfl_reshape(x, tfl_dynamic_slice(x, r, starts, sizes), 2, dims);
}

/* The sum of v where the mask holds, along the rows. */
static ir_value qr_masked_sum(tfl_op *x, ir_value mask, ir_value v) {
  int64_t rows = 1;
  if (!mask.op || !v.op) return v;
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, mask, v, tfl_like(x, v, 0)), 0, 1, &rows);
}

/* The reflection that clears column k below place k. None where it is clear already, as LAPACK has it. */
static qr_step qr_reflection(tfl_op *x, ir_value r, ir_value k) {
  int64_t batch = 0;
  qr_step s = {{NULL, 0}, {NULL, 0}};
  ir_value v = qr_column(x, r, k);
  if (!v.op) return s;
  ir_value place = tfl_iota(x, XLAC_S64, 2, opt_type(v)->dims, 1);
  ir_value here = tfl_compare(x, IR_DIRECTION_EQ, place, k), below = tfl_compare(x, IR_DIRECTION_GT, place, k);
  ir_value tail = qr_masked_sum(x, below, qr_op(x, IR_OP_MULTIPLY, v, v)), head = qr_masked_sum(x, here, v);
  ir_value size = opt_unary(x->rw, IR_OP_SQRT, qr_op(x, IR_OP_ADD, tail, qr_op(x, IR_OP_MULTIPLY, head, head)));
  if (!size.op) return s;
  ir_value zero = tfl_like(x, size, 0);
  ir_value turned =
      opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, head, zero), opt_unary(x->rw, IR_OP_NEGATE, size), size);
  ir_value first = qr_op(x, IR_OP_ADD, head, turned);
  ir_value square = qr_op(x, IR_OP_ADD, tail, qr_op(x, IR_OP_MULTIPLY, first, first));
  ir_value none = tfl_compare(x, IR_DIRECTION_EQ, tail, zero);
  ir_value safe = opt_select(x->rw, none, tfl_like(x, square, 1), square);
  s.scale = opt_select(x->rw, none, zero, qr_op(x, IR_OP_DIVIDE, tfl_like(x, size, 2), safe));
  first = first.op ? opt_broadcast_in_dim(x->rw, first, opt_type(v), &batch) : first;
  s.u = opt_select(x->rw, here, first, opt_select(x->rw, below, v, tfl_like(x, v, 0)));
  return s;
}

/* v - scale u (u' v), or with `right` v - scale (v u) u': u goes along v's dimension 1 or 2. */
static ir_value qr_reflect(tfl_op *x, ir_value v, qr_step s, bool right) {
  int64_t along[] = {0, right ? 2 : 1}, across[] = {0, right ? 1 : 2}, gone = right ? 2 : 1, batch = 0;
  if (!v.op || !s.u.op || !s.scale.op) return v;
  ir_value u = opt_broadcast_in_dim(x->rw, s.u, opt_type(v), along);
  ir_value dot = tfl_reduce(x, IR_OP_ADD, qr_op(x, IR_OP_MULTIPLY, u, v), 0, 1, &gone);
  if (!dot.op) return v;
  dot = qr_op(x, IR_OP_MULTIPLY, dot, opt_broadcast_in_dim(x->rw, s.scale, opt_type(dot), &batch));
  if (!dot.op) return v;
  return qr_op(x, IR_OP_SUBTRACT, v,
               qr_op(x, IR_OP_MULTIPLY, u, opt_broadcast_in_dim(x->rw, dot, opt_type(v), across)));
}

/* What is below the diagonal is rounding: zero. */
static ir_value qr_upper(tfl_op *x, ir_value r) {
  if (!r.op) return r;
  const int64_t *dims = opt_type(r)->dims;
  ir_value in = tfl_compare(x, IR_DIRECTION_LE, tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  return opt_select(x->rw, in, r, tfl_like(x, r, 0));
}

/* [batch, m, n] = q r, q [batch, m, m] (or its first columns where `thin`). Signs as LAPACK's. */
static int tfl_qr(tfl_op *x, ir_value a, bool thin, ir_value *q, ir_value *r) {
  if (!a.op) return x->status;
  const ir_type *t = opt_type(a);
  int64_t m = t->dims[1], n = t->dims[2], least = m < n ? m : n;
  ir_value state[] = {tfl_identity(x, (base_dtype)t->dtype, t->dims[0], m), a}, out[2];
  ir_value limit = opt_splat_int(x->rw, tfl_type(x, XLAC_S64, 0, NULL), least);
  if (x->status || !state[0].op) return x->status;
  opt_loop loop;
  opt_loop_begin(x->rw, &loop, limit, 2, state);
  if (x->rw->failed) return x->status = base_oom(x->err, "lowering");
  qr_step s = qr_reflection(x, loop.state[1], loop.index);
  ir_value next[] = {qr_reflect(x, loop.state[0], s, true), qr_reflect(x, loop.state[1], s, false)};
  opt_loop_end(x->rw, &loop, next, out);
  *q = thin ? tfl_slice(x, out[0], 2, 0, least) : out[0];
  *r = qr_upper(x, thin ? tfl_slice(x, out[1], 1, 0, least) : out[1]);
  return x->status;
}

/* Attribute full_matrices decides whether q is square. */
int tfl_row_qr(tfl_op *x) {
  int64_t dims[3];
  ir_value a = {NULL, 0}, q = {NULL, 0}, r = {NULL, 0};
  TRY(tfl_matrices(x, dims, &a));
  TRY(tfl_qr(x, a, !tfl_attr_bool(x, "full_matrices"), &q, &r));
  tfl_out_batch(x, 0, q);
  tfl_out_batch(x, 1, r);
  return x->status;
}
