/* Folding as patterns: ops on constants, and control flow that constants decide. */
#include "../rewrite/fold.h"
#include "mlir_simplify.h"

static int fold_any(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(rw->folder != NULL);
  return opt_fold_op(rw, rw->folder, op, changed);
}

/* --- reduce --- */

/* A body that returns constants does so for every element, whatever the inputs are. */
static int fold_reduce_constant(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_computation *body = op->called[0];
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  if (body->n_results != op->n_results || op->n_results == 0) return 0;
  IR_FOR_OPS(inner, body)
  if (inner->opcode != IR_OP_PARAMETER && inner->opcode != IR_OP_CONSTANT) return 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (body->results[i].op->parent != body || !opt_uniform(body->results[i]) || !opt_is_static(op->types[i])) return 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    values[i] = opt_constant_data(rw, op->types[i], opt_uniform(body->results[i]), true);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* and, or of one known value with itself. */
static int fold_reduce_bool(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_computation *body = op->called[0];
  const ir_op *inner = body->last;
  if (op->n_results != 1 || op->n_operands != 2 || body->n_params != 2 || body->n_results != 1) return 0;
  if (!inner || (inner->opcode != IR_OP_AND && inner->opcode != IR_OP_OR) || body->n_ops != 3) return 0;
  if (body->results[0].op != inner || ir_operand(inner, 0) == ir_operand(inner, 1)) return 0;
  ir_value in = opt_operand(op, 0), init = opt_operand(op, 1);
  for (uint32_t i = 0; i < 2; i++)
    if (ir_operand(inner, i)->parent != body) return 0;
  if (opt_type(in)->dtype != XLAC_PRED || !opt_uniform(in) || !opt_uniform(init) || !opt_is_static(op->type)) return 0;
  if (!opt_is_static(opt_type(in)) || opt_type(in)->count == 0) return 0;
  /* Any number of equal values, and-ed or or-ed with the initial one; there is at least one element. */
  bool a = *(const uint8_t *)opt_uniform(in), b = *(const uint8_t *)opt_uniform(init);
  uint8_t result = inner->opcode == IR_OP_AND ? a && b : a || b;
  return opt_simplify_to_new(rw, op, opt_constant_data(rw, op->type, &result, true), changed);
}

/* --- control flow --- */

/* The condition is the constant false. */
static bool fold_never_runs(const ir_op *op) {
  return op->n_called == 2 && op->called[0]->n_results == 1 && opt_is_int(op->called[0]->results[0], 0);
}

/* Nothing in it says that it has effects: calls and ops that nobody knows count as having none. */
static bool fold_declares_nothing(const ir_op *op) {
  bool silent = op->opcode == IR_OP_CALL || op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_COMPOSITE;
  if (!silent && !opt_is_pure_alone(op)) return false;
  for (uint32_t i = 0; i < op->n_called; i++) IR_FOR_OPS(inner, op->called[i])
  if (!fold_declares_nothing(inner)) return false;
  return true;
}

/* A loop that never runs gives what it begins with. Where it may have effects it stays, unused. */
static int fold_while(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!fold_never_runs(op) || op->n_results != op->n_operands) return 0;
  bool used = opt_is_used(rw, op), pure = opt_is_pure(op);
  pure = pure || (rw->folder->assume_pure && fold_declares_nothing(op));
  if (!used && !pure) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  assert(op->called[0] && op->called[1]);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_results; i++) {
    values[i] = opt_operand(op, i);
    if (opt_type(values[i]) != op->types[i]) return 0;
  }
  opt_replace_results(rw, op, values);
  if (pure && !rw->failed) opt_erase(rw, op);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* The branch that a known index or predicate chooses takes the op's place. */
static int fold_branch(opt_rewriter *rw, ir_op *op, bool *changed) {
  const void *p = opt_uniform(opt_operand(op, 0));
  if (!p || op->n_called == 0) return 0;
  int64_t i = base_load_i64((base_dtype)ir_operand_type(op, 0)->dtype, p);
  /* The true branch is region 0. A case out of range takes the last branch, as the specification says. */
  if (op->opcode == IR_OP_IF) i = i == 0;
  if (i < 0 || i >= op->n_called) i = op->n_called - 1;
  const ir_computation *region = op->called[i];
  assert(i >= 0 && i < op->n_called);
  if (region->n_results != op->n_results) return 0;
  for (uint32_t k = 0; k < op->n_results; k++)
    if (opt_type(region->results[k]) != op->types[k]) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  opt_inline(rw, region, NULL, values);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* One element, which is number zero. */
static int fold_iota(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = op->type;
  if (!opt_is_static(t) || t->quant || t->count > 1 || !base_dtype_is_integer((base_dtype)t->dtype)) return 0;
  ir_value v = t->count ? opt_splat_int(rw, t, 0) : opt_constant_data(rw, t, NULL, false);
  return opt_simplify_to_new(rw, op, v, changed);
}

/* Neighbours in a concatenation that are splats of one value are one splat.
 * The replaced neighbour has the type of both together; a sum beyond int64 leaves the op as it is. */
static int fold_concat_splats(opt_rewriter *rw, ir_op *op, bool *changed) {
  int64_t dim = ir_m_get_int(op, "dimension", 0);
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  uint32_t n = 0;
  if (!parts) return (rw->failed = true), opt_rewriter_status(rw);
  if (dim < 0 || dim >= op->type->rank || op->type->quant) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = opt_operand(op, i);
    const void *a = n ? opt_uniform(parts[n - 1]) : NULL, *b = a ? opt_uniform(v) : NULL;
    if (b && memcmp(a, b, base_dtype_bytes((base_dtype)op->type->dtype)) == 0) {
      const ir_type *t = opt_type(v);
      int64_t dims[IR_MAX_RANK];
      memcpy(dims, t->dims, t->rank * sizeof *dims);
      if (!base_add_i64(dims[dim], opt_type(parts[n - 1])->dims[dim], &dims[dim])) return 0;
      v = opt_constant_data(rw, opt_tensor(rw, (base_dtype)t->dtype, t->rank, dims), a, true);
      TRY(opt_rewriter_status(rw));
      n--;
    }
    parts[n++] = v;
  }
  if (n == op->n_operands) return 0;
  ir_value v = n == 1 ? parts[0] : opt_concatenate(rw, n, parts, dim, op->type);
  return opt_simplify_to_new(rw, op, v, changed);
}

const opt_pattern opt_fold_patterns[] = {
    {IR_OP_INVALID, fold_any},
    {IR_OP_CONCATENATE, fold_concat_splats},
    {IR_OP_IOTA, fold_iota},
    {IR_OP_REDUCE, fold_reduce_constant},
    {IR_OP_REDUCE, fold_reduce_bool},
    {IR_OP_WHILE, fold_while},
    {IR_OP_CONDITIONAL, fold_branch},
    {IR_OP_IF, fold_branch},
    {IR_OP_INVALID, NULL},
};
