/* Batch normalisation, local response normalisation, biases. Statistics are made in f32 for images of half
 * precision. Sources: TensorFlow's CPU kernels' behaviour. */
#include "../windows.h"

/* The sum over all dimensions but `feature`. */
static ir_value norm_sum(tfl_op *x, ir_value v, uint32_t feature) {
  int64_t dims[TFL_MOST_DIMS];
  uint32_t n = 0;
  for (uint32_t d = 0; v.op && d < opt_type(v)->rank; d++)
    if (d != feature) dims[n++] = d;
  return tfl_reduce(x, IR_OP_ADD, v, 0, n, dims);
}

/* by_feature has an element for each feature. */
static ir_value norm_op(tfl_op *x, ir_opcode opcode, ir_value v, ir_value by_feature, uint32_t feature) {
  return opt_binary(x->rw, opcode, v, tfl_along(x, by_feature, v, feature));
}

/* rsqrt(variance + epsilon) */
static ir_value norm_inverse(tfl_op *x, ir_value variance) {
  return opt_unary(x->rw, IR_OP_RSQRT, tfl_with(x, IR_OP_ADD, variance, tfl_attr_float(x, "epsilon")));
}

/* What FusedBatchNorm needs to know of an image. */
typedef struct norm_plan {
  uint32_t feature;
  double count; /* of elements a feature */
  base_dtype dtype;
} norm_plan;

/* Statistics are made in f32, also for images of half precision. `image` is the input's number: 0, or 1 for the
 * gradient; the vectors of features follow it. */
static int norm_plan_of(tfl_op *x, uint32_t image, norm_plan *p) {
  assert(image <= 1);
  const ir_type *t = tfl_in_type(x, image);
  tfl_layout l;
  TRY(tfl_layout_of(x, t->rank == 5 ? 3 : 2, t, &l));
  int64_t depth = t->dims[l.feature];
  for (uint32_t i = image == 0 ? 1 : 2; i < (image == 0 ? 3u : 5u); i++) {
    const ir_type *s = tfl_in_type(x, i);
    if (s->rank != 1 || s->dims[0] != depth)
      return tfl_fail(x, "input %u is not a vector of %lld elements, as many as the image has features", i,
                      (long long)depth);
  }
  *p = (norm_plan){l.feature, depth ? (double)(t->count / depth) : 0, (base_dtype)t->dtype};
  return 0;
}

/* Input i in the type that sums are made in. */
static ir_value norm_wide(tfl_op *x, uint32_t i) {
  return tfl_cast(x, tfl_in(x, i), tfl_sum_dtype((base_dtype)tfl_in_type(x, i)->dtype));
}

/* old and the batch's, as exponential_avg_factor says. */
static ir_value norm_average(tfl_op *x, uint32_t old, ir_value now) {
  float factor = tfl_attr_float(x, "exponential_avg_factor");
  if (factor == 1 || !now.op) return now;
  if (tfl_in_type(x, old) != opt_type(now)) return tfl_fail(x, "input %u has not the features' shape", old), now;
  return opt_binary(x->rw, IR_OP_ADD, tfl_with(x, IR_OP_MULTIPLY, tfl_in(x, old), 1 - (double)factor),
                    tfl_with(x, IR_OP_MULTIPLY, now, factor));
}

/* (image - mean) * (inverse * scale) + offset */
static void norm_finish(tfl_op *x, const norm_plan *p, ir_value centred, ir_value inverse) {
  ir_value scaled =
      norm_op(x, IR_OP_MULTIPLY, centred, opt_binary(x->rw, IR_OP_MULTIPLY, inverse, norm_wide(x, 1)), p->feature);
  tfl_out(x, 0, tfl_cast(x, norm_op(x, IR_OP_ADD, scaled, norm_wide(x, 2), p->feature), p->dtype));
}

