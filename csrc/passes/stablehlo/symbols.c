/* Functions by name. */
#include "symbols.h"

int opt_symbols_make(opt_symbols *s, const ir_module *m, xlac_error *err) {
  base_map_init(&s->by_name, m->alloc);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || base_map_set(&s->by_name, base_key(c->name), base_key(c))) continue;
    opt_symbols_free(s);
    return base_oom(err, "a pass");
  }
  return 0;
}

void opt_symbols_free(opt_symbols *s) {
  base_map_free(&s->by_name);
}

ir_computation *opt_symbol(const opt_symbols *s, const base_istr *name, bool body) {
  ir_computation *c = base_map_ptr(&s->by_name, name);
  return c && body && c->declaration ? NULL : c;
}

static const ir_mattr *callee_of(const ir_op *op) {
  if (op->opcode == IR_OP_CALL) return ir_mattr_of(op, "callee");
  if (op->opcode == IR_OP_COMPOSITE) return ir_mattr_of(op, "decomposition");
  return NULL;
}

ir_computation *opt_callee(const opt_symbols *s, const ir_op *op) {
  const ir_mattr *a = callee_of(op);
  if (!a || a->kind != IR_M_SYMBOL || a->v.list->n != 1) return NULL;
  return opt_symbol(s, a->v.list->v[0]->str, true);
}

bool opt_is_private(const ir_computation *c) {
  const ir_mattr *a = ir_mdict_get(c->mlir, "sym_visibility");
  return a && a->kind == IR_M_STRING && strcmp(a->str->s, "private") == 0;
}

static void symbols_in_dict(const ir_mdict *d, void (*fn)(void *ctx, const base_istr *name), void *ctx);

/* Attributes nest as deep as the reader lets them. */
static void symbols_in(const ir_mattr *a, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  if (a->kind == IR_M_SYMBOL) fn(ctx, a->v.list->v[0]->str);
  if (a->kind == IR_M_ARRAY)
    for (uint32_t i = 0; i < a->v.list->n; i++) symbols_in(a->v.list->v[i], fn, ctx);
  if (a->kind == IR_M_DICT || a->kind == IR_M_STRUCT) symbols_in_dict(a->v.dict, fn, ctx);
}

static void symbols_in_dict(const ir_mdict *d, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  for (uint32_t i = 0; d && i < d->n; i++) symbols_in(d->v[i].value, fn, ctx);
}

void opt_for_symbols(const ir_op *op, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  assert(op->parent);
  symbols_in_dict(op->mlir, fn, ctx);
}
