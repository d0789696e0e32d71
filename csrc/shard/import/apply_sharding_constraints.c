/* sdy-apply-sharding-constraints: a value without a sharding takes the closed one that a constraint on it asks for,
 * when no other asks for another. What flows along an edge is not restrained so; there the constraint comes right after
 * the value, and all uses go through it. In a chain of constraints, later uses of what the first one constrains go
 * through the last. Requires: nothing. Preserves: what the program computes. */
#include "../../ir/stablehlo/stablehlo.h"
#include "../common/common.h"
#include "edges.h"
#include "../rules/rule.h"

/* Reshards are none: they say what to do, not what to wish for. */
static bool imp_is_constraint(const ir_op *op) {
  return op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT;
}

/* A manual computation constrains its operands to its in_shardings. */
static bool imp_constrains(const ir_op *op) {
  return imp_is_constraint(op) || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
}

/* The sharding that the user of this use asks for, or NULL. */
static const sdy_sharding *imp_constraint_of(const ir_use *use) {
  const ir_op *op = use->user;
  if (imp_is_constraint(op)) return sdy_of(ir_mattr_of(op, "sharding"), SDY_SHARDING);
  if (op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return NULL;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  return use->slot < in->n ? in->v[use->slot] : NULL;
}

/* Two constraints that differ: neither is applied to the value, and both stay to be resolved by reshards. */
static bool imp_is_constrained_otherwise(ir_value v, const sdy_sharding *s) {
  IR_FOR_USES(use, v.op) {
    const sdy_sharding *other = use->index == v.index ? imp_constraint_of(use) : NULL;
    if (other && !sdy_sharding_equal(other, s)) return true;
  }
  return false;
}

/* A constraint uses v, but for `except`. */
static bool imp_is_constrained(ir_value v, const ir_op *except) {
  IR_FOR_USES(use, v.op)
  if (use->index == v.index && use->user != except && imp_constrains(use->user)) return true;
  return false;
}

/* An open dimension asks for less than it says: it may be sharded further, so that applying it would lose freedom. */
static bool imp_is_closed(const sdy_sharding *s) {
  for (uint32_t i = 0; i < s->n_dims; i++)
    if (s->dims[i].open) return false;
  return true;
}

/* Arguments of regions that no edge leads to have no place for a sharding. */
static bool imp_is_shardable(ir_value v) {
  ir_value owner;
  return v.op->opcode != IR_OP_PARAMETER || !v.op->parent->owner || sdy_owner(v, &owner);
}

/* Shardy's shouldApply: a value that has a sharding keeps it, since the user wrote that. */
static bool imp_should_apply(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  return imp_is_shardable(v) && !sdy_shown(rw->m, v) && imp_is_closed(s) && !imp_is_constrained_otherwise(v, s);
}

/* The value has an edge of its own, or is an edge. */
static bool imp_is_on_edge(ir_value v) {
  ir_value owner;
  return v.op->opcode == IR_OP_SDY_DATA_FLOW_EDGE || (sdy_owner(v, &owner) && sdy_edge_op(owner));
}

/* So that the constraint dominates all uses that will go through it: it may come from a region of an op behind v. */
static void imp_move_after(opt_rewriter *rw, ir_op *op, ir_value v) {
  shc_at_value(rw, v);
  if (rw->before == op) return;
  ir_op_move(op, rw->before);
}

/* A constraint for a manual computation's operand. */
static ir_op *imp_make_constraint(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  assert(s != NULL);
  shc_at_value(rw, v);
  ir_value c = opt_make(rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(v), 1, &v);
  opt_set(rw, c, "sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  return c.op;
}

/* Unreduced axes do not propagate, so the value itself must have them. */
static bool imp_give_unreduced(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  if (s->unreduced.n == 0) return true;
  const sdy_sharding *now = sdy_shown(rw->m, v);
  if (!now) now = sdy_sharding_empty(rw->m, s, sdy_rank(opt_type(v)), true);
  sdy_sharding *to = now ? base_arena_memdup(&rw->m->arena, now, sizeof *now) : NULL;
  if (!to) return false;
  to->unreduced = s->unreduced;
  to->reduction = s->reduction;
  return sdy_show(v, to);
}

/* Shardy leaves the rule of a constraint that it has applied on it. */
static bool imp_note_rule(opt_rewriter *rw, ir_op *op) {
  assert(op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || imp_is_constraint(op));
  const sdy_rule *rule = NULL;
  shard_maker maker;
  if (!imp_is_constraint(op) || ir_mattr_of(op, "sdy.sharding_rule")) return true;
  shard_maker_init(&maker, rw->m, false);
  bool ok = shard_rule_make(&maker, op, &rule, rw->err) == 0;
  shard_maker_free(&maker);
  return ok && (!rule || ir_m_set(op, "sdy.sharding_rule", sdy_attr(rw->m, SDY_RULE, rule)));
}

/* op asks for v to be sharded so. */
static void imp_apply(opt_rewriter *rw, ir_op *op, ir_value v, const sdy_sharding *s) {
  assert(s != NULL);
  if (rw->failed || !imp_should_apply(rw, v, s)) return;
  if (!imp_is_on_edge(v)) {
    rw->failed = !imp_note_rule(rw, op) || !sdy_show(v, s);
    return;
  }
  ir_op *constraint = op;
  if (imp_is_constraint(op))
    imp_move_after(rw, op, v);
  else
    constraint = imp_make_constraint(rw, v, s);
  if (!constraint) return;
  shc_replace_value(rw, v, (ir_value){constraint, 0}, constraint);
  rw->failed = rw->failed || !imp_give_unreduced(rw, v, s);
}

/* --- chains --- */

/* The only user of a value, where that is a constraint; else NULL. */
static ir_op *imp_only_constraint(opt_rewriter *rw, ir_value v) {
  if (shc_count_uses(rw, v, 2) != 1 || !v.op->uses) return NULL;
  return imp_is_constraint(v.op->uses->user) ? v.op->uses->user : NULL;
}

/* The last constraint of the chain that begins with head, of at least two; NULL where chains do not count.
 * A chain: c1 = constraint(v), c2 = constraint(c1), ..., each read by the next alone. Later readers of v are meant to
 * read the last one, as in v -> replicated -> sharded, where the user gathers and shards again. */
static ir_op *imp_tail(opt_rewriter *rw, ir_op *head) {
  assert(imp_is_constraint(head));
  ir_value in = opt_operand(head, 0);
  if (imp_is_constraint(in.op) || (imp_is_shardable(in) && sdy_shown(rw->m, in)) || imp_is_constrained(in, head))
    return NULL;
  ir_op *tail = head, *next = NULL;
  while ((next = imp_only_constraint(rw, (ir_value){tail, 0}))) tail = next;
  return tail == head || imp_is_constrained((ir_value){tail, 0}, NULL) ? NULL : tail;
}

/* The ops behind op in its region, by id. */
static void imp_mark_after(const ir_op *op, uint8_t *after) {
  for (op = op->next; op; op = op->next) after[op->id] = 1;
}

/* Uses of the chain's input that come after its end, in the same region, but for the function's results. */
static void imp_reroute(opt_rewriter *rw, ir_op *head, ir_op *tail) {
  ir_value in = opt_operand(head, 0);
  if (in.op->uses && !in.op->uses->next) return; /* the head is the only one */
  uint8_t *after = base_arena_zalloc(&rw->arena, (size_t)rw->m->n_ids + 1);
  rw->failed = rw->failed || !after;
  if (rw->failed) return;
  imp_mark_after(tail, after);
  for (ir_use *u = in.op->uses, *next = NULL; u; u = next) {
    next = u->next;
    if (u->index != in.index || u->user == head || u->user->parent != tail->parent || !after[u->user->id]) continue;
    ir_set_operand(u->user, u->slot, (ir_value){tail, 0});
  }
  ir_computation *c = tail->parent; /* what a region returns is used at its end */
  for (uint32_t i = 0; c->kind != IR_FUNCTION && i < c->n_results; i++)
    if (c->results[i].op == in.op && c->results[i].index == in.index) ir_set_result(c, i, (ir_value){tail, 0});
}

/* --- the walk --- */

/* Post-order, and chains before their head is applied: rerouting changes which values are constrained otherwise. */
static int imp_constraints_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  if (imp_is_constraint(op)) {
    ir_op *tail = imp_tail(rw, op);
    if (tail) imp_reroute(rw, op, tail);
    imp_apply(rw, op, opt_operand(op, 0), sdy_of(ir_mattr_of(op, "sharding"), SDY_SHARDING));
  } else if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION) {
    const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
    for (uint32_t i = 0; i < op->n_operands && i < in->n; i++) imp_apply(rw, op, opt_operand(op, i), in->v[i]);
  }
  return opt_rewriter_status(rw);
}

