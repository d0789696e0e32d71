/* xla-sdy-round-trip-shard-map-import: a call of @xla.sdy.manual_computation_body between @xla.sdy.GlobalToLocalShape
 * and
 * @xla.sdy.LocalToGlobalShape becomes the manual computation it was. Functions that bodies call note the manual axes
 * that they run under.
 * Requires: every body is called once (shard_flatten_calls). Preserves: what the program computes. */
#include "round_trip.h"

BASE_VEC(rt_axis_names, const base_istr *);
BASE_VEC(rt_found_calls, ir_op *);
typedef struct rt_map {
  opt_rewriter rw;
  opt_symbols symbols;
  base_map taken;       /* bodies that are regions now */
  rt_axis_names under;  /* manual axes around the op at hand */
  rt_found_calls calls; /* of bodies, in the order of the text; ops after them go with them */
} rt_map;

static int rt_map_oom(rt_map *x) {
  return base_oom(x->rw.err, "xla-sdy-round-trip-shard-map-import");
}

static int rt_map_fail(rt_map *x, const ir_op *call, const char *what, const char *target) {
  return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_STRUCTURE, "'func.call' op expected %s @%s to be %s CustomCallOp",
                          what, ir_mattr_of(call, "callee")->v.list->v[0]->str->s, target);
}

/* The custom call before the body: of values of no elements XLA has made constants, so not every operand is its. */
static int rt_map_before(rt_map *x, const ir_op *call, ir_op **out) {
  *out = NULL;
  for (uint32_t i = 0; i < call->n_operands && !*out; i++)
    if (rt_calls(call->operands[i].op, "xla.sdy.GlobalToLocalShape")) *out = call->operands[i].op;
  if (*out || call->n_operands == 0) return 0;
  return rt_map_fail(x, call, "at least one operand of", "produced by a xla.sdy.GlobalToLocalShape");
}

static int rt_map_after(rt_map *x, const ir_op *call, ir_op **out) {
  *out = NULL;
  IR_FOR_USES(use, call)
  if (rt_calls(use->user, "xla.sdy.LocalToGlobalShape")) *out = use->user;
  if (*out || call->n_results == 0) return 0;
  return rt_map_fail(x, call, "the first use of", "a xla.sdy.LocalToGlobalShape");
}

typedef struct rt_map_words {
  const sdy_shardings *in, *out;
  const sdy_names *axes;
} rt_map_words;

static int rt_map_read(rt_map *x, const ir_op *op, const char *key, const sdy_shardings **list,
                       const sdy_names **axes) {
  const void *found = NULL, *names = NULL;
  if (!op) return 0;
  TRY(rt_front_read_sdy(&x->rw, op, op->mlir, key, SDY_SHARDINGS, &found));
  TRY(rt_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.manual_axes", SDY_MANUAL_AXES, &names));
  if (!found || !names)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "@%s needs the frontend attributes %s and xla.sdy.manual_axes",
                            ir_m_get_str(op, "call_target_name"), key);
  *list = found;
  if (!*axes || (*axes)->n == 0) *axes = names;
  return 0;
}

static bool rt_map_set(ir_module *m, ir_op *op, const rt_map_words *w) {
  const sdy_shardings *in = w->in ? w->in : sdy_shardings_make(m, 0, NULL);
  const sdy_shardings *out = w->out ? w->out : sdy_shardings_make(m, 0, NULL);
  const sdy_names *axes = w->axes ? w->axes : sdy_names_make(m, 0, NULL);
  return ir_m_set(op, "in_shardings", sdy_attr(m, SDY_SHARDINGS, in)) &&
         ir_m_set(op, "out_shardings", sdy_attr(m, SDY_SHARDINGS, out)) &&
         ir_m_set(op, "manual_axes", sdy_attr(m, SDY_MANUAL_AXES, axes));
}

static int rt_map_take(rt_map *x, ir_op *op, ir_computation *f) {
  x->rw.m->verified = IR_UNVERIFIED;
  return shc_take_body(op, f) && base_map_set(&x->taken, base_key(f), 1) ? 0 : rt_map_oom(x);
}

/* Its operands are those of the custom call before, its results become those of the one after. */
static int rt_map_make(rt_map *x, ir_op *call, ir_op *before, ir_op *after, ir_op **made) {
  ir_value *operands = NULL;
  uint32_t n = before ? before->n_operands : 0;
  operands = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  for (uint32_t i = 0; operands && i < n; i++) operands[i] = opt_operand(before, i);
  opt_at(&x->rw, call);
  *made = operands ? opt_make_n(&x->rw, IR_OP_SDY_MANUAL_COMPUTATION, after ? after->n_results : 0,
                                after ? after->types : NULL, n, operands, 1)
                   : NULL;
  return *made ? 0 : rt_map_oom(x);
}

static int rt_map_erase(rt_map *x, ir_op *call, ir_op *before, ir_op *after, ir_op *made) {
  uint32_t n = after ? after->n_results : 0;
  ir_value *values = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  if (!values) return rt_map_oom(x);
  for (uint32_t i = 0; i < n; i++) values[i] = (ir_value){made, i};
  if (after) opt_replace_op(&x->rw, after, values);
  if (opt_is_used(&x->rw, call)) return rt_map_fail(x, call, "every use of", "a xla.sdy.LocalToGlobalShape");
  opt_erase(&x->rw, call);
  if (before && !opt_is_used(&x->rw, before)) opt_erase(&x->rw, before);
  return opt_rewriter_status(&x->rw);
}

