/* From HLO form to MLIR form: one rule an opcode. Ops that the table of pairs describes whole need none.
 *
 * A rule reads x->op and x->operands, makes ops with from_hlo_make or from_hlo_emit, and sets x->result.
 * from_hlo_plain is the rule of most: the same opcode, the same operands, attributes by the table, called
 * computations as regions. */
#include "from_hlo.h"

/* ---- From HLO form to MLIR form: ops whose translation is several ops on shapes. */

/* --- bitcast --- */

/*   tensor<2x3xf32>, permutation {1,0}    tensor<3x2xf32>
 *
 * Nothing is made for an order that is the same already. */
static int from_hlo_transpose(from_hlo_op *x, ir_value *v, const int64_t *permutation) {
  const ir_type *from = v->op->types[v->index];
  int64_t dims[IR_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < from->rank; i++) {
    assert(permutation[i] >= 0 && permutation[i] < from->rank);
    dims[i] = from->dims[permutation[i]];
    same = same && permutation[i] == i;
  }
  if (same) return 0;
  const ir_type *to = ir_tensor(x->t->to, (base_dtype)from->dtype, from->rank, dims, NULL, NULL, x->t->err);
  ir_op *made = to ? from_hlo_emit(x, IR_OP_TRANSPOSE, to, 1, v) : NULL;
  if (!made) return from_hlo_no_memory(x->t);
  *v = (ir_value){made, 0};
  return from_hlo_put(x, made, "permutation", ir_m_i64s(x->t->to, from->rank, permutation));
}

/* `opcode` is a reshape or a bitcast_convert; nothing is made where *v has the type already. */
static int from_hlo_retype(from_hlo_op *x, ir_opcode opcode, base_dtype dtype, uint32_t rank, const int64_t *dims,
                           ir_value *v) {
  const ir_type *to = ir_tensor(x->t->to, dtype, rank, dims, NULL, NULL, x->t->err);
  if (!to) return from_hlo_no_memory(x->t);
  if (to == v->op->types[v->index]) return 0;
  ir_op *made = from_hlo_emit(x, opcode, to, 1, v);
  if (!made) return from_hlo_no_memory(x->t);
  *v = (ir_value){made, 0};
  return 0;
}

/* From n elements of one type to as many bits of another: all in one dimension, with the parts of a wider element in
 * a second one.
 *   4 x s8 to s32    reshape to 1x4, bitcast_convert to 1
 *   2 x s32 to s8    reshape to 2, bitcast_convert to 2x4 */
static int from_hlo_rebit(from_hlo_op *x, base_dtype to, ir_value *v) {
  const ir_type *from = v->op->types[v->index];
  int64_t wide = base_dtype_of((base_dtype)from->dtype)->bits, narrow = base_dtype_of(to)->bits;
  int64_t dims[2] = {from->count, 1};
  if (wide == narrow) return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, from->rank, from->dims, v);
  if (wide > narrow) {
    dims[1] = wide / narrow;
    TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)from->dtype, 1, dims, v));
    return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, 2, dims, v);
  }
  dims[0] = from->count / (narrow / wide);
  dims[1] = narrow / wide;
  TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)from->dtype, 2, dims, v));
  return from_hlo_retype(x, IR_OP_BITCAST_CONVERT, to, 1, dims, v);
}

/* A layout that is an order of dimensions and no more. */
static bool from_hlo_plain_layout(const ir_type *type) {
  const ir_layout *l = type->layout;
  return !l || (l->n_tiles == 0 && !l->levels && l->n_splits == 0);
}

/* Dimensions from major to minor. */
static void from_hlo_order(const ir_type *type, int64_t *order) {
  assert(!type->layout || type->layout->rank == type->rank);
  for (uint32_t i = 0; i < type->rank; i++)
    order[i] = type->layout ? type->layout->minor_to_major[type->rank - 1 - i] : i;
}

/* The bytes in memory stay: so the operand's dimensions are put in the order of memory, reshaped, and put back in
 * the result's order.
 *   %b = f32[3,2]{0,1} bitcast(f32[2,3]{1,0} %a)    %a is in memory a0 a1 ... a5: reshape to 2x3, transpose to 3x2 */
