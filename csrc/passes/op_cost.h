/* What ops cost, by the shapes alone. Counted as XLA counts: an elementwise op is one operation an element; the
 * elementary functions are counted apart; a product is a multiplication and an addition; moves are none. */
#ifndef XLAC_PASSES_OP_COST_H
#define XLAC_PASSES_OP_COST_H

#include "../ir/ir.h"

typedef struct opt_cost {
  double flops, transcendentals;
  double read, written; /* bytes of buffers */
} opt_cost;

/* Of one op on its whole operands; read and written stay 0. A loop, branch or call costs nothing itself. */
opt_cost opt_op_cost(const ir_op *op);
/* Of an elementwise op on so many elements. */
opt_cost opt_elementwise_cost(ir_opcode code, double elements);
/* How long one lane of it takes, where an addition takes 1. */
double opt_op_weight(ir_opcode code);

#endif
