/* Shapes: of tensors, as tensors, and other shapes for the same elements. Shapes are static here, so Shape, Size
 * and Rank are known data; rows that take a shape read it with tfl_ints, which evaluates what the graph computes
 * it with. */
#include "../row.h"

/* The type of input i, or of the variable it is a handle of. */
static const ir_type *shape_in(tfl_op *x, uint32_t i) {
  if (i >= x->n_in || x->in[i]->kind != TFL_HANDLE) return tfl_in_type(x, i);
  const tfl_resource *r = tfl_in_resource(x, i);
  if (r && r->value.kind == TFL_TENSOR) return r->value.type;
  tfl_fail(x, "the variable has no value yet");
  return NULL;
}

/* Shape, ShapeN, VariableShape. */
int tfl_row_shape(tfl_op *x) {
  for (uint32_t i = 0; i < x->n_out; i++) {
    const ir_type *t = shape_in(x, i);
    if (x->status) return x->status;
    int64_t rank = t->rank;
    tfl_out_ints(x, i, 1, &rank, t->dims);
  }
  return x->status;
}

/* arg: 1 Rank. */
int tfl_row_size(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t n = x->row->arg ? t->rank : t->count;
  if (!x->status) tfl_out_ints(x, 0, 0, NULL, &n);
  return x->status;
}

/* One size may be -1. A reshape to the same shape hands the value through, known data and all. */
int tfl_row_reshape(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *to = NULL;
  int64_t dims[TFL_MOST_DIMS], known = 1;
  uint32_t n = 0, open = UINT32_MAX;
  TRY(tfl_ints(x, 1, &to, &n));
  if (n > TFL_MOST_DIMS) return tfl_fail(x, "%u dimensions: at most %d work", n, TFL_MOST_DIMS);
  for (uint32_t d = 0; d < n; d++) {
    dims[d] = to[d];
    if (to[d] == -1 && open == UINT32_MAX)
      open = d;
    else if (to[d] < 0 || !base_mul_i64(known, to[d], &known))
      return tfl_fail(x, "size %lld of dimension %u is none", (long long)to[d], d);
  }
  if (open != UINT32_MAX) {
    if (known == 0 ? t->count != 0 : t->count % known != 0)
      return tfl_fail(x, "%lld elements can't be divided by %lld", (long long)t->count, (long long)known);
    dims[open] = known ? t->count / known : 0;
  }
  if (t->rank == n && (n == 0 || memcmp(t->dims, dims, n * sizeof *dims) == 0)) return tfl_out_same(x, 0, 0), x->status;
  tfl_out(x, 0, tfl_reshape(x, tfl_in(x, 0), n, dims));
  return x->status;
}

/* The new dimension is one of rank + 1. */
int tfl_row_expand_dims(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t axis = 0, dims[TFL_MOST_DIMS + 1];
  uint32_t at = 0, n = 0;
  TRY(tfl_int(x, 1, &axis));
  TRY(tfl_axis(x, axis, t->rank + 1, &at));
  if (t->rank >= TFL_MOST_DIMS) return tfl_fail(x, "it has too many dimensions");
  for (uint32_t d = 0; d <= t->rank; d++) dims[d] = d == at ? 1 : t->dims[n++];
  tfl_out(x, 0, tfl_reshape(x, tfl_in(x, 0), t->rank + 1, dims));
  return x->status;
}

/* Without squeeze_dims all dimensions of size 1 go. */
int tfl_row_squeeze(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *axes = NULL;
  int64_t dims[TFL_MOST_DIMS];
  uint32_t n = 0, rank = 0, axis = 0;
  bool gone[TFL_MOST_DIMS] = {false};
  TRY(tfl_attr_ints(x, "squeeze_dims", &axes, &n));
  for (uint32_t i = 0; i < n; i++) {
    TRY(tfl_axis(x, axes[i], t->rank, &axis));
    if (t->dims[axis] != 1)
      return tfl_fail(x, "dimension %u has the size %lld, expected 1", axis, (long long)t->dims[axis]);
    gone[axis] = true;
  }
  for (uint32_t d = 0; d < t->rank; d++)
    if (n ? !gone[d] : t->dims[d] != 1) dims[rank++] = t->dims[d];
  tfl_out(x, 0, tfl_reshape(x, tfl_in(x, 0), rank, dims));
  return x->status;
}

