/* From MLIR form to HLO form: StableHLO's reductions may compute in a wider element type than that of their operands,
 * that of their results, to which it promotes the operands; in HLO they are converted before. */
#include "to_hlo.h"

/* The parameter of x's last region whose type operand k is promoted to; NULL where there is none. */
static const ir_op *promote_param(const to_hlo_op *x, uint32_t k) {
  const ir_op *op = x->op;
  uint32_t n = op->n_results, at = 0;
  switch (op->opcode) {
    case IR_OP_ALL_REDUCE:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_COLLECTIVE_REDUCE:
    case IR_OP_SELECT_AND_SCATTER:
      break;
    case IR_OP_REDUCE:
    case IR_OP_REDUCE_WINDOW:
      at = n ? k % n : 0;
      break;
    case IR_OP_SCATTER: /* operands, indices, updates */
      if (k == n) return NULL;
      at = k < n ? k : k - n - 1;
      break;
    default:
      return NULL;
  }
  const ir_computation *region = op->n_called ? op->called[op->n_called - 1] : NULL;
  return region && at < region->n_params ? region->params[at] : NULL;
}

static bool promote_differs(const ir_type *from, const ir_type *to) {
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || (from->quant == NULL) != (to->quant == NULL)) return false;
  return from->dtype != to->dtype || !ir_quant_equal(from->quant, to->quant);
}

/* `from` with the elements of `to`. */
static const ir_type *promote_type(to_hlo *t, const ir_type *from, const ir_type *to) {
  bool dynamic[IR_MAX_RANK];
  for (uint32_t d = 0; d < from->rank; d++) dynamic[d] = ir_dim_is_dynamic(from, d);
  const ir_type *plain = ir_tensor_mlir(t->to, (base_dtype)to->dtype, to->quant, NULL, from->rank, from->dims,
                                        from->has_dynamic ? dynamic : NULL, NULL, t->err);
  return plain ? to_hlo_type(t, plain) : NULL;
}

static ir_opcode promote_opcode(const ir_type *to) {
  return to->quant ? IR_OP_UNIFORM_QUANTIZE : IR_OP_CONVERT;
}

/* The type that operand k is converted to where that is another than its own. */
static const ir_type *promote_goal(to_hlo_op *x, uint32_t k) {
  bool indices = x->op->opcode == IR_OP_SCATTER && k == x->op->n_results;
  if (indices && ir_is_tensor(x->operands[k]->type) && x->operands[k]->type->dtype == XLAC_PRED)
    return ir_scalar(x->t->to, XLAC_S32); /* StableHLO's scatter takes i1 for an integer, too */
  const ir_op *p = promote_param(x, k);
  return p ? p->type : x->operands[k]->type;
}

int to_hlo_promote(to_hlo_op *x) {
  for (uint32_t k = 0; k < x->op->n_operands; k++) {
    const ir_type *goal = promote_goal(x, k), *from = x->operands[k]->type;
    if (!goal) return to_hlo_no_memory(x->t);
    if (!promote_differs(from, goal)) continue;
    const ir_type *type = promote_type(x->t, from, goal);
    x->operands[k] = type ? to_hlo_emit(x, promote_opcode(type), type, 1, &x->operands[k], 0) : NULL;
    if (!x->operands[k]) return to_hlo_no_memory(x->t);
  }
  return 0;
}

int to_hlo_promote_params(to_hlo_op *x, ir_computation *region, const ir_type *to) {
  to_hlo_op inner = {.t = x->t, .into = region};
  for (uint32_t i = 0; i < region->n_params; i++) {
    ir_op *p = region->params[i];
    if (!promote_differs(p->type, to)) continue;
    const ir_type *wide = promote_type(x->t, p->type, to);
    ir_op *narrow = wide ? to_hlo_emit(&inner, promote_opcode(p->type), p->type, 1, &p, 0) : NULL;
    if (!narrow) return to_hlo_no_memory(x->t);
    if (!ir_replace_uses(p, narrow)) return to_hlo_no_memory(x->t);
    ir_set_operand(narrow, 0, (ir_value){p, 0});
    ir_op_move(narrow, p->next); /* before its users */
    ir_set_type(p, wide);
  }
  return 0;
}
