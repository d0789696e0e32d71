/* Result types of ops that move data: broadcast, concatenate, slices and updates, dimension sizes, pad, transpose,
 * tuples. Where a size is dynamic but has a bound, arithmetic goes on with the bound. */
#include "verify.h"

/* Deprecated in StableHLO but still read: new dimensions in front. */
int sv_infer_broadcast(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints sizes = sv_attr_ints(v, "broadcast_sizes");
  sv_shape s = {.rank = 0};
  if (sizes.n > IR_MAX_RANK) return sv_fail(v, NULL, "has %u broadcast_sizes", sizes.n);
  for (uint32_t i = 0; i < sizes.n; i++) {
    if (sizes.v[i] < 0)
      return sv_fail(v, NULL, "has broadcast size %lld; expected none below 0", (long long)sizes.v[i]);
    sv_push(&s, sizes.v[i], SV_DYNAMIC);
  }
  for (uint32_t i = 0; i < t->rank; i++) sv_push_dim(&s, t, i);
  return sv_make(v, &s, sv_element_of(t), v->out);
}

/* A size that comes about by adding two, each maybe known only by its bound. */
static int sv_add_dims(const sv *v, int64_t *dim, int64_t *bound, int64_t dim2, int64_t bound2) {
  int64_t a = *dim != SV_DYNAMIC ? *dim : *bound, b = dim2 != SV_DYNAMIC ? dim2 : bound2, sum = SV_DYNAMIC;
  if (a != SV_DYNAMIC && b != SV_DYNAMIC && !base_add_i64(a, b, &sum))
    return sv_fail_code(v, XLAC_E_TOO_LARGE, NULL, "gives a dimension beyond 63 bits");
  bool is_static = *dim != SV_DYNAMIC && dim2 != SV_DYNAMIC;
  *dim = is_static ? sum : SV_DYNAMIC;
  *bound = is_static ? SV_DYNAMIC : sum;
  return 0;
}

/* concatenate_c2 and c4. */
static int sv_check_concatenate(const sv *v, int64_t dimension) {
  const ir_type *first = sv_in(v, 0);
  if (first->rank == 0) return sv_fail(v, "concatenate_c4", "has scalars; expected tensors of rank 1 or more");
  if (dimension >= first->rank)
    return sv_fail(v, "concatenate_c4", "has dimension = %lld; expected one below the rank %u", (long long)dimension,
                   first->rank);
  for (uint32_t i = 1; i < v->op->n_operands; i++) {
    const ir_type *t = sv_in(v, i);
    bool fits = t->rank == first->rank;
    for (uint32_t d = 0; fits && d < t->rank; d++) fits = d == dimension || sv_dims_fit(sv_dim(t, d), sv_dim(first, d));
    if (!fits)
      return sv_fail(v, "concatenate_c2", "has operands of %s and %s; expected the same sizes but in dimension %lld",
                     SV_SHOW(first), SV_SHOW(t), (long long)dimension);
  }
  return 0;
}

/* Along the dimension sizes add up; elsewhere operands tell one another what they know. */
int sv_infer_concatenate(const sv *v) {
  int64_t dimension = ir_m_get_int(v->op, "dimension", 0);
  TRY(sv_check_concatenate(v, dimension));
  sv_shape s;
  sv_shape_of(sv_in(v, 0), &s);
  for (uint32_t i = 1; i < v->op->n_operands; i++) {
    const ir_type *t = sv_in(v, i);
    for (uint32_t d = 0; d < s.rank; d++) {
      if (d == dimension)
        TRY(sv_add_dims(v, &s.dims[d], &s.bounds[d], sv_dim(t, d), sv_bound(t, d)));
      else
        TRY(sv_most_specific_dim(v, d, &s.dims[d], &s.bounds[d], sv_dim(t, d), sv_bound(t, d)));
    }
  }
  return sv_make(v, &s, sv_element_of(sv_in(v, 0)), v->out);
}

/* Operands from `first` on are start indices. */
static int sv_check_start_types(const sv *v, uint32_t first, const char *id) {
  for (uint32_t i = first + 1; i < v->op->n_operands; i++)
    if (!sv_same_element(sv_in(v, i), sv_in(v, first)))
      return sv_fail(v, id, "has start indices of %s and %s; expected one type", SV_SHOW(sv_in(v, first)),
                     SV_SHOW(sv_in(v, i)));
  return 0;
}

