/* Manual computations (JAX's shard_map) as calls between custom calls, and back. HLO has calls and custom calls only:
 * %1 = custom-call @xla.sdy.GlobalToLocalShape(%0) {in_shardings} %2 = call @xla.sdy.manual_computation_body(%1) %3 =
 * custom-call @xla.sdy.LocalToGlobalShape(%2) {out_shardings}
 * The two custom calls change types between global and local shapes and carry the attributes of the computation. */
#include "round_trip.h"

/* Manual computations as calls. xla-sdy-round-trip-shard-map-export: between custom calls that keep its shardings, so
 * that it can come back. xla-sdy-stablehlo-round-trip-shard-map-export: as XLA's partitioner reads it, the operands
 * copied into the sharding asked for and cut to shards, the results put together again, all within marked with the
 * manual axes. Requires: no data flow edges. Preserves: what the program computes. */

BASE_VEC(trip_manual_ops, ir_op *);
typedef struct trip_manual {
  opt_rewriter rw;
  shc_names names;
  trip_manual_ops ops; /* inner ones first */
  opt_symbols symbols;
  bool keep; /* custom calls @Sharding, not copies */
} trip_manual;

static int trip_manual_oom(trip_manual *x) {
  return base_oom(x->rw.err, "manual computations on their way to HLO");
}

