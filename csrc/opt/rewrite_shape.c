/* Makers for values whose shape is known at run time only. */
#include "rewrite.h"

ir_value opt_extent(opt_rewriter *rw, ir_value a, uint32_t d) {
  const ir_type *scalar = opt_tensor(rw, XLAC_S32, 0, NULL);
  const ir_type *t = opt_type(a);
  if (t && !ir_dim_is_dynamic(t, d) && t->dims[d] <= INT32_MAX) return opt_splat_int(rw, scalar, t->dims[d]);
  ir_value v = opt_make(rw, IR_OP_GET_DIMENSION_SIZE, scalar, 1, &a);
  opt_set(rw, v, "dimension", ir_m_i64(rw->m, d));
  return v;
}

ir_value opt_join_extents(opt_rewriter *rw, uint32_t n, const ir_value *extents) {
  int64_t one = 1, count = n;
  const ir_type *cell = opt_tensor(rw, XLAC_S32, 1, &one), *whole = opt_tensor(rw, XLAC_S32, 1, &count);
  ir_value parts[IR_MAX_RANK];
  if (n == 0) return opt_splat_int(rw, whole, 0);
  for (uint32_t i = 0; i < n; i++) parts[i] = opt_reshape(rw, extents[i], cell);
  return n == 1 ? parts[0] : opt_concatenate(rw, n, parts, 0, whole);
}

ir_value opt_extents(opt_rewriter *rw, ir_value a) {
  const ir_type *t = opt_type(a);
  ir_value extents[IR_MAX_RANK];
  for (uint32_t d = 0; t && d < t->rank; d++) extents[d] = opt_extent(rw, a, d);
  return opt_join_extents(rw, t ? t->rank : 0, extents);
}

ir_value opt_dynamic_broadcast(opt_rewriter *rw, ir_value a, ir_value extents, const ir_type *type,
                               const int64_t *dims) {
  ir_value both[] = {a, extents};
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, type, 2, both);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, a.op ? opt_type(a)->rank : 0, dims));
  return v;
}

bool opt_is_bounded(const ir_type *t) {
  if (!t || !ir_is_tensor(t) || !t->has_dynamic) return false;
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] == IR_UNBOUNDED) return false;
  return true;
}

bool opt_is_static(const ir_type *t) {
  return t && ir_is_tensor(t) && !t->has_dynamic;
}

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
