/* Chains, and what is waited for, in the order that the ops have: by the model, before anything runs. */
#include "explain.h"

/* A chain that is fully hidden has "exposed": 0; else the done was "reached" before the chain "ends", and "needs",
 * "behind" and "reader" say what could be moved: what the start waited for, which chain held the lane, who reads the
 * result first. */
typedef struct async_report {
  base_text *out;
  async_edit e;
  async_costs costs;
  uint32_t *index; /* by op id */
  ir_op **order;   /* of the present computation */
  uint32_t n;
  double *ends; /* by index: when the op is over */
  bool any;     /* a computation has been put */
} async_report;

/* When each op is over; chains have their times already.
 * As async_simulate counts, so that the numbers agree. */
static void async_note_ends(async_report *r) {
  double t = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    const async_chain *chain = async_chain_of(&r->costs, r->order[i]);
    t += async_op_time(&r->costs, r->order[i]);
    if (chain && chain->done == r->order[i]) t += chain->exposed;
    r->ends[i] = t;
  }
}

/* The last of what the start waits for; NULL where it waits for nothing. */
static const ir_op *async_last_need(const async_report *r, const ir_op *start) {
  const ir_op *last = NULL;
  for (uint32_t i = 0; i < start->n_operands; i++)
    if (!last || r->index[ir_operand(start, i)->id] > r->index[last->id]) last = ir_operand(start, i);
  IR_FOR_CONTROL_PREDS(e, start)
  if (!last || r->index[e->pred->id] > r->index[last->id]) last = e->pred;
  return last;
}

/* NULL where the result is read by nobody. */
static const ir_op *async_first_reader(const async_report *r, const ir_op *done) {
  const ir_op *first = NULL;
  IR_FOR_USES(use, done)
  if (!first || r->index[use->user->id] < r->index[first->id]) first = use->user;
  return first;
}

/* null where there is none. */
static void async_put_op(base_text *out, const char *key, const ir_op *op) {
  base_putf(out, ", \"%s\": ", key);
  if (op)
    base_put_json(out, op->name->s, op->name->n);
  else
    BASE_PUT(out, "null");
}

/* `behind` is said only where waiting for the lane made anything wait. */
static void async_put_chain(async_report *r, const async_chain *chain) {
  assert(chain->start && chain->done && chain->work);
  base_text *out = r->out;
  const char *lane = async_lane_name(&r->costs, chain->lane), *work = ir_opcode_text(chain->work->opcode);
  const ir_op *need = async_last_need(r, chain->start), *reader = async_first_reader(r, chain->done);
  const async_chain *before = chain->exposed > 0 && chain->behind ? &r->costs.chains[chain->behind - 1] : NULL;
  base_putf(out, "{\"op\": \"%s\", \"lane\": ", work);
  base_put_json(out, lane, strlen(lane));
  base_putf(out, ", \"line\": %u, \"updates\": %u", chain->start->line, chain->n_updates);
  async_put_op(out, "start", chain->start);
  async_put_op(out, "done", chain->done);
  base_putf(out, ", \"length\": %.0f, \"issued\": %.0f, \"begins\": %.0f, \"ends\": %.0f, \"reached\": %.0f",
            chain->length, chain->issued, chain->begins, chain->ends, chain->reached);
  base_putf(out, ", \"exposed\": %.0f", chain->exposed);
  async_put_op(out, "needs", need);
  base_putf(out, ", \"ready\": %.0f", need ? r->ends[r->index[need->id]] : 0.0);
  async_put_op(out, "behind", before ? before->start : NULL);
  async_put_op(out, "reader", reader);
  uint32_t at = reader ? r->index[reader->id] : r->n;
  base_putf(out, ", \"read\": %.0f}", at ? r->ends[at - 1] : 0.0);
}

/* Computations without chains are only timed: callers count them. */
static int async_put_computation(async_report *r, ir_computation *c) {
  async_times times;
  base_arena *arena = &r->e.facts.arena;
  TRY(async_find_chains(&r->costs, c));
  if (!(r->order = opt_op_order(c, arena, &r->n)) || !async_simulate(&r->costs, r->order, r->n, &times))
    return async_oom(&r->e);
  r->costs.of_computation[c->id] = times.makespan;
  if (r->costs.n_chains == 0) return 0;
  if (!(r->ends = BASE_ARRAY(arena, double, (size_t)r->n + 1))) return async_oom(&r->e);
  for (uint32_t i = 0; i < r->n; i++) r->index[r->order[i]->id] = i;
  async_note_ends(r);
  base_putf(r->out, "%s{\"name\": ", r->any ? ",\n" : "");
  r->any = true;
  base_put_json(r->out, c->name->s, c->name->n);
  base_putf(r->out, ", \"ops\": %u, \"makespan\": %.0f, \"work\": %.0f, \"exposed\": %.0f, \"chains\": [", r->n,
            times.makespan, times.work, times.exposed);
  for (uint32_t i = 0; i < r->costs.n_chains; i++) {
    if (i) BASE_PUT(r->out, ",\n");
    async_put_chain(r, &r->costs.chains[i]);
  }
  BASE_PUT(r->out, "]}");
  return 0;
}

/* Callees first, as loops and calls take their times. A fused computation's time is the sum of its ops. */
static int async_put_all(async_report *r) {
  if (!(r->index = base_arena_zalloc(&r->e.facts.arena, ((size_t)r->e.m->n_ids + 1) * sizeof *r->index)))
    return async_oom(&r->e);
  base_putf(r->out, "{\"scheduled\": %s, \"computations\": [", r->e.m->config.is_scheduled ? "true" : "false");
  assert(r->e.facts.n_order > 0);
  for (uint32_t i = 0; i < r->e.facts.n_order; i++) {
    ir_computation *c = r->e.facts.order[i];
    if (r->e.roles[c->id] == ASYNC_ROLE_SEQUENCE) {
      TRY(async_put_computation(r, c));
    } else {
      IR_FOR_OPS(op, c) r->costs.of_computation[c->id] += async_op_time(&r->costs, op);
    }
  }
  BASE_PUT(r->out, "]}");
  return r->out->failed ? async_oom(&r->e) : 0;
}

int async_put_json(base_text *out, ir_module *m, const async_model *model, xlac_error *err) {
  async_report r = {.out = out};
  TRY(async_edit_begin(&r.e, m, err));
  int status = async_costs_begin(&r.costs, &r.e, model ? model : &async_model_default);
  if (status == 0) {
    status = async_put_all(&r);
    async_costs_end(&r.costs);
  }
  async_edit_end(&r.e);
  return status;
}
