/* cse: ops that compute the same value become one; and constants to the front of their function. Requires: nothing.
 * Preserves: effects, random ops, calls, collectives, and ops that differ in any attribute. An op of a region may
 * give way to one of an outer region, unless the region must not see outside. */
#include "../simplify/mlir_simplify.h"

/* An op that may stand for later ones; `next` is the one of the same hash before it, plus 1. */
typedef struct mcse_entry {
  ir_op *op;
  uint64_t hash;
  uint32_t next;
} mcse_entry;
BASE_VEC(mcse_entries, mcse_entry);

/* A scoped hash table: entries are a stack, each linked to the one before it of the same hash, so that leaving a
 * region pops what it added. */
typedef struct mcse_run {
  opt_rewriter *rw;
  bool constants_only;
  base_map heads; /* hash to its last entry, plus 1 */
  mcse_entries entries;
  uint32_t visible; /* the first entry that the present region sees */
} mcse_run;

static bool mcse_may(const mcse_run *x, const ir_op *op) {
  if (op->opcode == IR_OP_CONSTANT) return true;
  if (x->constants_only || op->n_called || op->n_results == 0 || op->opcode == IR_OP_PARAMETER) return false;
  return opt_is_pure(op) && op->opcode != IR_OP_CREATE_TOKEN && !ir_is_token(op->type);
}

/* Multiplication by 2^64 over the golden ratio. */
static uint64_t mcse_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

/* Never 0, which the map has for "none". */
static uint64_t mcse_hash(const ir_op *op) {
  uint64_t h = mcse_mix(op->opcode, op->n_results);
  for (uint32_t i = 0; i < op->n_results; i++) h = mcse_mix(h, base_key(op->types[i]));
  for (uint32_t i = 0; i < op->n_operands; i++)
    h = mcse_mix(mcse_mix(h, op->operands[i].op->id), op->operands[i].index);
  h = mcse_mix(h, ir_mdict_hash(op->mlir));
  return h ? h : 1;
}

/* Same op, types, operands and all attributes, locations and names aside. */
static bool mcse_same(const ir_op *a, const ir_op *b) {
  if (a->opcode != b->opcode || a->n_results != b->n_results || a->n_operands != b->n_operands) return false;
  if (a->opcode == IR_OP_UNREGISTERED && a->u.name != b->u.name) return false;
  for (uint32_t i = 0; i < a->n_results; i++)
    if (a->types[i] != b->types[i]) return false;
  for (uint32_t i = 0; i < a->n_operands; i++)
    if (!opt_same_value(opt_operand(a, i), opt_operand(b, i))) return false;
  return ir_mdict_equal(a->mlir, b->mlir);
}

/* Entries up to `visible` are outside of an isolated region. */
static ir_op *mcse_find(const mcse_run *x, const ir_op *op, uint64_t hash) {
  assert(hash != 0);
  uint64_t at = 0;
  base_map_get(&x->heads, hash, &at);
  for (; at > x->visible; at = x->entries.items[at - 1].next)
    if (mcse_same(x->entries.items[at - 1].op, op)) return x->entries.items[at - 1].op;
  return NULL;
}

/* Entries of one hash are chained, the newest first. */
static void mcse_add(mcse_run *x, ir_op *op, uint64_t hash) {
  assert(op->n_results > 0);
  uint64_t head = 0;
  base_map_get(&x->heads, hash, &head);
  mcse_entry e = {op, hash, (uint32_t)head};
  bool ok = BASE_VEC_PUSH(x->rw->m->alloc, &x->entries, e) && base_map_set(&x->heads, hash, x->entries.n);
  x->rw->failed = x->rw->failed || !ok;
}

static void mcse_region(mcse_run *x, ir_computation *c, bool isolated);

/* MLIR's IsolatedFromAbove, of ops here. */
bool opt_is_isolated(const ir_op *op) {
  return op->opcode == IR_OP_ASYNC_START || op->opcode == IR_OP_SCAN || op->opcode == IR_OP_SDY_NAMED_COMPUTATION ||
         op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
}