/* Collected first, since every one of them becomes other ops. */
static int trip_manual_find(void *ctx, ir_op *op) {
  trip_manual *x = ctx;
  if (op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return 0;
  return BASE_VEC_PUSH(x->rw.m->alloc, &x->ops, op) ? 0 : trip_manual_oom(x);
}

/* The body becomes a function called `stem`, stem_0, ...; visibility NULL leaves it public. */
static ir_computation *trip_manual_function(trip_manual *x, ir_op *op, const char *stem, const char *visibility) {
  assert(op->opcode == IR_OP_SDY_MANUAL_COMPUTATION && op->n_called == 1);
  ir_module *m = x->rw.m;
  const base_istr *name = shc_fresh(&x->names, stem, strlen(stem));
  if (!name) return NULL;
  ir_computation *f = shc_give_body(op, name);
  bool ok = !visibility || shc_set_function(f, "sym_visibility", ir_m_string(m, visibility, strlen(visibility)));
  return ok ? f : NULL;
}

/* A call of f; NULL when out of memory. */
static ir_op *trip_manual_call(trip_manual *x, ir_computation *f, uint32_t n, const ir_value *operands) {
  ir_module *m = x->rw.m;
  const ir_type **types = BASE_ARRAY(&x->rw.arena, const ir_type *, (size_t)f->n_results + 1);
  for (uint32_t i = 0; types && i < f->n_results; i++) types[i] = opt_type(f->results[i]);
  ir_op *call = types ? opt_make_n(&x->rw, IR_OP_CALL, f->n_results, types, n, operands, 0) : NULL;
  return call && ir_m_set(call, "callee", ir_m_symbol(m, f->name->s, f->name->n)) ? call : NULL;
}

/* --- for the round trip --- */

/* The attribute `from` as text in the frontend attribute `to`, and the manual axes; has_side_effect keeps XLA from
 * removing the call. */
static bool trip_manual_words(trip_manual *x, ir_op *call, const ir_op *op, const char *from, const char *to) {
  ir_module *m = x->rw.m;
  const ir_mattr *list = trip_words(m, ir_mattr_of(op, from)), *axes = trip_words(m, ir_mattr_of(op, "manual_axes"));
  return list && axes && ir_m_set(call, "has_side_effect", ir_m_bool(m, true)) && trip_front_set(call, to, list) &&
         trip_front_set(call, "xla.sdy.manual_axes", axes);
}

/* inlineable="false" keeps XLA's inliner from dissolving the body, without which nothing could come back. No operands
 * (or results): no custom call on that side. */
static int trip_manual_keep(trip_manual *x, ir_op *op) {
  ir_computation *f = trip_manual_function(x, op, "xla.sdy.manual_computation_body", NULL);
  uint32_t n = op->n_operands > op->n_results ? op->n_operands : op->n_results;
  assert(f == NULL || f->n_params == op->n_operands);
  ir_value *v = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  const ir_type **types = BASE_ARRAY(&x->rw.arena, const ir_type *, (size_t)op->n_operands + 1);
  if (!f || !v || !types) return trip_manual_oom(x);
  opt_at(&x->rw, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    v[i] = opt_operand(op, i);
    types[i] = f->params[i]->type;
  }
  if (op->n_operands) {
    ir_op *in = trip_make_custom_call(&x->rw, "xla.sdy.GlobalToLocalShape", op->n_operands, types, op->n_operands, v);
    if (!in || !trip_manual_words(x, in, op, "in_shardings", "xla.sdy.in_shardings")) return trip_manual_oom(x);
    for (uint32_t i = 0; i < op->n_operands; i++) v[i] = (ir_value){in, i};
  }
  ir_op *call = trip_manual_call(x, f, op->n_operands, v);
  if (!call || !trip_front_set(call, "inlineable", ir_m_string(x->rw.m, "false", 5))) return trip_manual_oom(x);
  for (uint32_t i = 0; i < op->n_results; i++) v[i] = (ir_value){call, i};
  if (op->n_results) {
    ir_op *out =
        trip_make_custom_call(&x->rw, "xla.sdy.LocalToGlobalShape", op->n_results, op->types, op->n_results, v);
    if (!out || !trip_manual_words(x, out, op, "out_shardings", "xla.sdy.out_shardings")) return trip_manual_oom(x);
    for (uint32_t i = 0; i < op->n_results; i++) v[i] = (ir_value){out, i};
  }
  opt_replace_op(&x->rw, op, v);
  return opt_rewriter_status(&x->rw);
}

/* --- for the partitioner --- */

/* Any sharding of the computation, for its mesh. */
static const sdy_sharding *trip_manual_first(const ir_op *op) {
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  return in && in->n ? in->v[0] : out && out->n ? out->v[0] : NULL;
}

/* The manual axes around op, then (with `own`) its own. */
static const sdy_names *trip_manual_axes(trip_manual *x, const ir_op *op, bool own) {
  const base_istr *v[TRIP_MAX_AXES];
  const ir_op *around[64];
  uint32_t n = 0, depth = 0;
  for (const ir_op *at = own ? op : op->parent->owner; at && depth < 64; at = at->parent->owner)
    if (at->opcode == IR_OP_SDY_MANUAL_COMPUTATION) around[depth++] = at;
  while (depth-- > 0) {
    assert(around[depth]->opcode == IR_OP_SDY_MANUAL_COMPUTATION);
    const sdy_names *axes = sdy_of(ir_mattr_of(around[depth], "manual_axes"), SDY_MANUAL_AXES);
    for (uint32_t i = 0; axes && i < axes->n && n < TRIP_MAX_AXES; i++) v[n++] = axes->v[i];
  }
  return sdy_names_make(x->rw.m, n, v);
}

/* Closed and without axes: replicated within what is manual. */
static const sdy_sharding *trip_manual_closed(ir_module *m, const sdy_sharding *like, uint32_t rank) {
  return sdy_sharding_empty(m, like, rank, false);
}

/* Marking a body: every op in it, and in what it calls, gets shardings on one mesh and the manual axes, which the
 * next pass turns into XLA's {manual} subgroups. */
typedef struct trip_marking {
  trip_manual *x;
  const sdy_sharding *like;
  const ir_mattr *axes;
  uint32_t depth;
} trip_marking;

static int trip_mark_function(trip_marking *k, ir_computation *f);

/* A list for all of op's results, closed and without axes; where it has none, one of rank 0. */
static int trip_mark_op(void *ctx, ir_op *op) {
  trip_marking *k = ctx;
  ir_module *m = k->x->rw.m;
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION) return SHC_SKIP;
  const sdy_shardings *list = sdy_get_list(op);
  bool other = false;
  for (uint32_t i = 0; list && i < list->n; i++) other = other || list->v[i]->mesh_name != k->like->mesh_name;
  if (!list || other) {
    uint32_t n = op->n_results ? op->n_results : 1;
    const sdy_sharding **v = BASE_ARRAY(&k->x->rw.arena, const sdy_sharding *, n);
    if (!v) return trip_manual_oom(k->x);
    for (uint32_t i = 0; i < n; i++) {
      v[i] = trip_manual_closed(m, k->like, op->n_results ? sdy_rank(op->types[i]) : 0);
      if (!v[i]) return trip_manual_oom(k->x);
    }
    list = sdy_shardings_make(m, n, v);
    if (!list || !ir_m_set(op, "sdy.sharding", sdy_attr(m, SDY_SHARDINGS, list))) return trip_manual_oom(k->x);
  }
  if (!ir_m_set(op, "xla.sdy.manual_axes", k->axes)) return trip_manual_oom(k->x);
  ir_computation *callee = op->opcode == IR_OP_CALL ? opt_callee(&k->x->symbols, op) : NULL;
  return callee && !callee->declaration ? trip_mark_function(k, callee) : 0;
}

