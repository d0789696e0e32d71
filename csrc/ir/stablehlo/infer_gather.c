/* gather, dynamic_gather and scatter, by the constraints gather_c1 to c22 and scatter_c1 to c23 of the specification,
 * whose names errors carry.
 *
 * gather takes slices of the operand at places that index vectors name. The index vectors lie along index_vector_dim
 * of start_indices (with the implied size 1 where that is its rank); start_index_map says which operand dimension
 * each of their numbers is for. Of a slice's dimensions the collapsed and the batching ones vanish; the others stand
 * in the result at offset_dims. */
#include "verify.h"

/* #stablehlo.gather<...>. */
typedef struct sv_gather_numbers {
  sv_ints offset_dims, collapsed, operand_batching, start_batching, start_index_map;
  int64_t index_vector_dim;
} sv_gather_numbers;

/* Lists that the text left out are empty. */
static sv_gather_numbers sv_read_gather(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "dimension_numbers");
  return (sv_gather_numbers){
      .offset_dims = sv_field_ints(v, a, "offset_dims"),
      .collapsed = sv_field_ints(v, a, "collapsed_slice_dims"),
      .operand_batching = sv_field_ints(v, a, "operand_batching_dims"),
      .start_batching = sv_field_ints(v, a, "start_indices_batching_dims"),
      .start_index_map = sv_field_ints(v, a, "start_index_map"),
      .index_vector_dim = sv_field_int(a, "index_vector_dim", 0),
  };
}

/* gather_c1, c2, c3. */
static int sv_check_gather_index(const sv *v, const sv_gather_numbers *g) {
  const ir_type *t = sv_in(v, 0), *starts = sv_in(v, 1);
  uint64_t implied = (uint64_t)g->offset_dims.n + g->collapsed.n + g->operand_batching.n;
  if (implied != t->rank)
    return sv_fail(v, "gather_c1",
                   "has %u offset_dims, %u collapsed_slice_dims and %u operand_batching_dims; expected %u in all, the "
                   "operand's rank",
                   g->offset_dims.n, g->collapsed.n, g->operand_batching.n, t->rank);
  if (g->index_vector_dim < 0 || g->index_vector_dim > starts->rank)
    return sv_fail(v, "gather_c2", "has index_vector_dim = %lld; expected one in [0, %u]",
                   (long long)g->index_vector_dim, starts->rank);
  int64_t size = g->index_vector_dim == starts->rank ? 1 : sv_dim(starts, (uint32_t)g->index_vector_dim);
  if (size != SV_DYNAMIC && size != g->start_index_map.n)
    return sv_fail(v, "gather_c3", "has %u numbers in start_index_map; expected %lld, the size of the index vectors",
                   g->start_index_map.n, (long long)size);
  return 0;
}

/* Sorted, repetitions allowed: those are other constraints'. */
static int sv_check_gather_sorted(const sv *v, const char *id, const char *what, sv_ints dims) {
  if (sv_is_sorted(dims)) return 0;
  return sv_fail(v, id, "has %s = %s; expected them sorted", what, SV_SHOW_INTS(dims));
}

/* gather_c4 to c16 but for those about slice sizes. */
static int sv_check_gather_lists(const sv *v, const sv_gather_numbers *g) {
  uint32_t rank = sv_in(v, 0)->rank, start_rank = sv_in(v, 1)->rank;
  TRY(sv_check_gather_sorted(v, "gather_c4", "offset_dims", g->offset_dims));
  if (!sv_is_unique(g->offset_dims))
    return sv_fail(v, "gather_c4", "has offset_dims = %s; expected no repetition", SV_SHOW_INTS(g->offset_dims));
  TRY(sv_check_distinct(v, "gather_c6", "collapsed_slice_dims", g->collapsed, "operand_batching_dims",
                        g->operand_batching));
  TRY(sv_check_gather_sorted(v, "gather_c7", "collapsed_slice_dims", g->collapsed));
  TRY(sv_check_dims(v, "gather_c8", "collapsed_slice_dims", g->collapsed, rank));
  TRY(sv_check_gather_sorted(v, "gather_c10", "operand_batching_dims", g->operand_batching));
  TRY(sv_check_dims(v, "gather_c11", "operand_batching_dims", g->operand_batching, rank));
  if (!sv_is_unique(g->start_batching))
    return sv_fail(v, "gather_c13", "has start_indices_batching_dims = %s; expected no repetition",
                   SV_SHOW_INTS(g->start_batching));
  TRY(sv_check_dims(v, "gather_c14", "start_indices_batching_dims", g->start_batching, start_rank));
  if (sv_has(g->start_batching, g->index_vector_dim))
    return sv_fail(v, "gather_c15", "has index_vector_dim %lld in start_indices_batching_dims",
                   (long long)g->index_vector_dim);
  if (g->operand_batching.n != g->start_batching.n)
    return sv_fail(v, "gather_c16", "has %u operand_batching_dims and %u start_indices_batching_dims",
                   g->operand_batching.n, g->start_batching.n);
  return 0;
}

