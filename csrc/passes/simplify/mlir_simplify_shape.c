/* Simplification of broadcasts, reshapes, transpositions, iotas, and of tensors without elements; and of dynamic ops
 * whose result type says all. Quantised types are left alone where scales could belong to a dimension that moves. */
#include "../refine/refine.h"
#include "mlir_simplify.h"

/* 0, 1, ..., n - 1. */
static bool shape_is_iota(const int64_t *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i] != i) return false;
  return true;
}

/* Not descending: dimensions keep their order. */
static bool shape_is_sorted(const int64_t *v, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (v[i] < v[i - 1]) return false;
  return true;
}

/* --- broadcast_in_dim --- */

/* As many elements, so none is repeated. */
static bool shape_same_count(const ir_op *op) {
  const ir_type *t = ir_operand_type(op, 0);
  return opt_is_static(t) && opt_is_static(op->type) && t->count == op->type->count;
}

/* A broadcast that repeats nothing: the operand itself, a reshape, or a transposition. */
static int shape_broadcast_moves(opt_rewriter *rw, ir_op *op, bool *changed) {
  uint32_t n = 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  int64_t permutation[IR_MAX_RANK] = {0};
  ir_value a = opt_operand(op, 0);
  if (!dims || op->type->quant) return 0;
  if (shape_is_iota(dims, n) && opt_type(a) == op->type) return opt_simplify_into(rw, op, a, changed);
  if (!shape_same_count(op)) return 0;
  if (shape_is_sorted(dims, n)) return opt_simplify_to_new(rw, op, opt_reshape(rw, a, op->type), changed);
  if (opt_type(a)->rank != op->type->rank || n != op->type->rank) return 0;
  for (uint32_t i = 0; i < n; i++) permutation[dims[i]] = i;
  return opt_simplify_to_new(rw, op, opt_transpose(rw, a, permutation), changed);
}

/* A broadcast of a broadcast, unless the inner one is a reshape.
 * dims o inner_dims: where the innermost operand's dimensions end up. */
static int shape_broadcast_twice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *inner = ir_operand(op, 0);
  uint32_t n = 0, n_inner = 0;
  if (inner->opcode != IR_OP_BROADCAST || op->type->quant || inner->type->quant) return 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  const int64_t *inner_dims = opt_ints(rw, inner, "broadcast_dimensions", &n_inner);
  int64_t merged[IR_MAX_RANK] = {0};
  if (!dims || (n_inner && !inner_dims)) return 0;
  if (shape_same_count(inner) && shape_is_sorted(inner_dims, n_inner)) return 0;
  for (uint32_t i = 0; i < n_inner; i++) merged[i] = dims[inner_dims[i]];
  ir_value v = opt_broadcast_in_dim(rw, opt_operand(inner, 0), op->type, merged);
  assert(n_inner <= IR_MAX_RANK);
  return opt_simplify_to_new(rw, op, v, changed);
}

/* --- reshape, transpose, reverse --- */

/* reshape(reshape(x)) is reshape(x). */
static int shape_reshape(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0);
  if (opt_type(a) == op->type) return opt_simplify_into(rw, op, a, changed);
  if (a.op->opcode != IR_OP_RESHAPE || op->type->quant || opt_type(a)->quant) return 0;
  return opt_simplify_to_new(rw, op, opt_reshape(rw, opt_operand(a.op, 0), op->type), changed);
}

/* first[permutation[i]]: the composition of both. */
static int shape_transpose_twice(opt_rewriter *rw, ir_op *op, const int64_t *permutation, uint32_t n, bool *changed) {
  const ir_op *inner = ir_operand(op, 0);
  uint32_t n_inner = 0;
  if (inner->opcode != IR_OP_TRANSPOSE) return 0;
  const int64_t *first = opt_ints(rw, inner, "permutation", &n_inner);
  int64_t merged[IR_MAX_RANK] = {0};
  if (!first || n_inner != n) return 0;
  for (uint32_t i = 0; i < n; i++) merged[i] = first[permutation[i]];
  ir_value a = opt_operand(inner, 0), v = opt_make(rw, IR_OP_TRANSPOSE, op->type, 1, &a);
  opt_set(rw, v, "permutation", ir_m_i64s(rw->m, n, merged));
  return opt_simplify_to_new(rw, op, v, changed);
}

