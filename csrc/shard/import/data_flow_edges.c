/* Data-flow edges in and out: four passes that make the ops which hold the sharding of an edge, and take them away
 * again. An edge is a set of values that must be sharded alike because they are the same value at different times:
 * the init of a while, its region arguments, what its body returns and its result. sdy.data_flow_edge reads the
 * edge's owner and is read by all that read the owner before, so that propagation sees one value. */
#include "../common/common.h"
#include "edges.h"

/* sdy-add-data-flow-edges: each edge of a while, case, optimization_barrier, manual or named computation gets an
 * sdy.data_flow_edge, which holds its one sharding.
 * Requires: no edges yet. Preserves: all else. */

/* The edge takes over the owner's sharding: while it is there, it holds it. */
static ir_value imp_make_edge(opt_rewriter *rw, ir_value owner, const sdy_sharding *s) {
  ir_value edge = opt_make(rw, IR_OP_SDY_DATA_FLOW_EDGE, opt_type(owner), 1, &owner);
  if (s) opt_set(rw, edge, "sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  return edge;
}

/* %arg is read through %e = sdy.data_flow_edge %arg. Dynamic shapes and tokens are not sharded and get none. */
static void imp_argument_edges(opt_rewriter *rw, ir_op *op) {
  assert(op->n_called == 1);
  ir_computation *c = op->called[0];
  opt_at_start(rw, c);
  for (uint32_t i = 0; i < c->n_params && !rw->failed; i++) {
    ir_value owner = {c->params[i], 0};
    if (!shc_is_static(c->params[i]->type)) continue;
    rw->origin = c->params[i];
    ir_value edge = imp_make_edge(rw, owner, sdy_get_owner(rw->m, owner));
    shc_replace_value(rw, owner, edge, edge.op);
  }
}

/* Right after the op, in the order of its results, each reader now reads the edge. */
static void imp_result_edges(opt_rewriter *rw, ir_op *op) {
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  rw->failed = rw->failed || !values;
  if (rw->failed || op->n_results == 0) return;
  shc_at_value(rw, (ir_value){op, 0});
  rw->origin = op;
  for (uint32_t i = 0; i < op->n_results && !rw->failed; i++) {
    values[i] = (ir_value){op, i};
    if (shc_is_static(op->types[i])) values[i] = imp_make_edge(rw, values[i], sdy_get(values[i]));
  }
  if (!rw->failed) shc_replace_but_own(rw, op, values);
}

/* Arguments before results, as Shardy numbers them. */
int shard_add_edges(opt_rewriter *rw, ir_op *op) {
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION)
    imp_argument_edges(rw, op);
  imp_result_edges(rw, op);
  return opt_rewriter_status(rw);
}

static int imp_edges_op(void *ctx, ir_op *op) {
  return sdy_is_flow_op(op) ? shard_add_edges(ctx, op) : 0;
}

int shard_add_data_flow_edges(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  bool had_edges = shc_has(m, IR_OP_SDY_DATA_FLOW_EDGE); /* then some may have two now */
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, imp_edges_op, &rw);
  opt_rewriter_free(&rw);
  TRY(status);
  return had_edges ? shc_verify(m, err) : 0;
}

/* sdy-add-func-data-flow-edges: an sdy.func_data_flow_edge for each argument of a function that is called, and for each
 * result of a call.
 * Requires: no such edges yet. Preserves: all else. */

/* The edge takes the sharding that the value has now; the value keeps its own until the edge is sunk. */
static ir_value imp_make_func_edge(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  ir_value edge = opt_make(rw, IR_OP_SDY_FUNC_DATA_FLOW_EDGE, opt_type(v), 1, &v);
  if (edge.op && s && !sdy_set(edge, s)) rw->failed = true;
  return edge;
}

