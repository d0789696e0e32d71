/* Reductions over axes that are known, arg max, and running sums. */
#include "../row.h"

/* --- reductions --- */

/* What attribute keep_dims and the axes make of a shape. */
typedef struct reduce_axes {
  uint32_t n, rank; /* of the result with dimensions kept or not */
  int64_t dims[TFL_MOST_DIMS], result[TFL_MOST_DIMS];
  int64_t count; /* elements that become one */
} reduce_axes;

/* Input 1 lists the axes; a negative one counts from the end, one may be listed twice. */
static int reduce_read_axes(tfl_op *x, const char *keep_attr, reduce_axes *r) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *axes = NULL;
  uint32_t n = 0;
  bool gone[TFL_MOST_DIMS] = {false};
  TRY(tfl_ints(x, 1, &axes, &n));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t axis = 0;
    TRY(tfl_axis(x, axes[i], t->rank, &axis));
    gone[axis] = true;
  }
  bool keep = tfl_attr_bool(x, keep_attr);
  *r = (reduce_axes){.count = 1};
  for (uint32_t d = 0; d < t->rank; d++) {
    if (gone[d]) {
      r->dims[r->n++] = d;
      r->count *= t->dims[d];
    }
    if (!gone[d] || keep) r->result[r->rank++] = gone[d] ? 1 : t->dims[d];
  }
  return x->status;
}

/* Without axes nothing is reduced, but the shape is the result's. */
static ir_value reduce_over(tfl_op *x, const reduce_axes *r, ir_opcode opcode, ir_value v, ir_value init) {
  if (r->n > 0) v = opt_reduce(x->rw, opcode, v, init, r->n, r->dims);
  return tfl_reshape(x, v, r->rank, r->result);
}

/* The sum, made in a type that is wide enough, as one of that type. */
static ir_value reduce_sum(tfl_op *x, const reduce_axes *r, ir_value v) {
  if (!v.op) return v;
  base_dtype wide = tfl_sum_dtype((base_dtype)opt_type(v)->dtype);
  return reduce_over(x, r, IR_OP_ADD, tfl_cast(x, v, wide), tfl_scalar(x, wide, 0));
}

/* Sums of half precision are made in f32 and rounded once. */
int tfl_row_sum(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  tfl_out(x, 0, tfl_cast(x, reduce_sum(x, &r, tfl_in(x, 0)), tfl_out_dtype(x, 0)));
  return x->status;
}

/* Integers are divided as integers, as TensorFlow does. */
int tfl_row_mean(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  ir_value sum = reduce_sum(x, &r, tfl_in(x, 0));
  tfl_out(x, 0, tfl_cast(x, tfl_with(x, IR_OP_DIVIDE, sum, (double)r.count), tfl_out_dtype(x, 0)));
  return x->status;
}

int tfl_row_prod(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  base_dtype wide = tfl_sum_dtype((base_dtype)tfl_in_type(x, 0)->dtype);
  ir_value v = reduce_over(x, &r, IR_OP_MULTIPLY, tfl_cast(x, tfl_in(x, 0), wide), tfl_scalar(x, wide, 1));
  tfl_out(x, 0, tfl_cast(x, v, tfl_out_dtype(x, 0)));
  return x->status;
}

/* Of nothing: the lowest, or highest, value. */
int tfl_row_max_min(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  base_dtype t = (base_dtype)tfl_in_type(x, 0)->dtype;
  ir_value init = x->row->arg == IR_OP_MAXIMUM ? tfl_lowest(x, t) : tfl_highest(x, t);
  tfl_out(x, 0, reduce_over(x, &r, (ir_opcode)x->row->arg, tfl_in(x, 0), init));
  return x->status;
}

/* arg: IR_OP_AND or IR_OP_OR. */
int tfl_row_all_any(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  ir_value init = tfl_scalar(x, XLAC_PRED, x->row->arg == IR_OP_AND);
  tfl_out(x, 0, reduce_over(x, &r, (ir_opcode)x->row->arg, tfl_in(x, 0), init));
  return x->status;
}

/* sqrt(sum(v conj(v))) */
int tfl_row_euclidean_norm(tfl_op *x) {
  reduce_axes r;
  TRY(reduce_read_axes(x, "keep_dims", &r));
  ir_value v = tfl_in(x, 0), w = v;
  if (!v.op) return x->status;
  base_dtype wide = tfl_sum_dtype((base_dtype)opt_type(v)->dtype);
  v = tfl_cast(x, v, wide);
  w = base_dtype_is_complex(wide) ? opt_unary(x->rw, IR_OP_CONJ, v) : v;
  ir_value sum = reduce_sum(x, &r, opt_binary(x->rw, IR_OP_MULTIPLY, v, w));
  tfl_out(x, 0, tfl_cast(x, opt_unary(x->rw, IR_OP_SQRT, sum), tfl_out_dtype(x, 0)));
  return x->status;
}