/* Only dimensions of size 1 move. */
static bool shape_keeps_order(const ir_type *t, const int64_t *permutation, uint32_t n) {
  int64_t last = -1;
  for (uint32_t i = 0; i < n; i++) {
    if (t->dims[permutation[i]] == 1) continue;
    assert(i < n);
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

/* The identity, a composition, or a reshape where memory stays as it is. */
static int shape_transpose(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0);
  uint32_t n = 0;
  const int64_t *permutation = opt_ints(rw, op, "permutation", &n);
  if (n && !permutation) return 0;
  if (shape_is_iota(permutation, n)) return opt_simplify_into(rw, op, a, changed);
  TRY(shape_transpose_twice(rw, op, permutation, n, changed));
  if (*changed || op->type->quant || !opt_is_static(opt_type(a)) || !opt_is_static(op->type)) return 0;
  if (!shape_keeps_order(opt_type(a), permutation, n)) return 0;
  return opt_simplify_to_new(rw, op, opt_reshape(rw, a, op->type), changed);
}

/* Of a splat, or along dimensions of one element. */
static int shape_reverse(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value a = opt_operand(op, 0);
  uint32_t n = 0;
  const int64_t *dims = opt_ints(rw, op, "dimensions", &n);
  bool none = n == 0 || opt_uniform(a);
  if (!none) {
    none = true;
    for (uint32_t i = 0; i < n; i++) none = none && opt_type(a)->dims[dims[i]] == 1;
  }
  return none ? opt_simplify_to(rw, op, a, changed) : 0;
}

/* --- iota --- */

/* One line, broadcast: only `dim` counts. */
static int shape_iota(opt_rewriter *rw, ir_op *op, bool *changed) {
  int64_t dim = ir_m_get_int(op, "iota_dimension", 0);
  const ir_type *t = op->type;
  if (!opt_is_static(t) || t->quant || dim < 0 || dim >= t->rank) return 0;
  if (t->dims[dim] == 1) return opt_simplify_to_new(rw, op, opt_splat_int(rw, t, 0), changed);
  if (t->rank < 2) return 0;
  ir_value line = opt_make(rw, IR_OP_IOTA, opt_tensor(rw, (base_dtype)t->dtype, 1, &t->dims[dim]), 0, NULL);
  opt_set(rw, line, "iota_dimension", ir_m_i64(rw->m, 0));
  return opt_simplify_to_new(rw, op, opt_broadcast_in_dim(rw, line, t, &dim), changed);
}

/* --- no elements --- */

/* Plain types only: a literal of it can be made. */
static bool shape_is_empty(const ir_type *t) {
  return opt_is_static(t) && t->count == 0 && !t->quant && !t->text && !t->encoding;
}

static bool shape_is_stablehlo(const ir_op *op) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return info && strncmp(info->name, "stablehlo.", 10) == 0;
}

static ir_value shape_empty(opt_rewriter *rw, const ir_type *t) {
  return opt_constant(rw, t, ir_literal_new(rw->m, t), false);
}

/* Results and operands without elements are constants.
 * Constants of nothing, so that what computed them can go. */
static int shape_no_elements(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (op->opcode == IR_OP_CONSTANT || op->opcode == IR_OP_PARAMETER || !shape_is_stablehlo(op) || !opt_is_pure(op))
    return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  bool some = false;
  rw->failed = rw->failed || !values;
  for (uint32_t i = 0; !rw->failed && i < op->n_results; i++) {
    values[i] = opt_result(op, i);
    if (!shape_is_empty(op->types[i]) || !opt_is_result_used(rw, values[i])) continue;
    values[i] = shape_empty(rw, op->types[i]);
    some = true;
  }
  TRY(opt_rewriter_status(rw));
  if (some) opt_replace_results(rw, op, values);
  for (uint32_t i = 0; !rw->failed && i < op->n_operands; i++) {
    if (!shape_is_empty(ir_operand_type(op, i)) || ir_operand(op, i)->opcode == IR_OP_CONSTANT) continue;
    ir_value v = shape_empty(rw, ir_operand_type(op, i));
    if (!v.op) break;
    ir_set_operand(op, i, v);
    some = true;
  }
  *changed = *changed || some;
  return opt_rewriter_status(rw);
}

const opt_pattern opt_shape_patterns[] = {
    {IR_OP_INVALID, shape_no_elements},
    {IR_OP_BROADCAST, shape_broadcast_twice},
    {IR_OP_BROADCAST, shape_broadcast_moves},
    {IR_OP_RESHAPE, shape_reshape},
    {IR_OP_TRANSPOSE, shape_transpose},
    {IR_OP_REVERSE, shape_reverse},
    {IR_OP_IOTA, shape_iota},
    {IR_OP_INVALID, NULL},
};

/* Simplification of dynamic ops: those whose result type says all, and compositions. */

/* Ops of a tensor and a shape. */
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

/* Both types known: the shape operand says nothing more. */
static int dynamic_broadcast_static(opt_rewriter *rw, ir_op *op, bool *changed) {
  uint32_t n = 0;
  const int64_t *dims = opt_ints(rw, op, "broadcast_dimensions", &n);
  ir_value a = opt_operand(op, 0);
  if (!opt_is_static(opt_type(a)) || !opt_is_static(op->type) || (n && !dims)) return 0;
  return opt_simplify_to_new(rw, op, opt_broadcast_in_dim(rw, a, op->type, dims), changed);
}

/* The outer shape counts. */
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

/* shape.shape_of(v), of a dialect that is not registered. */
static bool dynamic_is_shape_of(const ir_op *op, ir_value v) {
  return op->opcode == IR_OP_UNREGISTERED && op->n_operands == 1 && strcmp(op->u.name->s, "shape.shape_of") == 0 &&
         opt_same_value(opt_operand(op, 0), v);
}

/* Broadcasts that expand nothing: to the operand's own shape, to the shape it was reshaped to, or along dimensions
 * that are declared not to expand. */
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
  assert(n == op->type->rank);
  return opt_simplify_to_new(rw, op, opt_make(rw, IR_OP_CONVERT, op->type, 1, &a), changed);
}

/* --- dynamic_iota, dynamic_reshape --- */

/* Static, or one line of the size along `dim`, broadcast. */
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

/* To a static type, of a reshape, or to the shape that the operand has had since an earlier reshape. */
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

/* A size that the type says. */
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
