/* Who must be looked at again when a sharding changes. The order in which ops come on the list decides who wins where
 * shardings are in conflict, so all of this is as in Shardy's driver: a list that gives back what came last, an op with
 * all the ops it lies in, readers before makers. */
#include "propagate.h"

enum { NOTIFY_MAX_CALLS = 256 };

void shard_driver_fail(shard_driver *d, int status) {
  if (d->status == 0) d->status = status;
}

static void notify_push_one(shard_driver *d, ir_op *op) {
  if (d->marks[op->id]) return;
  if (d->n_pending == d->pending_cap) {
    shard_driver_fail(d, base_oom(d->err, "propagation"));
    return;
  }
  d->marks[op->id] = 1;
  d->pending[d->n_pending++] = op;
}

void shard_push(shard_driver *d, ir_op *op) {
  while (op && op->id < d->state.n_ids) {
    notify_push_one(d, op);
    op = op->parent->owner;
  }
}

static void notify_op(shard_driver *d, ir_op *op) {
  if (op != d->current) shard_push(d, op);
}

static void notify_readers(shard_driver *d, uint32_t slot);

/* The edge of which operand `n` of op (or what its region gives back as number n) is a source. */
static ir_op *notify_edge(const shard_driver *d, const ir_op *op, uint32_t n, bool given_back) {
  if (!shard_is_flow(op) || n >= op->n_results) return NULL;
  bool computation = op->opcode == IR_OP_SDY_NAMED_COMPUTATION || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  if (computation && !given_back) return NULL; /* Shardy looks for the edge on the operand itself, where it never is */
  return shard_edge_of(&d->state, shard_slot_of(&d->state, op, n));
}

static void notify_returned(shard_driver *d, const shard_return *r) {
  ir_computation *c = r->c;
  if (c->owner) {
    ir_op *edge = notify_edge(d, c->owner, r->index, true);
    notify_op(d, edge ? edge : c->owner);
    return;
  }
  const shard_callers *callers = &d->state.callers[c->id];
  for (uint32_t i = 0; i < callers->n; i++)
    if (r->index < callers->calls[i]->n_results)
      notify_readers(d, shard_slot_of(&d->state, callers->calls[i], r->index));
}

static void notify_use(shard_driver *d, const ir_use *use) {
  ir_op *user = use->user, *edge = notify_edge(d, user, use->slot, false);
  if (edge) {
    notify_op(d, edge);
  } else if (user->opcode == IR_OP_CALL) {
    const ir_computation *callee = shard_callee(&d->state, user);
    if (callee && use->slot < callee->n_params)
      notify_readers(d, shard_slot_of(&d->state, callee->params[use->slot], 0));
  } else {
    notify_op(d, user);
  }
}

/* Calls nest no deeper than there are functions, unless they are recursive. */
static void notify_readers(shard_driver *d, uint32_t slot) {
  const shard_state *s = &d->state;
  if (d->depth >= NOTIFY_MAX_CALLS) {
    const ir_op *op = s->slots[slot].op;
    const uint32_t line = op->line ? op->line : op->parent->line, col = op->line ? op->col : op->parent->col;
    shard_driver_fail(d, base_fail_at(d->err, XLAC_E_TOO_DEEP, line, col, op->name->s,
                                      "calls are nested more than %d deep, or recursive", NOTIFY_MAX_CALLS));
    return;
  }
  d->depth++;
  for (uint32_t i = s->return_first[slot]; i < s->return_first[slot + 1]; i++) notify_returned(d, &s->returns[i]);
  for (uint32_t i = s->use_first[slot]; i < s->use_first[slot + 1]; i++)
    if (s->uses[i]->op == s->slots[slot].op) notify_use(d, s->uses[i]);
  d->depth--;
}

void shard_notify(shard_driver *d, uint32_t slot) {
  shard_state *s = &d->state;
  ir_op *op = s->slots[slot].op;
  if (op->opcode == IR_OP_SDY_DATA_FLOW_EDGE) {
    const ir_use *input = &op->operands[0];
    if (input->op->opcode == IR_OP_WHILE) {
      for (uint32_t r = 0; r < input->op->n_called; r++) {
        const ir_computation *c = input->op->called[r];
        if (input->index < c->n_params) notify_readers(d, shard_slot_of(s, c->params[input->index], 0));
      }
    }
  }
  if (op->opcode != IR_OP_PARAMETER)
    notify_op(d, op);
  else if (op->parent->owner)
    notify_op(d, op->parent->owner);
  notify_readers(d, slot);
}