/* (operand, start indices...): the result's sizes are the attribute's, all static. Starts are clamped at run time. */
int sv_infer_dynamic_slice(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints sizes = sv_attr_ints(v, "slice_sizes");
  uint32_t starts = v->op->n_operands - 1;
  if (starts != sizes.n || starts != t->rank)
    return sv_fail(v, "dynamic_slice_c2", "has %u start indices and %u slice_sizes for rank %u; expected one each",
                   starts, sizes.n, t->rank);
  if (starts) TRY(sv_check_start_types(v, 1, "dynamic_slice_c3"));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < sizes.n; i++) {
    if (sizes.v[i] < 0 || (sv_dim(t, i) != SV_DYNAMIC && sizes.v[i] > sv_dim(t, i)))
      return sv_fail(v, "dynamic_slice_c4", "has slice size %lld in dimension %u of %s", (long long)sizes.v[i], i,
                     SV_SHOW(t));
    sv_push(&s, sizes.v[i], SV_DYNAMIC);
  }
  return sv_make(v, &s, sv_element_of(t), v->out);
}

/* (operand, update, start indices...) gives the operand's type. */
int sv_infer_dynamic_update_slice(const sv *v) {
  const ir_type *t = sv_in(v, 0), *update = sv_in(v, 1);
  if (update->rank != t->rank)
    return sv_fail(v, "dynamic_update_slice_c3", "has an update of rank %u for an operand of rank %u", update->rank,
                   t->rank);
  if (v->op->n_operands - 2 != t->rank)
    return sv_fail(v, "dynamic_update_slice_c4", "has %u start indices; expected %u", v->op->n_operands - 2, t->rank);
  if (t->rank) TRY(sv_check_start_types(v, 2, "dynamic_update_slice_c5"));
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t size = sv_dim(update, i), limit = sv_dim(t, i);
    if (size != SV_DYNAMIC && limit != SV_DYNAMIC && size > limit)
      return sv_fail(v, "dynamic_update_slice_c6", "has an update of size %lld in dimension %u; expected at most %lld",
                     (long long)size, i, (long long)limit);
  }
  v->out[0] = t;
  return 0;
}

/* The operand has the dimension that the attribute names. */
static int sv_check_dimension(const sv *v, const char *id) {
  int64_t d = ir_m_get_int(v->op, "dimension", 0);
  if (d >= 0 && d < sv_in(v, 0)->rank) return 0;
  return sv_fail(v, id, "has dimension = %lld; expected one in [0, %u)", (long long)d, sv_in(v, 0)->rank);
}

int sv_infer_get_dimension_size(const sv *v) {
  TRY(sv_check_dimension(v, "get_dimension_size_c1"));
  v->out[0] = ir_scalar(v->m, XLAC_S32);
  return v->out[0] ? 0 : sv_oom(v);
}

/* The dimension becomes dynamic with its size as bound; a constant that is that very size leaves it static. */
int sv_infer_set_dimension_size(const sv *v) {
  if (!sv_is_scalar_of(sv_in(v, 1), XLAC_S32))
    return sv_fail(v, NULL, "has size of %s; expected tensor<i32>", SV_SHOW(sv_in(v, 1)));
  TRY(sv_check_dimension(v, NULL));
  uint32_t d = (uint32_t)ir_m_get_int(v->op, "dimension", 0);
  sv_shape s;
  sv_shape_of(sv_in(v, 0), &s);
  if (s.dims[d] != SV_DYNAMIC) s.bounds[d] = s.dims[d];
  s.dims[d] = SV_DYNAMIC;
  sv_ints size;
  if (sv_constant_ints(v, 1, &size) && size.n == 1 && size.v[0] == s.bounds[d]) s.dims[d] = size.v[0];
  return sv_make(v, &s, sv_element_of(sv_in(v, 0)), v->out);
}

/* size + low + high + (size - 1) * interior, checked for overflow; edges may be negative. */
static int sv_pad_size(const sv *v, int64_t size, int64_t low, int64_t high, int64_t interior, uint32_t i,
                       int64_t *out) {
  int64_t gaps = 0, sum = 0;
  bool ok = base_mul_i64(size > 0 ? size - 1 : 0, interior, &gaps) && base_add_i64(size, gaps, &sum) &&
            base_add_i64(sum, low, &sum) && base_add_i64(sum, high, out);
  if (!ok) return sv_fail_code(v, XLAC_E_TOO_LARGE, "pad_c4", "gives a dimension beyond 63 bits");
  if (*out < 0) return sv_fail(v, "pad_c4", "gives dimension %u the negative size %lld", i, (long long)*out);
  return 0;
}

