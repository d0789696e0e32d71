/* Ops with indices: gathers, scatters, segments, counts, the largest elements. The makers say which dimensions are
 * looked up in TensorFlow's terms (an axis, vectors of indices) and write StableHLO's dimension numbers. Indices
 * out of range: gathers take the nearest, scatters leave them out, as XLA does; TensorFlow's CPU refuses them. */
#include "../windows.h"

/* --- makers --- */

static ir_value indexed_nothing(void) {
  return (ir_value){NULL, 0};
}

/* A list of dimension numbers under its name. */
typedef struct indexed_field {
  const char *name;
  uint32_t n;
  const int64_t *v;
} indexed_field;

/* #stablehlo.gather or #stablehlo.scatter from five lists and index_vector_dim; NULL when out of memory. */
static const ir_mattr *indexed_numbers(tfl_op *x, const char *kind, const indexed_field *list, int64_t vector) {
  ir_module *m = x->rw->m;
  ir_mentry fields[6];
  for (int i = 0; i < 6; i++) {
    const char *name = i < 5 ? list[i].name : "index_vector_dim";
    fields[i].key = ir_intern(m, name, strlen(name));
    fields[i].value = i < 5 ? ir_m_i64s(m, list[i].n, list[i].v) : ir_m_i64(m, vector);
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(m, "stablehlo", kind, 6, fields);
}

/* --- gathers --- */

/* Row-major places of no elements can't be looked up: the result has none, or is filled with zeros. */
static ir_value indexed_empty(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  return tfl_full(x, dtype, rank, dims, 0);
}

ir_value tfl_take(tfl_op *x, ir_value v, ir_value indices, uint32_t dim, uint32_t batch) {
  const ir_type *t = opt_type(v), *at = opt_type(indices);
  int64_t offset[TFL_MOST_DIMS], both[TFL_MOST_DIMS], place = dim, sizes[TFL_MOST_DIMS], dims[2 * TFL_MOST_DIMS];
  if (!t || !at) return indexed_nothing();
  assert(batch <= dim && dim < t->rank && batch <= at->rank);
  uint32_t n = 0, rank = t->rank - 1 + at->rank - batch;
  if (rank > TFL_MOST_DIMS) return tfl_fail(x, "a result has %u dimensions", rank), indexed_nothing();
  for (uint32_t d = 0; d < t->rank; d++) sizes[d] = d < batch || d == dim ? 1 : t->dims[d];
  for (uint32_t d = 0; d < batch; d++) both[d] = d;
  for (uint32_t d = 0; d < dim; d++) dims[d] = t->dims[d];
  for (uint32_t d = batch; d < at->rank; d++) dims[dim + d - batch] = at->dims[d];
  for (uint32_t d = dim + 1; d < t->rank; d++) dims[d - 1 + at->rank - batch] = t->dims[d];
  for (uint32_t d = batch; d < t->rank; d++)
    if (d != dim) offset[n++] = d < dim ? d : d - 1 + at->rank - batch;
  if (t->dims[dim] == 0) return indexed_empty(x, (base_dtype)t->dtype, rank, dims);
  const indexed_field list[] = {{"offset_dims", n, offset},
                                {"collapsed_slice_dims", 1, &place},
                                {"operand_batching_dims", batch, both},
                                {"start_indices_batching_dims", batch, both},
                                {"start_index_map", 1, &place}};
  ir_value operands[] = {v, indices};
  ir_value r = opt_make(x->rw, IR_OP_GATHER, tfl_type(x, (base_dtype)t->dtype, rank, dims), 2, operands);
  opt_set(x->rw, r, "dimension_numbers", indexed_numbers(x, "gather", list, at->rank));
  opt_set(x->rw, r, "slice_sizes", ir_m_i64s(x->rw->m, t->rank, sizes));
  return r;
}

/* The number of places that each vector of indices has; fails where v has not as many dimensions. */
static int indexed_depth(tfl_op *x, const ir_type *t, const ir_type *at, uint32_t *depth) {
  if (at->rank == 0) return tfl_fail(x, "indices are a scalar: expected vectors of indices");
  int64_t k = at->dims[at->rank - 1];
  if (k > t->rank) return tfl_fail(x, "%lld indices for %u dimensions", (long long)k, t->rank);
  *depth = (uint32_t)k;
  return 0;
}

/* indices [..., k] look up the first k dimensions; the result is [..., the others]. */
ir_value tfl_take_nd(tfl_op *x, ir_value v, ir_value indices) {
  const ir_type *t = opt_type(v), *at = opt_type(indices);
  int64_t first[TFL_MOST_DIMS], offset[TFL_MOST_DIMS], sizes[TFL_MOST_DIMS], dims[2 * TFL_MOST_DIMS];
  uint32_t depth = 0;
  if (!t || !at || indexed_depth(x, t, at, &depth) != 0) return indexed_nothing();
  uint32_t rank = at->rank - 1 + t->rank - depth, n = t->rank - depth;
  if (rank > TFL_MOST_DIMS) return tfl_fail(x, "a result has %u dimensions", rank), indexed_nothing();
  bool empty = false;
  for (uint32_t d = 0; d < depth; d++) {
    first[d] = d;
    empty = empty || t->dims[d] == 0;
  }
  for (uint32_t d = 0; d < t->rank; d++) sizes[d] = d < depth ? 1 : t->dims[d];
  for (uint32_t d = 0; d + 1 < at->rank; d++) dims[d] = at->dims[d];
  for (uint32_t d = 0; d < n; d++) {
    offset[d] = at->rank - 1 + d;
    dims[at->rank - 1 + d] = t->dims[depth + d];
  }
  if (empty) return indexed_empty(x, (base_dtype)t->dtype, rank, dims);
  const indexed_field list[] = {{"offset_dims", n, offset},
                                {"collapsed_slice_dims", depth, first},
                                {"operand_batching_dims", 0, NULL},
                                {"start_indices_batching_dims", 0, NULL},
                                {"start_index_map", depth, first}};
  ir_value operands[] = {v, indices};
  ir_value r = opt_make(x->rw, IR_OP_GATHER, tfl_type(x, (base_dtype)t->dtype, rank, dims), 2, operands);
  opt_set(x->rw, r, "dimension_numbers", indexed_numbers(x, "gather", list, at->rank - 1));
  opt_set(x->rw, r, "slice_sizes", ir_m_i64s(x->rw->m, t->rank, sizes));
  return r;
}

/* --- scatters --- */

/* The computation that combines what is there with an update. */
static void indexed_region(tfl_op *x, ir_op *op, ir_opcode opcode, base_dtype dtype) {
  ir_computation *region = opt_region(x->rw, op, 0);
  const ir_type *scalar = tfl_type(x, dtype, 0, NULL);
  if (!region) return;
  ir_value a = opt_region_argument(x->rw, region, scalar), b = opt_region_argument(x->rw, region, scalar);
  tfl_cursor back = tfl_enter(x, region);
  ir_value result = opcode == IR_OP_MAP ? b : opt_binary(x->rw, opcode, a, b);
  opt_set_results(x->rw, region, 1, &result);
  tfl_leave(x, back);
}

/* The first `depth` dimensions of v are looked up; vector is the dimension of indices that has the places. */
static ir_value indexed_scatter(tfl_op *x, ir_opcode opcode, ir_value v, ir_value indices, ir_value updates,
                                uint32_t depth, uint32_t vector) {
  const ir_type *t = opt_type(v), *at = opt_type(indices), *u = opt_type(updates);
  int64_t first[TFL_MOST_DIMS], window[TFL_MOST_DIMS];
  if (!t || !at || !u) return indexed_nothing();
  uint32_t lead = vector < at->rank ? at->rank - 1 : at->rank, n = t->rank - depth;
  bool fits = u->rank == lead + n && u->dtype == t->dtype;
  for (uint32_t d = 0; fits && d < lead; d++) fits = u->dims[d] == at->dims[d];
  for (uint32_t d = 0; fits && d < n; d++) fits = u->dims[lead + d] == t->dims[depth + d];
  if (!fits)
    return tfl_fail(x, "updates have not the shape and type that follow from indices and target"), indexed_nothing();
  if (u->count == 0 || t->count == 0) return v;
  for (uint32_t d = 0; d < depth; d++) first[d] = d;
  for (uint32_t d = 0; d < n; d++) window[d] = lead + d;
  const indexed_field list[] = {{"update_window_dims", n, window},
                                {"inserted_window_dims", depth, first},
                                {"input_batching_dims", 0, NULL},
                                {"scatter_indices_batching_dims", 0, NULL},
                                {"scatter_dims_to_operand_dims", depth, first}};
  ir_value all[] = {v, indices, updates};
  ir_op *op = opt_make_n(x->rw, IR_OP_SCATTER, 1, &t, 3, all, 1);
  opt_set(x->rw, opt_result(op, 0), "scatter_dimension_numbers", indexed_numbers(x, "scatter", list, vector));
  if (op) indexed_region(x, op, opcode, (base_dtype)t->dtype);
  return opt_result(op, 0);
}

/* indices [..., k], as for tfl_take_nd. */
ir_value tfl_put_nd(tfl_op *x, ir_opcode opcode, ir_value v, ir_value indices, ir_value updates) {
  uint32_t depth = 0;
  const ir_type *t = opt_type(v), *at = opt_type(indices);
  if (!t || !at || indexed_depth(x, t, at, &depth) != 0) return indexed_nothing();
  return indexed_scatter(x, opcode, v, indices, updates, depth, at->rank - 1);
}

ir_value tfl_put_rows(tfl_op *x, ir_opcode opcode, ir_value v, ir_value indices, ir_value updates) {
  const ir_type *t = opt_type(v), *at = opt_type(indices);
  if (!t || !at) return indexed_nothing();
  if (t->rank == 0) return tfl_fail(x, "the target is a scalar: it has no rows"), indexed_nothing();
  return indexed_scatter(x, opcode, v, indices, updates, 1, at->rank);
}

/* --- known places --- */

ir_value tfl_constant_i32(tfl_op *x, uint32_t rank, const int64_t *dims, const int32_t *v) {
  assert(v != NULL);
  return opt_constant_data(x->rw, tfl_type(x, XLAC_S32, rank, dims), v, false);
}

ir_value tfl_constant_f32(tfl_op *x, uint32_t rank, const int64_t *dims, const float *v) {
  return opt_constant_data(x->rw, tfl_type(x, XLAC_F32, rank, dims), v, false);
}

/* Where place is -1, `otherwise` instead of the first element. */
static ir_value indexed_fill(tfl_op *x, ir_value v, int64_t count, const int32_t *place, ir_value otherwise) {
  assert(count >= 0);
  uint8_t *holes = BASE_ARRAY(x->arena, uint8_t, (size_t)count + 1);
  bool any = false;
  if (!holes || !v.op) return holes ? v : (x->status = base_oom(x->err, "lowering"), indexed_nothing());
  for (int64_t i = 0; i < count; i++) {
    holes[i] = place[i] < 0;
    any = any || place[i] < 0;
  }
  if (!any) return v;
  const ir_type *t = opt_type(v);
  ir_value mask = opt_constant_data(x->rw, tfl_type(x, XLAC_PRED, 1, &count), holes, false);
  int64_t last = (int64_t)t->rank - 1;
  if (!mask.op) return mask;
  mask = opt_broadcast_in_dim(x->rw, mask, opt_with_dtype(x->rw, t, XLAC_PRED), &last);
  return opt_select(x->rw, mask, tfl_spread(x, otherwise, v), v);
}

ir_value tfl_rearrange(tfl_op *x, ir_value v, uint32_t n, uint32_t n_dims, const int64_t *dims, const int32_t *place,
                       ir_value otherwise) {
  const ir_type *t = opt_type(v);
  int64_t shape[2 * TFL_MOST_DIMS], count = tfl_count(n_dims, dims);
  if (!t) return v;
  assert(n <= t->rank);
  uint32_t lead = t->rank - n;
  if (lead + n_dims > TFL_MOST_DIMS) return tfl_fail(x, "a result has %u dimensions", lead + n_dims), indexed_nothing();
  for (uint32_t d = 0; d < lead; d++) shape[d] = t->dims[d];
  shape[lead] = tfl_count(n, t->dims + lead);
  ir_value flat = tfl_reshape(x, v, lead + 1, shape);
  int32_t *known = BASE_ARRAY(x->arena, int32_t, (size_t)count + 1);
  if (!known) return x->status = base_oom(x->err, "lowering"), indexed_nothing();
  for (int64_t i = 0; i < count; i++) known[i] = place[i] < 0 ? 0 : place[i];
  ir_value r = tfl_take(x, flat, tfl_constant_i32(x, 1, &count, known), lead, 0);
  r = indexed_fill(x, r, count, place, otherwise);
  for (uint32_t d = 0; d < n_dims; d++) shape[lead + d] = dims[d];
  return tfl_reshape(x, r, lead + n_dims, shape);
}

/* --- rows --- */

/* The value of a variable; without op after a failure. */
static ir_value index_variable(tfl_op *x, tfl_resource *r) {
  return r ? tfl_use(x, &r->value) : (ir_value){NULL, 0};
}

/* --- gathers --- */

/* `indices` is the number of an input; batch counts from the end of the indices where it is negative. */
static int index_gather(tfl_op *x, ir_value v, uint32_t indices, int64_t axis, int64_t batch) {
  const ir_type *at = tfl_in_type(x, indices), *t = opt_type(v);
  uint32_t dim = 0;
  if (!t || x->status) return x->status;
  TRY(tfl_axis(x, axis, t->rank, &dim));
  if (batch < 0) batch += at->rank;
  if (batch < 0 || batch > dim || batch > at->rank)
    return tfl_fail(x, "batch_dims is %lld, for axis %u and indices of rank %u", (long long)batch, dim, at->rank);
  for (uint32_t d = 0; d < batch; d++)
    if (t->dims[d] != at->dims[d])
      return tfl_fail(x, "the first %lld sizes of value and indices differ", (long long)batch);
  tfl_out(x, 0, tfl_take(x, v, tfl_in(x, indices), dim, (uint32_t)batch));
  return x->status;
}

/* params, indices */
int tfl_row_gather(tfl_op *x) {
  return index_gather(x, tfl_in(x, 0), 1, 0, 0);
}

/* params, indices, axis */
int tfl_row_gather_v2(tfl_op *x) {
  int64_t axis = 0;
  TRY(tfl_int(x, 2, &axis));
  return index_gather(x, tfl_in(x, 0), 1, axis, tfl_attr_int(x, "batch_dims"));
}

/* The axis follows the batch dimensions. */
int tfl_row_resource_gather(tfl_op *x) {
  int64_t batch = tfl_attr_int(x, "batch_dims");
  if (batch < 0) batch += tfl_in_type(x, 1)->rank;
  return index_gather(x, index_variable(x, tfl_in_resource(x, 0)), 1, batch, batch);
}

/* arg: 1 of a variable. */
int tfl_row_gather_nd(tfl_op *x) {
  ir_value v = x->row->arg ? index_variable(x, tfl_in_resource(x, 0)) : tfl_in(x, 0);
  tfl_out(x, 0, tfl_take_nd(x, v, tfl_in(x, 1)));
  return x->status;
}

/* --- scatters; arg is the opcode that combines, IR_OP_MAP to replace --- */

/* Subtraction is the sum of what is negated: it may come in any order. */
static ir_value index_negated(tfl_op *x, ir_opcode *opcode, ir_value updates) {
  if (*opcode != IR_OP_SUBTRACT) return updates;
  *opcode = IR_OP_ADD;
  return opt_unary(x->rw, IR_OP_NEGATE, updates);
}

/* Indices, updates, shape. */
int tfl_row_scatter_nd(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  TRY(tfl_ints(x, 2, &dims, &rank));
  ir_value updates = tfl_in(x, 1), zero = tfl_full(x, (base_dtype)tfl_in_type(x, 1)->dtype, rank, dims, 0);
  tfl_out(x, 0, tfl_put_nd(x, IR_OP_ADD, zero, tfl_in(x, 0), updates));
  return x->status;
}

/* tensor, indices, updates */
int tfl_row_tensor_scatter(tfl_op *x) {
  ir_opcode opcode = (ir_opcode)x->row->arg;
  ir_value updates = index_negated(x, &opcode, tfl_in(x, 2));
  tfl_out(x, 0, tfl_put_nd(x, opcode, tfl_in(x, 0), tfl_in(x, 1), updates));
  return x->status;
}

/* variable, indices, updates */
int tfl_row_resource_scatter_nd(tfl_op *x) {
  ir_opcode opcode = (ir_opcode)x->row->arg;
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value updates = index_negated(x, &opcode, tfl_in(x, 2));
  tfl_assign(x, r, tfl_put_nd(x, opcode, index_variable(x, r), tfl_in(x, 1), updates));
  return x->status;
}

/* A scalar update goes everywhere. */
static ir_value index_spread(tfl_op *x, ir_value updates, ir_value v, ir_value indices) {
  if (!v.op || !updates.op || !indices.op || opt_type(updates)->rank != 0) return updates;
  const ir_type *t = opt_type(v), *at = opt_type(indices);
  int64_t dims[2 * TFL_MOST_DIMS];
  for (uint32_t d = 0; d < at->rank; d++) dims[d] = at->dims[d];
  for (uint32_t d = 1; d < t->rank; d++) dims[at->rank + d - 1] = t->dims[d];
  return tfl_broadcast(x, updates, at->rank + t->rank - 1, dims);
}

/* variable, rows, updates */
int tfl_row_resource_scatter(tfl_op *x) {
  ir_opcode opcode = (ir_opcode)x->row->arg;
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value v = index_variable(x, r), indices = tfl_in(x, 1), updates = index_negated(x, &opcode, tfl_in(x, 2));
  if (v.op && opt_type(v)->rank == 0) return tfl_fail(x, "the variable is a scalar: it has no rows");
  tfl_assign(x, r, tfl_put_rows(x, opcode, v, indices, index_spread(x, updates, v, indices)));
  return x->status;
}

/* --- segments --- */

/* What a segment without elements has: of a maximum the least finite number, as TensorFlow's. */
static ir_value index_empty_segment(tfl_op *x, ir_opcode opcode, base_dtype dtype) {
  assert(opcode == IR_OP_ADD || opcode == IR_OP_MULTIPLY || opcode == IR_OP_MAXIMUM || opcode == IR_OP_MINIMUM);
  if (opcode == IR_OP_ADD) return tfl_scalar(x, dtype, 0);
  if (opcode == IR_OP_MULTIPLY) return tfl_scalar(x, dtype, 1);
  ir_value end = opcode == IR_OP_MAXIMUM ? tfl_lowest(x, dtype) : tfl_highest(x, dtype);
  if (!base_dtype_is_float(dtype)) return end;
  ir_value none = tfl_scalar(x, dtype, 0); /* towards 0 from an infinity: the largest finite number */
  ir_value both[] = {end, none};
  return opt_make(x->rw, IR_OP_NEXT_AFTER, opt_type(none), 2, both);
}

/* Data, segments, number of segments. */
int tfl_row_segments(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *at = tfl_in_type(x, 1);
  ir_opcode opcode = (ir_opcode)x->row->arg;
  int64_t n = 0, dims[TFL_MOST_DIMS];
  TRY(tfl_int(x, 2, &n));
  if (n < 0 || at->rank > t->rank)
    return tfl_fail(x, "%lld segments, for data of rank %u and ids of rank %u", (long long)n, t->rank, at->rank);
  for (uint32_t d = 0; d < at->rank; d++)
    if (t->dims[d] != at->dims[d]) return tfl_fail(x, "ids have not the first sizes of the data");
  dims[0] = n;
  for (uint32_t d = at->rank; d < t->rank; d++) dims[1 + d - at->rank] = t->dims[d];
  base_dtype dtype = (base_dtype)t->dtype;
  ir_value start = tfl_broadcast(x, index_empty_segment(x, opcode, dtype), t->rank - at->rank + 1, dims);
  tfl_out(x, 0, tfl_put_rows(x, opcode, start, tfl_in(x, 1), tfl_in(x, 0)));
  return x->status;
}

/* --- counts --- */

/* The places of elements of `ids`, [n] or [rows, n], among [size] or [rows, size] bins: ids with their row before them.
 */
static ir_value index_bins(tfl_op *x, ir_value ids, bool rows) {
  assert(!rows || !ids.op || opt_type(ids)->rank == 2);
  if (!ids.op) return ids;
  const ir_type *t = opt_type(ids);
  int64_t one[] = {t->count, 1};
  if (!rows) return tfl_reshape(x, ids, 2, one);
  int64_t dims[] = {t->dims[0], t->dims[1], 1};
  ir_value both[] = {tfl_iota(x, (base_dtype)t->dtype, 3, dims, 0), tfl_reshape(x, ids, 3, dims)};
  return tfl_concat(x, 2, both, 2);
}

/* Negative ids count for nothing here, as those that are too large; the number of bins is known. */
static int index_count(tfl_op *x, bool rows, bool binary) {
  const ir_type *t = tfl_in_type(x, 0), *w = tfl_in_type(x, 2);
  base_dtype dtype = tfl_out_dtype(x, 0);
  int64_t size = 0;
  TRY(tfl_int(x, 1, &size));
  if (size < 0) return tfl_fail(x, "%lld bins", (long long)size);
  bool weighted = w->count > 0 && !binary;
  if (weighted && w->count != t->count) return tfl_fail(x, "weights have not the shape of the values");
  int64_t bins[] = {rows ? t->dims[0] : size, size}, flat = t->count;
  ir_value start = tfl_full(x, dtype, rows ? 2 : 1, bins, 0), ids = tfl_in(x, 0);
  int64_t shape[] = {rows ? t->dims[0] : flat, rows ? t->dims[1] : 0};
  ir_value each =
      weighted ? tfl_reshape(x, tfl_in(x, 2), rows ? 2 : 1, shape) : tfl_full(x, dtype, rows ? 2 : 1, shape, 1);
  tfl_out(x, 0, tfl_put_nd(x, binary ? IR_OP_MAXIMUM : IR_OP_ADD, start, index_bins(x, ids, rows), each));
  return x->status;
}

/* arr, size, weights: of any shape */
int tfl_row_bincount(tfl_op *x) {
  return index_count(x, false, false);
}

/* input, size, weights: rows are counted by themselves */
int tfl_row_dense_bincount(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank == 0 || t->rank > 2) return tfl_fail(x, "values of rank %u: expected 1 or 2", t->rank);
  return index_count(x, t->rank == 2, tfl_attr_bool(x, "binary_output"));
}

