/* Which op has which rule. What is elementwise in the op table needs no row. */
#include "rule.h"

extern shard_rule_fn *const shard_rule_table[IR_OP_COUNT];
shard_rule_fn *const shard_rule_table[IR_OP_COUNT] = {
    [IR_OP_ALL_GATHER] = shard_rule_all_gather,
    [IR_OP_ALL_REDUCE] = shard_rule_pointwise,
    [IR_OP_ALL_TO_ALL] = shard_rule_all_to_all,
    [IR_OP_BATCH_NORM_INFERENCE] = shard_rule_batch_norm_inference,
    [IR_OP_BITCAST_CONVERT] = shard_rule_bitcast_convert,
    [IR_OP_BROADCAST] = shard_rule_broadcast,
    [IR_OP_CHOLESKY] = shard_rule_cholesky,
    [IR_OP_CLAMP] = shard_rule_like_result,
    [IR_OP_COLLECTIVE_BROADCAST] = shard_rule_pointwise,
    [IR_OP_COLLECTIVE_PERMUTE] = shard_rule_pointwise,
    [IR_OP_CONCATENATE] = shard_rule_concatenate,
    [IR_OP_CONVOLUTION] = shard_rule_convolution,
    [IR_OP_CUSTOM_CALL] = shard_rule_custom_call,
    [IR_OP_DOT] = shard_rule_dot_general,
    [IR_OP_DYNAMIC_SLICE] = shard_rule_dynamic_slice,
    [IR_OP_DYNAMIC_UPDATE_SLICE] = shard_rule_dynamic_update_slice,
    [IR_OP_FFT] = shard_rule_fft,
    [IR_OP_GATHER] = shard_rule_gather,
    [IR_OP_PAD] = shard_rule_pad,
    [IR_OP_REDUCE] = shard_rule_reduce,
    [IR_OP_REDUCE_SCATTER] = shard_rule_reduce_scatter,
    [IR_OP_REDUCE_WINDOW] = shard_rule_reduce_window,
    [IR_OP_RESHAPE] = shard_rule_reshape,
    [IR_OP_REVERSE] = shard_rule_reverse,
    [IR_OP_RNG_BIT_GENERATOR] = shard_rule_rng_bit_generator,
    [IR_OP_SCATTER] = shard_rule_scatter,
    [IR_OP_SDY_SHARDING_CONSTRAINT] = shard_rule_pointwise,
    [IR_OP_SELECT] = shard_rule_like_result,
    [IR_OP_SELECT_AND_SCATTER] = shard_rule_select_and_scatter,
    [IR_OP_SLICE] = shard_rule_slice,
    [IR_OP_SORT] = shard_rule_sort,
    [IR_OP_STABLEHLO_DOT] = shard_rule_dot,
    [IR_OP_TRANSPOSE] = shard_rule_transpose,
    [IR_OP_TRIANGULAR_SOLVE] = shard_rule_triangular_solve,
};

static bool table_same_shape(const ir_type *a, const ir_type *b) {
  if (a->kind != IR_TYPE_TENSOR || b->kind != IR_TYPE_TENSOR || a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return true;
}

bool shard_is_elementwise(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_BITCAST_CONVERT:
      return table_same_shape(ir_operand_type(op, 0), op->type);
    case IR_OP_SDY_PROPAGATION_BARRIER:
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
      return true;
    default:
      return ir_opcode_has(op->opcode, IR_ELEMENTWISE);
  }
}
