/* sdy-sharding-constraint-to-reshard: constraints become reshards.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

static int exp_to_reshard(void *ctx, ir_op *op) {
  (void)ctx;
  if (op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT) op->opcode = IR_OP_SDY_RESHARD; /* of the same attributes */
  return 0;
}

int shard_constraint_to_reshard(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  (void)err;
  m->verified = IR_UNVERIFIED;
  return shc_walk_module(m, false, exp_to_reshard, NULL);
}