/* --- the largest --- */

/* CHLO's top_k sorts, equal elements by place; `sorted` false allows that, too. */
int tfl_row_top_k(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t k = 0, dims[TFL_MOST_DIMS];
  TRY(tfl_int(x, 1, &k));
  if (t->rank == 0) return tfl_fail(x, "a scalar: expected one dimension or more");
  if (k < 0 || k > t->dims[t->rank - 1])
    return tfl_fail(x, "k is %lld of %lld elements", (long long)k, (long long)t->dims[t->rank - 1]);
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d + 1 == t->rank ? k : t->dims[d];
  const ir_type *types[] = {tfl_type(x, (base_dtype)t->dtype, t->rank, dims), tfl_type(x, XLAC_S32, t->rank, dims)};
  ir_value v = tfl_in(x, 0);
  if (x->status || !v.op) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_TOPK, 2, types, 1, &v, 0);
  opt_set(x->rw, opt_result(op, 0), "k", ir_m_i64(x->rw->m, k));
  tfl_out(x, 0, opt_result(op, 0));
  tfl_out(x, 1, tfl_cast(x, opt_result(op, 1), tfl_out_dtype(x, 1)));
  return x->status;
}

/* --- DynamicStitch: indices are known, so the result is a gather of all data's slices --- */

/* Sizes of a DynamicStitch: indices and data come in pairs. */
typedef struct index_stitch {
  uint32_t n;    /* pairs */
  int64_t total; /* slices in all */
  int64_t rows;  /* of the result */
} index_stitch;

