/* The module's skeleton: what every later check, printer and interpreter relies on. Runs on anything a reader or an
 * editor made, so it may follow no pointer that it has not looked at, and recurses nowhere as deep as a program is
 * long.
 *
 * Each computation has a root of its own, parameters 0 to n-1, operands from the same computation (regions may use
 * values from outside); no op depends on itself; no computation calls itself; names are unique; a schedule has
 * operands before their users. */
#include "verify.h"

/* At the computation's own line. */
static int fail_computation(const ir_computation *c, xlac_error *err, const char *what) {
  return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, c->line, c->col, c->name->s, "computation %s %s", c->name->s, what);
}

/* A number that two ops have is found from the op that lost its place to the other. */
static int check_parameters(const ir_computation *c, xlac_error *err) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i])
      return base_hint(
          err,
          base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, c->line, c->col, c->name->s,
                       "computation %s has %u parameters but none numbered %u", c->name->s, c->n_params, i),
          "number parameters 0, 1, 2, ... without gaps");
  IR_FOR_OPS(op, c) {
    if (op->opcode != IR_OP_PARAMETER) continue;
    if (op->u.number < 0 || op->u.number >= c->n_params || c->params[op->u.number] != op)
      return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "has number %lld, which another parameter of %s has too",
                            (long long)op->u.number, c->name->s);
  }
  return 0;
}

/* Every result is a value of this very computation. */
static int check_root(const ir_computation *c, xlac_error *err) {
  if (c->n_results == 0 || !c->results[0].op) return fail_computation(c, err, "has no root; expected one ROOT op");
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op->parent != c) return fail_computation(c, err, "returns an op of another computation");
  return 0;
}

/* Everything that an op points to is there and where it should be. */
static int check_neighbours(const ir_op *op, xlac_error *err) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!op->operands[i].op) return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "has no operand %u", i);
    if (op->operands[i].op->parent != op->parent && !op->parent->owner)
      return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "uses %s of another computation",
                            op->operands[i].op->name->s);
  }
  IR_FOR_CONTROL_PREDS(e, op)
  if (e->pred->parent != op->parent)
    return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "has control predecessor %s of another computation",
                          e->pred->name->s);
  for (uint32_t i = 0; i < op->n_called; i++)
    if (!op->called[i] || op->called[i]->module != op->parent->module)
      return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "calls no computation of this module at place %u", i);
  if (!op->type) return ir_verify_fail(op, XLAC_E_VERIFY_STRUCTURE, err, "has no type");
  return 0;
}

/* Marks of the two depth-first searches below, one byte per id. */
enum { WALK_UNSEEN = 0, WALK_OPEN = 1, WALK_CLOSED = 2 };

typedef struct walk_frame {
  const void *node;
  uint32_t next;            /* which operand comes next */
  const ir_control *waited; /* which control edge, after the operands */
} walk_frame;
BASE_VEC(walk_stack, walk_frame);

/* Operands, then control predecessors; NULL after the last. */
static const ir_op *op_neighbour(walk_frame *f) {
  const ir_op *op = f->node;
  assert(op);
  if (f->next < op->n_operands) return op->operands[f->next++].op;
  const ir_control *e = f->waited;
  if (e) f->waited = e->next;
  return e ? e->pred : NULL;
}

/* Explicit stack: chains of operands are as long as the program. */
static int walk_ops(const ir_op *start, uint8_t *marks, walk_stack *stack, base_alloc alloc, xlac_error *err) {
  assert(start && marks && stack);
  if (marks[start->id] == WALK_CLOSED) return 0;
  stack->n = 0;
  if (!BASE_VEC_PUSH(alloc, stack, ((walk_frame){start, 0, start->control_preds})))
    return base_oom(err, "a walk over the ops");
  marks[start->id] = WALK_OPEN;
  while (stack->n) {
    walk_frame *top = &stack->items[stack->n - 1];
    const ir_op *next = op_neighbour(top);
    if (!next) {
      marks[((const ir_op *)top->node)->id] = WALK_CLOSED;
      stack->n--;
      continue;
    }
    if (marks[next->id] == WALK_CLOSED) continue;
    if (marks[next->id] == WALK_OPEN)
      return ir_verify_fail(next, XLAC_E_VERIFY_STRUCTURE, err,
                            "depends on itself through its operands or control edges");
    marks[next->id] = WALK_OPEN;
    if (!BASE_VEC_PUSH(alloc, stack, ((walk_frame){next, 0, next->control_preds})))
      return base_oom(err, "a walk over the ops");
  }
  return 0;
}

