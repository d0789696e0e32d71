/* Whether HLO text holds all of a module: what compiled programs keep of StableHLO is shown in it, but not read back.
 */
#include "../../ir/verify/check.h"
#include "../text.h"

static bool type_has_text(const ir_type *t) {
  if (t->kind >= IR_TYPE_FUTURE || t->quant || t->text) return false;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!type_has_text(t->elements[i])) return false;
  return true;
}

/* Ops of MLIR that have no attributes are written by their names; others, and their attributes, are not. */
static bool op_has_text(const ir_op *op) {
  bool plain = ir_opcode_has_text(op->opcode) && op->opcode != IR_OP_UNREGISTERED;
  return plain && (!op->mlir || op->mlir->n == 0);
}

static int refuse_op(const ir_op *op, xlac_error *err) {
  const ir_mlir_info *info = ir_op_table[op->opcode].mlir;
  const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : info ? info->name : ir_opcode_text(op->opcode);
  return base_fail_at(err, XLAC_E_BAD_EXECUTABLE, op->line, op->col, op->name->s, "HLO text has no op for %s", name);
}

int text_check_hlo(const ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (!op_has_text(op)) return refuse_op(op, err);
      if (!type_has_text(op->type))
        return base_fail_at(err, XLAC_E_BAD_EXECUTABLE, op->line, op->col, op->name->s, "HLO text has no type for %s",
                            IR_SHOW(op->type));
    }
  }
  return 0;
}
