/* Costs by shapes. Doubles, since counts of large programs exceed 2^63; they are estimates anyway. */
#include "op_cost.h"

/* The COST column of ops.def. */
enum { COST_DEFAULT, COST_FUNCTION, COST_MOVE, COST_SLOW };

static const uint8_t cost_kinds[IR_OP_COUNT] = {
#include "../ir/ops_columns.h"
#undef COST
#define COST(kind) +COST_##kind
#define OP(code, text, arity, columns) [IR_OP_##code] = 0 columns,
#include "../ir/ops.def"
#undef OP
};

/* Whatever may carry result_accuracy is an elementary function, and must say so. */
#include "../ir/ops_columns.h"
#undef TRAITS
#undef COST
#define TRAITS(set) | ((set) & IR_HAS_ACCURACY ? 1 : 0)
#define COST(kind) | (COST_##kind == COST_FUNCTION ? 2 : 0)
#define OP(code, text, arity, columns) _Static_assert((0 columns) != 1, text " has no COST(FUNCTION)");
#include "../ir/ops.def"
#undef OP
#include "../ir/ops_columns.h"

/* Tuples have none of their own. */
static double cost_elements(const ir_type *t) {
  double n = 1;
  if (!ir_is_tensor(t)) return 0;
  for (uint32_t d = 0; d < t->rank; d++) n *= (double)t->dims[d];
  return n;
}

/* By opcode: what is not elementwise and has no case of its own costs nothing. */
opt_cost opt_elementwise_cost(ir_opcode code, double elements) {
  opt_cost c = {0};
  if (cost_kinds[code] == COST_FUNCTION)
    c.transcendentals = elements;
  else if (cost_kinds[code] != COST_MOVE && ir_opcode_has(code, IR_ELEMENTWISE))
    c.flops = elements;
  return c;
}

double opt_op_weight(ir_opcode code) {
  static const double weights[] = {[COST_DEFAULT] = 1, [COST_FUNCTION] = 16, [COST_MOVE] = 1, [COST_SLOW] = 4};
  return weights[cost_kinds[code]];
}

/* A multiplication and an addition for each element of the result and of the summed dimensions. */
static double cost_product(const ir_op *op) {
  const ir_type *left = ir_operand_type(op, 0);
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  assert(dims != NULL);
  double depth = 1;
  for (uint32_t i = 0; i < dims->n; i++) depth *= (double)left->dims[dims->v[i]];
  return 2 * cost_elements(op->type) * depth;
}

/* Every kernel element but output features, once for each element of the result. Padding is not taken off. */
static double cost_convolution(const ir_op *op) {
  const ir_conv_dims *dims = ir_get_conv_dims(op);
  const ir_type *kernel_type = ir_operand_type(op, 1);
  double features = dims ? (double)kernel_type->dims[dims->kernel_output_feature] : 0;
  return features > 0 ? 2 * cost_elements(op->type) * cost_elements(kernel_type) / features : 0;
}

/* A body of one operation or more, applied so many times. */
static opt_cost cost_applied(const ir_computation *c, double times) {
  opt_cost sum = {0};
  IR_FOR_OPS(op, c) {
    opt_cost one = opt_elementwise_cost(op->opcode, times);
    sum.flops += one.flops;
    sum.transcendentals += one.transcendentals;
  }
  return sum;
}

/* Elements of one window. */
static double cost_window(const ir_op *op) {
  const ir_window *w = ir_get_window(op);
  double n = 1;
  for (uint32_t i = 0; w && i < w->n; i++) n *= (double)w->v[i].size;
  return n;
}

/* What applies a computation is counted by its body.
 * dot of f32[4,3] and f32[3,5]: 2 * 20 * 3 = 120 flops. reduce of f32[8] by add: 8 flops, one for each element read. */
opt_cost opt_op_cost(const ir_op *op) {
  opt_cost c = {0};
  double result = cost_elements(op->type), first = op->n_operands ? cost_elements(ir_operand_type(op, 0)) : 0;
  switch (op->opcode) {
    case IR_OP_DOT:
      c.flops = cost_product(op);
      return c;
    case IR_OP_CONVOLUTION:
      c.flops = cost_convolution(op);
      return c;
    case IR_OP_REDUCE:
      return op->n_called ? cost_applied(op->called[0], first) : c;
    case IR_OP_REDUCE_WINDOW:
      return op->n_called ? cost_applied(op->called[0], result * cost_window(op)) : c;
    case IR_OP_MAP:
      return op->n_called ? cost_applied(op->called[0], result) : c;
    case IR_OP_SCATTER:
      return op->n_called ? cost_applied(op->called[0], cost_elements(ir_operand_type(op, op->n_operands - 1))) : c;
    default:
      return opt_elementwise_cost(op->opcode, result);
  }
}
