/* Ops whose result type is declared and not inferred: bitcast, broadcast, reshapes; add-dependency; shuffle. */
#include "verify.h"

/* XLA looks at sizes only once layouts are assigned; before that any bitcast passes its verifier. */
IR_VERIFY(bitcast) {
  const ir_type *from = ir_operand_type(op, 0), *to = op->type;
  if (ir_is_tuple(from) != ir_is_tuple(to) || (ir_is_tuple(to) && from->n_elements != to->n_elements))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "can't see %s as %s", IR_SHOW(from), IR_SHOW(to));
  if (options->xla_compat || ir_type_xla_bytes(from) == ir_type_xla_bytes(to)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "can't see %s (%lld bytes) as %s (%lld bytes): sizes differ",
                        IR_SHOW(from), (long long)ir_type_xla_bytes(from), IR_SHOW(to),
                        (long long)ir_type_xla_bytes(to));
}

/* Operand and result are tensors of one element type; of two float types while XLA still moves precisions about. */
static int check_same_elements(const ir_op *op, const ir_type **from, const ir_verify_options *options,
                               xlac_error *err) {
  TRY(ir_check_tensor(op, 0, from, err));
  bool mixed =
      options->mixed_floats && ir_is_tensor(op->type) && ir_same_dtype_or_float(op->type->dtype, (*from)->dtype);
  if (mixed || (ir_is_tensor(op->type) && op->type->dtype == (*from)->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s, but moves elements of %s", IR_SHOW(op->type),
                        IR_SHOW(*from));
}

IR_VERIFY(broadcast) {
  const ir_type *from, *to = op->type;
  TRY(check_same_elements(op, &from, options, err));
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  if (dims->n != from->rank)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has dimensions=%s; expected one entry for each of the %u dimensions of %s",
                          IR_SHOW_INTS(dims->n, dims->v), from->rank, IR_SHOW(from));
  TRY(ir_check_dims_in_range("dimensions", dims, to->rank, err));
  for (uint32_t i = 0; i < from->rank; i++)
    if (from->dims[i] != to->dims[dims->v[i]])
      return base_hint(err,
                       ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                                      "maps dimension %u of %s to dimension %lld of %s; their sizes must be the same",
                                      i, IR_SHOW(from), (long long)dims->v[i], IR_SHOW(to)),
                       "HLO does not stretch dimensions of size 1: reshape them away first");
  /* XLA accepts a repeated dimension, which no definition of broadcast gives a meaning. */
  return options->xla_compat ? 0 : ir_check_dims_distinct("dimensions", dims, err);
}

/* --- reshapes --- */

static int check_same_count(const ir_op *op, const ir_type *from, xlac_error *err) {
  assert(ir_is_tensor(from) && ir_is_tensor(op->type));
  if (from->count == op->type->count || ir_is_unbounded(from) || ir_is_unbounded(op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                        "is declared as %s with %lld elements, but its operand %s has %lld", IR_SHOW(op->type),
                        (long long)op->type->count, IR_SHOW(from), (long long)from->count);
}

IR_VERIFY(reshape) {
  const ir_type *from;
  TRY(check_same_elements(op, &from, options, err));
  TRY(check_same_count(op, from, err));
  const ir_attr *inferred = ir_attr_find(op, IR_ATTR_INFERRED_DIMENSION);
  /* -1 is XLA's "none". XLA never looks at the number. */
  if (!inferred || options->xla_compat || inferred->v.i == -1) return 0;
  return ir_check_dim("inferred_dimension", inferred->v.i, op->type->rank, err);
}

IR_VERIFY(dynamic_reshape) {
  const ir_type *from, *size;
  TRY(check_same_elements(op, &from, options, err));
  TRY(check_same_count(op, from, err));
  if (op->n_operands != op->type->rank + 1)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "to %s takes %u sizes, but has %u", IR_SHOW(op->type),
                          op->type->rank, op->n_operands - 1);
  for (uint32_t i = 1; i < op->n_operands; i++) {
    TRY(ir_check_tensor(op, i, &size, err));
    if (!ir_is_scalar_of(size, XLAC_S32))
      return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "takes scalar s32 sizes, but operand %u is %s", i,
                            IR_SHOW(size));
  }
  return 0;
}

/* --- the others --- */

IR_VERIFY(add_dependency) {
  return ir_check_token(op, 1, err);
}

static int check_rotation(const ir_op *op, const ir_ints *dims, xlac_error *err) {
  const ir_ints *shifts = ir_get_ints(op, IR_ATTR_SHIFTS);
  if (shifts->n == dims->n) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                        "has %u shifts for %u dimensions; a rotation has one for each", shifts->n, dims->n);
}

/* One coordinate for each element and listed dimension; the last dimension, which runs over the listed ones, may be
 * left out when there is one of them. A size of 1 stands for all places along that dimension. */
static int check_permutation_indices(const ir_op *op, const ir_type *t, const ir_ints *dims, xlac_error *err) {
  assert(ir_is_tensor(t));
  const ir_attr *attr = ir_attr_find(op, IR_ATTR_INDICES);
  const ir_type *i = attr && attr->v.literal ? attr->v.literal->type : NULL;
  if (!i || !ir_is_tensor(i) || !base_dtype_is_integer(i->dtype))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "permutes, but has no indices that are a tensor of integers");
  bool listed = i->rank == t->rank + 1 && i->dims[t->rank] == (int64_t)dims->n;
  bool fits = listed || (i->rank == t->rank && dims->n == 1);
  for (uint32_t d = 0; fits && d < t->rank; d++) fits = i->dims[d] == 1 || i->dims[d] == t->dims[d];
  if (fits) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has indices of type %s, which don't fit %u dimensions of %s",
                        IR_SHOW(i), dims->n, IR_SHOW(t));
}

IR_VERIFY(shuffle) {
  const ir_type *t;
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_dims_set("dimensions", dims, NULL, t->rank, err));
  bool rotates = strcmp(ir_get_str(op, IR_ATTR_MODE), "rotate") == 0;
  return rotates ? check_rotation(op, dims, err) : check_permutation_indices(op, t, dims, err);
}
