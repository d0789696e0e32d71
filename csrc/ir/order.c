/* Orders in which a module is walked and printed: ops after what they need, computations after what they call. They are
 * XLA's, so that the same text reads back in the same order: depth first, operands first to last, and dead ops where
 * their creation puts them among the other ops that nobody uses. */
#include "ir.h"

enum { NEW, OPEN, DONE };

/* State of one walk over a computation's ops. `state` is indexed by id - base. */
typedef struct op_walk {
  const ir_computation *c;
  uint8_t *state;
  uint32_t base;
  ir_op **stack;
  size_t n_stack;
  ir_op **out;
  uint32_t n_out;
  base_map earlier; /* collective -> the one before it on the same channel */
  bool has_channels;
} op_walk;

static uint8_t *op_state(const op_walk *w, const ir_op *op) {
  return &w->state[op->id - w->base];
}

/* Collectives on one channel must keep their order, though nothing in the text links them. */
static bool is_channel_collective(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_RAGGED_ALL_TO_ALL:
    case IR_OP_REDUCE_SCATTER:
      return ir_attr_find(op, IR_ATTR_CHANNEL_ID) != NULL;
    default:
      return false;
  }
}

static bool link_channels(op_walk *w) {
  base_map last;
  base_map_init(&last, w->earlier.alloc);
  bool ok = true;
  IR_FOR_OPS(op, w->c) {
    if (!is_channel_collective(op)) continue;
    uint64_t channel = (uint64_t)ir_get_int(op, IR_ATTR_CHANNEL_ID, 0), before = 0;
    if (base_map_get(&last, channel, &before)) {
      ok = ok && base_map_set(&w->earlier, base_key(op), before);
      w->has_channels = true;
    }
    ok = ok && base_map_set(&last, channel, base_key(op));
  }
  base_map_free(&last);
  return ok;
}

/* The nearest collective before op on its channel that is not walked yet. Skipped ones are bypassed for good, so that a
 * channel with many collectives costs linear time. */
static ir_op *earlier_collective(op_walk *w, const ir_op *op) {
  ir_op *found = base_map_ptr(&w->earlier, op);
  while (found && *op_state(w, found) == DONE) found = base_map_ptr(&w->earlier, found);
  if (found) (void)base_map_set(&w->earlier, base_key(op), base_key(found)); /* replaces: never allocates */
  return found;
}

static void push_op(op_walk *w, ir_op *op) {
  if (op->parent == w->c && *op_state(w, op) != DONE) w->stack[w->n_stack++] = op;
}

/* What is pushed last is walked first: control predecessors (last to first), operands (first to last), the channel. */
static void push_needs(op_walk *w, ir_op *op, const ir_op *root) {
  if (w->has_channels && op != root && is_channel_collective(op)) {
    ir_op *earlier = earlier_collective(w, op);
    if (earlier) push_op(w, earlier);
  }
  for (uint32_t i = op->n_operands; i-- > 0;) push_op(w, op->operands[i].op);
  for (uint32_t i = 0; i < op->n_control_preds; i++) push_op(w, op->control_preds[i]);
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
      push_needs(w, op, root);
      continue;
    }
    w->n_stack--;
    if (*state == DONE) continue;
    *state = DONE;
    w->out[w->n_out++] = op;
  }
}

/* Ids of the computation's ops lie in [*low, *low + range). Returns the stack room the walk may need at most. */
static size_t survey_ops(const ir_computation *c, uint32_t *low, uint32_t *range, bool *has_channels) {
  uint32_t min = UINT32_MAX, max = 0;
  size_t room = 1;
  IR_FOR_OPS(op, c) {
    if (op->id < min) min = op->id;
    if (op->id > max) max = op->id;
    room += (size_t)op->n_operands + op->n_control_preds + 1;
    *has_channels = *has_channels || is_channel_collective(op);
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
  bool channels = false;
  size_t room = survey_ops(c, &w.base, &range, &channels);
  base_alloc alloc = arena->alloc;
  base_map_init(&w.earlier, alloc);
  w.out = BASE_ARRAY(arena, ir_op *, c->n_ops ? c->n_ops : 1);
  w.state = base_malloc(alloc, range);
  w.stack = base_malloc(alloc, room * sizeof *w.stack);
  bool ok = w.out && w.state && w.stack && (!channels || link_channels(&w));
  if (ok) {
    memset(w.state, NEW, range);
    walk_all(&w);
    *n = w.n_out;
  }
  base_free(alloc, w.state);
  base_free(alloc, w.stack);
  base_map_free(&w.earlier);
  return ok ? w.out : NULL;
}

/* --- computations --- */

typedef struct open_computation {
  ir_computation *c;
  ir_op *at;     /* the op whose callees are being walked */
  uint32_t done; /* callees of it walked so far */
} open_computation;

typedef struct computation_walk {
  uint8_t *state; /* by computation id */
  open_computation *stack;
  uint32_t n_stack;
  ir_computation **out;
  uint32_t n_out;
} computation_walk;

/* XLA keeps a while's body before its condition. */
static ir_computation *callee(const ir_op *op, uint32_t i) {
  assert(i < op->n_called);
  return op->called[op->opcode == IR_OP_WHILE ? op->n_called - 1 - i : i];
}

static void open_one(computation_walk *w, ir_computation *c) {
  w->state[c->id] = OPEN;
  w->stack[w->n_stack++] = (open_computation){c, c->first, 0};
}

/* The next callee of the computation on top, or NULL when it has no more. */
static ir_computation *next_callee(open_computation *top) {
  while (top->at) {
    if (top->done < top->at->n_called) return callee(top->at, top->done++);
    top->at = top->at->next;
    top->done = 0;
  }
  return NULL;
}

static void walk_callees(computation_walk *w, ir_computation *root) {
  open_one(w, root);
  while (w->n_stack) {
    open_computation *top = &w->stack[w->n_stack - 1];
    ir_computation *next = next_callee(top);
    if (next) {
      if (w->state[next->id] == NEW) open_one(w, next);
      continue;
    }
    w->n_stack--;
    w->state[top->c->id] = DONE;
    w->out[w->n_out++] = top->c;
  }
}

/* Marks what some op calls; roots of the walk are the others. */
static void mark_called(const ir_module *m, uint8_t *called) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) {
        if (op->called[i]) called[op->called[i]->id] = 1;
      }
    }
  }
}

static void walk_computations(computation_walk *w, const ir_module *m, const uint8_t *called) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (!called[c->id]) walk_callees(w, c);
  }
  /* Cyclic calls have no root; only a broken module has them. */
  IR_FOR_COMPUTATIONS(c, m) {
    if (w->state[c->id] == NEW) walk_callees(w, c);
  }
  assert(w->n_out == m->n_computations);
}

ir_computation **ir_computation_order(const ir_module *m, base_arena *arena, uint32_t *n) {
  assert(m && arena && n);
  base_alloc alloc = arena->alloc;
  size_t ids = m->n_computation_ids;
  uint8_t *marks = base_malloc(alloc, 2 * ids);
  computation_walk w = {.state = marks};
  w.stack = base_malloc(alloc, m->n_computations * sizeof *w.stack);
  w.out = BASE_ARRAY(arena, ir_computation *, m->n_computations ? m->n_computations : 1);
  bool ok = marks && w.stack && w.out;
  if (ok) {
    memset(marks, NEW, 2 * ids);
    mark_called(m, marks + ids);
    walk_computations(&w, m, marks + ids);
    *n = w.n_out;
  }
  base_free(alloc, marks);
  base_free(alloc, w.stack);
  return ok ? w.out : NULL;
}
