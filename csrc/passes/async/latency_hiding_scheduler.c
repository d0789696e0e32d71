/* latency-hiding-scheduler: an order of each computation's ops in which chains run beside other work.
 *
 * List scheduling, forwards in modelled time. Starts go as soon as they may; a done goes once its work is over, or when
 * nothing else can run; else the op goes that the most time depends on. Ops of no cost go at once. A lane has a limited
 * number of chains in flight, and starts wait for a place. While values take more memory than allowed, ops come in the
 * order they had. At the end dones move down to their first readers, which costs nothing by the model and forgives its
 * errors. An order that needs more memory than allowed is tried again with less, and given up in the end.
 *
 * n log n: every op enters each queue once. Deterministic: ties go by the order there was. Requires: nothing.
 * Preserves: all but the schedule; ops with effects keep their order among themselves. */
#include "model.h"
#include "queue.h"

typedef struct lhs_options {
  async_model model;
  uint32_t copies, collectives, in_flight; /* at a time: of copies, of collectives and transfers, of each thread */
  int64_t percent, bytes;                  /* memory: of what the old order needs, and more than this; 0 is no limit */
} lhs_options;

typedef struct lhs_node {
  uint32_t first, n_followers; /* in `edges` */
  uint32_t waits;              /* for so many others */
  double time, path;           /* of itself; from its start to the end of everything */
} lhs_node;

typedef struct lhs_run {
  async_edit *e;
  async_costs costs;
  lhs_options options;
  uint32_t *index; /* by op id, in the present computation */
  /* Of the present computation: */
  ir_computation *c;
  base_arena arena;
  uint32_t n, n_out;
  ir_op **order, **out;
  lhs_node *nodes;
  uint32_t *edges, *waits;
  uint8_t *state;                        /* lhs_state by node */
  async_queue ready, starts, timed, old; /* old: all that is ready, by the order there was */
  async_queue *blocked;                  /* by lane */
  uint32_t *flying;                      /* by lane: chains started and not done */
  double *free_at, t;                    /* free_at: by lane */
  async_live live;
  int64_t limit;
} lhs_run;

/* WAITING: for operands; READY: in a queue; BLOCKED: a start whose lane is full; OUT: placed. */
enum lhs_state { LHS_WAITING, LHS_READY, LHS_BLOCKED, LHS_OUT };

/* --- the graph --- */

/* Random ops too: their order decides which numbers each of them gets. */
static bool lhs_keeps_order(const lhs_run *r, const ir_op *op) {
  return (opt_op_facts(&r->e->facts, op) & (OPT_EFFECT | OPT_RANDOM)) != 0;
}

/* Calls what each pair (before, after) is added to: first to count, then to fill. */
static void lhs_edge(lhs_run *r, uint32_t before, uint32_t after, bool count) {
  assert(before < r->n && after < r->n);
  lhs_node *node = &r->nodes[before];
  if (count) {
    node->n_followers++;
    r->nodes[after].waits++;
  } else {
    r->edges[node->first + node->n_followers++] = after;
  }
}

/* Two walks, one that counts and one that fills, give all followers one array. */
static void lhs_edges(lhs_run *r, bool count) {
  uint32_t effect = UINT32_MAX;
  for (uint32_t i = 0; i < r->n; i++) {
    const ir_op *op = r->order[i];
    for (uint32_t k = 0; k < op->n_operands; k++) lhs_edge(r, r->index[ir_operand(op, k)->id], i, count);
    IR_FOR_CONTROL_PREDS(e, op) lhs_edge(r, r->index[e->pred->id], i, count);
    if (!lhs_keeps_order(r, op)) continue;
    if (effect != UINT32_MAX) lhs_edge(r, effect, i, count);
    effect = i;
  }
}

/* Followers of node i are edges[first .. first + n_followers); n_followers is counted twice, once in each walk. */
static bool lhs_graph(lhs_run *r) {
  size_t n = 0;
  r->nodes = base_arena_zalloc(&r->arena, ((size_t)r->n + 1) * sizeof *r->nodes);
  if (!r->nodes) return false;
  lhs_edges(r, true);
  for (uint32_t i = 0; i < r->n; i++) {
    r->nodes[i].first = (uint32_t)n;
    n += r->nodes[i].n_followers;
    r->nodes[i].n_followers = 0;
  }
  if (n >= UINT32_MAX || !(r->edges = BASE_ARRAY(&r->arena, uint32_t, n + 1))) return false;
  lhs_edges(r, false);
  return true;
}

