/* Records of what propagation did, made after it: its looks at ops that changed something are done again, each with the
 * shardings that values had then, and nothing is changed by them. A look follows from these shardings and the phase
 * alone, so it finds the same again. */
#include "propagate.h"

/* Between a slot and the log: what the log says was, becomes what is, and the other way round. Once for all changes,
 * the last one first, leads back to the beginning, and again, the first one first, to the end. */
static void replay_swap(shard_state *s, shard_change *c) {
  const sdy_sharding *now = s->slots[c->slot].now;
  s->slots[c->slot].now = c->was;
  c->was = now;
}

/* Ops that went on the way are looked at with the operands they had. */
static void replay_lend_uses(const shard_trace *t, bool back) {
  for (uint32_t i = 0; i < t->gone.n; i++) t->gone.items[i].use->op = back ? NULL : t->gone.items[i].op;
}

static void replay_look(shard_driver *d, const shard_look *look) {
  if (look->op)
    shard_visit(d, look->op);
  else
    shard_visit_result(d, d->main, look->op_index);
}

static void replay_looks(shard_driver *d) {
  const shard_trace *t = d->trace;
  shard_changes *log = &d->state.changes;
  uint32_t at = 0, phase = 0;
  for (uint32_t i = 0; i < t->looks.n && d->status == 0; i++) {
    const shard_look *look = &t->looks.items[i];
    while (at < look->changes) replay_swap(&d->state, &log->items[at++]);
    while (phase < t->phases.n && t->phases.items[phase].look <= i) {
      d->level = t->phases.items[phase].level;
      d->user_priority = t->phases.items[phase].user_priority;
      d->strategy = t->phases.items[phase++].strategy;
    }
    replay_look(d, look);
  }
  while (at < log->n) replay_swap(&d->state, &log->items[at++]);
}

void shard_replay(shard_driver *d) {
  shard_changes *log = &d->state.changes;
  if (d->trace->failed) return; /* the caller says so */
  d->replays = true;
  replay_lend_uses(d->trace, false);
  for (uint32_t i = log->n; i-- > 0;) replay_swap(&d->state, &log->items[i]);
  replay_looks(d);
  replay_lend_uses(d->trace, true);
  d->replays = false;
}
