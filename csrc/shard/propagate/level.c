/* Op priorities: at level 0 only ops that pass shardings on as they are, and whose operands nobody else reads; then
 * with other readers; then all ops, but along factors that need no communication; then everything, except from a
 * broadcast's operand to its result; then everything. Source: Shardy's description of the pass. */
#include "propagate.h"

static bool level_single_use(const shard_state *s, const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    const ir_type *t = use->op->types[use->index];
    if (ir_is_scalar(t)) continue;
    if (!shard_has_one_use(s, shard_slot_of(s, use->op, use->index))) return false;
  }
  return true;
}

static bool level_is_offload(const ir_op *op) {
  if (op->opcode != IR_OP_CUSTOM_CALL) return false;
  const char *target = ir_m_get_str(op, "call_target_name");
  return strcmp(target, "MoveToDevice") == 0 || strcmp(target, "MoveToHost") == 0;
}

/* Ops of the first two levels. */
static shard_direction level_pass_through(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_RESHAPE:
    case IR_OP_TRANSPOSE:
    case IR_OP_SDY_DATA_FLOW_EDGE:
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      return SHARD_BOTH;
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return SHARD_FORWARD;
    default:
      return shard_is_elementwise(op) || level_is_offload(op) ? SHARD_BOTH : SHARD_NONE;
  }
}

static bool level_is_in(sdy_ints factors, uint32_t factor) {
  for (uint32_t i = 0; i < factors.n; i++)
    if (factors.v[i] == factor) return true;
  return false;
}

static shard_direction level_union(shard_direction a, shard_direction b) {
  return (shard_direction)((int)a | (int)b);
}

/* `rule` is NULL for edges. */
shard_direction shard_level_direction(const shard_driver *d, const ir_op *op, const sdy_rule *rule, uint32_t factor) {
  if (d->level >= SHARD_LEVELS - 1) return SHARD_BOTH;
  shard_direction all = level_pass_through(op);
  if (d->level == 0 && d->replays) return all; /* else nothing would have changed */
  if (d->level == 0) return all != SHARD_NONE && level_single_use(&d->state, op) ? all : SHARD_NONE;
  if (d->level == 1) return all;
  bool passes = d->level > 2 || !rule ||
                !(level_is_in(rule->reduction, factor) || level_is_in(rule->need_replication, factor) ||
                  level_is_in(rule->permutation, factor));
  if (!passes) return all;
  return level_union(all, op->opcode == IR_OP_BROADCAST ? SHARD_BACKWARD : SHARD_BOTH);
}
