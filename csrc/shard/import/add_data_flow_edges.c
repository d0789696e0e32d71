/* sdy-add-data-flow-edges: each edge of a while, case, optimization_barrier, manual or named computation gets an
 * sdy.data_flow_edge, which holds its one sharding.
 * Requires: no edges yet. Preserves: all else. */
#include "edges.h"

static ir_value imp_make_edge(opt_rewriter *rw, ir_value owner, const sdy_sharding *s) {
  ir_value edge = opt_make(rw, IR_OP_SDY_DATA_FLOW_EDGE, opt_type(owner), 1, &owner);
  if (s) opt_set(rw, edge, "sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  return edge;
}

static void imp_argument_edges(opt_rewriter *rw, ir_op *op) {
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
