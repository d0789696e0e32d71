/* Makers of ops with windows and of ops with indices, for the rows of nn.def. After a failure they give a value without
 * op, as all makers do. */
#ifndef XLAC_TF_LOWER_WINDOWS_H
#define XLAC_TF_LOWER_WINDOWS_H

#include "row.h"

enum { TFL_MOST_SPATIAL = 3 };

/* --- windows.c: how TensorFlow gives a window --- */

typedef enum tfl_padding { TFL_VALID, TFL_SAME, TFL_EXPLICIT } tfl_padding;

/* Where the dimensions of an image are: NHWC, NCHW, NDHWC, NCDHW. */
typedef struct tfl_layout {
  uint32_t n; /* spatial dimensions */
  uint32_t batch, feature, spatial[TFL_MOST_SPATIAL];
} tfl_layout;

/* One spatial dimension of a window going over an image. */
typedef struct tfl_span {
  int64_t in, size, stride, dilation, low, high, out;
} tfl_span;

/* By attribute data_format, for n spatial dimensions; fails where v has not rank n + 2. */
XLAC_MUST_USE int tfl_layout_of(tfl_op *x, uint32_t n, const ir_type *image, tfl_layout *out);
/* By attributes padding, explicit_paddings; spans have in, size, stride and dilation, and get the others. */
XLAC_MUST_USE int tfl_pad_spans(tfl_op *x, const tfl_layout *l, tfl_span *spans);
/* An attribute (strides, dilations, ksize) with a number for each dimension of the image, those of batch and features
 * being 1; absent and empty is 1 everywhere. */
XLAC_MUST_USE int tfl_spatial_attr(tfl_op *x, const char *name, const tfl_layout *l, int64_t *out);

/* --- nn/windows.c --- */

/* A window over an array: a number for each of its dimensions. */
typedef struct tfl_window {
  uint32_t rank;
  int64_t size[TFL_MOST_DIMS], stride[TFL_MOST_DIMS], low[TFL_MOST_DIMS], high[TFL_MOST_DIMS];
} tfl_window;
/* Of size 1 and stride 1 in all dimensions of t; then the spans along the spatial ones. */
tfl_window tfl_window_of(const ir_type *t, const tfl_layout *l, const tfl_span *spans);
ir_value tfl_reduce_window(tfl_op *x, ir_opcode opcode, ir_value v, ir_value init, const tfl_window *w);
/* Each element of source is added to the first largest one of its window over v. */
ir_value tfl_scatter_to_largest(tfl_op *x, ir_value v, ir_value source, const tfl_window *w);

/* Numbers of dimensions: of batch, of features, of the spatial ones. The kernel's are input features, output features,
 * spatial ones. */
typedef struct tfl_conv_dims {
  uint32_t batch, feature, spatial[TFL_MOST_SPATIAL];
} tfl_conv_dims;
/* What the ops of convolution share, read from their attributes. */
typedef struct tfl_conv {
  uint32_t n;
  tfl_conv_dims lhs, rhs, out;
  int64_t stride[TFL_MOST_SPATIAL], low[TFL_MOST_SPATIAL], high[TFL_MOST_SPATIAL];
  int64_t lhs_dilation[TFL_MOST_SPATIAL], rhs_dilation[TFL_MOST_SPATIAL];
  bool reversed;
  int64_t feature_groups, batch_groups;
} tfl_conv;
ir_value tfl_convolution(tfl_op *x, ir_value lhs, ir_value rhs, const tfl_conv *c);

/* A list of numbers, the AttrValue `value`; a list of strings. */
XLAC_MUST_USE int tfl_attr_floats(tfl_op *x, base_slice value, const float **v, uint32_t *n);
XLAC_MUST_USE int tfl_attr_strings(tfl_op *x, const char *name, const base_slice **v, uint32_t *n);

/* --- tensors/indexed.c --- */

/* Whole slices of v: the elements of indices are places along dimension `dim`; the first `batch` dimensions of both go
 * together. Their shape takes the place of dim in the result. */
ir_value tfl_take(tfl_op *x, ir_value v, ir_value indices, uint32_t dim, uint32_t batch);
/* Slices of v: the last dimension of indices has places along v's first dimensions. */
ir_value tfl_take_nd(tfl_op *x, ir_value v, ir_value indices);
/* v, into which updates are combined at places that the last dimension of indices gives; `opcode` combines (IR_OP_MAP:
 * the update replaces). Places outside are left out. */
ir_value tfl_put_nd(tfl_op *x, ir_opcode opcode, ir_value v, ir_value indices, ir_value updates);
/* The same where each element of indices, of any rank, is a place along dimension 0. */
ir_value tfl_put_rows(tfl_op *x, ir_opcode opcode, ir_value v, ir_value indices, ir_value updates);
/* A gather with indices that are known: v's last `n` dimensions taken as one, of which place[i] becomes element i; the
 * result's last dimensions are `dims`. Where a place is -1 the element is `otherwise`, a scalar (may be without op
 * where no place is). */
ir_value tfl_rearrange(tfl_op *x, ir_value v, uint32_t n, uint32_t n_dims, const int64_t *dims, const int32_t *place,
                       ir_value otherwise);

/* A constant of i32 or f32. */
ir_value tfl_constant_i32(tfl_op *x, uint32_t rank, const int64_t *dims, const int32_t *v);
ir_value tfl_constant_f32(tfl_op *x, uint32_t rank, const int64_t *dims, const float *v);

/* The product of n sizes. */
static inline int64_t tfl_count(uint32_t n, const int64_t *dims) {
  int64_t all = 1;
  for (uint32_t d = 0; d < n; d++) all *= dims[d];
  return all;
}

#endif
