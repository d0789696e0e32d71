/* One op: its tensors' shardings become those of factors, the strategy spreads them, and what has changed goes back. */
#include "propagate.h"

typedef struct visit_tensors {
  uint32_t n_operands, n;
  uint32_t *slots;                /* operands, then results */
  const sdy_sharding **shardings; /* as the rule sees them */
  const sdy_sharding *like;       /* one that names the common mesh */
  const sdy_mesh *mesh;
  /* A manual computation's edge: the target's sharding is seen from the other side. */
  const sdy_names *manual;
  const sdy_sharding *outer;
  bool inward;     /* the target is an argument */
  uint32_t result; /* of a function, that it is about */
  bool quiet;      /* nobody is told: before and after the rounds */
} visit_tensors;

static void visit_fail_in_place(shard_driver *d, const ir_op *op) {
  int status = base_fail_at(d->err, XLAC_E_VERIFY_SHARDING, op ? op->line : d->main->line, op ? op->col : d->main->col,
                            op && ir_opcode_info(op->opcode)->mlir ? ir_opcode_info(op->opcode)->mlir->name : "",
                            "a sharding with its mesh written in place can't be propagated: expected @mesh");
  shard_driver_fail(d, base_hint(d->err, status, "run sdy-lift-inlined-meshes first"));
}

/* The mesh that all shardings name; NULL where they disagree, or there is none. */
static const sdy_mesh *visit_mesh(shard_driver *d, const ir_op *op, visit_tensors *t) {
  shard_state *s = &d->state;
  t->like = NULL;
  t->mesh = NULL;
  for (uint32_t i = 0; i < t->n; i++) {
    const sdy_sharding *sharding = t->shardings[i];
    if (!sharding) continue;
    if (t->like && t->like->mesh_name && t->like->mesh_name == sharding->mesh_name) continue;
    const sdy_mesh *mesh = shard_state_mesh(s, sharding);
    if (!mesh) return NULL;
    if (!t->mesh || sdy_mesh_is_empty(t->mesh)) {
      t->mesh = mesh;
      t->like = sharding;
    } else if (!sdy_mesh_is_empty(mesh) && !sdy_mesh_equal(mesh, t->mesh)) {
      return NULL;
    }
  }
  if (t->like && !t->like->mesh_name) {
    visit_fail_in_place(d, op);
    return NULL;
  }
  return t->mesh && !sdy_mesh_is_maximal(t->mesh) ? t->mesh : NULL;
}

static bool visit_is_empty(const sdy_sharding *s) {
  if (s->replicated.n || s->unreduced.n) return false;
  for (uint32_t d = 0; d < s->n_dims; d++)
    if (s->dims[d].axes.n) return false;
  return true;
}

static void visit_tell(shard_driver *d, const visit_tensors *t, uint32_t slot) {
  if (!t->quiet && d->state.slots[slot].op) shard_notify(d, slot);
}

/* The members of the value's group get the same sharding. */
static void visit_group(shard_driver *d, const visit_tensors *t, uint32_t home, const sdy_sharding *to) {
  shard_state *s = &d->state;
  uint32_t group = s->slots[home].group;
  if (!group) return;
  for (uint32_t i = 0; i < s->groups[group - 1].n; i++) {
    uint32_t member = s->groups[group - 1].members[i];
    if (member == home) continue;
    if (!shard_state_set(s, member, to)) shard_driver_fail(d, base_oom(d->err, "propagation"));
    visit_tell(d, t, member);
  }
}

/* true: the sharding of the tensor is another one now. */
static bool visit_update(shard_driver *d, const visit_tensors *t, const shard_projection *p, uint32_t i) {
  const sdy_sharding *to = shard_unproject(p, i, t->like);
  if (!to) {
    shard_driver_fail(d, base_oom(d->err, "propagation"));
    return false;
  }
  const sdy_sharding *old = t->shardings[i];
  if (old ? sdy_sharding_equal(old, to) : visit_is_empty(to)) return false;
  uint32_t home = shard_home(&d->state, t->slots[i]);
  if (home == SHARD_NO_SLOT) return true;
  if (t->manual && i == t->n_operands)
    to = t->inward ? shard_manual_inside(&d->pool, to, t->manual)
                   : shard_manual_outside(&d->pool, t->outer, to, t->manual);
  if (!to || !shard_state_set(&d->state, home, to)) {
    shard_driver_fail(d, base_oom(d->err, "propagation"));
    return false;
  }
  bool result = !d->state.slots[home].op;
  if (!result) visit_tell(d, t, home);
  if (!result) visit_group(d, t, home, to);
  return true;
}

