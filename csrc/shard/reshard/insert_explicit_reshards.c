/* sdy-insert-explicit-reshards: makes the communication that propagation's shardings imply visible. After it every op
 * can be run on shards, given reshards and all-reduces between ops. By default only ops that later passes need it for
 * are changed (dots that gain by it, concatenates, calls, unreduced axes); enable-full-version does it for all.
 * Source: Shardy's description of the pass, and its answers. Requires: meshes with names. */
#include "../../passes/rewrite/symbols.h"
#include "explicit.h"
#include "../state/state.h"

/* Full version: %1 = stablehlo.add %a, %b with a and the result [{"x"}] and b [{"y"}] becomes
 *    %0 = sdy.reshard %b <@m, [{"x"}]>;  %1 = stablehlo.add %a, %0
 * Of the three tensors two agree, so the third moves. */
opt_pass_fn shard_pass_explicit;

/* Brings what is used to the sharding its user has.
 * after: the cursor goes right after the value, for uses that are in a region's terminator; else it is where the
 * caller put it. full: a reshard too, not only what unreduced axes need. A target of NULL is fully replicated. */
static void explicit_to(explicit_pass *e, explicit_use u, const sdy_sharding *target, bool after, bool full) {
  ir_value v = explicit_used(u);
  const sdy_sharding *now = explicit_get(e, v);
  if (after) explicit_after(e, v);
  if (now) now = explicit_reduce(e, u, now, target);
  const sdy_sharding *made = explicit_unreduce(e, u, target);
  if (made) now = made;
  if (!full || e->status || explicit_equivalent(now, target)) return;
  v = explicit_used(u);
  if (!target) target = sdy_sharding_empty(e->rw.m, now, now->n_dims, false);
  explicit_set(e, u, explicit_reshard(e, v, target));
}

/* --- ops with data flow: sources get the sharding of the edge's owner --- */

/* The sources of result i of an op with data flow: its operand and what its regions return. */
static void explicit_result_owner(explicit_pass *e, ir_op *op, uint32_t i, bool full) {
  const sdy_sharding *target = sdy_get((ir_value){op, i}); /* the op's own, not that of an edge after it */
  const sdy_names *manual = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  if (manual && target) target = shard_manual_inside(&e->pool, target, manual);
  if ((op->opcode == IR_OP_WHILE || op->opcode == IR_OP_OPT_BARRIER) && i < op->n_operands)
    explicit_to(e, (explicit_use){op, NULL, i}, target, true, full);
  for (uint32_t r = op->opcode == IR_OP_WHILE ? 1 : 0; r < op->n_called; r++)
    if (i < op->called[r]->n_results) explicit_to(e, (explicit_use){NULL, op->called[r], i}, target, true, full);
}

