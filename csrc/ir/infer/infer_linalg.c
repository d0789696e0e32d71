/* Inference of cholesky, triangular-solve, fft and the batch-norm ops. */
#include "infer.h"

/* Rank of at least 2 and square in the last two dimensions. */
static int check_matrices(const ir_op *op, const ir_type *a, xlac_error *err) {
  if (a->rank >= 2 && ir_sizes_fit(a->dims[a->rank - 2], a->dims[a->rank - 1])) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes square matrices, but operand 0 is %s",
                   ir_opcode_text(op->opcode), IR_SHOW(a));
}

int ir_infer_cholesky(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  TRY(ir_check_tensor(op, 0, out, err));
  return check_matrices(op, *out, err);
}

static int check_transpose_option(const ir_op *op, xlac_error *err) {
  const char *option = ir_get_str(op, IR_ATTR_TRANSPOSE_A);
  if (!strcmp(option, "NO_TRANSPOSE") || !strcmp(option, "TRANSPOSE") || !strcmp(option, "ADJOINT")) return 0;
  int status =
      base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT, but is %s",
                option[0] ? option : "missing");
  return base_hint(err, status, "XLA has no default for transpose_a");
}

int ir_infer_triangular_solve(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *a, *b;
  TRY(ir_check_tensor(op, 0, &a, err));
  TRY(ir_check_tensor(op, 1, &b, err));
  TRY(check_matrices(op, a, err));
  bool left = ir_get_bool(op, IR_ATTR_LEFT_SIDE, false);
  bool fits = a->dtype == b->dtype && a->rank == b->rank &&
              ir_sizes_fit(a->dims[a->rank - 1], b->dims[b->rank - (left ? 2 : 1)]);
  for (uint32_t i = 0; fits && i + 2 < a->rank; i++) fits = a->dims[i] == b->dims[i];
  if (!fits)
    return base_fail(err, XLAC_E_INFER,
                     "triangular-solve (left_side=%s) can't take %s and %s: element type, batch dimensions and "
                     "the shared dimension must be the same",
                     left ? "true" : "false", IR_SHOW(a), IR_SHOW(b));
  TRY(check_transpose_option(op, err));
  *out = b;
  return 0;
}

/* --- fft --- */

static int fail_fft(const char *type, const ir_type *t, uint32_t dim, int64_t expected, xlac_error *err) {
  return base_fail(err, XLAC_E_INFER, "%s needs size %lld in dimension %u, but the operand is %s", type,
                   (long long)expected, dim, IR_SHOW(t));
}

/* Real to complex: the last dimension shrinks to length/2 + 1. */
static int infer_rfft(ir_module *m, const ir_type *t, const ir_ints *length, const ir_type **out, xlac_error *err) {
  assert(length->n > 0 && length->n <= t->rank);
  if (t->dtype != XLAC_F32 && t->dtype != XLAC_F64)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "RFFT takes f32 or f64, but got %s", IR_SHOW(t));
  ir_dims d;
  ir_dims_of(&d, t);
  for (uint32_t i = 0; i < length->n; i++) {
    uint32_t dim = t->rank - length->n + i;
    if (t->dims[dim] != IR_UNBOUNDED && t->dims[dim] != length->v[i])
      return fail_fft("RFFT", t, dim, length->v[i], err);
  }
  int64_t last = length->v[length->n - 1];
  if (last != 0) {
    d.dynamic[t->rank - 1] = d.dynamic[t->rank - 1] && t->dims[t->rank - 1] != IR_UNBOUNDED;
    d.size[t->rank - 1] = last / 2 + 1;
  }
  return ir_dims_tensor_in(m, t->dtype == XLAC_F32 ? XLAC_C64 : XLAC_C128, &d, t->layout, out, err);
}

/* Complex to real: the last dimension grows from length/2 + 1. */
static int infer_irfft(ir_module *m, const ir_type *t, const ir_ints *length, const ir_type **out, xlac_error *err) {
  assert(length->n > 0 && length->n <= t->rank);
  for (uint32_t i = 0; i + 1 < length->n; i++)
    if (!ir_sizes_fit(t->dims[t->rank - length->n + i], length->v[i]))
      return fail_fft("IRFFT", t, t->rank - length->n + i, length->v[i], err);
  int64_t size = t->dims[t->rank - 1], last = length->v[length->n - 1];
  if ((size != 0 || last != 0) && size != IR_UNBOUNDED && size != last / 2 + 1)
    return fail_fft("IRFFT", t, t->rank - 1, last / 2 + 1, err);
  ir_dims d;
  ir_dims_of(&d, t);
  d.size[t->rank - 1] = last;
  d.dynamic[t->rank - 1] = d.dynamic[t->rank - 1] && size != IR_UNBOUNDED;
  return ir_dims_tensor_in(m, base_dtype_real_part(t->dtype), &d, t->layout, out, err);
}

