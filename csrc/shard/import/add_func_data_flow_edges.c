/* sdy-add-func-data-flow-edges: an sdy.func_data_flow_edge for each argument of a function that is called, and for each
 * result of a call.
 * Requires: no such edges yet. Preserves: all else. */
#include "../common/common.h"

static ir_value imp_make_func_edge(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  ir_value edge = opt_make(rw, IR_OP_SDY_FUNC_DATA_FLOW_EDGE, opt_type(v), 1, &v);
  if (edge.op && s && !sdy_set(edge, s)) rw->failed = true;
  return edge;
}

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