/* Named and manual computations also bring their operands to their in_shardings. */
static void explicit_flow(explicit_pass *e, ir_op *op, bool full) {
  assert(shard_is_flow(op));
  for (uint32_t i = 0; i < op->n_results && e->status == 0; i++) {
    shard_pool_empty(&e->pool);
    explicit_result_owner(e, op, i, full);
  }
  if (op->opcode != IR_OP_SDY_NAMED_COMPUTATION && op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  for (uint32_t i = 0; i < op->n_operands && e->status == 0; i++) {
    shard_pool_empty(&e->pool);
    explicit_to(e, (explicit_use){op, NULL, i}, in && i < in->n ? in->v[i] : NULL, true, full);
  }
}

/* --- calls: operands get the shardings of the function's arguments --- */

/* NULL beyond the function's arguments, which the verifier has reported already. */
static const sdy_sharding *explicit_argument(const ir_computation *f, uint32_t i) {
  return i < f->n_params ? sdy_get((ir_value){f->params[i], 0}) : NULL;
}

/* A sharding on the first mesh that a function's arguments have (f), or a call's operands (f NULL). */
static const sdy_sharding *explicit_first_mesh(explicit_pass *e, const ir_op *call, const ir_computation *f) {
  for (uint32_t i = 0; i < call->n_operands; i++) {
    const sdy_sharding *s =
        f ? explicit_argument(f, i) : explicit_get(e, (ir_value){call->operands[i].op, call->operands[i].index});
    const sdy_mesh *mesh = s ? explicit_mesh(e, s) : NULL;
    if (mesh && !sdy_mesh_is_maximal(mesh)) return s;
  }
  return NULL;
}

/* Where no argument has a sharding but operands have, these are gathered: the function expects whole tensors. */
static void explicit_call(explicit_pass *e, ir_op *op, bool full) {
  assert(op->opcode == IR_OP_CALL);
  const ir_mattr *callee = ir_mattr_of(op, "callee");
  const base_istr *name = callee && callee->kind == IR_M_SYMBOL ? callee->v.list->v[0]->str : NULL;
  const base_istr *own = name ? base_intern_find(&e->rw.m->strings, name->s, name->n) : NULL;
  const ir_computation *f = own ? base_map_ptr(&e->functions, own) : NULL;
  if (!f) return;
  const sdy_sharding *like = explicit_first_mesh(e, op, f);
  bool closed = !like;
  if (closed) like = explicit_first_mesh(e, op, NULL);
  if (like) like = sdy_sharding_empty(e->rw.m, like, 0, false);
  for (uint32_t i = 0; i < op->n_operands && like && e->status == 0; i++) {
    shard_pool_empty(&e->pool);
    const ir_type *t = ir_operand_type(op, i);
    const sdy_sharding *target = closed ? NULL : explicit_argument(f, i);
    if (!target) target = sdy_sharding_empty(e->rw.m, like, sdy_rank(t), !closed);
    if (target) explicit_to(e, (explicit_use){op, NULL, i}, target, true, full);
  }
}

/* --- ops with a rule --- */

static bool explicit_is_unreduced(const sdy_sharding *s) {
  return s && s->unreduced.n;
}

/* All-reduces on operands whose unreduced axes the results do not have.
 * Results of one op share the reduction that made them, so their unreduced axes agree. */
static void explicit_reduce_operands(explicit_pass *e, ir_op *op) {
  bool any = false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    any = any || explicit_is_unreduced(explicit_get(e, (ir_value){op->operands[i].op, op->operands[i].index}));
  const sdy_sharding *first = op->n_results ? explicit_get(e, (ir_value){op, 0}) : NULL;
  static const sdy_axes none = {0, NULL};
  for (uint32_t i = 1; i < op->n_results; i++) {
    const sdy_sharding *s = explicit_get(e, (ir_value){op, i});
    if (!sdy_axes_equal(s ? s->unreduced : none, first ? first->unreduced : none))
      explicit_fail(e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, op->line, op->col, "",
                                    "results of one op must have the same unreduced axes: result %u has others than "
                                    "result 0",
                                    i));
  }
  if (!any || e->status) return;
  if (op->n_results == 0) {
    explicit_fail(e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, op->line, op->col, "",
                                  "an operand has unreduced axes, but the op has no result that could have them"));
    return;
  }
  opt_at(&e->rw, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    explicit_use u = {op, NULL, i};
    (void)explicit_reduce(e, u, explicit_get(e, explicit_used(u)), first);
  }
}

/* A barrier stops propagation, and not data: what is before it is what the op reads. */
static const sdy_sharding *explicit_past_barriers(explicit_pass *e, ir_value v) {
  while (v.op->opcode == IR_OP_SDY_PROPAGATION_BARRIER) v = (ir_value){v.op->operands[0].op, v.op->operands[0].index};
  return explicit_get(e, v);
}

/* The mesh that most sharded tensors are on, of those that differ only in the order of their devices; false: they
 * differ in more, or there is none. */
