/* MatrixDeterminant and LogMatrixDeterminant: elimination with partial pivoting, one loop over the columns, all
 * matrices of the batch at once. */
#include "../windows.h"

typedef struct det_plan {
  int64_t batch, n;
  base_dtype dtype;
} det_plan;

typedef struct det_state {
  ir_value m, sign, size; /* [batch, n, n]; [batch]: the sign; the product's size, or its logarithm */
} det_state;

/* [batch, n] to where it is in [batch, n, n]. */
static ir_value det_spread(tfl_op *x, ir_value v, ir_value like, int64_t dim) {
  int64_t map[] = {0, dim};
  if (!v.op || !like.op) return v;
  return opt_broadcast_in_dim(x->rw, v, opt_with_dtype(x->rw, opt_type(like), (base_dtype)opt_type(v)->dtype), map);
}

/* Row `hot` of m; or, with dim 2, a column. */
static ir_value det_line(tfl_op *x, ir_value m, ir_value hot, int64_t dim) {
  if (!m.op || !hot.op) return m;
  ir_value here = det_spread(x, hot, m, dim);
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, m, tfl_like(x, m, 0)), 0, 1, &dim);
}

static ir_value det_replace(tfl_op *x, ir_value m, ir_value hot, ir_value row) {
  if (!m.op || !row.op) return m;
  return opt_select(x->rw, det_spread(x, hot, m, 1), det_spread(x, row, m, 2), m);
}

/* [batch, n], true at the first of the largest elements of `column` from k on. */
static ir_value det_pivot(tfl_op *x, ir_value column, ir_value place, ir_value k) {
  int64_t rows = 1, batch = 0;
  if (!column.op) return column;
  ir_value size = opt_unary(x->rw, IR_OP_ABS, column);
  size = opt_select(x->rw, tfl_compare(x, "GE", place, k), size, tfl_like(x, size, -1));
  ir_value most = tfl_reduce(x, IR_OP_MAXIMUM, size, -1, 1, &rows);
  if (!most.op) return most;
  ir_value is = tfl_compare(x, "EQ", size, opt_broadcast_in_dim(x->rw, most, opt_type(size), &batch));
  ir_value at = opt_select(x->rw, is, place, tfl_like(x, place, 1e9));
  ir_value first = tfl_reduce(x, IR_OP_MINIMUM, at, 1e9, 1, &rows);
  return first.op ? tfl_compare(x, "EQ", place, opt_broadcast_in_dim(x->rw, first, opt_type(place), &batch)) : first;
}

static det_state det_step(tfl_op *x, const det_plan *p, det_state s, ir_value k) {
  int64_t dims[] = {p->batch, p->n}, rows = 1, batch = 0;
  ir_value place = tfl_iota(x, XLAC_S64, 2, dims, 1), here = tfl_compare(x, "EQ", place, k);
  ir_value pivot = det_pivot(x, det_line(x, s.m, here, 2), place, k);
  ir_value row = det_line(x, s.m, pivot, 1), other = det_line(x, s.m, here, 1);
  s.m = det_replace(x, det_replace(x, s.m, pivot, other), here, row);
  if (!row.op || !s.m.op) return s;
  ir_value head = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, row, tfl_like(x, row, 0)), 0, 1, &rows);
  ir_value moved = tfl_reduce(x, IR_OP_AND, tfl_compare(x, "EQ", pivot, here), 1, 1, &rows);
  if (!head.op || !moved.op) return s;
  ir_value turn = opt_select(x->rw, moved, tfl_like(x, head, 1), tfl_like(x, head, -1));
  ir_value factor = opt_binary(x->rw, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_SIGN, head), turn);
  s.sign = opt_binary(x->rw, IR_OP_MULTIPLY, s.sign, factor);
  ir_value size = opt_unary(x->rw, IR_OP_ABS, head);
  s.size = x->row->arg ? opt_binary(x->rw, IR_OP_ADD, s.size, opt_unary(x->rw, IR_OP_LOG, size))
                       : opt_binary(x->rw, IR_OP_MULTIPLY, s.size, size);
  /* What is below loses its multiple of the row; a column of zeros has none to lose. */
  ir_value safe = opt_select(x->rw, tfl_compare(x, "EQ", head, tfl_like(x, head, 0)), tfl_like(x, head, 1), head);
  ir_value column = det_line(x, s.m, here, 2);
  column = opt_select(x->rw, tfl_compare(x, "GT", place, k), column, tfl_like(x, column, 0));
  row = opt_binary(x->rw, IR_OP_DIVIDE, row, opt_broadcast_in_dim(x->rw, safe, opt_type(row), &batch));
  ir_value taken = opt_binary(x->rw, IR_OP_MULTIPLY, det_spread(x, column, s.m, 1), det_spread(x, row, s.m, 2));
  s.m = opt_binary(x->rw, IR_OP_SUBTRACT, s.m, taken);
  return s;
}

/* arg: 0 the determinant, 1 its sign and the logarithm of its size. */
int tfl_row_determinant(tfl_op *x) {
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