static void visit_spread(shard_driver *d, ir_op *op, visit_tensors *t, const sdy_rule *rule, const uint8_t *directions,
                         bool conservative, bool elementwise) {
  shard_projection p;
  if (!shard_project(&p, &d->pool, rule, t->mesh, t->shardings, false)) {
    shard_driver_fail(d, base_oom(d->err, "propagation"));
    return;
  }
  p.watch = d->trace && d->trace->with_conflicts && !d->replays;
  if (d->strategy == SHARD_BASIC)
    shard_spread_basic(&p, directions, conservative);
  else
    shard_spread_aggressive(&p, directions, conservative, elementwise);
  if (d->pool.failed) shard_driver_fail(d, base_oom(d->err, "propagation"));
  if (d->replays) {
    shard_trace_note(d->trace, &d->state, &p, op, t->result, t->slots, d->level, d->user_priority, d->strategy);
    return;
  }
  bool any = false;
  shard_look look = {op, t->result, d->state.changes.n};
  for (uint32_t i = 0; i < t->n && d->status == 0; i++)
    if (p.updated[i] && visit_update(d, t, &p, i)) any = true;
  if (p.n_clashes) shard_trace_clashes(d->trace, &d->state, &p, op, t->slots, d->level, d->user_priority);
  if (any && d->trace && !BASE_VEC_PUSH(d->trace->alloc, &d->trace->looks, look)) d->trace->failed = true;
}

/* --- the tensors of an op --- */

static bool visit_room(shard_driver *d, visit_tensors *t, uint32_t n_operands, uint32_t n) {
  t->n_operands = n_operands;
  t->n = n;
  t->slots = shard_pool_alloc(&d->pool, (n + 1) * sizeof *t->slots);
  t->shardings = shard_pool_alloc(&d->pool, (n + 1) * sizeof *t->shardings);
  if (t->slots && t->shardings) return true;
  shard_driver_fail(d, base_oom(d->err, "propagation"));
  return false;
}

static void visit_set(shard_driver *d, visit_tensors *t, uint32_t i, uint32_t slot) {
  t->slots[i] = slot;
  t->shardings[i] = shard_now(&d->state, slot);
}

/* The latest change of any of the tensors. */
static uint32_t visit_latest(const shard_driver *d, const visit_tensors *t) {
  uint32_t latest = 1;
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t home = shard_home(&d->state, t->slots[i]);
    if (home != SHARD_NO_SLOT && d->state.slots[home].when > latest) latest = d->state.slots[home].when;
  }
  return latest;
}

static void visit_with_rule(shard_driver *d, ir_op *op, visit_tensors *t, const sdy_rule *rule,
                            const uint8_t *directions, bool conservative) {
  uint32_t how = 1 + d->strategy;
  uint64_t hash = 1469598103934665603ull;
  for (uint32_t f = 0; f < rule->sizes.n; f++) hash = (hash ^ directions[f]) * 1099511628211ull;
  how = (uint32_t)(hash >> 16) * 4 + how;
  if (d->replays) {
    visit_spread(d, op, t, rule, directions, conservative, shard_is_elementwise(op));
    return;
  }
  if (d->seen[op->id] >= visit_latest(d, t) && d->seen_how[op->id] == how) return;
  uint32_t before = d->state.tick;
  d->current = op;
  visit_spread(d, op, t, rule, directions, conservative, shard_is_elementwise(op));
  d->current = NULL;
  bool in_vain = before == d->state.tick;
  d->seen[op->id] = in_vain ? before : 0;
  d->seen_how[op->id] = how;
}

static const sdy_rule *visit_rule(shard_driver *d, ir_op *op) {
  if (d->has_rule[op->id]) return d->rules[op->id];
  const ir_mattr *own = ir_mattr_of(op, "sdy.sharding_rule");
  d->rules[op->id] = own ? sdy_of(own, SDY_RULE) : NULL;
  d->has_rule[op->id] = d->rules[op->id] ? 2 : 1;
  if (!d->rules[op->id]) d->rules[op->id] = shard_driver_rule(d, op, NULL, 0);
  return d->rules[op->id];
}

static bool visit_blocked(const sdy_rule *rule, uint32_t factor) {
  for (uint32_t i = 0; i < rule->blocked.n; i++)
    if (rule->blocked.v[i] == factor) return true;
  return false;
}

