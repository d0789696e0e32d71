/* Orders in which a module is walked and printed: ops after what they need, computations after what they call. They are
 * XLA's, so that the same text reads back in the same order: depth first, operands first to last, and dead ops where
 * their creation puts them among the other ops that nobody uses. */
#include "ir.h"

enum { NEW, OPEN, DONE };

/* Where ids are further apart than that for each op, the walk numbers the ops itself: memory and time are the
 * computation's, not the module's. */
enum { SPREAD = 16 };

/* State of one walk over a computation's ops. `state` is indexed by id - base, or by the number that the op has. */
typedef struct op_walk {
  const ir_computation *c;
  uint8_t *state;
  uint32_t base;
  bool spread;
  base_map numbers; /* where spread: op -> its number + 1 */
  ir_op **stack;
  size_t n_stack;
  ir_op **out;
  uint32_t n_out;
} op_walk;

/* NEW, OPEN or DONE of an op of the computation. */
static uint8_t *op_state(const op_walk *w, const ir_op *op) {
  if (!w->spread) return &w->state[op->id - w->base];
  uint64_t number = 0;
  bool found = base_map_get(&w->numbers, base_key(op), &number);
  assert(found && number > 0 && number <= w->c->n_ops);
  (void)found;
  return &w->state[number - 1];
}

/* Numbers from 1, since the map reads an absent key as 0. False when out of memory. */
static bool number_ops(op_walk *w) {
  uint64_t n = 0;
  IR_FOR_OPS(op, w->c)
  if (!base_map_set(&w->numbers, base_key(op), ++n)) return false;
  return true;
}

/* Values from outside (a region's captures) are not of this walk. An op may be on the stack several times; its first
 * visit counts. */
static void push_op(op_walk *w, ir_op *op) {
  assert(op);
  if (op->parent == w->c && *op_state(w, op) != DONE) w->stack[w->n_stack++] = op;
}

/* What is pushed last is walked first: control predecessors, last to first, then operands, first to last. */
static void push_needs(op_walk *w, ir_op *op) {
  for (uint32_t i = op->n_operands; i-- > 0;) push_op(w, op->operands[i].op);
  IR_FOR_CONTROL_PREDS(e, op) push_op(w, e->pred);
}

/* An op met while still open closes a cycle, which only a broken module has; it is put out once all the same. */
static void walk_from(op_walk *w, ir_op *root) {
  w->n_stack = 0;
  push_op(w, root);
  while (w->n_stack) {
    ir_op *op = w->stack[w->n_stack - 1];
    uint8_t *state = op_state(w, op);
    if (*state == NEW) {
      *state = OPEN;
      push_needs(w, op);
      continue;
    }
    w->n_stack--;
    if (*state == DONE) continue;
    *state = DONE;
    w->out[w->n_out++] = op;
  }
}

/* Ids of the computation's ops lie in [*low, *low + range). Returns the stack room the walk may need at most. */
static size_t survey_ops(const ir_computation *c, uint32_t *low, uint32_t *range) {
  uint32_t min = UINT32_MAX, max = 0;
  size_t room = 1;
  IR_FOR_OPS(op, c) {
    if (op->id < min) min = op->id;
    if (op->id > max) max = op->id;
    room += (size_t)op->n_operands + op->n_control_preds + 1;
  }
  *low = c->n_ops ? min : 0;
  *range = c->n_ops ? max - min + 1 : 0;
  return room;
}

static void walk_all(op_walk *w) {
  IR_FOR_OPS(op, w->c) {
    if (!op->uses) walk_from(w, op);
  }
  /* Only a cycle leaves any. */
  if (w->n_out < w->c->n_ops) {
    IR_FOR_OPS(op, w->c) {
      if (*op_state(w, op) == NEW) walk_from(w, op);
    }
  }
  assert(w->n_out == w->c->n_ops);
}