/* Shardings that are there stay. Depth bounds recursion. */
static int trip_mark_function(trip_marking *k, ir_computation *f) {
  ir_module *m = k->x->rw.m;
  if (k->depth == 64) return base_fail(k->x->rw.err, XLAC_E_TOO_LARGE, "calls nest too deep, or are recursive");
  for (uint32_t i = 0; i < f->n_params; i++) {
    ir_value p = {f->params[i], 0};
    if (!sdy_get(p) && !sdy_set(p, trip_manual_closed(m, k->like, sdy_rank(p.op->type)))) return trip_manual_oom(k->x);
    if (!ir_m_set(p.op, "xla.sdy.manual_axes", k->axes)) return trip_manual_oom(k->x);
  }
  for (uint32_t i = 0; i < f->n_results; i++) {
    if (!sdy_get_result(f, i) &&
        !sdy_set_result(f, i, trip_manual_closed(m, k->like, sdy_rank(opt_type(f->results[i])))))
      return trip_manual_oom(k->x);
    const ir_mdict *d = ir_mdict_with(m, ir_result_attrs(f, i), "xla.sdy.manual_axes", k->axes);
    if (!d || !ir_set_result_attrs(f, i, d)) return trip_manual_oom(k->x);
  }
  k->depth++;
  int status = shc_walk(f, false, trip_mark_op, k);
  k->depth--;
  return status;
}

/* Nothing to mark where no axis is manual. */
static int trip_manual_mark(trip_manual *x, ir_op *op) {
  const sdy_sharding *first = trip_manual_first(op);
  const sdy_names *axes = first ? trip_manual_axes(x, op, true) : NULL;
  if (!first || (axes && axes->n == 0)) return 0;
  trip_marking k = {.x = x, .like = first, .axes = axes ? sdy_attr(x->rw.m, SDY_MANUAL_AXES, axes) : NULL};
  return k.axes ? shc_walk(op->called[0], false, trip_mark_op, &k) : trip_manual_oom(x);
}

/* Attaches a sharding and, where there are any, manual axes. */
static bool trip_manual_attach(ir_module *m, ir_op *op, const sdy_sharding *s, const sdy_names *axes) {
  assert(axes != NULL);
  const sdy_shardings *list = s ? sdy_shardings_make(m, 1, &s) : NULL;
  if (!list || !ir_m_set(op, "sdy.sharding", sdy_attr(m, SDY_SHARDINGS, list))) return false;
  return axes->n == 0 || ir_m_set(op, "xla.sdy.manual_axes", sdy_attr(m, SDY_MANUAL_AXES, axes));
}