/* Such a rule is an error, as it is where sdy-populate-op-sharding-rules writes one. */
static bool imp_has_noted_dynamic(const ir_module *m, const uint8_t *marked, uint32_t n) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (imp_is_constraint(op) && op->type->has_dynamic && ir_mattr_of(op, "sdy.sharding_rule") &&
      !(op->id < n && marked[op->id]))
    return true;
  return false;
}

/* With notes: ops that had no rule before and have one after are the constraints that were applied. */
int shard_apply_constraints(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  uint32_t n = m->n_ids;
  bool notes = opt_get(args, "debug-propagation-edge-sharding");
  uint8_t *marked = base_arena_zalloc(&rw.arena, (size_t)n + 1); /* ops with a rule */
  IR_FOR_COMPUTATIONS(c, m) IR_FOR_OPS(op, c) if (marked) marked[op->id] = ir_mattr_of(op, "sdy.sharding_rule") != NULL;
  int status = marked ? shc_walk_module(m, true, imp_constraints_op, &rw) : base_oom(err, "applied constraints");
  if (status == 0 && imp_has_noted_dynamic(m, marked, n)) status = stablehlo_verify(m, err);
  if (status == 0 && notes) status = shard_note_constraints(m, marked, n, err);
  opt_rewriter_free(&rw);
  return status;
}
