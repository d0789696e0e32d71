/* Windows: their lists, and the sizes they give; and the convolutions that slide them.
 *
 * A window of size w and dilation d covers (w - 1) * d + 1 elements; over n (dilated, padded) elements with stride s
 * it has (n - that) / s + 1 places. #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]> names which dimension of
 * input, kernel and output is the batch, the feature and which are spatial. */
#include "verify.h"

/* Absent padding is none; so is an empty list. */
int sv_read_padding(const sv *v, sv_ints *out) {
  const ir_mattr *a = ir_mattr_of(v->op, "padding");
  *out = (sv_ints){NULL, 0};
  if (!a) return 0;
  if (!a->type || a->type->rank != 2 || a->type->dims[1] != 2)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has a padding of %s; expected pairs, tensor<Nx2xi64>",
                        a->type ? SV_SHOW(a->type) : "no type");
  *out = sv_ints_of(v, a);
  return 0;
}

/* An empty list means the default for each dimension. */
static int sv_check_window_count(const sv *v, const char *what, uint32_t n, uint32_t expected) {
  if (n == 0 || n == expected) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %u %s; expected %u, one for each window dimension", n,
                      what, expected);
}

static int sv_check_window_positive(const sv *v, const char *what, sv_ints list, bool may_be_dynamic) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.v[i] <= 0 && !(may_be_dynamic && list.v[i] == SV_DYNAMIC))
      return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL,
                          "has a window with %s %lld in dimension %u; expected a positive one", what,
                          (long long)list.v[i], i);
  return 0;
}

/* w->size must have one entry for each window dimension; the other lists are held against it. */
int sv_check_window(const sv *v, const sv_window *w, sv_ints reversal) {
  assert(w);
  uint32_t n = w->size.n;
  /* The deprecated dynamic_conv is let through with any number of them, as upstream does. */
  if (v->op->opcode != IR_OP_DYNAMIC_CONV) TRY(sv_check_window_count(v, "window strides", w->stride.n, n));
  TRY(sv_check_window_count(v, "base dilations", w->base_dilation.n, n));
  TRY(sv_check_window_count(v, "window dilations", w->dilation.n, n));
  TRY(sv_check_window_count(v, "paddings", w->padding.n / 2, n));
  TRY(sv_check_window_count(v, "window reversals", reversal.n, n));
  TRY(sv_check_window_positive(v, "size", w->size, true)); /* of the kernel: not known, so not wrong */
  TRY(sv_check_window_positive(v, "stride", w->stride, false));
  TRY(sv_check_window_positive(v, "base dilation", w->base_dilation, false));
  return sv_check_window_positive(v, "dilation", w->dilation, false);
}

/* (size - 1) * dilation + 1; what overflows counts as endless. No elements stay none. */
static int64_t sv_dilated(int64_t size, int64_t dilation) {
  int64_t n;
  if (size <= 0) return 0;
  return base_mul_i64(size - 1, dilation, &n) && base_add_i64(n, 1, &n) ? n : INT64_MAX;
}

/* Entry i of a list, or the default where the list is empty. */
static int64_t sv_window_item(sv_ints list, uint32_t i, int64_t otherwise) {
  return i < list.n ? list.v[i] : otherwise;
}

/* 0 where the window does not fit, also after a padding that overflows. A dynamic size has a dynamic result. */
int64_t sv_window_output(const sv_window *w, uint32_t i, int64_t size) {
  assert(i < w->size.n);
  if (size == SV_DYNAMIC || w->size.v[i] == SV_DYNAMIC) return SV_DYNAMIC;
  int64_t window = sv_dilated(w->size.v[i], sv_window_item(w->dilation, i, 1));
  int64_t n = sv_dilated(size, sv_window_item(w->base_dilation, i, 1));
  if (w->padding.n && !(base_add_i64(n, w->padding.v[2 * i], &n) && base_add_i64(n, w->padding.v[2 * i + 1], &n)))
    return 0;
  if (n <= 0 || window > n) return 0;
  return (n - window) / sv_window_item(w->stride, i, 1) + 1;
}

/* convolution, dynamic_conv. */

/* --- convolution, dynamic_conv --- */
typedef struct sv_conv_numbers {
  int64_t input_batch, input_feature, kernel_input, kernel_output, output_batch, output_feature;
  sv_ints input_spatial, kernel_spatial, output_spatial;
  int64_t feature_groups, batch_groups;
} sv_conv_numbers;

