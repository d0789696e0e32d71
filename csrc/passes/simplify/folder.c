/* Which ops are folded, and what folds without being evaluated. */
#include "folder.h"

#include "mlir_simplify.h"

static bool folder_is_shape_op(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ADD:
    case IR_OP_AND:
    case IR_OP_BROADCAST:
    case IR_OP_CLAMP:
    case IR_OP_COMPARE:
    case IR_OP_CONCATENATE:
    case IR_OP_CONVERT:
    case IR_OP_DIVIDE:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
    case IR_OP_MULTIPLY:
    case IR_OP_OR:
    case IR_OP_REMAINDER:
    case IR_OP_RESHAPE:
    case IR_OP_SELECT:
    case IR_OP_SIGN:
    case IR_OP_SLICE:
    case IR_OP_SUBTRACT:
      return true;
    default:
      return false;
  }
}

static bool folder_is_other_op(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ABS:
    case IR_OP_COSINE:
    case IR_OP_ERF:
    case IR_OP_EXP:
    case IR_OP_LOG:
    case IR_OP_LOGISTIC:
    case IR_OP_NEGATE:
    case IR_OP_NOT:
    case IR_OP_REVERSE:
    case IR_OP_ROUND_NEAREST_AFZ:
    case IR_OP_ROUND_NEAREST_EVEN:
    case IR_OP_RSQRT:
    case IR_OP_SINE:
    case IR_OP_SQRT:
    case IR_OP_TAN:
    case IR_OP_TANH:
    case IR_OP_TRANSPOSE:
    case IR_OP_XOR:
      return true;
    default:
      return false;
  }
}

static bool folder_is_integral(const ir_type *t) {
  return ir_is_tensor(t) && (t->dtype == XLAC_PRED || base_dtype_is_integer((base_dtype)t->dtype));
}

static bool folder_all_integral(const ir_op *op) {
  bool all = folder_is_integral(op->type);
  for (uint32_t i = 0; all && i < op->n_operands; i++) all = folder_is_integral(ir_operand_type(op, i));
  return all;
}

/* --- sizes that types tell --- */

static int folder_dimension_size(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  int64_t d = ir_m_get_int(op, "dimension", 0);
  if (!ir_is_tensor(t) || d < 0 || d >= t->rank || ir_dim_is_dynamic(t, (uint32_t)d) || op->type->has_dynamic) return 0;
  opt_at(rw, op);
  opt_replace_one(rw, op, opt_splat_int(rw, op->type, t->dims[d]));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* A size that is set to what it is. */
static int folder_set_size(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  int64_t d = ir_m_get_int(op, "dimension", 0);
  bool splat = false;
  const ir_literal *l = opt_constant_of(opt_operand(op, 1), &splat);
  if (!l || !l->data || !ir_is_tensor(t) || t->has_dynamic || d < 0 || d >= t->rank || op->type != t) return 0;
  if (base_load_i64((base_dtype)ir_operand_type(op, 1)->dtype, l->data) != t->dims[d]) return 0;
  opt_replace_one(rw, op, opt_operand(op, 0));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Wherever it begins, a slice of one value is that value. */
static int folder_splat_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const void *p = opt_uniform(opt_operand(op, 0));
  if (!p || !opt_is_static(op->type) || op->type->quant) return 0;
  return opt_simplify_to(rw, op, opt_constant_data(rw, op->type, p, true), changed);
}

int opt_fold_op(opt_rewriter *rw, const opt_folder *f, ir_op *op, bool *changed) {
  opt_at(rw, op); /* not every caller is a pattern */
  if (op->opcode == IR_OP_GET_DIMENSION_SIZE) return folder_dimension_size(rw, op, changed);
  if (op->opcode == IR_OP_SET_DIMENSION_SIZE) return folder_set_size(rw, op, changed);
  if (!folder_is_shape_op(op->opcode) && (f->shapes_only || !folder_is_other_op(op->opcode))) return 0;
  if ((f->shapes_only || f->no_floats) && !folder_all_integral(op)) return 0;
  if (op->opcode == IR_OP_DYNAMIC_SLICE) TRY(folder_splat_slice(rw, op, changed));
  return *changed ? 0 : opt_fold(rw, op, f->max_elements, changed);
}
