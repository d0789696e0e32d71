/* Ops whose result type is declared: reshapes, broadcasts, bit casts, iota, dynamic pad and slice. Nothing is
 * inferred, so the declared type is held against operands, attributes, and shape operands where these are constants. */
#include "verify.h"

/* tensor<4xf32> to tensor<4x4xi8> or back: the narrower elements have a last dimension of the ratio of widths. */
int sv_verify_bitcast_convert(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  bool complex_a = !a->quant && base_dtype_is_complex((base_dtype)a->dtype);
  bool complex_b = !b->quant && base_dtype_is_complex((base_dtype)b->dtype);
  if (complex_a != complex_b)
    return sv_fail(v, "bitcast_convert_c2", "has %s and %s; expected both complex or neither", SV_SHOW(a), SV_SHOW(b));
  int64_t bits_a = sv_element_bits(a), bits_b = sv_element_bits(b);
  const ir_type *small = bits_a < bits_b ? a : b, *big = bits_a < bits_b ? b : a;
  uint32_t extra = bits_a != bits_b;
  if (small->rank != big->rank + extra)
    return sv_fail(v, "bitcast_convert_c1", "has %s and %s; expected the narrower elements in %u more dimensions",
                   SV_SHOW(a), SV_SHOW(b), extra);
  for (uint32_t i = 0; i < big->rank; i++)
    if (!sv_dims_fit(sv_dim(small, i), sv_dim(big, i)))
      return sv_fail(v, "bitcast_convert_c1", "has %s and %s; expected the same sizes in dimension %u", SV_SHOW(a),
                     SV_SHOW(b), i);
  int64_t last = extra ? sv_dim(small, small->rank - 1) : SV_DYNAMIC;
  if (last == SV_DYNAMIC || last == sv_element_bits(big) / sv_element_bits(small)) return 0;
  return sv_fail(v, "bitcast_convert_c1", "has %s and %s; expected as many bits in both", SV_SHOW(a), SV_SHOW(b));
}

/* iota_c1. */
int sv_verify_iota(const sv *v) {
  const ir_type *t = sv_result(v, 0);
  int64_t d = ir_m_get_int(v->op, "iota_dimension", 0);
  if (t->rank == 0) return sv_fail(v, "iota_c1", "has a scalar result; expected rank 1 or more");
  if (d >= t->rank)
    return sv_fail(v, "iota_c1", "has dim = %lld; expected one below the rank %u", (long long)d, t->rank);
  return 0;
}

/* A shape operand that is known agrees with the result. */
static int sv_check_shape_operand(const sv *v, uint32_t i, const char *id) {
  const ir_type *t = sv_result(v, 0);
  sv_ints sizes;
  if (!sv_constant_ints(v, i, &sizes)) return 0;
  bool fits = sizes.n == t->rank;
  for (uint32_t d = 0; fits && d < t->rank; d++) {
    int64_t bound = sv_bound(t, d);
    fits = sizes.v[d] >= 0 && sv_dims_fit(sizes.v[d], sv_dim(t, d)) && (bound == SV_DYNAMIC || sizes.v[d] <= bound);
  }
  if (fits) return 0;
  return sv_fail(v, id, "has the output shape %s, but a result of %s", SV_SHOW_INTS(sizes), SV_SHOW(t));
}

/* The rank is known from the result; sizes only at run time. */
int sv_verify_dynamic_iota(const sv *v) {
  int64_t d = ir_m_get_int(v->op, "iota_dimension", 0);
  if (d >= sv_result(v, 0)->rank)
    return sv_fail(v, "dynamic_iota_c1", "has dim = %lld; expected one below the rank %u", (long long)d,
                   sv_result(v, 0)->rank);
  return sv_check_shape_operand(v, 0, "dynamic_iota_c2");
}

/* The new state is like the old one. */
int sv_verify_rng_bit_generator(const sv *v) {
  if (sv_shapes_fit(sv_in(v, 0), sv_result(v, 0)) && sv_same_element(sv_in(v, 0), sv_result(v, 0))) return 0;
  return sv_fail(v, "rng_bit_generator_c1", "has a state of %s but gives one of %s; expected the same",
                 SV_SHOW(sv_in(v, 0)), SV_SHOW(sv_result(v, 0)));
}

/* --- broadcasts --- */

/* broadcast_in_dim_c2, c3, c4. */
static int sv_check_broadcast_dims(const sv *v, sv_ints dims) {
  const ir_type *t = sv_in(v, 0), *result = sv_result(v, 0);
  if (dims.n != t->rank)
    return sv_fail(v, "broadcast_in_dim_c2", "has %u broadcast_dimensions; expected %u, the operand's rank", dims.n,
                   t->rank);
  if (!sv_is_unique(dims))
    return sv_fail(v, "broadcast_in_dim_c4", "has broadcast_dimensions = %s; expected no repetition",
                   SV_SHOW_INTS(dims));
  return sv_check_dims(v, "broadcast_in_dim_c3", "broadcast_dimensions", dims, result->rank);
}

