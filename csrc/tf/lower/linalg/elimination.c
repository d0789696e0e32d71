/* Elimination with partial pivoting, one loop over the columns, all matrices of the batch at once: determinants,
 * systems of equations, inverses. Rows are picked and exchanged with masks rather than indices, so that every
 * matrix of the batch may have a pivot of its own. */
#include "../windows.h"

/* --- determinants --- */

/* MatrixDeterminant and LogMatrixDeterminant on [batch, n, n]. */
typedef struct det_plan {
  int64_t batch, n;
  base_dtype dtype;
} det_plan;

/* What the loop over the columns carries. */
typedef struct det_state {
  ir_value m, sign, size; /* [batch, n, n]; [batch]: the sign; the product's size, or its logarithm */
} det_state;

/* [batch, n] to where it is in [batch, n, n]. */
static ir_value det_spread(tfl_op *x, ir_value v, ir_value like, int64_t dim) {
  int64_t map[] = {0, dim};
  if (!v.op || !like.op) return v;
  return opt_broadcast_in_dim(x->rw, v, opt_with_dtype(x->rw, opt_type(like), (base_dtype)opt_type(v)->dtype), map);
}

/* Row `hot` of m; or, with dim 2, a column. A sum over a mask that is true once, which picks without rounding. */
static ir_value det_line(tfl_op *x, ir_value m, ir_value hot, int64_t dim) {
  if (!m.op || !hot.op) return m;
  ir_value here = det_spread(x, hot, m, dim);
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, m, tfl_like(x, m, 0)), 0, 1, &dim);
}

/* The row at `hot` becomes `row`. */
static ir_value det_replace(tfl_op *x, ir_value m, ir_value hot, ir_value row) {
  if (!m.op || !row.op) return m;
  return opt_select(x->rw, det_spread(x, hot, m, 1), det_spread(x, row, m, 2), m);
}

/* [batch, n], true at the first of the largest elements of `column` from k on. */
static ir_value det_pivot(tfl_op *x, ir_value column, ir_value place, ir_value k) {
  int64_t rows = 1, batch = 0;
  if (!column.op) return column;
  ir_value size = opt_unary(x->rw, IR_OP_ABS, column);
  size = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_GE, place, k), size, tfl_like(x, size, -1));
  ir_value most = tfl_reduce(x, IR_OP_MAXIMUM, size, -1, 1, &rows);
  if (!most.op) return most;
  ir_value is = tfl_compare(x, IR_DIRECTION_EQ, size, opt_broadcast_in_dim(x->rw, most, opt_type(size), &batch));
  ir_value at = opt_select(x->rw, is, place, tfl_like(x, place, 1e9));
  ir_value first = tfl_reduce(x, IR_OP_MINIMUM, at, 1e9, 1, &rows);
  return first.op ? tfl_compare(x, IR_DIRECTION_EQ, place, opt_broadcast_in_dim(x->rw, first, opt_type(place), &batch))
                  : first;
}

/* Column k: bring the pivot up, multiply the determinant by it, clear what is below. Exchanging two rows turns the
 * sign. */
