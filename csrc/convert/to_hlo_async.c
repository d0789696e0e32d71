/* From MLIR form to HLO form: futures. A future that one async_done of the same block waits for becomes a chain; any
 * other, which HLO can't carry about, is the op itself where it starts. */
#include "to_hlo.h"

static bool future_waited_for_once(const ir_op *start) {
  const ir_use *use = start->uses;
  return use && !use->next && use->user->opcode == IR_OP_ASYNC_DONE && use->user->parent == start->parent;
}

/* Nothing but one op on the parameters in order. */
static bool future_is_one_op(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  if (c->n_ops != c->n_params + 1 || root->n_operands != c->n_params) return false;
  for (uint32_t i = 0; i < c->n_params; i++)
    if (ir_operand(root, i) != c->params[i]) return false;
  return true;
}

/* A copy that changes more than where its operand lies is no copy-start. */
static ir_opcode future_own_start(const ir_op *root) {
  ir_opcode own = ir_opcode_pair_start(root->opcode);
  if (own == IR_OP_COPY_START && root->type != ir_operand_type(root, 0)) own = IR_OP_INVALID;
  return own == IR_OP_INVALID ? IR_OP_ASYNC_START : own;
}

static const ir_type *future_start_type(to_hlo_op *x, ir_opcode start, const ir_op *root) {
  ir_module *m = x->t->to;
  if (start == IR_OP_ALL_REDUCE_START) return root->type;
  const ir_type **types = BASE_ARRAY(&m->arena, const ir_type *, root->n_operands + 1u);
  for (uint32_t i = 0; types && i < root->n_operands; i++) types[i] = ir_operand_type(root, i);
  const ir_type *operands = types ? ir_tuple(m, root->n_operands, types) : NULL, *word = ir_scalar(m, XLAC_U32);
  if (!operands || !word) return NULL;
  const ir_type *parts[4] = {operands, root->type, word, word};
  if (start != IR_OP_ASYNC_START && root->n_operands == 1) parts[0] = types[0];
  bool word_too = start == IR_OP_ASYNC_START || start == IR_OP_COPY_START;
  uint32_t n = word_too ? 3 : start == IR_OP_COLLECTIVE_PERMUTE_START ? 4 : 2;
  return ir_tuple(m, n, parts);
}

/* A pair of the op's own needs no computation. */
static int future_take_root(to_hlo_op *x, ir_op *start, ir_computation *c) {
  const ir_op *root = ir_root(c);
  for (uint32_t i = 0; i < root->n_attrs; i++)
    if (!ir_attr_set(start, root->attrs[i])) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < root->n_called; i++) start->called[i] = root->called[i];
  ir_computation_remove(c);
  return 0;
}

static int future_start_chain(to_hlo_op *x, ir_computation *c) {
  const ir_op *root = ir_root(c);
  ir_opcode opcode = future_own_start(root);
  const ir_type *t = future_start_type(x, opcode, root);
  uint32_t n_called = opcode == IR_OP_ASYNC_START ? 1 : root->n_called;
  ir_op *start = t ? to_hlo_emit(x, opcode, t, x->op->n_operands, x->operands, n_called) : NULL;
  if (!start) return to_hlo_no_memory(x->t);
  ir_attr_remove(start, IR_ATTR_SHARDING); /* the outcome's, which the done has */
  x->results[0] = start;
  if (opcode != IR_OP_ASYNC_START) return future_take_root(x, start, c);
  start->called[0] = c;
  c->hidden = true;
  return 0;
}

int to_hlo_async_start(to_hlo_op *x) {
  ir_computation *c;
  TRY(to_hlo_scalar_region(x, x->op->called[0], &c));
  if (future_waited_for_once(x->op) && future_is_one_op(c)) return future_start_chain(x, c);
  ir_op *made = to_hlo_emit(x, IR_OP_CALL, to_hlo_result_type(x), x->op->n_operands, x->operands, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = c;
  x->results[0] = made;
  return 0;
}

/* The start's sharding where the done has none. */
static int future_put_sharding(to_hlo_op *x, ir_op *made) {
  to_hlo_op start = *x;
  start.op = x->op->operands[0].op;
  if (ir_attr_find(made, IR_ATTR_SHARDING) || !ir_mattr_of(start.op, "mhlo.sharding")) return 0;
  return to_hlo_common(x->t, start.op, made);
}

int to_hlo_async_done(to_hlo_op *x) {
  ir_op *start = x->operands[0];
  if (x->op->n_results == 1 && ir_opcode_has(start->opcode, IR_ASYNC_START)) {
    ir_opcode opcode = (ir_opcode)ir_opcode_info(start->opcode)->done;
    x->results[0] = to_hlo_emit(x, opcode, to_hlo_result_type(x), 1, &start, 0);
    return x->results[0] ? future_put_sharding(x, x->results[0]) : to_hlo_no_memory(x->t);
  }
  if (x->op->n_results == 1) {
    x->results[0] = start;
    return 0;
  }
  return to_hlo_results(x, start);
}