/* v copied into sharding `s` among the axes `outer`, and from there by `target` (SPMDFullToShardShape or its inverse)
 * into `t` among `inner`. GSPMD reads the pair as "reshard, then reinterpret each shard as a whole tensor". */
static ir_value trip_manual_move(trip_manual *x, ir_value v, const char *target, const ir_type *type,
                                 const sdy_sharding *s, const sdy_names *outer, const sdy_sharding *t,
                                 const sdy_names *inner) {
  ir_module *m = x->rw.m;
  const ir_type *before = opt_type(v);
  ir_op *copy = x->keep ? trip_make_custom_call(&x->rw, "Sharding", 1, &before, 1, &v)
                        : opt_make_n(&x->rw, IR_OP_COPY, 1, &before, 1, &v, 0);
  ir_value copied = {copy, 0};
  ir_op *moved = copy ? trip_make_custom_call(&x->rw, target, 1, &type, 1, &copied) : NULL;
  if (!moved || !trip_manual_attach(m, copy, s, outer) || !trip_manual_attach(m, moved, t, inner)) x->rw.failed = true;
  return (ir_value){moved, 0};
}

/* A computation's shardings, and the manual axes around it without and with its own. */
typedef struct trip_sides {
  const sdy_shardings *in, *out;
  const sdy_names *outer, *inner;
} trip_sides;

/* What the function says of its arguments and results: shardings without the manual axes. */
static int trip_manual_signature(trip_manual *x, ir_computation *f, const trip_sides *s) {
  ir_module *m = x->rw.m;
  const ir_mattr *axes = s->inner->n ? sdy_attr(m, SDY_MANUAL_AXES, s->inner) : NULL;
  bool ok = true;
  ir_set_all_result_attrs(f, NULL);
  for (uint32_t i = 0; ok && i < f->n_params && i < s->in->n; i++) {
    ir_set_mlir(f->params[i], NULL);
    ok = sdy_set((ir_value){f->params[i], 0}, sdy_without_axes(m, s->in->v[i], s->inner, true)) &&
         (!axes || ir_m_set(f->params[i], "xla.sdy.manual_axes", axes));
  }
  for (uint32_t i = 0; ok && i < f->n_results && i < s->out->n; i++) {
    ok = sdy_set_result(f, i, sdy_without_axes(m, s->out->v[i], s->inner, true));
    const ir_mdict *d = ok && axes ? ir_mdict_with(m, ir_result_attrs(f, i), "xla.sdy.manual_axes", axes) : NULL;
    ok = ok && (!axes || (d && ir_set_result_attrs(f, i, d)));
  }
  return ok ? 0 : trip_manual_oom(x);
}

/* The call's results have local types, and shardings without the manual axes. */
static int trip_manual_list(trip_manual *x, ir_op *call, const trip_sides *s) {
  ir_module *m = x->rw.m;
  const sdy_sharding **v = BASE_ARRAY(&x->rw.arena, const sdy_sharding *, (size_t)s->out->n + 1);
  bool ok = v != NULL;
  for (uint32_t i = 0; ok && i < s->out->n; i++)
    ok = (v[i] = sdy_without_axes(m, s->out->v[i], s->inner, true)) != NULL;
  const sdy_shardings *list = ok ? sdy_shardings_make(m, s->out->n, v) : NULL;
  ok = list && (list->n == 0 || ir_m_set(call, "sdy.sharding", sdy_attr(m, SDY_SHARDINGS, list)));
  ok = ok && (s->inner->n == 0 || ir_m_set(call, "xla.sdy.manual_axes", sdy_attr(m, SDY_MANUAL_AXES, s->inner)));
  return ok ? 0 : trip_manual_oom(x);
}

