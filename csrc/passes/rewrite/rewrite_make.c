/* Makers of common StableHLO ops, of values whose shape is known at run time only, and of counted loops. A maker
 * given an operand of NULL returns one: memory has run out before, and rw->failed says so. */
#include "rewrite.h"

/* The layout goes; bounds of dynamic dimensions (the encoding) stay. */
const ir_type *opt_with_dtype(opt_rewriter *rw, const ir_type *t, base_dtype dtype) {
  if (!t) return NULL;
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(rw->m, dtype, NULL, NULL);
  return ir_tensor_mlir(rw->m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

const ir_type *opt_tensor(opt_rewriter *rw, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ir_tensor(rw->m, dtype, rank, dims, NULL, NULL, NULL);
}

/* Of the operand's type: not for ops that change the element type (is_finite, real). */
ir_value opt_unary(opt_rewriter *rw, ir_opcode opcode, ir_value a) {
  return opt_make(rw, opcode, opt_type(a), 1, &a);
}

/* Both operands must have one type; nothing is broadcast. */
ir_value opt_binary(opt_rewriter *rw, ir_opcode opcode, ir_value a, ir_value b) {
  ir_value both[] = {a, b};
  return opt_make(rw, opcode, opt_type(a), 2, both);
}

/* The result has the operands' shape. NONE prints no compare_type, which StableHLO then infers from the element
 * type. */
ir_value opt_compare(opt_rewriter *rw, ir_direction direction, ir_comparison kind, ir_value a, ir_value b) {
  ir_value both[] = {a, b};
  ir_value v = opt_make(rw, IR_OP_COMPARE, opt_with_dtype(rw, opt_type(a), XLAC_PRED), 2, both);
  opt_set(rw, v, "comparison_direction", ir_m_enum(rw->m, "stablehlo", "comparison_direction", direction));
  if (kind) opt_set(rw, v, "compare_type", ir_m_enum(rw->m, "stablehlo", "comparison_type", kind));
  return v;
}

/* The predicate may be a scalar. */
ir_value opt_select(opt_rewriter *rw, ir_value pred, ir_value on_true, ir_value on_false) {
  ir_value all[] = {pred, on_true, on_false};
  return opt_make(rw, IR_OP_SELECT, opt_type(on_true), 3, all);
}

/* Shape and dynamic dimensions stay. */
ir_value opt_convert(opt_rewriter *rw, ir_value a, base_dtype dtype) {
  return opt_make(rw, IR_OP_CONVERT, opt_with_dtype(rw, opt_type(a), dtype), 1, &a);
}

/* The literal is the module's, and is not copied. */
ir_value opt_constant(opt_rewriter *rw, const ir_type *type, const ir_literal *literal, bool splat) {
  ir_value v = opt_make(rw, IR_OP_CONSTANT, type, 0, NULL);
  opt_set(rw, v, "value", literal && type ? ir_m_dense(rw->m, type, literal, splat) : NULL);
  return v;
}

/* One element for all. A type without elements keeps one too, as MLIR's own splats do. */
static ir_literal *make_scalar(opt_rewriter *rw, const ir_type *type) {
  const ir_type *scalar = type ? opt_tensor(rw, (base_dtype)type->dtype, 0, NULL) : NULL;
  return scalar ? ir_literal_new(rw->m, scalar) : NULL;
}

/* One element in memory however large the type is. */
ir_value opt_splat(opt_rewriter *rw, const ir_type *type, double value) {
  ir_literal *l = make_scalar(rw, type);
  if (l) base_store_f64((base_dtype)type->dtype, l->data, value);
  return opt_constant(rw, type, l, true);
}

/* For 64-bit integers that doubles don't hold. */
ir_value opt_splat_int(opt_rewriter *rw, const ir_type *type, int64_t value) {
  ir_literal *l = make_scalar(rw, type);
  if (l) base_store_i64((base_dtype)type->dtype, l->data, value);
  return opt_constant(rw, type, l, true);
}

static bool make_is_static(const ir_type *t) {
  return t && ir_is_tensor(t) && !t->has_dynamic;
}

/* MLIR's own way to a shape that is not known: shape.shape_of, of a dialect that is not registered here, and a
 * dynamic broadcast by it. CHLO's lowering produces this form, and later passes know it. */
ir_value opt_splat_like(opt_rewriter *rw, ir_value like, double value) {
  const ir_type *type = opt_type(like);
  if (!type || make_is_static(type)) return opt_splat(rw, type, value);
  ir_value scalar = opt_splat(rw, opt_tensor(rw, (base_dtype)type->dtype, 0, NULL), value);
  int64_t rank = type->rank;
  bool ranked = ir_is_tensor(type);
  bool unknown = true;
  const ir_type *extent =
      ir_tensor_mlir(rw->m, XLAC_S64, NULL, ir_intern(rw->m, "index", 5), 1, ranked ? &rank : &(int64_t){IR_UNBOUNDED},
                     ranked ? NULL : &unknown, NULL, NULL);
  const base_istr *shape_of = ir_intern(rw->m, "shape.shape_of", 14);
  ir_value shape = opt_make(rw, IR_OP_UNREGISTERED, extent, 1, &like);
  if (shape.op) ir_set_op_name(shape.op, shape_of);
  ir_value both[] = {scalar, shape};
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, type, 2, both);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, 0, NULL));
  return v;
}

