/* Instructions and computations from their messages.
 *
 * HloInstructionProto: 1 name, 2 opcode, 3 shape, 7 metadata, 8 literal, 35 id, 36 operands' ids, 37 control
 * predecessors' ids, 38 called computations' ids, and a field or more for each attribute.
 *
 * Computations and instructions are made in the order in which they stand, users after what they use, and then put
 * in the order of their ids, which is the order they were made in. An id that nothing has had before it is an error,
 * so that no cycle can be read. */
#include "../../ir/check/check.h"
#include "../../ir/names.h"
#include "read.h"

#include <stdlib.h>

/* The place of its first field, or the file's beginning for an empty message. */
const uint8_t *proto_place(const proto_reader *r, proto_message m) {
  return m.n ? r->s.fields.items[m.first].p : r->s.base;
}

/* Names the op and an id. */
static int op_fail(proto_reader *r, proto_message in, const ir_op *op, base_code code, const char *what, int64_t id) {
  return proto_fail(&r->s, proto_place(r, in), code, "%s '%s' %s %lld", ir_opcode_text(op->opcode), op->name->s, what,
                    (long long)id);
}

/* --- an instruction --- */

/* HLO text's name of the opcode. */
static int read_opcode_of(proto_reader *r, proto_message in, ir_opcode *out) {
  base_slice text = proto_bytes(&r->s, in, 2);
  *out = ir_opcode_from_text(text.n ? text.p : "", text.n);
  if (*out != IR_OP_INVALID && !(r->strict && ir_opcode_has(*out, IR_NEWER))) return 0;
  int status = proto_fail(&r->s, proto_place(r, in), XLAC_E_UNKNOWN_OPCODE, "unknown opcode '%.*s'",
                          (int)(text.n < 60 ? text.n : 60), text.n ? text.p : "");
  return *out ? base_hint(r->s.err, status, "newer XLA has it; it is read where strict reading is not asked for")
              : status;
}

/* What a name in the map of seen names is. */
enum { NAME_AS_GIVEN = 1, NAME_MADE_UP = 2 };

/* What has been called by another's name, after it was made legal, gets one of its own. */
static int make_up_name(proto_reader *r, base_map *seen, const base_istr *wanted, const base_istr **out) {
  assert(wanted && wanted->n > 0);
  uint64_t other;
  *out = wanted;
  if (base_map_get(seen, base_key(wanted), &other)) *out = ir_fresh_name(r->m, wanted->s);
  return *out && base_map_set(seen, base_key(*out), NAME_MADE_UP) ? 0 : proto_no_memory(&r->s);
}

/* Whether HLO text can spell the name. */
static bool is_proto_name(const base_istr *s) {
  return ir_is_name(s->s, s->n) && !ir_name_is_reserved(s->s, s->n) && !ir_name_is_word(s->s, s->n);
}

/* A name that no other has: XLA refuses repeated ones. Names that the text can't spell are changed by XLA's rule. */
static int take_proto_name(proto_reader *r, proto_message in, base_map *seen, const base_istr **out) {
  const base_istr *given, *legal;
  uint64_t other = 0;
  TRY(proto_read_str(r, in, 1, &given));
  if (!given) return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_PROTO, "a name is missing");
  if (base_map_get(seen, base_key(given), &other) && other == NAME_AS_GIVEN)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_DUPLICATE_NAME, "the name '%s' is given twice", given->s);
  bool fits = is_proto_name(given);
  if (fits && !other) {
    *out = given;
    return base_map_set(seen, base_key(given), NAME_AS_GIVEN) ? 0 : proto_no_memory(&r->s);
  }
  if (!base_map_set(seen, base_key(given), NAME_AS_GIVEN)) return proto_no_memory(&r->s);
  legal = fits ? given : ir_legal_name(r->m, given->s, given->n);
  return legal ? make_up_name(r, seen, legal, out) : proto_no_memory(&r->s);
}

/* Ids of operands must be known: instructions stand in an order that allows it. */
static int set_proto_operands(proto_reader *r, proto_message in, ir_op *op, uint32_t from) {
  assert(r->s.numbers.n >= from + op->n_operands);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint64_t found;
    int64_t id = r->s.numbers.items[from + i];
    if (!base_map_get(&r->ops, (uint64_t)id, &found))
      return op_fail(r, in, op, XLAC_E_UNKNOWN_NAME, "comes before its operand", id);
    ir_set_operand(op, i, (ir_value){(ir_op *)(uintptr_t)found, 0});
  }
  return 0;
}