/* A computation without operands and results names no mesh, so there is nothing to cut: its ops just move out. */
static int trip_manual_inline(trip_manual *x, ir_op *op) {
  ir_value *args = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_results + 1);
  if (!args || !results) return trip_manual_oom(x);
  for (uint32_t i = 0; i < op->n_operands; i++) args[i] = opt_operand(op, i);
  opt_at(&x->rw, op);
  opt_inline(&x->rw, op->called[0], args, results);
  if (!x->rw.failed) opt_replace_op(&x->rw, op, results);
  return opt_rewriter_status(&x->rw);
}

/* Tokens pass through as they are. */
static int trip_manual_spread(trip_manual *x, ir_op *op) {
  ir_module *m = x->rw.m;
  if (!trip_manual_first(op)) return trip_manual_inline(x, op);
  trip_sides s = {sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS),
                  sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS), trip_manual_axes(x, op, false),
                  trip_manual_axes(x, op, true)};
  assert(s.in && s.out && s.in->n == op->n_operands && s.out->n == op->n_results);
  uint32_t n = op->n_operands > op->n_results ? op->n_operands : op->n_results;
  ir_value *v = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  if (!s.outer || !s.inner || !v) return trip_manual_oom(x);
  opt_at(&x->rw, op);
  for (uint32_t i = 0; i < op->n_operands && !x->rw.failed; i++) {
    v[i] = opt_operand(op, i);
    if (!ir_is_tensor(opt_type(v[i]))) continue;
    v[i] = trip_manual_move(x, v[i], "SPMDFullToShardShape", op->called[0]->params[i]->type, s.in->v[i], s.outer,
                            sdy_without_axes(m, s.in->v[i], s.inner, true), s.inner);
  }
  TRY(opt_rewriter_status(&x->rw));
  ir_computation *f = trip_manual_function(x, op, "xla.sdy.inlinable_manual_computation_body", "private");
  ir_op *call = f ? trip_manual_call(x, f, op->n_operands, v) : NULL;
  if (!call) return trip_manual_oom(x);
  TRY(trip_manual_signature(x, f, &s));
  TRY(trip_manual_list(x, call, &s));
  for (uint32_t i = 0; i < op->n_results && !x->rw.failed; i++) {
    v[i] = (ir_value){call, i};
    if (!ir_is_tensor(op->types[i])) continue;
    v[i] = trip_manual_move(x, v[i], "SPMDShardToFullShape", op->types[i],
                            sdy_without_axes(m, s.out->v[i], s.inner, true), s.inner, s.out->v[i], s.outer);
  }
  TRY(opt_rewriter_status(&x->rw));
  opt_replace_op(&x->rw, op, v);
  return opt_rewriter_status(&x->rw);
}

/* --- passes --- */

/* Inner computations come before those around them. */
static int trip_manual_each(trip_manual *x, int (*fn)(trip_manual *x, ir_op *op)) {
  for (uint32_t i = 0; i < x->ops.n; i++) TRY(fn(x, x->ops.items[i]));
  return 0;
}

/* Marking reads manual axes of computations around, so all are marked before any is taken apart. */
static int trip_manual_run(ir_module *m, bool round_trip, bool keep, xlac_error *err) {
  trip_manual x = {.keep = keep};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    status = shc_names_init(&x.names, m) ? shc_walk_module(m, true, trip_manual_find, &x) : trip_manual_oom(&x);
    if (status == 0 && !round_trip) status = trip_manual_each(&x, trip_manual_mark);
    if (status == 0) status = trip_manual_each(&x, round_trip ? trip_manual_keep : trip_manual_spread);
    shc_names_free(&x.names);
    opt_symbols_free(&x.symbols);
  }
  BASE_VEC_FREE(m->alloc, &x.ops);
  opt_rewriter_free(&x.rw);
  return status;
}

int shard_round_trip_export_map(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return trip_manual_run(m, true, false, err);
}

int shard_export_map(ir_module *m, const opt_args *args, xlac_error *err) {
  return trip_manual_run(m, false, opt_get(args, "create-hlo-sharding-constraints"), err);
}

