/* Inference of contractions (dot, scaled-dot, ragged-dot) and of linear algebra (cholesky, triangular-solve, fft,
 * batch norm).
 *
 * The element type of a contraction is the more precise operand's; a module may declare any other (XLA's
 * preferred_element_type), which is the verifier's affair. dot of f32[5,2,3] and f32[5,3,4] with batch dimension 0
 * and contracting dimensions 2 and 1 is f32[5,2,4]: batch, free dimensions of lhs, free dimensions of rhs. */
#include "../../base/plural.h"
#include "infer.h"

typedef struct dot_dims {
  const ir_ints *lhs_batch, *rhs_batch, *lhs_contracting, *rhs_contracting;
} dot_dims;

/* Absent lists are empty, so a dot without any is an outer product. */
static dot_dims dot_dims_of(const ir_op *op) {
  return (dot_dims){ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS),
                    ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS), ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS)};
}

/* Dimensions a of lhs and b of rhs come in pairs of fitting sizes. Lists are in range: check_dot_dims has seen to
 * that before. */
static int check_dot_pairs(const char *what, const ir_type *lhs, const ir_type *rhs, const ir_ints *a, const ir_ints *b,
                           xlac_error *err) {
  if (a->n != b->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "lhs has %u %s dimensions, but rhs has %u", a->n, what, b->n);
  for (uint32_t i = 0; i < a->n; i++)
    if (!ir_sizes_fit(lhs->dims[a->v[i]], rhs->dims[b->v[i]]))
      return base_fail(err, XLAC_E_INFER, "%s dimension %lld of %s and %lld of %s differ in size", what,
                       (long long)a->v[i], IR_SHOW(lhs), (long long)b->v[i], IR_SHOW(rhs));
  return 0;
}

/* Contracting and batch dimensions of one side are disjoint. */
static int check_dot_dims(const ir_type *lhs, const ir_type *rhs, dot_dims n, xlac_error *err) {
  TRY(ir_check_dims_set("lhs_contracting_dims and lhs_batch_dims", n.lhs_contracting, n.lhs_batch, lhs->rank, err));
  TRY(ir_check_dims_set("rhs_contracting_dims and rhs_batch_dims", n.rhs_contracting, n.rhs_batch, rhs->rank, err));
  TRY(check_dot_pairs("contracting", lhs, rhs, n.lhs_contracting, n.rhs_contracting, err));
  return check_dot_pairs("batch", lhs, rhs, n.lhs_batch, n.rhs_batch, err);
}

/* Dimensions of t in neither list (nor the third, if given) go to d in their order. */
static int push_free_dims(ir_dims *d, const ir_type *t, const ir_ints *a, const ir_ints *b, const ir_ints *c,
                          xlac_error *err) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (!ir_ints_has(a, i) && !ir_ints_has(b, i) && !(c && ir_ints_has(c, i)))
      TRY(ir_dims_push(d, t->dims[i], ir_dim_is_dynamic(t, i), err));
  return 0;
}

/* Batch, free lhs, free rhs dimensions, after what d holds already. */
static int finish_dot(ir_module *m, const ir_type *lhs, const ir_type *rhs, dot_dims n, const ir_ints *groups,
                      ir_dims *d, const ir_type **out, xlac_error *err) {
  assert(d && d->rank <= 1);
  for (uint32_t i = 0; i < n.lhs_batch->n; i++) {
    uint32_t dim = (uint32_t)n.lhs_batch->v[i];
    assert(dim < lhs->rank);
    TRY(ir_dims_push(d, lhs->dims[dim], ir_dim_is_dynamic(lhs, dim), err));
  }
  TRY(push_free_dims(d, lhs, n.lhs_contracting, n.lhs_batch, NULL, err));
  TRY(push_free_dims(d, rhs, n.rhs_contracting, n.rhs_batch, groups, err));
  base_dtype dtype;
  TRY(ir_infer_precision(lhs->dtype, rhs->dtype, &dtype, err));
  return ir_dims_tensor(m, dtype, d, out, err);
}

/* XLA's InferDotOpShape. */
int ir_infer_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  dot_dims n = dot_dims_of(op);
  TRY(check_dot_dims(lhs, rhs, n, err));
  ir_dims d = {.rank = 0};
  return finish_dot(m, lhs, rhs, n, NULL, &d, out, err);
}

