/* sdy-verify-unreduced-axes: an axis along which a value still has to be added up (unreduced) may neither get lost nor
 * come from nowhere. Products and reductions may leave sums to be done (a reduction by maximum, maxima); a reshard or
 * constraint may do anything, for it says so.
 * Requires: nothing. Changes nothing. Source: Shardy's description of the pass and its answers (2026-06-24). */
#include <stdio.h>

#include "../common/common.h"

/* Messages are Shardy's words, so that users find them in its documents.
 * A dot of [{}, {"x"}] and [{"x"}, {}] gives partial sums on every device along "x". Its result may say
 * unreduced={"x"}, or a reshard or all-reduce may add them up; a result that says neither has lost an axis. */
typedef struct exunr {
  ir_module *m;
  opt_symbols symbols;
  base_arena arena;
  const ir_computation *f;
  xlac_error *err;
} exunr;
/* What a message is about: an op, or (NULL) what a region or function gives back. */
typedef struct exunr_at {
  const ir_op *op;
  const ir_computation *c;
} exunr_at;
enum { EXUNR_NEVER = -1 };

/* Sums are what is meant where nothing is said. */
static const char *exunr_word(int kind) {
  return kind == SDY_MAX ? "max" : kind == SDY_MIN ? "min" : "sum";
}

