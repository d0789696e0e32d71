/* Composites: ops wrapped in them, and calls in their place. stablehlo.composite "add" %a, %b {decomposition =
 * @add.impl} names an operation and the function that computes it for those who do not know the name. */
#include <stdio.h>

#include "../rewrite/symbols.h"

/* stablehlo-wrap-in-composite: ops of the names given become composites of functions that hold nothing but the op.
 * Requires: nothing. Preserves: all other ops; ops with regions that use values from outside, which a function could
 * not see; what an async_start starts. */

/* With op-names=stablehlo.abs:
 *    %0 = stablehlo.abs %a   ->   %0 = stablehlo.composite "stablehlo.abs" %a {decomposition = @stablehlo.abs.impl}
 * and a private function @stablehlo.abs.impl that returns stablehlo.abs of its argument. */
typedef struct wrap_run {
  opt_rewriter rw;
  base_slice names;
  int64_t number;
  const ir_mattr *version;
  base_map taken; /* names of functions */
} wrap_run;

/* "" for what has no registered name, which matches nothing. */
static const char *wrap_name(const ir_op *op) {
  const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
  return op->opcode == IR_OP_UNREGISTERED || op->opcode == IR_OP_PARAMETER || !mlir ? "" : mlir->name;
}

/* Comma-separated, blanks around names allowed. */
static bool wrap_is_listed(base_slice list, const char *name) {
  assert(name != NULL);
  size_t n = strlen(name);
  for (const char *p = list.p, *end = list.p + list.n; n && p < end;) {
    const char *comma = memchr(p, ',', (size_t)(end - p));
    const char *from = p, *to = comma ? comma : end;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    if ((size_t)(to - from) == n && memcmp(from, name, n) == 0) return true;
    p = comma ? comma + 1 : end;
  }
  return false;
}

/* Whether all values that the regions of op use are made in them. Depth is that of the text. */
static bool wrap_is_closed(const ir_op *op, const ir_computation *c) {
  IR_FOR_OPS(inner, c) {
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      const ir_computation *from = inner->operands[i].op->parent;
      while (from->owner && from->owner != op) from = from->owner->parent;
      if (from->owner != op) return false;
    }
    for (uint32_t i = 0; i < inner->n_called; i++)
      if (!wrap_is_closed(op, inner->called[i])) return false;
  }
  for (uint32_t i = 0; i < c->n_results; i++) {
    const ir_computation *from = c->results[i].op->parent;
    while (from->owner && from->owner != op) from = from->owner->parent;
    if (from->owner != op) return false;
  }
  return true;
}

/* Regions become part of the function, which sees its arguments only. */
static bool wrap_can(const ir_op *op) {
  const ir_op *owner = op->parent->owner;
  if (owner && owner->opcode == IR_OP_ASYNC_START) return false; /* which must hold just such an op */
  for (uint32_t i = 0; i < op->n_called; i++)
    if (!op->called[i] || !wrap_is_closed(op, op->called[i])) return false;
  return true;
}

/* A private function "stablehlo.add.impl", with a number where that is taken. */
static ir_computation *wrap_function(wrap_run *w, const char *name) {
  ir_module *m = w->rw.m;
  char text[128];
  for (uint32_t i = 0;; i++) {
    int n = i ? snprintf(text, sizeof text, "%s.impl_%u", name, i - 1) : snprintf(text, sizeof text, "%s.impl", name);
    assert(n > 0 && (size_t)n < sizeof text);
    const base_istr *full = ir_intern(m, text, (size_t)n);
    if (!full) return NULL;
    if (base_map_ptr(&w->taken, full)) continue;
    ir_computation *c = ir_computation_new(m, text, (size_t)n);
    if (!c || !base_map_set(&w->taken, base_key(full), base_key(c))) return NULL;
    ir_set_kind(c, IR_FUNCTION);
    ir_set_computation_name(c, full);
    ir_set_function_attrs(c, ir_mdict_with(m, NULL, "sym_visibility", ir_m_string(m, "private", 7)));
    return c->mlir ? c : NULL;
  }
}

/* A copy of the op in a function of its own, whose parameters are the op's operands. */
static ir_op *wrap_body(wrap_run *w, const ir_op *op, ir_computation *f) {
  opt_rewriter *rw = &w->rw;
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  if (!args) return NULL;
  f->loc = op->loc;
  f->return_loc = op->loc;
  rw->origin = op;
  for (uint32_t i = 0; i < op->n_operands; i++) args[i] = opt_region_argument(rw, f, ir_operand_type(op, i));
  opt_at_end(rw, f, op);
  opt_copy_op(rw, op, args, args + op->n_operands);
  if (!rw->failed) opt_set_results(rw, f, op->n_results, args + op->n_operands);
  return rw->failed ? NULL : f->last;
}