/* Fields that the text left out read as 0 and as empty lists; the group counts default to 1. */
static sv_conv_numbers sv_read_conv(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "dimension_numbers");
  return (sv_conv_numbers){
      .input_batch = sv_field_int(a, "input_batch_dimension", 0),
      .input_feature = sv_field_int(a, "input_feature_dimension", 0),
      .kernel_input = sv_field_int(a, "kernel_input_feature_dimension", 0),
      .kernel_output = sv_field_int(a, "kernel_output_feature_dimension", 0),
      .output_batch = sv_field_int(a, "output_batch_dimension", 0),
      .output_feature = sv_field_int(a, "output_feature_dimension", 0),
      .input_spatial = sv_field_ints(v, a, "input_spatial_dimensions"),
      .kernel_spatial = sv_field_ints(v, a, "kernel_spatial_dimensions"),
      .output_spatial = sv_field_ints(v, a, "output_spatial_dimensions"),
      .feature_groups = ir_m_get_int(v->op, "feature_group_count", 1),
      .batch_groups = ir_m_get_int(v->op, "batch_group_count", 1),
  };
}

/* Two numbers and the spatial ones: in range, no repetition. The two fixed dimensions first, then the spatial ones;
 * together they must name each dimension once. */
static int sv_check_conv_part(const sv *v, const char *id, const char *what, int64_t a, int64_t b, sv_ints spatial) {
  uint32_t rank = sv_in(v, 0)->rank;
  int64_t pair[2] = {a, b};
  sv_ints two = {pair, 2};
  TRY(sv_check_dims(v, id, what, two, rank));
  TRY(sv_check_dims(v, id, what, spatial, rank));
  return sv_check_distinct(v, id, what, two, "the spatial dimensions", spatial);
}

/* convolution_c13, c17, c18, c20 of the specification. */
static int sv_check_conv_numbers(const sv *v, const sv_conv_numbers *c) {
  uint32_t n = c->input_spatial.n;
  if (n != c->kernel_spatial.n || n != c->output_spatial.n)
    return sv_fail(v, "convolution_c17", "has %u, %u and %u spatial dimensions of input, kernel and output", n,
                   c->kernel_spatial.n, c->output_spatial.n);
  TRY(sv_check_conv_part(v, "convolution_c13", "the input's dimension numbers", c->input_batch, c->input_feature,
                         c->input_spatial));
  TRY(sv_check_conv_part(v, "convolution_c18", "the kernel's dimension numbers", c->kernel_input, c->kernel_output,
                         c->kernel_spatial));
  return sv_check_conv_part(v, "convolution_c20", "the output's dimension numbers", c->output_batch, c->output_feature,
                            c->output_spatial);
}

/* Of a dynamic size nothing is known. */
static int sv_check_conv_division(const sv *v, const char *id, const char *what, int64_t size, const char *by,
                                  int64_t groups) {
  assert(groups > 0);
  if (size == SV_DYNAMIC || size % groups == 0) return 0;
  return sv_fail(v, id, "has %s of size %lld; expected a multiple of %s, %lld", what, (long long)size, by,
                 (long long)groups);
}

/* feature_group_count g cuts input features and kernel outputs into g independent convolutions; batch_group_count
 * does so with the batch. Dimension numbers have been checked. */
static int sv_check_conv_groups(const sv *v, const sv_conv_numbers *c) {
  if (c->batch_groups > 1 && c->feature_groups > 1)
    return sv_fail(v, "convolution_c23",
                   "has batch_group_count = %lld and feature_group_count = %lld; expected one of them to be 1",
                   (long long)c->batch_groups, (long long)c->feature_groups);
  const ir_type *lhs = sv_in(v, 0), *rhs = sv_in(v, 1);
  int64_t batch = sv_dim(lhs, (uint32_t)c->input_batch), feature = sv_dim(lhs, (uint32_t)c->input_feature);
  int64_t kernel_in = sv_dim(rhs, (uint32_t)c->kernel_input), kernel_out = sv_dim(rhs, (uint32_t)c->kernel_output);
  TRY(sv_check_conv_division(v, "convolution_c10", "the batch dimension", batch, "batch_group_count", c->batch_groups));
  TRY(sv_check_conv_division(v, "convolution_c11", "the input's feature dimension", feature, "feature_group_count",
                             c->feature_groups));
  if (feature != SV_DYNAMIC && kernel_in != SV_DYNAMIC && feature / c->feature_groups != kernel_in)
    return sv_fail(v, "convolution_c14", "has %lld input features in %lld groups, but %lld in the kernel",
                   (long long)feature, (long long)c->feature_groups, (long long)kernel_in);
  TRY(sv_check_conv_division(v, "convolution_c15", "the kernel's output feature dimension", kernel_out,
                             "batch_group_count", c->batch_groups));
  return sv_check_conv_division(v, "convolution_c16", "the kernel's output feature dimension", kernel_out,
                                "feature_group_count", c->feature_groups);
}

