/* Elementwise ops: no implicit broadcast, conversions, comparison types. */
#include "verify.h"

int ir_verify_elementwise(const ir_op *op, xlac_error *err) {
  const ir_op_info *info = ir_opcode_info(op->opcode);
  if (!(info->traits & IR_ELEMENTWISE) || info->arity > 2) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (ir_compatible_ignoring_dtype(ir_operand_type(op, i), op->type)) continue;
    int status = ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                                "gives %s, but its operand %u is %s; the dimensions must be the same",
                                IR_SHOW(op->type), i, IR_SHOW(ir_operand_type(op, i)));
    return base_hint(err, status, "HLO does not broadcast implicitly: use broadcast");
  }
  return 0;
}

/* --- conversions --- */

static int check_tensors(const ir_op *op, const ir_type **from, xlac_error *err) {
  TRY(ir_check_tensor(op, 0, from, err));
  if (ir_is_tensor(op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "gives a tensor, but is declared as %s", IR_SHOW(op->type));
}

/* That the dimensions are the operand's holds for all elementwise ops. */
IR_VERIFY(convert) {
  const ir_type *from;
  return check_tensors(op, &from, err);
}

/* The width XLA takes an element to have: a whole byte of a pred and of a 6-bit float. */
static uint32_t storage_bits(base_dtype t) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  uint32_t bits = base_dtype_of(t)->bits;
  return t == XLAC_PRED || bits == 6 ? 8 : bits;
}

static bool same_sizes(uint32_t n, const ir_type *a, const ir_type *b) {
  assert(n <= a->rank && n <= b->rank);
  for (uint32_t i = 0; i < n; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

static int fail_bits(const ir_op *op, const ir_type *from, int64_t ratio, xlac_error *err) {
  int status = ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "can't turn %s into %s", IR_SHOW(from), IR_SHOW(op->type));
  return base_hint(err, status, "a narrower element type adds a last dimension of size %lld, a wider one drops it",
                   (long long)ratio);
}

IR_VERIFY(bitcast_convert) {
  const ir_type *from, *to = op->type;
  TRY(check_tensors(op, &from, err));
  if (base_dtype_is_complex(from->dtype) != base_dtype_is_complex(to->dtype))
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "can't turn %s into %s: one is complex, the other is not",
                          IR_SHOW(from), IR_SHOW(to));
  int64_t in = storage_bits(from->dtype), out = storage_bits(to->dtype);
  int64_t wide = in > out ? in : out, narrow = in > out ? out : in, ratio = wide / narrow;
  if (wide % narrow != 0)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "can't turn %s into %s: %lld bits are no multiple of %lld",
                          IR_SHOW(from), IR_SHOW(to), (long long)wide, (long long)narrow);
  const ir_type *longer = in > out ? to : from, *shorter = in > out ? from : to;
  bool fits =
      in == out ? from->rank == to->rank : longer->rank == shorter->rank + 1 && longer->dims[longer->rank - 1] == ratio;
  if (!fits || !same_sizes(shorter->rank, longer, shorter)) return fail_bits(op, from, ratio, err);
  return 0;
}

IR_VERIFY(stochastic_convert) {
  const ir_type *from, *bits;
  TRY(check_tensors(op, &from, err));
  TRY(ir_check_tensor(op, 1, &bits, err));
  if (base_dtype_is_unsigned(bits->dtype) && storage_bits(bits->dtype) == storage_bits(from->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                        "takes random bits as unsigned integers of %u bits, but got %s", storage_bits(from->dtype),
                        IR_SHOW(bits));
}

/* --- the others --- */

IR_VERIFY(reduce_precision) {
  int64_t exponent = ir_get_int(op, IR_ATTR_EXPONENT_BITS, 0), mantissa = ir_get_int(op, IR_ATTR_MANTISSA_BITS, -1);
  if (exponent >= 1 && exponent <= INT32_MAX && mantissa >= 0 && mantissa <= INT32_MAX) return 0;
  return ir_verify_fail(
      op, XLAC_E_VERIFY_ATTRIBUTE, err,
      "has exponent_bits=%lld and mantissa_bits=%lld; expected at least 1 and at least 0, and no more than %lld",
      (long long)exponent, (long long)mantissa, (long long)INT32_MAX);
}

/* The comparison types of an element type; the first is the default. */
static const char *const *types_of(base_dtype t) {
  static const char *const floats[] = {"FLOAT", "TOTALORDER", NULL}, *const complexes[] = {"FLOAT", NULL},
                           *const signed_ints[] = {"SIGNED", NULL}, *const unsigned_ints[] = {"UNSIGNED", NULL};
  if (base_dtype_is_float(t)) return floats;
  if (base_dtype_is_complex(t)) return complexes;
  return base_dtype_is_signed(t) ? signed_ints : unsigned_ints;
}

IR_VERIFY(compare) {
  const char *type = ir_get_str(op, IR_ATTR_TYPE), *direction = ir_get_str(op, IR_ATTR_DIRECTION);
  const ir_type *t = ir_operand_type(op, 1);
  const char *const *allowed = types_of(t->dtype);
  bool known = !type[0];
  for (const char *const *w = allowed; !known && *w; w++) known = strcmp(*w, type) == 0;
  if (!known)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has type=%s; expected %s%s for elements of %s", type,
                          allowed[0], allowed[1] ? " or TOTALORDER" : "", base_dtype_of(t->dtype)->text);
  /* XLA's verifier lets an order of complex numbers pass; nothing can evaluate it. */
  bool ordered = strcmp(direction, "EQ") != 0 && strcmp(direction, "NE") != 0;
  if (ordered && base_dtype_is_complex(t->dtype) && !options->xla_compat)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has direction=%s; complex numbers compare only by EQ and NE", direction);
  return 0;
}
