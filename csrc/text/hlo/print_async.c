/* Decides how async chains print: "add-start(x, y)" sugar when the wrapped computation is nothing but one op on its
 * parameters in order, so that the sugar says it all; else async-start(x, y), calls=%wrapped. XLA looks at less and
 * prints sugar that reads back as another program (operands swapped or repeated, constants lost). */
#include "print.h"

/* Wrapped ops whose sugar reads back as something else, or not at all: copy-start is an opcode of its own. */
static bool has_sugar_name(const ir_op *root) {
  switch (root->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_COPY:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_GATHER:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_SEND:
    case IR_OP_RECV:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
      return false;
    default:
      return true;
  }
}

/* Only parameters and the root, whose operands are the parameters in order. */
static bool is_one_op(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  if (!root || root->n_operands != c->n_params || c->n_ops != c->n_params + 1) return false;
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_use *use = &root->operands[i];
    if (!c->params[i] || use->op != c->params[i] || use->index != 0) return false;
  }
  return true;
}

/* Attributes that would stand twice in the sugar, or move between the start and the wrapped op. */
static bool keeps_attributes(const ir_op *start, const ir_op *root) {
  if (ir_attr_find(start, IR_ATTR_SHARDING) && ir_attr_find(root, IR_ATTR_SHARDING)) return false;
  return !ir_attr_find(start, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING) ||
         !ir_opcode_takes(root->opcode, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING, NULL);
}

/* Ops that call c, but for updates and dones, whose calls= only repeats their start's. */
static uint32_t count_callers(const ir_computation *c) {
  uint32_t n = 0;
  IR_FOR_COMPUTATIONS(other, c->module) {
    IR_FOR_OPS(op, other) {
      if (op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE) continue;
      for (uint32_t i = 0; i < op->n_called; i++) n += op->called[i] == c;
    }
  }
  return n;
}

static bool is_sugar_start(const ir_op *start, const uint32_t *callers) {
  assert(start->opcode == IR_OP_ASYNC_START);
  const ir_computation *c = start->n_called == 1 ? start->called[0] : NULL;
  if (!c || c == c->module->entry || !is_one_op(c) || start->n_operands != c->n_params) return false;
  const ir_op *root = ir_root(c);
  if (!has_sugar_name(root) || root->n_control_preds) return false;
  if (!keeps_attributes(start, root)) return false;
  return (callers ? callers[c->id] : count_callers(c)) == 1;
}

/* Long chains of updates cost one step an op, because their starts are remembered. */
const ir_op *text_async_start(text_printer *p, const ir_op *op, bool *is_sugar) {
  uint64_t known = 0;
  bool is_link = op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE;
  bool found = base_map_get(&p->chains, base_key(op), &known);
  if (!found && is_link && op->n_operands == 1) found = base_map_get(&p->chains, base_key(op->operands[0].op), &known);
  if (!found) {
    const ir_op *start = ir_async_start_of(op);
    if (start && start->n_called != 1) start = NULL;
    known = base_key(start) | (start && is_sugar_start(start, p->callers));
  }
  (void)base_map_set(&p->chains, base_key(op), known); /* only remembers: may run out of memory */
  *is_sugar = known & 1;
  assert(!*is_sugar || (known & ~(uint64_t)1));
  return (const ir_op *)(uintptr_t)(known & ~(uint64_t)1);
}
