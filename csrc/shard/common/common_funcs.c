/* Functions: their order, copies, names and the shardings of their signatures. */
#include <stdio.h>

#include "common.h"

/* --- order --- */

typedef struct shc_order {
  const opt_symbols *symbols;
  uint8_t *seen; /* by computation id */
  ir_computation **list;
  uint32_t n;
  /* The functions on the way from the first one, each with the next of its calls to follow. */
  ir_computation ***callees;
  uint32_t *n_callees, *next;
  ir_computation **stack;
  uint32_t depth;
  base_arena *arena;
  bool failed;
} shc_order;

/* The calls in c and its regions, in text order; counted only where `to` is NULL. */
static void shc_collect(shc_order *o, const ir_computation *c, ir_computation **to, uint32_t *n) {
  IR_FOR_OPS(op, c) {
    ir_computation *callee = op->opcode == IR_OP_CALL ? opt_callee(o->symbols, op) : NULL;
    if (callee && !callee->declaration) {
      if (to) to[*n] = callee;
      ++*n;
    }
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) shc_collect(o, op->called[i], to, n);
  }
}

/* Enters a function that was not seen yet. Marked on entry, so that recursion ends. */
static void shc_visit(shc_order *o, ir_computation *c) {
  if (o->seen[c->id] || c->declaration || o->failed) return;
  uint32_t n = 0, k = 0;
  shc_collect(o, c, NULL, &n);
  ir_computation **list = BASE_ARRAY(o->arena, ir_computation *, (size_t)n + 1);
  o->failed = !list;
  if (o->failed) return;
  shc_collect(o, c, list, &k);
  o->seen[c->id] = 1;
  o->stack[o->depth] = c;
  o->callees[o->depth] = list;
  o->n_callees[o->depth] = n;
  o->next[o->depth++] = 0;
}

/* Depth first; a function comes when all that it calls has come. */
static void shc_follow(shc_order *o, ir_computation *from) {
  shc_visit(o, from);
  while (o->depth && !o->failed) {
    uint32_t top = o->depth - 1;
    if (o->next[top] < o->n_callees[top]) {
      shc_visit(o, o->callees[top][o->next[top]++]);
      continue;
    }
    o->list[o->n++] = o->stack[top];
    o->depth--;
  }
}

/* An explicit stack: call chains can be longer than the C stack is deep. */
ir_computation **shc_functions(const ir_module *m, const opt_symbols *symbols, bool callers_first, base_arena *arena,
                               uint32_t *n) {
  size_t most = (size_t)m->n_computations + 1;
  shc_order o = {.symbols = symbols, .arena = arena};
  o.seen = base_arena_zalloc(arena, (size_t)m->n_computation_ids + 1);
  o.list = BASE_ARRAY(arena, ir_computation *, most);
  o.stack = BASE_ARRAY(arena, ir_computation *, most);
  o.callees = BASE_ARRAY(arena, ir_computation **, most);
  o.n_callees = BASE_ARRAY(arena, uint32_t, most);
  o.next = BASE_ARRAY(arena, uint32_t, most);
  if (!o.seen || !o.list || !o.stack || !o.callees || !o.n_callees || !o.next) return NULL;
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner) shc_follow(&o, c);
  for (uint32_t i = 0; callers_first && i < o.n / 2; i++) {
    ir_computation *c = o.list[i];
    o.list[i] = o.list[o.n - 1 - i];
    o.list[o.n - 1 - i] = c;
  }
  *n = o.n;
  assert(o.n <= m->n_computations);
  return o.failed ? NULL : o.list;
}

/* `only`: a sole function counts as main, whatever its name. */
ir_computation *shc_main(const ir_module *m, bool only) {
  ir_computation *first = NULL, *named = NULL;
  uint32_t n = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || c->owner) continue;
    if (!n++) first = c;
    if (strcmp(c->name->s, "main") == 0) named = c;
  }
  return only && n == 1 ? first : named;
}

