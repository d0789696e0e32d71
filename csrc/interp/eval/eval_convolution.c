/* convolution: a matrix product of [batch x output positions, window positions x input features] patches, found by
 * place as they are packed, with the kernel; one product for each feature or batch group.
 *
 * Example: 32x28x28x1 images with a 3x3x1x8 kernel are a product of [32*26*26, 9] patches with [9, 8]. The
 * patches are never stored as a whole: conv_locate says, for each element that the product packs, where it
 * lies in the input, or that it is padding, which counts as zero. */
#include "../algorithm/conv_depthwise.h"
#include "../algorithm/matmul.h"
#include "../algorithm/placement.h"

typedef struct conv_plan {
  const ir_conv_dims *dims;
  const ir_window *window;
  uint32_t n;                                                   /* spatial dims */
  int64_t groups;                                               /* of features or of batches */
  int64_t features;                                             /* of the input that one output feature sees */
  int64_t in_size[IR_MAX_RANK], in_stride[IR_MAX_RANK];         /* spatial */
  int64_t kernel_size[IR_MAX_RANK], kernel_stride[IR_MAX_RANK]; /* spatial, reversal in the offsets */
  int64_t out_size[IR_MAX_RANK], out_stride[IR_MAX_RANK];
  int64_t batch, batch_stride, feature_stride; /* of the input; batch: in one group */
  int64_t at;                                  /* where the present group starts in the input */
  int64_t left_step, kernel_step, out_step;    /* from group to group */
  int64_t *out_m, *out_n, *right_k, *right_n;
} conv_plan;

/* Places of patch elements: rows are (batch, output position), columns (window position, feature). Called
 * for runs of columns, so positions are counted up, not divided out, after the first. */
static void conv_locate(const void *ctx, int64_t row, int64_t p0, int64_t count, int64_t *places) {
  assert(p0 >= 0 && count >= 0);
  const conv_plan *c = ctx;
  if (count == 0) return; /* maybe there are no features to divide by */
  int64_t corner[IR_MAX_RANK], s[IR_MAX_RANK], window = p0 / c->features, feature = p0 % c->features;
  for (uint32_t d = c->n; d-- > 0; row /= c->out_size[d], window /= c->kernel_size[d]) {
    corner[d] = row % c->out_size[d] * c->window->v[d].stride;
    s[d] = window % c->kernel_size[d];
  }
  int64_t base = c->at + row * c->batch_stride;
  for (int64_t p = 0; p < count; feature = 0) {
    int64_t place = base;
    for (uint32_t d = 0; d < c->n && place != INTERP_NOWHERE; d++) {
      const ir_window_dim *w = &c->window->v[d];
      int64_t at = corner[d] + s[d] * w->window_dilation, e = at - w->padding_low;
      if (w->base_dilation > 1)
        e = interp_window_element(w, c->in_size[d], at);
      else if (e >= c->in_size[d])
        e = -1;
      place = e < 0 ? INTERP_NOWHERE : place + e * c->in_stride[d];
    }
    int64_t end = interp_min(count, p + c->features - feature);
    if (place == INTERP_NOWHERE)
      for (; p < end; p++) places[p] = INTERP_NOWHERE;
    else
      for (; p < end; p++, feature++) places[p] = place + feature * c->feature_stride;
    for (uint32_t d = c->n; d-- > 0;) {
      if (++s[d] < c->kernel_size[d]) break;
      s[d] = 0;
    }
  }
}

/* The op's window with the sizes of the kernel, which the type leaves open where they are dynamic. In
 * scratch. Own memory: the op's is shared with other threads. */
static int conv_window_of(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, conv_plan *c) {
  const ir_window *w = ir_get_window(op);
  ir_window *own = interp_scratch(ctx, 1, sizeof *own + c->n * sizeof *own->v);
  if (!own) return interp_failed(ctx);
  c->window = own;
  own->n = c->n;
  assert(c->n == (w ? w->n : 0));
  for (uint32_t d = 0; d < c->n; d++) {
    uint32_t k = (uint32_t)c->dims->kernel_spatial[d];
    own->v[d] = w->v[d];
    if (own->v[d].size != IR_UNBOUNDED)
      TRY(interp_need_size(ctx, op, operands, 1, k, own->v[d].size, "the size of the window is"));
    own->v[d].size = operands[1]->dims[k];
    if (own->v[d].size < 1) return interp_fail(ctx, op, XLAC_E_EVAL, "the kernel has no element along dimension %u", k);
  }
  return 0;
}

/* Sizes and strides by role. Returns the kernel offset that reversed window dims start from. A reversed
 * dimension has its offset at the other end and its stride negative. */
