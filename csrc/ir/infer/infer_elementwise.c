/* Inference of elementwise ops. Results keep the layout of the operand they take their dimensions from.
 *
 * Binary ops of XLA's inference stretch dimensions of size 1 and scalars (f32[1] + f32[8] is f32[8]), although its
 * verifier then refuses such ops in HLO: both halves are kept. */
#include "infer.h"

/* The set of element types was checked by ir_check_op. */
int ir_infer_unary(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  return ir_check_tensor(op, 0, out, err);
}

/* Any type, tuples too. */
int ir_infer_copy(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return ir_infer_first(m, op, out, err);
}

/* Real numbers are their own real part. */
int ir_infer_real_part(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  *out = t;
  return base_dtype_is_complex(t->dtype) ? ir_infer_retype(m, t, base_dtype_real_part(t->dtype), out, err) : 0;
}

/* c64| is f32. */
int ir_infer_abs(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return ir_infer_real_part(m, op, out, err);
}

/* The operand's dimensions and layout, as preds. */
int ir_infer_is_finite(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  return ir_infer_retype(m, t, XLAC_PRED, out, err);
}

/* --- binary --- */

static int fail_dims(const ir_op *op, const ir_type *a, const ir_type *b, xlac_error *err) {
  int status = base_fail(err, XLAC_E_INFER, "the operands of %s must have the same dimensions, but are %s and %s",
                         ir_opcode_text(op->opcode), IR_SHOW(a), IR_SHOW(b));
  return base_hint(err, status, "HLO does not broadcast implicitly: use broadcast");
}

/* One dimension where 1 stretches to the other size, as XLA infers it. The verifier refuses such ops later. */
static bool stretch_dim(const ir_type *a, const ir_type *b, uint32_t i, ir_dims *out) {
  assert(i < a->rank && i < b->rank);
  int64_t x = a->dims[i], y = b->dims[i];
  bool take_b = x == 1 || (x == IR_UNBOUNDED && y != 1);
  if (x != y && x != 1 && y != 1 && x != IR_UNBOUNDED && y != IR_UNBOUNDED) return false;
  bool dynamic = ir_dim_is_dynamic(take_b ? b : a, i);
  if (x == y && x != 1) dynamic = ir_dim_is_dynamic(a, i) || ir_dim_is_dynamic(b, i);
  out->size[i] = take_b ? y : x;
  out->dynamic[i] = dynamic;
  return true;
}

static bool has_unbounded(const ir_type *t) {
  assert(ir_is_tensor(t));
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dims[i] == IR_UNBOUNDED) return true;
  return false;
}

/* Operands of the same dimensions: the first one's type, with the dynamic dimensions of both. */
static int merge_same(ir_module *m, const ir_type *a, const ir_type *b, base_dtype dtype, const ir_type **out,
                      xlac_error *err) {
  TRY(ir_infer_retype(m, a, dtype, out, err));
  if (!b->has_dynamic) return 0;
  ir_dims d;
  ir_dims_of(&d, *out);
  for (uint32_t i = 0; i < d.rank; i++) d.dynamic[i] = d.dynamic[i] || ir_dim_is_dynamic(b, i);
  return ir_dims_tensor_in(m, dtype, &d, (*out)->layout, out, err);
}

/* A scalar beside an array takes the array's dimensions; other differences of rank are errors. */
static int merge_stretched(ir_module *m, const ir_op *op, const ir_type *a, const ir_type *b, base_dtype dtype,
                           const ir_type **out, xlac_error *err) {
  if (a->rank != b->rank && !ir_is_scalar(a) && !ir_is_scalar(b)) return fail_dims(op, a, b, err);
  if (a->rank != b->rank) {
    const ir_type *larger = ir_is_scalar(a) ? b : a;
    a = b = larger;
  }
  ir_dims d = {.rank = a->rank};
  for (uint32_t i = 0; i < a->rank; i++)
    if (!stretch_dim(a, b, i, &d)) return fail_dims(op, a, b, err);
  return ir_dims_tensor(m, dtype, &d, out, err);
}

/* Of two float types the more precise one is the result's. */
int ir_infer_binary(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *a, *b;
  TRY(ir_check_tensor(op, 0, &a, err));
  TRY(ir_check_tensor(op, 1, &b, err));
  if (!ir_same_dtype_or_float(a->dtype, b->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "the operands of %s must have the same element type, but are %s and %s",
                     ir_opcode_text(op->opcode), IR_SHOW(a), IR_SHOW(b));
  base_dtype dtype;
  TRY(ir_infer_precision(a->dtype, b->dtype, &dtype, err));
  if (ir_same_dims(a, b) && !has_unbounded(a) && !has_unbounded(b)) return merge_same(m, a, b, dtype, out, err);
  return merge_stretched(m, op, a, b, dtype, out, err);
}

/* Packed layouts of the operands are not a pred's. */
int ir_infer_compare(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_infer_binary(m, op, &t, err));
  return ir_infer_retype(m, t, XLAC_PRED, out, err);
}