int shc_no_main(const ir_module *m, xlac_error *err) {
  uint32_t line = 1, col = 1;
  for (const ir_computation *c = m->last; c; c = c->prev) {
    if (c->kind != IR_FUNCTION || c->owner) continue;
    line = c->line ? c->line : 1;
    col = c->col ? c->col : 1;
  }
  int status = base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, line, col, "func.func",
                            "there is not one function, and none is @main: the one that runs");
  return base_hint(err, status, "call the function that runs @main");
}

/* --- places, copies --- */

/* All of them, named or not: what needed them has them inlined. */
void shc_drop_meshes(ir_module *m) {
  for (ir_computation *c = m->first, *next = NULL; c; c = next) {
    next = c->next;
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    ir_computation_remove(c);
  }
}

/* Attributes, locations and names of arguments are shared with the original: they are immutable. */
ir_computation *shc_copy_function(opt_rewriter *rw, const ir_computation *f, const base_istr *name) {
  ir_module *m = rw->m;
  ir_computation *to = name ? ir_computation_new(m, name->s, name->n) : NULL;
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)f->n_params + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)f->n_results + 1);
  if (!to || !args || !results) return NULL;
  ir_set_kind(to, IR_FUNCTION);
  ir_set_function_attrs(to, f->mlir);
  ir_set_all_result_attrs(to, f->result_mlir);
  to->loc = f->loc;
  to->return_loc = f->return_loc;
  to->return_line = f->return_line;
  to->return_col = f->return_col;
  ir_set_return_attrs(to, f->return_mlir);
  to->return_name = f->return_name;
  to->line = f->line;
  to->col = f->col;
  for (uint32_t i = 0; i < f->n_params; i++) {
    opt_at_end(rw, to, f->params[i]);
    args[i] = opt_region_argument(rw, to, f->params[i]->type);
    if (!args[i].op) return NULL;
    ir_set_mlir(args[i].op, f->params[i]->mlir);
    args[i].op->line = f->params[i]->line;
    args[i].op->col = f->params[i]->col;
  }
  opt_at_end(rw, to, NULL);
  opt_inline(rw, f, args, results);
  opt_set_results(rw, to, f->n_results, results);
  return rw->failed ? NULL : to;
}

/* Functions' attributes beside those of arguments and results. */
bool shc_set_function(ir_computation *f, const char *key, const ir_mattr *value) {
  const ir_mdict *d = ir_mdict_with(f->module, f->mlir, key, value);
  if (d) ir_set_function_attrs(f, d);
  return d != NULL;
}

/* --- names --- */

/* Mesh symbols count by their sym_name: the computation that holds a mesh op has a name of its own. */
bool shc_names_init(shc_names *s, ir_module *m) {
  s->m = m;
  s->next = 0;
  base_map_init(&s->taken, m->alloc);
  IR_FOR_COMPUTATIONS(c, m) {
    const ir_mattr *symbol = c->kind == IR_SYMBOL && c->first ? ir_mattr_of(c->first, "sym_name") : NULL;
    const base_istr *name = symbol ? symbol->str : c->name;
    if (!c->owner && !base_map_set(&s->taken, base_key(name), 1)) return false;
  }
  return true;
}

void shc_names_free(shc_names *s) {
  base_map_free(&s->taken);
}

/* `next` is not reset, so the numbers of different stems interleave, as MLIR's symbol renaming does. */
const base_istr *shc_fresh(shc_names *s, const char *stem, size_t n) {
  assert(stem != NULL);
  uint64_t taken;
  const base_istr *name = ir_intern(s->m, stem, n);
  while (name && base_map_get(&s->taken, base_key(name), &taken)) {
    base_text text;
    base_text_init(&text, s->m->alloc);
    base_put(&text, stem, n);
    base_putc(&text, '_');
    base_put_u64(&text, s->next++);
    name = text.failed ? NULL : ir_intern(s->m, text.s, text.n);
    base_text_free(&text);
  }
  return name && base_map_set(&s->taken, base_key(name), 1) ? name : NULL;
}

/* sdy-flatten-call-graph leaves the name of what it copied in this attribute. */
const base_istr *shc_original_name(const ir_computation *f) {
  const ir_mattr *a = ir_mdict_get(f->mlir, "sdy.original_func_name");
  return a && a->kind == IR_M_STRING ? a->str : f->name;
}