/* arg: 1 ConjugateTranspose. */
int tfl_row_transpose(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *to = NULL;
  uint32_t n = 0;
  int64_t permutation[TFL_MOST_DIMS];
  bool seen[TFL_MOST_DIMS] = {false};
  TRY(tfl_ints(x, 1, &to, &n));
  if (n != t->rank) return tfl_fail(x, "it permutes %u dimensions, its input has %u", n, t->rank);
  for (uint32_t d = 0; d < n; d++) {
    uint32_t from = 0;
    TRY(tfl_axis(x, to[d], n, &from));
    if (seen[from]) return tfl_fail(x, "it has dimension %u twice", from);
    seen[from] = true;
    permutation[d] = from;
  }
  ir_value v = tfl_transpose(x, tfl_in(x, 0), permutation);
  if (v.op && x->row->arg && base_dtype_is_complex((base_dtype)t->dtype)) v = opt_unary(x->rw, IR_OP_CONJ, v);
  tfl_out(x, 0, v);
  return x->status;
}

/* --- broadcasting --- */

/* value, shape */
int tfl_row_broadcast_to(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t n = 0;
  TRY(tfl_ints(x, 1, &dims, &n));
  tfl_out(x, 0, tfl_broadcast(x, tfl_in(x, 0), n, dims));
  return x->status;
}

/* The common shape of two shapes, as data. */
int tfl_row_broadcast_args(tfl_op *x) {
  const int64_t *a = NULL, *b = NULL;
  int64_t dims[TFL_MOST_DIMS];
  uint32_t m = 0, n = 0, rank = 0;
  TRY(tfl_ints(x, 0, &a, &m));
  TRY(tfl_ints(x, 1, &b, &n));
  TRY(tfl_broadcast_dims(x, m, a, n, b, &rank, dims));
  const int64_t count = rank;
  tfl_out_ints(x, 0, 1, &count, dims);
  return x->status;
}

/* Which dimensions of the common shape operand i was broadcast along: sums over these give its gradient. */
int tfl_row_broadcast_gradient_args(tfl_op *x) {
  const int64_t *shapes[2] = {NULL, NULL};
  int64_t dims[TFL_MOST_DIMS], axes[TFL_MOST_DIMS];
  uint32_t ranks[2] = {0, 0}, rank = 0;
  for (uint32_t i = 0; i < 2; i++) TRY(tfl_ints(x, i, &shapes[i], &ranks[i]));
  TRY(tfl_broadcast_dims(x, ranks[0], shapes[0], ranks[1], shapes[1], &rank, dims));
  bool same = ranks[0] == ranks[1] && (rank == 0 || memcmp(shapes[0], shapes[1], rank * sizeof *dims) == 0);
  for (uint32_t i = 0; i < 2; i++) {
    int64_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
      uint32_t missing = rank - ranks[i];
      if (!same && (d < missing || shapes[i][d - missing] == 1)) axes[n++] = d;
    }
    tfl_out_ints(x, i, 1, &n, axes);
  }
  return x->status;
}

/* --- tensors of a given shape --- */

/* dims, value */
int tfl_row_fill(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t n = 0;
  TRY(tfl_ints(x, 0, &dims, &n));
  if (tfl_in_type(x, 1)->rank != 0)
    return tfl_fail(x, "what it fills with has %u dimensions, expected a scalar", tfl_in_type(x, 1)->rank);
  tfl_out(x, 0, tfl_broadcast(x, tfl_in(x, 1), n, dims));
  return x->status;
}

/* The number of elements must be known; the elements are computed as from + i * by, in the output's type. */
int tfl_row_range(tfl_op *x) {
  double from = 0, to = 0, by = 0;
  TRY(tfl_number(x, 0, &from));
  TRY(tfl_number(x, 1, &to));
  TRY(tfl_number(x, 2, &by));
  if (by == 0 || (by > 0 ? from > to : from < to))
    return tfl_fail(x, "from %g to %g by %g is not a range", from, to, by);
  double n = __builtin_ceil((to - from) / by);
  if (!(n < INT32_MAX)) return tfl_fail(x, "a range of %g elements is too long", n);
  const int64_t count = (int64_t)n;
  ir_value i = tfl_iota(x, tfl_out_dtype(x, 0), 1, &count, 0);
  i = opt_binary(x->rw, IR_OP_MULTIPLY, i, tfl_spread(x, tfl_in(x, 2), i));
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_ADD, i, tfl_spread(x, tfl_in(x, 0), i)));
  return x->status;
}

