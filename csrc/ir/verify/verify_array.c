/* Ops on arrays that inference alone does not judge: elementwise ops and conversions, sources of values (constants,
 * iota, parameters, random numbers), contractions, and ops that move elements and whose result type is declared.
 *
 * Where XLA's verifier passes what none of its backends can run, a rule says so and is left out with
 * options->xla_compat. */
#include "verify.h"

/* For unary and binary ops of the ELEMENTWISE trait. Ternary ones (select, clamp) take scalars beside arrays, which
 * inference has checked. */
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

/* Operand and result are tensors; *from is the operand's type. */
static int check_tensors(const ir_op *op, const ir_type **from, xlac_error *err) {
  assert(from);
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

/* The first n dimensions. */
static bool same_sizes(uint32_t n, const ir_type *a, const ir_type *b) {
  assert(n <= a->rank && n <= b->rank);
  for (uint32_t i = 0; i < n; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

/* The hint says what the last dimension would have to be. */
static int fail_bits(const ir_op *op, const ir_type *from, int64_t ratio, xlac_error *err) {
  int status = ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "can't turn %s into %s", IR_SHOW(from), IR_SHOW(op->type));
  return base_hint(err, status, "a narrower element type adds a last dimension of size %lld, a wider one drops it",
                   (long long)ratio);
}

/* f32[4] to u8[4,4] or back: the ratio of the widths is a last dimension of the narrower type. Complex numbers go to
 * complex ones only. */
IR_VERIFY(bitcast_convert) {
  const ir_type *from, *to = op->type;
  TRY(check_tensors(op, &from, err));
  if (base_dtype_is_complex(from->dtype) != base_dtype_is_complex(to->dtype))
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "can't turn %s into %s: one is complex, the other is not",
                          IR_SHOW(from), IR_SHOW(to));
  int64_t in = storage_bits(from->dtype), out = storage_bits(to->dtype);
  int64_t wide = in > out ? in : out, narrow = in > out ? out : in, ratio = wide / narrow;
  if (wide % narrow != 0)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                          "can't turn %s into %s: %lld bits are not a multiple of %lld", IR_SHOW(from), IR_SHOW(to),
                          (long long)wide, (long long)narrow);
  const ir_type *longer = in > out ? to : from, *shorter = in > out ? from : to;
  bool fits =
      in == out ? from->rank == to->rank : longer->rank == shorter->rank + 1 && longer->dims[longer->rank - 1] == ratio;
  if (!fits || !same_sizes(shorter->rank, longer, shorter)) return fail_bits(op, from, ratio, err);
  return 0;
}

/* Operand 1 has as many random bits for each element as the element has bits. */
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

/* -1 and 0 stand for attributes that are missing. XLA keeps both numbers as int32. */
IR_VERIFY(reduce_precision) {
  int64_t exponent = ir_get_int(op, IR_ATTR_EXPONENT_BITS, 0), mantissa = ir_get_int(op, IR_ATTR_MANTISSA_BITS, -1);
  if (exponent >= 1 && exponent <= INT32_MAX && mantissa >= 0 && mantissa <= INT32_MAX) return 0;
  return ir_verify_fail(
      op, XLAC_E_VERIFY_ATTRIBUTE, err,
      "has exponent_bits=%lld and mantissa_bits=%lld; expected at least 1 and at least 0, and no more than %lld",
      (long long)exponent, (long long)mantissa, (long long)INT32_MAX);
}

/* The comparison type that is usual for an element type. */
static ir_comparison usual_type_of(base_dtype t) {
  if (base_dtype_is_float(t) || base_dtype_is_complex(t)) return IR_COMPARISON_FLOAT;
  return base_dtype_is_signed(t) ? IR_COMPARISON_SIGNED : IR_COMPARISON_UNSIGNED;
}

/* An omitted type means the default of the element type, which fits always. */
IR_VERIFY(compare) {
  const ir_type *t = ir_operand_type(op, 1);
  const ir_comparison type = (ir_comparison)ir_get_word(op, IR_ATTR_TYPE), usual = usual_type_of(t->dtype);
  const ir_direction direction = (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION);
  bool total = base_dtype_is_float(t->dtype);
  if (type != IR_COMPARISON_NONE && type != usual && !(total && type == IR_COMPARISON_TOTALORDER))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has type=%s; expected %s%s for elements of %s",
                          ir_attr_word(IR_OP_COMPARE, IR_ATTR_TYPE, type),
                          ir_attr_word(IR_OP_COMPARE, IR_ATTR_TYPE, usual), total ? " or TOTALORDER" : "",
                          base_dtype_of(t->dtype)->text);
  /* XLA's verifier lets an order of complex numbers pass; nothing can evaluate it. */
  bool ordered = direction != IR_DIRECTION_EQ && direction != IR_DIRECTION_NE;
  if (ordered && base_dtype_is_complex(t->dtype) && !options->xla_compat)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has direction=%s; complex numbers compare only by EQ and NE",
                          ir_attr_word(IR_OP_COMPARE, IR_ATTR_DIRECTION, direction));
  return 0;
}