/* The main function's arguments have no callers in the module, so they need no edges. */
static void imp_func_edges(opt_rewriter *rw, ir_computation *f) {
  opt_at_start(rw, f);
  for (uint32_t i = 0; i < f->n_params && !rw->failed; i++) {
    ir_value v = {f->params[i], 0};
    if (!shc_is_static(opt_type(v))) continue;
    rw->origin = v.op;
    ir_value edge = imp_make_func_edge(rw, v, sdy_get(v));
    shc_replace_value(rw, v, edge, edge.op);
  }
}

static int imp_call_edges(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  if (op->opcode != IR_OP_CALL || op->n_results == 0) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, op->n_results);
  rw->failed = rw->failed || !values;
  shc_at_value(rw, (ir_value){op, 0});
  for (uint32_t i = 0; i < op->n_results && !rw->failed; i++) {
    values[i] = (ir_value){op, i};
    if (shc_is_static(op->types[i])) values[i] = imp_make_func_edge(rw, values[i], sdy_get(values[i]));
  }
  if (!rw->failed) shc_replace_but_own(rw, op, values);
  return opt_rewriter_status(rw);
}

/* Verified again where edges were there before: a value with two is an error that the verifier words. */
int shard_add_func_data_flow_edges(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  bool had_edges = shc_has(m, IR_OP_SDY_FUNC_DATA_FLOW_EDGE); /* then some may have two now */
  opt_rewriter rw;
  const ir_computation *entry = shc_main(m, true);
  if (!entry) return shc_no_main(m, err);
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && c != entry && !c->declaration) imp_func_edges(&rw, c);
  int status = shc_walk_module(m, true, imp_call_edges, &rw);
  if (status == 0) status = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  TRY(status);
  return had_edges ? shc_verify(m, err) : 0;
}

/* sdy-sink-data-flow-edges: what sdy.data_flow_edge ops hold goes back to the ops that own the edges, and they go.
 * Requires: nothing. Preserves: all else. */

/* The shardings of n owners that edges hold, edges[i] NULL where there is none; *out NULL where none holds one.
 * The lists of an op are all or nothing: as soon as one edge has a sharding the others get an open one. */
static bool exp_edge_shardings(ir_module *m, uint32_t n, ir_op *const *edges, const ir_value *owners,
                               const sdy_sharding ***out) {
  const sdy_sharding *like = NULL;
  *out = NULL;
  for (uint32_t i = 0; i < n && !like; i++) like = edges[i] ? sdy_get((ir_value){edges[i], 0}) : NULL;
  if (!like) return true;
  const sdy_sharding **v = BASE_ARRAY(&m->arena, const sdy_sharding *, n);
  for (uint32_t i = 0; v && i < n; i++) {
    v[i] = edges[i] ? sdy_get((ir_value){edges[i], 0}) : NULL;
    if (!v[i]) v[i] = sdy_sharding_empty(m, like, sdy_rank(opt_type(owners[i])), true);
    if (!v[i]) return false;
  }
  *out = v;
  return v != NULL;
}

static int exp_sink_oom(opt_rewriter *rw) {
  return base_oom(rw->err, "sdy-sink-data-flow-edges");
}

/* A manual computation's in_shardings are as seen from outside: manual axes come back in front of the free ones. */
static int exp_sink_arguments(opt_rewriter *rw, ir_op *op) {
  assert(op->n_called == 1);
  ir_computation *c = op->called[0];
  const sdy_names *axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  const sdy_shardings *old = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  ir_op **edges = BASE_ARRAY(&rw->arena, ir_op *, (size_t)c->n_params + 1);
  ir_value *owners = BASE_ARRAY(&rw->arena, ir_value, (size_t)c->n_params + 1);
  const sdy_sharding **list;
  if (!edges || !owners) return exp_sink_oom(rw);
  for (uint32_t i = 0; i < c->n_params; i++) {
    owners[i] = (ir_value){c->params[i], 0};
    edges[i] = sdy_edge_op(owners[i]);
  }
  if (!exp_edge_shardings(rw->m, c->n_params, edges, owners, &list)) return exp_sink_oom(rw);
  if (!list) return 0;
  assert(c->n_params > 0);
  for (uint32_t i = 0; axes && old && i < old->n && i < c->n_params; i++)
    if (!(list[i] = sdy_with_free_axes(rw->m, old->v[i], list[i], axes))) return exp_sink_oom(rw);
  const ir_mattr *a = sdy_attr(rw->m, SDY_SHARDINGS, sdy_shardings_make(rw->m, c->n_params, list));
  return a && ir_m_set(op, "in_shardings", a) ? 0 : exp_sink_oom(rw);
}

