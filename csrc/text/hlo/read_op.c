/* Instructions: [ROOT] name = type opcode(operands), attributes.
 *
 *   ROOT %y = f32[8]{0} add(f32[8]{0} %x, %k), metadata={op_name="f"}
 * An instruction is read into a text_draft first: operands, attributes, called computations and control predecessors
 * wait on the reader's stacks above the draft's marks. Then the op is made of it, and its type is inferred where
 * XLA's parser infers one. Drafts nest, since an operand may be a whole instruction and an attribute a whole
 * computation. */
#include "../../ir/check/check.h"
#include "../../base/plural.h"
#include "../nearest.h"
#include "read.h"

#include <stdio.h>

/* ---- Operands: names, typed names, nested instructions, and in a lone instruction undeclared parameters. */

/* A lone instruction's undeclared operand: a parameter of the type written before it. */
static int declare_operand(text_reader *r, ir_computation *c, text_symbol *y, const ir_type *type, const char *at,
                           ir_op **out) {
  if (!type)
    return text_fail(r, at, XLAC_E_UNKNOWN_NAME,
                     "an undeclared operand of a lone instruction needs its shape before it");
  assert(r->lone && r->level == 1);
  uint32_t number = r->params.n;
  if (!y) {
    char made_up[16];
    int n = snprintf(made_up, sizeof made_up, "_%u", number);
    if (!(y = text_symbol_of(r, made_up, (size_t)n))) return text_no_memory(r);
  }
  ir_op *op = ir_op_new(c, IR_OP_PARAMETER, type, y->name, 0, 0);
  if (!op) return text_no_memory(r);
  op->u.number = number;
  text_where(&r->lx, at, &op->line, &op->col);
  text_param p = {op, number};
  if (!BASE_VEC_PUSH(r->alloc, &r->params, p)) return text_no_memory(r);
  *out = op;
  return text_define(r, y, op, at);
}

/* The shape written before an operand must be the operand's, layouts aside. Unless reading is strict an async op's
 * shape may be in the flat form of XLA's documentation. */
static int check_declared(text_reader *r, const ir_type *declared, const ir_op *op, const char *at) {
  if (!declared || ir_compatible(declared, op->type)) return 0;
  bool async = ir_opcode_has(op->opcode, IR_ASYNC_START) || ir_opcode_has(op->opcode, IR_ASYNC_UPDATE);
  if (!r->strict && async && text_async_flat_equal(declared, op->type)) return 0;
  char want[160], got[160];
  ir_type_text(declared, want, sizeof want);
  ir_type_text(op->type, got, sizeof got);
  return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "operand '%s' has shape %s, but %s is written before it", op->name->s,
                   got, want);
}

/* Whether what begins at the cursor (a shape, if any, taken already) is an op's name and not a nested instruction: an
 * opcode is followed by '(', a name by ',' or ')' if the text is right. */
static bool at_operand_name(const text_reader *r) {
  const char *p = r->lx.p;
  if (*p == '%') return true;
  text_lexer ahead = r->lx;
  ahead.p = text_name_end(p);
  if (ahead.p == p || !text_is(*p, TEXT_ALPHA)) return false;
  if (*ahead.p == ':') ahead.p++;
  text_skip(&ahead);
  return *ahead.p != '(';
}

/* The hint tells a name of another computation from one that does not exist at all. */
static int unknown_operand(text_reader *r, const text_symbol *y, const char *at) {
  int status = text_fail(r, at, XLAC_E_UNKNOWN_NAME, "no op '%s' has been defined in this computation", y->name->s);
  if (y->op) return base_hint(r->err, status, "another computation has one of that name, on line %u", y->op->line);
  return base_hint(r->err, status, "ops are defined before they are used");
}

/*   %x      f32[2] %x      add(%x, %y)      f32[2] add(%x, %y)      f32[2]    (the last in lone instructions only) */
static int read_operand(text_reader *r, ir_computation *c) {
  const char *at = r->lx.p;
  const ir_type *declared = NULL;
  ir_op *op = NULL;
  if (text_at_type(r)) TRY(text_read_type(r, &declared));
  const char *name_at = r->lx.p;
  if (at_operand_name(r)) {
    text_symbol *y;
    TRY(text_read_name(r, "an operand", &y));
    op = text_op_named(r, y);
    if (!op && r->lone && r->level == 1) {
      TRY(declare_operand(r, c, y, declared, name_at, &op));
    } else if (!op) {
      return unknown_operand(r, y, name_at);
    }
    TRY(check_declared(r, declared, op, at));
  } else if (declared && r->lone && r->level == 1 && (*name_at == ',' || *name_at == ')')) {
    TRY(declare_operand(r, c, NULL, declared, at, &op));
  } else {
    r->lx.p = at;
    TRY(text_read_rhs(r, c, NULL, at, &op));
  }
  assert(op && op->parent == c);
  return BASE_VEC_PUSH(r->alloc, &r->ops, op) ? 0 : text_no_memory(r);
}

