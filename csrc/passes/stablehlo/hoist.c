/* Constants to the front: what MLIR's driver of patterns does with them on its way, and so Shardy's passes that are
 * made of patterns. Every region that sees nothing of what is around it (a function, a computation) has one constant of
 * each value, before all other ops; those that stand there already keep their order, others go before them. */
#include "../simplify/mlir_simplify.h"

BASE_VEC(hoist_ops, ir_op *);
typedef struct hoist_run {
  opt_rewriter *rw;
  ir_computation *front; /* where constants go */
  base_map by_value;     /* a hash to the first of `kept` with it, plus 1 */
  hoist_ops kept;        /* those of `front` */
} hoist_run;

static const ir_mattr *hoist_value(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT ? ir_mattr_of(op, "value") : NULL;
}

static bool hoist_same(const ir_op *a, const ir_op *b) {
  return a->types[0] == b->types[0] && ir_mattr_equal(hoist_value(a), hoist_value(b));
}

static uint64_t hoist_hash(hoist_run *x, const ir_op *op) {
  const ir_mdict *d = ir_mdict_with(x->rw->m, NULL, "value", hoist_value(op));
  uint64_t hash = d ? (ir_mdict_hash(d) ^ base_key(op->types[0])) : 0;
  x->rw->failed = x->rw->failed || !d;
  return hash ? hash : 1;
}

/* The one that is kept, or NULL. Hashes that collide are looked through one by one. */
static ir_op *hoist_find(const hoist_run *x, const ir_op *op, uint64_t hash) {
  uint64_t at = 0;
  if (!base_map_get(&x->by_value, hash, &at)) return NULL;
  for (uint32_t i = (uint32_t)at - 1; i < x->kept.n; i++)
    if (hoist_same(x->kept.items[i], op)) return x->kept.items[i];
  return NULL;
}

static ir_op *hoist_first_op(const ir_computation *c) {
  ir_op *op = c->first;
  while (op && op->opcode == IR_OP_PARAMETER) op = op->next;
  return op;
}

/* A constant of an inner region, as one of the front. */
static ir_op *hoist_out(hoist_run *x, ir_op *op, ir_op *before) {
  opt_rewriter *rw = x->rw;
  ir_value made;
  opt_at(rw, op);
  rw->into = x->front;
  rw->before = before;
  opt_copy_op(rw, op, NULL, &made);
  if (!rw->failed) opt_replace_one(rw, op, made);
  return made.op;
}

/* Those that are kept stand together at the front, so one right after another constant is in its place. */
static void hoist_constant(hoist_run *x, ir_op *op) {
  opt_rewriter *rw = x->rw;
  uint64_t hash = hoist_hash(x, op), at = 0;
  ir_op *same = rw->failed ? NULL : hoist_find(x, op, hash);
  if (same) opt_replace_one(rw, op, opt_result(same, 0));
  if (same || rw->failed) return;
  ir_op *first = hoist_first_op(x->front);
  if (op->parent != x->front)
    op = hoist_out(x, op, first);
  else if (op != first && !(op->prev && hoist_value(op->prev)))
    ir_op_move(op, first);
  if (rw->failed) return;
  bool ok = BASE_VEC_PUSH(rw->m->alloc, &x->kept, op);
  if (ok && !base_map_get(&x->by_value, hash, &at)) ok = base_map_set(&x->by_value, hash, x->kept.n);
  rw->failed = rw->failed || !ok;
}

static void hoist_region(hoist_run *x, ir_computation *c);

/* A region of its own: what is around it is not seen, nor what is in it from outside. */
static void hoist_isolated(hoist_run *x, ir_computation *c) {
  hoist_run inner = {.rw = x->rw, .front = c};
  base_map_init(&inner.by_value, x->rw->m->alloc);
  hoist_region(&inner, c);
  base_map_free(&inner.by_value);
  BASE_VEC_FREE(x->rw->m->alloc, &inner.kept);
}

/* Depth is that of the text, which its reader bounds. */
static void hoist_region(hoist_run *x, ir_computation *c) {
  for (ir_op *op = c->first, *next = NULL; op && !x->rw->failed; op = next) {
    next = op->next;
    if (hoist_value(op)) {
      hoist_constant(x, op);
      continue;
    }
    bool isolated = opt_is_isolated(op);
    for (uint32_t i = 0; i < op->n_called; i++) {
      if (op->called[i]->owner != op) continue;
      if (isolated)
        hoist_isolated(x, op->called[i]);
      else
        hoist_region(x, op->called[i]);
    }
  }
}

int opt_hoist_constants(opt_rewriter *rw) {
  hoist_run x = {.rw = rw};
  IR_FOR_COMPUTATIONS(c, rw->m)
  if (c->kind == IR_FUNCTION && !c->owner && !rw->failed) hoist_isolated(&x, c);
  rw->m->verified = IR_UNVERIFIED;
  return opt_rewriter_status(rw);
}
