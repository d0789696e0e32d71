/* Inference of convolution. */
#include "infer.h"

/* Two special dimensions and the spatial ones name each of the rank's dimensions once. */
static int check_conv_labels(const char *what, int64_t a, int64_t b, const int64_t *spatial, uint32_t n,
                             xlac_error *err) {
  if (n > IR_MAX_RANK - 2) return base_fail(err, XLAC_E_TOO_LARGE, "dim_labels has %u spatial dimensions", n);
  int64_t all[IR_MAX_RANK];
  all[0] = a;
  all[1] = b;
  for (uint32_t i = 0; i < n; i++) all[2 + i] = spatial[i];
  return ir_check_permutation(what, n + 2, all, n + 2, err);
}

static int check_conv_dims(const ir_conv_dims *n, const ir_type *lhs, const ir_type *rhs, xlac_error *err) {
  TRY(check_conv_labels("dim_labels of the input", n->input_batch, n->input_feature, n->input_spatial, n->n_spatial,
                        err));
  TRY(check_conv_labels("dim_labels of the kernel", n->kernel_input_feature, n->kernel_output_feature,
                        n->kernel_spatial, n->n_spatial, err));
  TRY(check_conv_labels("dim_labels of the output", n->output_batch, n->output_feature, n->output_spatial, n->n_spatial,
                        err));
  if (lhs->rank == n->n_spatial + 2 && rhs->rank == n->n_spatial + 2) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "dim_labels is for operands of rank %u, but got %s and %s",
                   n->n_spatial + 2, IR_SHOW(lhs), IR_SHOW(rhs));
}

typedef struct conv_groups {
  int64_t feature, batch;
} conv_groups;

static int check_conv_groups(conv_groups g, xlac_error *err) {
  if (g.feature <= 0 || g.batch <= 0)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "feature_group_count (%lld) and batch_group_count (%lld) must be positive", (long long)g.feature,
                     (long long)g.batch);
  if (g.feature > 1 && g.batch > 1)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "feature_group_count (%lld) and batch_group_count (%lld) can't both be above 1",
                     (long long)g.feature, (long long)g.batch);
  return 0;
}

static bool divides(int64_t count, int64_t size) {
  assert(count > 0);
  return size == IR_UNBOUNDED ? count == 1 : size % count == 0;
}

static int check_conv_sizes(const ir_conv_dims *n, conv_groups g, const ir_type *lhs, const ir_type *rhs,
                            xlac_error *err) {
  int64_t in = lhs->dims[n->input_feature], batch = lhs->dims[n->input_batch];
  int64_t kernel_in = rhs->dims[n->kernel_input_feature], kernel_out = rhs->dims[n->kernel_output_feature];
  if (!divides(g.batch, kernel_out) || !divides(g.batch, batch))
    return base_fail(err, XLAC_E_INFER,
                     "batch_group_count %lld must divide the batch size of %s and the output features of %s",
                     (long long)g.batch, IR_SHOW(lhs), IR_SHOW(rhs));
  bool fits =
      in == IR_UNBOUNDED ? kernel_in == in && g.feature == 1 : in % g.feature == 0 && in / g.feature == kernel_in;
  if (!fits || !divides(g.feature, kernel_out))
    return base_fail(err, XLAC_E_INFER,
                     "the input features of %s must be those of the kernel %s times feature_group_count %lld, "
                     "which must divide the output features",
                     IR_SHOW(lhs), IR_SHOW(rhs), (long long)g.feature);
  return 0;
}

static int conv_spatial(const ir_conv_dims *n, uint32_t i, const ir_window_dim *w, const ir_type *lhs,
                        const ir_type *rhs, ir_dims *d, xlac_error *err) {
  uint32_t in = (uint32_t)n->input_spatial[i], kernel = (uint32_t)n->kernel_spatial[i],
           to = (uint32_t)n->output_spatial[i];
  if (rhs->dims[kernel] != w->size)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "window size %lld in dimension %u is not the size of the kernel %s",
                     (long long)w->size, i, IR_SHOW(rhs));
  TRY(ir_infer_window_size(w, lhs->dims[in], &d->size[to], err));
  d->dynamic[to] = ir_dim_is_dynamic(lhs, in) || ir_dim_is_dynamic(rhs, kernel);
  return 0;
}

int ir_infer_convolution(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  const ir_conv_dims *n = ir_get_conv_dims(op);
  if (!n) return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "convolution needs the attribute dim_labels");
  conv_groups g = {ir_get_int(op, IR_ATTR_FEATURE_GROUP_COUNT, 1), ir_get_int(op, IR_ATTR_BATCH_GROUP_COUNT, 1)};
  const ir_window *w = ir_get_window(op);
  TRY(check_conv_groups(g, err));
  TRY(ir_check_kernel_window(w, n->n_spatial, err));
  TRY(check_conv_dims(n, lhs, rhs, err));
  TRY(check_conv_sizes(n, g, lhs, rhs, err));
  if (ir_dim_is_dynamic(rhs, (uint32_t)n->kernel_output_feature))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "the output features of a kernel can't be dynamic, but it is %s",
                     IR_SHOW(rhs));
  ir_dims d = {.rank = lhs->rank};
  int64_t batch = lhs->dims[n->input_batch];
  d.size[n->output_batch] = batch == IR_UNBOUNDED ? batch : batch / g.batch;
  d.dynamic[n->output_batch] = ir_dim_is_dynamic(lhs, (uint32_t)n->input_batch);
  d.size[n->output_feature] = rhs->dims[n->kernel_output_feature];
  for (uint32_t i = 0; i < n->n_spatial; i++) TRY(conv_spatial(n, i, &w->v[i], lhs, rhs, &d, err));
  base_dtype dtype;
  TRY(ir_infer_precision(lhs->dtype, rhs->dtype, &dtype, err));
  return ir_dims_tensor(m, dtype, &d, out, err);
}