static int exunr_fail(const exunr *x, exunr_at at, const char *format, ...) BASE_PRINTF(3, 4);
/* The name of the op is in the message, as MLIR's emitOpError has it. */
static int exunr_fail(const exunr *x, exunr_at at, const char *format, ...) {
  assert(at.op || at.c);
  char text[sizeof x->err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const ir_mlir_info *info = at.op ? ir_opcode_info(at.op->opcode)->mlir : NULL;
  const char *name = info ? info->name : at.op ? at.op->name->s : at.c->owner ? "sdy.return" : "func.return";
  int status = base_fail_at(x->err, XLAC_E_VERIFY_SHARDING, at.op ? at.op->line : at.c->return_line,
                            at.op ? at.op->col : at.c->return_col, name, "'%s' op %s", name, text);
  return base_hint(x->err, status, "an sdy.reshard or sdy.all_reduce makes a sum that is due");
}

/* --- shardings, whatever barriers are in between --- */

/* A barrier passes its operand on: it neither makes nor drops sums. */
static ir_value exunr_behind(ir_value v) {
  while (v.op->opcode == IR_OP_SDY_PROPAGATION_BARRIER) v = opt_operand(v.op, 0);
  return v;
}

/* The sharding that holds for v, wherever it is written: at its edge, its op, or its function. */
static const sdy_sharding *exunr_of(const exunr *x, ir_value v) {
  return sdy_shown(x->m, exunr_behind(v));
}

/* Shardy calls these blessed operations. */
static bool exunr_is_reshard(const ir_op *op) {
  return op->opcode == IR_OP_SDY_RESHARD || op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT;
}

/* NULL for what a reshard gives: that may be anything. */
static const sdy_sharding *exunr_operand(const exunr *x, ir_value v) {
  return exunr_is_reshard(exunr_behind(v).op) ? NULL : exunr_of(x, v);
}

/* --- the same axes on both sides --- */

/* NULL: no sharding, no unreduced axes. */
static bool exunr_has(const sdy_sharding *s, sdy_axis axis) {
  for (uint32_t i = 0; s && i < s->unreduced.n; i++)
    if (sdy_axis_equal(s->unreduced.v[i], axis)) return true;
  return false;
}

/* The first axis, by name, that one of them has alone; NULL: none. */
static const base_istr *exunr_odd(const sdy_sharding *a, const sdy_sharding *b) {
  const base_istr *odd = NULL;
  for (uint32_t side = 0; side < 2; side++) {
    const sdy_sharding *s = side ? b : a, *other = side ? a : b;
    for (uint32_t i = 0; s && i < s->unreduced.n; i++) {
      const base_istr *name = s->unreduced.v[i].name;
      if (!exunr_has(other, s->unreduced.v[i]) && (!odd || strcmp(name->s, odd->s) < 0)) odd = name;
    }
  }
  return odd;
}

/* Operands against the callee's arguments, results against its results. A reshard in between does the reduction, so
 * what stands behind one is not compared. */
static int exunr_call(const exunr *x, const ir_op *op) {
  const ir_computation *f = opt_callee(&x->symbols, op);
  exunr_at at = {op, NULL};
  if (!f) return 0;
  for (uint32_t i = 0; i < op->n_operands && i < f->n_params; i++) {
    ir_value v = opt_operand(op, i);
    if (exunr_is_reshard(exunr_behind(v).op)) continue;
    const base_istr *odd = exunr_odd(exunr_of(x, v), exunr_of(x, (ir_value){f->params[i], 0}));
    if (odd) return exunr_fail(x, at, "has unreduced axes mismatch for '%s' at call argument %u.", odd->s, i);
  }
  for (uint32_t i = 0; i < op->n_results && i < f->n_results; i++) {
    const base_istr *odd = exunr_odd(sdy_get_result(f, i), exunr_of(x, (ir_value){(ir_op *)(uintptr_t)op, i}));
    if (odd) return exunr_fail(x, at, "has unreduced axes mismatch for '%s' at call result %u.", odd->s, i);
  }
  return 0;
}

/* A value that a reshard gives may differ from what the region declares; anything else may not. */
static int exunr_returned(const exunr *x, const ir_computation *c, uint32_t i, const sdy_sharding *result) {
  if (!result || exunr_is_reshard(exunr_behind(c->results[i]).op)) return 0;
  const base_istr *odd = exunr_odd(exunr_of(x, c->results[i]), result);
  if (!odd) return 0;
  return exunr_fail(x, (exunr_at){NULL, c},
                    "has unreduced axes mismatch for '%s' at return value %u without a blessed operation (e.g., "
                    "sdy.reshard). This is an invalid transition from unreduced to reduced.",
                    odd->s, i);
}

/* What a function gives back, and what the region of a manual or named computation does. */
static int exunr_returns(const exunr *x, const ir_computation *c) {
  ir_op *owner = c->owner;
  if (owner && owner->opcode != IR_OP_SDY_MANUAL_COMPUTATION && owner->opcode != IR_OP_SDY_NAMED_COMPUTATION) return 0;
  const sdy_names *manual = owner ? sdy_of(ir_mattr_of(owner, "manual_axes"), SDY_MANUAL_AXES) : NULL;
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (owner && i >= owner->n_results) break;
    const sdy_sharding *s = owner ? exunr_of(x, (ir_value){owner, i}) : sdy_get_result(c, i);
    if (s && manual && !(s = sdy_without_axes(x->m, s, manual, true))) return base_oom(x->err, "unreduced axes");
    TRY(exunr_returned(x, c, i, s));
  }
  return 0;
}

/* --- from operands to results --- */

/* The operands, or the results, of one op. */
typedef struct exunr_side {
  uint32_t n;
  const sdy_sharding **v; /* NULL: none */
  sdy_axes axes;          /* unreduced in any of them */
} exunr_side;

/* Axes of all on the side, some of them several times: they are used as a set. */
static int exunr_gather(exunr *x, exunr_side *side) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < side->n; i++) n += side->v[i] ? side->v[i]->unreduced.n : 0;
  sdy_axis *all = BASE_ARRAY(&x->arena, sdy_axis, (size_t)n + 1);
  if (!all) return base_oom(x->err, "unreduced axes");
  n = 0;
  for (uint32_t i = 0; i < side->n; i++)
    for (uint32_t k = 0; side->v[i] && k < side->v[i]->unreduced.n; k++) all[n++] = side->v[i]->unreduced.v[k];
  side->axes = (sdy_axes){n, all};
  return 0;
}

