/* The last resort: without shardings every device computes everything. Manual computations keep theirs, since they say
 * what their bodies compute, and so do the program's arguments and results: callers bring and take shards. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

/* What only says how a value is sharded is that value. */
static bool bare_is_saying(const ir_op *op) {
  return op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT || op->opcode == IR_OP_SDY_RESHARD ||
         op->opcode == IR_OP_SDY_PROPAGATION_BARRIER;
}

static int bare_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  if (bare_is_saying(op)) {
    opt_replace_one(rw, op, opt_operand(op, 0));
    return rw->failed ? -XLAC_E_OUT_OF_MEMORY : SHC_SKIP;
  }
  if (op->opcode == IR_OP_SDY_SHARDING_GROUP) {
    opt_erase(rw, op);
    return SHC_SKIP;
  }
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || !ir_mattr_of(op, "sdy.sharding")) return 0;
  return ir_m_set(op, "sdy.sharding", NULL) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

static bool bare_arguments(ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++)
    if (ir_mattr_of(f->params[i], "sdy.sharding") && !ir_m_set(f->params[i], "sdy.sharding", NULL)) return false;
  return true;
}

static bool bare_results(ir_computation *f) {
  for (uint32_t i = 0; i < f->n_results && !f->declaration; i++)
    if (sdy_get_result(f, i) && !sdy_set_result(f, i, NULL)) return false;
  return true;
}

int spmd_make_whole(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, false, bare_op, &rw);
  for (ir_computation *f = m->first; f && status == 0; f = f->next)
    if (f->kind == IR_FUNCTION && !f->owner && f != m->entry && !(bare_arguments(f) && bare_results(f)))
      status = -XLAC_E_OUT_OF_MEMORY;
  int ended = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "a program without shardings");
  return status ? status : ended;
}