/*   (f32[2]{0} %a, %b) */
int text_read_operands(text_reader *r, ir_computation *c) {
  TRY(text_want(r, '(', "before the operands"));
  for (;;) {
    while (text_eat(&r->lx, ',')) { /* XLA's reader takes any number of commas */
    }
    if (*r->lx.p == ')') break;
    TRY(read_operand(r, c));
    if (*r->lx.p != ',' && *r->lx.p != ')') return text_expected(r, XLAC_E_SYNTAX, "',' or ')' after an operand");
  }
  return text_want(r, ')', "after the operands");
}

/* ---- Rules of single opcodes that XLA's reader has: what they need to be made at all (ir/check/check_form.c). */

/* Fixed arities come from ops.def. Sugar has the wrapped op's operands, or, in updates and dones, the chain. */
int text_check_counts(text_reader *r, const text_draft *d) {
  assert(r->ops.n >= d->first_operand + d->n_operands);
  int arity = ir_opcode_info(d->attrs.opcode)->arity;
  if (d->attrs.sugar || arity == IR_VARIADIC || (uint32_t)arity == d->n_operands) return 0;
  return text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "%s has %d operand%s, found %u", ir_opcode_text(d->attrs.opcode),
                   arity, base_plural(arity), d->n_operands);
}

/* What XLA's parser refuses itself, before any verifier. Counts are wrong where the opcode is, attributes where the op
 * begins. */
int text_check_op(text_reader *r, const text_draft *d, const ir_op *op) {
  if (ir_check_form(op, NULL) == 0) return 0; /* an error's room is large, and most ops have no error */
  xlac_error why = {0};
  (void)!ir_check_form(op, &why);
  return text_fail(r, why.code == XLAC_E_SYNTAX ? d->opcode_at : d->at, (base_code)why.code, "%s", why.message);
}

/* --- opcodes --- */

/* Opcodes whose result shape XLA's reader infers where it is not written. */
static bool may_omit_type(unsigned opcode) {
  switch ((ir_opcode)opcode) {
    case IR_OP_CONVERT:
    case IR_OP_BITCAST_CONVERT:
    case IR_OP_REDUCE_PRECISION:
    case IR_OP_STOCHASTIC_CONVERT:
    case IR_OP_CONSTANT:
    case IR_OP_IOTA:
    case IR_OP_PARAMETER:
    case IR_OP_RNG:
    case IR_OP_RNG_BIT_GENERATOR:
    case IR_OP_RNG_GET_AND_UPDATE_STATE:
    case IR_OP_BITCAST:
    case IR_OP_RESHAPE:
    case IR_OP_DYNAMIC_RESHAPE:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
    case IR_OP_SLICE:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_FUSION:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
    case IR_OP_COPY_START:
    case IR_OP_COPY_DONE:
    case IR_OP_INFEED:
    case IR_OP_OUTFEED:
    case IR_OP_SEND:
    case IR_OP_SEND_DONE:
    case IR_OP_RECV:
    case IR_OP_RECV_DONE:
    case IR_OP_SHUFFLE:
      return false;
    default:
      return !ir_opcode_has(opcode, IR_COLLECTIVE);
  }
}

static int unknown_opcode(text_reader *r, const base_istr *word) {
  int status = text_fail(r, r->lx.p, XLAC_E_UNKNOWN_OPCODE, "unknown opcode '%s'", word->s);
  if (ir_opcode_from_text(word->s, word->n))
    return base_hint(r->err, status, "newer XLA has it; it is read where strict reading is not asked for");
  ir_opcode near = text_nearest_opcode(word->s, word->n);
  return near ? base_hint(r->err, status, "did you mean '%s'?", ir_opcode_text(near))
              : base_hint(r->err, status, "`xlac ops` and docs/ops.md list the ops");
}

/* These have start ops of their own, or can't stand behind parameters. all-gather-start is an opcode, not sugar;
 * async-start and parameters can't stand in a wrapped computation. */
static bool may_be_wrapped(unsigned opcode) {
  switch ((ir_opcode)opcode) {
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COPY:
    case IR_OP_RECV:
    case IR_OP_SEND:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
      return false;
    default:
      return true;
  }
}