/* Computations are read before what calls them, so each id must be known by now. `from` is where in the list of
 * numbers that was read the op's ids begin. */
static int set_proto_called(proto_reader *r, proto_message in, ir_op *op, uint32_t from) {
  assert(r->s.numbers.n >= from + op->n_called);
  for (uint32_t i = 0; i < op->n_called; i++) {
    uint64_t found;
    int64_t id = r->s.numbers.items[from + i];
    if (!base_map_get(&r->computations, (uint64_t)id, &found))
      return op_fail(r, in, op, XLAC_E_UNKNOWN_NAME, "comes before the computation it calls,", id);
    op->called[i] = (ir_computation *)(uintptr_t)found;
  }
  if (op->opcode != IR_OP_WHILE || op->n_called != 2) return 0;
  ir_computation *body = op->called[0]; /* XLA has the body first */
  op->called[0] = op->called[1];
  op->called[1] = body;
  return 0;
}

/* Control predecessors, likewise. */
static int set_proto_preds(proto_reader *r, proto_message in, ir_op *op) {
  uint32_t from;
  TRY(proto_list(&r->s, in, 37, &from));
  for (uint32_t i = from; i < r->s.numbers.n; i++) {
    uint64_t found;
    if (!base_map_get(&r->ops, (uint64_t)r->s.numbers.items[i], &found))
      return op_fail(r, in, op, XLAC_E_UNKNOWN_NAME, "comes before its control predecessor", r->s.numbers.items[i]);
    if (!ir_add_control_pred(op, (ir_op *)(uintptr_t)found)) return proto_no_memory(&r->s);
  }
  r->s.numbers.n = from;
  return 0;
}

/* Name, type, operands and called computations; attributes come afterwards, since some depend on the operands. */
static int make_proto_op(proto_reader *r, proto_message in, ir_computation *c, ir_op **out) {
  ir_opcode opcode;
  const base_istr *name;
  const ir_type *type;
  uint32_t operands, called;
  TRY(read_opcode_of(r, in, &opcode));
  TRY(take_proto_name(r, in, &r->op_names, &name));
  TRY(proto_read_type_in(r, in, 3, &type));
  TRY(proto_list(&r->s, in, 36, &operands));
  TRY(proto_list(&r->s, in, 38, &called));
  ir_op *op = ir_op_new(c, opcode, type, name, called - operands, r->s.numbers.n - called);
  if (!op) return proto_no_memory(&r->s);
  TRY(set_proto_operands(r, in, op, operands));
  TRY(set_proto_called(r, in, op, called));
  r->s.numbers.n = operands;
  *out = op;
  return set_proto_preds(r, in, op);
}

/* A constant without a literal is one whose data was elided, "constant({...})" in text; only an array may be. */
static int read_constant_value(proto_reader *r, proto_message in, ir_op *op) {
  proto_message m;
  if (proto_count(&r->s, in, 8, PROTO_LENGTH) == 0) { /* left out by whoever wrote this */
    ir_literal *l = BASE_NEW(&r->m->arena, ir_literal);
    if (!l) return proto_no_memory(&r->s);
    if (!ir_is_tensor(op->type))
      return op_fail(r, in, op, XLAC_E_BAD_LITERAL, "has no literal; id", proto_int(&r->s, in, 35));
    *l = (ir_literal){.type = op->type, .elided = true};
    op->u.literal = l;
    return 0;
  }
  TRY(proto_open_sub(&r->s, in, 8, &m));
  TRY(proto_read_literal(r, m, &op->u.literal));
  proto_close(&r->s, m);
  if (ir_same_bare(op->u.literal->type, op->type)) return 0;
  return op_fail(r, in, op, XLAC_E_BAD_LITERAL, "has a literal of another shape; id", proto_int(&r->s, in, 35));
}

