/* Async chains: from a done or update back to the start. A module under edit may have broken chains, even cyclic ones.
 */
#include "ir.h"

ir_op *ir_async_start_of(const ir_op *op) {
  assert(op && op->parent);
  uint32_t steps = 0;
  while (op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE) {
    bool is_first = steps == 0;
    /* Each step goes to another op of the computation, so more steps than ops means a cycle. */
    if (op->n_operands != 1 || steps++ > op->parent->n_ops) return NULL;
    if (op->opcode == IR_OP_ASYNC_DONE && !is_first) return NULL; /* a done ends a chain */
    op = op->operands[0].op;
  }
  return op->opcode == IR_OP_ASYNC_START ? (ir_op *)op : NULL;
}

ir_computation *ir_async_wrapped(const ir_op *op) {
  const ir_op *start = ir_async_start_of(op);
  return start && start->n_called == 1 ? start->called[0] : NULL;
}