/* The old order is a valid one, so followers come later in it. */
static void lhs_paths(lhs_run *r) {
  for (uint32_t i = r->n; i-- > 0;) {
    lhs_node *node = &r->nodes[i];
    const async_chain *chain = async_chain_of(&r->costs, r->order[i]);
    double most = 0, extra = chain && chain->start == r->order[i] ? chain->length : 0;
    for (uint32_t k = 0; k < node->n_followers; k++) {
      double path = r->nodes[r->edges[node->first + k]].path;
      if (path > most) most = path;
    }
    node->time = async_op_time(&r->costs, r->order[i]);
    node->path = node->time + extra + most;
  }
}

/* --- queues --- */

/* Execution threads run one chain at a time, but more may be issued to them. */
static uint32_t lhs_lane_limit(const lhs_run *r, uint32_t lane) {
  if (lane == ASYNC_COPIES) return r->options.copies;
  return lane < ASYNC_THREADS ? r->options.collectives : r->options.in_flight;
}

/* Of a chain whose done is in this computation: other starts are ops like any other. */
static bool lhs_is_start(const lhs_run *r, uint32_t i) {
  const async_chain *chain = async_chain_of(&r->costs, r->order[i]);
  return chain && chain->start == r->order[i];
}

/* When a link of a chain has something to show: the done at the end, updates on the way. */
static double lhs_due(const lhs_run *r, uint32_t i) {
  const ir_op *op = r->order[i];
  const async_chain *chain = async_chain_of(&r->costs, op);
  if (!chain) return 0;
  if (op == chain->done) return chain->ends;
  uint32_t before = 0;
  for (const ir_op *link = op; link != chain->start && before < 64; link = ir_operand(link, 0)) before++;
  double part = (double)before / (chain->n_updates + 1.0);
  return chain->begins + chain->length * (part < 1 ? part : 1);
}

/* What costs nothing goes first: it may let something start. */
static void lhs_make_ready(lhs_run *r, uint32_t i) {
  const double first = 1e30;
  r->state[i] = LHS_READY;
  async_push(&r->old, i, i);
  if (lhs_is_start(r, i)) {
    async_push(&r->starts, -r->nodes[i].path, i);
  } else if (lhs_due(r, i) > r->t) {
    async_push(&r->timed, lhs_due(r, i), i);
  } else {
    async_push(&r->ready, r->nodes[i].time > 0 ? -r->nodes[i].path : -first, i);
  }
}

/* Links whose time has come. */
static void lhs_wake(lhs_run *r) {
  while (r->timed.n && r->timed.items[0].key <= r->t) {
    uint32_t i = async_pop(&r->timed);
    if (r->state[i] != LHS_OUT) async_push(&r->ready, -r->nodes[i].path, i);
  }
}

/* The first start that has a place; those that have none wait by their lanes. */
static bool lhs_next_start(lhs_run *r, uint32_t *out) {
  while (r->starts.n) {
    uint32_t i = async_pop(&r->starts), lane = async_chain_of(&r->costs, r->order[i])->lane;
    if (r->state[i] == LHS_OUT) continue;
    if (r->flying[lane] < lhs_lane_limit(r, lane)) return *out = i, true;
    r->state[i] = LHS_BLOCKED;
    async_push(&r->blocked[lane], -r->nodes[i].path, i);
  }
  return false;
}

/* An op is in `old` and in another queue: the second one to come up finds it gone. */
static bool lhs_next(lhs_run *r, async_queue *q, uint32_t *out) {
  while (q->n) {
    *out = async_pop(q);
    if (r->state[*out] != LHS_OUT) return true;
  }
  return false;
}

/* In memory's need a start has no business to go early, and anything else goes in the order there was. */
static uint32_t lhs_choose(lhs_run *r) {
  uint32_t i = 0;
  lhs_wake(r);
  bool tight = r->limit > 0 && r->live.bytes >= r->limit;
  if (tight && lhs_next(r, &r->old, &i)) return i;
  if (lhs_next_start(r, &i) || lhs_next(r, &r->ready, &i) || lhs_next(r, &r->timed, &i)) return i;
  bool found = lhs_next(r, &r->old, &i); /* starts without a place that nobody will ever give them: go all the same */
  assert(found);
  (void)found;
  return i;
}

/* --- running --- */