/* n_sizes is the length of slice_sizes, which alone is known of dynamic_gather. */
static int sv_check_gather(const sv *v, const sv_gather_numbers *g, int64_t n_sizes) {
  const ir_type *t = sv_in(v, 0), *starts = sv_in(v, 1);
  TRY(sv_check_gather_index(v, g));
  TRY(sv_check_gather_lists(v, g));
  for (uint32_t i = 0; i < g->operand_batching.n; i++) {
    int64_t a = sv_dim(t, (uint32_t)g->operand_batching.v[i]), b = sv_dim(starts, (uint32_t)g->start_batching.v[i]);
    if (!sv_dims_fit(a, b))
      return sv_fail(v, "gather_c17", "has batching dimensions of sizes %lld and %lld at place %u", (long long)a,
                     (long long)b, i);
  }
  TRY(sv_check_distinct(v, "gather_c18", "start_index_map", g->start_index_map, "operand_batching_dims",
                        g->operand_batching));
  TRY(sv_check_dims(v, "gather_c19", "start_index_map", g->start_index_map, t->rank));
  if (n_sizes != t->rank)
    return sv_fail(v, "gather_c20", "has %lld slice_sizes; expected %u, the operand's rank", (long long)n_sizes,
                   t->rank);
  return 0;
}

/* gather_c9 and c12: dimensions that vanish have size 1 at most. */
static int sv_check_slice_of_one(const sv *v, const char *id, const char *what, sv_ints dims, sv_ints sizes) {
  assert(dims.n == 0 || sizes.n > 0);
  for (uint32_t i = 0; i < dims.n; i++)
    if (sizes.v[dims.v[i]] > 1)
      return sv_fail(v, id, "has slice size %lld in dimension %lld, which is in %s; expected at most 1",
                     (long long)sizes.v[dims.v[i]], (long long)dims.v[i], what);
  return 0;
}

/* gather_c9, c12, c21. */
static int sv_check_gather_sizes(const sv *v, const sv_gather_numbers *g, sv_ints sizes) {
  const ir_type *t = sv_in(v, 0);
  TRY(sv_check_slice_of_one(v, "gather_c9", "collapsed_slice_dims", g->collapsed, sizes));
  TRY(sv_check_slice_of_one(v, "gather_c12", "operand_batching_dims", g->operand_batching, sizes));
  for (uint32_t i = 0; i < sizes.n; i++)
    if (sizes.v[i] < 0 || (sv_dim(t, i) != SV_DYNAMIC && sizes.v[i] > sv_dim(t, i)))
      return sv_fail(v, "gather_c21", "has slice size %lld in dimension %u of %s", (long long)sizes.v[i], i,
                     SV_SHOW(t));
  return 0;
}