/* The batch's own statistics; the running variance gets Bessel's correction, the one that normalises does not. */
static void norm_train(tfl_op *x, const norm_plan *p) {
  ir_value image = norm_wide(x, 0);
  ir_value mean = tfl_with(x, IR_OP_DIVIDE, norm_sum(x, image, p->feature), p->count);
  ir_value centred = norm_op(x, IR_OP_SUBTRACT, image, mean, p->feature);
  ir_value squares = norm_sum(x, opt_binary(x->rw, IR_OP_MULTIPLY, centred, centred), p->feature);
  ir_value variance = tfl_with(x, IR_OP_DIVIDE, squares, p->count);
  norm_finish(x, p, centred, norm_inverse(x, variance));
  double rest = p->count > 1 ? p->count - 1 : 1;
  ir_value unbiased = tfl_with(x, IR_OP_MULTIPLY, variance, p->count / rest);
  tfl_out(x, 1, norm_average(x, 3, mean));
  tfl_out(x, 2, norm_average(x, 4, unbiased));
  tfl_out(x, 3, mean);
  tfl_out(x, 4, variance);
}

/* The running statistics, inputs 3 and 4, are also outputs 1 to 4. */
static void norm_infer(tfl_op *x, const norm_plan *p) {
  ir_value mean = norm_wide(x, 3), variance = norm_wide(x, 4);
  if (tfl_in_type(x, 3) != tfl_in_type(x, 1) || tfl_in_type(x, 4) != tfl_in_type(x, 1)) {
    tfl_fail(x, "mean and variance have not the features' shape");
    return;
  }
  norm_finish(x, p, norm_op(x, IR_OP_SUBTRACT, norm_wide(x, 0), mean, p->feature), norm_inverse(x, variance));
  for (uint32_t i = 1; i < 5; i++) tfl_out_same(x, i, i % 2 ? 3 : 4);
}

/* arg: 1 FusedBatchNorm, 2 V2, 3 V3, which has one output more, for GPUs. */
int tfl_row_batch_norm(tfl_op *x) {
  norm_plan p;
  TRY(norm_plan_of(x, 0, &p));
  if (tfl_attr_bool(x, "is_training"))
    norm_train(x, &p);
  else
    norm_infer(x, &p);
  if (x->row->arg == 3) tfl_out(x, 5, tfl_scalar(x, XLAC_F32, 0));
  return x->status;
}

/* Inputs: the result's gradient, image, scale, mean and variance. Outputs 3 and 4 are there for the kernel's sake
 * and empty. */
int tfl_row_batch_norm_gradient(tfl_op *x) {
  norm_plan p;
  TRY(norm_plan_of(x, 1, &p));
  if (tfl_in_type(x, 0) != tfl_in_type(x, 1)) return tfl_fail(x, "the gradient has not the image's type");
  bool train = tfl_attr_bool(x, "is_training");
  ir_value g = norm_wide(x, 0), inverse = norm_inverse(x, norm_wide(x, 4));
  ir_value centred = norm_op(x, IR_OP_SUBTRACT, norm_wide(x, 1), norm_wide(x, 3), p.feature);
  ir_value sum = norm_sum(x, g, p.feature),
           with = norm_sum(x, opt_binary(x->rw, IR_OP_MULTIPLY, g, centred), p.feature);
  ir_value d = g;
  if (train) {
    ir_value slope = opt_binary(x->rw, IR_OP_MULTIPLY, opt_binary(x->rw, IR_OP_MULTIPLY, inverse, inverse),
                                tfl_with(x, IR_OP_DIVIDE, with, p.count));
    d = norm_op(x, IR_OP_SUBTRACT, d, tfl_with(x, IR_OP_DIVIDE, sum, p.count), p.feature);
    d = opt_binary(x->rw, IR_OP_SUBTRACT, d, norm_op(x, IR_OP_MULTIPLY, centred, slope, p.feature));
  }
  d = norm_op(x, IR_OP_MULTIPLY, d, opt_binary(x->rw, IR_OP_MULTIPLY, inverse, norm_wide(x, 2)), p.feature);
  tfl_out(x, 0, tfl_cast(x, d, p.dtype));
  tfl_out(x, 1, opt_binary(x->rw, IR_OP_MULTIPLY, with, inverse));
  tfl_out(x, 2, sum);
  int64_t none = 0;
  for (uint32_t i = 3; i < 5; i++) tfl_out(x, i, tfl_full(x, XLAC_F32, 1, &none, 0));
  return x->status;
}

/* --- biases --- */

/* The dimension of the features. BiasAdd takes images of any rank above 1; BiasAddV1 has no data_format. arg: 0
 * BiasAddV1, 1 BiasAdd, 2 its gradient. */
