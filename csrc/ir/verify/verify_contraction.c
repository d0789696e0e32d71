/* Contractions: their precisions, and the scales of scaled-dot. Dimensions are inference's affair. */
#include "verify.h"

/* XLA keeps any number of precisions; there are two operands to say it for. */
static int check_precisions(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OPERAND_PRECISION);
  if (!a || options->xla_compat || a->v.names->n == 2 || a->v.names->n == 0) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                        "has %u precisions in operand_precision; expected one for each of two operands", a->v.names->n);
}

static int check_declared_tensor(const ir_op *op, xlac_error *err) {
  if (ir_is_tensor(op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "gives a tensor, but is declared as %s", IR_SHOW(op->type));
}

static int check_contraction(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  TRY(check_declared_tensor(op, err));
  return check_precisions(op, options, err);
}

IR_VERIFY(dot) {
  return check_contraction(op, options, err);
}
IR_VERIFY(convolution) {
  return check_contraction(op, options, err);
}
IR_VERIFY(ragged_dot) {
  return check_contraction(op, options, err);
}

/* --- scaled-dot --- */

/* bf16 with all sizes 1 for a larger bf16 operand: no scale. */
static bool is_no_scale(const ir_type *t, const ir_type *scale) {
  assert(ir_is_tensor(t) && ir_is_tensor(scale));
  if (t->dtype != XLAC_BF16 || scale->dtype != XLAC_BF16) return false;
  bool all_one = true, larger = false;
  for (uint32_t i = 0; i < scale->rank; i++) all_one = all_one && scale->dims[i] == 1;
  for (uint32_t i = 0; i < t->rank; i++) larger = larger || t->dims[i] != 1;
  return all_one && larger;
}

static int check_scale(const ir_op *op, uint32_t at, const char *contracting, xlac_error *err) {
  assert(at < 2 && op->n_operands == 4);
  const ir_type *t = ir_operand_type(op, at), *scale = ir_operand_type(op, at + 2);
  if (is_no_scale(t, scale)) return 0;
  if (scale->rank != t->rank)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "scales %s by %s; both must have the same rank", IR_SHOW(t),
                          IR_SHOW(scale));
  uint32_t n = ir_get_ints(op, at ? IR_ATTR_RHS_CONTRACTING_DIMS : IR_ATTR_LHS_CONTRACTING_DIMS)->n;
  if (n != 1)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has %u dimensions in %s; a scaled operand contracts one",
                          n, contracting);
  for (uint32_t i = 0; i < t->rank; i++)
    if (scale->dims[i] == 0 || t->dims[i] % scale->dims[i] != 0)
      return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                            "scales %s by %s; dimension %u of the scale must divide the operand's", IR_SHOW(t),
                            IR_SHOW(scale), i);
  return 0;
}

/* XLA's verifier takes any types, but nothing says what a fraction of an integer is. */
static int check_scaled_floats(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  assert(op->n_operands == 4);
  for (uint32_t i = 0; i < 4 && !options->xla_compat; i++) {
    if (base_dtype_is_float(ir_operand_type(op, i)->dtype)) continue;
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "has %s as operand %u; expected floats and float scales",
                          IR_SHOW(ir_operand_type(op, i)), i);
  }
  return 0;
}

IR_VERIFY(scaled_dot) {
  TRY(check_contraction(op, options, err));
  TRY(check_scale(op, 0, "lhs_contracting_dims", err));
  TRY(check_scale(op, 1, "rhs_contracting_dims", err));
  TRY(check_scaled_floats(op, options, err));
  if (!ir_is_scalar(ir_operand_type(op, 2)) || !ir_is_scalar(ir_operand_type(op, 3))) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "has two scalar scales; at least one must be a tensor");
}

/* XLA's verifier lets complex elements pass, which have no order. */
IR_VERIFY(topk) {
  const ir_type *t = ir_operand_type(op, 0);
  if (options->xla_compat || !base_dtype_is_complex(t->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "takes the largest of %s, but complex numbers have no order",
                        IR_SHOW(t));
}
