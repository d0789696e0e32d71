/* Inference of gather and scatter. Indices of shape [...] stand for [..., 1] when index_vector_dim is their rank.
 *
 * gather: operand f32[10,4], indices s32[3,1], offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
 * index_vector_dim=1, slice_sizes={1,4} gives f32[3,4], row indices[i] of the operand as row i. scatter is the way
 * back: updates f32[3,4] go to those rows, with update_window_dims={1}, inserted_window_dims={0}. StableHLO's
 * specification has the constraints under the same names. */
#include "infer.h"

/* The indices' dimensions, with the implied last one. */
static int index_dims(const ir_op *op, const ir_type *indices, ir_dims *d, int64_t *vector_dim, xlac_error *err) {
  assert(d && vector_dim && ir_is_tensor(indices));
  if (!base_dtype_is_integer(indices->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "the indices of %s must be integers, but are %s",
                     ir_opcode_text(op->opcode), IR_SHOW(indices));
  *vector_dim = ir_get_int(op, IR_ATTR_INDEX_VECTOR_DIM, -1);
  if (*vector_dim < 0 || *vector_dim > (int64_t)indices->rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "index_vector_dim is %lld, but must be from 0 to the rank of the indices %s",
                     (long long)*vector_dim, IR_SHOW(indices));
  ir_dims_of(d, indices);
  return *vector_dim == (int64_t)indices->rank ? ir_dims_push(d, 1, false, err) : 0;
}

/* The list that says which operand dimension each index component addresses. An unbounded vector dimension fits any
 * map. */
static int check_index_map(const char *what, const ir_ints *map, const ir_dims *d, int64_t vector_dim, uint32_t rank,
                           xlac_error *err) {
  if (!ir_sizes_fit(map->n, d->size[vector_dim]))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s has %u entries, but dimension %lld of the indices has size %lld",
                     what, map->n, (long long)vector_dim, (long long)d->size[vector_dim]);
  return ir_check_dims_set(what, map, NULL, rank, err);
}

/* In range, and ascending without repeats. */
static int check_sorted_dims(const char *what, const ir_ints *dims, uint32_t rank, xlac_error *err) {
  TRY(ir_check_dims_in_range(what, dims, rank, err));
  return ir_check_dims_sorted(what, dims, err);
}

/* Batching dimensions of the array go with those of the indices and have their sizes; they are not addressed by indices
 * too, and not the vector dimension: XLA's verifier leaves these to its documentation, but what runs relies on them. */
typedef struct batching_dims {
  const char *of_array, *of_indices, *with_map; /* names */
  const ir_ints *array, *indices, *map;
} batching_dims;

/* Where both sizes are known. */
static int check_batching_sizes(const batching_dims *b, const ir_type *t, const ir_dims *indices, xlac_error *err) {
  assert(b->array->n == b->indices->n);
  for (uint32_t i = 0; i < b->array->n; i++) {
    int64_t own = b->array->v[i], other = b->indices->v[i];
    if (!ir_sizes_fit(t->dims[own], indices->size[other]))
      return base_fail(err, XLAC_E_INFER,
                       "batching dimension %lld of %s must have the size of dimension %lld of the indices, %lld",
                       (long long)own, IR_SHOW(t), (long long)other, (long long)indices->size[other]);
  }
  return 0;
}

/* Both lists go pairwise, so they have one length; that of the array is sorted, that of the indices need not be. */
static int check_batching(const batching_dims *b, const ir_type *t, const ir_dims *indices, int64_t vector_dim,
                          xlac_error *err) {
  if (b->array->n != b->indices->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s has %u entries, but %s has %u", b->of_array, b->array->n,
                     b->of_indices, b->indices->n);
  TRY(check_sorted_dims(b->of_array, b->array, t->rank, err));
  TRY(ir_check_dims_set(b->of_indices, b->indices, NULL, indices->rank, err));
  TRY(ir_check_dims_set(b->with_map, b->map, b->array, t->rank, err));
  if (ir_ints_has(b->indices, vector_dim))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s names dimension %lld, which is index_vector_dim", b->of_indices,
                     (long long)vector_dim);
  return check_batching_sizes(b, t, indices, err);
}

/* --- gather --- */

typedef struct gather_dims {
  const ir_ints *offset, *collapsed, *map, *batching, *index_batching, *sizes;
} gather_dims;

/* Ranks are added up before anything is built: the result may have too many dimensions. */
static int check_gather_dims(const ir_type *t, gather_dims n, const ir_dims *indices, int64_t vector_dim,
                             xlac_error *err) {
  if (n.offset->n > IR_MAX_RANK || n.offset->n + indices->rank - 1 > IR_MAX_RANK)
    return base_fail(err, XLAC_E_TOO_LARGE, "the result of gather would have more than %d dimensions", IR_MAX_RANK);
  TRY(check_sorted_dims("offset_dims", n.offset, n.offset->n + indices->rank - 1, err));
  TRY(check_index_map("start_index_map", n.map, indices, vector_dim, t->rank, err));
  TRY(check_sorted_dims("collapsed_slice_dims", n.collapsed, t->rank, err));
  const batching_dims b = {"operand_batching_dims",
                           "start_indices_batching_dims",
                           "start_index_map and operand_batching_dims",
                           n.batching,
                           n.index_batching,
                           n.map};
  TRY(check_batching(&b, t, indices, vector_dim, err));
  if (n.sizes->n != t->rank || n.sizes->n != n.offset->n + n.collapsed->n + n.batching->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "slice_sizes has %u entries; the operand's rank is %u, and offset_dims, collapsed_slice_dims and "
                     "operand_batching_dims name %u, %u and %u dimensions",
                     n.sizes->n, t->rank, n.offset->n, n.collapsed->n, n.batching->n);
  return 0;
}