static int norm_bias_dim(tfl_op *x, uint32_t rank, uint32_t *dim) {
  if (rank < (x->row->arg == 2 ? 1u : 2u)) return tfl_fail(x, "a value of rank %u: expected 2 or more", rank);
  *dim = rank - 1;
  if (x->row->arg && tfl_attr_is(x, "data_format", "NCHW")) *dim = rank < 3 ? rank - 1 : 1;
  return x->status;
}

int tfl_row_bias_add(tfl_op *x) {
  assert(x->n_in == 2);
  uint32_t dim = 0;
  TRY(norm_bias_dim(x, tfl_in_type(x, 0)->rank, &dim));
  tfl_out(x, 0, norm_op(x, IR_OP_ADD, tfl_in(x, 0), tfl_in(x, 1), dim));
  return x->status;
}

int tfl_row_bias_add_gradient(tfl_op *x) {
  uint32_t dim = 0;
  base_dtype dtype = (base_dtype)tfl_in_type(x, 0)->dtype;
  TRY(norm_bias_dim(x, tfl_in_type(x, 0)->rank, &dim));
  tfl_out(x, 0, tfl_cast(x, norm_sum(x, norm_wide(x, 0), dim), dtype));
  return x->status;
}

/* --- local response normalisation --- */

/* The sum over 2 * depth_radius + 1 neighbours along the last dimension. Windows may reach over the ends, where
 * nothing is. */
static ir_value norm_neighbours(tfl_op *x, ir_value v) {
  const ir_type *t = opt_type(v);
  int64_t radius = tfl_attr_int(x, "depth_radius");
  if (!t) return v;
  if (radius < 0 || radius > INT32_MAX || t->rank != 4)
    return tfl_fail(x, "depth_radius %lld on a value of rank %u", (long long)radius, t->rank), v;
  if (radius > t->dims[3]) radius = t->dims[3];
  tfl_window w = {.rank = 4,
                  .size = {1, 1, 1, 2 * radius + 1},
                  .stride = {1, 1, 1, 1},
                  .low = {0, 0, 0, radius},
                  .high = {0, 0, 0, radius}};
  return tfl_reduce_window(x, IR_OP_ADD, v, tfl_scalar(x, (base_dtype)t->dtype, 0), &w);
}

/* bias + alpha * sum of squares */
static ir_value norm_lrn_scale(tfl_op *x, ir_value v) {
  ir_value sum = norm_neighbours(x, opt_binary(x->rw, IR_OP_MULTIPLY, v, v));
  return tfl_with(x, IR_OP_ADD, tfl_with(x, IR_OP_MULTIPLY, sum, tfl_attr_float(x, "alpha")),
                  tfl_attr_float(x, "bias"));
}

/* scale^-beta */
static ir_value norm_lrn_power(tfl_op *x, ir_value scale) {
  return opt_binary(x->rw, IR_OP_POWER, scale, tfl_like(x, scale, -tfl_attr_float(x, "beta")));
}

/* v * (bias + alpha * sum)^-beta */
int tfl_row_lrn(tfl_op *x) {
  ir_value v = norm_wide(x, 0);
  v = opt_binary(x->rw, IR_OP_MULTIPLY, v, norm_lrn_power(x, norm_lrn_scale(x, v)));
  tfl_out(x, 0, tfl_cast(x, v, (base_dtype)tfl_in_type(x, 0)->dtype));
  return x->status;
}

/* Inputs: the result's gradient, the image, the result. */
int tfl_row_lrn_gradient(tfl_op *x) {
  ir_value g = norm_wide(x, 0), image = norm_wide(x, 1), scale = norm_lrn_scale(x, image);
  double k = 2.0 * (double)tfl_attr_float(x, "alpha") * (double)tfl_attr_float(x, "beta");
  ir_value shared = opt_binary(x->rw, IR_OP_DIVIDE, opt_binary(x->rw, IR_OP_MULTIPLY, g, norm_wide(x, 2)), scale);
  ir_value back = opt_binary(x->rw, IR_OP_MULTIPLY, tfl_with(x, IR_OP_MULTIPLY, image, k), norm_neighbours(x, shared));
  ir_value v = opt_binary(x->rw, IR_OP_SUBTRACT, opt_binary(x->rw, IR_OP_MULTIPLY, g, norm_lrn_power(x, scale)), back);
  tfl_out(x, 0, tfl_cast(x, v, (base_dtype)tfl_in_type(x, 0)->dtype));
  return x->status;
}
