/* Values: replacing uses, counting them, walks over ops, and every sharding of a module through one function. What a
 * region or function returns is a use too, but lies in the computation's result list and not in an op's operands; a
 * region may return values from outside of it, which the rewriter lists as leaks. */
#include "../../ir/stablehlo/stablehlo.h"
#include "common.h"

/* An op's results are values of their own. */
static bool shc_same_value(ir_value a, ir_value b) {
  return a.op == b.op && a.index == b.index;
}

/* A value may be returned more than once. */
static void shc_replace_returned(ir_computation *c, ir_value from, ir_value to) {
  for (uint32_t i = 0; i < c->n_results; i++)
    if (shc_same_value(c->results[i], from)) ir_set_result(c, i, to);
}

/* As MLIR's replaceAllUsesExcept. A value of NULL, from a maker that had no memory, makes the rewriter fail. */
void shc_replace_value(opt_rewriter *rw, ir_value from, ir_value to, const ir_op *except) {
  rw->failed = rw->failed || !to.op;
  if (rw->failed || shc_same_value(from, to)) return;
  for (ir_use *u = from.op->uses, *next = NULL; u; u = next) {
    next = u->next;
    if (u->index == from.index && u->user != except) ir_set_operand(u->user, u->slot, to);
  }
  shc_replace_returned(from.op->parent, from, to);
  for (uint32_t i = 0; i < rw->n_leaks; i++) shc_replace_returned(rw->leaks[i], from, to);
}

static void shc_replace_all_returned(ir_computation *c, const ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == op) ir_set_result(c, i, values[c->results[i].index]);
}

/* For ops that are made from the value they replace, such as edges: `values[i].op` itself keeps its operand. */
void shc_replace_but_own(opt_rewriter *rw, ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < op->n_results; i++) rw->failed = rw->failed || !values[i].op;
  if (rw->failed) return;
  for (ir_use *u = op->uses, *next = NULL; u; u = next) {
    next = u->next;
    ir_value to = values[u->index];
    if (u->user != to.op && to.op != op) ir_set_operand(u->user, u->slot, to);
  }
  shc_replace_all_returned(op->parent, op, values);
  for (uint32_t i = 0; i < rw->n_leaks; i++) shc_replace_all_returned(rw->leaks[i], op, values);
}

/* After an op; of an argument, at the start of its block. */
void shc_at_value(opt_rewriter *rw, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER) {
    opt_at_start(rw, v.op->parent);
  } else {
    rw->into = v.op->parent;
    rw->before = v.op->next;
  }
  rw->origin = v.op;
}

static uint32_t shc_count_returned(const ir_computation *c, ir_value v) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n_results; i++) n += shc_same_value(c->results[i], v);
  return n;
}

/* Stops counting once `most` is reached: callers ask "one or more?", and lists of uses can be long. */
uint32_t shc_count_uses(const opt_rewriter *rw, ir_value v, uint32_t most) {
  assert(most > 0);
  uint32_t n = 0;
  for (const ir_use *u = v.op->uses; u && n < most; u = u->next) n += u->index == v.index;
  n += shc_count_returned(v.op->parent, v);
  for (uint32_t i = 0; i < rw->n_leaks && n < most; i++)
    if (rw->leaks[i] != v.op->parent) n += shc_count_returned(rw->leaks[i], v);
  return n < most ? n : most;
}

/* `after`: inner ops first. */
static int shc_walk_regions(ir_op *op, bool after, shc_op_fn *fn, void *ctx) {
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(shc_walk(op->called[i], after, fn, ctx));
  return 0;
}

/* Depth is bounded by the verifier. */
int shc_walk(ir_computation *c, bool after, shc_op_fn *fn, void *ctx) {
  IR_FOR_OPS_SAFE(op, c) {
    if (op->opcode == IR_OP_PARAMETER) continue;
    if (after) TRY(shc_walk_regions(op, after, fn, ctx));
    int status = fn(ctx, op);
    if (status < 0) return status;
    if (!after && status != SHC_SKIP) TRY(shc_walk_regions(op, after, fn, ctx));
  }
  return 0;
}

/* Functions in the order they have in the module; regions belong to their ops. */
int shc_walk_module(ir_module *m, bool after, shc_op_fn *fn, void *ctx) {
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner) TRY(shc_walk(c, after, fn, ctx));
  return 0;
}

bool shc_has(const ir_module *m, ir_opcode opcode) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (op->opcode == opcode) return true;
  return false;
}

/* Passes of this room call it where the module's text, or a user's attributes, may have led to something invalid. */
int shc_verify(ir_module *m, xlac_error *err) {
  return stablehlo_verify(m, err);
}

int shc_verify_fitting(ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || sdy_is_collective(op)) return shc_verify(m, err);
  return 0;
}

/* Every sharding of a module through one function. */

typedef struct shc_mapper {
  ir_module *m;
  shc_map_fn *fn;
  void *ctx;
  base_map done; /* a sharding, a list of them, an attribute or a dictionary, to what became of it */
  bool failed;
} shc_mapper;