/* xla-sdy-round-trip-shard-map-import: a call of @xla.sdy.manual_computation_body between @xla.sdy.GlobalToLocalShape
 * and
 * @xla.sdy.LocalToGlobalShape becomes the manual computation it was. Functions that bodies call note the manual axes
 * that they run under.
 * Requires: every body is called once (shard_flatten_calls). Preserves: what the program computes. */

/* xla-sdy-round-trip-shard-map-import: a call of @xla.sdy.manual_computation_body between @xla.sdy.GlobalToLocalShape
 * and @xla.sdy.LocalToGlobalShape becomes the manual computation it was. Functions that bodies call note the manual
 * axes that they run under.
 * Requires: every body is called once (shard_flatten_calls). Preserves: what the program computes. */
BASE_VEC(trip_axis_names, const base_istr *);
BASE_VEC(trip_found_calls, ir_op *);
typedef struct trip_map {
  opt_rewriter rw;
  opt_symbols symbols;
  base_map taken;         /* bodies that are regions now */
  trip_axis_names under;  /* manual axes around the op at hand */
  trip_found_calls calls; /* of bodies, in the order of the text; ops after them go with them */
} trip_map;

static int trip_map_oom(trip_map *x) {
  return base_oom(x->rw.err, "xla-sdy-round-trip-shard-map-import");
}

/* XLA's words. */
static int trip_map_fail(trip_map *x, const ir_op *call, const char *what, const char *target) {
  return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_STRUCTURE, "'func.call' op expected %s @%s to be %s CustomCallOp",
                          what, ir_mattr_of(call, "callee")->v.list->v[0]->str->s, target);
}

/* The custom call before the body: of values of no elements XLA has made constants, so not every operand is its. */
static int trip_map_before(trip_map *x, const ir_op *call, ir_op **out) {
  *out = NULL;
  for (uint32_t i = 0; i < call->n_operands && !*out; i++)
    if (trip_calls(call->operands[i].op, "xla.sdy.GlobalToLocalShape")) *out = call->operands[i].op;
  if (*out || call->n_operands == 0) return 0;
  return trip_map_fail(x, call, "at least one operand of", "produced by a xla.sdy.GlobalToLocalShape");
}

/* Any user that is the custom call: XLA may have left tuples or constants beside it. */
static int trip_map_after(trip_map *x, const ir_op *call, ir_op **out) {
  *out = NULL;
  IR_FOR_USES(use, call)
  if (trip_calls(use->user, "xla.sdy.LocalToGlobalShape")) *out = use->user;
  if (*out || call->n_results == 0) return 0;
  return trip_map_fail(x, call, "the first use of", "a xla.sdy.LocalToGlobalShape");
}

/* What the two custom calls say; NULL where one of them is missing. */
typedef struct trip_map_words {
  const sdy_shardings *in, *out;
  const sdy_names *axes;
} trip_map_words;

/* axes: of either custom call the one that has any. */
static int trip_map_read(trip_map *x, const ir_op *op, const char *key, const sdy_shardings **list,
                         const sdy_names **axes) {
  const void *found = NULL, *names = NULL;
  if (!op) return 0;
  TRY(trip_front_read_sdy(&x->rw, op, op->mlir, key, SDY_SHARDINGS, &found));
  TRY(trip_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.manual_axes", SDY_MANUAL_AXES, &names));
  if (!found || !names)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "@%s needs the frontend attributes %s and xla.sdy.manual_axes",
                            ir_m_get_str(op, "call_target_name"), key);
  *list = found;
  if (!*axes || (*axes)->n == 0) *axes = names;
  return 0;
}