ir_op **ir_post_order(const ir_computation *c, base_arena *arena, uint32_t *n) {
  assert(c && arena && n);
  op_walk w = {.c = c};
  uint32_t range;
  size_t room = survey_ops(c, &w.base, &range);
  base_alloc alloc = arena->alloc;
  base_map_init(&w.numbers, alloc);
  w.spread = range / SPREAD > c->n_ops;
  if (w.spread) range = c->n_ops;
  w.out = BASE_ARRAY(arena, ir_op *, c->n_ops ? c->n_ops : 1);
  w.state = base_malloc(alloc, range);
  w.stack = base_malloc(alloc, room * sizeof *w.stack);
  /* One exit: whatever was allocated is freed below, whether or not the walk took place. */
  bool ok = w.out && w.state && w.stack && (!w.spread || number_ops(&w));
  if (ok) {
    memset(w.state, NEW, range);
    walk_all(&w);
    *n = w.n_out;
  }
  base_map_free(&w.numbers);
  base_free(alloc, w.state);
  base_free(alloc, w.stack);
  return ok ? w.out : NULL;
}

/* --- computations --- */

/* The ops that call, computation by computation, so that the walks need not pass over all the others. */
BASE_VEC(op_vec, ir_op *);
typedef struct call_table {
  op_vec ops;
  uint32_t *first; /* by computation id: where its ops begin; they end at a NULL */
} call_table;

typedef struct open_computation {
  ir_computation *c;
  ir_op *const *at; /* the op whose callees come next */
  uint32_t done;    /* callees of it walked so far */
} open_computation;

typedef struct computation_walk {
  const ir_module *m;
  call_table calls;
  bool eager;
  uint8_t *state; /* by computation id */
  open_computation *stack;
  uint32_t n_stack;
  ir_computation **out;
  uint32_t n_out;
} computation_walk;

/* Each computation's part of the list ends at a NULL, so that calls_of needs no count. */
static bool list_calls(call_table *t, const ir_module *m, base_alloc alloc) {
  IR_FOR_COMPUTATIONS(c, m) {
    t->first[c->id] = t->ops.n;
    IR_FOR_OPS(op, c) {
      if (op->n_called && !BASE_VEC_PUSH(alloc, &t->ops, op)) return false;
    }
    if (!BASE_VEC_PUSH(alloc, &t->ops, NULL)) return false;
  }
  return true;
}

/* From the first to a NULL. */
static ir_op *const *calls_of(const computation_walk *w, const ir_computation *c) {
  assert(w->calls.first[c->id] < w->calls.ops.n);
  return w->calls.ops.items + w->calls.first[c->id];
}

/* XLA keeps a while's body before its condition. */
static ir_computation *callee(const ir_op *op, uint32_t i) {
  assert(i < op->n_called);
  return op->called[op->opcode == IR_OP_WHILE ? op->n_called - 1 - i : i];
}

/* Each computation is opened once, so a stack of n_computations entries never overflows. NULL, a callee that a broken
 * module lacks, is passed over. */
static void open_one(computation_walk *w, ir_computation *c) {
  if (!c || w->state[c->id] != NEW) return;
  w->state[c->id] = OPEN;
  w->stack[w->n_stack++] = (open_computation){c, calls_of(w, c), 0};
}

/* Opens what the computation on top calls next. XLA opens all callees of an op at once (eager), so that one named twice
 * comes at its last place; where one of them calls another that is open already, the callee then ends up behind its
 * caller. One at a time never goes wrong. */
static void open_callees(computation_walk *w, open_computation *top) {
  const ir_op *op = *top->at;
  if (w->eager) {
    for (uint32_t i = op->n_called; i-- > 0;) open_one(w, callee(op, i));
    top->at++; /* `top` is still good: the stack has room for all computations and never moves */
  } else if (top->done < op->n_called) {
    open_one(w, callee(op, top->done++));
  } else {
    top->at++;
    top->done = 0;
  }
}