/* pad_c2, c3 and c4. Of a bounded dimension the bound is padded. */
int sv_infer_pad(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints low = sv_attr_ints(v, "edge_padding_low"), high = sv_attr_ints(v, "edge_padding_high"),
          interior = sv_attr_ints(v, "interior_padding");
  if (low.n != t->rank || high.n != t->rank || interior.n != t->rank)
    return sv_fail(v, "pad_c2", "has %u, %u and %u paddings low, high and interior; expected %u, the operand's rank",
                   low.n, high.n, interior.n, t->rank);
  sv_shape s;
  sv_shape_of(t, &s);
  for (uint32_t i = 0; i < t->rank; i++) {
    if (interior.v[i] < 0)
      return sv_fail(v, "pad_c3", "has interior padding %lld; expected none below 0", (long long)interior.v[i]);
    int64_t *size = s.dims[i] != SV_DYNAMIC ? &s.dims[i] : &s.bounds[i];
    if (*size != SV_DYNAMIC) TRY(sv_pad_size(v, *size, low.v[i], high.v[i], interior.v[i], i, size));
  }
  return sv_make(v, &s, sv_element_of(t), v->out);
}

/* 0 <= start <= limit <= size (or bound), and a positive stride. */
static int sv_check_slice(const sv *v, uint32_t i, int64_t start, int64_t limit, int64_t stride) {
  const ir_type *t = sv_in(v, 0);
  int64_t size = sv_dim(t, i) != SV_DYNAMIC ? sv_dim(t, i) : sv_bound(t, i);
  if (start < 0) return sv_fail(v, "slice_c3", "starts at %lld in dimension %u", (long long)start, i);
  if (size != SV_DYNAMIC && limit > size)
    return sv_fail(v, "slice_c3", "has limit %lld in dimension %u; expected at most %lld", (long long)limit, i,
                   (long long)size);
  if (start > limit)
    return sv_fail(v, "slice_c3", "starts at %lld, beyond the limit %lld, in dimension %u", (long long)start,
                   (long long)limit, i);
  if (stride <= 0) return sv_fail(v, "slice_c4", "has stride %lld in dimension %u", (long long)stride, i);
  return 0;
}

/* ceil((limit - start) / stride) for each dimension. */
int sv_infer_slice(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints starts = sv_attr_ints(v, "start_indices"), limits = sv_attr_ints(v, "limit_indices"),
          strides = sv_attr_ints(v, "strides");
  if (starts.n != t->rank || limits.n != t->rank || strides.n != t->rank)
    return sv_fail(v, "slice_c2", "has %u start_indices, %u limit_indices and %u strides; expected %u, the rank",
                   starts.n, limits.n, strides.n, t->rank);
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < t->rank; i++) {
    TRY(sv_check_slice(v, i, starts.v[i], limits.v[i], strides.v[i]));
    int64_t length = limits.v[i] - starts.v[i];
    sv_push(&s, length / strides.v[i] + (length % strides.v[i] != 0), SV_DYNAMIC);
  }
  return sv_make(v, &s, sv_element_of(t), v->out);
}

/* Result dimension i is operand dimension permutation[i], with its bound. */
int sv_infer_transpose(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints permutation = sv_attr_ints(v, "permutation");
  if (permutation.n != t->rank || !sv_is_unique(permutation))
    return sv_fail(v, "transpose_c2", "has permutation = %s; expected one of [0, %u)", SV_SHOW_INTS(permutation),
                   t->rank);
  TRY(sv_check_dims(v, "transpose_c2", "permutation", permutation, t->rank));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < t->rank; i++) sv_push_dim(&s, t, (uint32_t)permutation.v[i]);
  return sv_make(v, &s, sv_element_of(t), v->out);
}

int sv_infer_tuple(const sv *v) {
  uint32_t n = v->op->n_operands;
  const ir_type **types = BASE_ARRAY(v->arena, const ir_type *, n + 1u);
  if (!types) return sv_oom(v);
  for (uint32_t i = 0; i < n; i++) types[i] = sv_in(v, i);
  v->out[0] = ir_tuple(v->m, n, types);
  return v->out[0] ? 0 : sv_oom(v);
}

/* The rule's set has seen to it that the operand is a tuple. */
int sv_infer_get_tuple_element(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  int64_t i = ir_m_get_int(v->op, "index", 0);
  if (i < 0 || i >= t->n_elements)
    return sv_fail(v, "get_tuple_element_c1", "has index = %lld; expected one in [0, %u)", (long long)i, t->n_elements);
  v->out[0] = t->elements[i];
  return 0;
}
