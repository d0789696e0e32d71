/* Plans are made at a computation's first call in a run and kept in the run's arena. Ops that neither the
 * root nor an effect needs are not in them. */
#include "plan.h"

#include "quant.h"

/* Whether the op must run though nobody reads its result. Ops that call computations count when there is any effect in
 * the module at all: looking into them would cost more than now and then running one for nothing. */
static bool plan_must_run(const interp_ctx *ctx, const ir_op *op) {
  if (!ctx->has_effects) return false;
  if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT) || op->n_called) return true;
  return op->opcode == IR_OP_CUSTOM_CALL && interp_call_has_effect(op);
}

/* Text order where the module says it is the schedule, else post-order. */
static const ir_op **plan_order(interp_ctx *ctx, const ir_computation *c, uint32_t *n) {
  if (!c->module->config.is_scheduled) return (const ir_op **)ir_post_order(c, &ctx->arena, n);
  const ir_op **order = BASE_ARRAY(&ctx->arena, const ir_op *, c->n_ops);
  if (!order) return NULL;
  *n = 0;
  IR_FOR_OPS(op, c) order[(*n)++] = op;
  return order;
}

/* Keeps of the order what the root or a side effect needs; gives the number kept. slot_of is scratch: 1 where needed.
 */
static uint32_t plan_keep_live(interp_ctx *ctx, const ir_computation *c, const ir_op **order, uint32_t n) {
  uint32_t *needed = ctx->slot_of, kept = 0;
  for (uint32_t i = 0; i < n; i++) needed[order[i]->id] = plan_must_run(ctx, order[i]);
  needed[ir_root(c)->id] = 1;
  for (uint32_t i = n; i-- > 0;) {
    if (!needed[order[i]->id]) continue;
    for (uint32_t k = 0; k < order[i]->n_operands; k++) needed[ir_operand(order[i], k)->id] = 1;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (needed[order[i]->id]) order[kept++] = order[i];
  }
  return kept;
}

/* Slots instead of pointers: a value's slot is its step's number. */
static bool plan_set_operands(interp_ctx *ctx, interp_plan *p, interp_step *s) {
  assert(s->op && s >= p->steps);
  uint32_t n = s->op->n_operands;
  uint32_t *slots = BASE_ARRAY(&ctx->arena, uint32_t, n);
  if (!slots) return false;
  for (uint32_t k = 0; k < n; k++) {
    slots[k] = ctx->slot_of[ir_operand(s->op, k)->id];
    assert(slots[k] < (uint32_t)(s - p->steps)); /* the order is valid */
  }
  s->operands = slots;
  if (n > p->max_operands) p->max_operands = n;
  return true;
}

/* Walks back from the end: the first sight of a slot is its last use. `seen` has a byte for each slot. */
static bool plan_set_last_uses(interp_ctx *ctx, interp_plan *p, uint8_t *seen) {
  seen[p->root] = 1;
  for (uint32_t i = p->n_steps; i-- > 0;) {
    interp_step *s = &p->steps[i];
    uint32_t n = s->op->n_operands;
    uint32_t *dead = BASE_ARRAY(&ctx->arena, uint32_t, (size_t)n + 1);
    if (!dead) return false;
    for (uint32_t k = 0; k < n; k++) {
      if (seen[s->operands[k]] == 1) continue;
      if (seen[s->operands[k]] == 0) dead[s->n_dead++] = s->operands[k];
      seen[s->operands[k]] = 2; /* dies here, maybe as several operands */
      if (k < 64) s->last |= (uint64_t)1 << k;
    }
    for (uint32_t k = 0; k < n; k++) seen[s->operands[k]] = 1;
    if (!seen[i]) dead[s->n_dead++] = i; /* run for its effect only */
    seen[i] = 1;
    s->dead = dead;
  }
  return true;
}

/* A get-tuple-element may move its element out when the tuple is only ever taken apart, and this index by this op
 * alone. Then a loop's body owns the parts of its state one by one, and updates them in place. */
static bool plan_element_moves(const interp_ctx *ctx, const interp_plan *p, const ir_op *op) {
  if (op->opcode != IR_OP_GET_TUPLE_ELEMENT || ctx->slot_of[ir_operand(op, 0)->id] == p->root) return false;
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  uint32_t budget = 4096; /* a tuple with more users is left alone, lest this turn quadratic */
  IR_FOR_USES(use, ir_operand(op, 0)) {
    if (budget-- == 0 || use->user->opcode != IR_OP_GET_TUPLE_ELEMENT) return false;
    if (use->user != op && ir_get_int(use->user, IR_ATTR_INDEX, 0) == index) return false;
  }
  return true;
}

/* HLO form only: one result per computation, its root. */
static interp_plan *plan_of_computation(interp_ctx *ctx, const ir_computation *c) {
  uint32_t n;
  assert(c->n_results == 1 && c->results[0].index == 0);
  const ir_op **order = plan_order(ctx, c, &n);
  interp_plan *p = BASE_NEW(&ctx->arena, interp_plan);
  if (!order || !p) return NULL;
  p->computation = c;
  p->n_steps = plan_keep_live(ctx, c, order, n);
  p->steps = BASE_ARRAY(&ctx->arena, interp_step, p->n_steps);
  uint8_t *seen = base_arena_zalloc(&ctx->arena, p->n_steps);
  if (!p->steps || !seen) return NULL;
  memset(p->steps, 0, p->n_steps * sizeof *p->steps);
  for (uint32_t i = 0; i < p->n_steps; i++) {
    p->steps[i].op = order[i];
    p->steps[i].quantised = interp_quant_applies(order[i]);
    ctx->slot_of[order[i]->id] = i;
    if (!plan_set_operands(ctx, p, &p->steps[i])) return NULL;
  }
  p->root = ctx->slot_of[ir_root(c)->id];
  for (uint32_t i = 0; i < p->n_steps; i++) p->steps[i].moves_element = plan_element_moves(ctx, p, p->steps[i].op);
  return plan_set_last_uses(ctx, p, seen) ? p : NULL;
}

const interp_plan *interp_plan_of(interp_ctx *ctx, const ir_computation *c) {
  assert(c->id < c->module->n_computation_ids);
  if (ctx->plans[c->id]) return ctx->plans[c->id];
  interp_plan *p = plan_of_computation(ctx, c);
  if (!p) {
    int status = base_oom(ctx->err, "the order of a computation");
    (void)status;
  }
  return ctx->plans[c->id] = p;
}