/* --- shardings of signatures --- */

static const sdy_sharding *shc_signature_sharding(const ir_computation *f, bool results, uint32_t i) {
  return results ? sdy_get_result(f, i) : sdy_get((ir_value){f->params[i], 0});
}

/* *out NULL: there is none, which is not the same as a list of empty shardings. */
static bool shc_signature_shardings(const ir_computation *f, bool results, const sdy_shardings **out) {
  ir_module *m = f->module;
  uint32_t n = results ? f->n_results : f->n_params;
  const sdy_sharding *like = NULL;
  *out = NULL;
  for (uint32_t i = 0; i < n && !like; i++) {
    const sdy_sharding *s = shc_signature_sharding(f, results, i);
    const sdy_mesh *mesh = s ? sdy_mesh_of(m, s) : NULL;
    if (mesh && !sdy_mesh_is_maximal(mesh)) like = s;
  }
  if (!like) return true;
  const sdy_sharding **v = BASE_ARRAY(&m->arena, const sdy_sharding *, n);
  sdy_shardings *list = BASE_NEW(&m->arena, sdy_shardings);
  for (uint32_t i = 0; v && i < n; i++) {
    const ir_type *type = results ? f->results[i].op->types[f->results[i].index] : f->params[i]->type;
    v[i] = shc_signature_sharding(f, results, i);
    if (!v[i]) v[i] = sdy_sharding_empty(m, like, sdy_rank(type), true);
    if (!v[i]) return false;
  }
  if (!v || !list) return false;
  *list = (sdy_shardings){n, v};
  *out = list;
  return true;
}

bool shc_argument_shardings(const ir_computation *f, const sdy_shardings **out) {
  return shc_signature_shardings(f, false, out);
}

bool shc_result_shardings(const ir_computation *f, const sdy_shardings **out) {
  return shc_signature_shardings(f, true, out);
}

/* --- bodies --- */

/* The function itself becomes the region: nothing is copied, its kind and owner change and its attributes go. */
bool shc_take_body(ir_op *op, ir_computation *f) {
  assert(op->n_called == 1 && f->kind == IR_FUNCTION);
  ir_module *m = f->module;
  ir_set_region(op, 0, f);
  ir_set_function_attrs(f, NULL);
  ir_set_all_result_attrs(f, NULL);
  f->return_name = ir_intern(m, "sdy.return", 10);
  for (uint32_t i = 0; i < f->n_params; i++) ir_set_mlir(f->params[i], NULL);
  if (m->entry == f) ir_set_entry(m, shc_main(m, false));
  if (!m->entry) ir_set_entry(m, m->first);
  return f->return_name != NULL;
}

/* The other way: the region itself becomes a function, the last of the module. */
ir_computation *shc_give_body(ir_op *op, const base_istr *name) {
  assert(op->n_called == 1);
  ir_computation *f = op->called[0];
  ir_set_kind(f, IR_FUNCTION);
  ir_set_computation_name(f, name);
  ir_set_function_attrs(f, NULL);
  f->return_name = NULL;
  f->loc = op->loc;
  f->line = op->line;
  f->col = op->col;
  ir_set_all_called(op, 0, NULL);
  ir_computation_move(f, NULL);
  return f;
}

/* Of the kind that functions' names are told apart from, too. */
ir_computation *shc_make_mesh(ir_module *m, const base_istr *name, const sdy_mesh *mesh, ir_computation *before) {
  const base_istr *none = ir_intern(m, "", 0);
  ir_computation *c = name ? ir_computation_new(m, name->s, name->n) : NULL;
  ir_op *op = c && none ? ir_op_new_n(c, IR_OP_SDY_MESH, 0, NULL, none, 0, 0) : NULL;
  if (!op) return NULL;
  assert(c->n_params == 0);
  ir_set_kind(c, IR_SYMBOL);
  ir_computation_move(c, before ? before : m->first);
  bool ok =
      ir_m_set(op, "sym_name", ir_m_string(m, name->s, name->n)) && ir_m_set(op, "mesh", sdy_attr(m, SDY_MESH, mesh));
  return ok ? c : NULL;
}
