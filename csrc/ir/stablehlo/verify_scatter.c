/* scatter. */
#include "verify.h"

typedef struct sv_scatter_numbers {
  sv_ints update_window, inserted, input_batching, index_batching, to_operand;
  int64_t index_vector_dim;
  uint32_t n;       /* inputs */
  sv_shape indices; /* with a trailing 1 where index_vector_dim is the rank */
} sv_scatter_numbers;

static const ir_type *sv_scatter_update(const sv *v, const sv_scatter_numbers *s, uint32_t i) {
  return sv_in(v, s->n + 1 + i);
}

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

int sv_infer_scatter(const sv *v) {
  uint32_t n = v->op->n_operands / 2;
  if (v->op->n_operands % 2 == 0 || v->op->n_results != n || n == 0)
    return sv_fail(v, "scatter_c5", "has %u operands and %u results; expected inputs, indices and as many updates",
                   v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < n; i++)
    TRY(sv_like(v, sv_in(v, i), sv_accumulator(sv_region(v, 0), i, sv_in(v, i)), &v->out[i]));
  return 0;
}
