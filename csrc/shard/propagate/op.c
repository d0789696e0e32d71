/* Propagation at one op: the rule it has, one look at it, and a look done again for the record. */
#include "propagate.h"

/* The rules of a module's ops while it is propagated through. Programs have few different ones, so equal ones are kept
 * once: a rule that is made and known already is given up again. */

/* Mixing constants are those of splitmix64. */
static uint64_t rules_hash_ints(uint64_t h, sdy_ints v) {
  h = (h ^ v.n) * UINT64_C(0x9E3779B97F4A7C15);
  for (uint32_t i = 0; i < v.n; i++) h = (h ^ (uint64_t)v.v[i] ^ (h >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
  return h;
}

/* Everything that sdy_equal compares of a rule, but `custom`, which rules that are made here never have. */
static uint64_t rules_hash(const sdy_rule *r) {
  uint64_t h = rules_hash_ints(r->n_operands * UINT64_C(131) + r->n_results, r->sizes);
  for (uint32_t t = 0; t < r->n_operands + r->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(r, t);
    for (uint32_t d = 0; d < map->n_dims; d++) h = rules_hash_ints(h + d, map->dims[d]);
  }
  h = rules_hash_ints(rules_hash_ints(h, r->reduction), r->need_replication);
  return rules_hash_ints(rules_hash_ints(h, r->permutation), r->blocked);
}

/* The rule as stored in the module, where it is needed if ops are to keep it. */
static const sdy_rule *rules_keep(shard_driver *d, const sdy_rule *made) {
  assert(made != NULL);
  uint64_t hash = rules_hash(made), found = 0;
  const sdy_rule *known = base_map_get(&d->kept_rules, hash, &found) ? (const sdy_rule *)(uintptr_t)found : NULL;
  if (known && sdy_equal(SDY_RULE, known, made)) return known;
  known = sdy_rule_make(d->state.m, made);
  if (known && base_map_set(&d->kept_rules, hash, base_key(known))) return known;
  shard_driver_fail(d, base_oom(d->err, "propagation"));
  return NULL;
}

/* The rule is made in the maker's arena, of which the mark is taken back: only what is kept goes to the module. */
const sdy_rule *shard_driver_rule(shard_driver *d, const ir_op *op, const ir_type *type, uint32_t n) {
  const sdy_rule *made = NULL;
  base_arena_mark mark = base_arena_here(&d->maker.arena);
  d->maker.into = &d->maker.arena;
  shard_driver_fail(
      d, op ? shard_rule_make(&d->maker, op, &made, d->err) : shard_rule_identity(&d->maker, type, n, &made, d->err));
  if (made) made = rules_keep(d, made);
  base_arena_back(&d->maker.arena, mark);
  return made;
}

/* Rules that are one have one attribute too. */
static const ir_mattr *rules_attr(shard_driver *d, const sdy_rule *rule) {
  const ir_mattr *a = base_map_ptr(&d->rule_attrs, rule);
  if (a) return a;
  a = sdy_attr(d->state.m, SDY_RULE, rule);
  return a && base_map_set(&d->rule_attrs, base_key(rule), base_key(a)) ? a : NULL;
}

/* Ops that propagation has added have no number in the tables, nor a rule. */
int shard_store_rules(shard_driver *d, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, d->state.m) {
    IR_FOR_OPS(op, c) {
      if (op->id >= d->state.n_ids) continue;
      const sdy_rule *own = sdy_of(ir_mattr_of(op, "sdy.sharding_rule"), SDY_RULE);
      bool ok = true;
      if (d->options.keep_rules && !own && d->has_rule[op->id] == 1 && d->rules[op->id]) {
        const ir_mattr *rule = rules_attr(d, d->rules[op->id]);
        ok = rule && ir_m_set(op, "sdy.sharding_rule", rule);
      } else if (!d->options.keep_rules && own && !own->custom) {
        ok = ir_m_set(op, "sdy.sharding_rule", NULL);
      }
      if (!ok) return base_oom(err, "propagation");
    }
  }
  return 0;
}

/* One op: its tensors' shardings become those of factors, the strategy spreads them, and what has changed goes back. */

/* One look at an op: its tensors' shardings become those of factors, the strategy spreads axes, what has changed goes
 * back. The tensors are the operands and results of an op with a rule, or the sources and the target of an edge, for
 * which all tensors are alike (an identity rule). A function's result has no op; `result` says which it is. */
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

/* Results are written with a mesh's name: a mesh written in place has none that another tensor could use. */
static void visit_fail_in_place(shard_driver *d, const ir_op *op) {
  int status = base_fail_at(d->err, XLAC_E_VERIFY_SHARDING, op ? op->line : d->main->line, op ? op->col : d->main->col,
                            op && ir_opcode_info(op->opcode)->mlir ? ir_opcode_info(op->opcode)->mlir->name : "",
                            "a sharding with its mesh written in place can't be propagated: expected @mesh");
  shard_driver_fail(d, base_hint(d->err, status, "run sdy-lift-inlined-meshes first"));
}

/* The mesh that all shardings name; NULL where they disagree, or there is none. Meshes of different names are one
 * where they have the same axes and devices. Empty meshes agree with all; a maximal one (a single device) shards
 * nothing. */
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

/* No axes anywhere. Such a sharding is no news to a tensor without one, open or not. */
static bool visit_is_empty(const sdy_sharding *s) {
  if (s->replicated.n || s->unreduced.n) return false;
  for (uint32_t d = 0; d < s->n_dims; d++)
    if (s->dims[d].axes.n) return false;
  return true;
}

/* Function results have no readers, so nobody is told of them. */
static void visit_tell(shard_driver *d, const visit_tensors *t, uint32_t slot) {
  if (!t->quiet && d->state.slots[slot].op) shard_notify(d, slot);
}

/* The members of the value's group get the same sharding. */
static void visit_group(shard_driver *d, const visit_tensors *t, uint32_t home, const sdy_sharding *to) {
  shard_state *s = &d->state;
  uint32_t group = s->slots[home].group;
  if (!group) return;
  assert(group <= s->n_groups);
  for (uint32_t i = 0; i < s->groups[group - 1].n; i++) {
    uint32_t member = s->groups[group - 1].members[i];
    if (member == home) continue;
    if (!shard_state_set(s, member, to)) shard_driver_fail(d, base_oom(d->err, "propagation"));
    visit_tell(d, t, member);
  }
}

/* true: the sharding of the tensor is another one now.
 * A sharding equal to the one there is no change: this ends the rounds. A value whose home is SHARD_NO_SLOT can't
 * hold one, and still counts as changed, as in Shardy. */
static bool visit_update(shard_driver *d, const visit_tensors *t, const shard_projection *p, uint32_t i) {
  assert(i < t->n && t->like != NULL);
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

/* During a replay everything is computed and nothing is written: the trace takes notes of what would have changed. */
static void visit_spread(shard_driver *d, ir_op *op, visit_tensors *t, const sdy_rule *rule, const uint8_t *directions,
                         bool conservative, bool elementwise) {
  shard_projection p;
  assert(rule->n_operands + rule->n_results == t->n);
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

/* Room for n tensors, of which n_operands are operands (or sources). In the pool, until the next op. */
static bool visit_room(shard_driver *d, visit_tensors *t, uint32_t n_operands, uint32_t n) {
  assert(n_operands <= n);
  t->n_operands = n_operands;
  t->n = n;
  t->slots = shard_pool_alloc(&d->pool, (n + 1) * sizeof *t->slots);
  t->shardings = shard_pool_alloc(&d->pool, (n + 1) * sizeof *t->shardings);
  if (t->slots && t->shardings) return true;
  shard_driver_fail(d, base_oom(d->err, "propagation"));
  return false;
}

/* Shardings are read at the moment of the visit: earlier visits may have changed them. */
static void visit_set(shard_driver *d, visit_tensors *t, uint32_t i, uint32_t slot) {
  assert(i < t->n);
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

/* An op that was looked at without effect is skipped until one of its tensors changes or the strategy or directions
 * do: `seen` has the tick of that look, seen_how a hash of strategy and directions. An op that had an effect is
 * looked at again even so, since spreading one factor can make room for another. */
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

/* The op's own attribute wins over the table. The answer is kept, "none" too. */
static const sdy_rule *visit_rule(shard_driver *d, ir_op *op) {
  if (d->has_rule[op->id]) return d->rules[op->id];
  const ir_mattr *own = ir_mattr_of(op, "sdy.sharding_rule");
  d->rules[op->id] = own ? sdy_of(own, SDY_RULE) : NULL;
  d->has_rule[op->id] = d->rules[op->id] ? 2 : 1;
  if (!d->rules[op->id]) d->rules[op->id] = shard_driver_rule(d, op, NULL, 0);
  return d->rules[op->id];
}

/* Blocked factors are few, if any. */
static bool visit_blocked(const sdy_rule *rule, uint32_t factor) {
  for (uint32_t i = 0; i < rule->blocked.n; i++)
    if (rule->blocked.v[i] == factor) return true;
  return false;
}

/* An explicit rule may have been made for another op: its counts are compared before it is used. */
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

/* way: the same direction for all factors. `type` says the rank; its sizes are the factors'. */
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

/* allowed_direction is an enum in the text and a number in bytecode: NONE, FORWARD, BACKWARD, BOTH from 0. */
static shard_direction visit_allowed(const ir_op *barrier) {
  const ir_mattr *a = ir_mattr_of(barrier, "allowed_direction");
  if (a && a->kind == IR_M_INTEGER) return (shard_direction)(a->v.i & 3);
  const char *word = ir_m_get_str(barrier, "allowed_direction");
  if (strcmp(word, "FORWARD") == 0) return SHARD_FORWARD;
  if (strcmp(word, "BACKWARD") == 0) return SHARD_BACKWARD;
  return strcmp(word, "BOTH") == 0 ? SHARD_BOTH : SHARD_NONE;
}

/* A barrier's own direction holds at all levels: op priorities do not ask. */
static void visit_barrier(shard_driver *d, ir_op *op) {
  visit_tensors t = {.quiet = false};
  if (!visit_is_static(op->type) || !visit_room(d, &t, 1, 2)) return;
  visit_set(d, &t, 0, shard_slot_of(&d->state, op->operands[0].op, op->operands[0].index));
  visit_set(d, &t, 1, shard_slot_of(&d->state, op, 0));
  visit_identity(d, op, &t, op->type, visit_allowed(op));
}

/* The slot of what c's terminator returns as number i. */
static uint32_t visit_returned(const shard_state *s, const ir_computation *c, uint32_t i) {
  return i < c->n_results ? shard_slot_of(s, c->results[i].op, c->results[i].index) : SHARD_NO_SLOT;
}

/* The sources of an edge: the op's operand (while, optimization_barrier, arguments of computations), and what its
 * regions return (while's body, all branches of a case, the bodies of named and manual computations). Tokens are
 * never here: visit_edge has asked for a tensor. */
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

/* The edge of a manual computation sees two sides: an argument's sharding in the body has no manual axes, the
 * operand's has. The target is translated to the sources' side for the look, and visit_update translates back. */
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

/* A data flow edge is an identity of several sources and targets, e.g. a loop's initial value, its body's result and
 * its argument. It is visited like an op with one operand for each source. */
static void visit_edge(shard_driver *d, ir_op *op) {
  assert(op->opcode == IR_OP_SDY_DATA_FLOW_EDGE);
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

/* Function arguments have no rule and no operands: they change only by what their readers ask for. */
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

/* The main function's results have shardings of their own; a returned value and its result inform each other before
 * and after each run, without waking readers. */
void shard_visit_result(shard_driver *d, ir_computation *main, uint32_t i) {
  const ir_type *type = main->results[i].op->types[main->results[i].index];
  shard_pool_empty(&d->pool);
  visit_tensors t = {.quiet = true, .result = i};
  if (!visit_is_static(type) || !visit_room(d, &t, 1, 2)) return;
  visit_set(d, &t, 0, visit_returned(&d->state, main, i));
  visit_set(d, &t, 1, d->state.first_result[main->id] + i);
  visit_identity(d, NULL, &t, type, SHARD_BOTH);
}

/* A function's results are identities of what it returns: their shardings go both ways. */
void shard_visit_results(shard_driver *d, ir_computation *main) {
  uint32_t first = d->state.first_result[main->id];
  for (uint32_t i = 0; first != SHARD_NO_SLOT && i < main->n_results && d->status == 0; i++)
    shard_visit_result(d, main, i);
}

/* Records of what propagation did, made after it: its looks at ops that changed something are done again, each with the
 * shardings that values had then, and nothing is changed by them. A look follows from these shardings and the phase
 * alone, so it finds the same again. */

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

/* op NULL: a result of the main function. */
static void replay_look(shard_driver *d, const shard_look *look) {
  if (look->op)
    shard_visit(d, look->op);
  else
    shard_visit_result(d, d->main, look->op_index);
}

/* Two cursors: changes up to the look's are applied before it, and the phase that it belongs to is set. */
static void replay_looks(shard_driver *d) {
  const shard_trace *t = d->trace;
  shard_changes *log = &d->state.changes;
  uint32_t at = 0, phase = 0;
  for (uint32_t i = 0; i < t->looks.n && d->status == 0; i++) {
    const shard_look *look = &t->looks.items[i];
    assert(look->changes <= log->n);
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

/* The log of changes is undone, newest first; then the same ops are visited in the same order, now with records.
 * Recording from the start would slow down every run, and most are never asked to explain. */
void shard_replay(shard_driver *d) {
  assert(d->trace != NULL);
  shard_changes *log = &d->state.changes;
  if (d->trace->failed) return; /* the caller says so */
  d->replays = true;
  replay_lend_uses(d->trace, false);
  for (uint32_t i = log->n; i-- > 0;) replay_swap(&d->state, &log->items[i]);
  replay_looks(d);
  replay_lend_uses(d->trace, true);
  d->replays = false;
}
