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

/* --- parts along one dimension --- */

/* t with size 1 along dimension d, or without it. */
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

static ir_value part_reshape(opt_rewriter *rw, ir_value v, const ir_type *type, uint32_t n, const ir_value *sizes) {
  if (!type || opt_is_static(type)) return opt_reshape(rw, v, type);
  ir_value both[] = {v, opt_join_extents(rw, n, sizes)};
  return opt_make(rw, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, type, 2, both);
}

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