/* Takes the word and says what it means in d: an opcode, or one behind async sugar. */
static int read_opcode(text_reader *r, text_draft *d) {
  const char *p = r->lx.p, *e = text_name_end(p);
  if (!text_is(*p, TEXT_ALPHA)) return text_expected(r, XLAC_E_SYNTAX, "an opcode");
  text_symbol *y = text_symbol_of(r, p, (size_t)(e - p));
  if (!y) return text_no_memory(r);
  text_classify(y);
  if (y->opcode == IR_OP_INVALID && r->chlo) y->opcode = (uint16_t)ir_opcode_from_executable(y->name->s, y->name->n);
  if (y->opcode == IR_OP_INVALID || (ir_opcode_has(y->opcode, IR_NEWER) && r->strict))
    return unknown_opcode(r, y->name);
  if (y->sugar && !may_be_wrapped(y->opcode)) {
    int status = unknown_opcode(r, y->name);
    return base_hint(r->err, status, "%s can't be wrapped by an async op", ir_opcode_text(y->opcode));
  }
  if (!d->type && (y->sugar || !may_omit_type(y->opcode)))
    return text_fail(r, p, XLAC_E_CANNOT_INFER, "the result shape of '%s' must be written", y->name->s);
  assert(y->classified && y->opcode < IR_OP_COUNT);
  d->attrs.opcode = y->opcode;
  d->attrs.sugar = y->sugar;
  d->opcode_at = p;
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* --- what stands in parentheses --- */

/*   parameter(0) */
static int read_parameter(text_reader *r, text_draft *d) {
  TRY(text_want(r, '(', "before a parameter's number"));
  const char *at = r->lx.p;
  TRY(text_read_int(r, &d->number));
  if (d->number < 0)
    return text_fail(r, at, XLAC_E_SYNTAX, "a parameter's number is negative (%lld)", (long long)d->number);
  return text_want(r, ')', "after a parameter's number");
}

/* The literal has the constant's type, but for packed and dynamic types: see literal_type in read_literal.c. */
static int read_constant(text_reader *r, text_draft *d) {
  TRY(text_want(r, '(', "before a literal"));
  TRY(text_read_literal(r, d->type, &d->literal));
  d->type = d->literal->type;
  return text_want(r, ')', "after a literal");
}

/* A conditional's attributes depend on its first operand. */
static int look_at_selector(text_reader *r, text_draft *d) {
  if (d->n_operands == 0) return text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "a conditional needs a pred or an index");
  const ir_type *t = r->ops.items[d->first_operand]->type;
  if (!ir_is_scalar(t) || (t->dtype != XLAC_PRED && t->dtype != XLAC_S32)) {
    char found[120];
    return text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "a conditional's first operand is pred[] or s32[], not %s",
                     ir_type_text(t, found, sizeof found));
  }
  d->attrs.pred = t->dtype == XLAC_PRED;
  return 0;
}

/* What stands in the parentheses is a number for parameters, a literal for constants, and operands for all others. */
static int read_arguments(text_reader *r, text_draft *d) {
  d->first_operand = r->ops.n;
  if (d->attrs.opcode == IR_OP_PARAMETER) return read_parameter(r, d);
  if (d->attrs.opcode == IR_OP_CONSTANT) return read_constant(r, d);
  TRY(text_read_operands(r, d->c));
  d->n_operands = r->ops.n - d->first_operand;
  bool follows = d->attrs.sugar == TEXT_SUGAR_UPDATE || d->attrs.sugar == TEXT_SUGAR_DONE; /* takes the start */
  return d->attrs.opcode == IR_OP_CONDITIONAL && !follows ? look_at_selector(r, d) : 0;
}

/* --- defaults that the text may leave out --- */

/* Marks the attribute as given, so that it is not asked for as a required one. */
static int push_default(text_reader *r, text_draft *d, ir_attr a) {
  assert(ir_opcode_takes(d->attrs.opcode, a.key, NULL));
  d->attrs.seen[a.key / 64] |= UINT64_C(1) << (a.key % 64);
  return BASE_VEC_PUSH(r->alloc, &r->attrs, a) ? 0 : text_no_memory(r);
}

/* Whether the text had this attribute. */
static bool given(const text_draft *d, unsigned key) {
  return d->attrs.seen[key / 64] >> (key % 64) & 1;
}