/* Lists that are missing are empty. */
static bool trip_map_set(ir_module *m, ir_op *op, const trip_map_words *w) {
  const sdy_shardings *in = w->in ? w->in : sdy_shardings_make(m, 0, NULL);
  const sdy_shardings *out = w->out ? w->out : sdy_shardings_make(m, 0, NULL);
  const sdy_names *axes = w->axes ? w->axes : sdy_names_make(m, 0, NULL);
  return ir_m_set(op, "in_shardings", sdy_attr(m, SDY_SHARDINGS, in)) &&
         ir_m_set(op, "out_shardings", sdy_attr(m, SDY_SHARDINGS, out)) &&
         ir_m_set(op, "manual_axes", sdy_attr(m, SDY_MANUAL_AXES, axes));
}

/* The function's ops become the region's; no op is copied. */
static int trip_map_take(trip_map *x, ir_op *op, ir_computation *f) {
  assert(op->opcode == IR_OP_SDY_MANUAL_COMPUTATION);
  return shc_take_body(op, f) && base_map_set(&x->taken, base_key(f), 1) ? 0 : trip_map_oom(x);
}

/* Its operands are those of the custom call before, its results become those of the one after. */
static int trip_map_make(trip_map *x, ir_op *call, ir_op *before, ir_op *after, ir_op **made) {
  ir_value *operands = NULL;
  uint32_t n = before ? before->n_operands : 0;
  operands = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  for (uint32_t i = 0; operands && i < n; i++) operands[i] = opt_operand(before, i);
  opt_at(&x->rw, call);
  *made = operands ? opt_make_n(&x->rw, IR_OP_SDY_MANUAL_COMPUTATION, after ? after->n_results : 0,
                                after ? after->types : NULL, n, operands, 1)
                   : NULL;
  return *made ? 0 : trip_map_oom(x);
}

/* The custom call before may have other readers where XLA has merged equal ones. */
static int trip_map_erase(trip_map *x, ir_op *call, ir_op *before, ir_op *after, ir_op *made) {
  uint32_t n = after ? after->n_results : 0;
  ir_value *values = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  if (!values) return trip_map_oom(x);
  for (uint32_t i = 0; i < n; i++) values[i] = (ir_value){made, i};
  if (after) opt_replace_op(&x->rw, after, values);
  if (opt_is_used(&x->rw, call)) return trip_map_fail(x, call, "every use of", "a xla.sdy.LocalToGlobalShape");
  opt_erase(&x->rw, call);
  if (before && !opt_is_used(&x->rw, before)) opt_erase(&x->rw, before);
  return opt_rewriter_status(&x->rw);
}

/* A call none of whose results is read had results without elements, which XLA has replaced by constants. */
static int trip_map_call(trip_map *x, ir_op *call) {
  ir_op *before = NULL, *after = NULL, *made = NULL;
  trip_map_words w = {NULL, NULL, NULL};
  ir_computation *f = opt_callee(&x->symbols, call);
  uint64_t taken;
  assert(f != NULL);
  if (call->n_results && !opt_is_used(&x->rw, call)) { /* all of its results have no elements */
    opt_erase(&x->rw, call);
    return opt_rewriter_status(&x->rw);
  }
  if (f->declaration || base_map_get(&x->taken, base_key(f), &taken))
    return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_STRUCTURE, "@%s is not a body of one call", f->name->s);
  TRY(trip_map_before(x, call, &before));
  TRY(trip_map_after(x, call, &after));
  TRY(trip_map_read(x, before, "xla.sdy.in_shardings", &w.in, &w.axes));
  TRY(trip_map_read(x, after, "xla.sdy.out_shardings", &w.out, &w.axes));
  TRY(trip_map_make(x, call, before, after, &made));
  if (!trip_map_set(x->rw.m, made, &w)) return trip_map_oom(x);
  TRY(trip_map_take(x, made, f));
  return trip_map_erase(x, call, before, after, made);
}

/* Calls of bodies, by the name that the export gave them. */
static int trip_map_find(void *ctx, ir_op *op) {
  trip_map *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  return !f || !trip_is_body(f->name) || BASE_VEC_PUSH(x->rw.m->alloc, &x->calls, op) ? 0 : trip_map_oom(x);
}

/* --- what is left --- */