/* The last element is the end itself, not what the steps add up to. */
int tfl_row_lin_space(tfl_op *x) {
  int64_t n = 0;
  TRY(tfl_int(x, 2, &n));
  if (n < 1) return tfl_fail(x, "it gives %lld elements, expected one at least", (long long)n);
  ir_value from = tfl_in(x, 0), to = tfl_in(x, 1);
  ir_value i = tfl_iota(x, tfl_out_dtype(x, 0), 1, &n, 0);
  if (!i.op) return x->status;
  ir_value step = tfl_with(x, IR_OP_DIVIDE, opt_binary(x->rw, IR_OP_SUBTRACT, to, from), n > 1 ? (double)(n - 1) : 1);
  ir_value v = tfl_binary(x, IR_OP_ADD, tfl_binary(x, IR_OP_MULTIPLY, i, step), from);
  if (n > 1)
    v = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, i, tfl_like(x, i, (double)(n - 1))), tfl_spread(x, to, v), v);
  tfl_out(x, 0, v);
  return x->status;
}

/* indices, depth, on, off; indices out of range have no place that is on. */
int tfl_row_one_hot(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t depth = 0, axis = tfl_attr_int(x, "axis"), dims[TFL_MOST_DIMS + 1], one[TFL_MOST_DIMS + 1];
  uint32_t at = 0, n = 0;
  TRY(tfl_int(x, 1, &depth));
  if (depth < 0 || t->rank >= TFL_MOST_DIMS)
    return tfl_fail(x, "depth %lld for %u dimensions", (long long)depth, t->rank);
  TRY(tfl_axis(x, axis, t->rank + 1, &at));
  for (uint32_t d = 0; d <= t->rank; d++) {
    one[d] = d == at ? 1 : t->dims[n];
    dims[d] = d == at ? depth : t->dims[n++];
  }
  base_dtype wide = t->dtype == XLAC_S64 ? XLAC_S64 : XLAC_S32; /* narrower ones can't count up to any depth */
  ir_value index = tfl_cast(x, tfl_in(x, 0), wide);
  ir_value where = tfl_broadcast(x, tfl_reshape(x, index, t->rank + 1, one), t->rank + 1, dims);
  ir_value on = tfl_compare(x, IR_DIRECTION_EQ, where, tfl_iota(x, wide, t->rank + 1, dims, at));
  tfl_out(x, 0, opt_select(x->rw, on, tfl_spread(x, tfl_in(x, 2), on), tfl_spread(x, tfl_in(x, 3), on)));
  return x->status;
}

/* Each dimension becomes two, [copies, size], which are then one again. */
int tfl_row_tile(tfl_op *x) {
  assert(x->n_in == 2);
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *times = NULL;
  int64_t dims[TFL_MOST_DIMS], split[TFL_MOST_DIMS], from[TFL_MOST_DIMS];
  uint32_t n = 0, rank = 0;
  TRY(tfl_ints(x, 1, &times, &n));
  if (n != t->rank) return tfl_fail(x, "it repeats along %u dimensions, its input has %u", n, t->rank);
  for (uint32_t d = 0; d < n; d++) {
    if (times[d] < 0 || !base_mul_i64(times[d], t->dims[d], &dims[d]))
      return tfl_fail(x, "%lld copies along dimension %u", (long long)times[d], d);
    if (rank + 2 > TFL_MOST_DIMS) return tfl_fail(x, "it repeats along too many dimensions");
    if (times[d] != 1) split[rank++] = times[d];
    from[d] = rank;
    split[rank++] = t->dims[d];
  }
  const ir_type *wide = tfl_type(x, (base_dtype)t->dtype, rank, split);
  tfl_out(x, 0, tfl_reshape(x, opt_broadcast_in_dim(x->rw, tfl_in(x, 0), wide, from), n, dims));
  return x->status;
}

/* Places sorted by what stands there. */
int tfl_row_invert_permutation(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (x->status || t->rank != 1) return tfl_fail(x, "its input has %u dimensions, expected 1", t->rank);
  ir_value both[] = {tfl_in(x, 0), tfl_iota(x, (base_dtype)t->dtype, 1, t->dims, 0)};
  const ir_type *types[] = {t, t}, *scalar = tfl_type(x, (base_dtype)t->dtype, 0, NULL);
  ir_op *op = opt_make_n(x->rw, IR_OP_SORT, 2, types, 2, both, 1);
  ir_value args[4];
  opt_set(x->rw, (ir_value){op, 0}, "dimension", ir_m_i64(x->rw->m, 0));
  ir_computation *body = op ? opt_region(x->rw, op, 0) : NULL;
  if (!body) return opt_rewriter_status(x->rw);
  for (int i = 0; i < 4; i++) args[i] = opt_region_argument(x->rw, body, scalar);
  tfl_cursor back = tfl_enter(x, body);
  ir_value less = tfl_compare(x, IR_DIRECTION_LT, args[0], args[1]);
  opt_set_results(x->rw, body, 1, &less);
  tfl_leave(x, back);
  tfl_out(x, 0, (ir_value){op, 1});
  return x->status;
}