/* Index tables and shapes. */
ir_value opt_i64s(opt_rewriter *rw, uint32_t n, const int64_t *v) {
  assert(n == 0 || v != NULL);
  int64_t count = n;
  const ir_type *type = opt_tensor(rw, XLAC_S64, 1, &count);
  ir_value c = opt_make(rw, IR_OP_CONSTANT, type, 0, NULL);
  opt_set(rw, c, "value", ir_m_dense_i64(rw->m, 1, &count, v));
  return c;
}

/* Always an op: patterns that care look at the type first. */
ir_value opt_reshape(opt_rewriter *rw, ir_value a, const ir_type *type) {
  return opt_make(rw, IR_OP_RESHAPE, type, 1, &a);
}

/* dims[i]: which dimension of the result operand dimension i becomes; NULL for a scalar. */
ir_value opt_broadcast_in_dim(opt_rewriter *rw, ir_value a, const ir_type *type, const int64_t *dims) {
  ir_value v = opt_make(rw, IR_OP_BROADCAST, type, 1, &a);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, a.op ? opt_type(a)->rank : 0, dims));
  return v;
}

ir_value opt_concatenate(opt_rewriter *rw, uint32_t n, const ir_value *parts, int64_t dim, const ir_type *type) {
  assert(n > 0);
  ir_value v = opt_make(rw, IR_OP_CONCATENATE, type, n, parts);
  opt_set(rw, v, "dimension", ir_m_i64(rw->m, dim));
  return v;
}

/* Sizes are rounded up: a stride that does not divide takes the last element it reaches. */
ir_value opt_slice(opt_rewriter *rw, ir_value a, const int64_t *starts, const int64_t *limits, const int64_t *strides) {
  const ir_type *t = opt_type(a);
  int64_t dims[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; t && d < t->rank; d++) {
    assert(strides[d] > 0 && starts[d] <= limits[d]);
    dims[d] = (limits[d] - starts[d] + strides[d] - 1) / strides[d];
  }
  const ir_type *type =
      t ? ir_tensor_mlir(rw->m, (base_dtype)t->dtype, t->quant, t->text, t->rank, dims, NULL, NULL, NULL) : NULL;
  ir_value v = opt_make(rw, IR_OP_SLICE, type, 1, &a);
  uint32_t rank = t ? t->rank : 0;
  opt_set(rw, v, "start_indices", ir_m_i64s(rw->m, rank, starts));
  opt_set(rw, v, "limit_indices", ir_m_i64s(rw->m, rank, limits));
  opt_set(rw, v, "strides", ir_m_i64s(rw->m, rank, strides));
  return v;
}

