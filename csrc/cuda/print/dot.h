/* What a dot op says of its operands: which dimensions are one index. */
#ifndef XLAC_CUDA_DOT_H
#define XLAC_CUDA_DOT_H

#include "routine.h"

/* Dimensions of an operand that are one index, outermost first; neighbours that are one walk are one dimension. */
typedef struct cuda_dot_role {
  uint32_t n;
  int64_t count, extents[IR_MAX_RANK], strides[IR_MAX_RANK];
} cuda_dot_role;

typedef struct cuda_dot_side {
  cuda_dot_role batch, contracting, free;
} cuda_dot_side;

void cuda_dot_sides(const ir_op *op, cuda_dot_side *a, cuda_dot_side *b);

#endif
