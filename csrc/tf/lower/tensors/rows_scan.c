/* Running sums and products along an axis: windows over all elements up to each one. */
#include "../row.h"

static ir_value scan_window(tfl_op *x, ir_opcode opcode, ir_value v, ir_value init, uint32_t axis, bool reverse) {
  const ir_type *t = opt_type(v);
  int64_t window[TFL_MOST_DIMS], padding[2 * TFL_MOST_DIMS] = {0}, shape[] = {t ? t->rank : 0, 2};
  if (!v.op || !init.op) return v;
  for (uint32_t d = 0; d < t->rank; d++) window[d] = 1;
  window[axis] = t->dims[axis];
  padding[2 * axis + reverse] = t->dims[axis] - 1;
  ir_value both[] = {v, init};
  ir_op *op = opt_make_n(x->rw, IR_OP_REDUCE_WINDOW, 1, &t, 2, both, 1);
  ir_value r = {op, 0};
  opt_set(x->rw, r, "window_dimensions", ir_m_i64s(x->rw->m, t->rank, window));
  opt_set(x->rw, r, "padding", ir_m_dense_i64(x->rw->m, 2, shape, padding));
  if (op) opt_make_reducer(x->rw, op, opcode, opt_type(init));
  return r;
}

/* Each place gets what its neighbour had, and the first one init. */
static ir_value scan_shift(tfl_op *x, ir_value v, ir_value init, uint32_t axis, bool reverse) {
  int64_t low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0};
  low[axis] = reverse ? -1 : 1;
  high[axis] = -low[axis];
  return tfl_pad(x, v, init, low, high, NULL);
}

static int scan_axis(tfl_op *x, uint32_t *axis) {
  int64_t number = 0;
  TRY(tfl_int(x, 1, &number));
  return tfl_axis(x, number, tfl_in_type(x, 0)->rank, axis);
}

int tfl_row_cumulative(tfl_op *x) {
  uint32_t axis = 0;
  TRY(scan_axis(x, &axis));
  const ir_type *t = tfl_in_type(x, 0);
  bool exclusive = tfl_attr_bool(x, "exclusive"), reverse = tfl_attr_bool(x, "reverse");
  if (t->count == 0) return tfl_out_same(x, 0, 0), x->status;
  base_dtype own = (base_dtype)t->dtype, wide = tfl_sum_dtype(own);
  ir_value init = tfl_scalar(x, wide, x->row->arg == IR_OP_MULTIPLY);
  ir_value v = scan_window(x, (ir_opcode)x->row->arg, tfl_cast(x, tfl_in(x, 0), wide), init, axis, reverse);
  if (exclusive) v = scan_shift(x, v, init, axis, reverse);
  tfl_out(x, 0, tfl_cast(x, v, own));
  return x->status;
}

/* log(cumsum(exp(v))): relative to the largest element of each row, which keeps exp in range. */
int tfl_row_cumulative_logsumexp(tfl_op *x) {
  uint32_t axis = 0;
  TRY(scan_axis(x, &axis));
  const ir_type *t = tfl_in_type(x, 0);
  bool exclusive = tfl_attr_bool(x, "exclusive"), reverse = tfl_attr_bool(x, "reverse");
  if (t->count == 0) return tfl_out_same(x, 0, 0), x->status;
  base_dtype own = (base_dtype)t->dtype, wide = tfl_sum_dtype(own);
  ir_value v = tfl_cast(x, tfl_in(x, 0), wide), zero = tfl_scalar(x, wide, 0);
  ir_value most = scan_window(x, IR_OP_MAXIMUM, v, tfl_lowest(x, wide), axis, reverse);
  int64_t dim = axis, dims[TFL_MOST_DIMS];
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[axis] = 1;
  most = opt_reduce(x->rw, IR_OP_MAXIMUM, most, tfl_lowest(x, wide), 1, &dim);
  most = tfl_broadcast(x, tfl_reshape(x, most, t->rank, dims), t->rank, t->dims);
  ir_value e = opt_unary(x->rw, IR_OP_EXP, opt_binary(x->rw, IR_OP_SUBTRACT, v, most));
  ir_value sum = scan_window(x, IR_OP_ADD, e, zero, axis, reverse);
  v = opt_binary(x->rw, IR_OP_ADD, opt_unary(x->rw, IR_OP_LOG, sum), most);
  if (exclusive) v = scan_shift(x, v, tfl_lowest(x, wide), axis, reverse);
  tfl_out(x, 0, tfl_cast(x, v, own));
  return x->status;
}