/* Operand dimension i goes to result dimension broadcast_dimensions[i], where its size is 1 or the same. */
int sv_verify_broadcast_in_dim(const sv *v) {
  const ir_type *t = sv_in(v, 0), *result = sv_result(v, 0);
  sv_ints dims = sv_attr_ints(v, "broadcast_dimensions");
  if (sv_is_quant_tensor(t)) TRY(sv_check_same_scales(v, "broadcast_in_dim_c1", t, result));
  TRY(sv_check_broadcast_dims(v, dims));
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t size = sv_dim(t, i), to = sv_dim(result, (uint32_t)dims.v[i]);
    if (size != SV_DYNAMIC && size != 1 && size != to)
      return sv_fail(v, "broadcast_in_dim_c5",
                     "has %s for dimension %u; its size is expected to be 1 or that of dimension %lld of %s",
                     SV_SHOW(t), i, (long long)dims.v[i], SV_SHOW(result));
  }
  return sv_check_broadcast_quant(v, dims);
}

/* What the program promises about sizes that are not known yet; a dimension can't be both. */
static int sv_check_expansion_hints(const sv *v) {
  sv_ints yes = sv_attr_ints(v, "known_expanding_dimensions"), no = sv_attr_ints(v, "known_nonexpanding_dimensions");
  TRY(sv_check_distinct(v, "dynamic_broadcast_in_dim_c8", "known_expanding_dimensions", yes,
                        "known_nonexpanding_dimensions", no));
  TRY(sv_check_dims(v, "dynamic_broadcast_in_dim_c9", "known_expanding_dimensions", yes, sv_in(v, 0)->rank));
  return sv_check_dims(v, "dynamic_broadcast_in_dim_c10", "known_nonexpanding_dimensions", no, sv_in(v, 0)->rank);
}

/* A constant output shape can be compared now rather than at run time. */
static int sv_check_known_broadcast(const sv *v, sv_ints dims) {
  const ir_type *t = sv_in(v, 0);
  sv_ints sizes;
  if (t->has_dynamic || !sv_constant_ints(v, 1, &sizes)) return 0;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dims[i] != 1 && (dims.v[i] >= sizes.n || t->dims[i] != sizes.v[dims.v[i]]))
      return sv_fail(v, "dynamic_broadcast_in_dim_c5",
                     "has size %lld in dimension %u, which the output shape %s does not have", (long long)t->dims[i], i,
                     SV_SHOW_INTS(sizes));
  return 0;
}

/* Sizes that are dynamic on one side are compared at run time. */
int sv_verify_dynamic_broadcast_in_dim(const sv *v) {
  const ir_type *t = sv_in(v, 0), *result = sv_result(v, 0);
  sv_ints dims = sv_attr_ints(v, "broadcast_dimensions");
  if (!t->quant && !result->quant && !sv_elements_fit(t, result))
    return sv_fail(v, "dynamic_broadcast_in_dim_c1", "has %s and %s; expected one element type", SV_SHOW(t),
                   SV_SHOW(result));
  TRY(sv_check_broadcast_dims(v, dims));
  if (result->rank < t->rank)
    return sv_fail(v, "dynamic_broadcast_in_dim_c3", "has a result of rank %u for an operand of rank %u", result->rank,
                   t->rank);
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t size = sv_dim(t, i), to = sv_dim(result, (uint32_t)dims.v[i]);
    if (size != 1 && !sv_dims_fit(size, to))
      return sv_fail(v, "dynamic_broadcast_in_dim_c5", "has size %lld in dimension %u, but %lld in the result",
                     (long long)size, i, (long long)to);
  }
  TRY(sv_check_shape_operand(v, 1, "dynamic_broadcast_in_dim_c7"));
  TRY(sv_check_expansion_hints(v));
  TRY(sv_check_known_broadcast(v, dims));
  return sv_check_broadcast_quant(v, dims);
}

/* --- reshapes --- */

/* Only between static types. */
static int sv_check_element_counts(const sv *v, const char *id) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  if (a->has_dynamic || b->has_dynamic || a->count == b->count) return 0;
  return sv_fail(v, id, "has %lld elements in %s, but %lld in %s", (long long)a->count, SV_SHOW(a), (long long)b->count,
                 SV_SHOW(b));
}

/* reshape_c2 and c3. With dynamic sizes nothing can be compared yet. */
int sv_verify_reshape(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  if (a->has_dynamic || b->has_dynamic) return 0;
  TRY(sv_check_element_counts(v, "reshape_c2"));
  return a->quant || b->quant ? sv_check_reshape_quant(v) : 0;
}

/* A product that overflows is not a count of elements. */
static int sv_check_known_reshape(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_ints sizes;
  int64_t n = 1;
  if (t->has_dynamic || !sv_constant_ints(v, 1, &sizes)) return 0;
  for (uint32_t i = 0; i < sizes.n; i++)
    if (!base_mul_i64(n, sizes.v[i], &n)) n = -1;
  if (n == t->count) return 0;
  return sv_fail(v, "dynamic_reshape_c2", "has %lld elements, but the output shape %s has %lld", (long long)t->count,
                 SV_SHOW_INTS(sizes), (long long)n);
}

