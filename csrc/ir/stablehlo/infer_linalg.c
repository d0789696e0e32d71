/* Linear algebra, FFT, batch normalisation, top_k, map, sort, scan: types, and their other rules; and
 * result_accuracy, which unary functions have. */
#include "verify.h"

/* Batches of square matrices. */
int sv_infer_cholesky(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  if (t->rank < 2) return sv_fail(v, "cholesky_c2", "has an operand of rank %u; expected 2 or more", t->rank);
  if (!sv_dims_fit(sv_dim(t, t->rank - 2), sv_dim(t, t->rank - 1)))
    return sv_fail(v, "cholesky_c3", "has an operand of %s; expected square matrices", SV_SHOW(t));
  v->out[0] = t;
  return 0;
}

/* op(a) x = b, or x op(a) = b when left_side is false. */
int sv_infer_triangular_solve(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_in(v, 1);
  if (a->rank < 2 || a->rank != b->rank)
    return sv_fail(v, "triangular_solve_c2", "has operands of %s and %s; expected one rank of 2 or more", SV_SHOW(a),
                   SV_SHOW(b));
  if (!sv_dims_fit(sv_dim(a, a->rank - 2), sv_dim(a, a->rank - 1)))
    return sv_fail(v, "triangular_solve_c3", "has a of %s; expected square matrices", SV_SHOW(a));
  bool left = ir_m_get_bool(v->op, "left_side");
  bool fits = sv_dims_fit(sv_dim(a, a->rank - 1), sv_dim(b, b->rank - (left ? 2 : 1)));
  for (uint32_t i = 0; fits && i + 2 < a->rank; i++) fits = sv_dims_fit(sv_dim(a, i), sv_dim(b, i));
  if (!fits)
    return sv_fail(v, "triangular_solve_c3", "has operands of %s and %s, which don't fit", SV_SHOW(a), SV_SHOW(b));
  if (ir_m_get_word(v->op, "transpose_a") == IR_TRANSPOSE_INVALID)
    return sv_fail(v, NULL, "has transpose_a = TRANSPOSE_INVALID");
  v->out[0] = b;
  return 0;
}

/* --- fft --- */

/* fft_c1, c2, c3, c5. RFFT's operand is real and has the lengths themselves; IRFFT's has them but for the last, which
 * is halved; for FFT and IFFT upstream does not compare. */
static int sv_check_fft(const sv *v, ir_fft kind, sv_ints length) {
  const ir_type *t = sv_in(v, 0);
  bool real = kind == IR_FFT_RFFT;
  if (length.n < 1 || length.n > 3)
    return sv_fail(v, "fft_c3", "has %u numbers in fft_length; expected 1 to 3", length.n);
  if (real ? !sv_element_is(t, XLAC_F32) && !sv_element_is(t, XLAC_F64) : !base_dtype_is_complex((base_dtype)t->dtype))
    return sv_fail(v, "fft_c2", "has type %s and an operand of %s; expected %s", IR_MLIR_WORDS(FFT)[kind], SV_SHOW(t),
                   real ? "f32 or f64" : "complex numbers");
  if (t->rank < length.n)
    return sv_fail(v, "fft_c1", "has %u numbers in fft_length for an operand of rank %u", length.n, t->rank);
  uint32_t first = t->rank - length.n, checked = real ? length.n : kind == IR_FFT_IRFFT ? length.n - 1 : 0;
  for (uint32_t i = 0; i < checked; i++)
    if (!sv_dims_fit(sv_dim(t, first + i), length.v[i]))
      return sv_fail(v, "fft_c5", "has fft_length = %s, which does not fit %s", SV_SHOW_INTS(length), SV_SHOW(t));
  return 0;
}