/* A lane is busy until the chains issued before are over. */
static void lhs_start(lhs_run *r, async_chain *chain) {
  double *free_at = &r->free_at[chain->lane];
  chain->begins = r->t > *free_at ? r->t : *free_at;
  chain->ends = *free_at = chain->begins + chain->length;
  r->flying[chain->lane]++;
}

/* A place is free: the start that the most depends on gets it. */
static void lhs_end(lhs_run *r, const async_chain *chain) {
  uint32_t next = 0;
  if (chain->ends > r->t) r->t = chain->ends;
  r->flying[chain->lane]--;
  if (!lhs_next(r, &r->blocked[chain->lane], &next)) return;
  r->state[next] = LHS_READY;
  async_push(&r->starts, -r->nodes[next].path, next);
}

/* Time goes on by what the op takes on the main thread; chains take theirs on their lanes. */
static void lhs_put(lhs_run *r, uint32_t i) {
  ir_op *op = r->order[i];
  async_chain *chain = async_chain_of(&r->costs, op);
  const lhs_node *node = &r->nodes[i];
  assert(r->state[i] != LHS_OUT);
  r->state[i] = LHS_OUT;
  r->out[r->n_out++] = op;
  async_live_run(&r->live, op);
  r->t += node->time;
  if (chain && chain->start == op) lhs_start(r, chain);
  if (chain && chain->done == op) lhs_end(r, chain);
  for (uint32_t k = 0; k < node->n_followers; k++) {
    uint32_t follower = r->edges[node->first + k];
    if (--r->waits[follower] == 0) lhs_make_ready(r, follower);
  }
}

/* --- dones move down --- */

typedef struct lhs_sink {
  lhs_run *r;
  ir_op **out;
  uint32_t n;
  uint8_t *held;         /* by node: a done that waits for its first reader */
  uint32_t *next;        /* by node: the done of its lane that was held after it */
  uint32_t *head, *tail; /* by lane; UINT32_MAX: none */
  uint32_t *flying;
} lhs_sink;

/* Counts as the lists did, for lhs_sink_make_place. */
static void lhs_sink_put(lhs_sink *s, uint32_t i) {
  const async_chain *chain = async_chain_of(&s->r->costs, s->r->order[i]);
  s->held[i] = 0;
  s->out[s->n++] = s->r->order[i];
  if (chain && chain->start == s->r->order[i]) s->flying[chain->lane]++;
  if (chain && chain->done == s->r->order[i]) s->flying[chain->lane]--;
}

/* Puts the dones that op needs before it. */
static void lhs_sink_needs(lhs_sink *s, const ir_op *op) {
  const lhs_run *r = s->r;
  for (uint32_t k = 0; k < op->n_operands; k++)
    if (s->held[r->index[ir_operand(op, k)->id]]) lhs_sink_put(s, r->index[ir_operand(op, k)->id]);
  IR_FOR_CONTROL_PREDS(e, op)
  if (s->held[r->index[e->pred->id]]) lhs_sink_put(s, r->index[e->pred->id]);
}

/* A done that waits for another done must not be held: it would go before that one. Its operand is a link, never
 * held. */
static bool lhs_sink_needs_any(const lhs_sink *s, const ir_op *op) {
  bool any = false;
  IR_FOR_CONTROL_PREDS(e, op) any = any || s->held[s->r->index[e->pred->id]];
  return any;
}

/* A queue for each lane, linked by `next`. */
static void lhs_sink_hold(lhs_sink *s, uint32_t i, uint32_t lane) {
  s->held[i] = 1;
  s->next[i] = UINT32_MAX;
  *(s->head[lane] == UINT32_MAX ? &s->head[lane] : &s->next[s->tail[lane]]) = i;
  s->tail[lane] = i;
}

/* A start gets its place from the done of its lane that has waited longest. */
static void lhs_sink_make_place(lhs_sink *s, uint32_t lane) {
  while (s->flying[lane] >= lhs_lane_limit(s->r, lane) && s->head[lane] != UINT32_MAX) {
    uint32_t i = s->head[lane];
    s->head[lane] = s->next[i];
    if (s->held[i]) lhs_sink_put(s, i);
  }
}