/* Chains are followed by whoever prints or runs them, so they must be whole: XLA too refuses them here. */
static int check_chain(proto_reader *r, proto_message in, ir_op *op) {
  if (op->opcode == IR_OP_ASYNC_START) {
    if (op->n_called != 1)
      return op_fail(r, in, op, XLAC_E_BAD_PROTO, "calls other than one computation:", op->n_called);
    if (base_map_ptr(&r->wrapped, op->called[0]))
      return op_fail(r, in, op, XLAC_E_BAD_PROTO, "wraps what another start wraps; id", proto_int(&r->s, in, 35));
    const ir_attr *thread = ir_attr_find(op, IR_ATTR_ASYNC_THREAD);
    if (thread && strcmp(thread->v.str->s, "main") == 0) ir_attr_remove(op, IR_ATTR_ASYNC_THREAD);
    return base_map_set(&r->wrapped, base_key(op->called[0]), base_key(op)) ? 0 : proto_no_memory(&r->s);
  }
  if (op->opcode != IR_OP_ASYNC_UPDATE && op->opcode != IR_OP_ASYNC_DONE) return 0;
  unsigned from = ir_operand(op, 0)->opcode;
  op->n_called = 0; /* older XLA repeats what the start calls */
  ir_attr_remove(op, IR_ATTR_ASYNC_THREAD);
  if (from == IR_OP_ASYNC_START || from == IR_OP_ASYNC_UPDATE) return 0;
  return op_fail(r, in, op, XLAC_E_BAD_PROTO, "has an operand that is not an async start or update; id",
                 proto_int(&r->s, in, 35));
}

/* Counts of operands and called computations are checked before anything relies on them. */
static int read_proto_op(proto_reader *r, proto_message in, ir_computation *c, uint32_t n_ops) {
  ir_op *op = NULL;
  xlac_error why = {0};
  uint64_t other;
  int64_t id = proto_int(&r->s, in, 35);
  TRY(make_proto_op(r, in, c, &op));
  if (ir_check_operands(op, &why) != 0 || ir_check_called(op, &why) != 0)
    return proto_fail(&r->s, proto_place(r, in), (base_code)why.code, "'%s': %s", op->name->s, why.message);
  TRY(proto_read_attrs(r, in, op));
  if (ir_check_attrs(op, &why) != 0 || ir_check_form(op, &why) != 0)
    return proto_fail(&r->s, proto_place(r, in), (base_code)why.code, "'%s': %s", op->name->s, why.message);
  if (!ir_complete_type(r->m, op)) return proto_no_memory(&r->s);
  if (op->opcode == IR_OP_CONSTANT) TRY(read_constant_value(r, in, op));
  if (op->opcode == IR_OP_PARAMETER) {
    int64_t number = proto_int(&r->s, in, 9);
    if (number < 0 || number >= (int64_t)n_ops || (number < (int64_t)c->n_params && c->params[number]))
      return op_fail(r, in, op, XLAC_E_BAD_PROTO, "has a number that can't be:", number);
    if (!ir_set_parameter(op, number)) return proto_no_memory(&r->s);
  }
  TRY(check_chain(r, in, op));
  if (base_map_get(&r->ops, (uint64_t)id, &other))
    return op_fail(r, in, op, XLAC_E_DUPLICATE_NAME, "repeats the id", id);
  return base_map_set(&r->ops, (uint64_t)id, base_key(op)) ? 0 : proto_no_memory(&r->s);
}

/* --- a computation --- */

/* An op to be sorted by its id or its place in the schedule, stably. */
typedef struct numbered_op {
  int64_t id;
  uint32_t order;
  void *what;
} numbered_op;

/* By id; ops of one id (in a broken message) in the order in which they were read, so that errors are the same each
 * time. */
