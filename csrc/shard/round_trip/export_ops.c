/* xla-sdy-export-ops: what moves data becomes mhlo.copy with the sharding it moves to (or, of constraints and reshards,
 * with keep-hlo-sharding-constraints, a custom call @Sharding): XLA's partitioner does the rest. What reduces without a
 * reshard, and barriers, go: the partitioner needs no telling.
 * Requires: data flow edges and groups are gone. Preserves: what the program computes. */
#include "round_trip.h"

typedef struct rt_lower {
  opt_rewriter rw;
  bool keep;
} rt_lower;

static int rt_lower_move(rt_lower *x, ir_op *op, bool constraint) {
  opt_rewriter *rw = &x->rw;
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  const sdy_shardings *list = s ? sdy_shardings_make(rw->m, 1, &s) : NULL;
  ir_value in = opt_operand(op, 0);
  opt_at(rw, op);
  ir_op *made = constraint && x->keep ? rt_make_custom_call(rw, "Sharding", 1, op->types, 1, &in)
                                      : opt_make_n(rw, IR_OP_COPY, 1, op->types, 1, &in, 0);
  if (!made || !list || !ir_m_set(made, "sdy.sharding", sdy_attr(rw->m, SDY_SHARDINGS, list)))
    return base_oom(rw->err, "xla-sdy-export-ops");
  opt_replace_one(rw, op, (ir_value){made, 0});
  return opt_rewriter_status(rw);
}

static int rt_lower_op(void *ctx, ir_op *op) {
  rt_lower *x = ctx;
  switch (op->opcode) {
    case IR_OP_SDY_CONSTANT:
      op->opcode = IR_OP_CONSTANT;
      return 0;
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
      return rt_lower_move(x, op, true);
    case IR_OP_SDY_ALL_GATHER:
    case IR_OP_SDY_ALL_SLICE:
    case IR_OP_SDY_ALL_TO_ALL:
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
    case IR_OP_SDY_REDUCE_SCATTER:
      return rt_lower_move(x, op, false);
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_PROPAGATION_BARRIER:
      opt_replace_one(&x->rw, op, opt_operand(op, 0));
      return opt_rewriter_status(&x->rw);
    default:
      return 0;
  }
}

int shard_export_ops(ir_module *m, const opt_args *args, xlac_error *err) {
  rt_lower x = {.keep = opt_get(args, "keep-hlo-sharding-constraints")};
  TRY(opt_rewriter_init(&x.rw, m, err));
  m->verified = IR_UNVERIFIED;
  int status = shc_walk_module(m, true, rt_lower_op, &x);
  opt_rewriter_free(&x.rw);
  return status;
}
