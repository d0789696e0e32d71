/* Makers of common StableHLO ops. */
#include "rewrite.h"

const ir_type *opt_with_dtype(opt_rewriter *rw, const ir_type *t, base_dtype dtype) {
  if (!t) return NULL;
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(rw->m, dtype, NULL, NULL);
  return ir_tensor_mlir(rw->m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

const ir_type *opt_tensor(opt_rewriter *rw, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  return ir_tensor(rw->m, dtype, rank, dims, NULL, NULL, NULL);
}

ir_value opt_unary(opt_rewriter *rw, ir_opcode opcode, ir_value a) {
  return opt_make(rw, opcode, opt_type(a), 1, &a);
}

ir_value opt_binary(opt_rewriter *rw, ir_opcode opcode, ir_value a, ir_value b) {
  ir_value both[] = {a, b};
  return opt_make(rw, opcode, opt_type(a), 2, both);
}

ir_value opt_compare(opt_rewriter *rw, const char *direction, const char *kind, ir_value a, ir_value b) {
  ir_value both[] = {a, b};
  ir_value v = opt_make(rw, IR_OP_COMPARE, opt_with_dtype(rw, opt_type(a), XLAC_PRED), 2, both);
  opt_set(rw, v, "comparison_direction", ir_m_enum(rw->m, "stablehlo", "comparison_direction", direction));
  if (kind) opt_set(rw, v, "compare_type", ir_m_enum(rw->m, "stablehlo", "comparison_type", kind));
  return v;
}

ir_value opt_select(opt_rewriter *rw, ir_value pred, ir_value on_true, ir_value on_false) {
  ir_value all[] = {pred, on_true, on_false};
  return opt_make(rw, IR_OP_SELECT, opt_type(on_true), 3, all);
}

ir_value opt_convert(opt_rewriter *rw, ir_value a, base_dtype dtype) {
  return opt_make(rw, IR_OP_CONVERT, opt_with_dtype(rw, opt_type(a), dtype), 1, &a);
}

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

ir_value opt_splat(opt_rewriter *rw, const ir_type *type, double value) {
  ir_literal *l = make_scalar(rw, type);
  if (l) base_store_f64((base_dtype)type->dtype, l->data, value);
  return opt_constant(rw, type, l, true);
}

ir_value opt_splat_int(opt_rewriter *rw, const ir_type *type, int64_t value) {
  ir_literal *l = make_scalar(rw, type);
  if (l) base_store_i64((base_dtype)type->dtype, l->data, value);
  return opt_constant(rw, type, l, true);
}

static bool make_is_static(const ir_type *t) {
  return t && ir_is_tensor(t) && !t->has_dynamic;
}

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
  if (shape.op) shape.op->u.name = shape_of;
  ir_value both[] = {scalar, shape};
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, type, 2, both);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, 0, NULL));
  return v;
}

ir_value opt_i64s(opt_rewriter *rw, uint32_t n, const int64_t *v) {
  int64_t count = n;
  const ir_type *type = opt_tensor(rw, XLAC_S64, 1, &count);
  ir_value c = opt_make(rw, IR_OP_CONSTANT, type, 0, NULL);
  opt_set(rw, c, "value", ir_m_dense_i64(rw->m, 1, &count, v));
  return c;
}

ir_value opt_reshape(opt_rewriter *rw, ir_value a, const ir_type *type) {
  return opt_make(rw, IR_OP_RESHAPE, type, 1, &a);
}

ir_value opt_broadcast_in_dim(opt_rewriter *rw, ir_value a, const ir_type *type, const int64_t *dims) {
  ir_value v = opt_make(rw, IR_OP_BROADCAST, type, 1, &a);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, a.op ? opt_type(a)->rank : 0, dims));
  return v;
}

ir_value opt_concatenate(opt_rewriter *rw, uint32_t n, const ir_value *parts, int64_t dim, const ir_type *type) {
  ir_value v = opt_make(rw, IR_OP_CONCATENATE, type, n, parts);
  opt_set(rw, v, "dimension", ir_m_i64(rw->m, dim));
  return v;
}

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

static bool make_is_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT ||
         (op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, "arith.constant") == 0);
}

const ir_literal *opt_constant_of(ir_value v, bool *splat) {
  *splat = false;
  if (!v.op || !make_is_constant(v.op)) return NULL;
  const ir_mattr *a = ir_mattr_of(v.op, "value");
  if (!a || a->kind != IR_M_DENSE || !a->v.literal || a->v.literal->elided) return NULL;
  *splat = a->splat;
  return a->v.literal;
}
