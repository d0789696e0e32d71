/* Where unreduced axes may stand. Passes carry them in many forms, not in all: a program in which some value's parts
 * would get lost or come from nowhere is refused. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

static const sdy_axes parts_none = {0, NULL};

static sdy_axes unreduced_of_value(const sdy_sharding *s) {
  return s ? s->unreduced : parts_none;
}

/* --- the check --- */

static bool parts_equal(const sdy_sharding *a, const sdy_sharding *b) {
  return sdy_axes_equal(unreduced_of_value(a), unreduced_of_value(b)) &&
         (unreduced_of_value(a).n == 0 || a->reduction == b->reduction);
}

/* What the regions of an op return, and its operands where they flow into them, are parts as its results are. */
static bool parts_flow(ir_module *m, ir_op *op) {
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  bool computes = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
  bool loops = op->opcode == IR_OP_WHILE || op->opcode == IR_OP_OPT_BARRIER, same = true;
  for (uint32_t i = 0; i < op->n_operands && same && (computes || loops); i++) {
    const sdy_sharding *to = loops ? sdy_shown(m, (ir_value){op, i}) : in && i < in->n ? in->v[i] : NULL;
    same = parts_equal(sdy_shown(m, opt_operand(op, i)), to);
  }
  for (uint32_t i = 0; i < op->n_operands && same && !computes && !loops; i++)
    same = unreduced_of_value(sdy_shown(m, opt_operand(op, i))).n == 0;
  const sdy_names *manual = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  for (uint32_t r = op->opcode == IR_OP_WHILE; r < op->n_called && same; r++)
    for (uint32_t i = 0; i < op->called[r]->n_results && i < op->n_results && same; i++) {
      const sdy_sharding *to = sdy_shown(m, (ir_value){op, i});
      if (to && manual) to = sdy_without_axes(m, to, manual, true);
      same = parts_equal(sdy_shown(m, op->called[r]->results[i]), to);
    }
  return same;
}

/* A sum has no parts along its axes; whatever else moves data has them as before. */
static bool parts_move(ir_module *m, ir_op *op) {
  const sdy_sharding *from = sdy_shown(m, opt_operand(op, 0)), *to = sdy_get((ir_value){op, 0});
  if (op->opcode == IR_OP_SDY_REPLICATED_TO_UNREDUCED || op->opcode == IR_OP_SDY_SHARDED_TO_UNREDUCED) return true;
  if (op->opcode != IR_OP_SDY_ALL_REDUCE) return parts_equal(from, to);
  const sdy_axes *summed = sdy_of(ir_mattr_of(op, "reduction_axes"), SDY_AXES);
  for (uint32_t i = 0; i < unreduced_of_value(to).n; i++)
    if (!sdy_axes_overlap(unreduced_of_value(from), to->unreduced.v[i])) return false;
  for (uint32_t i = 0; i < unreduced_of_value(from).n; i++)
    if (sdy_axes_overlap(*summed, from->unreduced.v[i]) ==
        sdy_axes_overlap(unreduced_of_value(to), from->unreduced.v[i]))
      return false;
  return true;
}

/* Ops that are computed part by part have been settled (unreduced.c). */
static bool parts_settled(ir_module *m, ir_op *op) {
  sdy_axes out = op->n_results ? unreduced_of_value(sdy_shown(m, (ir_value){op, 0})) : parts_none;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    sdy_axes in = unreduced_of_value(sdy_shown(m, opt_operand(op, i)));
    for (uint32_t k = 0; k < in.n; k++)
      if (!sdy_axes_overlap(out, in.v[k])) return false;
  }
  return true;
}

static int parts_check_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  bool fine = op->opcode == IR_OP_PARAMETER        ? true
              : op->opcode == IR_OP_CALL           ? false
              : sdy_is_collective(op)              ? parts_move(rw->m, op)
              : op->opcode == IR_OP_SDY_RESHARD    ? parts_move(rw->m, op)
              : sdy_is_flow_op(op) || op->n_called ? parts_flow(rw->m, op) || parts_settled(rw->m, op)
                                                   : parts_settled(rw->m, op);
  return fine ? 0
              : base_fail_at(rw->err, XLAC_E_LEGALIZE, op->line, op->col, op->name->s,
                             "parts of a sum along unreduced axes get lost here");
}

int spmd_check_parts(ir_module *m, xlac_error *err) {
  opt_rewriter rw = {.m = m, .err = err};
  TRY(shc_walk_module(m, true, parts_check_op, &rw));
  for (ir_computation *f = m->first; f; f = f->next)
    for (uint32_t i = 0; f->kind == IR_FUNCTION && !f->owner && !f->declaration && i < f->n_results; i++)
      if (!parts_equal(sdy_shown(m, f->results[i]), sdy_get_result(f, i)))
        return base_fail_at(err, XLAC_E_LEGALIZE, f->return_line, f->return_col, "func.return",
                            "parts of a sum along unreduced axes get lost here");
  return 0;
}
