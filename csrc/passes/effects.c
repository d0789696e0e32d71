/* What ops do besides computing, over all that they call, and edits of HLO modules. */
#include "effects.h"

#include "../interp/plan.h"

/* A custom call may read anything, but does something only where it says so.
 * What the facts are for: an op with none of them may be removed, merged, moved or computed early. OPT_EFFECT forbids
 * all of these, OPT_RANDOM merging and moving between computations, OPT_ENVIRONMENT computing at compile time,
 * OPT_ASYNC touching one link without the others. */
static unsigned own_facts(const ir_op *op) {
  unsigned facts = 0;
  if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT)) facts |= OPT_EFFECT;
  if (ir_opcode_has(op->opcode, IR_NONDETERMINISTIC)) facts |= OPT_RANDOM;
  if (ir_opcode_has(op->opcode, IR_COLLECTIVE)) facts |= OPT_ENVIRONMENT;
  if (ir_opcode_has(op->opcode, IR_ASYNC_START) || ir_opcode_has(op->opcode, IR_ASYNC_UPDATE) ||
      ir_opcode_has(op->opcode, IR_ASYNC_DONE))
    facts |= OPT_ASYNC;
  if (op->opcode == IR_OP_PARTITION_ID || op->opcode == IR_OP_REPLICA_ID) facts |= OPT_ENVIRONMENT;
  if (op->opcode == IR_OP_CUSTOM_CALL) {
    facts |= OPT_ENVIRONMENT;
    if (interp_call_has_effect(op)) facts |= OPT_EFFECT;
  }
  return facts;
}

/* Callees come before callers in f->order, so theirs are known. */
unsigned opt_op_facts(const opt_facts *f, const ir_op *op) {
  unsigned facts = own_facts(op);
  assert(op->n_called == 0 || op->called[0]);
  for (uint32_t i = 0; i < op->n_called; i++) facts |= f->of_computation[op->called[i]->id];
  return facts;
}

static void facts_of_edges(opt_facts *f, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    if (op->n_control_preds) f->in_edge[op->id] = 1;
    IR_FOR_CONTROL_PREDS(e, op) f->in_edge[e->pred->id] = 1;
  }
}

/* Linear in the ops; edges are looked for only where the module has any. */
int opt_facts_make(opt_facts *f, const ir_module *m, xlac_error *err) {
  memset(f, 0, sizeof *f);
  base_arena_init(&f->arena, m->alloc);
  f->n_ids = m->n_ids;
  f->order = ir_computation_order(m, &f->arena, &f->n_order);
  f->of_computation = base_arena_zalloc(&f->arena, (size_t)m->n_computation_ids + 1);
  f->in_edge = base_arena_zalloc(&f->arena, (size_t)m->n_ids + 1);
  if (!f->order || !f->of_computation || !f->in_edge) {
    opt_facts_free(f);
    return base_oom(err, "a pass");
  }
  for (uint32_t i = 0; i < f->n_order; i++) {
    IR_FOR_OPS(op, f->order[i]) f->of_computation[f->order[i]->id] |= (uint8_t)opt_op_facts(f, op);
    if (m->n_control_edges) facts_of_edges(f, f->order[i]);
  }
  return 0;
}

void opt_facts_free(opt_facts *f) {
  base_arena_free(&f->arena);
}

/* In a schedule every op comes after its operands already. */
ir_op **opt_op_order(const ir_computation *c, base_arena *arena, uint32_t *n) {
  if (!c->module->config.is_scheduled) return ir_post_order(c, arena, n);
  ir_op **order = BASE_ARRAY(arena, ir_op *, (size_t)c->n_ops + 1);
  *n = 0;
  if (order) IR_FOR_OPS(op, c) order[(*n)++] = op;
  return order;
}

bool opt_sort_ops(ir_computation *c, base_arena *arena) {
  uint32_t n = 0;
  if (c->module->config.is_scheduled) return true;
  ir_op **order = ir_post_order(c, arena, &n);
  for (uint32_t i = 0; order && i < n; i++) ir_op_move(order[i], NULL);
  return order != NULL;
}

/* Iterative: computations nest as deeply as the text says. */
uint8_t *opt_reachable(const ir_module *m, const uint8_t *roots, uint32_t n_roots, base_arena *arena) {
  uint8_t *seen = base_arena_zalloc(arena, (size_t)m->n_computation_ids + 1);
  const ir_computation **stack = BASE_ARRAY(arena, const ir_computation *, (size_t)m->n_computations + 1);
  if (!seen || !stack) return NULL;
  uint32_t n = 0;
  for (const ir_computation *c = m->first; c; c = c->next) {
    bool is_root = c == m->entry || (roots && c->id < n_roots && !roots[c->id]);
    if (is_root) seen[c->id] = 1, stack[n++] = c;
  }
  if (n == m->n_computations) return seen;
  while (n) {
    const ir_computation *c = stack[--n];
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) {
        if (seen[op->called[i]->id]) continue;
        seen[op->called[i]->id] = 1;
        stack[n++] = op->called[i];
      }
    }
  }
  return seen;
}

uint8_t *opt_called_by(const ir_module *m, base_arena *arena, ir_opcode opcode) {
  uint8_t *called = base_arena_zalloc(arena, (size_t)m->n_computation_ids + 1);
  if (!called) return NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; op->opcode == opcode && i < op->n_called; i++) called[op->called[i]->id] = 1;
    }
  }
  return called;
}