static bool explicit_choose_mesh(explicit_op *x, uint32_t n, bool most_used) {
  const sdy_mesh *common = NULL;
  const sdy_sharding *like = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const sdy_sharding *s = x->shardings[i];
    const sdy_mesh *mesh = s ? explicit_mesh(x->pass, s) : NULL;
    if (!mesh) continue;
    if (!common || sdy_mesh_is_empty(common)) {
      common = mesh;
      like = s;
      continue;
    }
    if (sdy_mesh_is_empty(mesh)) continue;
    /* Compared without device ids. */
    sdy_mesh a = *common, b = *mesh;
    a.n_ids = b.n_ids = 0;
    if (sdy_mesh_is_maximal(common) != sdy_mesh_is_maximal(mesh) || !sdy_mesh_equal(&a, &b)) return false;
    if (mesh->n_ids == 0) {
      common = mesh;
      like = s;
    }
  }
  if (common && !like->mesh_name) {
    int status = base_fail_at(x->pass->err, XLAC_E_VERIFY_SHARDING, x->op->line, x->op->col, "",
                              "a sharding with its mesh written in place can't be resharded: expected @mesh");
    explicit_fail(x->pass, base_hint(x->pass->err, status, "run sdy-lift-inlined-meshes first"));
    return false;
  }
  if (!common || sdy_mesh_is_maximal(common)) return false;
  uint32_t most = 0;
  for (uint32_t i = 0; i < n && most_used; i++) {
    if (explicit_is_replicated(x->shardings[i])) continue;
    uint32_t count = 0;
    for (uint32_t j = 0; j <= i; j++)
      count += !explicit_is_replicated(x->shardings[j]) &&
               sdy_name_equal(x->shardings[j]->mesh_name, x->shardings[i]->mesh_name);
    if (count <= most) continue;
    most = count;
    like = x->shardings[i];
    common = explicit_mesh(x->pass, like);
  }
  x->mesh = common;
  x->like = like;
  return true;
}

/* Marks the tensors that have axes which no factor of theirs can take. */
static bool explicit_overflows(const explicit_op *x, bool *updated) {
  bool any = false;
  for (uint32_t t = 0; t < x->p.n_tensors; t++)
    for (uint32_t i = 0; i < x->p.tensors[t].n_parts; i++)
      if (x->p.tensors[t].parts[i].overflow.n) any = updated[t] = true;
  return any;
}

/* What a tensor is still to be added up along can't cut it: such axes cut nothing then. */
static void explicit_spare_parts(explicit_op *x) {
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const sdy_sharding *s = x->shardings[t];
    if (!s || s->unreduced.n == 0) continue;
    shard_axes parts = shard_axes_from(x->p.pool, s->unreduced, x->mesh);
    for (uint32_t i = 0; i < x->p.tensors[t].n_parts; i++) {
      uint32_t f = x->p.tensors[t].parts[i].factor;
      if (f != SHARD_ABSENT) (void)explicit_truncate(x->p.pool, &x->common[f], parts);
    }
  }
}

/* Minimal version: dots only, for which the choice between operand and result pays. */
static void explicit_decide(explicit_op *x, bool full) {
  assert(x->rule && x->mesh);
  if (!full) {
    if (x->op->opcode == IR_OP_DOT || x->op->opcode == IR_OP_STABLEHLO_DOT) explicit_dot(x);
    return;
  }
  bool *updated = shard_pool_alloc(x->p.pool, x->p.n_tensors + 1);
  if (!updated) return;
  memset(updated, 0, x->p.n_tensors);
  if (explicit_overflows(x, updated) && x->op->opcode == IR_OP_RESHAPE) {
    explicit_reshape(x);
    return;
  }
  explicit_find_common(x);
  if (x->p.pool->failed) explicit_fail(x->pass, base_oom(x->pass->err, "explicit reshards"));
  if (x->pass->status) return;
  if (x->pass->again) explicit_spare_parts(x);
  explicit_apply(x, updated);
  explicit_insert(x, updated);
}

/* The axes along which the op adds up.
 * Where nothing was decided (x->common NULL), what the operands have in common, and only to complete a result that
 * has unreduced axes already. */
static shard_axes explicit_reduced(explicit_op *x, const sdy_sharding *first) {
  shard_axes all = {0, NULL};
  if (!x->common && !explicit_is_unreduced(first)) return all;
  for (uint32_t i = 0; i < x->rule->reduction.n; i++) {
    uint32_t f = (uint32_t)x->rule->reduction.v[i];
    shard_axes axes = {0, NULL};
    if (x->common)
      axes = x->common[f];
    else if (!explicit_same(x, f, &axes))
      explicit_fail(x->pass, base_fail_at(x->pass->err, XLAC_E_VERIFY_SHARDING, x->op->line, x->op->col, "",
                                          "the result has unreduced axes, but the operands are sharded in different "
                                          "ways along a dimension that is reduced"));
    all = explicit_join(x->p.pool, all, axes);
  }
  return all;
}