static int64_t conv_measure(const interp_value *x, const interp_value *kernel, conv_plan *c) {
  int64_t in[IR_MAX_RANK], k[IR_MAX_RANK], start = 0;
  const ir_conv_dims *n = c->dims;
  interp_strides(x->rank, x->dims, in);
  interp_strides(kernel->rank, kernel->dims, k);
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    c->in_size[d] = x->dims[n->input_spatial[d]];
    c->in_stride[d] = in[n->input_spatial[d]];
    c->kernel_size[d] = kernel->dims[n->kernel_spatial[d]];
    c->kernel_stride[d] = k[n->kernel_spatial[d]];
    if (!w->reversal) continue;
    start += (c->kernel_size[d] - 1) * c->kernel_stride[d];
    c->kernel_stride[d] = -c->kernel_stride[d];
  }
  c->batch_stride = in[n->input_batch];
  c->feature_stride = in[n->input_feature];
  return start;
}

/* That the groups divide what they should, and how many output positions there are. */
static int conv_check(interp_ctx *ctx, const ir_op *op, const interp_value *x, const interp_value *kernel, conv_plan *c,
                      int64_t feature_groups, int64_t batch_groups) {
  TRY(interp_window_counts(ctx, op, c->window, c->in_size, c->out_size));
  if (x->dims[c->dims->input_feature] != c->features * feature_groups)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld input features for a kernel of %lld in %lld groups",
                       (long long)x->dims[c->dims->input_feature], (long long)c->features, (long long)feature_groups);
  if (kernel->dims[c->dims->kernel_output_feature] % c->groups != 0 ||
      x->dims[c->dims->input_batch] % batch_groups != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld groups do not divide the output features or the batch",
                       (long long)c->groups);
  return 0;
}

/* The offset lists of the product, and the steps between groups. The kernel's offsets by column, the
 * result's by row. */
static int conv_lists(interp_ctx *ctx, conv_plan *c, const interp_value *kernel, const interp_value *r, int64_t start) {
  const ir_conv_dims *n = c->dims;
  int64_t k[IR_MAX_RANK], out[IR_MAX_RANK], dims[IR_MAX_RANK], strides[IR_MAX_RANK];
  int64_t windows = interp_count(c->n, c->kernel_size) * c->features,
          places = interp_count(c->n, c->out_size) * c->batch;
  int64_t features = kernel->dims[n->kernel_output_feature] / c->groups;
  int64_t *lists = c->out_m = INTERP_SCRATCH(ctx, int64_t, places + windows + 2 * features);
  if (!lists) return interp_failed(ctx);
  c->right_k = lists + places;
  c->out_n = c->right_k + windows;
  c->right_n = c->out_n + features;
  interp_strides(kernel->rank, kernel->dims, k);
  interp_strides(r->rank, r->dims, out);
  memcpy(dims, c->kernel_size, c->n * sizeof *dims);
  memcpy(strides, c->kernel_stride, c->n * sizeof *strides);
  dims[c->n] = c->features;
  strides[c->n] = k[n->kernel_input_feature];
  TRY(interp_offsets(ctx, c->n + 1, dims, strides, c->right_k));
  for (int64_t i = 0; i < windows; i++) c->right_k[i] += start;
  dims[0] = c->batch;
  strides[0] = out[n->output_batch];
  for (uint32_t d = 0; d < c->n; d++) {
    dims[d + 1] = c->out_size[d];
    strides[d + 1] = out[n->output_spatial[d]];
  }
  TRY(interp_offsets(ctx, c->n + 1, dims, strides, c->out_m));
  TRY(interp_multiples(ctx, features, out[n->output_feature], c->out_n));
  TRY(interp_multiples(ctx, features, k[n->kernel_output_feature], c->right_n));
  c->kernel_step = features * k[n->kernel_output_feature];
  c->out_step = features * out[n->output_feature];
  return 0;
}

/* One product for each group, over the same lists. */
static int conv_run(interp_ctx *ctx, conv_plan *c, const interp_value *x, const interp_value *kernel, interp_value *r) {
  int64_t bytes = (int64_t)base_dtype_bytes(r->dtype);
  interp_matmul mm = {.dtype = r->dtype,
                      .left = x->data,
                      .locate = conv_locate,
                      .locate_ctx = c,
                      .out_m = c->out_m,
                      .out_n = c->out_n,
                      .right_k = c->right_k,
                      .right_n = c->right_n};
  mm.m = interp_count(c->n, c->out_size) * c->batch;
  mm.n = kernel->dims[c->dims->kernel_output_feature] / c->groups;
  mm.k = interp_count(c->n, c->kernel_size) * c->features;
  TRY(interp_matmul_begin(ctx, &mm));
  int status = 0;
  for (int64_t g = 0; g < c->groups && status == 0; g++) {
    c->at = g * c->left_step;
    mm.right = (const char *)kernel->data + g * c->kernel_step * bytes;
    mm.out = (char *)r->data + g * c->out_step * bytes;
    status = interp_matmul_run(ctx, &mm);
  }
  interp_matmul_end(ctx, &mm);
  return status;
}