/* The one mesh of all; NULL: there are several, or none. */
static const sdy_mesh *exunr_mesh(const exunr *x, const exunr_side *sides) {
  const sdy_mesh *found = NULL;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < sides[k].n; i++) {
      const sdy_mesh *mesh = sides[k].v[i] ? sdy_mesh_of(x->m, sides[k].v[i]) : NULL;
      if (!mesh) continue;
      if (found && !sdy_mesh_equal(found, mesh)) return NULL;
      found = mesh;
    }
  return found;
}

/* Sub-axes overlap without being equal.
 * "x" overlaps "x":(1)2. */
static bool exunr_overlap(sdy_axes a, sdy_axes b) {
  for (uint32_t i = 0; i < b.n; i++)
    if (sdy_axes_overlap(a, b.v[i])) return true;
  return false;
}

/* Of those on one side that have one of the axes: one whose reduction is not `kind`. */
static const sdy_sharding *exunr_other_kind(const exunr_side *side, sdy_axes axes, int kind) {
  for (uint32_t i = 0; i < side->n; i++) {
    const sdy_sharding *s = side->v[i];
    if (s && s->reduction != kind && exunr_overlap(s->unreduced, axes)) return s;
  }
  return NULL;
}

/* An axis that is unreduced before and after must be due for the same kind of sum. */
static int exunr_kept(const exunr *x, exunr_at at, const exunr_side *sides) {
  for (uint32_t i = 0; i < sides[0].n; i++)
    for (uint32_t k = 0; k < sides[1].n; k++) {
      const sdy_sharding *a = sides[0].v[i], *b = sides[1].v[k];
      if (!a || !b || a->reduction == b->reduction || !exunr_overlap(a->unreduced, b->unreduced)) continue;
      return exunr_fail(x, at, "cannot change the reduction operator of kept unreduced axes from %s to %s.",
                        exunr_word(a->reduction), exunr_word(b->reduction));
    }
  return 0;
}

/* introduced, removed: the reduction of axes that may come or go, or EXUNR_NEVER. */
static int exunr_transition(exunr *x, const ir_op *op, exunr_side *sides, int introduced, int removed) {
  exunr_at at = {op, NULL};
  TRY(exunr_gather(x, &sides[0]));
  TRY(exunr_gather(x, &sides[1]));
  const sdy_mesh *mesh = exunr_mesh(x, sides);
  assert(sides[0].axes.v && sides[1].axes.v);
  if (!mesh || sides[0].axes.n + sides[1].axes.n == 0) return 0;
  size_t room = (size_t)sides[0].axes.n + sides[1].axes.n + 1;
  sdy_axis *more = BASE_ARRAY(&x->arena, sdy_axis, room), *less = BASE_ARRAY(&x->arena, sdy_axis, room);
  if (!more || !less) return base_oom(x->err, "unreduced axes");
  sdy_axes added = {sdy_axes_minus(sides[1].axes, sides[0].axes, mesh, more), more};
  sdy_axes gone = {sdy_axes_minus(sides[0].axes, sides[1].axes, mesh, less), less};
  if (added.n && introduced == EXUNR_NEVER)
    return exunr_fail(x, at, "cannot add new unreduced axis '%s'.", added.v[0].name->s);
  const sdy_sharding *odd = added.n ? exunr_other_kind(&sides[1], added, introduced) : NULL;
  if (odd)
    return exunr_fail(x, at, "cannot introduce '%s' unreduced axes. Expected '%s'.", exunr_word(odd->reduction),
                      exunr_word(introduced));
  if (gone.n && removed == EXUNR_NEVER)
    return exunr_fail(x, at,
                      "dropped unreduced axis '%s' without a blessed operation (e.g., sdy.reshard). This is an invalid "
                      "transition from unreduced to reduced.",
                      gone.v[0].name->s);
  odd = gone.n ? exunr_other_kind(&sides[0], gone, removed) : NULL;
  if (odd)
    return exunr_fail(x, at, "cannot reduce '%s' unreduced axes. Expected '%s'.", exunr_word(odd->reduction),
                      exunr_word(removed));
  return exunr_kept(x, at, sides);
}

