/* sdy-remove-all-gather-reduce-scatter-for-cmv1: products take what gathers have gathered, and give what
 * reduce-scatters would make, so that the partitioner can do both together with the product. Requires: nothing.
 * Preserves: what the program computes. */
#include "../common/common.h"

/* The collective's operand takes its place; shardings of the op then say what the partitioner is to make. */
static int exk_drop(opt_rewriter *rw, ir_op *op) {
  opt_replace_one(rw, op, opt_operand(op, 0));
  return opt_rewriter_status(rw);
}

/* With another reader the collective would be done anyway. */
static bool exk_used_once(opt_rewriter *rw, ir_op *op) {
  return op->n_results == 1 && shc_count_uses(rw, (ir_value){op, 0}, 2) == 1;
}

/* One or the other: an op that takes gathered operands keeps its reduce-scatter. */
static int exk_dot(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  bool gathered = false;
  if (op->opcode != IR_OP_DOT && op->opcode != IR_OP_STABLEHLO_DOT) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_op *in = ir_operand(op, i);
    if (in->opcode != IR_OP_SDY_ALL_GATHER || !exk_used_once(rw, in)) continue;
    gathered = true;
    TRY(exk_drop(rw, in));
  }
  if (gathered || !exk_used_once(rw, op) || !op->uses) return 0;
  ir_op *user = op->uses->user;
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  if (user->opcode != IR_OP_SDY_REDUCE_SCATTER || (s && s->unreduced.n)) return 0;
  if (!sdy_set((ir_value){op, 0}, sdy_get((ir_value){user, 0})))
    return base_oom(rw->err, "sdy-remove-all-gather-reduce-scatter-for-cmv1");
  return exk_drop(rw, user);
}

int shard_keep_partial(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, exk_dot, &rw);
  opt_rewriter_free(&rw);
  return status;
}