/* --- sources: constants, iota, parameters, random numbers ---
 *
 * Types that have a literal: tensors and tuples of such. Nesting is bounded by IR_MAX_TYPE_DEPTH. */
static bool has_literal(const ir_type *t) {
  if (ir_is_tensor(t)) return true;
  if (!ir_is_tuple(t)) return false;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!has_literal(t->elements[i])) return false;
  return true;
}

/* The value's own type may differ in layout alone. */
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

/* XLA refuses preds, which can't count, and scalars, which have no dimension to count along. */
IR_VERIFY(iota) {
  const ir_type *t = op->type;
  if (!ir_is_tensor(t) || t->rank == 0 || t->dtype == XLAC_PRED)
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err,
                          "is declared as %s; expected a tensor of numbers with a dimension", IR_SHOW(t));
  return ir_check_dim("iota_dimension", ir_get_int(op, IR_ATTR_IOTA_DIMENSION, -1), t->rank, err);
}

/* parameter_replication has one flag for each leaf of the type. */
IR_VERIFY(parameter) {
  const ir_attr *replication = ir_attr_find(op, IR_ATTR_PARAMETER_REPLICATION);
  uint32_t leaves = ir_type_leaves(op->type);
  if (!replication || replication->v.ints->n == leaves) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has %u entries in parameter_replication; %s has %u leaves",
                        replication->v.ints->n, IR_SHOW(op->type), leaves);
}

/* --- random numbers --- */

/* (a, b) are the bounds [a, b) of rng_uniform, or mean and deviation of rng_normal. */
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
  bool normal = ir_get_word(op, IR_ATTR_DISTRIBUTION) == IR_DISTRIBUTION_NORMAL;
  if (normal ? base_dtype_is_float(a->dtype) : !base_dtype_is_complex(a->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "can't draw %s from %s", base_dtype_of(a->dtype)->text,
                        ir_attr_word(IR_OP_RNG, IR_ATTR_DISTRIBUTION, ir_get_word(op, IR_ATTR_DISTRIBUTION)));
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

/* The state is 128 bits; nothing else fits XLA's expander. */
IR_VERIFY(rng_get_and_update_state) {
  const ir_type *t = op->type;
  if (ir_is_tensor(t) && t->dtype == XLAC_U64 && t->rank == 1 && t->dims[0] == 2) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected u64[2]", IR_SHOW(t));
}

/* --- contractions: their precisions, and the scales of scaled-dot; dimensions are inference's affair ---
 *
 * XLA keeps any number of precisions; there are two operands to say it for. */
static int check_precisions(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OPERAND_PRECISION);
  if (!a || options->xla_compat || a->v.ints->n == 2 || a->v.ints->n == 0) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                        "has %u precisions in operand_precision; expected one for each of two operands", a->v.ints->n);
}

/* The element type is free (XLA's preferred_element_type), but a tensor it must be. */
static int check_declared_tensor(const ir_op *op, xlac_error *err) {
  if (ir_is_tensor(op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "gives a tensor, but is declared as %s", IR_SHOW(op->type));
}

/* What all four opcodes share. */
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

/* The scale's dimension must divide the operand's: each of its elements scales a block. Operand at + 2 is the scale
 * of operand `at`. */
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

/* Operands: lhs, rhs, scale of lhs, scale of rhs. */
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

/* --- movement: ops whose result type is declared and not inferred ---
 *
 * XLA looks at sizes only once layouts are assigned; before that any bitcast passes its verifier. */
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

/* dimensions[i] is where the operand's dimension i goes: f32[3] with dimensions={1} makes each row of f32[2,3]. */
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

/* An unbounded dimension makes the count unknown. */
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

/* Operands: the array, then the size of each dimension of the result. */
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

/* (value, token) gives the value, once the token is there. */
IR_VERIFY(add_dependency) {
  return ir_check_token(op, 1, err);
}

/* One shift for each listed dimension, of any size and sign. */
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

/* mode=rotate shifts cyclically, mode=permute takes elements from where a constant says. */
IR_VERIFY(shuffle) {
  const ir_type *t;
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_dims_set("dimensions", dims, NULL, t->rank, err));
  bool rotates = ir_get_word(op, IR_ATTR_MODE) == IR_SHUFFLE_ROTATE;
  return rotates ? check_rotation(op, dims, err) : check_permutation_indices(op, t, dims, err);
}
