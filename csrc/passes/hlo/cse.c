/* cse: common subexpression elimination.
 * Requires: nothing. Preserves: side effects, random ops, async chains, ops in control edges, the schedule. */
#include "../pass.h"
#include "../structural_equality.h"

typedef struct cse_run {
  opt_facts facts;
  same_classes classes;
  base_map by_hash; /* hash -> the newest op kept with it */
  ir_op **other;    /* by op id: an older one of the same hash */
} cse_run;

/* Async ops have exactly one user, tokens stand for order, and ops in control edges have more neighbours than they
 * show. */
static bool cse_may_merge(const cse_run *run, const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER || op->n_results != 1 || ir_is_token(op->type)) return false;
  if (opt_op_facts(&run->facts, op) & (OPT_EFFECT | OPT_RANDOM | OPT_ASYNC)) return false;
  return !opt_in_edge(&run->facts, op);
}

/* Hashes collide, so each candidate is compared. */
static ir_op *cse_find(const cse_run *run, uint64_t hash, const ir_op *op) {
  uint64_t first = 0;
  if (!base_map_get(&run->by_hash, hash, &first)) return NULL;
  for (ir_op *k = (ir_op *)(uintptr_t)first; k; k = run->other[k->id])
    if (same_ops(&run->classes, k, op, false)) return k;
  return NULL;
}

/* Ops of one hash are chained, the newest first. */
static bool cse_keep(cse_run *run, uint64_t hash, ir_op *op) {
  uint64_t first = 0;
  if (base_map_get(&run->by_hash, hash, &first)) run->other[op->id] = (ir_op *)(uintptr_t)first;
  return base_map_set(&run->by_hash, hash, base_key(op));
}

/* The class of c is found after its ops have been merged, so that callers with equal bodies merge as well. Operands
 * come first, so equal expressions have equal operands by the time they are looked at. */
static bool cse_computation(cse_run *run, ir_computation *c) {
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &run->facts.arena, &n);
  if (!order) return false;
  base_map_clear(&run->by_hash);
  for (uint32_t i = 0; i < n; i++) {
    ir_op *op = order[i];
    if (!cse_may_merge(run, op)) continue;
    uint64_t hash = same_hash(&run->classes, op, false);
    ir_op *same = cse_find(run, hash, op);
    if (!same && !cse_keep(run, hash, op)) return false;
    if (!same) continue;
    assert(same != op && same->type == op->type);
    if (!ir_replace_uses(op, same)) return false;
    ir_op_remove(op);
  }
  return same_classify(&run->classes, c);
}

/* Callees first, by facts.order. */
int opt_cse(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  cse_run run = {.other = NULL};
  TRY(opt_facts_make(&run.facts, m, err));
  base_map_init(&run.by_hash, m->alloc);
  bool ok = same_classes_make(&run.classes, m, &run.facts.arena);
  run.other = base_arena_zalloc(&run.facts.arena, ((size_t)m->n_ids + 1) * sizeof *run.other);
  ok = ok && run.other;
  for (uint32_t i = 0; ok && i < run.facts.n_order; i++) ok = cse_computation(&run, run.facts.order[i]);
  same_classes_free(&run.classes);
  base_map_free(&run.by_hash);
  opt_facts_free(&run.facts);
  return ok ? 0 : base_oom(err, "cse");
}