int from_hlo_bitcast(from_hlo_op *x) {
  const ir_type *from = ir_operand(x->op, 0)->type, *to = x->op->type;
  int64_t order[IR_MAX_RANK], back[IR_MAX_RANK], dims[IR_MAX_RANK];
  ir_value v;
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->has_dynamic || to->has_dynamic ||
      !from_hlo_plain_layout(from) || !from_hlo_plain_layout(to))
    return base_hint(x->t->err,
                     from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_LAYOUT,
                                   "StableHLO has no bitcast between tiled layouts or dynamic dimensions"),
                     "say by reshape, transpose and bitcast-convert what it does");
  TRY(from_hlo_whole(x, x->operands[0], &v));
  from_hlo_order(from, order);
  TRY(from_hlo_transpose(x, &v, order));
  if (from->dtype != to->dtype) TRY(from_hlo_rebit(x, (base_dtype)to->dtype, &v));
  from_hlo_order(to, order);
  for (uint32_t i = 0; i < to->rank; i++) {
    dims[i] = to->dims[order[i]];
    back[order[i]] = i;
  }
  TRY(from_hlo_retype(x, IR_OP_RESHAPE, (base_dtype)to->dtype, to->rank, dims, &v));
  TRY(from_hlo_transpose(x, &v, back));
  x->result = from_hlo_of_value(x->t, v);
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* --- dynamic reshape --- */

/* The sizes, which HLO has as scalars, become one tensor.
 *   dynamic-reshape(%x, %s0, %s1)    concatenate of reshape(%s0), reshape(%s1), then stablehlo.dynamic_reshape */
int from_hlo_dynamic_reshape(from_hlo_op *x) {
  ir_value *operands, two[2];
  const ir_type *type;
  const int64_t one = 1;
  uint32_t n = x->op->n_operands;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_type(x->t, x->op, x->op->type, &type));
  if (n < 2) return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_OPERANDS, "has no sizes");
  base_dtype dtype = (base_dtype)operands[1].op->types[operands[1].index]->dtype;
  const int64_t sizes = n - 1;
  const ir_type *list = ir_tensor(x->t->to, dtype, 1, &sizes, NULL, NULL, NULL);
  for (uint32_t i = 1; i < n; i++) TRY(from_hlo_retype(x, IR_OP_RESHAPE, dtype, 1, &one, &operands[i]));
  ir_op *joined = list ? from_hlo_emit(x, IR_OP_CONCATENATE, list, n - 1, operands + 1) : NULL;
  if (!joined) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, joined, "dimension", ir_m_i64(x->t->to, 0)));
  two[0] = operands[0];
  two[1] = (ir_value){joined, 0};
  ir_op *made;
  TRY(from_hlo_make(x, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, 2, two, 0, &made));
  return from_hlo_done(x, made);
}

/* --- convolution --- */

/* Whether every value of one number type is one of the other too. Truth fits any number, and nothing else fits it. A
 * float fits where exponent and mantissa do; an integer fits a float's mantissa; an unsigned one needs a bit more to
 * be signed. */
static bool from_hlo_fits(base_dtype from, base_dtype to) {
  assert(from != to);
  const base_dtype_info *a = base_dtype_of(from), *b = base_dtype_of(to);
  if (a->kind == BASE_KIND_PRED) return b->kind != BASE_KIND_PRED;
  if (a->kind == BASE_KIND_FLOAT && b->kind == BASE_KIND_FLOAT)
    return a->exponent_bits <= b->exponent_bits && a->mantissa_bits <= b->mantissa_bits;
  if (a->kind == BASE_KIND_FLOAT) return b->kind == BASE_KIND_COMPLEX && a->bits * 2 <= b->bits;
  if (b->kind == BASE_KIND_FLOAT) return a->kind != BASE_KIND_COMPLEX && a->bits <= b->mantissa_bits;
  if (a->kind == b->kind) return a->bits <= b->bits;
  return a->kind == BASE_KIND_UINT && b->kind == BASE_KIND_SINT && a->bits < b->bits;
}

/* StableHLO's operands are of one element type. HLO lets lhs and rhs differ (s8 by f32, say). The narrower is
 * converted, which is exact. */
static int from_hlo_common_dtype(from_hlo_op *x, ir_value *operands) {
  base_dtype a = (base_dtype)ir_operand(x->op, 0)->type->dtype, b = (base_dtype)ir_operand(x->op, 1)->type->dtype;
  if (a == b) return 0;
  bool left = from_hlo_fits(a, b);
  if (!left && !from_hlo_fits(b, a))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_OPERANDS, "no operand's element type holds the other's values");
  ir_value *v = &operands[left ? 0 : 1];
  const ir_type *type = ir_type_with_dtype(x->t->to, v->op->types[v->index], left ? b : a);
  *v = (ir_value){type ? from_hlo_emit(x, IR_OP_CONVERT, type, 1, v) : NULL, 0};
  return v->op ? 0 : from_hlo_no_memory(x->t);
}