static void visit_op(shard_driver *d, ir_op *op) {
  const sdy_rule *rule = visit_rule(d, op);
  if (!rule || rule->n_operands != op->n_operands || rule->n_results != op->n_results) return;
  visit_tensors t = {.quiet = false};
  if (!visit_room(d, &t, op->n_operands, op->n_operands + op->n_results)) return;
  bool any = false;
  for (uint32_t i = 0; i < t.n; i++) {
    const ir_use *use = i < op->n_operands ? &op->operands[i] : NULL;
    visit_set(d, &t, i,
              use ? shard_slot_of(&d->state, use->op, use->index) : shard_slot_of(&d->state, op, i - op->n_operands));
    any = any || t.shardings[i];
  }
  if (!any || !visit_mesh(d, op, &t)) return;
  uint8_t *directions = shard_pool_alloc(&d->pool, rule->sizes.n + 1);
  if (!directions) return;
  for (uint32_t f = 0; f < rule->sizes.n; f++)
    directions[f] = visit_blocked(rule, f) ? SHARD_NONE : (uint8_t)shard_level_direction(d, op, rule, f);
  visit_with_rule(d, op, &t, rule, directions, d->options.conservative);
}

/* --- edges, barriers, results: tensors that are all alike --- */

static void visit_identity(shard_driver *d, ir_op *op, visit_tensors *t, const ir_type *type, shard_direction way) {
  if (!visit_mesh(d, op, t)) return;
  const sdy_rule *rule = op ? d->rules[op->id] : NULL;
  if (!rule) rule = shard_driver_rule(d, NULL, type, t->n_operands);
  if (op) d->rules[op->id] = rule; /* has_rule stays 0: it is not the op's own */
  uint8_t *directions = rule ? shard_pool_alloc(&d->pool, rule->sizes.n + 1) : NULL;
  if (!directions) return;
  memset(directions, way, rule->sizes.n);
  if (op)
    visit_with_rule(d, op, t, rule, directions, false);
  else
    visit_spread(d, NULL, t, rule, directions, false, false);
}

static bool visit_is_static(const ir_type *type) {
  return type->kind == IR_TYPE_TENSOR && !type->has_dynamic;
}

static shard_direction visit_allowed(const ir_op *barrier) {
  const ir_mattr *a = ir_mattr_of(barrier, "allowed_direction");
  if (a && a->kind == IR_M_INTEGER) return (shard_direction)(a->v.i & 3);
  const char *word = ir_m_get_str(barrier, "allowed_direction");
  if (strcmp(word, "FORWARD") == 0) return SHARD_FORWARD;
  if (strcmp(word, "BACKWARD") == 0) return SHARD_BACKWARD;
  return strcmp(word, "BOTH") == 0 ? SHARD_BOTH : SHARD_NONE;
}

static void visit_barrier(shard_driver *d, ir_op *op) {
  visit_tensors t = {.quiet = false};
  if (!visit_is_static(op->type) || !visit_room(d, &t, 1, 2)) return;
  visit_set(d, &t, 0, shard_slot_of(&d->state, op->operands[0].op, op->operands[0].index));
  visit_set(d, &t, 1, shard_slot_of(&d->state, op, 0));
  visit_identity(d, op, &t, op->type, visit_allowed(op));
}

static uint32_t visit_returned(const shard_state *s, const ir_computation *c, uint32_t i) {
  return i < c->n_results ? shard_slot_of(s, c->results[i].op, c->results[i].index) : SHARD_NO_SLOT;
}

/* What flows into the value: the op's operand, what its regions give back. */
static void visit_sources(shard_driver *d, visit_tensors *t, const ir_op *flow, uint32_t i, bool argument) {
  const shard_state *s = &d->state;
  uint32_t n = 0;
  bool operand = flow->opcode == IR_OP_WHILE || flow->opcode == IR_OP_OPT_BARRIER || argument;
  if (operand && i < flow->n_operands)
    visit_set(d, t, n++, shard_slot_of(s, flow->operands[i].op, flow->operands[i].index));
  for (uint32_t r = 0; r < flow->n_called && !argument; r++) {
    if (flow->opcode == IR_OP_WHILE && r == 0) continue; /* the condition */
    uint32_t slot = visit_returned(s, flow->called[r], i);
    if (slot != SHARD_NO_SLOT) visit_set(d, t, n++, slot);
  }
  t->n_operands = n;
  t->n = n + 1;
}