static int exp_sink_results(opt_rewriter *rw, ir_op *op) {
  if (op->n_results == 0) return 0;
  ir_op **edges = base_arena_zalloc(&rw->arena, op->n_results * sizeof *edges);
  ir_value *owners = BASE_ARRAY(&rw->arena, ir_value, op->n_results);
  const sdy_sharding **list;
  if (!edges || !owners) return exp_sink_oom(rw);
  for (uint32_t i = 0; i < op->n_results; i++) owners[i] = (ir_value){op, i};
  IR_FOR_USES(use, op)
  if (use->user->opcode == IR_OP_SDY_DATA_FLOW_EDGE) edges[use->index] = use->user;
  /* An edge has one operand, the result it stands for. */
  if (!exp_edge_shardings(rw->m, op->n_results, edges, owners, &list)) return exp_sink_oom(rw);
  if (!list) return 0;
  const sdy_shardings *made = sdy_shardings_make(rw->m, op->n_results, list);
  return made && sdy_set_list(op, made) ? 0 : exp_sink_oom(rw);
}

int shard_sink_edges(opt_rewriter *rw, ir_op *op) {
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION)
    TRY(exp_sink_arguments(rw, op));
  return exp_sink_results(rw, op);
}

typedef struct exp_sink {
  opt_rewriter rw;
  bool origins, edges;
} exp_sink;

/* Ops come before the edges they own. */
static int exp_sink_op(void *ctx, ir_op *op) {
  exp_sink *x = ctx;
  opt_rewriter *rw = &x->rw;
  if (sdy_is_flow_op(op)) {
    TRY(shard_sink_edges(rw, op));
    return shard_sink_notes(rw, op, x->origins, x->edges);
  }
  if (op->opcode != IR_OP_SDY_DATA_FLOW_EDGE) return 0;
  opt_replace_one(rw, op, opt_operand(op, 0));
  TRY(opt_rewriter_status(rw));
  return SHC_SKIP;
}

int shard_sink_data_flow_edges(ir_module *m, const opt_args *args, xlac_error *err) {
  exp_sink x = {.origins = opt_get(args, "sink-debug-sharding-origins"),
                .edges = opt_get(args, "sink-debug-propagation-edge-sharding")};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = shc_walk_module(m, false, exp_sink_op, &x);
  opt_rewriter_free(&x.rw);
  return status;
}

/* sdy-sink-func-data-flow-edges: what sdy.func_data_flow_edge ops have goes to the argument or call result they stand
 * for, and they go.
 * Requires: nothing. Preserves: all else. */

/* An edge that lost its sharding leaves an open one: the value must not keep what is no longer true. */
static int exp_sink_func_edge(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  if (op->opcode != IR_OP_SDY_FUNC_DATA_FLOW_EDGE) return 0;
  ir_value in = opt_operand(op, 0);
  const sdy_sharding *s = sdy_get((ir_value){op, 0}), *old = sdy_get(in);
  if (!s && old) s = sdy_sharding_empty(rw->m, old, old->n_dims, true);
  if ((s || old) && (!s || !sdy_set(in, s))) return base_oom(rw->err, "sdy-sink-func-data-flow-edges");
  opt_replace_one(rw, op, in);
  TRY(opt_rewriter_status(rw));
  return SHC_SKIP;
}

int shard_sink_func_data_flow_edges(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, false, exp_sink_func_edge, &rw);
  opt_rewriter_free(&rw);
  return status;
}
