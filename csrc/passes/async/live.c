/* How much memory values take in an order of ops: each from the op that makes it to the last that reads it, also
 * through ops that only pass values on. A start holds its operands until its done, and has memory for its outputs,
 * which the done gives. What loops, branches and callees need inside is the same in any order and not counted. */
#include "model.h"

static bool async_passes_on(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_BITCAST:
    case IR_OP_OPT_BARRIER:
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_WHILE:
    case IR_OP_DYNAMIC_UPDATE_SLICE: /* usually done in place */
      return true;
    default:
      return (ir_opcode_info(op->opcode)->traits & (IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE)) != 0;
  }
}

int64_t async_live_bytes(const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_CONSTANT) return 0;
  if (!ir_opcode_has(op->opcode, IR_ASYNC_START)) return async_passes_on(op) ? 0 : ir_type_bytes(op->type);
  bool has_outputs = op->opcode != IR_OP_ALL_REDUCE_START && ir_is_tuple(op->type) && op->type->n_elements >= 2;
  if (!has_outputs) return ir_type_bytes(op->type);
  return ir_type_bytes(op->type->elements[op->opcode == IR_OP_COPY_START ? 0 : 1]);
}

bool async_live_begin(async_live *l, const async_costs *c, const ir_computation *of, base_arena *arena) {
  *l = (async_live){.costs = c, .uses = c->uses};
  size_t room = 1;
  IR_FOR_OPS(op, of) l->uses[op->id] = 0;
  IR_FOR_OPS(op, of) {
    for (uint32_t i = 0; i < op->n_operands; i++) l->uses[ir_operand(op, i)->id]++;
    room += op->n_operands + 1;
  }
  for (uint32_t i = 0; i < of->n_results; i++) l->uses[of->results[i].op->id]++;
  l->stack = BASE_ARRAY(arena, const ir_op *, room);
  return l->stack != NULL;
}

/* One read of op is over. */
static void async_live_drop(async_live *l, const ir_op *op) {
  uint32_t n = 0;
  l->stack[n++] = op;
  while (n) {
    const ir_op *top = l->stack[--n];
    assert(l->uses[top->id]);
    if (--l->uses[top->id]) continue;
    l->bytes -= async_live_bytes(top);
    const async_chain *chain = async_chain_of(l->costs, top);
    bool gone = chain && top == chain->start; /* the done has let its operands go */
    for (uint32_t i = 0; async_passes_on(top) && !gone && i < top->n_operands; i++) l->stack[n++] = ir_operand(top, i);
  }
}

void async_live_run(async_live *l, const ir_op *op) {
  const async_chain *chain = async_chain_of(l->costs, op);
  l->bytes += async_live_bytes(op);
  if (l->bytes > l->peak) l->peak = l->bytes;
  if (chain && op == chain->done)
    for (uint32_t i = 0; i < chain->start->n_operands; i++) async_live_drop(l, ir_operand(chain->start, i));
  if (l->uses[op->id] == 0) {
    l->uses[op->id] = 1; /* nobody reads it: gone at once */
    async_live_drop(l, op);
    if (async_passes_on(op)) return;
  } else if (async_passes_on(op)) {
    return;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) async_live_drop(l, ir_operand(op, i));
}