static void visit_manual(shard_driver *d, visit_tensors *t, const ir_op *flow, uint32_t i, bool argument) {
  const sdy_names *manual = sdy_of(ir_mattr_of(flow, "manual_axes"), SDY_MANUAL_AXES);
  const sdy_shardings *list = sdy_of(ir_mattr_of(flow, argument ? "in_shardings" : "out_shardings"), SDY_SHARDINGS);
  const sdy_sharding *own = t->shardings[t->n_operands];
  if (!manual || !list || i >= list->n || !own) return;
  t->manual = manual;
  t->outer = list->v[i];
  t->inward = argument;
  const sdy_sharding *seen =
      argument ? shard_manual_outside(&d->pool, t->outer, own, manual) : shard_manual_inside(&d->pool, own, manual);
  if (!seen)
    shard_driver_fail(d, base_oom(d->err, "propagation"));
  else
    t->shardings[t->n_operands] = seen;
}

static void visit_edge(shard_driver *d, ir_op *op) {
  if (!visit_is_static(op->type)) return;
  const ir_use *input = &op->operands[0];
  bool argument = input->op->opcode == IR_OP_PARAMETER;
  const ir_op *flow = argument ? input->op->parent->owner : input->op;
  if (!flow || !shard_is_flow(flow)) return;
  uint32_t i = argument ? (uint32_t)input->op->u.number : input->index;
  visit_tensors t = {.quiet = false};
  if (!visit_room(d, &t, 0, flow->n_called + 2)) return;
  visit_sources(d, &t, flow, i, argument);
  visit_set(d, &t, t.n_operands, shard_slot_of(&d->state, op, 0));
  if (flow->opcode == IR_OP_SDY_MANUAL_COMPUTATION) visit_manual(d, &t, flow, i, argument);
  visit_identity(d, op, &t, op->type, shard_level_direction(d, op, NULL, 0));
}

/* A function's argument, from all its calls; a call's result, from what the function returns. */
static void visit_func_edge(shard_driver *d, ir_op *op) {
  if (!visit_is_static(op->type)) return;
  const shard_state *s = &d->state;
  const ir_use *input = &op->operands[0];
  const ir_computation *callee = input->op->opcode == IR_OP_CALL ? shard_callee(s, input->op) : NULL;
  const shard_callers *callers = &s->callers[input->op->parent->id];
  bool argument = input->op->opcode == IR_OP_PARAMETER;
  visit_tensors t = {.quiet = false};
  uint32_t n = 0, most = argument ? callers->n : 1;
  if (!visit_room(d, &t, 0, most + 1)) return;
  for (uint32_t i = 0; argument && i < callers->n; i++) {
    uint64_t number = (uint64_t)input->op->u.number;
    if (number >= callers->calls[i]->n_operands) continue;
    const ir_use *use = &callers->calls[i]->operands[number];
    visit_set(d, &t, n++, shard_slot_of(s, use->op, use->index));
  }
  uint32_t slot = callee ? visit_returned(s, callee, input->index) : SHARD_NO_SLOT;
  if (slot != SHARD_NO_SLOT) visit_set(d, &t, n++, slot);
  if (n == 0) return;
  t.n_operands = n;
  t.n = n + 1;
  visit_set(d, &t, n, shard_slot_of(s, op, 0));
  visit_identity(d, op, &t, op->type, shard_level_direction(d, op, NULL, 0));
}

void shard_visit(shard_driver *d, ir_op *op) {
  shard_pool_empty(&d->pool);
  switch (op->opcode) {
    case IR_OP_SDY_PROPAGATION_BARRIER:
      visit_barrier(d, op);
      break;
    case IR_OP_SDY_DATA_FLOW_EDGE:
      visit_edge(d, op);
      break;
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      visit_func_edge(d, op);
      break;
    case IR_OP_PARAMETER:
      break;
    default:
      visit_op(d, op);
  }
}

void shard_visit_result(shard_driver *d, ir_computation *main, uint32_t i) {
  const ir_type *type = main->results[i].op->types[main->results[i].index];
  shard_pool_empty(&d->pool);
  visit_tensors t = {.quiet = true, .result = i};
  if (!visit_is_static(type) || !visit_room(d, &t, 1, 2)) return;
  visit_set(d, &t, 0, visit_returned(&d->state, main, i));
  visit_set(d, &t, 1, d->state.first_result[main->id] + i);
  visit_identity(d, NULL, &t, type, SHARD_BOTH);
}

void shard_visit_results(shard_driver *d, ir_computation *main) {
  uint32_t first = d->state.first_result[main->id];
  for (uint32_t i = 0; first != SHARD_NO_SLOT && i < main->n_results && d->status == 0; i++)
    shard_visit_result(d, main, i);
}