/* The kind of reduction that a body does, the same for all its results, or EXUNR_NEVER. */
static int exunr_body_kind(const ir_op *op) {
  const ir_computation *c = op->n_called ? op->called[0] : NULL;
  int kind = EXUNR_NEVER;
  for (uint32_t i = 0; c && i < c->n_results; i++) {
    ir_opcode opcode = (ir_opcode)c->results[i].op->opcode;
    int one = opcode == IR_OP_ADD       ? SDY_SUM
              : opcode == IR_OP_MAXIMUM ? SDY_MAX
              : opcode == IR_OP_MINIMUM ? SDY_MIN
                                        : EXUNR_NEVER;
    if (one == EXUNR_NEVER || (i && one != kind)) return EXUNR_NEVER;
    kind = one;
  }
  return kind;
}

/* Of the op's operands the first n_operands count: initial values of a reduce do not. behind_reshards: a reshard's
 * result counts as what it is, rather than as anything. */
static int exunr_flow(exunr *x, ir_op *op, uint32_t n_operands, bool behind_reshards, int introduced, int removed) {
  assert(n_operands <= op->n_operands);
  exunr_side sides[2] = {{.n = n_operands}, {.n = op->n_results}};
  for (uint32_t k = 0; k < 2; k++) {
    sides[k].v = BASE_ARRAY(&x->arena, const sdy_sharding *, (size_t)sides[k].n + 1);
    if (!sides[k].v) return base_oom(x->err, "unreduced axes");
  }
  for (uint32_t i = 0; i < n_operands; i++) {
    ir_value v = opt_operand(op, i);
    sides[0].v[i] = behind_reshards ? exunr_of(x, v) : exunr_operand(x, v);
  }
  for (uint32_t i = 0; i < op->n_results; i++) sides[1].v[i] = exunr_of(x, (ir_value){op, i});
  return exunr_transition(x, op, sides, introduced, removed);
}

/* --- ops --- */

/* By default sums may be left to be done (dot_general does) and may not get lost. */
static int exunr_op(exunr *x, ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_SDY_RESHARD:
    case IR_OP_SDY_SHARDING_CONSTRAINT:
      return 0; /* the verifier has seen to them */
    case IR_OP_CALL:
      return exunr_call(x, op);
    case IR_OP_REDUCE:
      return exunr_flow(x, op, op->n_operands / 2, false, exunr_body_kind(op), EXUNR_NEVER);
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_REDUCE_SCATTER:
      return exunr_of(x, opt_operand(op, 0)) ? 0 : exunr_fail(x, (exunr_at){op, NULL}, "operand must be sharded.");
    case IR_OP_ALL_REDUCE:
    case IR_OP_REDUCE_SCATTER:
      if (op->n_operands == 0) return 0;
      return exunr_flow(x, op, 1, true, EXUNR_NEVER, exunr_body_kind(op));
    default:
      return exunr_flow(x, op, op->n_operands, false, SDY_SUM, EXUNR_NEVER);
  }
}

/* Inner ops first. Regions nest no deeper than the verifier allows. */
static int exunr_walk(exunr *x, ir_computation *c) {
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(exunr_walk(x, op->called[i]));
    TRY(exunr_op(x, op));
  }
  return exunr_returns(x, c);
}

/* Ops are checked against their operands, calls against signatures, functions against what they return. */
int shard_verify_unreduced(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  exunr x = {.m = m, .err = err};
  TRY(shc_verify(m, err)); /* what reshards and all-reduces do to unreduced axes */
  TRY(opt_symbols_make(&x.symbols, m, err));
  base_arena_init(&x.arena, m->alloc);
  int status = 0;
  for (ir_computation *c = m->first; c && status == 0; c = c->next)
    if (c->kind == IR_FUNCTION && !c->owner && !c->declaration) status = exunr_walk(&x, c);
  base_arena_free(&x.arena);
  opt_symbols_free(&x.symbols);
  return status;
}