/* What HLO may have beyond StableHLO's, a sparsity, is refused by name. */
int from_hlo_convolution(from_hlo_op *x) {
  ir_value *operands;
  ir_op *made;
  if (ir_attr_find(x->op, IR_ATTR_SPARSITY_CONFIG))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "StableHLO has no convolution with a sparsity_config");
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_common_dtype(x, operands));
  TRY(from_hlo_make(x, IR_OP_CONVOLUTION, 2, operands, 0, &made));
  TRY(from_hlo_attrs(x, made));
  TRY(from_hlo_window(x, made));
  return from_hlo_done(x, made);
}

/* --- attributes that the table of pairs has no row for --- */

/* Only what does not follow from the element type is said.
 *   direction=LT, type=TOTALORDER
 *   comparison_direction = LT, compare_type = TOTALORDER */
static int from_hlo_compare(from_hlo_op *x, ir_op *made) {
  int type = ir_get_word(x->op, IR_ATTR_TYPE), direction = ir_get_word(x->op, IR_ATTR_DIRECTION);
  ir_module *m = x->t->to;
  TRY(from_hlo_put(x, made, "comparison_direction", ir_m_enum(m, "stablehlo", "comparison_direction", direction)));
  if (type != IR_COMPARISON_TOTALORDER) return 0;
  return from_hlo_put(x, made, "compare_type", ir_m_enum(m, "stablehlo", "comparison_type", type));
}

/* Carries come last among operands and results: segment sizes {others, carries}. is_associative may be unknown, and
 * is then left out. */
static int from_hlo_scan(from_hlo_op *x, ir_op *made) {
  ir_module *m = x->t->to;
  int64_t carries = ir_get_int(x->op, IR_ATTR_NUM_CARRIES, 0), dimension = ir_get_ints(x->op, IR_ATTR_DIMENSIONS)->v[0];
  assert(carries >= 0 && carries <= made->n_operands && carries <= made->n_results);
  const int64_t sizes[2][2] = {{made->n_operands - carries, carries}, {made->n_results - carries, carries}};
  const char *names[2] = {"operandSegmentSizes", "resultSegmentSizes"};
  ir_truth associative = (ir_truth)ir_get_word(x->op, IR_ATTR_IS_ASSOCIATIVE);
  const ir_type *i32 = ir_element(m, XLAC_S32, NULL);
  TRY(from_hlo_put(x, made, "dimension", ir_m_i64(m, dimension)));
  TRY(from_hlo_put(x, made, "is_reverse", ir_m_bool(m, ir_get_bool(x->op, IR_ATTR_IS_REVERSE, false))));
  if (associative != IR_TRUTH_UNKNOWN)
    TRY(from_hlo_put(x, made, "is_associative", ir_m_bool(m, associative == IR_TRUTH_TRUE)));
  for (int i = 0; i < 2; i++) {
    const int64_t two = 2;
    const ir_type *type = ir_tensor(m, XLAC_S32, 1, &two, NULL, NULL, NULL);
    ir_literal *l = type ? ir_literal_new(m, type) : NULL;
    ir_mattr *a = l && i32 ? BASE_NEW(&m->arena, ir_mattr) : NULL;
    if (!a) return from_hlo_no_memory(x->t);
    for (int k = 0; k < 2; k++) ((int32_t *)l->data)[k] = (int32_t)sizes[i][k];
    a->kind = IR_M_DENSE_ARRAY;
    a->type = i32;
    a->v.literal = l;
    TRY(from_hlo_put(x, made, names[i], a));
  }
  return 0;
}

/* One dimension; 0 where HLO names none. */
static int from_hlo_sort(from_hlo_op *x, ir_op *made) {
  const ir_ints *dims = ir_get_ints(x->op, IR_ATTR_DIMENSIONS);
  return from_hlo_put(x, made, "dimension", ir_m_i64(x->t->to, dims->n ? dims->v[0] : 0));
}