/* Dones are held until somebody reads them; everything else goes at once. */
static void lhs_sink_op(lhs_sink *s, ir_op *op) {
  const lhs_run *r = s->r;
  const async_chain *chain = async_chain_of(&r->costs, op);
  bool effect = lhs_keeps_order(r, op);
  if (chain && chain->done == op && !lhs_sink_needs_any(s, op) && !effect) {
    lhs_sink_hold(s, r->index[op->id], chain->lane);
    return;
  }
  lhs_sink_needs(s, op);
  if (chain && chain->start == op) lhs_sink_make_place(s, chain->lane);
  lhs_sink_put(s, r->index[op->id]);
}

/* Dones that nobody reads are put at the end, in their old order. */
static bool lhs_sink_dones(lhs_run *r, ir_op **out) {
  uint32_t lanes = r->costs.n_lanes;
  lhs_sink s = {.r = r, .out = out, .held = base_arena_zalloc(&r->arena, (size_t)r->n + 1)};
  s.next = BASE_ARRAY(&r->arena, uint32_t, (size_t)r->n + 1);
  s.head = BASE_ARRAY(&r->arena, uint32_t, lanes);
  s.tail = BASE_ARRAY(&r->arena, uint32_t, lanes);
  s.flying = base_arena_zalloc(&r->arena, lanes * sizeof *s.flying);
  if (!s.held || !s.next || !s.head || !s.tail || !s.flying) return false;
  for (uint32_t i = 0; i < lanes; i++) s.head[i] = UINT32_MAX;
  for (uint32_t i = 0; i < r->n; i++) lhs_sink_op(&s, r->out[i]);
  for (uint32_t i = 0; i < r->n; i++) /* read by nobody, or results */
    if (s.held[i]) lhs_sink_put(&s, i);
  assert(s.n == r->n);
  return true;
}

/* --- one computation --- */

/* Room for everything at once, so that nothing allocates while ops are being put. */
static bool lhs_queues(lhs_run *r) {
  uint32_t lanes = r->costs.n_lanes, n = r->n;
  uint32_t *in_lane = base_arena_zalloc(&r->arena, lanes * sizeof *in_lane);
  async_queue *all[4] = {&r->ready, &r->starts, &r->timed, &r->old};
  r->blocked = base_arena_zalloc(&r->arena, lanes * sizeof *r->blocked);
  r->flying = BASE_ARRAY(&r->arena, uint32_t, lanes);
  r->free_at = BASE_ARRAY(&r->arena, double, lanes);
  r->state = BASE_ARRAY(&r->arena, uint8_t, (size_t)n + 1);
  r->waits = BASE_ARRAY(&r->arena, uint32_t, (size_t)n + 1);
  r->out = BASE_ARRAY(&r->arena, ir_op *, (size_t)n + 1);
  bool ok = in_lane && r->blocked && r->flying && r->free_at && r->state && r->waits && r->out;
  for (uint32_t i = 0; i < 4; i++) ok = (all[i]->items = BASE_ARRAY(&r->arena, async_item, (size_t)n + 1)) && ok;
  if (!ok) return false;
  for (uint32_t i = 0; i < r->costs.n_chains; i++) in_lane[r->costs.chains[i].lane]++;
  for (uint32_t i = 0; i < lanes; i++)
    if (!(r->blocked[i].items = BASE_ARRAY(&r->arena, async_item, (size_t)in_lane[i] + 1))) return false;
  return true;
}

/* A new order in r->out, for r->limit bytes. */
static bool lhs_list(lhs_run *r) {
  r->ready.n = r->starts.n = r->timed.n = r->old.n = r->n_out = 0;
  r->t = 0;
  for (uint32_t i = 0; i < r->costs.n_lanes; i++) r->blocked[i].n = r->flying[i] = 0, r->free_at[i] = 0;
  if (!async_live_begin(&r->live, &r->costs, r->c, &r->arena)) return false;
  for (uint32_t i = 0; i < r->n; i++) r->state[i] = LHS_WAITING, r->waits[i] = r->nodes[i].waits;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->waits[i] == 0) lhs_make_ready(r, i);
  while (r->n_out < r->n) lhs_put(r, lhs_choose(r));
  return true;
}

/* The most memory that values take at a time in that order. */
static bool lhs_peak(lhs_run *r, ir_op *const *order, int64_t *peak) {
  if (!async_live_begin(&r->live, &r->costs, r->c, &r->arena)) return false;
  for (uint32_t i = 0; i < r->n; i++) async_live_run(&r->live, order[i]);
  *peak = r->live.peak;
  return true;
}

