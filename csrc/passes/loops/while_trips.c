/* How often a loop turns, as far as constants tell: the condition on the first state, and on that after one turn, is
 * evaluated from the few scalars it needs, by the interpreter's own loops. */
#include "while_trips.h"

#include "../../scalar/loops/loops.h"

enum { TRIPS_DEPTH = 48, TRIPS_OPS = 400, TRIPS_BYTES = 16 };

/* What the parameter of a computation stands for: the value of an op, in another computation with its own. */
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

static bool trips_eval_loop(trips_run *r, const ir_op *op, const trips_scope *s, uint32_t depth, char *out) {
  char in[3][TRIPS_BYTES] __attribute__((aligned(16)));
  const void *args[3] = {in[0], in[1], in[2]};
  interp_loop l;
  if (ir_opcode_has(op->opcode, IR_NONDETERMINISTIC) || !interp_loop_of(op, &l)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!trips_eval(r, ir_operand(op, i), s, depth + 1, in[i])) return false;
  interp_loop_run(&l, 1, args, out);
  return true;
}

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

int while_known_trips(const ir_op *loop, const opt_facts *facts) {
  const ir_computation *condition = loop->called[0], *body = loop->called[1];
  trips_run r = {.facts = facts, .left = TRIPS_OPS};
  char again[TRIPS_BYTES] __attribute__((aligned(16))) = {0};
  if (facts->of_computation[condition->id] & (OPT_EFFECT | OPT_RANDOM | OPT_ENVIRONMENT | OPT_ASYNC)) return -1;
  if (condition->n_params != 1 || body->n_params != 1 || loop->n_operands != 1) return -1;
  trips_scope first = {.param = condition->params[0], .value = ir_operand(loop, 0)};
  trips_scope inside = {.param = body->params[0], .value = ir_operand(loop, 0)};
  trips_scope second = {.param = condition->params[0], .value = ir_root(body), .of = &inside};
  if (!trips_eval(&r, ir_root(condition), &first, 0, again)) return -1;
  if (!again[0]) return 0;
  if (!trips_eval(&r, ir_root(condition), &second, 0, again)) return -1;
  return again[0] ? -1 : 1;
}