/* Collapsed and batching dimensions vanish from the slice, so their size is 1, or 0 of an empty operand. */
static int check_slice_sizes(const ir_type *t, gather_dims n, xlac_error *err) {
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t size = n.sizes->v[i];
    if (t->dims[i] != IR_UNBOUNDED && (size < 0 || size > t->dims[i]))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "slice size %lld does not fit dimension %u of %s", (long long)size,
                       i, IR_SHOW(t));
    if (size > 1 && (ir_ints_has(n.collapsed, i) || ir_ints_has(n.batching, i)))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                       "slice size %lld in dimension %u, which is collapsed or a batching one, "
                       "must be at most 1",
                       (long long)size, i);
  }
  return 0;
}

/* A result dimension is one of the slice's kept dimensions (in order) or one of the indices' but the vector one (in
 * order). */
static void gather_result(const ir_type *t, gather_dims n, const ir_dims *indices, int64_t vector_dim, ir_dims *d) {
  assert(vector_dim >= 0 && vector_dim < indices->rank);
  uint32_t slice_at = 0, index_at = 0;
  d->rank = n.offset->n + indices->rank - 1;
  for (uint32_t i = 0; i < d->rank; i++) {
    if (ir_ints_has(n.offset, i)) {
      while (ir_ints_has(n.collapsed, slice_at) || ir_ints_has(n.batching, slice_at)) slice_at++;
      assert(slice_at < t->rank);
      d->size[i] = n.sizes->v[slice_at];
      d->dynamic[i] = n.sizes->v[slice_at] == t->dims[slice_at] && ir_dim_is_dynamic(t, slice_at);
      slice_at++;
    } else {
      index_at += index_at == (uint32_t)vector_dim;
      d->size[i] = indices->size[index_at];
      d->dynamic[i] = indices->dynamic[index_at++];
    }
  }
}

/* One dimension can't be both collapsed and a batching one: then fewer slice dimensions are kept than offset_dims has.
 */
static int check_kept(gather_dims n, xlac_error *err) {
  for (uint32_t i = 0; i < n.batching->n; i++)
    if (ir_ints_has(n.collapsed, n.batching->v[i]))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                       "dimension %lld is in collapsed_slice_dims and operand_batching_dims",
                       (long long)n.batching->v[i]);
  return 0;
}

/* XLA's InferGatherShape. */
int ir_infer_gather(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t, *indices;
  ir_dims index, d;
  int64_t vector_dim;
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_tensor(op, 1, &indices, err));
  TRY(index_dims(op, indices, &index, &vector_dim, err));
  gather_dims n = {ir_get_ints(op, IR_ATTR_OFFSET_DIMS),
                   ir_get_ints(op, IR_ATTR_COLLAPSED_SLICE_DIMS),
                   ir_get_ints(op, IR_ATTR_START_INDEX_MAP),
                   ir_get_ints(op, IR_ATTR_OPERAND_BATCHING_DIMS),
                   ir_get_ints(op, IR_ATTR_START_INDICES_BATCHING_DIMS),
                   ir_get_ints(op, IR_ATTR_SLICE_SIZES)};
  TRY(check_gather_dims(t, n, &index, vector_dim, err));
  TRY(check_kept(n, err));
  TRY(check_slice_sizes(t, n, err));
  gather_result(t, n, &index, vector_dim, &d);
  return ir_dims_tensor(m, t->dtype, &d, out, err);
}

/* --- scatter --- */

typedef struct scatter_dims {
  const ir_ints *window, *inserted, *map, *batching, *index_batching;
} scatter_dims;

/* The updates' dimensions are the window's and the indices' but the vector one. */
static int check_scatter_dims(const ir_type *t, const ir_type *updates, scatter_dims n, const ir_dims *indices,
                              int64_t vector_dim, xlac_error *err) {
  if ((uint64_t)updates->rank != (uint64_t)indices->rank - 1 + n.window->n)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "updates must have rank %llu, but are %s",
                     (unsigned long long)indices->rank - 1 + n.window->n, IR_SHOW(updates));
  TRY(check_sorted_dims("update_window_dims", n.window, updates->rank, err));
  TRY(check_sorted_dims("inserted_window_dims", n.inserted, t->rank, err));
  TRY(check_index_map("scatter_dims_to_operand_dims", n.map, indices, vector_dim, t->rank, err));
  const batching_dims b = {"input_batching_dims",
                           "scatter_indices_batching_dims",
                           "scatter_dims_to_operand_dims and input_batching_dims",
                           n.batching,
                           n.index_batching,
                           n.map};
  TRY(check_batching(&b, t, indices, vector_dim, err));
  TRY(ir_check_dims_set("inserted_window_dims and input_batching_dims", n.inserted, n.batching, t->rank, err));
  if (n.window->n + n.inserted->n + n.batching->n == t->rank) return 0;
  return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                   "update_window_dims, inserted_window_dims and input_batching_dims name %u, %u "
                   "and %u dimensions, but %s has %u",
                   n.window->n, n.inserted->n, n.batching->n, IR_SHOW(t), t->rank);
}

