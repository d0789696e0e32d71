/* sdy-sink-func-data-flow-edges: what sdy.func_data_flow_edge ops have goes to the argument or call result they stand
 * for, and they go.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

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