/* By the opcode that was made, like from_hlo_attrs. */
static int from_hlo_own_attrs(from_hlo_op *x, ir_op *made) {
  switch (made->opcode) {
    case IR_OP_COMPARE:
      return from_hlo_compare(x, made);
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SELECT_AND_SCATTER:
      return from_hlo_window(x, made);
    case IR_OP_PAD:
      return from_hlo_padding(x, made);
    case IR_OP_SLICE:
      return from_hlo_slice(x, made);
    case IR_OP_SCAN:
      return from_hlo_scan(x, made);
    case IR_OP_SORT:
      return from_hlo_sort(x, made);
    default:
      return 0;
  }
}

/* --- ops that are the same in both forms --- */

/* Regions come last, since they need the op that owns them. */
int from_hlo_plain(from_hlo_op *x) {
  const ir_op *op = x->op;
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, (ir_opcode)op->opcode, op->n_operands, operands, op->n_called, &made));
  TRY(from_hlo_attrs(x, made));
  TRY(from_hlo_own_attrs(x, made));
  for (uint32_t i = 0; i < op->n_called; i++) TRY(from_hlo_region(x->t, op->called[i], made, i));
  return from_hlo_done(x, made);
}

/* --- ops with a rule of their own --- */

/* A constant of tuple type becomes one constant a leaf. */
static int from_hlo_one_constant(from_hlo_op *x, const ir_type *type, const ir_literal *l, const from_hlo_tree **out) {
  assert(l);
  from_hlo *t = x->t;
  if (ir_is_tuple(type)) {
    const from_hlo_tree **parts = BASE_ARRAY(&t->to->arena, const from_hlo_tree *, type->n_elements + 1u);
    if (!parts) return from_hlo_no_memory(t);
    for (uint32_t i = 0; i < type->n_elements; i++)
      TRY(from_hlo_one_constant(x, type->elements[i], l->elided ? l : l->elements[i], &parts[i]));
    *out = from_hlo_of_parts(t, type->n_elements, parts);
    return *out ? 0 : from_hlo_no_memory(t);
  }
  const ir_type *to;
  TRY(from_hlo_type(t, x->op, type, &to));
  if (!ir_is_tensor(to)) return from_hlo_fail(t, x->op, XLAC_E_VERIFY, "StableHLO has no constant of this type");
  ir_op *made = from_hlo_emit(x, IR_OP_CONSTANT, to, 0, NULL);
  if (!made) return from_hlo_no_memory(t);
  TRY(from_hlo_common(x, made));
  ir_mattr *a = l->elided ? BASE_NEW(&t->to->arena, ir_mattr) : NULL;
  if (a) { /* what HLO writes {...} MLIR writes dense_resource<__elided__> */
    a->kind = IR_M_RESOURCE;
    a->type = to;
    a->str = ir_intern(t->to, "__elided__", 10);
  }
  TRY(from_hlo_put(x, made, "value", l->elided ? a : from_hlo_literal(t, to, l)));
  *out = from_hlo_of_value(t, (ir_value){made, 0});
  return *out ? 0 : from_hlo_no_memory(t);
}

int from_hlo_constant(from_hlo_op *x) {
  return from_hlo_one_constant(x, x->op->type, x->op->u.literal, &x->result);
}