/* sizes may be empty: not known. */
static int sv_make_gather(const sv *v, const sv_gather_numbers *g, sv_ints sizes) {
  const ir_type *starts = sv_in(v, 1);
  uint32_t start_rank = starts->rank + (g->index_vector_dim == starts->rank);
  uint32_t rank = g->offset_dims.n + start_rank - 1, kept = 0, batch = 0;
  TRY(sv_check_dims(v, "gather_c5", "offset_dims", g->offset_dims, rank));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < rank; i++) {
    if (sv_has(g->offset_dims, i)) {
      while (sv_has(g->collapsed, kept) || sv_has(g->operand_batching, kept)) kept++;
      assert(kept < sv_in(v, 0)->rank);
      sv_push(&s, sizes.n ? sizes.v[kept] : SV_DYNAMIC, SV_DYNAMIC);
      kept++;
      continue;
    }
    if (batch == g->index_vector_dim) batch++;
    sv_push_dim(&s, starts, batch++);
  }
  return sv_make(v, &s, sv_element_of(sv_in(v, 0)), v->out);
}

int sv_infer_gather(const sv *v) {
  sv_gather_numbers g = sv_read_gather(v);
  sv_ints sizes = sv_attr_ints(v, "slice_sizes");
  TRY(sv_check_gather(v, &g, sizes.n));
  TRY(sv_check_gather_sizes(v, &g, sizes));
  return sv_make_gather(v, &g, sizes);
}

/* Operand 2 is slice_sizes; a constant is checked as an attribute would be. */
int sv_infer_dynamic_gather(const sv *v) {
  sv_gather_numbers g = sv_read_gather(v);
  sv_ints sizes = {NULL, 0};
  TRY(sv_check_gather(v, &g, sv_in(v, 2)->dims[0]));
  if (sv_constant_ints(v, 2, &sizes)) TRY(sv_check_gather_sizes(v, &g, sizes));
  return sv_make_gather(v, &g, sizes);
}

typedef struct sv_scatter_numbers {
  sv_ints update_window, inserted, input_batching, index_batching, to_operand;
  int64_t index_vector_dim;
  uint32_t n;       /* inputs */
  sv_shape indices; /* with a trailing 1 where index_vector_dim is the rank */
} sv_scatter_numbers;

/* --- scatter: (inputs..., indices, updates...), as many updates as inputs --- */
static const ir_type *sv_scatter_update(const sv *v, const sv_scatter_numbers *s, uint32_t i) {
  return sv_in(v, s->n + 1 + i);
}

/* s->indices is filled by sv_check_scatter_operands. */
static void sv_read_scatter(const sv *v, sv_scatter_numbers *s) {
  const ir_mattr *a = ir_mattr_of(v->op, "scatter_dimension_numbers");
  s->update_window = sv_field_ints(v, a, "update_window_dims");
  s->inserted = sv_field_ints(v, a, "inserted_window_dims");
  s->input_batching = sv_field_ints(v, a, "input_batching_dims");
  s->index_batching = sv_field_ints(v, a, "scatter_indices_batching_dims");
  s->to_operand = sv_field_ints(v, a, "scatter_dims_to_operand_dims");
  s->index_vector_dim = sv_field_int(a, "index_vector_dim", 0);
  s->n = v->op->n_operands / 2;
}

/* Inputs, indices, updates. */
static int sv_check_scatter_operands(const sv *v, sv_scatter_numbers *s) {
  if (v->op->n_operands % 2 == 0)
    return sv_fail(v, "scatter_c5", "has %u operands; expected inputs, indices and as many updates as inputs",
                   v->op->n_operands);
  for (uint32_t i = 0; i < v->op->n_operands; i++) {
    const ir_type *t = sv_in(v, i);
    if (!sv_type_in(t, i == s->n ? SV_PRED | SV_INT | SV_INDEX : SV_TENSOR))
      return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has operand %u of type %s", i, SV_SHOW(t));
  }
  for (uint32_t i = 1; i < s->n; i++) {
    if (!sv_shapes_fit(sv_in(v, 0), sv_in(v, i)))
      return sv_fail(v, "scatter_c1", "has inputs of %s and %s; expected one shape", SV_SHOW(sv_in(v, 0)),
                     SV_SHOW(sv_in(v, i)));
    if (!sv_shapes_fit(sv_scatter_update(v, s, 0), sv_scatter_update(v, s, i)))
      return sv_fail(v, "scatter_c3", "has updates of %s and %s; expected one shape",
                     SV_SHOW(sv_scatter_update(v, s, 0)), SV_SHOW(sv_scatter_update(v, s, i)));
  }
  const ir_type *indices = sv_in(v, s->n);
  if (s->index_vector_dim < 0 || s->index_vector_dim > indices->rank)
    return sv_fail(v, "scatter_c22", "has index_vector_dim = %lld; expected one in [0, %u]",
                   (long long)s->index_vector_dim, indices->rank);
  sv_shape_of(indices, &s->indices);
  if (s->index_vector_dim == indices->rank) sv_push(&s->indices, 1, SV_DYNAMIC);
  return 0;
}

