/* Simplification of dynamic ops: those whose result type says all, and compositions. */
#include "../refine/refine.h"
#include "mlir_simplify.h"

static ir_value dynamic_make(opt_rewriter *rw, ir_opcode opcode, const ir_type *type, ir_value a, ir_value shape) {
  ir_value both[] = {a, shape};
  return opt_make(rw, opcode, type, 2, both);
}

static bool dynamic_is_iota(const int64_t *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i] != i) return false;
  return true;
}

/* --- dynamic_broadcast_in_dim --- */

static int dynamic_broadcast_static(opt_rewriter *rw, ir_op *op, bool *changed) {
  uint32_t n = 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  ir_value a = opt_operand(op, 0);
  if (!opt_is_static(opt_type(a)) || !opt_is_static(op->type) || (n && !dims)) return 0;
  return opt_simplify_to_new(rw, op, opt_broadcast_in_dim(rw, a, op->type, dims), changed);
}

static int dynamic_broadcast_twice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *inner = ir_operand(op, 0);
  uint32_t n = 0, n_inner = 0;
  if (inner->opcode != IR_OP_DYNAMIC_BROADCAST_IN_DIM || op->type->quant || inner->type->quant) return 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  const int64_t *first = opt_ints(rw, inner, "broadcast_dimensions", &n_inner);
  int64_t merged[IR_MAX_RANK] = {0};
  if ((n_inner && !first) || (n && !dims)) return 0;
  for (uint32_t i = 0; i < n_inner; i++) merged[i] = dims[first[i]];
  ir_value v = dynamic_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, op->type, opt_operand(inner, 0), opt_operand(op, 1));
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, n_inner, merged));
  return opt_simplify_to_new(rw, op, v, changed);
}

static bool dynamic_is_shape_of(const ir_op *op, ir_value v) {
  return op->opcode == IR_OP_UNREGISTERED && op->n_operands == 1 && strcmp(op->u.name->s, "shape.shape_of") == 0 &&
         opt_same_value(opt_operand(op, 0), v);
}

/* Broadcasts that expand nothing. */
static int dynamic_broadcast_none(opt_rewriter *rw, ir_op *op, bool *changed) {
  uint32_t n = 0, n_kept = 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  ir_value a = opt_operand(op, 0), shape = opt_operand(op, 1);
  opt_ints(rw, op, "known_nonexpanding_dimensions", &n_kept);
  if (!dynamic_is_iota(dims, n) || n != op->type->rank || op->type->quant) return 0;
  if (dynamic_is_shape_of(shape.op, a)) return opt_simplify_to(rw, op, a, changed);
  if (a.op->opcode == IR_OP_STABLEHLO_DYNAMIC_RESHAPE && opt_same_value(opt_operand(a.op, 1), shape)) {
    ir_value v = dynamic_make(rw, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, op->type, opt_operand(a.op, 0), shape);
    return opt_simplify_to_new(rw, op, v, changed);
  }
  if (n == 0 || n_kept != n) return 0;
  return opt_simplify_to_new(rw, op, opt_make(rw, IR_OP_CONVERT, op->type, 1, &a), changed);
}

/* --- dynamic_iota, dynamic_reshape --- */