/* Nothing is made; see from_hlo.h. */
static int from_hlo_tuple(from_hlo_op *x) {
  x->result = from_hlo_of_parts(x->t, x->op->n_operands, x->operands);
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

static int from_hlo_element(from_hlo_op *x) {
  return from_hlo_part(x, x->operands[0], (uint32_t)ir_get_int(x->op, IR_ATTR_INDEX, 0), &x->result);
}

/* A copy is for layouts, which StableHLO has none of. */
static int from_hlo_same(from_hlo_op *x) {
  x->result = x->operands[0];
  return 0;
}

/* HLO takes a complex number for true when either part is not zero, StableHLO when the real part is not. */
static int from_hlo_convert(from_hlo_op *x) {
  const ir_type *from = ir_operand(x->op, 0)->type, *to;
  if (x->op->type->dtype != XLAC_PRED || !base_dtype_is_complex((base_dtype)from->dtype)) return from_hlo_plain(x);
  ir_value operand, parts[2];
  const ir_type *real = ir_type_with_dtype(x->t->to, ir_type_import(x->t->to, ir_bare(from)),
                                           base_dtype_real_part((base_dtype)from->dtype));
  TRY(from_hlo_type(x->t, x->op, x->op->type, &to));
  TRY(from_hlo_whole(x, x->operands[0], &operand));
  if (!real) return from_hlo_no_memory(x->t);
  for (int i = 0; i < 2; i++) {
    parts[i] = (ir_value){from_hlo_emit(x, i ? IR_OP_IMAG : IR_OP_REAL, real, 1, &operand), 0};
    if (parts[i].op) parts[i].op = from_hlo_emit(x, IR_OP_CONVERT, to, 1, &parts[i]);
    if (!parts[i].op) return from_hlo_no_memory(x->t);
  }
  ir_op *made;
  TRY(from_hlo_make(x, IR_OP_OR, 2, parts, 0, &made));
  return from_hlo_done(x, made);
}

/* StableHLO's third operand is the shape, as a constant. */
static int from_hlo_rng(from_hlo_op *x) {
  const ir_type *type = x->op->type;
  ir_module *m = x->t->to;
  const int64_t rank = type->rank;
  ir_value *operands, three[3];
  ir_op *made;
  if (type->has_dynamic) return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY, "StableHLO has no rng of dynamic dimensions");
  TRY(from_hlo_operands(x, &operands));
  const ir_type *shape = ir_tensor(m, XLAC_S64, 1, &rank, NULL, NULL, NULL);
  ir_op *dims = shape ? from_hlo_emit(x, IR_OP_CONSTANT, shape, 0, NULL) : NULL;
  if (!dims) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, dims, "value", ir_m_dense_i64(m, 1, &rank, type->dims)));
  three[0] = operands[0];
  three[1] = operands[1];
  three[2] = (ir_value){dims, 0};
  TRY(from_hlo_make(x, IR_OP_RNG, 3, three, 0, &made));
  TRY(from_hlo_attrs(x, made));
  return from_hlo_done(x, made);
}

