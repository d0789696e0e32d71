/* Taking chains apart: the ops themselves stand where the done stood. */
#include "async.h"

ir_op *async_start_of_done(const ir_op *done) {
  if (done->opcode == IR_OP_ASYNC_DONE) return ir_async_start_of(done);
  ir_op *start = done->n_operands ? ir_operand(done, 0) : NULL;
  return start && start->opcode == ir_opcode_info(done->opcode)->start ? start : NULL;
}

static bool async_touches_edges(const async_edit *e, const ir_op *start, const ir_op *done) {
  if (!e->m->n_control_edges) return false;
  for (const ir_op *op = done; op != start; op = ir_operand(op, 0))
    if (async_in_edge(e, op)) return true;
  return async_in_edge(e, start);
}

static bool async_add_preds(ir_op *to, const ir_op *from) {
  for (uint32_t i = 0; i < from->n_control_preds; i++)
    if (from->control_preds[i] != to && !ir_add_control_pred(to, from->control_preds[i])) return false;
  return true;
}

static bool async_is_link_before(const ir_op *op, const ir_op *start, const ir_op *done) {
  for (const ir_op *link = ir_operand(done, 0);; link = ir_operand(link, 0)) {
    if (link == op) return true;
    if (link == start) return false;
  }
}

/* What waited for the start or an update need not wait for the end: it waits for what the start waited for. */
static bool async_pass_edges_on(const ir_op *start, const ir_op *done) {
  IR_FOR_OPS(op, start->parent) {
    for (uint32_t i = 0; i < op->n_control_preds;) {
      const ir_op *pred = op->control_preds[i];
      if (!async_is_link_before(pred, start, done)) {
        i++;
        continue;
      }
      ir_remove_control_pred(op, pred);
      if (op != start && !async_add_preds(op, start)) return false;
      i = 0;
    }
  }
  return true;
}

/* The ops from `first` to the done wait for what the chain waited for. */
static bool async_take_edges(ir_op *first, ir_op *start, ir_op *done) {
  if (!async_pass_edges_on(start, done)) return false;
  for (ir_op *link = done;; link = ir_operand(link, 0)) {
    for (ir_op *op = first; op && op != done; op = op->next)
      if (!async_add_preds(op, link)) return false;
    while (link->n_control_preds) ir_remove_control_pred(link, link->control_preds[0]);
    if (link == start) return true;
  }
}

static bool async_remove_chain(ir_op *start, ir_op *done, ir_op *result, bool edges) {
  if (edges ? !ir_replace_uses(done, result) : !opt_replace(done, result)) return false;
  for (ir_op *link = done, *next = NULL;; link = next) {
    next = link == start ? NULL : ir_operand(link, 0);
    edges ? ir_op_remove(link) : opt_remove(link);
    if (!next) return true;
  }
}

/* Copies of the wrapped ops before the done. */
static ir_op *async_copy_wrapped(async_edit *e, const ir_op *start, ir_op *done, ir_op **first) {
  const ir_computation *c = start->called[0];
  base_map map;
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &e->facts.arena, &n), *result = NULL;
  if (!order) return NULL;
  base_map_init(&map, e->m->alloc);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) {
    ir_op *copy = NULL;
    if (order[i]->opcode == IR_OP_PARAMETER) {
      copy = ir_operand(start, (uint32_t)order[i]->u.number);
    } else if ((copy = ir_op_clone(order[i], done->parent, &map))) {
      ir_op_move(copy, done);
      if (!*first) *first = copy;
    }
    ok = copy && base_map_set(&map, base_key(order[i]), base_key(copy));
    if (ok && order[i] == ir_root(c)) result = copy;
  }
  base_map_free(&map);
  return ok ? result : NULL;
}

static ir_op *async_unwrap_generic(async_edit *e, ir_op *start, ir_op *done) {
  ir_computation *c = start->called[0];
  ir_op *first = NULL, *result = async_copy_wrapped(e, start, done, &first);
  bool edges = async_touches_edges(e, start, done);
  if (!result) return NULL;
  for (ir_op *op = first; op && op != done; op = op->next)
    if (!async_own_callees(e, op, start->parent->execution_thread, 0)) return NULL;
  const ir_attr *sharding = ir_attr_find(done, IR_ATTR_SHARDING);
  if (first && sharding && !ir_attr_find(result, IR_ATTR_SHARDING) && !ir_attr_set(result, *sharding)) return NULL;
  if (edges && !async_take_edges(first, start, done)) return NULL;
  if (!async_remove_chain(start, done, result, edges)) return NULL;
  bool called_elsewhere = c->id >= e->n_computations || e->callers[c->id] > 1;
  if (!called_elsewhere) ir_computation_remove(c);
  return result;
}

/* The plain op of a first-class pair, before its done. */
static ir_op *async_make_plain(async_edit *e, const ir_op *start, ir_op *done, ir_opcode opcode) {
  const base_istr *name = ir_fresh_name(e->m, ir_opcode_text(opcode));
  ir_op *op = name ? ir_op_new(done->parent, opcode, done->type, name, start->n_operands, start->n_called) : NULL;
  if (!op) return NULL;
  ir_op_move(op, done);
  op->line = start->line, op->col = start->col;
  for (uint32_t i = 0; i < start->n_operands; i++)
    ir_set_operand(op, i, (ir_value){start->operands[i].op, start->operands[i].index});
  for (uint32_t i = 0; i < start->n_called; i++) op->called[i] = start->called[i];
  for (uint32_t i = 0; i < start->n_attrs; i++) {
    uint16_t key = start->attrs[i].key;
    bool kept = key != IR_ATTR_SHARDING && key != IR_ATTR_CROSS_PROGRAM_PREFETCH_INDEX;
    if (kept && !ir_attr_set(op, start->attrs[i])) return NULL;
  }
  const ir_attr *sharding = ir_attr_find(done, IR_ATTR_SHARDING);
  return !sharding || ir_attr_set(op, *sharding) ? op : NULL;
}

/* A wrapped start whose done would have to read the chain's done. Such a send or receive stays wrapped: outside, its
 * only consumer has to be its own done. */
static bool async_wraps_half(const ir_op *start) {
  const ir_op *root = start->opcode == IR_OP_ASYNC_START ? ir_root(start->called[0]) : NULL;
  return root &&
         (root->opcode == IR_OP_SEND || root->opcode == IR_OP_RECV || ir_opcode_has(root->opcode, IR_ASYNC_START));
}

ir_op *async_unwrap(async_edit *e, ir_op *done, bool *found) {
  ir_op *start = async_start_of_done(done);
  *found = start != NULL && !async_wraps_half(start);
  if (!*found) return NULL;
  if (start->opcode == IR_OP_ASYNC_START) return async_unwrap_generic(e, start, done);
  ir_opcode plain = async_plain_of(done->opcode);
  *found = plain != IR_OP_INVALID;
  if (!*found) return NULL;
  bool edges = async_touches_edges(e, start, done);
  ir_op *op = async_make_plain(e, start, done, plain);
  if (!op || (edges && !async_take_edges(op, start, done))) return NULL;
  return async_remove_chain(start, done, op, edges) ? op : NULL;
}
