/* Convolutions: the input is brought into a padded copy where it needs one, so that windows are plain strides; then a
 * convolution is a matrix product of our own, or, of few features, computed row by row. */
#ifndef XLAC_CPU_CONV_CONV_H
#define XLAC_CPU_CONV_CONV_H

#include "../gemm/dot_gemm.h"
#include "../routine.h"

/* A convolution by role: sizes, and strides in elements of the arrays as stored. */
typedef struct cpu_conv {
  const ir_window *window;
  uint32_t n; /* spatial dims */
  base_dtype in_type, kernel_type, out_type;
  int64_t in_size[IR_MAX_RANK], in_stride[IR_MAX_RANK];
  int64_t kernel_size[IR_MAX_RANK], kernel_stride[IR_MAX_RANK]; /* size: the window's */
  int64_t out_size[IR_MAX_RANK], out_stride[IR_MAX_RANK];
  int64_t feature_groups, batch_groups;
  /* Sizes and strides of what isn't spatial. */
  int64_t batch, features, outputs; /* of one group: batch, input features, output features */
  int64_t in_batch, in_feature, kernel_in, kernel_out, out_batch, out_feature; /* strides */
} cpu_conv;

/* What is copied of the input: each dimension's elements from `low` on (negative: cut away), `step` apart. */
typedef struct cpu_conv_pad {
  uint32_t rank;
  base_dtype from, to;
  int64_t in[IR_MAX_RANK], out[IR_MAX_RANK], low[IR_MAX_RANK], step[IR_MAX_RANK];
  int64_t in_stride[IR_MAX_RANK];
  int64_t out_stride[IR_MAX_RANK]; /* by dimension of the input, also of those that are merged later */
  int64_t count;                   /* of the copy */
} cpu_conv_pad;

/* conv_pad.c: a dense copy in the order of the input, zeros where there is no element. */
void cpu_conv_pad_run(const cpu_conv_pad *p, rt_pool *pool, const void *from, void *to);

/* conv_depthwise.c: one input feature a group. code stays NULL where it is not for such a convolution. */
int cpu_conv_prepare_depthwise(cpu_prepare_run *x, const cpu_conv *c);
/* conv_direct.c: few features. Likewise. */
int cpu_conv_prepare_direct(cpu_prepare_run *x, const cpu_conv *c);

#endif
