/* algebraic-simplification: HLO ops become simpler ones with the same bits.
 * Requires: nothing. Preserves: side effects, async chains, ops in control edges, the schedule, all ops whose types are
 * not plain (dynamic, laid out otherwise than row by row). Ops that lose their users stay for dce. Fused computations
 * stay as they are, as in XLA: each of their parameters must have users.
 *
 * One sweep, operands before users, so that a rule sees operands that are simple already; work is linear in the ops. */
#include "algebraic_simplification.h"

#include <math.h>

enum { HS_ROUNDS = 8, HS_MAX_LOOK = 4096 /* elements of a literal that are worth a look */ };

/* --- for the rules --- */

ir_op *hs_as(const ir_op *op, ir_op *with) {
  return with->type == op->type ? with : NULL;
}

bool hs_is_integral(const ir_type *t) {
  return base_dtype_is_integer((base_dtype)t->dtype) || t->dtype == XLAC_PRED;
}

bool hs_is(const ir_op *op, double value) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  if (op->opcode != IR_OP_CONSTANT || op->u.literal->elided || !ir_is_tensor(op->type)) return false;
  base_dtype t = (base_dtype)op->type->dtype;
  const base_dtype_info *info = base_dtype_of(t);
  if (base_dtype_is_complex(t) || op->type->count == 0 || op->type->count > HS_MAX_LOOK) return false;
  for (int64_t i = 0; i < op->type->count; i++) {
    double x = base_load_f64(t, (const char *)op->u.literal->data + i * info->bytes);
    if (x != value || (x == 0 && signbit(x) != signbit(value))) return false;
  }
  return true;
}

/* --- the sweep --- */

static bool hs_may(const hs_run *s, const ir_op *op) {
  if (op->n_results != 1 || opt_in_edge(&s->facts, op) || !hlo_is_plain(op->type)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!hlo_is_plain(ir_operand_type(op, i)) || op->operands[i].index) return false;
  return (opt_op_facts(&s->facts, op) & (OPT_EFFECT | OPT_RANDOM | OPT_ASYNC)) == 0;
}

static void hs_rules(hs_rule **by_opcode, size_t n, const hs_row *const *tables) {
  for (size_t t = 0; t < n; t++)
    for (const hs_row *r = tables[t]; r->opcode != IR_OP_INVALID; r++) {
      assert(!by_opcode[r->opcode]);
      by_opcode[r->opcode] = r->rule;
    }
}

/* What replaces op, if it is new, is looked at too. */
static void hs_op(hs_run *s, hs_rule *const *rules, ir_op *op) {
  for (int round = 0; round < HS_ROUNDS && !s->x.failed && rules[op->opcode] && hs_may(s, op); round++) {
    uint32_t ids = s->x.m->n_ids;
    s->x.before = op;
    ir_op *with = rules[op->opcode](s, op);
    if (!with || s->x.failed || with->type != op->type) return;
    s->x.m->verified = IR_UNVERIFIED;
    if (with == op) continue;
    if (!opt_replace(op, with)) s->x.failed = true;
    if (with->id < ids) return;
    op = with;
  }
}

static void hs_computation(hs_run *s, hs_rule *const *rules, const ir_computation *c) {
  base_arena scratch;
  base_arena_init(&scratch, s->x.m->alloc);
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &scratch, &n);
  s->x.failed = s->x.failed || !order;
  for (uint32_t i = 0; i < n && !s->x.failed; i++) hs_op(s, rules, order[i]);
  base_arena_free(&scratch);
}

/* By computation id. NULL: out of memory. */
static uint8_t *hs_fused(const ir_module *m, base_arena *arena) {
  uint8_t *fused = base_arena_zalloc(arena, (size_t)m->n_computation_ids + 1);
  if (!fused) return NULL;
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (op->opcode == IR_OP_FUSION && op->n_called) fused[op->called[0]->id] = 1;
  return fused;
}

static int hs_sweep(ir_module *m, const char *pass, size_t n, const hs_row *const *tables, xlac_error *err) {
  hs_run s = {.x = {.m = m}};
  hs_rule *rules[IR_OP_COUNT] = {NULL};
  TRY(opt_facts_make(&s.facts, m, err));
  hs_rules(rules, n, tables);
  const uint8_t *fused = hs_fused(m, &s.facts.arena);
  s.x.failed = !fused;
  IR_FOR_COMPUTATIONS(c, m)
  if (fused && !fused[c->id]) hs_computation(&s, rules, c);
  opt_facts_free(&s.facts);
  return s.x.failed ? base_oom(err, pass) : 0;
}

int opt_algebraic_simplification(ir_module *m, const opt_args *args, xlac_error *err) {
  static const hs_row *const tables[] = {hs_math_rules, hs_move_rules, hs_dot_rules, hs_window_rules};
  (void)args;
  return hs_sweep(m, "algebraic-simplification", sizeof tables / sizeof *tables, tables, err);
}

int opt_reassociate(ir_module *m, const opt_args *args, xlac_error *err) {
  static const hs_row *const tables[] = {hs_loose_rules};
  (void)args;
  return hs_sweep(m, "reassociate", 1, tables, err);
}