/* RFFT halves the last dimension to length / 2 + 1 and makes complex numbers; IRFFT is the way back. */
int sv_infer_fft(const sv *v) {
  const ir_fft kind = (ir_fft)ir_m_get_word(v->op, "fft_type");
  const ir_type *t = sv_in(v, 0);
  sv_ints length = sv_attr_ints(v, "fft_length");
  TRY(sv_check_fft(v, kind, length));
  sv_shape s;
  sv_shape_of(t, &s);
  int64_t last = length.v[length.n - 1], *dim = &s.dims[s.rank - 1];
  sv_element e = sv_element_of(t);
  if (last < 0) return sv_fail(v, "fft_c5", "has fft_length = %s; expected none below 0", SV_SHOW_INTS(length));
  if (kind == IR_FFT_RFFT) {
    e.dtype = t->dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64;
    if (last != 0) *dim = last / 2 + 1;
  } else if (kind == IR_FFT_IRFFT) {
    e.dtype = base_dtype_real_part(e.dtype);
    bool fits = (last == 0 && sv_dims_fit(*dim, 0)) || sv_dims_fit(*dim, last / 2 + 1);
    if (!fits)
      return sv_fail(v, "fft_c6", "has fft_length = %s, which does not fit %s", SV_SHOW_INTS(length), SV_SHOW(t));
    *dim = last;
  }
  return sv_make(v, &s, e, v->out);
}

/* --- batch normalisation --- */

/* All vectors have one entry for each feature; grad_output, operand 4 of batch_norm_grad, has the operand's shape. */
static int sv_check_batch_norm(const sv *v, const char *id) {
  const ir_type *t = sv_in(v, 0);
  int64_t feature = ir_m_get_int(v->op, "feature_index", 0);
  if (feature >= t->rank)
    return sv_fail(v, id, "has feature_index = %lld; expected one below the rank %u", (long long)feature, t->rank);
  for (uint32_t i = 1; i < v->op->n_operands; i++) {
    const ir_type *x = sv_in(v, i);
    bool wide = v->op->opcode == IR_OP_BATCH_NORM_GRAD && i == 4;
    if (wide ? !sv_shapes_fit(t, x) : !sv_dims_fit(sv_dim(x, 0), sv_dim(t, (uint32_t)feature)))
      return sv_fail(v, id, "has operand %u of %s, which does not fit %s", i, SV_SHOW(x), SV_SHOW(t));
    if (!wide && !sv_shapes_fit(sv_in(v, 1), x))
      return sv_fail(v, id, "has operands of %s and %s; expected one shape", SV_SHOW(sv_in(v, 1)), SV_SHOW(x));
  }
  return 0;
}

int sv_infer_batch_norm_inference(const sv *v) {
  TRY(sv_check_batch_norm(v, "batch_norm_inference_c1"));
  v->out[0] = sv_in(v, 0);
  return 0;
}

/* Training gives (normalised, mean, variance), grad (operand, scale, offset): in both the second and third are
 * vectors. */
int sv_infer_batch_norm(const sv *v) {
  bool grad = v->op->opcode == IR_OP_BATCH_NORM_GRAD;
  TRY(sv_check_batch_norm(v, grad ? "batch_norm_grad_c1" : "batch_norm_training_c1"));
  const ir_type *t = sv_in(v, 0);
  sv_shape s = {.rank = 0};
  sv_push_dim(&s, t, (uint32_t)ir_m_get_int(v->op, "feature_index", 0));
  v->out[0] = t;
  TRY(sv_make(v, &s, sv_element_of(t), &v->out[1]));
  v->out[2] = v->out[1];
  return 0;
}

/* --- top_k, map, sort --- */

/* chlo.top_k: (values, i32 indices), k instead of the last dimension. */
int sv_infer_topk(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  int64_t k = ir_m_get_int(v->op, "k", 0);
  if (t->kind == IR_TYPE_UNRANKED) {
    v->out[0] = t;
    return sv_like(v, t, sv_plain(XLAC_S32), &v->out[1]);
  }
  if (t->rank < 1) return sv_fail(v, NULL, "has a scalar operand; expected rank 1 or more");
  int64_t last = sv_dim(t, t->rank - 1);
  if (k < 0 || (last != SV_DYNAMIC && last < k))
    return sv_fail(v, NULL, "has k = %lld; expected at most the last dimension, %lld", (long long)k, (long long)last);
  sv_shape s;
  sv_shape_of(t, &s);
  s.dims[s.rank - 1] = k;
  TRY(sv_make(v, &s, sv_element_of(t), &v->out[0]));
  return sv_make(v, &s, sv_plain(XLAC_S32), &v->out[1]);
}

/* map_c4: scalars of the operands' elements to one scalar. */
static int sv_check_map_region(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  if (c->declaration || c->n_params != v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "map_c4", "has a computation of %u parameters; expected %u",
                        c->n_params, v->op->n_operands);
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_type *arg = sv_arg(c, i);
    if (!ir_is_scalar(arg) || !sv_same_element(arg, sv_in(v, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "map_c4",
                          "has a computation whose parameter %u is %s; expected a scalar of %s's elements", i,
                          SV_SHOW(arg), SV_SHOW(sv_in(v, i)));
  }
  if (c->n_results != 1 || !ir_is_scalar(sv_returned(c, 0)))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "map_c4", "has a computation that returns %u values, not one scalar",
                        c->n_results);
  return 0;
}