/* As walk_from, one level up: a computation is put out when the last of its callees has been. */
static void walk_callees(computation_walk *w, ir_computation *root) {
  open_one(w, root);
  while (w->n_stack) {
    open_computation *top = &w->stack[w->n_stack - 1];
    if (*top->at) {
      open_callees(w, top);
      continue;
    }
    w->n_stack--;
    w->state[top->c->id] = DONE;
    w->out[w->n_out++] = top->c;
  }
}

/* Marks what some op calls; roots of the walk are the others. */
static void mark_called(const call_table *t, uint8_t *called) {
  for (uint32_t i = 0; i < t->ops.n; i++) {
    const ir_op *op = t->ops.items[i];
    for (uint32_t j = 0; op && j < op->n_called; j++) {
      if (op->called[j]) called[op->called[j]->id] = 1;
    }
  }
}

/* Writes the whole order into w->out, from scratch. */
static void walk_computations(computation_walk *w, bool eager, const uint8_t *called) {
  memset(w->state, NEW, w->m->n_computation_ids);
  w->eager = eager;
  w->n_out = 0;
  IR_FOR_COMPUTATIONS(c, w->m) {
    if (!called[c->id]) walk_callees(w, c);
  }
  /* Cyclic calls have no root; only a broken module has them. */
  IR_FOR_COMPUTATIONS(c, w->m) walk_callees(w, c);
  assert(w->n_out == w->m->n_computations);
}

/* Whether all callees of c have been put out already. */
static bool calls_only_done(const computation_walk *w, const ir_computation *c) {
  for (ir_op *const *at = calls_of(w, c); *at; at++) {
    for (uint32_t i = 0; i < (*at)->n_called; i++) {
      if ((*at)->called[i] && w->state[(*at)->called[i]->id] != DONE) return false;
    }
  }
  return true;
}

/* Whether the order in w->out is one that a reader accepts, which needs each computation before its callers. */
static bool has_callees_first(computation_walk *w) {
  memset(w->state, NEW, w->m->n_computation_ids);
  for (uint32_t i = 0; i < w->n_out; i++) {
    if (!calls_only_done(w, w->out[i])) return false;
    w->state[w->out[i]->id] = DONE;
  }
  return true;
}

/* A module of one computation has one order, and its ops need not be looked at for that. */
static ir_computation **only_computation(const ir_module *m, base_arena *arena, uint32_t *n) {
  ir_computation **out = BASE_ARRAY(arena, ir_computation *, 1);
  if (out) out[0] = m->first;
  *n = 1;
  return out;
}

/* XLA's MakeComputationPostOrder: the eager walk first, and the careful one where that gives an order that no reader
 * would take. */
ir_computation **ir_computation_order(const ir_module *m, base_arena *arena, uint32_t *n) {
  assert(m && arena && n);
  if (m->n_computations == 1) return only_computation(m, arena, n);
  base_alloc alloc = arena->alloc;
  size_t ids = m->n_computation_ids;
  uint8_t *called = base_malloc(alloc, ids);
  computation_walk w = {.m = m, .state = base_malloc(alloc, ids)};
  w.calls.first = base_malloc(alloc, ids * sizeof *w.calls.first);
  w.stack = base_malloc(alloc, m->n_computations * sizeof *w.stack);
  w.out = BASE_ARRAY(arena, ir_computation *, m->n_computations ? m->n_computations : 1);
  bool ok = called && w.state && w.calls.first && w.stack && w.out && list_calls(&w.calls, m, alloc);
  if (ok) {
    memset(called, 0, ids);
    mark_called(&w.calls, called);
    walk_computations(&w, true, called);
    if (!has_callees_first(&w)) walk_computations(&w, false, called);
    *n = w.n_out;
  }
  BASE_VEC_FREE(alloc, &w.calls.ops);
  base_free(alloc, w.calls.first);
  base_free(alloc, called);
  base_free(alloc, w.state);
  base_free(alloc, w.stack);
  return ok ? w.out : NULL;
}