static int index_stitch_size(tfl_op *x, index_stitch *s) {
  *s = (index_stitch){x->n_in / 2, 0, 0};
  for (uint32_t i = 0; i < s->n; i++) {
    const int64_t *v = NULL;
    uint32_t n = 0;
    TRY(tfl_ints(x, i, &v, &n));
    for (uint32_t k = 0; k < n; k++) {
      if (v[k] < 0 || v[k] >= INT32_MAX) return tfl_fail(x, "index %lld", (long long)v[k]);
      if (v[k] + 1 > s->rows) s->rows = v[k] + 1;
    }
    s->total += n;
  }
  return 0;
}

/* All data as one list of slices; `slice` gets the shape of one. */
static int index_stitch_data(tfl_op *x, const index_stitch *s, ir_value *all, uint32_t *rank, int64_t *slice) {
  ir_value *parts = BASE_ARRAY(x->arena, ir_value, s->n + 1);
  if (!parts) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < s->n; i++) {
    const ir_type *at = tfl_in_type(x, i), *t = tfl_in_type(x, s->n + i);
    if (t->rank < at->rank) return tfl_fail(x, "data %u has fewer dimensions than its indices", i);
    int64_t dims[TFL_MOST_DIMS + 1] = {at->count};
    *rank = t->rank - at->rank;
    for (uint32_t d = 0; d < *rank; d++) dims[1 + d] = slice[d] = t->dims[at->rank + d];
    parts[i] = tfl_reshape(x, tfl_in(x, s->n + i), *rank + 1, dims);
  }
  *all = tfl_concat(x, s->n, parts, 0);
  return x->status;
}