/* The op's attributes are composite_attributes of the composite, and stay on the op inside. */
static void wrap_op(wrap_run *w, ir_op *op) {
  opt_rewriter *rw = &w->rw;
  ir_module *m = rw->m;
  const char *name = wrap_name(op);
  assert(*name != 0);
  ir_computation *f = wrap_function(w, name);
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  rw->failed = rw->failed || !f || !values || !wrap_body(w, op, f);
  if (rw->failed) return;
  for (uint32_t i = 0; i < op->n_operands; i++) values[i] = opt_operand(op, i);
  opt_at(rw, op);
  ir_value v = {opt_make_n(rw, IR_OP_COMPOSITE, op->n_results, op->types, op->n_operands, values, 0), 0};
  opt_set(rw, v, "name", ir_m_string(m, name, strlen(name)));
  opt_set(rw, v, "decomposition", ir_m_symbol(m, f->name->s, f->name->n));
  if (op->mlir && op->mlir->n) opt_set(rw, v, "composite_attributes", ir_m_dict(m, op->mlir));
  opt_set(rw, v, "version", w->version);
  for (uint32_t i = 0; v.op && i < op->n_results; i++) values[i] = (ir_value){v.op, i};
  if (!rw->failed) opt_replace_op(rw, op, values);
}

/* Ids tell the functions that are made on the way: they are larger. */
static int wrap_all(wrap_run *w) {
  ir_module *m = w->rw.m;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind == IR_FUNCTION && !base_map_set(&w->taken, base_key(c->name), base_key(c))) w->rw.failed = true;
  }
  w->version = ir_m_i32(m, w->number);
  if (!w->version) w->rw.failed = true;
  /* Functions made on the way come last and are not looked at; regions of what was wrapped went with it. */
  uint32_t last_id = m->n_computation_ids;
  for (ir_computation *c = m->first, *next = NULL; c && !w->rw.failed; c = next) {
    IR_FOR_OPS_SAFE(op, c) {
      if (c->id >= last_id || w->rw.failed) break;
      if (wrap_is_listed(w->names, wrap_name(op)) && wrap_can(op)) wrap_op(w, op);
    }
    next = c->next;
  }
  return opt_rewriter_status(&w->rw);
}

int opt_wrap_in_composite(ir_module *m, const opt_args *args, xlac_error *err) {
  wrap_run w = {.names = opt_get_text(args, "op-names"), .number = opt_get(args, "version")};
  TRY(opt_rewriter_init(&w.rw, m, err));
  base_map_init(&w.taken, m->alloc);
  int status = wrap_all(&w);
  base_map_free(&w.taken);
  opt_rewriter_free(&w.rw);
  return status;
}

/* stablehlo-legalize-composite-to-call: composites become calls of the functions that decompose them.
 * Requires: nothing. Preserves: composites whose names are listed in `except`, and those with regions. */

/* Whether `name` is one of the comma-separated words of `list`. */
static bool composite_is_listed(base_slice list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list.p, *end = list.p + list.n; p < end;) {
    const char *comma = memchr(p, ',', (size_t)(end - p));
    const char *to = comma ? comma : end;
    if ((size_t)(to - p) == n && memcmp(p, name, n) == 0) return true;
    p = to + 1;
  }
  return false;
}

/* Attributes of the composite other than the function it calls are dropped, as upstream does. */
static int composite_to_call(opt_rewriter *rw, ir_op *op) {
  assert(op->opcode == IR_OP_COMPOSITE);
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  rw->failed = rw->failed || !values;
  TRY(opt_rewriter_status(rw));
  for (uint32_t i = 0; i < op->n_operands; i++) values[i] = opt_operand(op, i);
  opt_at(rw, op);
  ir_op *call = opt_make_n(rw, IR_OP_CALL, op->n_results, op->types, op->n_operands, values, 0);
  opt_set(rw, (ir_value){call, 0}, "callee", ir_mattr_of(op, "decomposition"));
  for (uint32_t i = 0; call && i < op->n_results; i++) values[i] = (ir_value){call, i};
  if (call) opt_replace_op(rw, op, values);
  return opt_rewriter_status(rw);
}

/* Composites with regions keep their own decomposition and are left. */
int opt_composite_to_call(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  base_slice except = opt_get_text(args, "except");
  TRY(opt_rewriter_init(&rw, m, err));
  int status = 0;
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (op->opcode != IR_OP_COMPOSITE || op->n_called) continue;
      if (!composite_is_listed(except, ir_m_get_str(op, "name"))) status = composite_to_call(&rw, op);
    }
  }
  opt_rewriter_free(&rw);
  return status;
}