/* Regions first: they do not see the op itself. */
static void mcse_op(mcse_run *x, ir_op *op) {
  bool isolated = opt_is_isolated(op);
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) mcse_region(x, op->called[i], isolated);
  if (!mcse_may(x, op)) return;
  uint64_t hash = mcse_hash(op);
  ir_op *same = mcse_find(x, op, hash);
  if (!same) {
    mcse_add(x, op, hash);
    return;
  }
  ir_value *values = BASE_ARRAY(&x->rw->arena, ir_value, op->n_results + 1u);
  x->rw->failed = x->rw->failed || !values;
  for (uint32_t i = 0; !x->rw->failed && i < op->n_results; i++) values[i] = opt_result(same, i);
  if (!x->rw->failed) opt_replace_op(x->rw, op, values);
}

/* What a region adds is seen in it only. Depth is that of the text, which its reader bounds. */
static void mcse_region(mcse_run *x, ir_computation *c, bool isolated) {
  uint32_t before = x->entries.n, visible = x->visible;
  if (isolated) x->visible = before;
  for (ir_op *op = c->first, *next = NULL; op && !x->rw->failed; op = next) {
    next = op->next;
    mcse_op(x, op);
  }
  while (x->entries.n > before) {
    const mcse_entry *e = &x->entries.items[--x->entries.n];
    x->rw->failed = !base_map_set(&x->heads, e->hash, e->next) || x->rw->failed;
  }
  x->visible = visible;
}

/* Functions see nothing of one another. */
int opt_merge_same(opt_rewriter *rw, bool constants_only) {
  mcse_run x = {.rw = rw, .constants_only = constants_only};
  base_map_init(&x.heads, rw->m->alloc);
  IR_FOR_COMPUTATIONS(c, rw->m)
  if (c->kind == IR_FUNCTION && !rw->failed) mcse_region(&x, c, true);
  base_map_free(&x.heads);
  BASE_VEC_FREE(rw->m->alloc, &x.entries);
  return opt_rewriter_status(rw);
}

/* Within a block and the blocks around it. */
int opt_cse_mlir(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_merge_same(&rw, false);
  opt_rewriter_free(&rw);
  return status;
}

/* Constants to the front: what MLIR's driver of patterns does with them on its way, and so Shardy's passes that are
 * made of patterns. Every region that sees nothing of what is around it (a function, a computation) has one constant of
 * each value, before all other ops; those that stand there already keep their order, others go before them. */

BASE_VEC(hoist_ops, ir_op *);
typedef struct hoist_run {
  opt_rewriter *rw;
  ir_computation *front; /* where constants go */
  base_map by_value;     /* a hash to the first of `kept` with it, plus 1 */
  hoist_ops kept;        /* those of `front` */
} hoist_run;

/* The value of a constant op; NULL of others. */
static const ir_mattr *hoist_value(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT ? ir_mattr_of(op, "value") : NULL;
}

/* Type and value; other attributes of the later one are lost, as in MLIR's folder. */
static bool hoist_same(const ir_op *a, const ir_op *b) {
  return a->types[0] == b->types[0] && ir_mattr_equal(hoist_value(a), hoist_value(b));
}

/* By way of a dictionary of one entry, which knows how to hash any attribute. */
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
  assert(at > 0);
  for (uint32_t i = (uint32_t)at - 1; i < x->kept.n; i++)
    if (hoist_same(x->kept.items[i], op)) return x->kept.items[i];
  return NULL;
}

/* After the parameters. */
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

/* Regions of ordinary ops share the function's constants. */
int opt_hoist_constants(opt_rewriter *rw) {
  hoist_run x = {.rw = rw};
  IR_FOR_COMPUTATIONS(c, rw->m)
  if (c->kind == IR_FUNCTION && !c->owner && !rw->failed) hoist_isolated(&x, c);
  return opt_rewriter_status(rw);
}