/* Of the orders tried the first that fits in memory; the old one where none does, or where none is faster. */
static bool lhs_best(lhs_run *r, ir_op **best) {
  int64_t old_peak = 0, peak = 0, allowed = 0;
  async_times before, after;
  ir_op **sunk = BASE_ARRAY(&r->arena, ir_op *, (size_t)r->n + 1);
  if (!sunk || !lhs_peak(r, r->order, &old_peak) || !async_simulate(&r->costs, r->order, r->n, &before)) return false;
  memcpy(best, r->order, r->n * sizeof *best);
  /* Neither option given: no limit. Else the larger of the two. */
  allowed = (int64_t)((double)old_peak * (double)r->options.percent / 100.0);
  if (r->options.bytes > allowed) allowed = r->options.bytes;
  if (r->options.percent == 0 && r->options.bytes == 0) allowed = 0;
  for (uint32_t attempt = 0; attempt < 4; attempt++) {
    r->limit = allowed ? allowed - allowed / 4 * attempt : 0;
    if (!lhs_list(r) || !lhs_sink_dones(r, sunk)) return false;
    ir_op **tried[2] = {sunk, r->out};
    for (uint32_t k = 0; k < 2; k++) {
      if (!lhs_peak(r, tried[k], &peak) || !async_simulate(&r->costs, tried[k], r->n, &after)) return false;
      if ((allowed && peak > allowed) || after.makespan > before.makespan) continue;
      memcpy(best, tried[k], r->n * sizeof *best);
      return true;
    }
    if (!allowed) break;
  }
  return true;
}

/* At the end the list itself is put into the new order. */
static int lhs_schedule(lhs_run *r) {
  ir_op **best = NULL;
  if (!(r->order = opt_op_order(r->c, &r->arena, &r->n))) return async_oom(r->e);
  for (uint32_t i = 0; i < r->n; i++) r->index[r->order[i]->id] = i;
  TRY(async_find_chains(&r->costs, r->c));
  best = BASE_ARRAY(&r->arena, ir_op *, (size_t)r->n + 1);
  if (!best || !lhs_graph(r) || !lhs_queues(r)) return async_oom(r->e);
  lhs_paths(r);
  async_times times;
  if (!lhs_best(r, best) || !async_simulate(&r->costs, best, r->n, &times)) return async_oom(r->e);
  r->costs.of_computation[r->c->id] = times.makespan;
  for (uint32_t i = 0; i < r->n; i++) ir_op_move(best[i], NULL);
  return 0;
}

/* Callees first: a caller needs its callees' makespans. */
static int lhs_computation(lhs_run *r, ir_computation *c) {
  bool sequence = r->e->roles[c->id] == ASYNC_ROLE_SEQUENCE;
  r->c = c;
  base_arena_init(&r->arena, r->e->m->alloc);
  int status = 0;
  if (sequence) {
    status = lhs_schedule(r);
  } else { /* once the module is scheduled, every list is one */
    if (!opt_sort_ops(c, &r->arena)) status = async_oom(r->e);
    IR_FOR_OPS(op, c) r->costs.of_computation[c->id] += async_op_time(&r->costs, op);
  }
  base_arena_free(&r->arena);
  return status;
}

/* Rates are whole numbers in options, doubles in the model. */
int async_schedule_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  async_edit e;
  lhs_run r = {.options = {.model = async_model_default,
                           .copies = (uint32_t)opt_get(args, "copies"),
                           .collectives = (uint32_t)opt_get(args, "collectives"),
                           .in_flight = (uint32_t)opt_get(args, "in-flight"),
                           .percent = opt_get(args, "memory-percent"),
                           .bytes = opt_get(args, "memory-bytes")}};
  r.options.model.gigaflops = (double)opt_get(args, "gigaflops");
  r.options.model.memory = (double)opt_get(args, "memory-gigabytes");
  r.options.model.link = (double)opt_get(args, "link-gigabytes");
  TRY(async_edit_begin(&e, m, err));
  r.e = &e;
  r.index = base_arena_zalloc(&e.facts.arena, ((size_t)m->n_ids + 1) * sizeof *r.index);
  int status = r.index ? async_costs_begin(&r.costs, &e, &r.options.model) : async_oom(&e);
  if (status == 0) {
    for (uint32_t i = 0; i < e.facts.n_order && status == 0; i++) status = lhs_computation(&r, e.facts.order[i]);
    async_costs_end(&r.costs);
  }
  if (status == 0) ir_edit_config(m)->is_scheduled = true;
  async_edit_end(&e);
  return status;
}