static det_state det_step(tfl_op *x, const det_plan *p, det_state s, ir_value k) {
  int64_t dims[] = {p->batch, p->n}, rows = 1, batch = 0;
  ir_value place = tfl_iota(x, XLAC_S64, 2, dims, 1), here = tfl_compare(x, IR_DIRECTION_EQ, place, k);
  ir_value pivot = det_pivot(x, det_line(x, s.m, here, 2), place, k);
  ir_value row = det_line(x, s.m, pivot, 1), other = det_line(x, s.m, here, 1);
  s.m = det_replace(x, det_replace(x, s.m, pivot, other), here, row);
  if (!row.op || !s.m.op) return s;
  ir_value head = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, row, tfl_like(x, row, 0)), 0, 1, &rows);
  ir_value moved = tfl_reduce(x, IR_OP_AND, tfl_compare(x, IR_DIRECTION_EQ, pivot, here), 1, 1, &rows);
  if (!head.op || !moved.op) return s;
  ir_value turn = opt_select(x->rw, moved, tfl_like(x, head, 1), tfl_like(x, head, -1));
  ir_value factor = opt_binary(x->rw, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_SIGN, head), turn);
  s.sign = opt_binary(x->rw, IR_OP_MULTIPLY, s.sign, factor);
  ir_value size = opt_unary(x->rw, IR_OP_ABS, head);
  s.size = x->row->arg ? opt_binary(x->rw, IR_OP_ADD, s.size, opt_unary(x->rw, IR_OP_LOG, size))
                       : opt_binary(x->rw, IR_OP_MULTIPLY, s.size, size);
  /* What is below loses its multiple of the row; a column of zeros has none to lose. */
  ir_value safe =
      opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, head, tfl_like(x, head, 0)), tfl_like(x, head, 1), head);
  ir_value column = det_line(x, s.m, here, 2);
  column = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_GT, place, k), column, tfl_like(x, column, 0));
  row = opt_binary(x->rw, IR_OP_DIVIDE, row, opt_broadcast_in_dim(x->rw, safe, opt_type(row), &batch));
  ir_value taken = opt_binary(x->rw, IR_OP_MULTIPLY, det_spread(x, column, s.m, 1), det_spread(x, row, s.m, 2));
  s.m = opt_binary(x->rw, IR_OP_SUBTRACT, s.m, taken);
  return s;
}

/* arg: 0 the determinant, 1 its sign and the logarithm of its size. */
int tfl_row_determinant(tfl_op *x) {
  assert(x->row->arg == 0 || x->row->arg == 1);
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2 || t->dims[t->rank - 1] != t->dims[t->rank - 2] || base_dtype_is_complex((base_dtype)t->dtype))
    return tfl_fail(x, "it takes square matrices of real numbers");
  det_plan p = {tfl_count(t->rank - 2, t->dims), t->dims[t->rank - 1], (base_dtype)t->dtype};
  int64_t dims[] = {p.batch, p.n, p.n};
  ir_value state[3] = {tfl_reshape(x, tfl_in(x, 0), 3, dims), tfl_full(x, p.dtype, 1, dims, 1),
                       tfl_full(x, p.dtype, 1, dims, !x->row->arg)};
  ir_value limit = opt_splat_int(x->rw, tfl_type(x, XLAC_S64, 0, NULL), p.n), out[3];
  if (x->status || !state[0].op) return x->status;
  opt_loop loop;
  opt_loop_begin(x->rw, &loop, limit, 3, state);
  if (x->rw->failed) return x->status = base_oom(x->err, "lowering");
  det_state s = det_step(x, &p, (det_state){loop.state[0], loop.state[1], loop.state[2]}, loop.index);
  ir_value next[] = {s.m, s.sign, s.size};
  opt_loop_end(x->rw, &loop, next, out);
  if (x->status) return x->status;
  ir_value sign = tfl_reshape(x, out[1], t->rank - 2, t->dims), size = tfl_reshape(x, out[2], t->rank - 2, t->dims);
  if (x->row->arg) {
    tfl_out(x, 0, sign);
    tfl_out(x, 1, size);
  } else {
    tfl_out(x, 0, opt_binary(x->rw, IR_OP_MULTIPLY, sign, size));
  }
  return x->status;
}

/* --- MatrixSolve, MatrixInverse --- */

/* MatrixSolve and MatrixInverse: Gauss-Jordan on the matrices with the right sides beside them; `real` is the type
 * of sizes of complex numbers. */
typedef struct gauss_plan {
  int64_t batch, n, width; /* the augmented matrices are [batch, n, width] */
  base_dtype dtype, real;
} gauss_plan;