/* The computation takes scalars: (current..., update...) -> new. */
static int sv_check_scatter_reducer(const sv *v, const sv_scatter_numbers *s) {
  const ir_type **inputs = BASE_ARRAY(v->arena, const ir_type *, s->n + 1u);
  const ir_type **inits = BASE_ARRAY(v->arena, const ir_type *, s->n + 1u);
  if (!inputs || !inits) return sv_oom(v);
  for (uint32_t i = 0; i < s->n; i++) {
    inputs[i] = sv_in(v, i);
    TRY(sv_scalar_like(v, sv_scatter_update(v, s, i), &inits[i]));
  }
  sv_shape none = {.rank = 0};
  return sv_check_reducer(v, sv_region(v, 0), s->n, inputs, inits, &none);
}

static int sv_check_scatter_sorted(const sv *v, const char *id, const char *what, sv_ints dims) {
  if (sv_is_sorted(dims)) return 0;
  return sv_fail(v, id, "has %s = %s; expected them sorted", what, SV_SHOW_INTS(dims));
}

/* scatter_c2, c7 to c13. */
static int sv_check_scatter_lists(const sv *v, const sv_scatter_numbers *s) {
  uint32_t rank = sv_in(v, 0)->rank, update_rank = sv_scatter_update(v, s, 0)->rank;
  uint64_t implied = (uint64_t)s->update_window.n + s->inserted.n + s->input_batching.n;
  if (implied != rank)
    return sv_fail(v, "scatter_c2",
                   "has %u update_window_dims, %u inserted_window_dims and %u input_batching_dims; expected %u in all, "
                   "the input's rank",
                   s->update_window.n, s->inserted.n, s->input_batching.n, rank);
  TRY(sv_check_scatter_sorted(v, "scatter_c7", "update_window_dims", s->update_window));
  if (!sv_is_unique(s->update_window))
    return sv_fail(v, "scatter_c7", "has update_window_dims = %s; expected no repetition",
                   SV_SHOW_INTS(s->update_window));
  TRY(sv_check_dims(v, "scatter_c8", "update_window_dims", s->update_window, update_rank));
  TRY(sv_check_distinct(v, "scatter_c9", "inserted_window_dims", s->inserted, "input_batching_dims",
                        s->input_batching));
  TRY(sv_check_scatter_sorted(v, "scatter_c10", "inserted_window_dims", s->inserted));
  TRY(sv_check_dims(v, "scatter_c11", "inserted_window_dims", s->inserted, rank));
  TRY(sv_check_scatter_sorted(v, "scatter_c12", "input_batching_dims", s->input_batching));
  return sv_check_dims(v, "scatter_c13", "input_batching_dims", s->input_batching, rank);
}