/* Operands are lhs, rhs and their scales; what the scales must be is the verifier's affair. */
int ir_infer_scaled_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_all_tensors(op, err));
  return ir_infer_dot(m, op, out, err);
}

/* --- ragged-dot --- */

/* What kind of lhs dimension is ragged. With b batch, m free, k contracting, g groups:
 *   FREE         [b,m,k] [g,b,k,n] -> [b,m,n]
 *   CONTRACTING  [b,m,k] [b,k,n]   -> [g,b,m,n]
 *   BATCH        [b,m,k] [b,k,n]   -> [b,m,n] */
typedef enum ragged_mode { RAGGED_FREE, RAGGED_CONTRACTING, RAGGED_BATCH } ragged_mode;

/* Neither batch nor contracting is free. */
static ragged_mode ragged_mode_of(dot_dims n, int64_t ragged) {
  if (ir_ints_has(n.lhs_batch, ragged)) return RAGGED_BATCH;
  return ir_ints_has(n.lhs_contracting, ragged) ? RAGGED_CONTRACTING : RAGGED_FREE;
}

/* Dimensions of lhs in the list's order, up to `stop`. */
static int push_until(ir_dims *d, const ir_type *lhs, const ir_ints *list, int64_t stop, xlac_error *err) {
  for (uint32_t i = 0; i < list->n && list->v[i] != stop; i++) TRY(ir_dims_push(d, lhs->dims[list->v[i]], false, err));
  return 0;
}

/* The sizes that group_sizes has before its last dimension when it is given per batch and per outer dimension. */
static int group_prefix(const ir_type *lhs, dot_dims n, int64_t ragged, ir_dims *d, xlac_error *err) {
  assert(ragged >= 0 && ragged < lhs->rank);
  ragged_mode mode = ragged_mode_of(n, ragged);
  TRY(push_until(d, lhs, n.lhs_batch, ragged, err));
  if (mode == RAGGED_CONTRACTING) return push_until(d, lhs, n.lhs_contracting, ragged, err);
  for (uint32_t i = 0; mode == RAGGED_FREE && i < (uint32_t)ragged; i++)
    if (!ir_ints_has(n.lhs_contracting, i) && !ir_ints_has(n.lhs_batch, i))
      TRY(ir_dims_push(d, lhs->dims[i], false, err));
  return 0;
}

/* A vector serves all batches; else there is one for each. */
static int check_group_sizes(const ir_type *lhs, const ir_type *sizes, dot_dims n, int64_t ragged, xlac_error *err) {
  if (sizes->rank == 1) return 0;
  ir_dims prefix = {.rank = 0};
  TRY(group_prefix(lhs, n, ragged, &prefix, err));
  bool ok = sizes->rank == prefix.rank + 1;
  for (uint32_t i = 0; ok && i < prefix.rank; i++) ok = sizes->dims[i] == prefix.size[i];
  if (ok) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                   "group_sizes of ragged-dot must be one vector or have the leading dimensions %s, "
                   "but is %s",
                   IR_SHOW_INTS(prefix.rank, prefix.size), IR_SHOW(sizes));
}

/* Only a free ragged dimension chooses among matrices of rhs, hence the group dimension there and only there. */
static int check_rhs_groups(const ir_op *op, const ir_type *rhs, dot_dims n, ragged_mode mode, int64_t groups,
                            xlac_error *err) {
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS);
  TRY(ir_check_dims_in_range("rhs_group_dims", dims, rhs->rank, err));
  for (uint32_t i = 0; i < dims->n; i++)
    if (ir_ints_has(n.rhs_batch, dims->v[i]) || ir_ints_has(n.rhs_contracting, dims->v[i]))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                       "rhs_group_dims names dimension %lld, which is a batch or contracting one",
                       (long long)dims->v[i]);
  uint32_t need = mode == RAGGED_FREE;
  if (dims->n != need)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "rhs_group_dims must name %u dimension%s when the ragged dimension is a %s one, "
                     "but names %u",
                     need, base_plural(need),
                     mode == RAGGED_FREE    ? "free"
                     : mode == RAGGED_BATCH ? "batch"
                                            : "contracting",
                     dims->n);
  if (need && !ir_sizes_fit(groups, rhs->dims[dims->v[0]]))
    return base_fail(err, XLAC_E_INFER, "group dimension %lld of rhs %s must have the size of group_sizes, %lld",
                     (long long)dims->v[0], IR_SHOW(rhs), (long long)groups);
  return 0;
}