/* Rows that no index names are taken from slice 0: TensorFlow leaves them open. */
int tfl_row_dynamic_stitch(tfl_op *x) {
  index_stitch s;
  ir_value all = {NULL, 0};
  uint32_t rank = 0;
  int64_t slice[TFL_MOST_DIMS] = {0};
  TRY(index_stitch_size(x, &s));
  if (s.n == 0 || s.total > INT32_MAX) return tfl_fail(x, "%u inputs with %lld slices", s.n, (long long)s.total);
  TRY(index_stitch_data(x, &s, &all, &rank, slice));
  int32_t *from = BASE_ARRAY(x->arena, int32_t, (size_t)s.rows + 1);
  if (!from) return x->status = base_oom(x->err, "lowering");
  for (int64_t i = 0; i < s.rows; i++) from[i] = 0;
  int32_t at = 0;
  for (uint32_t i = 0; i < s.n; i++) {
    const int64_t *v = NULL;
    uint32_t n = 0;
    TRY(tfl_ints(x, i, &v, &n));
    for (uint32_t k = 0; k < n; k++) from[v[k]] = at++; /* the last one counts */
  }
  tfl_out(x, 0, tfl_take(x, all, tfl_constant_i32(x, 1, &s.rows, from), 0, 0));
  return x->status;
}
