/* dce: dead code elimination.
 * Requires: nothing. Preserves: the entry's interface, side effects, parameters, control predecessors of what stays. */
#include "../effects.h"
#include "../pass.h"

typedef struct dce_run {
  opt_facts facts;
  uint8_t *live;   /* by op id */
  ir_op **pending; /* live ops whose needs are not marked yet */
  uint32_t n;
} dce_run;

/* Each op is pushed once, so `pending` never overflows. */
static void dce_mark(dce_run *d, ir_op *op) {
  assert(op->id < d->facts.n_ids);
  if (d->live[op->id]) return;
  d->live[op->id] = 1;
  d->pending[d->n++] = op;
}

/* Marks what c must keep. `pending` has room for every op of the module. */
static void dce_mark_computation(dce_run *d, const ir_computation *c) {
  for (uint32_t i = 0; i < c->n_results; i++) dce_mark(d, c->results[i].op);
  IR_FOR_OPS(op, c)
  if (op->opcode == IR_OP_PARAMETER || opt_op_facts(&d->facts, op) & OPT_EFFECT) dce_mark(d, op);
  while (d->n) {
    const ir_op *op = d->pending[--d->n];
    for (uint32_t i = 0; i < op->n_operands; i++) dce_mark(d, op->operands[i].op);
    IR_FOR_CONTROL_PREDS(e, op) dce_mark(d, e->pred);
    if (!ir_opcode_has(op->opcode, IR_ASYNC_START) && !ir_opcode_has(op->opcode, IR_ASYNC_UPDATE)) continue;
    IR_FOR_USES(use, op) dce_mark(d, use->user); /* what is started is waited for */
  }
}

/* Live ops have live predecessors, so once the dead ones' own edges are gone no edge leads to a dead op. */
static int dce_sweep(dce_run *d, ir_computation *c, xlac_error *err) {
  base_arena scratch;
  base_arena_init(&scratch, c->module->alloc);
  uint32_t n = 0;
  ir_op **order = ir_post_order(c, &scratch, &n);
  for (uint32_t i = 0; order && i < n; i++)
    if (!d->live[order[i]->id]) ir_drop_control_preds(order[i]);
  for (uint32_t i = n; order && i-- > 0;)
    if (!d->live[order[i]->id]) ir_op_remove(order[i]);
  base_arena_free(&scratch);
  return order ? 0 : base_oom(err, "dce");
}

/* Callers may lose calls, so which computations are reachable is asked afterwards. */
static int dce_all(dce_run *d, ir_module *m, xlac_error *err) {
  d->live = base_arena_zalloc(&d->facts.arena, (size_t)m->n_ids + 1);
  d->pending = BASE_ARRAY(&d->facts.arena, ir_op *, (size_t)m->n_ids + 1);
  if (!d->live || !d->pending) return base_oom(err, "dce");
  IR_FOR_COMPUTATIONS(c, m) {
    uint32_t dead = 0;
    dce_mark_computation(d, c);
    IR_FOR_OPS(op, c) dead += !d->live[op->id];
    if (dead) TRY(dce_sweep(d, c, err));
  }
  uint8_t *reachable = opt_reachable(m, NULL, 0, &d->facts.arena);
  if (!reachable) return base_oom(err, "dce");
  for (ir_computation *c = m->first, *next; c; c = next) {
    next = c->next;
    if (!reachable[c->id]) ir_computation_remove(c);
  }
  return 0;
}

/* Ops first, then computations that nobody reaches any more. */
int opt_dce(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  dce_run d = {.n = 0};
  TRY(opt_facts_make(&d.facts, m, err));
  int status = dce_all(&d, m, err);
  opt_facts_free(&d.facts);
  return status;
}