/* Marks are by op id over the whole module, so each op is walked once. */
static int check_acyclic(const ir_module *m, uint8_t *marks, walk_stack *stack, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) TRY(walk_ops(op, marks, stack, m->alloc, err));
  }
  return 0;
}

/* Calls are walked recursively: a chain of calls is also the interpreter's depth, so it is bounded. */
#define MAX_CALL_DEPTH 512

/* Marks are by computation id. check_neighbours has seen to it that no callee is missing. */
static int walk_calls(const ir_computation *c, uint8_t *marks, uint32_t depth, xlac_error *err) {
  assert(c && marks);
  if (marks[c->id] == WALK_CLOSED) return 0;
  if (marks[c->id] == WALK_OPEN) return fail_computation(c, err, "calls itself, directly or through others");
  if (depth > MAX_CALL_DEPTH)
    return base_fail_at(err, XLAC_E_TOO_DEEP, c->line, c->col, c->name->s, "calls nest deeper than %d", MAX_CALL_DEPTH);
  marks[c->id] = WALK_OPEN;
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_called; i++) TRY(walk_calls(op->called[i], marks, depth + 1, err));
  }
  marks[c->id] = WALK_CLOSED;
  return 0;
}

/* From each computation, also from those that nobody calls. */
static int check_calls(const ir_module *m, uint8_t *marks, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) TRY(walk_calls(c, marks, 0, err));
  return 0;
}

/* In a scheduled module the text order is the order of execution. `marks` are zeroed. */
static int check_schedule(const ir_module *m, uint8_t *marks, xlac_error *err) {
  if (!m->config.is_scheduled) return 0;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      walk_frame f = {op, 0, op->control_preds};
      for (const ir_op *before; (before = op_neighbour(&f)) != NULL;)
        if (before->parent == c && !marks[before->id])
          return ir_verify_fail(op, XLAC_E_VERIFY_SCHEDULE, err, "stands before %s, which it needs", before->name->s);
      marks[op->id] = 1;
    }
  }
  return 0;
}

int ir_check_schedule(const ir_module *m, xlac_error *err) {
  if (!m->config.is_scheduled) return 0;
  uint8_t *marks = base_malloc(m->alloc, (size_t)m->n_ids + 1);
  if (!marks) return base_oom(err, "the verifier's marks");
  memset(marks, 0, (size_t)m->n_ids + 1);
  int status = check_schedule(m, marks, err);
  base_free(m->alloc, marks);
  return status;
}

/* What can be seen without following pointers further than one step. */
static int check_local(const ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    TRY(check_root(c, err));
    TRY(check_parameters(c, err));
    IR_FOR_OPS(op, c) TRY(check_neighbours(op, err));
  }
  return 0;
}

/* Names are interned, so equal ones have one pointer. Each computation has a name space of its own here: that of the
 * whole module is the printer's to make. */
static int check_names(const ir_module *m, base_map *seen, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    base_map_clear(seen);
    IR_FOR_OPS(op, c) {
      uint64_t other;
      if (base_map_get(seen, base_key(op->name), &other))
        return ir_verify_fail(op, XLAC_E_DUPLICATE_NAME, err, "has the name %s, which another op of %s has too",
                              op->name->s, c->name->s);
      if (!base_map_set(seen, base_key(op->name), 1)) return base_oom(err, "a table of names");
    }
  }
  return 0;
}

/* One array of marks serves the three searches, by op id or computation id: n covers both. */
static int check_walks(const ir_module *m, uint8_t *marks, size_t n, xlac_error *err) {
  walk_stack stack = {0};
  memset(marks, 0, n);
  int status = check_acyclic(m, marks, &stack, err);
  BASE_VEC_FREE(m->alloc, &stack);
  if (status) return status;
  memset(marks, 0, n);
  TRY(check_calls(m, marks, err));
  memset(marks, 0, n);
  return check_schedule(m, marks, err);
}

/* In this order: walks follow pointers that check_local has found good. */
int ir_verify_structure(const ir_module *m, xlac_error *err) {
  assert(m);
  if (!m->entry) return base_fail(err, XLAC_E_VERIFY_STRUCTURE, "module %s has no entry computation", m->name->s);
  TRY(check_local(m, err));
  size_t n = (size_t)(m->n_ids > m->n_computation_ids ? m->n_ids : m->n_computation_ids) + 1;
  uint8_t *marks = base_malloc(m->alloc, n);
  if (!marks) return base_oom(err, "the verifier's marks");
  int status = check_walks(m, marks, n, err);
  base_free(m->alloc, marks);
  if (status) return status;
  base_map seen;
  base_map_init(&seen, m->alloc);
  status = check_names(m, &seen, err);
  base_map_free(&seen);
  return status;
}