/* sum(v v) / 2 */
int tfl_row_l2_loss(tfl_op *x) {
  int64_t dims[TFL_MOST_DIMS];
  for (uint32_t d = 0; d < TFL_MOST_DIMS; d++) dims[d] = d;
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  base_dtype own = (base_dtype)opt_type(v)->dtype, wide = tfl_sum_dtype(own);
  v = tfl_cast(x, v, wide);
  ir_value sum = tfl_reduce(x, IR_OP_ADD, opt_binary(x->rw, IR_OP_MULTIPLY, v, v), 0, opt_type(v)->rank, dims);
  tfl_out(x, 0, tfl_cast(x, tfl_with(x, IR_OP_MULTIPLY, sum, 0.5), own));
  return x->status;
}

/* --- arg max --- */

/* The body: of two values with their places the larger (smaller) one, of equal ones the first. */
static void reduce_arg_body(tfl_op *x, ir_op *op, const ir_type *value, const ir_type *place) {
  assert(op != NULL);
  ir_computation *body = opt_region(x->rw, op, 0);
  if (!body) return;
  ir_value a = opt_region_argument(x->rw, body, value), i = opt_region_argument(x->rw, body, place);
  ir_value b = opt_region_argument(x->rw, body, value), k = opt_region_argument(x->rw, body, place);
  tfl_cursor back = tfl_enter(x, body);
  ir_direction direction = x->row->arg == IR_OP_MAXIMUM ? IR_DIRECTION_GT : IR_DIRECTION_LT;
  ir_value same = tfl_compare(x, IR_DIRECTION_EQ, a, b), first = tfl_compare(x, IR_DIRECTION_LT, i, k);
  ir_value better = tfl_compare(x, direction, a, b);
  if (base_dtype_is_float((base_dtype)value->dtype))
    better = opt_binary(x->rw, IR_OP_OR, better, tfl_compare(x, IR_DIRECTION_NE, a, a));
  ir_value take = opt_binary(x->rw, IR_OP_OR, better, opt_binary(x->rw, IR_OP_AND, same, first));
  ir_value results[] = {opt_select(x->rw, better, a, b), opt_select(x->rw, take, i, k)};
  opt_set_results(x->rw, body, 2, results);
  tfl_leave(x, back);
}

/* arg: IR_OP_MAXIMUM or IR_OP_MINIMUM. A reduction of pairs (value, place). */
int tfl_row_arg_max(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t axis = 0, dim, kept[TFL_MOST_DIMS];
  uint32_t d = 0, rank = 0;
  TRY(tfl_int(x, 1, &axis));
  TRY(tfl_axis(x, axis, t->rank, &d));
  if (t->dims[d] == 0) return tfl_fail(x, "dimension %u is empty: there is no largest or smallest element", d);
  dim = d;
  for (uint32_t i = 0; i < t->rank; i++)
    if (i != d) kept[rank++] = t->dims[i];
  ir_value v = tfl_in(x, 0);
  if (t->dtype == XLAC_PRED) v = tfl_cast(x, v, XLAC_U8);
  if (!v.op) return x->status;
  base_dtype value = (base_dtype)opt_type(v)->dtype;
  ir_value worst = x->row->arg == IR_OP_MAXIMUM ? tfl_lowest(x, value) : tfl_highest(x, value);
  if (base_dtype_is_float(value)) /* a NaN is never the largest, nor the smallest */
    v = opt_select(x->rw, opt_compare(x->rw, IR_DIRECTION_NE, IR_COMPARISON_FLOAT, v, v), tfl_spread(x, worst, v), v);
  ir_value all[] = {v, tfl_iota(x, XLAC_S32, t->rank, t->dims, d), worst, tfl_scalar(x, XLAC_S32, 0)};
  const ir_type *types[] = {tfl_type(x, value, rank, kept), tfl_type(x, XLAC_S32, rank, kept)};
  ir_op *op = opt_make_n(x->rw, IR_OP_REDUCE, 2, types, 4, all, 1);
  opt_set(x->rw, (ir_value){op, 0}, "dimensions", ir_m_i64s(x->rw->m, 1, &dim));
  if (op) reduce_arg_body(x, op, opt_type(all[2]), opt_type(all[3]));
  tfl_out(x, 0, tfl_cast(x, (ir_value){op, 1}, tfl_out_dtype(x, 0)));
  return x->status;
}

/* --- running sums and products --- */

/* Place i sees all places up to i (reverse: from i on): a window as long as the axis with padding on one side. */
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

/* Input 1. */
static int scan_axis(tfl_op *x, uint32_t *axis) {
  int64_t number = 0;
  TRY(tfl_int(x, 1, &number));
  return tfl_axis(x, number, tfl_in_type(x, 0)->rank, axis);
}

/* exclusive: without the element itself, so everything moves on by one. */
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