/* Dimension d of the result is permutation[d] of the operand. */
ir_value opt_transpose(opt_rewriter *rw, ir_value a, const int64_t *permutation) {
  const ir_type *t = opt_type(a);
  int64_t dims[IR_MAX_RANK] = {0};
  bool dynamic[IR_MAX_RANK] = {false};
  for (uint32_t d = 0; t && d < t->rank; d++) {
    dims[d] = t->dims[permutation[d]];
    dynamic[d] = ir_dim_is_dynamic(t, (uint32_t)permutation[d]);
  }
  const ir_type *type = t ? ir_tensor_mlir(rw->m, (base_dtype)t->dtype, t->quant, t->text, t->rank, dims,
                                           t->has_dynamic ? dynamic : NULL, NULL, NULL)
                          : NULL;
  ir_value v = opt_make(rw, IR_OP_TRANSPOSE, type, 1, &a);
  opt_set(rw, v, "permutation", ir_m_i64s(rw->m, t ? t->rank : 0, permutation));
  return v;
}

/* For several inputs a body of two scalars each would be needed; this is for one. */
void opt_make_reducer(opt_rewriter *rw, ir_op *reduce, ir_opcode opcode, const ir_type *scalar) {
  opt_rewriter at = *rw;
  ir_computation *body = opt_region(rw, reduce, 0);
  if (!body) return;
  ir_value a = opt_region_argument(rw, body, scalar), b = opt_region_argument(rw, body, scalar);
  opt_at_end(rw, body, at.origin);
  ir_value result = opt_binary(rw, opcode, a, b);
  opt_set_results(rw, body, 1, &result);
  rw->into = at.into;
  rw->before = at.before;
  rw->origin = at.origin;
}

/* The kept dimensions, in order. */
ir_value opt_reduce(opt_rewriter *rw, ir_opcode opcode, ir_value a, ir_value init, uint32_t n, const int64_t *dims) {
  const ir_type *t = opt_type(a);
  int64_t kept[IR_MAX_RANK] = {0};
  bool dynamic[IR_MAX_RANK] = {false};
  uint32_t rank = 0;
  for (uint32_t d = 0; t && d < t->rank; d++) {
    bool gone = false;
    for (uint32_t i = 0; i < n; i++) gone = gone || dims[i] == d;
    if (gone) continue;
    dynamic[rank] = ir_dim_is_dynamic(t, d);
    kept[rank++] = t->dims[d];
  }
  const ir_type *type =
      t ? ir_tensor_mlir(rw->m, (base_dtype)t->dtype, NULL, NULL, rank, kept, dynamic, NULL, NULL) : NULL;
  ir_value both[] = {a, init};
  ir_op *op = opt_make_n(rw, IR_OP_REDUCE, 1, &type, 2, both, 1);
  ir_value v = {op, 0};
  opt_set(rw, v, "dimensions", ir_m_i64s(rw->m, n, dims));
  if (op) opt_make_reducer(rw, op, opcode, opt_type(init));
  return v;
}

/* arith.constant, which shape computations use, has the same attribute. */
static bool make_is_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT || op->opcode == IR_OP_SDY_CONSTANT ||
         (op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, "arith.constant") == 0);
}

/* Elided constants ("dense_resource", "..." in text) have no elements to look at. */
const ir_literal *opt_constant_of(ir_value v, bool *splat) {
  *splat = false;
  if (!v.op || !make_is_constant(v.op)) return NULL;
  const ir_mattr *a = ir_mattr_of(v.op, "value");
  if (!a || a->kind != IR_M_DENSE || !a->v.literal || a->v.literal->elided) return NULL;
  *splat = a->splat;
  return a->v.literal;
}

/* Also of a constant that is spelled out but has equal elements. */
const void *opt_uniform(ir_value v) {
  bool splat = false;
  const ir_literal *l = opt_constant_of(v, &splat);
  if (!l || !l->data || opt_type(v)->quant) return NULL;
  size_t size = base_dtype_bytes((base_dtype)opt_type(v)->dtype);
  int64_t n = splat ? 1 : l->type->count;
  bool same = n > 0 && memcmp(l->data, (const char *)l->data + size, (size_t)(n - 1) * size) == 0;
  return same ? l->data : NULL;
}