/* XLA's parser lets two attributes out: topk's largest=true, and dimensions={} of a scalar's broadcast. */
static int add_defaults(text_reader *r, text_draft *d) {
  if (d->attrs.sugar > TEXT_SUGAR_START) return 0;
  if (d->attrs.opcode == IR_OP_TOPK && !given(d, IR_ATTR_LARGEST)) {
    ir_attr a = ir_attr_make(IR_ATTR_LARGEST);
    a.v.b = true;
    return push_default(r, d, a);
  }
  if (d->attrs.opcode == IR_OP_BROADCAST && !given(d, IR_ATTR_DIMENSIONS) && d->n_operands == 1 &&
      ir_is_scalar(r->ops.items[d->first_operand]->type)) {
    ir_attr a = ir_attr_make(IR_ATTR_DIMENSIONS);
    if (!(a.v.ints = ir_ints_make(r->m, 0, NULL))) return text_no_memory(r);
    return push_default(r, d, a);
  }
  return 0;
}

/* --- making the op --- */

/* Copies the parts of the draft from the stacks into the op. Operands' users are noted by ir_set_operand. */
static int attach_lists(text_reader *r, const text_draft *d, ir_op *op, uint32_t n_called) {
  base_arena *arena = &r->m->arena;
  assert(r->ops.n >= d->attrs.first_pred && op->n_called == n_called);
  uint32_t n_attrs = r->attrs.n - d->attrs.first, n_preds = r->ops.n - d->attrs.first_pred;
  for (uint32_t i = 0; i < d->n_operands; i++) ir_set_operand(op, i, (ir_value){r->ops.items[d->first_operand + i], 0});
  for (uint32_t i = 0; i < n_called; i++) op->called[i] = r->comps.items[d->attrs.first_called + i];
  if (n_attrs) {
    op->attrs = base_arena_memdup(arena, r->attrs.items + d->attrs.first, n_attrs * sizeof *op->attrs);
    if (!op->attrs) return text_no_memory(r);
    op->n_attrs = op->attr_cap = (uint8_t)n_attrs;
  }
  if (n_preds && !ir_set_control_preds(op, n_preds, r->ops.items + d->attrs.first_pred)) return text_no_memory(r);
  return 0;
}

/* The error of the inference is given at the opcode, with its own code. */
static int infer_type(text_reader *r, const text_draft *d, ir_op *op) {
  const ir_type *t = NULL;
  xlac_error why = {0};
  if (ir_infer(r->m, op, &t, &why) != 0) {
    int status = text_fail(r, d->opcode_at, why.code ? (base_code)why.code : XLAC_E_CANNOT_INFER,
                           "no result shape follows: %s", why.message);
    return base_hint(r->err, status, "%s", why.hint[0] ? why.hint : "write the result shape before the opcode");
  }
  assert(t);
  TRY(text_charge_type(r, d->opcode_at, t));
  ir_set_type(op, t);
  return 0;
}

/* infeed's and recv's results are made of the first element of the type that is written. */
static int complete_type(text_reader *r, const text_draft *d, ir_op *op) {
  bool received = op->opcode == IR_OP_INFEED || op->opcode == IR_OP_RECV;
  if (received && (!ir_is_tuple(op->type) || op->type->n_elements == 0))
    return text_fail(r, d->at, XLAC_E_SYNTAX, "the result of %s is a tuple that begins with what is received",
                     ir_opcode_text(op->opcode));
  return ir_complete_type(r->m, op) ? 0 : text_no_memory(r);
}

/* Takes operands, attributes and called computations off the stacks. On failure they stay: the whole parse ends. */
int text_make_op(text_reader *r, text_draft *d, ir_op **out) {
  assert(r->comps.n >= d->attrs.first_called && r->attrs.n >= d->attrs.first);
  if (r->attrs.n - d->attrs.first > UINT16_MAX) return text_fail(r, d->at, XLAC_E_TOO_LARGE, "too many attributes");
  uint32_t n_called = r->comps.n - d->attrs.first_called;
  ir_op *op = ir_op_new(d->c, (ir_opcode)d->attrs.opcode, d->type, d->name, d->n_operands, n_called);
  if (!op) return text_no_memory(r);
  text_where(&r->lx, d->at, &op->line, &op->col);
  TRY(attach_lists(r, d, op, n_called));
  if (op->opcode == IR_OP_CONSTANT) op->u.literal = d->literal;
  if (op->opcode == IR_OP_PARAMETER) {
    op->u.number = d->number;
    text_param p = {op, d->number};
    if (!BASE_VEC_PUSH(r->alloc, &r->params, p)) return text_no_memory(r);
  }
  TRY(text_check_op(r, d, op));
  TRY(op->type ? complete_type(r, d, op) : infer_type(r, d, op));
  assert(op->type && r->ops.n >= d->first_operand);
  r->ops.n = d->first_operand;
  r->attrs.n = d->attrs.first;
  r->comps.n = d->attrs.first_called;
  *out = op;
  return 0;
}