/* scatter_c14 to c21. */
static int sv_check_scatter_batching(const sv *v, const sv_scatter_numbers *s) {
  if (!sv_is_unique(s->index_batching))
    return sv_fail(v, "scatter_c14", "has scatter_indices_batching_dims = %s; expected no repetition",
                   SV_SHOW_INTS(s->index_batching));
  TRY(sv_check_dims(v, "scatter_c15", "scatter_indices_batching_dims", s->index_batching, s->indices.rank));
  if (sv_has(s->index_batching, s->index_vector_dim))
    return sv_fail(v, "scatter_c16", "has index_vector_dim %lld in scatter_indices_batching_dims",
                   (long long)s->index_vector_dim);
  if (s->input_batching.n != s->index_batching.n)
    return sv_fail(v, "scatter_c17", "has %u input_batching_dims and %u scatter_indices_batching_dims",
                   s->input_batching.n, s->index_batching.n);
  for (uint32_t i = 0; i < s->input_batching.n; i++) {
    int64_t a = sv_dim(sv_in(v, 0), (uint32_t)s->input_batching.v[i]), b = s->indices.dims[s->index_batching.v[i]];
    if (!sv_dims_fit(a, b))
      return sv_fail(v, "scatter_c18", "has batching dimensions of sizes %lld and %lld at place %u", (long long)a,
                     (long long)b, i);
  }
  int64_t size = s->indices.dims[s->index_vector_dim];
  if (size != SV_DYNAMIC && size != s->to_operand.n)
    return sv_fail(v, "scatter_c19",
                   "has %u scatter_dims_to_operand_dims; expected %lld, the size of the index vectors", s->to_operand.n,
                   (long long)size);
  TRY(sv_check_distinct(v, "scatter_c20", "scatter_dims_to_operand_dims", s->to_operand, "input_batching_dims",
                        s->input_batching));
  return sv_check_dims(v, "scatter_c21", "scatter_dims_to_operand_dims", s->to_operand, sv_in(v, 0)->rank);
}

/* An update's window is no larger than the input, its other dimensions are those of the indices. */
static int sv_check_scatter_update(const sv *v, const sv_scatter_numbers *s, uint32_t i) {
  const ir_type *t = sv_in(v, i), *update = sv_scatter_update(v, s, i);
  uint32_t kept = 0, index = 0;
  for (uint32_t d = 0; d < update->rank; d++) {
    int64_t size = sv_dim(update, d);
    if (sv_has(s->update_window, d)) {
      while (kept < t->rank && (sv_has(s->inserted, kept) || sv_has(s->input_batching, kept))) kept++;
      int64_t limit = kept < t->rank ? sv_dim(t, kept++) : SV_DYNAMIC;
      if (size != SV_DYNAMIC && limit != SV_DYNAMIC && size > limit)
        return sv_fail(v, "scatter_c4", "has an update of size %lld in window dimension %u; expected at most %lld",
                       (long long)size, d, (long long)limit);
      continue;
    }
    if (index == s->index_vector_dim) index++;
    if (!sv_dims_fit(size, s->indices.dims[index]))
      return sv_fail(v, "scatter_c4", "has an update of size %lld in scatter dimension %u; expected %lld",
                     (long long)size, d, (long long)s->indices.dims[index]);
    index++;
  }
  return 0;
}

/* Checked in upstream's order: operands, region, ranks, lists, sizes. */
int sv_verify_scatter(const sv *v) {
  sv_scatter_numbers s;
  sv_read_scatter(v, &s);
  TRY(sv_check_scatter_operands(v, &s));
  TRY(sv_check_scatter_reducer(v, &s));
  uint32_t expected = s.indices.rank - 1 + s.update_window.n;
  for (uint32_t i = 0; i < s.n; i++)
    if (sv_scatter_update(v, &s, i)->rank != expected)
      return sv_fail(v, "scatter_c4", "has an update of rank %u; expected %u", sv_scatter_update(v, &s, i)->rank,
                     expected);
  TRY(sv_check_scatter_lists(v, &s));
  TRY(sv_check_scatter_batching(v, &s));
  for (uint32_t i = 0; i < s.n; i++) TRY(sv_check_scatter_update(v, &s, i));
  return 0;
}

/* The inputs' shapes with the elements that the computation returns, which may be wider. */
int sv_infer_scatter(const sv *v) {
  uint32_t n = v->op->n_operands / 2;
  if (v->op->n_operands % 2 == 0 || v->op->n_results != n || n == 0)
    return sv_fail(v, "scatter_c5", "has %u operands and %u results; expected inputs, indices and as many updates",
                   v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < n; i++)
    TRY(sv_like(v, sv_in(v, i), sv_accumulator(sv_region(v, 0), i, sv_in(v, i)), &v->out[i]));
  return 0;
}
