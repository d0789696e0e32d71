/* Rules of contractions, solvers, collectives of StableHLO, convolutions and what goes over windows. */
#include "../../base/list.h"
#include "rule.h"

/* stablehlo.dot: vectors or matrices; the last dimension of the left side is contracted with the first of the right. */
bool shard_rule_dot(shard_maker *b) {
  const ir_type *lhs = shard_tensor_type(b, 0), *rhs = shard_tensor_type(b, 1);
  bool rows = shard_rank(lhs) == 2, columns = shard_rank(rhs) == 2;
  if (rows) shard_two(b, 0, SHARD_NO_DIM, 0, shard_dim(lhs, 0), SHARD_PASS);
  if (columns) shard_two(b, SHARD_NO_DIM, 1, rows ? 1 : 0, shard_dim(rhs, 1), SHARD_PASS);
  shard_two(b, rows ? 1 : 0, 0, SHARD_NO_DIM, shard_dim(rhs, 0), SHARD_REDUCTION);
  return true;
}

/* Pairs of dimensions, lhs[i] with rhs[i]. */
typedef struct dots_dims {
  const int64_t *lhs, *rhs;
  uint32_t n;
} dots_dims;

/* Both lists have one length in verified ops; the lesser one is safe for all. */
static dots_dims dots_read(shard_maker *b, const ir_mattr *a, const char *lhs, const char *rhs) {
  uint32_t n = 0, m = 0;
  dots_dims d = {shard_field_ints(b, a, lhs, &n), shard_field_ints(b, a, rhs, &m), 0};
  d.n = n < m ? n : m;
  return d;
}

/* Batch dimensions, then free ones of the left side, then of the right, which is the order they have in the result;
 * the contracting dimensions last. */
bool shard_rule_dot_general(shard_maker *b) {
  const ir_mattr *a = ir_mattr_of(b->op, "dot_dimension_numbers");
  dots_dims batch = dots_read(b, a, "lhs_batching_dimensions", "rhs_batching_dimensions");
  dots_dims inner = dots_read(b, a, "lhs_contracting_dimensions", "rhs_contracting_dimensions");
  const ir_type *lhs = shard_tensor_type(b, 0), *rhs = shard_tensor_type(b, 1);
  int64_t out = 0;
  for (uint32_t i = 0; i < batch.n; i++)
    shard_two(b, batch.lhs[i], batch.rhs[i], out++, shard_dim(lhs, batch.lhs[i]), SHARD_PASS);
  for (uint32_t d = 0; d < shard_rank(lhs); d++)
    if (!base_list_has(inner.lhs, inner.n, d) && !base_list_has(batch.lhs, batch.n, d))
      shard_two(b, d, SHARD_NO_DIM, out++, lhs->dims[d], SHARD_PASS);
  for (uint32_t d = 0; d < shard_rank(rhs); d++)
    if (!base_list_has(inner.rhs, inner.n, d) && !base_list_has(batch.rhs, batch.n, d))
      shard_two(b, SHARD_NO_DIM, d, out++, rhs->dims[d], SHARD_PASS);
  for (uint32_t i = 0; i < inner.n; i++)
    shard_two(b, inner.lhs[i], inner.rhs[i], SHARD_NO_DIM, shard_dim(lhs, inner.lhs[i]), SHARD_REDUCTION);
  return true;
}

/* The factorisation needs whole matrices; batch dimensions pass through. */
bool shard_rule_cholesky(shard_maker *b) {
  const ir_type *t = shard_tensor_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(t); d++)
    shard_all(b, d, t->dims[d], d + 2 < shard_rank(t) ? SHARD_PASS : SHARD_REPLICATION, false);
  return true;
}

/* Solves op(a) x = b, or x op(a) = b. Only batch dimensions pass through; which of a's dimensions is the contracted
 * one depends on the side and on whether a is transposed. */
bool shard_rule_triangular_solve(shard_maker *b) {
  const ir_type *a = shard_tensor_type(b, 0), *rhs = shard_tensor_type(b, 1);
  int64_t rank = shard_rank(a);
  if (rank < 2) return false;
  for (int64_t d = 0; d < rank - 2; d++) shard_all(b, d, a->dims[d], SHARD_PASS, false);
  const ir_transpose form = (ir_transpose)ir_m_get_word(b->op, "transpose_a");
  bool transposed = form == IR_TRANSPOSE_YES || form == IR_TRANSPOSE_ADJOINT;
  bool left = ir_m_get_bool(b->op, "left_side");
  int64_t rows = rank - 2, columns = rank - 1;
  /* a's free and contracting dimensions; x's dimension that is contracted, and the other one. */
  int64_t own = transposed == left ? columns : rows, inner = transposed == left ? rows : columns;
  if (left) {
    shard_two(b, own, rows, SHARD_NO_DIM, shard_dim(a, own), SHARD_REPLICATION);
    shard_two(b, SHARD_NO_DIM, columns, columns, shard_dim(rhs, columns), SHARD_REPLICATION);
    shard_two(b, inner, SHARD_NO_DIM, rows, shard_dim(a, inner), SHARD_REPLICATION);
  } else {
    shard_two(b, SHARD_NO_DIM, rows, rows, shard_dim(rhs, rows), SHARD_REPLICATION);
    shard_two(b, own, columns, SHARD_NO_DIM, shard_dim(a, own), SHARD_REPLICATION);
    shard_two(b, inner, SHARD_NO_DIM, columns, shard_dim(a, inner), SHARD_REPLICATION);
  }
  return true;
}

/* The transformed dimensions, the last n, must be whole. The last one is blocked too where a real transform changes
 * its size: its shards would not correspond. */