/* Makers for values whose shape is known at run time only. */

/* i32 is what get_dimension_size gives. */
ir_value opt_extent(opt_rewriter *rw, ir_value a, uint32_t d) {
  assert(!opt_type(a) || d < opt_type(a)->rank);
  const ir_type *scalar = opt_tensor(rw, XLAC_S32, 0, NULL);
  const ir_type *t = opt_type(a);
  if (t && !ir_dim_is_dynamic(t, d) && t->dims[d] <= INT32_MAX) return opt_splat_int(rw, scalar, t->dims[d]);
  ir_value v = opt_make(rw, IR_OP_GET_DIMENSION_SIZE, scalar, 1, &a);
  opt_set(rw, v, "dimension", ir_m_i64(rw->m, d));
  return v;
}

/* Scalars become one-element tensors and are concatenated; no sizes are an empty tensor. */
ir_value opt_join_extents(opt_rewriter *rw, uint32_t n, const ir_value *extents) {
  assert(n <= IR_MAX_RANK);
  int64_t one = 1, count = n;
  const ir_type *cell = opt_tensor(rw, XLAC_S32, 1, &one), *whole = opt_tensor(rw, XLAC_S32, 1, &count);
  ir_value parts[IR_MAX_RANK];
  if (n == 0) return opt_splat_int(rw, whole, 0);
  for (uint32_t i = 0; i < n; i++) parts[i] = opt_reshape(rw, extents[i], cell);
  return n == 1 ? parts[0] : opt_concatenate(rw, n, parts, 0, whole);
}

/* The shape at run time as a tensor of i32 (for shape operands of dynamic ops); static sizes are constants in it. */
ir_value opt_extents(opt_rewriter *rw, ir_value a) {
  const ir_type *t = opt_type(a);
  ir_value extents[IR_MAX_RANK];
  for (uint32_t d = 0; t && d < t->rank; d++) extents[d] = opt_extent(rw, a, d);
  return opt_join_extents(rw, t ? t->rank : 0, extents);
}

/* dims NULL: an operand of rank 0. */
ir_value opt_dynamic_broadcast(opt_rewriter *rw, ir_value a, ir_value extents, const ir_type *type,
                               const int64_t *dims) {
  ir_value both[] = {a, extents};
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, type, 2, both);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, a.op ? opt_type(a)->rank : 0, dims));
  return v;
}

/* tensor<?xf32, #stablehlo.bounds<8>>: at most 8, so memory can be reserved. */
bool opt_is_bounded(const ir_type *t) {
  if (!t || !ir_is_tensor(t) || !t->has_dynamic) return false;
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] == IR_UNBOUNDED) return false;
  return true;
}

bool opt_is_static(const ir_type *t) {
  return t && ir_is_tensor(t) && !t->has_dynamic;
}

/* One set_dimension_size for each dynamic dimension. */
ir_value opt_set_extents(opt_rewriter *rw, ir_value a, ir_value like) {
  const ir_type *to = opt_type(like);
  bool dynamic[IR_MAX_RANK] = {false};
  for (uint32_t d = 0; a.op && to && d < to->rank; d++) {
    if (!ir_dim_is_dynamic(to, d)) continue;
    dynamic[d] = true;
    const ir_type *t = opt_type(a);
    const ir_type *type =
        ir_tensor_mlir(rw->m, (base_dtype)t->dtype, NULL, NULL, t->rank, t->dims, dynamic, NULL, NULL);
    ir_value both[] = {a, opt_extent(rw, like, d)};
    a = opt_make(rw, IR_OP_SET_DIMENSION_SIZE, type, 2, both);
    opt_set(rw, a, "dimension", ir_m_i64(rw->m, d));
  }
  return a;
}

