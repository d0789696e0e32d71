/* Variadic reductions that find the largest or smallest element and where it is, as JAX writes argmax and argmin. */
#ifndef XLAC_PASSES_HLO_ARG_REDUCE_H
#define XLAC_PASSES_HLO_ARG_REDUCE_H

#include "../../ir/ir.h"

/* Elements are taken in order, from the initial pair on: one that is larger (smaller), a NaN where none was before, or
 * an equal one is the new value; the place is its, or where equal the lesser of the two. */
typedef struct opt_arg_reduction {
  bool smallest;
  uint32_t dim; /* the one that is reduced */
  bool counts;  /* operand 1 is the index along it: it need not be read */
} opt_arg_reduction;

/* Whether op is one over a single dimension, on types that have loops: places s32 or s64, values integers or floats of
 * 16 to 64 bits. */
bool opt_arg_reduction_of(const ir_op *op, opt_arg_reduction *r);

#endif
