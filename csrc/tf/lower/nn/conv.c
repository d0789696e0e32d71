/* Convolutions and their gradients: TensorFlow's images and HWIO kernels. A depthwise kernel is [H, W, C, M], one
 * of C groups. Both gradients are convolutions themselves: with strides and dilations changing places, and padding
 * chosen so that each element meets those it met on the way forward. Sources: TensorFlow's op documentation, and
 * tf2xla's behaviour for groups. */
#include "../windows.h"

enum { TFCONV_DEPTHWISE = 16 }; /* in a row's arg, beside the number of spatial dimensions */

/* One convolution by its node: the image's layout, the windows, and how features are grouped. */
typedef struct tfconv_plan {
  tfl_layout l;
  uint32_t n;
  bool depthwise;
  const int64_t *image, *kernel; /* sizes */
  tfl_span spans[TFL_MOST_SPATIAL];
  int64_t depth, groups, filters; /* of the image; of the result */
} tfconv_plan;

/* Fills the plan from attributes and sizes; everything that does not fit is an error here, so that what follows
 * can rely on it. */
static int tfconv_plan_of(tfl_op *x, const ir_type *image, uint32_t kernel_rank, const int64_t *kernel,
                          tfconv_plan *p) {
  assert(x->row->arg > 0);
  int64_t strides[TFL_MOST_SPATIAL], dilations[TFL_MOST_SPATIAL];
  *p = (tfconv_plan){.n = (uint32_t)x->row->arg % TFCONV_DEPTHWISE, .depthwise = x->row->arg >= TFCONV_DEPTHWISE};
  TRY(tfl_layout_of(x, p->n, image, &p->l));
  if (kernel_rank != p->n + 2) return tfl_fail(x, "a kernel of rank %u: expected %u", kernel_rank, p->n + 2);
  TRY(tfl_spatial_attr(x, "strides", &p->l, strides));
  TRY(tfl_spatial_attr(x, "dilations", &p->l, dilations));
  p->image = image->dims;
  p->kernel = kernel;
  for (uint32_t i = 0; i < p->n; i++)
    p->spans[i] = (tfl_span){
        .in = image->dims[p->l.spatial[i]], .size = kernel[i], .stride = strides[i], .dilation = dilations[i]};
  TRY(tfl_pad_spans(x, &p->l, p->spans));
  p->depth = image->dims[p->l.feature];
  int64_t in = kernel[p->n], out = kernel[p->n + 1];
  if (in < 1 || out < 1 || (p->depthwise ? p->depth != in : p->depth % in != 0))
    return tfl_fail(x, "an image of depth %lld and a kernel for depth %lld", (long long)p->depth, (long long)in);
  p->groups = p->depthwise ? in : p->depth / in;
  p->filters = p->depthwise ? in * out : out;
  if (p->groups < 1 || p->filters % p->groups)
    return tfl_fail(x, "%lld filters in %lld groups", (long long)p->filters, (long long)p->groups);
  return 0;
}

/* The image's dimensions as StableHLO numbers them. */
static tfl_conv_dims tfconv_image_dims(const tfconv_plan *p) {
  tfl_conv_dims d = {.batch = p->l.batch, .feature = p->l.feature};
  for (uint32_t i = 0; i < p->n; i++) d.spatial[i] = p->l.spatial[i];
  return d;
}

/* Spatial dimensions come first in TensorFlow's kernels; `in` and `out` are where the features lie. */
static tfl_conv_dims tfconv_kernel_dims(const tfconv_plan *p, uint32_t in, uint32_t out) {
  tfl_conv_dims d = {.batch = in, .feature = out};
  for (uint32_t i = 0; i < p->n; i++) d.spatial[i] = i;
  return d;
}

/* A plain convolution of the plan's rank, which the rows below change. */
static tfl_conv tfconv_of(const tfconv_plan *p) {
  tfl_conv c = {
      .n = p->n, .lhs = tfconv_image_dims(p), .out = tfconv_image_dims(p), .feature_groups = 1, .batch_groups = 1};
  for (uint32_t i = 0; i < p->n; i++) c.stride[i] = c.lhs_dilation[i] = c.rhs_dilation[i] = 1;
  return c;
}

/* [spatial..., I/g, O] whatever it was. */
static ir_value tfconv_kernel(tfl_op *x, const tfconv_plan *p, ir_value kernel) {
  assert(p->groups > 0);
  int64_t dims[TFL_MOST_SPATIAL + 2];
  for (uint32_t i = 0; i < p->n; i++) dims[i] = p->kernel[i];
  dims[p->n] = p->depth / p->groups;
  dims[p->n + 1] = p->filters;
  return tfl_reshape(x, kernel, p->n + 2, dims);
}