/* Whether its readers add up along all the axes already: the pass has run before. */
static bool explicit_is_summed(explicit_op *x, shard_axes axes) {
  sdy_axes all = shard_axes_to(&x->pass->pool, axes, x->mesh);
  IR_FOR_USES(use, x->op) {
    const bool sums = use->user->opcode == IR_OP_SDY_ALL_REDUCE;
    const sdy_axes *summed = sums ? sdy_of(ir_mattr_of(use->user, "reduction_axes"), SDY_AXES) : NULL;
    if (!summed || !sdy_axes_equal(*summed, all)) return false;
  }
  return x->op->uses != NULL;
}

/* One all-reduce for each result, over all axes of reduction factors but those the result leaves unreduced. */
static void explicit_reduce_results(explicit_op *x) {
  explicit_pass *e = x->pass;
  if (x->op->n_results == 0 || e->status) return;
  const sdy_sharding *first = explicit_get(e, (ir_value){x->op, 0});
  shard_axes axes = explicit_reduced(x, first);
  if (axes.n == 0) return;
  shard_axes unreduced = first ? shard_axes_from(&e->pool, first->unreduced, x->mesh) : (shard_axes){0, NULL};
  axes = explicit_sorted(&e->pool, explicit_minus(&e->pool, axes, unreduced));
  if (axes.n == 0) return;
  if (e->again && explicit_is_summed(x, axes)) return;
  explicit_after(e, (ir_value){x->op, 0});
  for (uint32_t i = 0; i < x->op->n_results && e->status == 0; i++) {
    ir_value v = {x->op, i};
    const sdy_sharding *s = explicit_get(e, v);
    if (!s) s = sdy_sharding_empty(e->rw.m, x->like, sdy_rank(x->op->types[i]), false);
    if (s) explicit_replace(e, v, explicit_all_reduce(e, v, shard_axes_to(&e->pool, axes, x->mesh), SDY_SUM, s));
  }
}

/* Users' own rules (custom) say how an op behaves that Shardy can't look into; its operands are not touched. */
const sdy_rule *explicit_rule(explicit_pass *e, const ir_op *op) {
  const sdy_rule *rule = sdy_of(ir_mattr_of(op, "sdy.sharding_rule"), SDY_RULE);
  if (!rule) explicit_fail(e, shard_rule_make(&e->maker, op, &rule, e->err));
  if (!rule || rule->custom || rule->n_operands != op->n_operands || rule->n_results != op->n_results) return NULL;
  return rule;
}

/* Tensors without a static shape count as empty when sizes are compared. Missing shardings count as closed. */
bool explicit_prepare(explicit_op *x, explicit_pass *e, ir_op *op, bool barriers, bool most_used) {
  assert(op->opcode != IR_OP_PARAMETER);
  *x = (explicit_op){.pass = e, .op = op, .rule = explicit_rule(e, op)};
  if (!x->rule) return false;
  uint32_t n = op->n_operands + op->n_results;
  x->shardings = shard_pool_alloc(&e->pool, (n + 1) * sizeof *x->shardings);
  x->sizes = shard_pool_alloc(&e->pool, (n + 1) * sizeof *x->sizes);
  if (!x->shardings || !x->sizes) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    bool operand = i < op->n_operands;
    ir_value v = operand ? (ir_value){op->operands[i].op, op->operands[i].index} : (ir_value){op, i - op->n_operands};
    const ir_type *t = v.op->types[v.index];
    x->shardings[i] = barriers ? explicit_past_barriers(e, v) : explicit_get(e, v);
    x->sizes[i] = t->kind == IR_TYPE_TENSOR && !t->has_dynamic ? t->count : 0;
  }
  if (!explicit_choose_mesh(x, n, most_used)) return false;
  if (shard_project(&x->p, &e->pool, x->rule, x->mesh, x->shardings, true)) return true;
  explicit_fail(e, base_oom(e->err, "explicit reshards"));
  return false;
}

/* Barriers are looked through here; passes that share explicit_prepare choose for themselves. */
static void explicit_ruled(explicit_pass *e, ir_op *op, bool full) {
  explicit_op x;
  if (!explicit_prepare(&x, e, op, true, true)) return;
  explicit_decide(&x, full);
  explicit_reduce_results(&x);
}

/* --- the walk --- */

/* Concatenates are resharded in the minimal version too, if any operand differs from the result: XLA's partitioner
 * would otherwise gather them. */