static int dynamic_iota(opt_rewriter *rw, ir_op *op, bool *changed) {
  int64_t dim = ir_m_get_int(op, "iota_dimension", 0);
  ir_value shape = opt_operand(op, 0);
  const ir_type *t = op->type;
  if (opt_is_static(t)) {
    ir_value v = opt_make(rw, IR_OP_IOTA, t, 0, NULL);
    opt_set(rw, v, "iota_dimension", ir_m_i64(rw->m, dim));
    return opt_simplify_to_new(rw, op, v, changed);
  }
  if (!ir_is_tensor(t) || t->rank < 2 || dim < 0 || dim >= t->rank || t->quant || opt_type(shape)->text) return 0;
  bool unknown = ir_dim_is_dynamic(t, (uint32_t)dim);
  ir_value sizes = opt_convert(rw, shape, XLAC_S64);
  ir_value size = opt_slice(rw, sizes, &dim, (int64_t[]){dim + 1}, (int64_t[]){1});
  const ir_type *line = ir_tensor_mlir(rw->m, (base_dtype)t->dtype, NULL, NULL, 1, &t->dims[dim], &unknown, NULL, NULL);
  ir_value iota = opt_make(rw, IR_OP_DYNAMIC_IOTA, line, 1, &size);
  opt_set(rw, iota, "iota_dimension", ir_m_i64(rw->m, 0));
  ir_value v = dynamic_make(rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, t, iota, shape);
  opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, 1, &dim));
  return opt_simplify_to_new(rw, op, v, changed);
}

/* An op on one operand whose result has its shape. */
static bool dynamic_keeps_shape(const ir_op *op) {
  return op->n_operands == 1 && op->n_results == 1 && ir_opcode_has(op->opcode, IR_ELEMENTWISE);
}

static int dynamic_reshape(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0), shape = opt_operand(op, 1);
  if (op->type->quant) return 0;
  if (opt_is_static(op->type)) return opt_simplify_to_new(rw, op, opt_reshape(rw, a, op->type), changed);
  if (a.op->opcode == IR_OP_STABLEHLO_DYNAMIC_RESHAPE) {
    ir_value v = dynamic_make(rw, IR_OP_STABLEHLO_DYNAMIC_RESHAPE, op->type, opt_operand(a.op, 0), shape);
    return opt_simplify_to_new(rw, op, v, changed);
  }
  if (!dynamic_keeps_shape(a.op)) return 0;
  const ir_op *inner = ir_operand(a.op, 0);
  bool again = inner->opcode == IR_OP_STABLEHLO_DYNAMIC_RESHAPE && opt_same_value(opt_operand(inner, 1), shape);
  return again ? opt_simplify_to(rw, op, a, changed) : 0;
}

/* The shape of what was reshaped to a shape. */
static int dynamic_shape_of(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (op->n_operands != 1 || op->n_results != 1 || strcmp(op->u.name->s, "shape.shape_of") != 0) return 0;
  const ir_op *a = ir_operand(op, 0);
  if (a->opcode != IR_OP_STABLEHLO_DYNAMIC_RESHAPE) return 0;
  return opt_simplify_to(rw, op, opt_operand(a, 1), changed);
}

static int dynamic_size(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  int64_t d = ir_m_get_int(op, "dimension", 0);
  if (!ir_is_tensor(t) || d < 0 || d >= t->rank || ir_dim_is_dynamic(t, (uint32_t)d) || !opt_is_static(op->type))
    return 0;
  return opt_simplify_to_new(rw, op, opt_splat_int(rw, op->type, t->dims[d]), changed);
}

const opt_pattern opt_dynamic_patterns[] = {
    {IR_OP_DYNAMIC_BROADCAST_IN_DIM, dynamic_broadcast_static},
    {IR_OP_DYNAMIC_BROADCAST_IN_DIM, dynamic_broadcast_twice},
    {IR_OP_DYNAMIC_BROADCAST_IN_DIM, dynamic_broadcast_none},
    {IR_OP_DYNAMIC_IOTA, dynamic_iota},
    {IR_OP_STABLEHLO_DYNAMIC_RESHAPE, dynamic_reshape},
    {IR_OP_UNREGISTERED, dynamic_shape_of},
    {IR_OP_GET_DIMENSION_SIZE, dynamic_size},
    {IR_OP_DYNAMIC_GATHER, opt_static_gather},
    {IR_OP_DYNAMIC_PAD, opt_static_pad},
    {IR_OP_REAL_DYNAMIC_SLICE, opt_static_slice},
    {IR_OP_REAL_DYNAMIC_SLICE, opt_static_dynamic_slice},
    {IR_OP_INVALID, NULL},
};