/* (lhs, rhs, group_sizes). The last dimension of group_sizes runs over the groups. */
int ir_infer_ragged_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs, *sizes;
  int64_t ragged;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  TRY(ir_check_tensor(op, 2, &sizes, err));
  dot_dims n = dot_dims_of(op);
  TRY(check_dot_dims(lhs, rhs, n, err));
  TRY(ir_check_one_dim("lhs_ragged_dims", ir_get_ints(op, IR_ATTR_LHS_RAGGED_DIMS), lhs->rank, &ragged, err));
  TRY(check_group_sizes(lhs, sizes, n, ragged, err));
  if (sizes->rank == 0) return base_fail(err, XLAC_E_VERIFY_OPERANDS, "group_sizes of ragged-dot must not be a scalar");
  ragged_mode mode = ragged_mode_of(n, ragged);
  uint32_t last = sizes->rank - 1;
  TRY(check_rhs_groups(op, rhs, n, mode, sizes->dims[last], err));
  ir_dims d = {.rank = 0};
  if (mode == RAGGED_CONTRACTING) TRY(ir_dims_push(&d, sizes->dims[last], ir_dim_is_dynamic(sizes, last), err));
  return finish_dot(m, lhs, rhs, n, ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS), &d, out, err);
}

/* --- linear algebra ---
 *
 * Rank of at least 2 and square in the last two dimensions. */
static int check_matrices(const ir_op *op, const ir_type *a, xlac_error *err) {
  if (a->rank >= 2 && ir_sizes_fit(a->dims[a->rank - 2], a->dims[a->rank - 1])) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes square matrices, but operand 0 is %s",
                   ir_opcode_text(op->opcode), IR_SHOW(a));
}

/* Batches of matrices; the result has the operand's type. */
int ir_infer_cholesky(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  TRY(ir_check_tensor(op, 0, out, err));
  return check_matrices(op, *out, err);
}

/* The words are XLA's; ADJOINT conjugates. */
static int check_transpose_option(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_TRANSPOSE_A);
  if (a && a->v.i != IR_TRANSPOSE_INVALID) return 0;
  int status =
      base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT, but is %s",
                a ? "TRANSPOSE_INVALID" : "missing");
  return base_hint(err, status, "XLA has no default for transpose_a");
}

/* op(a) x = b, or x op(a) = b when left_side is false: x has b's type. */
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

/* The operand's size in a transformed dimension is given twice, and must agree. */
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

/* Transforms the last 1 to 3 dimensions, whose sizes fft_length repeats (of the real side). */
int ir_infer_fft(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  const ir_ints *length = ir_get_ints(op, IR_ATTR_FFT_LENGTH);
  const ir_fft type = (ir_fft)ir_get_word(op, IR_ATTR_FFT_TYPE);
  if (length->n < 1 || length->n > 3 || t->rank < length->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "fft_length must have 1 to 3 entries and no more than the rank of %s, but is %s", IR_SHOW(t),
                     IR_SHOW_INTS(length->n, length->v));
  if (type == IR_FFT_RFFT) return infer_rfft(m, t, length, out, err);
  if (!base_dtype_is_complex(t->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes complex numbers, but got %s",
                     ir_attr_word(IR_OP_FFT, IR_ATTR_FFT_TYPE, type), IR_SHOW(t));
  *out = t;
  if (type == IR_FFT_IRFFT) return infer_irfft(m, t, length, out, err);
  for (uint32_t i = 0; i < length->n; i++) {
    uint32_t dim = t->rank - length->n + i;
    if (!ir_sizes_fit(t->dims[dim], length->v[i]))
      return fail_fft(ir_attr_word(IR_OP_FFT, IR_ATTR_FFT_TYPE, type), t, dim, length->v[i], err);
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

/* *t is the operand's type, *feature the dimension that has its own mean and variance for each place. */
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

/* (operand, scale, offset) gives (normalised, mean, variance). */
int ir_infer_batch_norm_training(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  int64_t feature;
  TRY(check_batch_norm(op, 2, &t, &feature, err));
  return batch_norm_tuple(m, t, feature, out, err);
}

/* (operand, scale, offset, mean, variance) gives the normalised operand. */
int ir_infer_batch_norm_inference(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  int64_t feature;
  return check_batch_norm(op, 4, out, &feature, err);
}

/* (operand, scale, mean, variance, grad_output) gives the gradients of (operand, scale, offset). */
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
