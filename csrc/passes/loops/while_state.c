
/* The state of a while loop: whether a pass may change it, and changing it. Loops come from frontends as
 * while((i, x, ...)) with a body that ends in a tuple op; passes leave other forms alone (while_open says which). */
#include "../../scalar/loops/loops.h"
#include "while_state.h"

/* By computation id; most modules have one computation, which nobody calls. */
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
  for (uint32_t i = 0; all && count && i < facts->n_order; i++) {
    IR_FOR_OPS(op, facts->order[i]) {
      if (op->opcode == IR_OP_WHILE) all[(*n)++] = op;
    }
  }
  return all;
}

int64_t while_element_of(const ir_op *op, const ir_op *tuple) {
  assert(op != NULL && tuple != NULL);
  return op->opcode == IR_OP_GET_TUPLE_ELEMENT && ir_operand(op, 0) == tuple ? ir_get_int(op, IR_ATTR_INDEX, 0) : -1;
}

/* Whoever reads the whole tuple would see its change. */
static bool while_read_by_element(const ir_op *tuple) {
  IR_FOR_USES(use, tuple) {
    if (while_element_of(use->user, tuple) < 0) return false;
  }
  return !ir_is_result(tuple);
}

/* Shardings of tuples list their elements. */
static bool while_is_free(const ir_op *op, const opt_facts *facts) {
  return !opt_in_edge(facts, op) && !ir_attr_find(op, IR_ATTR_SHARDING);
}

/* The body's root is a tuple op of its own, so that next values can be named one by one. */
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
  assert(i < w->n);
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
      ir_op_remove(reader);
    else
      ok = ir_set_int(reader, IR_ATTR_INDEX, to) && ok;
  }
  return ok;
}

static ir_op *while_tuple_before(hlo_maker *x, const ir_op *before, const ir_type *type, ir_op *const *elements) {
  assert(elements != NULL);
  x->before = before;
  return hlo_tuple(x, type, elements);
}

/* The old root goes with its uses; readers in all three places get new indices. */
bool while_set_state(while_state *w, hlo_maker *x, uint32_t n, ir_op *const *first, ir_op *const *next,
                     const uint32_t *moved) {
  assert(w->root->opcode == IR_OP_TUPLE);
  base_arena scratch;
  base_arena_init(&scratch, x->m->alloc);
  const ir_type **types = BASE_ARRAY(&scratch, const ir_type *, (size_t)n + 1);
  for (uint32_t i = 0; types && i < n; i++) types[i] = first[i]->type;
  const ir_type *type = types ? ir_tuple(x->m, n, types) : NULL;
  base_arena_free(&scratch);
  ir_op *init = type ? while_tuple_before(x, w->loop, type, first) : NULL;
  ir_op *root = init ? while_tuple_before(x, w->root, type, next) : NULL;
  if (!root || !ir_set_root(w->root->parent, root)) return false;
  ir_op_remove(w->root);
  w->root = root;
  ir_set_operand(w->loop, 0, (ir_value){init, 0});
  if (w->init && !w->init->uses && !ir_is_result(w->init)) ir_op_remove(w->init);
  w->init = init;
  w->n = n;
  bool ok = while_move_elements(w->inside, type, moved) && while_move_elements(w->condition, type, moved);
  return while_move_elements(w->loop, type, moved) && ok;
}

/* How often a loop turns, as far as constants tell: the condition on the first state, and on those after some turns, is
 * evaluated from the few scalars it needs, by the interpreter's own loops. */

/* What may be spent on one loop: most conditions compare a counter with a constant. */
enum { TRIPS_DEPTH = 48, TRIPS_OPS = 400, TRIPS_BYTES = 16 };

/* What the parameter of a computation stands for: the value of an op, in another computation with its own.
 * An element of the body's parameter is an element of the loop's operand in the first turn; the condition's parameter
 * is the loop's operand before it, and the body's root, in the body's scope, after it. */