/* The order is upstream's, so that of several errors the same one is told. */
static int sv_check_conv(const sv *v, const sv_conv_numbers *c) {
  const ir_type *lhs = sv_in(v, 0), *rhs = sv_in(v, 1);
  if (lhs->rank < 2 || lhs->rank != rhs->rank)
    return sv_fail(v, "convolution_c1", "has operands of %s and %s; expected equal ranks of 2 or more", SV_SHOW(lhs),
                   SV_SHOW(rhs));
  if (!sv_is_quant(lhs) && !sv_is_quant(rhs) && !sv_elements_fit(lhs, rhs))
    return sv_fail(v, "convolution_c27", "has operands of %s and %s; expected one element type", SV_SHOW(lhs),
                   SV_SHOW(rhs));
  TRY(sv_check_conv_numbers(v, c));
  TRY(sv_check_conv_groups(v, c));
  TRY(sv_check_precision(v));
  if (lhs->rank != c->input_spatial.n + 2)
    return sv_fail(v, "convolution_c12", "has operands of rank %u; expected %u, for its spatial dimensions", lhs->rank,
                   c->input_spatial.n + 2);
  return 0;
}

/* With an unknown padding the spatial sizes are not known. */
static int sv_make_conv(const sv *v, const sv_conv_numbers *c, sv_ints padding, bool padding_known) {
  const ir_type *lhs = sv_in(v, 0), *rhs = sv_in(v, 1);
  uint32_t n = c->kernel_spatial.n;
  int64_t size[IR_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) size[i] = sv_dim(rhs, (uint32_t)c->kernel_spatial.v[i]);
  sv_window w = {.size = {size, n},
                 .stride = sv_attr_ints(v, "window_strides"),
                 .base_dilation = sv_attr_ints(v, "lhs_dilation"),
                 .dilation = sv_attr_ints(v, "rhs_dilation"),
                 .padding = padding};
  if (padding_known) TRY(sv_check_window(v, &w, sv_attr_ints(v, "window_reversal")));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < lhs->rank; i++) sv_push(&s, SV_DYNAMIC, SV_DYNAMIC);
  for (uint32_t i = 0; padding_known && i < n; i++)
    s.dims[c->output_spatial.v[i]] = sv_window_output(&w, i, sv_dim(lhs, (uint32_t)c->input_spatial.v[i]));
  int64_t batch = sv_dim(lhs, (uint32_t)c->input_batch);
  s.dims[c->output_batch] = batch == SV_DYNAMIC ? SV_DYNAMIC : batch / c->batch_groups;
  s.dims[c->output_feature] = sv_dim(rhs, (uint32_t)c->kernel_output);
  return sv_make(v, &s, sv_declared_element(v), v->out);
}

/* Only the output's sizes follow; its element type is free. */
int sv_infer_convolution(const sv *v) {
  sv_conv_numbers c = sv_read_conv(v);
  sv_ints padding;
  TRY(sv_check_conv(v, &c));
  TRY(sv_read_padding(v, &padding));
  return sv_make_conv(v, &c, padding, true);
}

/* Operand 2 is the padding, of as many pairs as there are spatial dimensions; often a constant, which is then read. */
int sv_infer_dynamic_conv(const sv *v) {
  sv_conv_numbers c = sv_read_conv(v);
  const ir_type *t = sv_in(v, 2);
  sv_ints padding = {NULL, 0};
  TRY(sv_check_conv(v, &c));
  if (t->rank != 2 || t->dims[0] != sv_in(v, 0)->rank - 2 || t->dims[1] != 2)
    return sv_fail(v, "dynamic_conv_c4", "has a padding of %s; expected %u pairs", SV_SHOW(t), sv_in(v, 0)->rank - 2);
  bool known = sv_constant_ints(v, 2, &padding);
  return sv_make_conv(v, &c, padding, known);
}

/* Per-axis scales belong to the kernel's output features and the result's features: anything else would mix scales
 * within a sum. */
static int sv_check_conv_quant(const sv *v) {
  const ir_type *rhs = sv_in(v, 1), *result = sv_result(v, 0);
  if (!sv_is_quant(sv_in(v, 0)) && !sv_is_quant(rhs) && !sv_is_quant(result)) return 0;
  sv_conv_numbers c = sv_read_conv(v);
  if (sv_is_quant_axis(rhs) && rhs->quant->axis != c.kernel_output)
    return sv_fail(v, "convolution_c29", "has rhs quantised along dimension %d; expected %lld, its output features",
                   rhs->quant->axis, (long long)c.kernel_output);
  if (sv_is_quant_axis(result) && result->quant->axis != c.output_feature)
    return sv_fail(v, "convolution_c30", "has a result quantised along dimension %d; expected %lld, its features",
                   result->quant->axis, (long long)c.output_feature);
  return sv_check_product_quant(v);
}

int sv_verify_convolution(const sv *v) {
  return sv_check_conv_quant(v);
}

int sv_verify_dynamic_conv(const sv *v) {
  return sv_check_conv_quant(v);
}