/* HLO has a form that gives the bits alone. */
static int from_hlo_rng_bits(from_hlo_op *x) {
  if (ir_is_tuple(x->op->type)) return from_hlo_plain(x);
  const ir_type *types[2];
  ir_value operand;
  TRY(from_hlo_type(x->t, x->op, ir_operand(x->op, 0)->type, &types[0]));
  TRY(from_hlo_type(x->t, x->op, x->op->type, &types[1]));
  TRY(from_hlo_whole(x, x->operands[0], &operand));
  ir_op *made = from_hlo_emit_n(x, IR_OP_RNG_BIT_GENERATOR, 2, types, 1, &operand, 0);
  if (!made) return from_hlo_no_memory(x->t);
  TRY(from_hlo_attrs(x, made));
  x->result = from_hlo_of_value(x->t, (ir_value){made, 1});
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* chlo.top_k gives the largest. A top-k of the smallest is encoded. */
static int from_hlo_topk(from_hlo_op *x) {
  return ir_get_bool(x->op, IR_ATTR_LARGEST, true) ? from_hlo_plain(x) : from_hlo_encoded(x);
}

/* HLO's map repeats a scalar beside arrays, StableHLO's takes operands of one shape. */
static int from_hlo_map_operand(from_hlo_op *x, uint32_t i) {
  from_hlo *t = x->t;
  const ir_type *own = ir_operand_type(x->op, i), *to;
  ir_value scalar;
  if (own->rank == x->op->type->rank) return 0;
  assert(own->rank == 0);
  if (x->op->type->has_dynamic)
    return from_hlo_fail(t, x->op, XLAC_E_VERIFY,
                         "StableHLO has no map of a scalar beside arrays of dynamic dimensions");
  TRY(from_hlo_type(t, x->op, x->op->type, &to));
  TRY(from_hlo_whole(x, x->operands[i], &scalar));
  if (!(to = ir_type_with_dtype(t->to, to, (base_dtype)own->dtype))) return from_hlo_no_memory(t);
  ir_op *made = from_hlo_emit(x, IR_OP_BROADCAST, to, 1, &scalar);
  if (!made) return from_hlo_no_memory(t);
  TRY(from_hlo_put(x, made, "broadcast_dimensions", ir_m_i64s(t->to, 0, NULL)));
  x->operands[i] = from_hlo_of_value(t, (ir_value){made, 0});
  return x->operands[i] ? 0 : from_hlo_no_memory(t);
}

/* Operands that are made arrays replace their trees for this one op. */
static int from_hlo_map(from_hlo_op *x) {
  for (uint32_t i = 0; i < x->op->n_operands; i++) TRY(from_hlo_map_operand(x, i));
  return from_hlo_plain(x);
}

/* Opcodes without an entry are plain, or StableHLO lacks them. */
static from_hlo_fn *const from_hlo_rules[IR_OP_COUNT] = {
    [IR_OP_CONSTANT] = from_hlo_constant,
    [IR_OP_TUPLE] = from_hlo_tuple,
    [IR_OP_GET_TUPLE_ELEMENT] = from_hlo_element,
    [IR_OP_COPY] = from_hlo_same,
    [IR_OP_CONVERT] = from_hlo_convert,
    [IR_OP_BITCAST] = from_hlo_bitcast,
    [IR_OP_DYNAMIC_RESHAPE] = from_hlo_dynamic_reshape,
    [IR_OP_MAP] = from_hlo_map,
    [IR_OP_CONVOLUTION] = from_hlo_convolution,
    [IR_OP_RNG] = from_hlo_rng,
    [IR_OP_RNG_BIT_GENERATOR] = from_hlo_rng_bits,
    [IR_OP_TOPK] = from_hlo_topk,
    [IR_OP_STOCHASTIC_CONVERT] = from_hlo_encoded,
    [IR_OP_RNG_GET_AND_UPDATE_STATE] = from_hlo_encoded,
    [IR_OP_SCALED_DOT] = from_hlo_encoded,
    [IR_OP_DOMAIN] = from_hlo_encoded,
    [IR_OP_SHUFFLE] = from_hlo_encoded,
    [IR_OP_ADD_DEPENDENCY] = from_hlo_add_dependency,
    [IR_OP_AFTER_ALL] = from_hlo_after_all,
    [IR_OP_OPT_BARRIER] = from_hlo_barrier,
    [IR_OP_WHILE] = from_hlo_while,
    [IR_OP_CONDITIONAL] = from_hlo_conditional,
    [IR_OP_CALL] = from_hlo_call,
    [IR_OP_FUSION] = from_hlo_fusion,
    [IR_OP_CUSTOM_CALL] = from_hlo_custom_call,
    [IR_OP_ASYNC_START] = from_hlo_async_start,
    [IR_OP_ASYNC_UPDATE] = from_hlo_same,
    [IR_OP_ASYNC_DONE] = from_hlo_async_done,
    [IR_OP_COPY_START] = from_hlo_copy_start,
    [IR_OP_COPY_DONE] = from_hlo_copy_done,
    [IR_OP_ALL_GATHER_START] = from_hlo_collective_start,
    [IR_OP_ALL_GATHER_DONE] = from_hlo_collective_done,
    [IR_OP_ALL_REDUCE_START] = from_hlo_collective_start,
    [IR_OP_ALL_REDUCE_DONE] = from_hlo_collective_done,
    [IR_OP_COLLECTIVE_PERMUTE_START] = from_hlo_collective_start,
    [IR_OP_COLLECTIVE_PERMUTE_DONE] = from_hlo_collective_done,
    [IR_OP_COLLECTIVE_PERMUTE] = from_hlo_each,
    [IR_OP_COLLECTIVE_BROADCAST] = from_hlo_each,
    [IR_OP_REDUCE_SCATTER] = from_hlo_each,
    [IR_OP_ALL_TO_ALL] = from_hlo_all_to_all,
    [IR_OP_RAGGED_ALL_TO_ALL] = from_hlo_ragged_all_to_all,
    [IR_OP_INFEED] = from_hlo_infeed,
    [IR_OP_OUTFEED] = from_hlo_outfeed,
    [IR_OP_SEND] = from_hlo_send,
    [IR_OP_SEND_DONE] = from_hlo_send_done,
    [IR_OP_RECV] = from_hlo_recv,
    [IR_OP_RECV_DONE] = from_hlo_recv_done,
};

int from_hlo_one(from_hlo_op *x) {
  unsigned opcode = x->op->opcode;
  assert(opcode < IR_OP_COUNT);
  if (from_hlo_rules[opcode]) return from_hlo_rules[opcode](x);
  if (!ir_op_table[opcode].mlir)
    return base_hint(
        x->t->err,
        from_hlo_fail(x->t, x->op, XLAC_E_UNKNOWN_OPCODE, "StableHLO has no op for %s", ir_opcode_text(opcode)),
        "run a pass that replaces it by other ops first");
  return from_hlo_plain(x);
}