typedef struct trips_scope {
  const ir_op *param, *value;
  const struct trips_scope *of;
} trips_scope;

typedef struct trips_run {
  const opt_facts *facts;
  uint32_t left; /* ops that may still be looked at */
} trips_run;

static bool trips_is_scalar(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && !t->quant && t->count == 1;
}

static bool trips_eval(trips_run *r, const ir_op *op, const trips_scope *s, uint32_t depth, char *out);

/* Elementwise ops on scalars, by the loops that the interpreter and the executor use. */
static bool trips_eval_loop(trips_run *r, const ir_op *op, const trips_scope *s, uint32_t depth, char *out) {
  char in[3][TRIPS_BYTES] __attribute__((aligned(16)));
  const void *args[3] = {in[0], in[1], in[2]};
  scalar_loop l;
  if (ir_opcode_has(op->opcode, IR_NONDETERMINISTIC) || !scalar_loop_of_op(op, &l)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!trips_eval(r, ir_operand(op, i), s, depth + 1, in[i])) return false;
  scalar_loop_run(&l, 1, args, out);
  return true;
}

/* An element of the state is an element of what the state is at that time. */
static bool trips_eval_element(trips_run *r, const ir_op *op, const trips_scope *s, uint32_t depth, char *out) {
  const ir_op *tuple = ir_operand(op, 0);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  if (s && tuple == s->param) {
    tuple = s->value;
    s = s->of;
  }
  return tuple->opcode == IR_OP_TUPLE && trips_eval(r, ir_operand(tuple, (uint32_t)index), s, depth + 1, out);
}

/* The one element of op's value, where constants give it. */
static bool trips_eval(trips_run *r, const ir_op *op, const trips_scope *s, uint32_t depth, char *out) {
  if (depth > TRIPS_DEPTH || r->left == 0 || !trips_is_scalar(op->type) || opt_in_edge(r->facts, op)) return false;
  r->left--;
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      return s && op == s->param && trips_eval(r, s->value, s->of, depth + 1, out);
    case IR_OP_GET_TUPLE_ELEMENT:
      return trips_eval_element(r, op, s, depth, out);
    case IR_OP_CONSTANT:
      if (!op->u.literal || op->u.literal->elided) return false;
      memcpy(out, op->u.literal->data, base_dtype_bytes((base_dtype)op->type->dtype));
      return true;
    case IR_OP_RESHAPE:
    case IR_OP_BROADCAST:
    case IR_OP_COPY:
      return trips_eval(r, ir_operand(op, 0), s, depth + 1, out);
    default:
      return trips_eval_loop(r, op, s, depth, out);
  }
}

/* The condition must do nothing but compute; the body is only evaluated where the condition needs it. Turn number i
 * starts from the body's root in the scope of turn i - 1. */
int while_known_trips(const ir_op *loop, const opt_facts *facts, int most) {
  const ir_computation *condition = loop->called[0], *body = loop->called[1];
  trips_run r = {.facts = facts, .left = TRIPS_OPS};
  trips_scope turns[WHILE_MOST_TRIPS + 1];
  char again[TRIPS_BYTES] __attribute__((aligned(16))) = {0};
  assert(most >= 0 && most <= WHILE_MOST_TRIPS);
  if (facts->of_computation[condition->id] & (OPT_EFFECT | OPT_RANDOM | OPT_ENVIRONMENT | OPT_ASYNC)) return -1;
  if (condition->n_params != 1 || body->n_params != 1 || loop->n_operands != 1) return -1;
  for (int i = 0; i <= most; i++) {
    const ir_op *state = i ? ir_root(body) : ir_operand(loop, 0);
    const trips_scope *of = i ? &turns[i - 1] : NULL;
    const trips_scope asked = {.param = condition->params[0], .value = state, .of = of};
    if (!trips_eval(&r, ir_root(condition), &asked, 0, again)) return -1;
    if (!again[0]) return i;
    turns[i] = (trips_scope){.param = body->params[0], .value = state, .of = of};
  }
  return -1;
}
