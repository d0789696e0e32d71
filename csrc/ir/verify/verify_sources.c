/* Values from nowhere: constants, iota, parameters, random numbers. */
#include "verify.h"

/* Types that have a literal: tensors and tuples of such. Nesting is bounded by IR_MAX_TYPE_DEPTH. */
static bool has_literal(const ir_type *t) {
  if (ir_is_tensor(t)) return true;
  if (!ir_is_tuple(t)) return false;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!has_literal(t->elements[i])) return false;
  return true;
}

IR_VERIFY(constant) {
  const ir_literal *literal = op->u.literal;
  if (!has_literal(op->type))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                          "has the type %s; only tensors and tuples of tensors have values", IR_SHOW(op->type));
  if (!literal) return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "has no value");
  if (ir_compatible(literal->type, op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s, but its value is %s", IR_SHOW(op->type),
                        IR_SHOW(literal->type));
}

IR_VERIFY(iota) {
  const ir_type *t = op->type;
  if (!ir_is_tensor(t) || t->rank == 0 || t->dtype == XLAC_PRED)
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                          "is declared as %s; expected a tensor of numbers with a dimension", IR_SHOW(t));
  return ir_check_dim("iota_dimension", ir_get_int(op, IR_ATTR_IOTA_DIMENSION, -1), t->rank, err);
}

IR_VERIFY(parameter) {
  const ir_attr *replication = ir_attr_find(op, IR_ATTR_PARAMETER_REPLICATION);
  uint32_t leaves = ir_type_leaves(op->type);
  if (!replication || replication->v.ints->n == leaves) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has %u entries in parameter_replication; %s has %u leaves",
                        replication->v.ints->n, IR_SHOW(op->type), leaves);
}

/* --- random numbers --- */

IR_VERIFY(rng) {
  const ir_type *a, *b;
  if (op->n_operands != 2)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "takes two scalars, but has %u operands", op->n_operands);
  TRY(ir_check_tensor(op, 0, &a, err));
  TRY(ir_check_tensor(op, 1, &b, err));
  bool same = ir_is_tensor(op->type) && ir_is_scalar(a) && ir_is_scalar(b) && a->dtype == b->dtype;
  bool result_fits = same && (a->dtype == op->type->dtype ||
                              (options->mixed_floats && ir_same_dtype_or_float(a->dtype, op->type->dtype)));
  if (!result_fits)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                          "takes two scalars of the result's element type, but gets %s and %s for %s", IR_SHOW(a),
                          IR_SHOW(b), IR_SHOW(op->type));
  bool normal = strcmp(ir_get_str(op, IR_ATTR_DISTRIBUTION), "rng_normal") == 0;
  if (normal ? base_dtype_is_float(a->dtype) : !base_dtype_is_complex(a->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "can't draw %s from %s", base_dtype_of(a->dtype)->text,
                        ir_get_str(op, IR_ATTR_DISTRIBUTION));
}

/* XLA's verifier also lets a lone array and random preds pass, which no pass of XLA can expand. */
IR_VERIFY(rng_bit_generator) {
  const ir_type *t = op->type, *state = ir_operand_type(op, 0);
  if (!ir_is_tuple(t) && options->xla_compat) return 0;
  if (!ir_is_tuple(t) || t->n_elements != 2 || !ir_is_tensor(t->elements[1]))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected (new state, random bits)",
                          IR_SHOW(t));
  if (!ir_compatible(t->elements[0], state))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "gives %s as new state of the state %s; they must be the same",
                          IR_SHOW(t->elements[0]), IR_SHOW(state));
  if (options->xla_compat) return 0;
  base_dtype bits = t->elements[1]->dtype;
  if (bits == XLAC_PRED || base_dtype_is_complex(bits))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "gives %s; expected random bits of an integer or float type",
                          IR_SHOW(t->elements[1]));
  if (ir_is_tensor(state) && state->rank == 1 && state->dtype == XLAC_U64 && state->count >= 2) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "takes a state of u64[2] or u64[3], but got %s",
                        IR_SHOW(state));
}

IR_VERIFY(rng_get_and_update_state) {
  const ir_type *t = op->type;
  if (ir_is_tensor(t) && t->dtype == XLAC_U64 && t->rank == 1 && t->dims[0] == 2) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected u64[2]", IR_SHOW(t));
}