/* Static, unbounded and bounded shapes each have their own way. */
ir_value opt_spread_like(opt_rewriter *rw, ir_value scalar, ir_value like) {
  const ir_type *t = opt_type(like);
  if (!scalar.op || !t || !ir_is_tensor(t)) {
    rw->failed = true;
    return (ir_value){NULL, 0};
  }
  const ir_type *type = opt_with_dtype(rw, t, (base_dtype)opt_type(scalar)->dtype);
  if (opt_is_static(t)) return opt_broadcast_in_dim(rw, scalar, type, NULL);
  if (!opt_is_bounded(t)) return opt_dynamic_broadcast(rw, scalar, opt_extents(rw, like), type, NULL);
  const ir_type *whole = opt_tensor(rw, (base_dtype)type->dtype, t->rank, t->dims);
  return opt_set_extents(rw, opt_broadcast_in_dim(rw, scalar, whole, NULL), like);
}

/* --- parts along one dimension --- */

/* t with size 1 along dimension d (keep), or without it. Other dynamic dimensions stay dynamic. */
static const ir_type *part_type(opt_rewriter *rw, const ir_type *t, uint32_t d, bool keep) {
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK] = {false};
  uint32_t rank = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i == d && !keep) continue;
    dynamic[rank] = i != d && ir_dim_is_dynamic(t, i);
    dims[rank++] = i == d ? 1 : t->dims[i];
  }
  return ir_tensor_mlir(rw->m, (base_dtype)t->dtype, NULL, NULL, rank, dims, dynamic, NULL, NULL);
}

/* To a type with dynamic dimensions only a dynamic_reshape leads, with the sizes computed. */
static ir_value part_reshape(opt_rewriter *rw, ir_value v, const ir_type *type, uint32_t n, const ir_value *sizes) {
  if (!type || opt_is_static(type)) return opt_reshape(rw, v, type);
  ir_value both[] = {v, opt_join_extents(rw, n, sizes)};
  return opt_make(rw, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, type, 2, both);
}

/* real_dynamic_slice takes starts, limits and strides as tensors. */
static ir_value part_take_dynamic(opt_rewriter *rw, ir_value x, uint32_t d, ir_value at) {
  const ir_type *t = opt_type(x);
  ir_value starts[IR_MAX_RANK], limits[IR_MAX_RANK], kept[IR_MAX_RANK];
  ir_value place = opt_convert(rw, at, XLAC_S32), zero = opt_splat_like(rw, place, 0);
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    starts[i] = i == d ? place : zero;
    limits[i] = i == d ? opt_binary(rw, IR_OP_ADD, place, opt_splat_like(rw, place, 1)) : opt_extent(rw, x, i);
    if (i != d) kept[n++] = limits[i];
  }
  ir_value first = opt_join_extents(rw, t->rank, starts), last = opt_join_extents(rw, t->rank, limits);
  ir_value all[] = {x, first, last, opt_splat_like(rw, first, 1)};
  ir_value v = opt_make(rw, IR_OP_REAL_DYNAMIC_SLICE, part_type(rw, t, d, true), 4, all);
  return part_reshape(rw, v, part_type(rw, t, d, false), n, kept);
}

ir_value opt_take(opt_rewriter *rw, ir_value x, uint32_t d, ir_value at) {
  const ir_type *t = opt_type(x);
  if (!t || !at.op) return (ir_value){NULL, 0};
  if (!opt_is_static(t)) return part_take_dynamic(rw, x, d, at);
  const ir_type *slice = part_type(rw, t, d, true);
  ir_value all[IR_MAX_RANK + 1] = {x}, zero = opt_splat_like(rw, at, 0);
  for (uint32_t i = 0; i < t->rank; i++) all[i + 1] = i == d ? at : zero;
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_SLICE, slice, t->rank + 1, all);
  opt_set(rw, v, "slice_sizes", slice ? ir_m_i64s(rw->m, t->rank, slice->dims) : NULL);
  return opt_reshape(rw, v, part_type(rw, t, d, false));
}

