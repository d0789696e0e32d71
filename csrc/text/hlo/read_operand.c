/* Operands: names, typed names, nested instructions, and in a lone instruction undeclared parameters. */
#include "read.h"

#include <stdio.h>

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

/* The shape written before an operand must be the operand's, layouts aside. */
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

/* Whether what begins at the cursor (a shape, if any, taken already) is an op's name and not a nested instruction. */
static bool at_operand_name(const text_reader *r) {
  const char *p = r->lx.p;
  if (*p == '%') return true;
  text_lexer ahead = r->lx;
  ahead.p = text_name_end(p);
  if (ahead.p == p || !text_is(*p, TEXT_ALPHA)) return false;
  if (*ahead.p == ':') ahead.p++;
  text_skip(&ahead);
  return *ahead.p == ',' || *ahead.p == ')';
}

static int unknown_operand(text_reader *r, const text_symbol *y, const char *at) {
  int status = text_fail(r, at, XLAC_E_UNKNOWN_NAME, "no op '%s' has been defined in this computation", y->name->s);
  if (y->op) return base_hint(r->err, status, "another computation has one of that name, on line %u", y->op->line);
  return base_hint(r->err, status, "ops are defined before they are used");
}

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