/* map_c3: `dimensions` must list all of them. */
int sv_infer_map(const sv *v) {
  sv_ints dims = sv_attr_ints(v, "dimensions");
  TRY(sv_check_map_region(v));
  for (uint32_t i = 0; i < dims.n; i++)
    if (dims.v[i] != i) return sv_fail(v, "map_c3", "has dimensions = %s; expected 0, 1, 2, ...", SV_SHOW_INTS(dims));
  if (v->op->n_operands == 0) return sv_fail(v, NULL, "has no operands; expected at least one");
  for (uint32_t i = 0; i < v->op->n_operands; i++)
    if (sv_in(v, i)->rank != dims.n)
      return sv_fail(v, "map_c3", "has %u dimensions for an operand of %s; expected all of them", dims.n,
                     SV_SHOW(sv_in(v, i)));
  return sv_like(v, sv_in(v, 0), sv_element_of(sv_returned(sv_region(v, 0), 0)), v->out);
}

/* sort_c5: (a0, b0, a1, b1, ...) -> i1. */
static int sv_check_comparator(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  if (c->n_params != 2 * v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "sort_c5", "has a comparator of %u parameters; expected %u",
                        c->n_params, 2 * v->op->n_operands);
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_type *arg = sv_arg(c, i);
    if (!ir_is_scalar(arg) || !sv_same_element(arg, sv_in(v, i / 2)))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "sort_c5",
                          "has a comparator whose parameter %u is %s; expected a scalar of %s's elements", i,
                          SV_SHOW(arg), SV_SHOW(sv_in(v, i / 2)));
  }
  if (c->n_results != 1 || !sv_is_scalar_of(sv_returned(c, 0), XLAC_PRED))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "sort_c5",
                        "has a comparator that returns %u values, not one tensor<i1>", c->n_results);
  return 0;
}

/* sort_c4: negative dimensions count from the end. */
int sv_verify_sort(const sv *v) {
  int64_t d = ir_m_get_int(v->op, "dimension", -1), rank = v->op->n_operands ? sv_in(v, 0)->rank : 0;
  if (d < -rank || d >= rank)
    return sv_fail(v, "sort_c4", "has dimension = %lld; expected one in [-%lld, %lld)", (long long)d, (long long)rank,
                   (long long)rank);
  return sv_check_comparator(v);
}

/* --- scan --- */

/* Operands are inputs, then initial carries; the attribute operandSegmentSizes tells how many of each. */
static int sv_scan_inputs(const sv *v, uint32_t *inputs, uint32_t *carries) {
  assert(inputs && carries);
  sv_ints sizes = sv_attr_ints(v, "operandSegmentSizes");
  if (sizes.n == 2 && sizes.v[0] >= 0 && sizes.v[1] >= 0 && sizes.v[0] <= v->op->n_operands &&
      sizes.v[1] == v->op->n_operands - sizes.v[0]) {
    *inputs = (uint32_t)sizes.v[0];
    *carries = (uint32_t)sizes.v[1];
    return 0;
  }
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has no operandSegmentSizes that fit its %u operands",
                      v->op->n_operands);
}

/* What scan_dim_size says, or the first input whose size is known; all inputs must agree. */
static int sv_scan_size(const sv *v, uint32_t inputs, int64_t *size) {
  int64_t d = ir_m_get_int(v->op, "dimension", 0);
  *size = ir_m_get_int(v->op, "scan_dim_size", SV_DYNAMIC);
  for (uint32_t i = 0; i < inputs; i++) {
    const ir_type *t = sv_in(v, i);
    if (!ir_is_tensor(t) || d >= t->rank)
      return sv_fail(v, NULL, "has operand %u of %s, which has no dimension %lld to scan", i, SV_SHOW(t), (long long)d);
    if (!sv_dims_fit(sv_dim(t, (uint32_t)d), *size))
      return sv_fail(v, NULL, "has operand %u of %s; expected size %lld in dimension %lld", i, SV_SHOW(t),
                     (long long)*size, (long long)d);
    if (*size == SV_DYNAMIC) *size = sv_dim(t, (uint32_t)d);
  }
  return 0;
}