/* Window dimensions of the updates fit the operand's kept ones, the others are the indices' but the vector one. */
static int check_update_sizes(const ir_type *t, const ir_type *updates, scatter_dims n, const ir_dims *indices,
                              int64_t vector_dim, xlac_error *err) {
  uint32_t kept = 0, index_at = 0;
  for (uint32_t i = 0; i < updates->rank; i++) {
    if (ir_ints_has(n.window, i)) {
      while (ir_ints_has(n.inserted, kept) || ir_ints_has(n.batching, kept)) kept++;
      assert(kept < t->rank);
      if (updates->dims[i] > t->dims[kept++])
        return base_fail(err, XLAC_E_INFER, "window dimension %u of the updates %s is larger than dimension %u of %s",
                         i, IR_SHOW(updates), kept - 1, IR_SHOW(t));
      continue;
    }
    index_at += index_at == (uint32_t)vector_dim;
    if (!ir_sizes_fit(updates->dims[i], indices->size[index_at++]))
      return base_fail(err, XLAC_E_INFER, "dimension %u of the updates %s must be dimension %u of the indices, %lld", i,
                       IR_SHOW(updates), index_at - 1, (long long)indices->size[index_at - 1]);
  }
  return 0;
}

/* Few operands need no memory: 32 element types on the stack. */
static int check_scatter_reducer(ir_module *m, const ir_op *op, uint32_t n, xlac_error *err) {
  assert(op->n_operands == 2 * n + 1);
  base_dtype few[32];
  base_dtype *types = n <= 16 ? few : base_malloc(m->alloc, (size_t)n * 2 * sizeof *types);
  if (!types) return base_oom(err, "a reducer's types");
  for (uint32_t i = 0; i < n; i++) {
    types[i] = ir_operand_type(op, i)->dtype;
    types[n + i] = ir_operand_type(op, n + 1 + i)->dtype;
  }
  int status = ir_check_reducer("to_apply", op->called[0], n, types, types + n, err);
  if (types != few) base_free(m->alloc, types);
  return status;
}

/* What is prepared for the first operand and its updates serves all. XLA's verifier lets others through, against its
 * documentation. */
static int check_scatter_same(const ir_op *op, uint32_t first, uint32_t n, const char *what, xlac_error *err) {
  for (uint32_t i = first + 1; i < first + n; i++)
    if (!ir_same_dims(ir_operand_type(op, first), ir_operand_type(op, i)))
      return base_fail(err, XLAC_E_INFER, "the %s of scatter must have the same dimensions, but are %s and %s", what,
                       IR_SHOW(ir_operand_type(op, first)), IR_SHOW(ir_operand_type(op, i)));
  return 0;
}

/* (arrays..., indices, updates...): n of each. XLA's InferScatterShape. */
int ir_infer_scatter(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  if (op->n_operands < 3 || op->n_operands % 2 == 0)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "scatter takes n operands, indices and n updates, but has %u operands", op->n_operands);
  TRY(ir_check_all_tensors(op, err));
  uint32_t n_inputs = op->n_operands / 2;
  TRY(check_scatter_same(op, 0, n_inputs, "arrays", err));
  TRY(check_scatter_same(op, n_inputs + 1, n_inputs, "updates", err));
  ir_dims index;
  int64_t vector_dim;
  TRY(index_dims(op, ir_operand_type(op, n_inputs), &index, &vector_dim, err));
  scatter_dims n = {ir_get_ints(op, IR_ATTR_UPDATE_WINDOW_DIMS), ir_get_ints(op, IR_ATTR_INSERTED_WINDOW_DIMS),
                    ir_get_ints(op, IR_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), ir_get_ints(op, IR_ATTR_INPUT_BATCHING_DIMS),
                    ir_get_ints(op, IR_ATTR_SCATTER_INDICES_BATCHING_DIMS)};
  for (uint32_t i = 0; i < n_inputs; i++) {
    const ir_type *t = ir_operand_type(op, i), *updates = ir_operand_type(op, n_inputs + 1 + i);
    TRY(check_scatter_dims(t, updates, n, &index, vector_dim, err));
    TRY(check_update_sizes(t, updates, n, &index, vector_dim, err));
  }
  TRY(check_scatter_reducer(m, op, n_inputs, err));
  *out = ir_operand_type(op, 0);
  return n_inputs == 1 ? 0 : ir_infer_tuple_from(m, n_inputs, ir_infer_operand_element, op, out, err);
}
