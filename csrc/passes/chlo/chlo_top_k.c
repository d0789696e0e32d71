/* chlo.top_k: a descending sort of values and places together, of which the first k stay. */
#include "chlo.h"

/* Places along the last dimension, in the operand's shape. */
static ir_value top_k_places(opt_rewriter *rw, ir_value x, ir_value extents) {
  const ir_type *t = opt_type(x), *type = opt_with_dtype(rw, t, XLAC_S32);
  ir_value v =
      extents.op ? opt_make(rw, IR_OP_DYNAMIC_IOTA, type, 1, &extents) : opt_make(rw, IR_OP_IOTA, type, 0, NULL);
  opt_set(rw, v, "iota_dimension", ir_m_i64(rw->m, (int64_t)t->rank - 1));
  return v;
}

static void top_k_order(opt_rewriter *rw, ir_op *sort, base_dtype t) {
  ir_computation *into = rw->into;
  ir_op *before = rw->before;
  const ir_op *origin = rw->origin;
  ir_computation *c = opt_region(rw, sort, 0);
  if (!c) return;
  const ir_type *value = opt_tensor(rw, t, 0, NULL), *place = opt_tensor(rw, XLAC_S32, 0, NULL);
  ir_value a = opt_region_argument(rw, c, value), b = opt_region_argument(rw, c, value);
  opt_region_argument(rw, c, place);
  opt_region_argument(rw, c, place);
  opt_at_end(rw, c, origin);
  ir_value greater = opt_compare(rw, "GT", base_dtype_is_float(t) ? "TOTALORDER" : NULL, a, b);
  opt_set_results(rw, c, 1, &greater);
  rw->into = into;
  rw->before = before;
  rw->origin = origin;
}

static ir_op *top_k_sort(opt_rewriter *rw, const ir_op *op, ir_value x, ir_value places) {
  ir_value both[] = {x, places};
  const ir_type *types[] = {opt_type(x), opt_type(places)};
  ir_op *sort = opt_make_n(rw, IR_OP_SORT, 2, types, 2, both, 1);
  const ir_mattr *stable = ir_mattr_of(op, "is_stable");
  opt_set(rw, (ir_value){sort, 0}, "dimension", ir_m_i64(rw->m, (int64_t)opt_type(x)->rank - 1));
  opt_set(rw, (ir_value){sort, 0}, "is_stable", stable ? stable : ir_m_bool(rw->m, true));
  if (sort) top_k_order(rw, sort, (base_dtype)opt_type(x)->dtype);
  return sort;
}

/* The first k along the last dimension of a shape known at run time. */
static ir_value top_k_cut(opt_rewriter *rw, ir_value x, ir_value limits, const ir_type *type) {
  const ir_type *index = opt_type(limits);
  ir_value all[] = {x, opt_splat_int(rw, index, 0), limits, opt_splat_int(rw, index, 1)};
  return opt_make(rw, IR_OP_REAL_DYNAMIC_SLICE, type, 4, all);
}

static void top_k_dynamic(opt_rewriter *rw, ir_op *op, ir_value x, int64_t k, ir_value *results) {
  uint32_t rank = opt_type(x)->rank;
  ir_value sizes[IR_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) sizes[d] = opt_extent(rw, x, d);
  ir_op *sort = top_k_sort(rw, op, x, top_k_places(rw, x, opt_join_extents(rw, rank, sizes)));
  sizes[rank - 1] = opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), k);
  ir_value limits = opt_join_extents(rw, rank, sizes);
  for (uint32_t i = 0; i < 2; i++) results[i] = top_k_cut(rw, (ir_value){sort, i}, limits, op->types[i]);
}

static void top_k_static(opt_rewriter *rw, ir_op *op, ir_value x, int64_t k, ir_value *results) {
  const ir_type *t = opt_type(x);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    limits[d] = d + 1 == t->rank && k < t->dims[d] ? k : t->dims[d];
    strides[d] = 1;
  }
  ir_op *sort = top_k_sort(rw, op, x, top_k_places(rw, x, (ir_value){NULL, 0}));
  for (uint32_t i = 0; i < 2; i++) {
    results[i] = opt_slice(rw, (ir_value){sort, i}, starts, limits, strides);
    results[i] = opt_as_type(rw, results[i], op->types[i]);
  }
}

int opt_chlo_top_k(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value x = opt_operand(op, 0), results[2];
  const ir_type *t = opt_type(x);
  int64_t k = ir_m_get_int(op, "k", 0);
  bool places = ir_is_tensor(op->types[1]) && op->types[1]->dtype == XLAC_S32;
  if (!ir_is_tensor(t) || t->rank == 0 || t->quant || t->text || k < 0 || k > INT32_MAX || !places) return 0;
  if (opt_is_static(t))
    top_k_static(rw, op, x, k, results);
  else
    top_k_dynamic(rw, op, x, k, results);
  if (!rw->failed) opt_replace_op(rw, op, results);
  *changed = true;
  return 0;
}