/* Shared by Conv2D and its relatives, and by _FusedConv2D. */
static ir_value tfconv_forward(tfl_op *x, ir_value image, ir_value kernel) {
  const ir_type *t = opt_type(image), *k = opt_type(kernel);
  tfconv_plan p;
  if (!t || !k || tfconv_plan_of(x, t, k->rank, k->dims, &p) != 0) return (ir_value){NULL, 0};
  tfl_conv c = tfconv_of(&p);
  c.rhs = tfconv_kernel_dims(&p, p.n, p.n + 1);
  c.feature_groups = p.groups;
  for (uint32_t i = 0; i < p.n; i++) {
    c.stride[i] = p.spans[i].stride;
    c.rhs_dilation[i] = p.spans[i].dilation;
    c.low[i] = p.spans[i].low;
    c.high[i] = p.spans[i].high;
  }
  return tfl_convolution(x, image, tfconv_kernel(x, &p, kernel), &c);
}

/* arg: the number of spatial dimensions, and TFCONV_DEPTHWISE. */
int tfl_row_conv(tfl_op *x) {
  tfl_out(x, 0, tfconv_forward(x, tfl_in(x, 0), tfl_in(x, 1)));
  return x->status;
}

/* A shape given as a tensor of known integers; for depthwise ops' kernels, and for images too. */
static int tfconv_sizes(tfl_op *x, uint32_t i, uint32_t rank, const int64_t **dims) {
  uint32_t n = 0;
  TRY(tfl_ints(x, i, dims, &n));
  if (n != rank) return tfl_fail(x, "sizes of %u dimensions: expected %u", n, rank);
  return 0;
}

static int tfconv_check_gradient(tfl_op *x, const tfconv_plan *p, const ir_type *g) {
  assert(p->n <= TFL_MOST_SPATIAL);
  bool fits = g->rank == p->n + 2 && g->dims[p->l.batch] == p->image[p->l.batch] && g->dims[p->l.feature] == p->filters;
  for (uint32_t i = 0; fits && i < p->n; i++) fits = g->dims[p->l.spatial[i]] == p->spans[i].out;
  return fits ? 0 : tfl_fail(x, "the gradient has not the shape of the convolution's result");
}

/* [spatial..., O/g, I]: input and output features change places within each group. */
static ir_value tfconv_turned_kernel(tfl_op *x, const tfconv_plan *p, ir_value kernel) {
  assert(p->filters % p->groups == 0);
  int64_t split[TFL_MOST_SPATIAL + 3], turn[TFL_MOST_SPATIAL + 3], dims[TFL_MOST_SPATIAL + 2];
  uint32_t n = p->n;
  for (uint32_t i = 0; i < n; i++) {
    dims[i] = split[i] = p->kernel[i];
    turn[i] = i;
  }
  split[n] = p->depth / p->groups;
  split[n + 1] = p->groups;
  split[n + 2] = p->filters / p->groups;
  turn[n] = n + 2;
  turn[n + 1] = n + 1;
  turn[n + 2] = n;
  dims[n] = split[n + 2];
  dims[n + 1] = p->depth;
  return tfl_reshape(x, tfl_transpose(x, tfl_reshape(x, kernel, n + 3, split), turn), n + 2, dims);
}

/* The gradient of the image: the result's gradient, spread out by the strides, convolved with the reversed kernel.
 * Inputs: the image's shape, kernel, gradient. */
int tfl_row_conv_image_gradient(tfl_op *x) {
  const ir_type *k = tfl_in_type(x, 1), *g = tfl_in_type(x, 2);
  const int64_t *sizes = NULL;
  uint32_t n = (uint32_t)x->row->arg % TFCONV_DEPTHWISE;
  TRY(tfconv_sizes(x, 0, n + 2, &sizes));
  tfconv_plan p;
  const ir_type *image = tfl_type(x, (base_dtype)g->dtype, n + 2, sizes);
  if (!image) return x->status;
  TRY(tfconv_plan_of(x, image, k->rank, k->dims, &p));
  TRY(tfconv_check_gradient(x, &p, g));
  tfl_conv c = tfconv_of(&p);
  c.rhs = tfconv_kernel_dims(&p, n, n + 1);
  c.feature_groups = p.groups;
  c.reversed = true;
  for (uint32_t i = 0; i < n; i++) {
    const tfl_span *s = &p.spans[i];
    int64_t reach = (s->size - 1) * s->dilation + 1, spread = (s->out - 1) * s->stride + 1;
    c.lhs_dilation[i] = s->stride;
    c.rhs_dilation[i] = s->dilation;
    c.low[i] = reach - 1 - s->low;
    c.high[i] = s->in + reach - 1 - spread - c.low[i];
  }
  tfl_out(x, 0, tfl_convolution(x, tfl_in(x, 2), tfconv_turned_kernel(x, &p, tfl_in(x, 1)), &c));
  return x->status;
}