/* f32 and f32 to c64, f64 and f64 to c128. Mixed floats, which binary ops may have, may not be put together. */
int ir_infer_complex(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_infer_binary(m, op, &t, err));
  const ir_type *a = ir_operand_type(op, 0), *b = ir_operand_type(op, 1);
  if (a->dtype != b->dtype || (a->dtype != XLAC_F32 && a->dtype != XLAC_F64))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "complex takes two operands of f32 or two of f64, but got %s and %s",
                     IR_SHOW(a), IR_SHOW(b));
  return ir_infer_retype(m, t, a->dtype == XLAC_F32 ? XLAC_C64 : XLAC_C128, out, err);
}

/* --- ternary --- */

/* (low, operand, high). Each bound is a scalar or has the operand's dimensions. */
int ir_infer_clamp(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *low, *t, *high;
  TRY(ir_check_tensor(op, 0, &low, err));
  TRY(ir_check_tensor(op, 1, &t, err));
  TRY(ir_check_tensor(op, 2, &high, err));
  bool types = ir_same_dtype_or_float(low->dtype, t->dtype) && ir_same_dtype_or_float(high->dtype, t->dtype);
  bool dims = (ir_is_scalar(low) || ir_same_dims(low, t)) && (ir_is_scalar(high) || ir_same_dims(high, t)) &&
              (ir_is_scalar(low) || ir_is_scalar(high) || ir_same_dims(low, high));
  if (!types || !dims)
    return base_fail(err, types ? XLAC_E_INFER : XLAC_E_VERIFY_OPERANDS,
                     "the bounds of clamp must have its operand's %s%s, but it got %s, %s, %s",
                     types ? "dimensions" : "element type", types ? " or be scalars" : "", IR_SHOW(low), IR_SHOW(t),
                     IR_SHOW(high));
  *out = t;
  return 0;
}

/* An unbounded dimension of a branch takes the other branch's size. */
static void select_dim(const ir_type *pred, const ir_type *a, const ir_type *b, uint32_t i, ir_dims *d) {
  assert(i < d->rank);
  bool dynamic_a = ir_dim_is_dynamic(a, i), dynamic_b = ir_dim_is_dynamic(b, i);
  if (a->dims[i] != IR_UNBOUNDED && b->dims[i] != IR_UNBOUNDED) {
    d->dynamic[i] = dynamic_a || dynamic_b || (!ir_is_scalar(pred) && ir_dim_is_dynamic(pred, i));
    return;
  }
  d->size[i] = a->dims[i] == IR_UNBOUNDED ? b->dims[i] : a->dims[i];
  d->dynamic[i] = dynamic_a && dynamic_b;
}

/* `layout` with the packing that the values have, since a pred's dimensions and layout may lead. */
static int pack_as(ir_module *m, const ir_type *values, const ir_layout **layout, xlac_error *err) {
  int64_t bits = values->layout ? values->layout->element_bits : 0;
  if (!*layout || (*layout)->element_bits == bits) return 0;
  ir_layout packed = **layout;
  packed.element_bits = bits;
  *layout = ir_layout_intern(m, &packed);
  return *layout ? 0 : base_oom(err, "a layout");
}

/* (pred, on true, on false). The pred is a scalar or has their dimensions; then it is the one whose layout counts. */
int ir_infer_select(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *pred, *a, *b;
  TRY(ir_check_tensor(op, 0, &pred, err));
  TRY(ir_check_tensor(op, 1, &a, err));
  TRY(ir_check_tensor(op, 2, &b, err));
  if (!ir_same_dtype_or_float(a->dtype, b->dtype) || !ir_same_dims(a, b))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "select must choose between operands of one type, but got %s and %s",
                     IR_SHOW(a), IR_SHOW(b));
  if (!ir_is_scalar(pred) && (!ir_same_dims(pred, a) || !ir_same_dims(pred, b)))
    return base_fail(err, XLAC_E_INFER, "select's pred must be a scalar or have the dimensions of %s, but is %s",
                     IR_SHOW(a), IR_SHOW(pred));
  base_dtype dtype;
  TRY(ir_infer_precision(a->dtype, b->dtype, &dtype, err));
  const ir_type *full = ir_is_scalar(pred) ? a : pred;
  ir_dims d;
  ir_dims_of(&d, full);
  for (uint32_t i = 0; i < d.rank; i++) select_dim(pred, a, b, i, &d);
  const ir_layout *layout = full->layout;
  TRY(pack_as(m, a, &layout, err));
  return ir_dims_tensor_in(m, dtype, &d, layout, out, err);
}
