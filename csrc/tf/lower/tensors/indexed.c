/* Makers of gathers and scatters, from what TensorFlow's ops mean by their indices. */
#include "../windows.h"

static ir_value indexed_nothing(void) {
  return (ir_value){NULL, 0};
}

typedef struct indexed_field {
  const char *name;
  uint32_t n;
  const int64_t *v;
} indexed_field;

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
  return opt_constant_data(x->rw, tfl_type(x, XLAC_S32, rank, dims), v, false);
}

ir_value tfl_constant_f32(tfl_op *x, uint32_t rank, const int64_t *dims, const float *v) {
  return opt_constant_data(x->rw, tfl_type(x, XLAC_F32, rank, dims), v, false);
}

/* Where place is -1, `otherwise` instead of the first element. */
static ir_value indexed_fill(tfl_op *x, ir_value v, int64_t count, const int32_t *place, ir_value otherwise) {
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
