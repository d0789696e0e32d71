/* Rules of convolutions and of what goes over windows. */
#include "rule.h"

/* A window of one element, one after the other, without padding: in and out are the same elements. */
static bool windows_is_plain(shard_maker *b, int64_t d) {
  uint32_t n = 0;
  const int64_t *padding = shard_ints(b, "padding", &n);
  if (n >= 2 * (uint64_t)(d + 1) && (padding[2 * d] || padding[2 * d + 1])) return false;
  const int64_t *strides = shard_ints(b, "window_strides", &n);
  if (d < n && strides[d] != 1) return false;
  const int64_t *sizes = shard_ints(b, "window_dimensions", &n);
  return !(d < n && sizes[d] != 1);
}

bool shard_rule_reduce_window(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(t); d++) {
    bool plain = windows_is_plain(b, d);
    shard_all(b, d, t->dims[d], plain ? SHARD_PASS : SHARD_PERMUTATION, !plain && b->conservative);
  }
  return true;
}

bool shard_rule_select_and_scatter(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0), *source = shard_tensor_type(b, 1);
  for (uint32_t d = 0; d < shard_rank(t); d++) {
    if (windows_is_plain(b, d)) {
      shard_all(b, d, t->dims[d], SHARD_PASS, false);
      continue;
    }
    shard_map(b, 1, d, shard_new_factor(b, shard_dim(source, d), SHARD_REPLICATION, b->conservative));
    shard_one(b, d, d, t->dims[d], SHARD_PERMUTATION, b->conservative);
  }
  return true;
}

typedef struct windows_spatial {
  int64_t lhs, rhs, out; /* dimensions */
  int64_t left;          /* of the input's size, not in a factor yet */
} windows_spatial;

/* The input's dimension can be split over windows (the output's size) or within them (the kernel's). */
static void windows_factor(shard_maker *b, windows_spatial *s, int64_t size, bool within) {
  if (size > s->left) size = s->left;
  if (size <= 1) return;
  if (within)
    shard_two(b, s->lhs, s->rhs, SHARD_NO_DIM, size, SHARD_REDUCTION);
  else
    shard_two(b, s->lhs, SHARD_NO_DIM, s->out, size, SHARD_PERMUTATION);
  s->left /= size;
}

static void windows_spatial_dims(shard_maker *b, const ir_mattr *dims) {
  uint32_t n = 0, n_rhs = 0, n_out = 0;
  const int64_t *lhs = shard_field_ints(b, dims, "input_spatial_dimensions", &n);
  const int64_t *rhs = shard_field_ints(b, dims, "kernel_spatial_dimensions", &n_rhs);
  const int64_t *out = shard_field_ints(b, dims, "output_spatial_dimensions", &n_out);
  for (uint32_t i = 0; i < n && i < n_rhs && i < n_out; i++) {
    windows_spatial s = {lhs[i], rhs[i], out[i], shard_dim(shard_tensor_type(b, 0), lhs[i])};
    int64_t windows = shard_dim(shard_result_type(b, 0), out[i]), size = shard_dim(shard_tensor_type(b, 1), rhs[i]);
    bool over_first = windows >= size;
    windows_factor(b, &s, over_first ? windows : size, !over_first);
    windows_factor(b, &s, over_first ? size : windows, over_first);
  }
}

bool shard_rule_convolution(shard_maker *b) {
  const ir_mattr *dims = ir_mattr_of(b->op, "dimension_numbers");
  const ir_type *rhs = shard_tensor_type(b, 1), *out = shard_result_type(b, 0);
  int64_t batch = shard_field_int(dims, "input_batch_dimension"),
          feature = shard_field_int(dims, "input_feature_dimension");
  int64_t kernel_in = shard_field_int(dims, "kernel_input_feature_dimension");
  int64_t kernel_out = shard_field_int(dims, "kernel_output_feature_dimension");
  int64_t out_batch = shard_field_int(dims, "output_batch_dimension");
  int64_t out_feature = shard_field_int(dims, "output_feature_dimension");
  int64_t batches = ir_m_get_int(b->op, "batch_group_count", 1),
          features = ir_m_get_int(b->op, "feature_group_count", 1);
  if (batches > 1) shard_two(b, batch, kernel_out, out_feature, batches, SHARD_PASS);
  shard_two(b, batch, SHARD_NO_DIM, out_batch, shard_dim(out, out_batch), SHARD_PASS);
  if (!b->conservative) windows_spatial_dims(b, dims);
  if (features > 1) shard_two(b, feature, kernel_out, out_feature, features, SHARD_PASS);
  shard_two(b, feature, kernel_in, SHARD_NO_DIM, shard_dim(rhs, kernel_in), SHARD_REDUCTION);
  int64_t rest = shard_dim(out, out_feature) / (batches * features);
  if (rest > 1) shard_two(b, SHARD_NO_DIM, kernel_out, out_feature, rest, SHARD_PASS);
  return true;
}
