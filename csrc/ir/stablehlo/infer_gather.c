/* gather and dynamic_gather; scatter's rules are in verify_scatter.c. */
#include "verify.h"

typedef struct sv_gather_numbers {
  sv_ints offset_dims, collapsed, operand_batching, start_batching, start_index_map;
  int64_t index_vector_dim;
} sv_gather_numbers;

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

static int sv_check_gather_sorted(const sv *v, const char *id, const char *what, sv_ints dims) {
  if (sv_is_sorted(dims)) return 0;
  return sv_fail(v, id, "has %s = %s; expected them sorted", what, SV_SHOW_INTS(dims));
}

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

static int sv_check_slice_of_one(const sv *v, const char *id, const char *what, sv_ints dims, sv_ints sizes) {
  for (uint32_t i = 0; i < dims.n; i++)
    if (sizes.v[dims.v[i]] > 1)
      return sv_fail(v, id, "has slice size %lld in dimension %lld, which is in %s; expected at most 1",
                     (long long)sizes.v[dims.v[i]], (long long)dims.v[i], what);
  return 0;
}

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

int sv_infer_dynamic_gather(const sv *v) {
  sv_gather_numbers g = sv_read_gather(v);
  sv_ints sizes = {NULL, 0};
  TRY(sv_check_gather(v, &g, sv_in(v, 2)->dims[0]));
  if (sv_constant_ints(v, 2, &sizes)) TRY(sv_check_gather_sizes(v, &g, sizes));
  return sv_make_gather(v, &g, sizes);
}