/* One input feature to a group: no product of matrices, but a row of all features for each output position and window
 * element, which conv_depthwise.c multiplies and adds. */
static int conv_run_depthwise(interp_ctx *ctx, const conv_plan *c, const interp_value *x, const interp_value *kernel,
                              interp_value *r) {
  int64_t in[IR_MAX_RANK], k[IR_MAX_RANK], out[IR_MAX_RANK], outputs = kernel->dims[c->dims->kernel_output_feature];
  interp_depthwise p = {.window = c->window, .batch = c->batch, .groups = c->groups, .copies = outputs / c->groups};
  interp_strides(x->rank, x->dims, in);
  interp_strides(kernel->rank, kernel->dims, k);
  interp_strides(r->rank, r->dims, out);
  p.in_batch = in[c->dims->input_batch];
  p.in_feature = in[c->dims->input_feature];
  p.kernel_feature = k[c->dims->kernel_output_feature];
  p.out_batch = out[c->dims->output_batch];
  p.out_feature = out[c->dims->output_feature];
  for (uint32_t d = 0; d < c->n; d++) {
    p.in_size[d] = c->in_size[d];
    p.out_size[d] = c->out_size[d];
    p.in_stride[d] = c->in_stride[d];
    p.out_stride[d] = out[c->dims->output_spatial[d]];
    p.kernel_stride[d] = k[c->dims->kernel_spatial[d]];
  }
  return interp_depthwise_run(ctx, &p, x, kernel, r);
}

/* x and kernel are in the type the products are computed in, which is the result's too. c has its window.
 * batch_group_count cuts the batch and gives each part its own output features; feature_group_count cuts
 * the input features. */
static int conv_eval(interp_ctx *ctx, const ir_op *op, conv_plan *c, const interp_value *x, const interp_value *kernel,
                     interp_value **result) {
  int64_t feature_groups = ir_get_int(op, IR_ATTR_FEATURE_GROUP_COUNT, 1);
  int64_t batch_groups = ir_get_int(op, IR_ATTR_BATCH_GROUP_COUNT, 1), start = conv_measure(x, kernel, c);
  int64_t dims[IR_MAX_RANK];
  c->groups = feature_groups > 1 ? feature_groups : batch_groups;
  c->features = kernel->dims[c->dims->kernel_input_feature];
  TRY(conv_check(ctx, op, x, kernel, c, feature_groups, batch_groups));
  c->batch = x->dims[c->dims->input_batch] / batch_groups;
  c->left_step = batch_groups > 1 ? c->batch * c->batch_stride : c->features * c->feature_stride;
  dims[c->dims->output_batch] = c->batch;
  dims[c->dims->output_feature] = kernel->dims[c->dims->kernel_output_feature];
  for (uint32_t d = 0; d < c->n; d++) dims[c->dims->output_spatial[d]] = c->out_size[d];
  interp_value *r = *result = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  if (r->count == 0) return 0;
  if (c->features == 1 && feature_groups > 1) return conv_run_depthwise(ctx, c, x, kernel, r);
  int status = conv_lists(ctx, c, kernel, r, start);
  if (status == 0) status = conv_run(ctx, c, x, kernel, r);
  interp_scratch_free(ctx, c->out_m);
  return status;
}

/* Computed in interp_product_type, rounded once. */
int interp_eval_convolution(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  base_dtype t = interp_product_type(operands[0]->dtype, operands[1]->dtype, op->type->dtype);
  interp_value *x = interp_as(ctx, operands[0], t), *kernel = interp_as(ctx, operands[1], t), *r = NULL;
  conv_plan c = {.dims = ir_get_conv_dims(op)};
  c.n = c.dims->n_spatial;
  assert(operands[0]->rank == c.n + 2 && operands[1]->rank == c.n + 2);
  int status = x && kernel ? conv_window_of(ctx, op, operands, &c) : interp_failed(ctx);
  if (status == 0) status = conv_eval(ctx, op, &c, x, kernel, &r);
  interp_scratch_free(ctx, (ir_window *)(uintptr_t)c.window);
  interp_release(x);
  interp_release(kernel);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}