int ir_infer_fft(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  const ir_ints *length = ir_get_ints(op, IR_ATTR_FFT_LENGTH);
  const char *type = ir_get_str(op, IR_ATTR_FFT_TYPE);
  if (length->n < 1 || length->n > 3 || t->rank < length->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "fft_length must have 1 to 3 entries and no more than the rank of %s, but is %s", IR_SHOW(t),
                     IR_SHOW_INTS(length->n, length->v));
  if (!strcmp(type, "RFFT")) return infer_rfft(m, t, length, out, err);
  bool inverse_real = !strcmp(type, "IRFFT");
  if (!inverse_real && strcmp(type, "FFT") && strcmp(type, "IFFT"))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "fft_type must be FFT, IFFT, RFFT or IRFFT, but is %s", type);
  if (!base_dtype_is_complex(t->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes complex numbers, but got %s", type, IR_SHOW(t));
  *out = t;
  if (inverse_real) return infer_irfft(m, t, length, out, err);
  for (uint32_t i = 0; i < length->n; i++) {
    uint32_t dim = t->rank - length->n + i;
    if (!ir_sizes_fit(t->dims[dim], length->v[i])) return fail_fft(type, t, dim, length->v[i], err);
  }
  return 0;
}

/* --- batch norm --- */

/* Operands first .. first+n-1 are vectors with one entry per feature and the operand's element type. */
static int check_feature_vectors(const ir_op *op, const ir_type *t, int64_t feature, uint32_t first, uint32_t n,
                                 xlac_error *err) {
  for (uint32_t i = first; i < first + n; i++) {
    const ir_type *v;
    TRY(ir_check_tensor(op, i, &v, err));
    if (v->rank != 1 || !ir_sizes_fit(v->dims[0], t->dims[feature]) || !ir_same_dtype_or_float(v->dtype, t->dtype))
      return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                       "operand %u of %s must have one element for each feature of %s (dimension "
                       "%lld), but is %s",
                       i, ir_opcode_text(op->opcode), IR_SHOW(t), (long long)feature, IR_SHOW(v));
  }
  return 0;
}

static int check_batch_norm(const ir_op *op, uint32_t n_vectors, const ir_type **t, int64_t *feature, xlac_error *err) {
  TRY(ir_check_tensor(op, 0, t, err));
  *feature = ir_get_int(op, IR_ATTR_FEATURE_INDEX, -1);
  TRY(ir_check_dim("feature_index", *feature, (*t)->rank, err));
  return check_feature_vectors(op, *t, *feature, 1, n_vectors, err);
}

/* (operand, per feature, per feature) */
static int batch_norm_tuple(ir_module *m, const ir_type *t, int64_t feature, const ir_type **out, xlac_error *err) {
  assert(feature >= 0 && feature < t->rank);
  ir_dims d = {.rank = 0};
  const ir_type *vector;
  TRY(ir_dims_push(&d, t->dims[feature], ir_dim_is_dynamic(t, (uint32_t)feature), err));
  TRY(ir_dims_tensor(m, t->dtype, &d, &vector, err));
  const ir_type *elements[3] = {t, vector, vector};
  return ir_infer_tuple_of(m, 3, elements, out, err);
}

int ir_infer_batch_norm_training(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  int64_t feature;
  TRY(check_batch_norm(op, 2, &t, &feature, err));
  return batch_norm_tuple(m, t, feature, out, err);
}

int ir_infer_batch_norm_inference(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  int64_t feature;
  return check_batch_norm(op, 4, out, &feature, err);
}

int ir_infer_batch_norm_grad(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t, *grad;
  int64_t feature;
  TRY(check_batch_norm(op, 3, &t, &feature, err));
  TRY(ir_check_tensor(op, 4, &grad, err));
  if (!ir_same_dims(t, grad) || !ir_same_dtype_or_float(t->dtype, grad->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "grad_output of batch-norm-grad must be like the operand %s, but is %s", IR_SHOW(t),
                     IR_SHOW(grad));
  return batch_norm_tuple(m, t, feature, out, err);
}
