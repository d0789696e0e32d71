/* Convolution whose groups have one input feature each. */
#ifndef XLAC_INTERP_ALGORITHM_CONV_DEPTHWISE_H
#define XLAC_INTERP_ALGORITHM_CONV_DEPTHWISE_H

#include "placement.h"

typedef struct interp_depthwise {
  const ir_window *window;
  int64_t batch, groups, copies; /* copies: output features of each group */
  /* Strides of the operands and the result as stored; spatial ones by window dimension. */
  int64_t in_batch, in_feature, kernel_feature, out_batch, out_feature;
  int64_t in_size[IR_MAX_RANK], out_size[IR_MAX_RANK];
  int64_t in_stride[IR_MAX_RANK], out_stride[IR_MAX_RANK], kernel_stride[IR_MAX_RANK];
} interp_depthwise;

/* All three in one of matmul.h's types. Sums are over window elements in order, from zero. */
XLAC_MUST_USE int interp_depthwise_run(interp_ctx *ctx, const interp_depthwise *p, const interp_value *x,
                                       const interp_value *kernel, interp_value *r);

#endif