/* The body's output with the scanned dimension put in. */
static int sv_scan_output(const sv *v, uint32_t i, const ir_type *t, int64_t size) {
  int64_t d = ir_m_get_int(v->op, "dimension", 0);
  if (d > t->rank) return sv_fail(v, NULL, "has no dimension %lld in output %u, %s", (long long)d, i, SV_SHOW(t));
  sv_shape s = {.rank = 0};
  for (uint32_t k = 0; k < t->rank; k++) {
    if (k == d) sv_push(&s, size, SV_DYNAMIC);
    sv_push_dim(&s, t, k);
  }
  if (d == t->rank) sv_push(&s, size, SV_DYNAMIC);
  return sv_make(v, &s, sv_element_of(t), &v->out[i]);
}

/* (outputs..., carries...): stacked outputs, final carries. */
int sv_infer_scan(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  uint32_t inputs, carries;
  int64_t size;
  TRY(sv_scan_inputs(v, &inputs, &carries));
  TRY(sv_scan_size(v, inputs, &size));
  if (c->declaration || c->n_results < carries || c->n_results != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL,
                        "has a body that returns %u values; expected %u, %u of them carries", c->n_results,
                        v->op->n_results, carries);
  for (uint32_t i = 0; i < c->n_results; i++) {
    const ir_type *t = sv_returned(c, i);
    if (!ir_is_tensor(t)) return sv_fail(v, NULL, "has a body that returns %s; expected tensors", SV_SHOW(t));
    if (i >= c->n_results - carries)
      v->out[i] = t;
    else
      TRY(sv_scan_output(v, i, t, size));
  }
  return 0;
}

/* The body takes slices of the inputs, without the scanned dimension, and the carries as they are. */
int sv_verify_scan(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  uint32_t inputs, carries;
  int64_t d = ir_m_get_int(v->op, "dimension", 0);
  TRY(sv_scan_inputs(v, &inputs, &carries));
  if (inputs == 0 && v->op->n_results == carries) return sv_fail(v, NULL, "has neither inputs nor outputs");
  if (c->n_params != v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has a body of %u parameters; expected %u", c->n_params,
                        v->op->n_operands);
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_type *t = sv_in(v, i);
    sv_shape s = {.rank = 0};
    if (!ir_is_tensor(t)) return sv_fail(v, NULL, "has operand %u of %s; expected a ranked tensor", i, SV_SHOW(t));
    for (uint32_t k = 0; k < t->rank; k++)
      if (i >= inputs || k != d) sv_push_dim(&s, t, k);
    const ir_type *expected;
    TRY(sv_make(v, &s, sv_element_of(t), &expected));
    if (!sv_types_fit(expected, sv_arg(c, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has a body whose parameter %u is %s; expected %s", i,
                          SV_SHOW(sv_arg(c, i)), SV_SHOW(expected));
  }
  return 0;
}

/* --- accuracy --- */

/* Negative (sign < 0) or zero (sign 0); an absent field is 0. */
static bool sv_accuracy_is(const ir_mattr *a, const char *field, int sign) {
  const ir_mattr *f = ir_m_field(a, field);
  double x = !f ? 0 : f->kind == IR_M_FLOAT ? f->v.f : f->kind == IR_M_INTEGER ? (double)f->v.i : 0;
  return sign < 0 ? x < 0 : x == 0;
}

/* Tolerances are not negative, and given only with mode TOLERANCE. */
int sv_verify_accuracy(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "result_accuracy");
  if (!a) return 0;
  if (sv_accuracy_is(a, "atol", -1) || sv_accuracy_is(a, "rtol", -1) || sv_accuracy_is(a, "ulps", -1))
    return sv_fail_attr(v, a, NULL, "has a negative tolerance in result_accuracy");
  const ir_mattr *mode = ir_m_field(a, "mode");
  if (!mode || mode->kind != IR_M_ENUM || mode->v.i == IR_ACCURACY_TOLERANCE) return 0;
  if (sv_accuracy_is(a, "atol", 0) && sv_accuracy_is(a, "rtol", 0) && sv_accuracy_is(a, "ulps", 0)) return 0;
  return sv_fail_attr(v, a, NULL, "has tolerances with mode %s in result_accuracy; expected zeros", mode->str->s);
}
