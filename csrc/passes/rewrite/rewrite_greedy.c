/* The driver: a worklist of ops, and a bound on the work. */
#include "rewrite.h"

/* Rewrites that a module may take for each op it had: simplification chains are short. */
enum { REWRITE_ROUNDS = 32 };

static bool greedy_room(opt_rewriter *rw, uint32_t id) {
  if (id >= rw->n_marks) {
    uint32_t n = rw->m->n_ids + rw->m->n_ids / 2 + 64;
    uint8_t *marks = base_arena_zalloc(&rw->arena, n);
    if (!marks) return false;
    if (rw->n_marks) memcpy(marks, rw->marks, rw->n_marks);
    rw->marks = marks;
    rw->n_marks = n;
  }
  if (rw->n_pending < rw->pending_cap) return true;
  uint32_t cap = rw->pending_cap * 2;
  ir_op **grown = BASE_ARRAY(&rw->arena, ir_op *, cap);
  if (!grown) return false;
  memcpy(grown, rw->pending, rw->n_pending * sizeof(*grown));
  rw->pending = grown;
  rw->pending_cap = cap;
  return true;
}

/* Outside a run of the driver there is no list, and nothing to do. */
void opt_enqueue(opt_rewriter *rw, ir_op *op) {
  if (!rw->pending || !op || (op->id < rw->n_marks && rw->marks[op->id])) return;
  if (!greedy_room(rw, op->id)) {
    rw->failed = true;
    return;
  }
  rw->marks[op->id] = 1;
  rw->pending[rw->n_pending++] = op;
}

/* All ops, so that the first one of the text comes off first. */
static void greedy_fill(opt_rewriter *rw) {
  rw->pending_cap = rw->m->n_ids + 64;
  rw->pending = BASE_ARRAY(&rw->arena, ir_op *, rw->pending_cap);
  rw->n_pending = 0;
  if (rw->n_marks) memset(rw->marks, 0, rw->n_marks);
  rw->failed = rw->failed || !rw->pending || !greedy_room(rw, rw->m->n_ids);
  if (rw->failed) return;
  for (ir_computation *c = rw->m->last; c; c = c->prev)
    for (ir_op *op = c->last; op; op = op->prev) opt_enqueue(rw, op);
}

static int greedy_visit(opt_rewriter *rw, ir_op *op, uint32_t n, const opt_pattern *patterns, bool *changed) {
  bool does_something = op->n_results == 0 && op->n_called == 0 && op->opcode != IR_OP_CUSTOM_CALL;
  if (!does_something && !opt_is_used(rw, op) && opt_is_pure(op)) {
    opt_erase(rw, op);
    return 0;
  }
  for (uint32_t i = 0; i < n && !*changed; i++) {
    if (patterns[i].opcode != IR_OP_INVALID && patterns[i].opcode != op->opcode) continue;
    opt_at(rw, op);
    TRY(patterns[i].fn(rw, op, changed));
    TRY(opt_rewriter_status(rw));
  }
  return 0;
}

/* What was erased has no mark any more, so that the list need not be searched for it. */
static int greedy_run(opt_rewriter *rw, uint32_t n, const opt_pattern *patterns) {
  uint64_t budget = ((uint64_t)rw->m->n_ids + 64) * REWRITE_ROUNDS;
  while (rw->n_pending && budget) {
    ir_op *op = rw->pending[--rw->n_pending];
    if (!rw->marks[op->id]) continue;
    rw->marks[op->id] = 0;
    bool changed = false;
    TRY(greedy_visit(rw, op, n, patterns, &changed));
    if (!changed) continue;
    budget--;
    bool linked = op->prev || op->parent->first == op;
    if (linked) opt_enqueue(rw, op);
  }
  return opt_rewriter_status(rw);
}

int opt_rewrite(opt_rewriter *rw, uint32_t n, const opt_pattern *patterns) {
  greedy_fill(rw);
  int status = opt_rewriter_status(rw);
  if (status == 0) status = greedy_run(rw, n, patterns);
  rw->pending = NULL;
  rw->n_pending = rw->pending_cap = 0;
  return status;
}
