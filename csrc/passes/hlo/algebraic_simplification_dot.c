/* Dots take their operands as they lie: transpositions become other dimension numbers. */
#include "algebraic_simplification.h"

typedef struct hs_dot_keys {
  ir_attr_key batch, contracting;
} hs_dot_keys;

static const hs_dot_keys hs_sides[] = {{IR_ATTR_LHS_BATCH_DIMS, IR_ATTR_LHS_CONTRACTING_DIMS},
                                       {IR_ATTR_RHS_BATCH_DIMS, IR_ATTR_RHS_CONTRACTING_DIMS}};

static bool hs_is_listed(const ir_ints *list, int64_t d) {
  for (uint32_t i = 0; list && i < list->n; i++)
    if (list->v[i] == d) return true;
  return false;
}

/* Nothing is said of the op that would have to be said anew. */
static bool hs_dot_is_plain(const ir_op *op) {
  return op->n_operands == 2 && !ir_attr_find(op, IR_ATTR_SPARSITY_CONFIG);
}

static bool hs_set_moved(ir_op *op, ir_attr_key key, const ir_ints *list, const int64_t *permutation) {
  int64_t moved[IR_MAX_RANK];
  for (uint32_t i = 0; list && i < list->n; i++) moved[i] = permutation[list->v[i]];
  return !list || ir_set_ints(op, key, list->n, moved);
}

/* The transposition before operand `side` is taken away where free dimensions stay in their order, for that is the
 * order of the result's. */
static bool hs_take_transpose(hs_run *s, ir_op *op, uint32_t side) {
  const ir_op *from = ir_operand(op, side);
  if (from->opcode != IR_OP_TRANSPOSE) return false;
  const ir_ints *permutation = ir_get_ints(from, IR_ATTR_DIMENSIONS);
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch), *sum = ir_get_ints(op, hs_sides[side].contracting);
  int64_t last = -1;
  for (uint32_t d = 0; d < permutation->n; d++) {
    if (hs_is_listed(batch, d) || hs_is_listed(sum, d)) continue;
    if (permutation->v[d] < last) return false;
    last = permutation->v[d];
  }
  if (!hs_set_moved(op, hs_sides[side].batch, batch, permutation->v) ||
      !hs_set_moved(op, hs_sides[side].contracting, sum, permutation->v)) {
    s->x.failed = true;
    return false;
  }
  ir_set_operand(op, side, (ir_value){ir_operand(from, 0), 0});
  return true;
}

static ir_op *hs_dot(hs_run *s, ir_op *op) {
  if (!hs_dot_is_plain(op)) return NULL;
  bool left = hs_take_transpose(s, op, 0), right = hs_take_transpose(s, op, 1);
  return left || right ? op : NULL;
}

/* How many of op's free dimensions there are on that side. */
static uint32_t hs_free_dims(const ir_op *op, uint32_t side) {
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch), *sum = ir_get_ints(op, hs_sides[side].contracting);
  return ir_operand_type(op, side)->rank - (batch ? batch->n : 0) - (sum ? sum->n : 0);
}

/* Batch dimensions stay, the right side's free ones come before the left side's. */
static bool hs_swaps_sides(const ir_op *dot, const ir_ints *permutation) {
  uint32_t left = hs_free_dims(dot, 0), right = hs_free_dims(dot, 1), batch = dot->type->rank - left - right;
  for (uint32_t i = 0; i < permutation->n; i++) {
    uint32_t want = i < batch ? i : i < batch + right ? i + left : i - right;
    if (permutation->v[i] != want) return false;
  }
  return true;
}

static void hs_swap_attrs(hs_run *s, ir_op *made, const ir_op *dot) {
  for (uint32_t side = 0; side < 2; side++) {
    const ir_ints *batch = ir_get_ints(dot, hs_sides[side].batch), *sum = ir_get_ints(dot, hs_sides[side].contracting);
    if (batch && !ir_set_ints(made, hs_sides[!side].batch, batch->n, batch->v)) s->x.failed = true;
    if (sum && !ir_set_ints(made, hs_sides[!side].contracting, sum->n, sum->v)) s->x.failed = true;
  }
}

/* (A B)' is B' A': the same products, added in the same order. */
ir_op *hs_transpose_of_dot(hs_run *s, ir_op *op) {
  const ir_op *dot = ir_operand(op, 0);
  const ir_ints *permutation = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  if (dot->opcode != IR_OP_DOT || !hs_dot_is_plain(dot) || ir_use_count(dot) != 1 || opt_is_result(dot)) return NULL;
  if (opt_in_edge(&s->facts, dot) || !hs_swaps_sides(dot, permutation)) return NULL;
  if (ir_operand_type(dot, 0)->dtype != ir_operand_type(dot, 1)->dtype) return NULL;
  if (ir_attr_find(dot, IR_ATTR_OPERAND_PRECISION) || ir_get_str(dot, IR_ATTR_ALGORITHM)[0]) return NULL;
  ir_op *made = hlo_make(&s->x, IR_OP_DOT, op->type, 2, (ir_op *[]){ir_operand(dot, 1), ir_operand(dot, 0)});
  if (made) hs_swap_attrs(s, made, dot);
  return made;
}

const hs_row hs_dot_rules[] = {{IR_OP_DOT, hs_dot}, {IR_OP_INVALID, NULL}};