/* A custom call that is left and read by something stood beside no body: the program was changed in between. */
static int trip_map_stray(void *ctx, ir_op *op) {
  trip_map *x = ctx;
  if (!trip_calls(op, "xla.sdy.GlobalToLocalShape") && !trip_calls(op, "xla.sdy.LocalToGlobalShape")) return 0;
  if (opt_is_used(&x->rw, op))
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_STRUCTURE, "@%s stands at no call of a manual computation's body",
                            ir_m_get_str(op, "call_target_name"));
  opt_erase(&x->rw, op);
  return opt_rewriter_status(&x->rw);
}

/* Bodies whose calls went with unused results. */
static void trip_map_drop_bodies(ir_module *m) {
  for (ir_computation *c = m->first, *next = NULL; c; c = next) {
    next = c->next;
    if (c->kind != IR_FUNCTION || c->owner || !trip_is_body(c->name)) continue;
    ir_computation_remove(c);
  }
}

/* --- manual axes of functions --- */

/* Appends to the axes that are manual at hand. */
static int trip_map_note(trip_map *x, const sdy_names *axes) {
  for (uint32_t i = 0; axes && i < axes->n; i++)
    if (!BASE_VEC_PUSH(x->rw.m->alloc, &x->under, axes->v[i])) return trip_map_oom(x);
  return 0;
}

/* Depth-first, with a stack of axes: what a computation adds goes when its body is done. */
static int trip_map_under(trip_map *x, ir_computation *c) {
  ir_module *m = x->rw.m;
  IR_FOR_OPS(op, c) {
    ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
    if (f && x->under.n) {
      const sdy_names *names = sdy_names_make(m, x->under.n, x->under.items);
      const ir_mattr *a = names ? sdy_attr(m, SDY_MANUAL_AXES, names) : NULL;
      if (!a || !shc_set_function(f, "sdy.func_manual_axes", a)) return trip_map_oom(x);
    }
    uint32_t kept = x->under.n;
    if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION)
      TRY(trip_map_note(x, sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES)));
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(trip_map_under(x, op->called[i]));
    x->under.n = kept;
    assert(x->under.n == kept);
  }
  return 0;
}

/* Symbols are looked up again after bodies have become regions. */
static int trip_map_all(trip_map *x) {
  uint32_t n = 0;
  ir_computation **list = shc_functions(x->rw.m, &x->symbols, false, &x->rw.arena, &n);
  if (!list) return trip_map_oom(x);
  for (uint32_t i = 0; i < n; i++) TRY(shc_walk(list[i], true, trip_map_find, x));
  for (uint32_t i = 0; i < x->calls.n; i++) TRY(trip_map_call(x, x->calls.items[i]));
  TRY(shc_walk_module(x->rw.m, true, trip_map_stray, x));
  trip_map_drop_bodies(x->rw.m);
  opt_symbols_free(&x->symbols);
  TRY(opt_symbols_make(&x->symbols, x->rw.m, x->rw.err));
  list = shc_functions(x->rw.m, &x->symbols, true, &x->rw.arena, &n);
  if (!list) return trip_map_oom(x);
  for (uint32_t i = 0; i < n; i++) {
    x->under.n = 0;
    TRY(trip_map_note(x, sdy_of(ir_mdict_get(list[i]->mlir, "sdy.func_manual_axes"), SDY_MANUAL_AXES)));
    TRY(trip_map_under(x, list[i]));
  }
  return 0;
}

int shard_import_map(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  trip_map x = {.under = {0}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  base_map_init(&x.taken, m->alloc);
  if (status == 0) {
    status = trip_map_all(&x);
    opt_symbols_free(&x.symbols);
  }
  base_map_free(&x.taken);
  BASE_VEC_FREE(m->alloc, &x.under);
  BASE_VEC_FREE(m->alloc, &x.calls);
  opt_rewriter_free(&x.rw);
  return status == 0 ? shc_verify(m, err) : status;
}