static int compare_numbered(const void *a, const void *b) {
  const numbered_op *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* Puts the computation's list in the order of `list`. */
static void relink_ops(ir_computation *c, const numbered_op *list, uint32_t n) {
  assert(n == c->n_ops && n > 0);
  c->first = c->last = NULL;
  for (uint32_t i = 0; i < n; i++) {
    ir_op *op = list[i].what;
    op->prev = c->last;
    op->next = NULL;
    *(c->last ? &c->last->next : &c->first) = op;
    c->last = op;
  }
}

/* The schedule's sequence for the computation, if there is one, tells the order; else the ids do. places: id to
 * position; empty where there is no sequence. */
static int find_sequence(proto_reader *r, int64_t computation, base_map *places) {
  proto_message schedule;
  proto_field f;
  TRY(proto_open_sub(&r->s, r->module, 7, &schedule));
  uint32_t at = schedule.first;
  while (proto_next(&r->s, schedule, 1, PROTO_LENGTH, &at, &f)) {
    proto_message entry, sequence;
    uint32_t from;
    TRY(proto_open_field(&r->s, f, &entry));
    if (proto_int(&r->s, entry, 1) == computation) {
      TRY(proto_open_sub(&r->s, entry, 2, &sequence));
      TRY(proto_list(&r->s, sequence, 1, &from));
      for (uint32_t i = from; i < r->s.numbers.n; i++)
        if (!base_map_set(places, (uint64_t)r->s.numbers.items[i], i - from)) return proto_no_memory(&r->s);
      r->s.numbers.n = from;
      proto_close(&r->s, sequence);
    }
    proto_close(&r->s, entry);
  }
  proto_close(&r->s, schedule);
  return 0;
}

/* The messages stand in the order in which the ops were made, so that both lists are walked side by side. In a
 * scheduled module what has no sequence (XLA's fusions have none) is in the messages' order, in which operands come
 * first: that of ids need not be a schedule. */
static int order_ops(proto_reader *r, ir_computation *c, proto_message in, const base_map *places) {
  uint32_t n = 0, at = in.first;
  proto_field f;
  numbered_op *list = base_malloc(r->s.alloc, c->n_ops * sizeof *list);
  int status = list ? 0 : proto_no_memory(&r->s);
  for (ir_op *op = c->first; status == 0 && proto_next(&r->s, in, 2, PROTO_LENGTH, &at, &f); op = op->next) {
    proto_message m;
    uint64_t place = 0;
    if ((status = proto_open_field(&r->s, f, &m)) != 0) break;
    list[n] = (numbered_op){proto_int(&r->s, m, 35), n, op};
    proto_close(&r->s, m);
    if (places->n == 0 && !places->has_zero) {
      if (r->m->config.is_scheduled) list[n].id = 0;
      n++;
      continue;
    }
    if (!base_map_get(places, (uint64_t)list[n].id, &place))
      status = op_fail(r, in, op, XLAC_E_BAD_PROTO, "is not in the schedule; id", list[n].id);
    list[n++].id = (int64_t)place;
  }
  if (status == 0) {
    assert(n == c->n_ops);
    qsort(list, n, sizeof *list, compare_numbered);
    relink_ops(c, list, n);
  }
  base_free(r->s.alloc, list);
  return status;
}

/* All parameters and the root must be there. */
static int close_proto_computation(proto_reader *r, proto_message in, ir_computation *c) {
  uint64_t root;
  base_map places;
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i])
      return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_PROTO, "computation '%s' lacks parameter %u", c->name->s,
                        i);
  if (!base_map_get(&r->ops, (uint64_t)proto_int(&r->s, in, 6), &root))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_UNKNOWN_NAME,
                      "computation '%s' has no instruction %lld, its root", c->name->s,
                      (long long)proto_int(&r->s, in, 6));
  if (!ir_set_root(c, (ir_op *)(uintptr_t)root)) return proto_no_memory(&r->s);
  base_map_init(&places, r->s.alloc);
  int status = find_sequence(r, proto_int(&r->s, in, 5), &places);
  if (status == 0) status = order_ops(r, c, in, &places);
  base_map_free(&places);
  return status;
}

/* Ids of ops are local to the computation here: the map is emptied for each. */
int proto_read_computation(proto_reader *r, proto_message in) {
  const base_istr *name, *thread;
  proto_field f;
  uint64_t other;
  uint32_t at = in.first, n_ops = proto_count(&r->s, in, 2, PROTO_LENGTH);
  int64_t id = proto_int(&r->s, in, 5);
  TRY(take_proto_name(r, in, &r->computation_names, &name));
  TRY(proto_read_str(r, in, 8, &thread));
  ir_computation *c = ir_computation_new(r->m, name->s, name->n);
  if (!c) return proto_no_memory(&r->s);
  if (thread && strcmp(thread->s, "main") != 0) c->execution_thread = thread;
  base_map_clear(&r->ops);
  while (proto_next(&r->s, in, 2, PROTO_LENGTH, &at, &f)) {
    proto_message m;
    TRY(proto_open_field(&r->s, f, &m));
    TRY(read_proto_op(r, m, c, n_ops));
    proto_close(&r->s, m);
  }
  TRY(close_proto_computation(r, in, c));
  if (base_map_get(&r->computations, (uint64_t)id, &other))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_DUPLICATE_NAME, "computation id %lld is given twice",
                      (long long)id);
  return base_map_set(&r->computations, (uint64_t)id, base_key(c)) ? 0 : proto_no_memory(&r->s);
}