static bool explicit_is_full(explicit_pass *e, const ir_op *op) {
  if (e->full || op->opcode == IR_OP_CALL) return true;
  if (op->opcode != IR_OP_CONCATENATE) return false;
  const sdy_sharding *result = explicit_get(e, (ir_value){(ir_op *)(uintptr_t)op, 0});
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const sdy_sharding *s = explicit_get(e, (ir_value){op->operands[i].op, op->operands[i].index});
    if ((!s) != (!result) || (s && !sdy_sharding_equal(s, result))) return true;
  }
  return false;
}

/* Where the pass runs again, reshards from unreduced axes are added up here, which the first run left to later passes.
 * A reshard into unreduced axes becomes the collectives that make them; any other stays for later passes. */
static void explicit_visit(explicit_pass *e, ir_op *op) {
  shard_pool_empty(&e->pool);
  bool full = explicit_is_full(e, op);
  if (op->opcode == IR_OP_PARAMETER || (e->again && sdy_is_collective(op))) return;
  if (shard_is_flow(op)) {
    explicit_flow(e, op, full);
    return;
  }
  if (op->opcode == IR_OP_CALL) {
    explicit_call(e, op, full);
    return;
  }
  if (op->opcode == IR_OP_SDY_RESHARD) {
    explicit_use input = {op, NULL, 0};
    opt_at(&e->rw, op);
    if (e->again) (void)explicit_reduce(e, input, explicit_get(e, explicit_used(input)), sdy_get((ir_value){op, 0}));
    if (explicit_unreduce(e, input, sdy_get((ir_value){op, 0}))) {
      opt_replace_one(&e->rw, op, explicit_used(input));
      return;
    }
  }
  explicit_reduce_operands(e, op);
  if (e->status == 0) explicit_ruled(e, op, full);
}

/* Inner ops first; ops that are put in are not visited. Regions nest no deeper than the reader allows. */
static void explicit_walk(explicit_pass *e, ir_computation *c) {
  for (ir_op *op = c->first, *next = NULL; op && e->status == 0; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) explicit_walk(e, op->called[i]);
    if (e->status == 0) explicit_visit(e, op);
  }
}

/* Function results: before the return, each value is brought to the sharding that the signature declares. */
static void explicit_returns(explicit_pass *e, ir_computation *c) {
  for (uint32_t i = 0; i < c->n_results && e->status == 0; i++) {
    shard_pool_empty(&e->pool);
    opt_at_end(&e->rw, c, c->results[i].op);
    explicit_to(e, (explicit_use){NULL, c, i}, sdy_get_result(c, i), false, e->full);
  }
}

/* The maker's rules go to `scratch`, since they are needed for one op only. */
int explicit_begin(explicit_pass *e, ir_module *m, xlac_error *err) {
  memset(e, 0, sizeof *e);
  TRY(opt_rewriter_init(&e->rw, m, err));
  e->err = err;
  shard_pool_init(&e->pool, m->alloc);
  shard_maker_init(&e->maker, m, false);
  base_map_init(&e->functions, m->alloc);
  base_arena_init(&e->scratch, m->alloc);
  e->maker.into = &e->scratch;
  return 0;
}

/* The first error stands, whichever step it came from. */
int explicit_end(explicit_pass *e) {
  if (e->status == 0) e->status = opt_rewriter_status(&e->rw);
  assert(e->rw.m != NULL);
  base_arena_free(&e->scratch);
  base_map_free(&e->functions);
  shard_maker_free(&e->maker);
  shard_pool_free(&e->pool);
  opt_rewriter_free(&e->rw);
  return e->status;
}

/* Functions by name first: calls look up their callees' signatures. */
int shard_pass_explicit(ir_module *m, const opt_args *args, xlac_error *err) {
  explicit_pass e;
  TRY(explicit_begin(&e, m, err));
  e.full = opt_get(args, "enable-full-version");
  e.again = opt_get(args, "again");
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind == IR_FUNCTION && !base_map_set(&e.functions, base_key(c->name), base_key(c)))
      explicit_fail(&e, base_oom(err, "explicit reshards"));
  }
  for (ir_computation *c = m->first; c && e.status == 0; c = c->next) {
    if (c->kind != IR_FUNCTION || c->declaration) continue;
    explicit_walk(&e, c);
    explicit_returns(&e, c);
  }
  return explicit_end(&e);
}