/* Operand 1 is the output shape, of one number for each dimension. */
int sv_verify_dynamic_reshape(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  if (!a->quant && !b->quant && !sv_elements_fit(a, b))
    return sv_fail(v, "dynamic_reshape_c1", "has %s and %s; expected one element type", SV_SHOW(a), SV_SHOW(b));
  TRY(sv_check_element_counts(v, "dynamic_reshape_c2"));
  TRY(sv_check_shape_operand(v, 1, "dynamic_reshape_c4"));
  if (sv_dim(sv_in(v, 1), 0) != b->rank)
    return sv_fail(v, "dynamic_reshape_c4", "has an output shape of %s for a result of rank %u", SV_SHOW(sv_in(v, 1)),
                   b->rank);
  TRY(sv_check_known_reshape(v));
  return a->quant || b->quant ? sv_check_reshape_quant(v) : 0;
}

/* reverse_c2 and c3. */
int sv_verify_reverse(const sv *v) {
  sv_ints dims = sv_attr_ints(v, "dimensions");
  if (!sv_is_unique(dims)) return sv_fail(v, "reverse_c2", "has dims = %s; expected no repetition", SV_SHOW_INTS(dims));
  return sv_check_dims(v, "reverse_c3", "dims", dims, sv_in(v, 0)->rank);
}

/* Inference has checked the permutation; this is about scales. */
int sv_verify_transpose(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  sv_ints permutation = sv_attr_ints(v, "permutation");
  TRY(sv_check_same_scales(v, "transpose_c1", a, b));
  if (!sv_is_quant_axis(a) || !sv_is_quant_axis(b) || a->quant->axis == permutation.v[b->quant->axis]) return 0;
  return sv_fail(v, "transpose_c4", "has a result quantised along dimension %d; expected the one that %d went to",
                 b->quant->axis, a->quant->axis);
}

/* --- dynamic slices and pads --- */

/* (operand, starts, limits, strides), each a vector of as many numbers as the operand has dimensions. */
int sv_verify_real_dynamic_slice(const sv *v) {
  uint32_t rank = sv_in(v, 0)->rank;
  for (uint32_t i = 1; i < 4; i++) {
    if (sv_in(v, i)->bare != sv_in(v, 1)->bare)
      return sv_fail(v, NULL, "has indices of %s and %s; expected one type", SV_SHOW(sv_in(v, 1)),
                     SV_SHOW(sv_in(v, i)));
    if (sv_dim(sv_in(v, i), 0) != rank)
      return sv_fail(v, NULL, "has operand %u of %s; expected %u numbers", i, SV_SHOW(sv_in(v, i)), rank);
  }
  return 0;
}

/* With constant paddings the sizes are those of pad. */
static int sv_check_known_pad(const sv *v) {
  const ir_type *t = sv_in(v, 0), *result = sv_result(v, 0);
  sv_ints low, high, interior;
  if (!sv_constant_ints(v, 4, &interior)) return 0;
  for (uint32_t i = 0; i < interior.n; i++)
    if (interior.v[i] < 0)
      return sv_fail(v, "dynamic_pad_c3", "has interior padding %s; expected none below 0", SV_SHOW_INTS(interior));
  if (t->has_dynamic || result->has_dynamic || !sv_constant_ints(v, 2, &low) || !sv_constant_ints(v, 3, &high))
    return 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t gaps = 0, size = t->dims[i];
    bool ok = base_mul_i64(size > 0 ? size - 1 : 0, interior.v[i], &gaps) && base_add_i64(size, gaps, &size) &&
              base_add_i64(size, low.v[i], &size) && base_add_i64(size, high.v[i], &size);
    if (!ok || size != result->dims[i])
      return sv_fail(v, "dynamic_pad_c4", "gives %lld in dimension %u, but the result has %lld", (long long)size, i,
                     (long long)result->dims[i]);
  }
  return 0;
}

/* (operand, padding value, low, high, interior). */
int sv_verify_dynamic_pad(const sv *v) {
  const ir_type *t = sv_in(v, 0), *low = sv_in(v, 2);
  if (sv_result(v, 0)->rank != t->rank)
    return sv_fail(v, "dynamic_pad_c4", "has a result of rank %u for an operand of rank %u", sv_result(v, 0)->rank,
                   t->rank);
  if (low->bare != sv_in(v, 3)->bare || low->bare != sv_in(v, 4)->bare)
    return sv_fail(v, "dynamic_pad_c2", "has paddings of %s, %s and %s; expected one type", SV_SHOW(low),
                   SV_SHOW(sv_in(v, 3)), SV_SHOW(sv_in(v, 4)));
  if (low->dims[0] != t->rank)
    return sv_fail(v, "dynamic_pad_c2", "has paddings of %s; expected %u numbers", SV_SHOW(low), t->rank);
  return sv_check_known_pad(v);
}