/* Element or row k of dimension 1, without it. */
static ir_value gauss_row(tfl_op *x, const gauss_plan *p, ir_value v, ir_value hot) {
  int64_t rows = 1, dims[] = {p->batch, p->n, p->width}, two[] = {0, 1};
  if (!v.op || !hot.op) return v;
  const ir_type *t = tfl_type(x, XLAC_PRED, 3, dims);
  ir_value here = opt_broadcast_in_dim(x->rw, hot, t, two);
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, v, tfl_like(x, v, 0)), 0, 1, &rows);
}

/* [batch, n] with true where the largest element of a column at or below row k is. Rows above k are done and get
 * size -1. */
static ir_value gauss_pivot(tfl_op *x, const gauss_plan *p, ir_value column, ir_value k) {
  int64_t dims[] = {p->batch, p->n}, rows = 1, batch = 0;
  ir_value size = column, place = tfl_iota(x, XLAC_S64, 2, dims, 1);
  if (!column.op) return column;
  size = opt_make(x->rw, IR_OP_ABS, tfl_type(x, p->real, 2, dims), 1, &column);
  size = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_GE, place, k), size, tfl_like(x, size, -1));
  ir_value most = opt_reduce(x->rw, IR_OP_MAXIMUM, size, tfl_scalar(x, p->real, -1), 1, &rows);
  most = opt_broadcast_in_dim(x->rw, most, opt_type(size), &batch);
  ir_value at = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, size, most), place, tfl_like(x, place, (double)p->n));
  ir_value first = tfl_reduce(x, IR_OP_MINIMUM, at, (double)p->n, 1, &rows);
  first = opt_broadcast_in_dim(x->rw, first, opt_type(place), &batch);
  return tfl_compare(x, IR_DIRECTION_EQ, place, first);
}

/* Row `hot` of m becomes `row`. */
static ir_value gauss_put(tfl_op *x, ir_value m, ir_value hot, ir_value row) {
  int64_t rows[] = {0, 1}, cols[] = {0, 2};
  if (!m.op || !hot.op || !row.op) return m;
  ir_value here = opt_broadcast_in_dim(x->rw, hot, opt_with_dtype(x->rw, opt_type(m), XLAC_PRED), rows);
  return opt_select(x->rw, here, opt_broadcast_in_dim(x->rw, row, opt_type(m), cols), m);
}

/* Column k of m, [batch, n]. */
static ir_value gauss_column(tfl_op *x, const gauss_plan *p, ir_value m, ir_value k) {
  int64_t sizes[] = {p->batch, p->n, 1}, dims[] = {p->batch, p->n};
  ir_value zero = tfl_scalar(x, XLAC_S64, 0), starts[] = {zero, zero, k};
  return tfl_reshape(x, tfl_dynamic_slice(x, m, starts, sizes), 2, dims);
}

/* Column k becomes that of the identity: above and below the pivot, which is why no substitution follows. A
 * singular matrix divides by 0, where TensorFlow's CPU kernel fails. */
static ir_value gauss_step(tfl_op *x, const gauss_plan *p, ir_value m, ir_value k) {
  int64_t dims[] = {p->batch, p->n}, rows[] = {0, 1}, cols[] = {0, 2}, batch = 0;
  ir_value here = tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S64, 2, dims, 1), k);
  ir_value pivot = gauss_pivot(x, p, gauss_column(x, p, m, k), k);
  ir_value row = gauss_row(x, p, m, pivot), other = gauss_row(x, p, m, here);
  m = gauss_put(x, gauss_put(x, m, pivot, other), here, row);
  ir_value column = gauss_column(x, p, m, k);
  if (!column.op || !row.op) return m;
  int64_t one = 1;
  ir_value scale = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, column, tfl_like(x, column, 0)), 0, 1, &one);
  row = opt_binary(x->rw, IR_OP_DIVIDE, row, opt_broadcast_in_dim(x->rw, scale, opt_type(row), &batch));
  ir_value taken = opt_binary(x->rw, IR_OP_MULTIPLY, opt_broadcast_in_dim(x->rw, column, opt_type(m), rows),
                              opt_broadcast_in_dim(x->rw, row, opt_type(m), cols));
  return gauss_put(x, opt_binary(x->rw, IR_OP_SUBTRACT, m, taken), here, row);
}