/* A sharding that is not a tuple, on a tuple result, holds for each leaf. XLA's parser does the same: {replicated} on
 * (f32[], f32[]) becomes {{replicated}, {replicated}}. */
static int spread_sharding(text_reader *r, const text_draft *d, ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SHARDING);
  if (!a || !ir_is_tuple(op->type) || a->v.sharding->kind == IR_SHARDING_TUPLE) return 0;
  TRY(text_charge_type(r, d->at, op->type));
  uint32_t n = ir_type_leaves(op->type);
  TRY(text_charge(r, d->at, n * sizeof(void *)));
  ir_sharding *s = BASE_NEW(&r->m->arena, ir_sharding);
  const ir_sharding **elements = BASE_ARRAY(&r->m->arena, const ir_sharding *, (size_t)n + 1);
  if (!s || !elements) return text_no_memory(r);
  for (uint32_t i = 0; i < n; i++) elements[i] = a->v.sharding;
  s->kind = IR_SHARDING_TUPLE;
  s->n_elements = n;
  s->elements = elements;
  ir_attr spread = *a;
  spread.v.sharding = s;
  return ir_attr_set(op, spread) ? 0 : text_no_memory(r);
}

/* Nested operands get a name of the opcode that the op will have, async-start for instance. */
static int name_op(text_reader *r, text_draft *d, text_symbol **name) {
  unsigned opcode = d->attrs.opcode;
  if (d->attrs.sugar) opcode = IR_OP_ASYNC_START + (unsigned)d->attrs.sugar - TEXT_SUGAR_START;
  if (!*name) TRY(text_anonymous(r, (ir_opcode)opcode, name));
  d->name = (*name)->name;
  return 0;
}

/* The order matters: made-up names are given before the async draft makes ops of its own, and the op is defined
 * last, so that it can't refer to itself. */
int text_read_rhs(text_reader *r, ir_computation *c, text_symbol *name, const char *at, ir_op **out) {
  text_draft d = {.c = c, .at = at};
  bool named = name != NULL;
  TRY(text_deeper(r));
  if (text_at_type(r)) TRY(text_read_type(r, &d.type));
  TRY(read_opcode(r, &d));
  TRY(read_arguments(r, &d));
  d.attrs.type = d.type;
  d.attrs.first = r->attrs.n;
  d.attrs.first_called = r->comps.n;
  d.attrs.first_pred = r->ops.n;
  TRY(text_check_counts(r, &d));
  if (named) TRY(text_read_attrs(r, &d.attrs));
  TRY(add_defaults(r, &d));
  TRY(text_check_required(r, &d.attrs, at));
  TRY(name_op(r, &d, &name));
  static_assert(IR_OP_ASYNC_DONE == IR_OP_ASYNC_START + 2, "name_op and text_async_draft count on it");
  TRY(text_async_draft(r, &d));
  ir_op *op;
  TRY(text_make_op(r, &d, &op));
  TRY(text_async_made(r, &d, op));
  TRY(spread_sharding(r, &d, op));
  if (named) TRY(text_take_name(r, name));
  TRY(text_define(r, name, op, at));
  r->depth--;
  *out = op;
  return 0;
}

/* The keyword, unless it is a name, as in "ROOT = f32[] ...". */
static bool eat_root(text_reader *r) {
  const char *p = r->lx.p;
  if (memcmp(p, "ROOT", 4) != 0 || text_is(p[4], TEXT_NAME) || p[4] == '=' || p[4] == ':') return false;
  r->lx.p = p + 4;
  text_skip(&r->lx);
  return true;
}

/* *root is set where this instruction is marked ROOT; a second one is an error. */
int text_read_instruction(text_reader *r, ir_computation *c, ir_op **root) {
  const char *root_at = r->lx.p;
  bool is_root = eat_root(r);
  const char *at = r->lx.p;
  text_symbol *name;
  ir_op *op;
  TRY(text_read_name(r, "an instruction's name", &name));
  const base_istr *outer = r->op_name;
  r->op_name = name->name;
  if (name->illegal) return text_fail(r, at, XLAC_E_SYNTAX, "'%s' is reserved and can't name an op", name->name->s);
  TRY(text_want(r, '=', "after an instruction's name"));
  if (is_root && *root) return text_fail(r, root_at, XLAC_E_SYNTAX, "a computation has only one ROOT");
  TRY(text_read_rhs(r, c, name, at, &op));
  if (is_root) *root = op;
  r->op_name = outer;
  return 0;
}