/* The gradient of the kernel: the image convolved with the result's gradient, batch and features changing places.
 * Inputs: image, the kernel's shape, gradient. Groups of features are groups of the batch here. */
int tfl_row_conv_kernel_gradient(tfl_op *x) {
  const ir_type *image = tfl_in_type(x, 0), *g = tfl_in_type(x, 2);
  const int64_t *sizes = NULL;
  uint32_t n = (uint32_t)x->row->arg % TFCONV_DEPTHWISE;
  TRY(tfconv_sizes(x, 1, n + 2, &sizes));
  if (!tfl_type(x, (base_dtype)g->dtype, n + 2, sizes)) return x->status;
  tfconv_plan p;
  TRY(tfconv_plan_of(x, image, n + 2, sizes, &p));
  TRY(tfconv_check_gradient(x, &p, g));
  tfl_conv c = tfconv_of(&p);
  tfl_conv_dims d = tfconv_image_dims(&p);
  c.lhs.batch = d.feature;
  c.lhs.feature = d.batch;
  c.rhs = d;
  c.out = tfconv_kernel_dims(&p, n, n + 1);
  c.batch_groups = p.groups;
  for (uint32_t i = 0; i < n; i++) {
    const tfl_span *s = &p.spans[i];
    int64_t spread = (s->out - 1) * s->stride + 1, reach = (s->size - 1) * s->dilation + 1;
    c.stride[i] = s->dilation;
    c.rhs_dilation[i] = s->stride;
    c.low[i] = s->low;
    c.high[i] = spread + reach - 1 - s->in - s->low;
  }
  tfl_out(x, 0, tfl_reshape(x, tfl_convolution(x, tfl_in(x, 0), tfl_in(x, 2), &c), n + 2, sizes));
  return x->status;
}

/* --- _FusedConv2D: what Grappler makes of a convolution and what follows it --- */

/* Names as Grappler's remapper writes them in fused_ops. */
static ir_value tfconv_activate(tfl_op *x, ir_value v, base_slice name) {
  if (!v.op || base_slice_is(name, "BiasAdd")) return v;
  if (base_slice_is(name, "Relu")) return tfl_with(x, IR_OP_MAXIMUM, v, 0);
  if (base_slice_is(name, "Relu6")) return tfl_with(x, IR_OP_MINIMUM, tfl_with(x, IR_OP_MAXIMUM, v, 0), 6);
  if (base_slice_is(name, "Tanh")) return opt_unary(x->rw, IR_OP_TANH, v);
  if (base_slice_is(name, "Sigmoid")) return opt_unary(x->rw, IR_OP_LOGISTIC, v);
  ir_value zero = tfl_like(x, v, 0);
  if (base_slice_is(name, "Elu"))
    return opt_select(x->rw, tfl_compare(x, IR_DIRECTION_GT, v, zero), v, opt_unary(x->rw, IR_OP_EXPM1, v));
  if (base_slice_is(name, "LeakyRelu"))
    return opt_select(x->rw, tfl_compare(x, IR_DIRECTION_GT, v, zero), v,
                      tfl_with(x, IR_OP_MULTIPLY, v, tfl_attr_float(x, "leakyrelu_alpha")));
  return tfl_fail(x, "fused op '%.*s' is unknown", (int)name.n, name.p), (ir_value){NULL, 0};
}

/* Inputs: image, kernel, bias. Fused batch normalisation is left to the host. */
int tfl_row_fused_conv(tfl_op *x) {
  ir_value v = tfconv_forward(x, tfl_in(x, 0), tfl_in(x, 1));
  const base_slice *names = NULL;
  uint32_t n = 0, feature = 3;
  TRY(tfl_attr_strings(x, "fused_ops", &names, &n));
  if (tfl_attr_is(x, "data_format", "NCHW")) feature = 1;
  if (n == 0 || !base_slice_is(names[0], "BiasAdd"))
    return tfl_fail(x, "fused ops that do not begin with BiasAdd are not lowered");
  if (x->n_in < 3) return tfl_fail(x, "the bias is missing");
  v = opt_binary(x->rw, IR_OP_ADD, v, tfl_along(x, tfl_in(x, 2), v, feature));
  for (uint32_t i = 1; i < n; i++) v = tfconv_activate(x, v, names[i]);
  tfl_out(x, 0, v);
  return x->status;
}
