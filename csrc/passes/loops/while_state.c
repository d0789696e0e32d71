#include "while_state.h"

uint32_t *while_count_callers(const ir_module *m, base_arena *arena) {
  uint32_t *callers = base_arena_zalloc(arena, ((size_t)m->n_computation_ids + 1) * sizeof *callers);
  if (!callers || m->n_computations == 1) return callers;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) callers[op->called[i]->id]++;
    }
  }
  return callers;
}

ir_op **while_list(const ir_module *m, opt_facts *facts, uint32_t *n) {
  uint32_t count = 0;
  *n = 0;
  for (uint32_t i = 0; i < facts->n_order && m->n_computations > 1; i++)
    IR_FOR_OPS(op, facts->order[i]) count += op->opcode == IR_OP_WHILE;
  ir_op **all = BASE_ARRAY(&facts->arena, ir_op *, (size_t)count + 1);
  for (uint32_t i = 0; all && count && i < facts->n_order && !m->config.is_scheduled; i++) {
    IR_FOR_OPS(op, facts->order[i]) {
      if (op->opcode == IR_OP_WHILE) all[(*n)++] = op;
    }
  }
  return all;
}

int64_t while_element_of(const ir_op *op, const ir_op *tuple) {
  return op->opcode == IR_OP_GET_TUPLE_ELEMENT && ir_operand(op, 0) == tuple ? ir_get_int(op, IR_ATTR_INDEX, 0) : -1;
}

static bool while_read_by_element(const ir_op *tuple) {
  IR_FOR_USES(use, tuple) {
    if (while_element_of(use->user, tuple) < 0) return false;
  }
  return !opt_is_result(tuple);
}

static bool while_is_free(const ir_op *op, const opt_facts *facts) {
  return !opt_in_edge(facts, op) && !ir_attr_find(op, IR_ATTR_SHARDING);
}

bool while_open(while_state *w, ir_op *loop, const opt_facts *facts, const uint32_t *callers) {
  if (loop->opcode != IR_OP_WHILE || loop->n_operands != 1 || !ir_is_tuple(loop->type)) return false;
  const ir_computation *condition = loop->called[0], *body = loop->called[1];
  if (callers[condition->id] != 1 || callers[body->id] != 1 || condition == loop->parent->module->entry) return false;
  ir_op *init = ir_operand(loop, 0);
  *w = (while_state){.loop = loop,
                     .init = init->opcode == IR_OP_TUPLE ? init : NULL,
                     .root = ir_root(body),
                     .inside = body->params[0],
                     .condition = condition->params[0],
                     .n = loop->type->n_elements};
  if (w->root->opcode != IR_OP_TUPLE || w->root->uses || !while_is_free(loop, facts) || !while_is_free(w->root, facts))
    return false;
  if (!while_is_free(w->inside, facts) || !while_is_free(w->condition, facts)) return false;
  if (w->inside->type != loop->type || w->condition->type != loop->type || init->type != loop->type) return false;
  if (w->root->type != loop->type) return false;
  return while_read_by_element(loop) && while_read_by_element(w->inside) && while_read_by_element(w->condition);
}

bool while_is_invariant(const while_state *w, uint32_t i) {
  return while_element_of(ir_operand(w->root, i), w->inside) == i;
}

/* Readers of the old state's elements read the new ones; those of elements that are gone have no readers. */
static bool while_move_elements(ir_op *tuple, const ir_type *type, const uint32_t *moved) {
  bool ok = true;
  ir_set_type(tuple, type);
  for (ir_use *use = tuple->uses, *next = NULL; use; use = next) {
    ir_op *reader = use->user;
    uint32_t to = moved[ir_get_int(reader, IR_ATTR_INDEX, 0)];
    next = use->next;
    if (to == UINT32_MAX)
      opt_remove(reader);
    else
      ok = ir_set_int(reader, IR_ATTR_INDEX, to) && ok;
  }
  return ok;
}

static ir_op *while_tuple_before(hlo_maker *x, const ir_op *before, const ir_type *type, ir_op *const *elements) {
  x->before = before;
  return hlo_tuple(x, type, elements);
}

bool while_set_state(while_state *w, hlo_maker *x, uint32_t n, ir_op *const *first, ir_op *const *next,
                     const uint32_t *moved) {
  base_arena scratch;
  base_arena_init(&scratch, x->m->alloc);
  const ir_type **types = BASE_ARRAY(&scratch, const ir_type *, (size_t)n + 1);
  for (uint32_t i = 0; types && i < n; i++) types[i] = first[i]->type;
  const ir_type *type = types ? ir_tuple(x->m, n, types) : NULL;
  base_arena_free(&scratch);
  ir_op *init = type ? while_tuple_before(x, w->loop, type, first) : NULL;
  ir_op *root = init ? while_tuple_before(x, w->root, type, next) : NULL;
  if (!root || !ir_set_root(w->root->parent, root)) return false;
  opt_remove(w->root);
  w->root = root;
  ir_set_operand(w->loop, 0, (ir_value){init, 0});
  if (w->init && !w->init->uses && !opt_is_result(w->init)) opt_remove(w->init);
  w->init = init;
  w->n = n;
  bool ok = while_move_elements(w->inside, type, moved) && while_move_elements(w->condition, type, moved);
  return while_move_elements(w->loop, type, moved) && ok;
}