/* `done` makes a shared sharding become one shared result, and calls fn once for each. */
static const sdy_sharding *shc_map_one(shc_mapper *p, const sdy_sharding *s) {
  const sdy_sharding *to = base_map_ptr(&p->done, s);
  if (to) return to;
  to = p->fn(p->ctx, s);
  if (!to || !base_map_set(&p->done, base_key(s), base_key(to))) p->failed = true;
  return to;
}

static const sdy_shardings *shc_map_list(shc_mapper *p, const sdy_shardings *list) {
  assert(list != NULL);
  const sdy_shardings *known = base_map_ptr(&p->done, list);
  if (known) return known;
  const sdy_sharding **v = NULL;
  for (uint32_t i = 0; i < list->n && !p->failed; i++) {
    const sdy_sharding *to = shc_map_one(p, list->v[i]);
    if (to == list->v[i]) continue;
    if (!v) v = base_arena_memdup(&p->m->arena, list->v, list->n * sizeof *v);
    if (v) v[i] = to;
    p->failed = p->failed || !v;
  }
  sdy_shardings *to = v ? BASE_NEW(&p->m->arena, sdy_shardings) : NULL;
  if (to) *to = (sdy_shardings){list->n, v};
  if ((v && !to) || !base_map_set(&p->done, base_key(list), base_key(v ? to : list))) p->failed = true;
  return v ? to : list;
}

/* The attribute with its sharding or shardings mapped; itself where none changes. */
static const ir_mattr *shc_map_attr(shc_mapper *p, const ir_mattr *a) {
  const ir_mattr *known = base_map_ptr(&p->done, a);
  if (known) return known;
  const void *to = a->v.sdy;
  if (a->sub == SDY_SHARDING) to = shc_map_one(p, a->v.sdy);
  if (a->sub == SDY_SHARDINGS) to = shc_map_list(p, a->v.sdy);
  if (to == a->v.sdy || p->failed) return a;
  const ir_mattr *made = sdy_attr(p->m, (sdy_kind)a->sub, to);
  p->failed = !made || !base_map_set(&p->done, base_key(a), base_key(made));
  return made;
}

/* The dictionary, changed where a sharding is. Keys stay, so the order does. `but`: a key to leave alone, or NULL. */
static const ir_mdict *shc_map_dict(shc_mapper *p, const ir_mdict *d, const char *but) {
  ir_mdict *to = d && !but ? base_map_ptr(&p->done, d) : NULL;
  if (to) return to;
  for (uint32_t i = 0; d && i < d->n && !p->failed; i++) {
    if (d->v[i].value->kind != IR_M_SDY || (but && strcmp(d->v[i].key->s, but) == 0)) continue;
    const ir_mattr *a = shc_map_attr(p, d->v[i].value);
    if (a == d->v[i].value || p->failed) continue;
    if (!to) to = base_arena_memdup(&p->m->arena, d, sizeof *d + d->n * sizeof *d->v);
    p->failed = !to;
    if (to) to->v[i].value = a;
  }
  if (to && !but && !base_map_set(&p->done, base_key(d), base_key(to))) p->failed = true;
  return to ? to : d;
}

/* Attributes of arguments and results: the sharding is the entry "sdy.sharding" of a dictionary. */
static void shc_map_signature(shc_mapper *p, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) ir_set_mlir(f->params[i], shc_map_dict(p, f->params[i]->mlir, NULL));
  for (uint32_t i = 0; i < ir_function_results(f) && !p->failed; i++) {
    const ir_mdict *old = ir_result_attrs(f, i), *d = shc_map_dict(p, old, NULL);
    if (d != old && !ir_set_result_attrs(f, i, d)) p->failed = true;
  }
}

static int shc_map_op(void *ctx, ir_op *op) {
  shc_mapper *p = ctx;
  /* One on a computation, which has lists of its own, says nothing, and is nobody's to change. */
  bool own = op->opcode == IR_OP_SDY_NAMED_COMPUTATION || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  ir_set_mlir(op, shc_map_dict(p, op->mlir, own ? "sdy.sharding" : NULL));
  return p->failed ? -XLAC_E_OUT_OF_MEMORY : 0;
}

/* Every sharding of a module: on ops, arguments, results, and inside the dialect's own attributes. fn gives the
 * sharding itself where nothing changes. */
int shc_map(ir_module *m, shc_map_fn *fn, void *ctx, xlac_error *err) {
  shc_mapper p = {.m = m, .fn = fn, .ctx = ctx};
  base_map_init(&p.done, m->alloc);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || c->owner || p.failed) continue;
    shc_map_signature(&p, c);
    if (shc_walk(c, false, shc_map_op, &p) != 0) p.failed = true;
  }
  base_map_free(&p.done);
  return p.failed ? base_oom(err, "the shardings of a module") : 0;
}