static int rt_map_call(rt_map *x, ir_op *call) {
  ir_op *before = NULL, *after = NULL, *made = NULL;
  rt_map_words w = {NULL, NULL, NULL};
  ir_computation *f = opt_callee(&x->symbols, call);
  uint64_t taken;
  if (call->n_results && !opt_is_used(&x->rw, call)) { /* all of its results have no elements */
    opt_erase(&x->rw, call);
    return opt_rewriter_status(&x->rw);
  }
  if (f->declaration || base_map_get(&x->taken, base_key(f), &taken))
    return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_STRUCTURE, "@%s is no body of one call", f->name->s);
  TRY(rt_map_before(x, call, &before));
  TRY(rt_map_after(x, call, &after));
  TRY(rt_map_read(x, before, "xla.sdy.in_shardings", &w.in, &w.axes));
  TRY(rt_map_read(x, after, "xla.sdy.out_shardings", &w.out, &w.axes));
  TRY(rt_map_make(x, call, before, after, &made));
  if (!rt_map_set(x->rw.m, made, &w)) return rt_map_oom(x);
  TRY(rt_map_take(x, made, f));
  return rt_map_erase(x, call, before, after, made);
}

static int rt_map_find(void *ctx, ir_op *op) {
  rt_map *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  return !f || !rt_is_body(f->name) || BASE_VEC_PUSH(x->rw.m->alloc, &x->calls, op) ? 0 : rt_map_oom(x);
}

/* --- what is left --- */

static int rt_map_stray(void *ctx, ir_op *op) {
  rt_map *x = ctx;
  if (!rt_calls(op, "xla.sdy.GlobalToLocalShape") && !rt_calls(op, "xla.sdy.LocalToGlobalShape")) return 0;
  if (opt_is_used(&x->rw, op))
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_STRUCTURE, "@%s stands at no call of a manual computation's body",
                            ir_m_get_str(op, "call_target_name"));
  opt_erase(&x->rw, op);
  return opt_rewriter_status(&x->rw);
}

static void rt_map_drop_bodies(ir_module *m) {
  for (ir_computation *c = m->first, *next = NULL; c; c = next) {
    next = c->next;
    if (c->kind != IR_FUNCTION || c->owner || !rt_is_body(c->name)) continue;
    if (m->entry == c) m->entry = NULL;
    ir_computation_remove(c);
  }
  if (!m->entry) m->entry = m->first;
}

/* --- manual axes of functions --- */

static int rt_map_note(rt_map *x, const sdy_names *axes) {
  for (uint32_t i = 0; axes && i < axes->n; i++)
    if (!BASE_VEC_PUSH(x->rw.m->alloc, &x->under, axes->v[i])) return rt_map_oom(x);
  return 0;
}

static int rt_map_under(rt_map *x, ir_computation *c) {
  ir_module *m = x->rw.m;
  IR_FOR_OPS(op, c) {
    ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
    if (f && x->under.n) {
      const sdy_names *names = sdy_names_make(m, x->under.n, x->under.items);
      const ir_mattr *a = names ? sdy_attr(m, SDY_MANUAL_AXES, names) : NULL;
      if (!a || !shc_set_function(f, "sdy.func_manual_axes", a)) return rt_map_oom(x);
    }
    uint32_t kept = x->under.n;
    if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION)
      TRY(rt_map_note(x, sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES)));
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(rt_map_under(x, op->called[i]));
    x->under.n = kept;
  }
  return 0;
}

static int rt_map_all(rt_map *x) {
  uint32_t n = 0;
  ir_computation **list = shc_functions(x->rw.m, &x->symbols, false, &x->rw.arena, &n);
  if (!list) return rt_map_oom(x);
  for (uint32_t i = 0; i < n; i++) TRY(shc_walk(list[i], true, rt_map_find, x));
  for (uint32_t i = 0; i < x->calls.n; i++) TRY(rt_map_call(x, x->calls.items[i]));
  TRY(shc_walk_module(x->rw.m, true, rt_map_stray, x));
  rt_map_drop_bodies(x->rw.m);
  opt_symbols_free(&x->symbols);
  TRY(opt_symbols_make(&x->symbols, x->rw.m, x->rw.err));
  list = shc_functions(x->rw.m, &x->symbols, true, &x->rw.arena, &n);
  if (!list) return rt_map_oom(x);
  for (uint32_t i = 0; i < n; i++) {
    x->under.n = 0;
    TRY(rt_map_note(x, sdy_of(ir_mdict_get(list[i]->mlir, "sdy.func_manual_axes"), SDY_MANUAL_AXES)));
    TRY(rt_map_under(x, list[i]));
  }
  return 0;
}

int shard_import_map(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  rt_map x = {.under = {0}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  base_map_init(&x.taken, m->alloc);
  if (status == 0) {
    status = rt_map_all(&x);
    opt_symbols_free(&x.symbols);
  }
  base_map_free(&x.taken);
  BASE_VEC_FREE(m->alloc, &x.under);
  BASE_VEC_FREE(m->alloc, &x.calls);
  opt_rewriter_free(&x.rw);
  return status == 0 ? shc_verify(m, err) : status;
}