/* at is of i64, and so are the zeros of the other dimensions. */
ir_value opt_put(opt_rewriter *rw, ir_value x, ir_value part, uint32_t d, ir_value at) {
  const ir_type *t = opt_type(x);
  if (!t || !at.op) return (ir_value){NULL, 0};
  ir_value sizes[IR_MAX_RANK], all[IR_MAX_RANK + 2] = {x}, zero = opt_splat_like(rw, at, 0);
  for (uint32_t i = 0; i < t->rank; i++) {
    if (!opt_is_static(t))
      sizes[i] = i == d ? opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), 1) : opt_extent(rw, x, i);
    all[i + 2] = i == d ? at : zero;
  }
  all[1] = part_reshape(rw, part, part_type(rw, t, d, true), t->rank, sizes);
  return opt_make(rw, IR_OP_DYNAMIC_UPDATE_SLICE, t, t->rank + 2, all);
}

/* A counted loop. */

static ir_value loop_i64(opt_rewriter *rw, int64_t v) {
  return opt_splat_int(rw, opt_tensor(rw, XLAC_S64, 0, NULL), v);
}

/* A region with the state's arguments; index and state may be NULL.
 * Arguments are the index, then the state. */
static ir_computation *loop_region(opt_rewriter *rw, opt_loop *loop, uint32_t which) {
  assert(which < 2);
  ir_computation *c = opt_region(rw, loop->op, which);
  for (uint32_t i = 0; c && i <= loop->n; i++) {
    ir_value v = opt_region_argument(rw, c, loop->op->types[i]);
    if (i == 0)
      loop->index = v;
    else
      loop->state[i - 1] = v;
  }
  return rw->failed ? NULL : c;
}

/* stablehlo.while (%i = 0, state = inits) cond { %i < limit } do { ... the caller's ops ... }. */
void opt_loop_begin(opt_rewriter *rw, opt_loop *loop, ir_value limit, uint32_t n, const ir_value *inits) {
  *loop = (opt_loop){.n = n, .into = rw->into, .before = rw->before, .origin = rw->origin};
  loop->state = BASE_ARRAY(&rw->arena, ir_value, (size_t)n + 1);
  ir_value *all = BASE_ARRAY(&rw->arena, ir_value, (size_t)n + 1);
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)n + 1);
  rw->failed = rw->failed || !loop->state || !all || !types;
  if (rw->failed) return;
  all[0] = loop_i64(rw, 0);
  for (uint32_t i = 0; i < n; i++) all[i + 1] = inits[i];
  for (uint32_t i = 0; i <= n; i++) types[i] = opt_type(all[i]);
  loop->op = opt_make_n(rw, IR_OP_WHILE, n + 1, types, n + 1, all, 2);
  ir_computation *condition = loop->op ? loop_region(rw, loop, 0) : NULL;
  if (!condition) return;
  opt_at_end(rw, condition, loop->origin);
  ir_value more = opt_compare(rw, IR_DIRECTION_LT, IR_COMPARISON_NONE, loop->index, limit);
  opt_set_results(rw, condition, 1, &more);
  loop->body = loop_region(rw, loop, 1);
  if (loop->body) opt_at_end(rw, loop->body, loop->origin);
}

/* The body returns index + 1 and the next state; the cursor is where it was before opt_loop_begin. */
void opt_loop_end(opt_rewriter *rw, opt_loop *loop, const ir_value *next, ir_value *results) {
  ir_value *all = BASE_ARRAY(&rw->arena, ir_value, (size_t)loop->n + 1);
  rw->failed = rw->failed || !all;
  if (!rw->failed) {
    all[0] = opt_binary(rw, IR_OP_ADD, loop->index, loop_i64(rw, 1));
    for (uint32_t i = 0; i < loop->n; i++) all[i + 1] = next[i];
    opt_set_results(rw, loop->body, loop->n + 1, all);
  }
  rw->into = loop->into;
  rw->before = loop->before;
  rw->origin = loop->origin;
  for (uint32_t i = 0; i < loop->n; i++) results[i] = (ir_value){rw->failed ? NULL : loop->op, i + 1};
}