/* The matrices, conjugate and transposed where attribute adjoint says it; as [batch, n, n]. */
static ir_value gauss_matrix(tfl_op *x, const gauss_plan *p) {
  int64_t dims[] = {p->batch, p->n, p->n}, turn[] = {0, 2, 1};
  ir_value a = tfl_reshape(x, tfl_in(x, 0), 3, dims);
  if (!a.op || !tfl_attr_bool(x, "adjoint")) return a;
  if (base_dtype_is_complex(p->dtype)) {
    const ir_type *part = tfl_type(x, p->real, 3, dims);
    ir_value both[] = {opt_make(x->rw, IR_OP_REAL, part, 1, &a),
                       opt_unary(x->rw, IR_OP_NEGATE, opt_make(x->rw, IR_OP_IMAG, part, 1, &a))};
    a = opt_make(x->rw, IR_OP_COMPLEX, opt_type(a), 2, both);
  }
  return tfl_transpose(x, a, turn);
}

static int gauss_plan_of(tfl_op *x, gauss_plan *p) {
  assert(p != NULL);
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2 || t->dims[t->rank - 1] != t->dims[t->rank - 2]) return tfl_fail(x, "the matrices are not square");
  base_dtype dtype = (base_dtype)t->dtype;
  base_dtype real = dtype == XLAC_C64 ? XLAC_F32 : dtype == XLAC_C128 ? XLAC_F64 : dtype;
  *p = (gauss_plan){tfl_count(t->rank - 2, t->dims), t->dims[t->rank - 1], 0, dtype, real};
  return x->status;
}

/* right: [batch, n, columns]. The result has `rank` dimensions `dims`. The right part of the augmented matrices
 * after the last column. */
static int gauss_out(tfl_op *x, gauss_plan *p, ir_value right, uint32_t rank, const int64_t *dims) {
  ir_value a = gauss_matrix(x, p), both[] = {a, right};
  if (!a.op || !right.op) return x->status;
  int64_t columns = opt_type(right)->dims[2];
  ir_value m = tfl_concat(x, 2, both, 2), next, limit = opt_splat_int(x->rw, tfl_type(x, XLAC_S64, 0, NULL), p->n);
  p->width = p->n + columns;
  opt_loop loop;
  opt_loop_begin(x->rw, &loop, limit, 1, &m);
  if (x->rw->failed) return x->status = base_oom(x->err, "lowering");
  next = gauss_step(x, p, loop.state[0], loop.index);
  opt_loop_end(x->rw, &loop, &next, &m);
  tfl_out(x, 0, tfl_reshape(x, tfl_slice(x, m, 2, p->n, p->width), rank, dims));
  return x->status;
}

/* Input 1: right sides as columns. */
int tfl_row_matrix_solve(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 1);
  gauss_plan p;
  TRY(gauss_plan_of(x, &p));
  const ir_type *a = tfl_in_type(x, 0);
  bool fits = t->rank == a->rank && t->dims[t->rank - 2] == p.n;
  for (uint32_t d = 0; fits && d + 2 < t->rank; d++) fits = t->dims[d] == a->dims[d];
  if (!fits) return tfl_fail(x, "the right sides have not the shape that the matrices ask for");
  int64_t dims[] = {p.batch, p.n, t->dims[t->rank - 1]};
  return gauss_out(x, &p, tfl_reshape(x, tfl_in(x, 1), 3, dims), t->rank, t->dims);
}

/* The right sides are the identity. */
int tfl_row_matrix_inverse(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  gauss_plan p;
  TRY(gauss_plan_of(x, &p));
  int64_t dims[] = {p.batch, p.n, p.n};
  ir_value here = tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  return gauss_out(x, &p, tfl_cast(x, here, p.dtype), t->rank, t->dims);
}