bool shard_rule_fft(shard_maker *b) {
  const ir_type *in = shard_tensor_type(b, 0), *out = shard_result_type(b, 0);
  uint32_t n = 0, rank = shard_rank(in);
  (void)shard_ints(b, "fft_length", &n);
  for (uint32_t d = 0; d < rank; d++) {
    bool last = d + 1 == rank;
    bool batch = n <= rank && d < rank - n;
    shard_all(b, d, in->dims[d], batch ? SHARD_PASS : SHARD_REPLICATION,
              last && !batch && in->dims[d] != shard_dim(out, d));
  }
  return true;
}

/* Scale, offset, mean and variance have one dimension: the feature's. */
bool shard_rule_batch_norm_inference(shard_maker *b) {
  const ir_type *t = shard_tensor_type(b, 0);
  int64_t feature = ir_m_get_int(b->op, "feature_index", 0);
  for (uint32_t d = 0; d < shard_rank(t); d++) {
    uint32_t f = shard_new_factor(b, t->dims[d], SHARD_PASS, false);
    shard_map(b, 0, d, f);
    for (uint32_t i = 1; i < b->op->n_operands && d == feature; i++) shard_map(b, i, 0, f);
    shard_map(b, b->op->n_operands, d, f);
  }
  return true;
}

/* Every device needs the whole state, but may make its own part of the bits. */
bool shard_rule_rng_bit_generator(shard_maker *b) {
  if (b->op->n_results != 2) return false;
  const ir_type *state = shard_tensor_type(b, 0), *out = shard_result_type(b, 1);
  for (uint32_t d = 0; d < shard_rank(state); d++) shard_one(b, d, d, state->dims[d], SHARD_REPLICATION, true);
  for (uint32_t d = 0; d < shard_rank(out); d++)
    shard_map(b, b->op->n_operands + 1, d, shard_new_factor(b, out->dims[d], SHARD_PASS, false));
  return true;
}

/* --- collectives of StableHLO: the dimension they change has a factor on either side --- */

/* One factor for the operands, another for the results: sharding either means communication. */
static void dots_sides(shard_maker *b, int64_t dim) {
  assert(b->op->n_operands > 0 && b->op->n_results > 0);
  shard_all_operands(b, dim, shard_dim(shard_tensor_type(b, 0), dim), SHARD_REPLICATION);
  shard_all_results(b, dim, shard_dim(shard_result_type(b, 0), dim), SHARD_REPLICATION);
}

/* Dimensions that the collective leaves as they are pass through; those that it changes need replication on either
 * side. */
static bool dots_collective(shard_maker *b, int64_t one, int64_t other) {
  if (b->op->n_operands == 0) return false;
  const ir_type *t = shard_tensor_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(t); d++)
    if (d != one && d != other) shard_all(b, d, t->dims[d], SHARD_PASS, false);
  dots_sides(b, one);
  if (other != one) dots_sides(b, other);
  return true;
}

bool shard_rule_all_gather(shard_maker *b) {
  int64_t dim = ir_m_get_int(b->op, "all_gather_dim", 0);
  return dots_collective(b, dim, dim);
}

bool shard_rule_reduce_scatter(shard_maker *b) {
  int64_t dim = ir_m_get_int(b->op, "scatter_dimension", 0);
  return dots_collective(b, dim, dim);
}

/* Where the split and the concatenated dimension are the same one, it has one pair of factors. */
bool shard_rule_all_to_all(shard_maker *b) {
  return dots_collective(b, ir_m_get_int(b->op, "split_dimension", 0), ir_m_get_int(b->op, "concat_dimension", 0));
}

/* Rules of convolutions and of what goes over windows. */

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

/* Neighbouring shards overlap where a window has several elements, so that they exchange halos. */
bool shard_rule_reduce_window(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(t); d++) {
    bool plain = windows_is_plain(b, d);
    shard_all(b, d, t->dims[d], plain ? SHARD_PASS : SHARD_PERMUTATION, !plain && b->conservative);
  }
  return true;
}

/* Tensor 1 is the source: one element for each window, so its dimension has a factor of its own. */
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

/* The input's dimension can be split over windows (the output's size: shards exchange halos) or within them (the
 * kernel's: partial sums). Sizes are capped by what is left of the input's size; a factor of 1 says nothing. */
static void windows_factor(shard_maker *b, windows_spatial *s, int64_t size, bool within) {
  if (size > s->left) size = s->left;
  if (size <= 1) return;
  if (within)
    shard_two(b, s->lhs, s->rhs, SHARD_NO_DIM, size, SHARD_REDUCTION);
  else
    shard_two(b, s->lhs, SHARD_NO_DIM, s->out, size, SHARD_PERMUTATION);
  s->left /= size;
}

/* Of the two factors the larger comes first, as the major one: Shardy's addSpatialDims. */
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

/* The order of factors is Shardy's: batch groups, batch, spatial, feature groups, input features, output features. */
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
  assert(batches > 0 && features > 0);
  shard_two(b, batch, SHARD_NO_DIM, out_batch, shard_dim(out, out_batch), SHARD_PASS);
  if (!b->conservative) windows_spatial_dims(b, dims);
  if (features > 1) shard_two(b, feature, kernel_out, out_feature, features, SHARD_PASS);
  shard_two(b, feature, kernel_in, SHARD_NO_DIM, shard_dim(rhs, kernel_in), SHARD_REDUCTION);
  int64_t rest = shard_dim(out, out_feature) / (batches * features);
  if (rest > 1) shard_two(b, SHARD_NO_DIM, kernel_out, out_feature, rest, SHARD_PASS);
  return true;
}
