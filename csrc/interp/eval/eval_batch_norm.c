/* batch-norm-training, -inference and -grad. Sums run in f64, results round once. */
#include <math.h>

#include "../sizes.h"

/* The operand seen as [outer, features, inner]. */
typedef struct norm_view {
  base_dtype type;
  int64_t outer, features, inner;
  size_t bytes;
  double epsilon;
} norm_view;

static int norm_view_of(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, norm_view *view) {
  const interp_value *x = operands[0];
  int64_t feature = ir_get_int(op, IR_ATTR_FEATURE_INDEX, 0);
  if (x->kind != INTERP_ARRAY || !base_dtype_is_float(x->dtype) || feature < 0 || feature >= x->rank)
    return interp_fail(ctx, op, XLAC_E_EVAL, "feature_index must name a dimension of a float operand");
  *view = (norm_view){.type = x->dtype, .outer = 1, .features = x->dims[feature], .inner = 1};
  view->bytes = base_dtype_bytes(x->dtype);
  view->epsilon = ir_get_float(op, IR_ATTR_EPSILON, 0);
  for (uint32_t d = 0; d < x->rank; d++)
    if (d != feature) *(d < feature ? &view->outer : &view->inner) *= x->dims[d];
  bool grad = op->opcode == IR_OP_BATCH_NORM_GRAD;
  for (uint32_t i = 1; i < op->n_operands; i++) {
    const interp_value *v = operands[i];
    bool like = grad && i == 4;
    if (v->kind != INTERP_ARRAY || v->dtype != x->dtype || v->rank != (like ? x->rank : 1))
      return interp_fail(ctx, op, XLAC_E_EVAL, "operand %u must be an array of %u dimensions of type %s", i,
                         like ? x->rank : 1, base_dtype_of(x->dtype)->text);
    TRY(like ? interp_need_same_dims(ctx, op, operands, i, 0)
             : interp_need_same_size(ctx, op, operands, i, 0, 0, (uint32_t)feature));
  }
  return 0;
}

static double norm_load(const norm_view *view, const interp_value *v, int64_t i) {
  return base_load_f64(view->type, (const char *)v->data + (size_t)i * view->bytes);
}

static void norm_store(const norm_view *view, interp_value *v, int64_t i, double value) {
  base_store_f64(view->type, (char *)v->data + (size_t)i * view->bytes, value);
}

/* The index of element j of feature f; j runs over outer * inner. */
static int64_t norm_at(const norm_view *view, int64_t f, int64_t j) {
  assert(f >= 0 && f < view->features && j >= 0 && j < view->outer * view->inner);
  return (j / view->inner * view->features + f) * view->inner + j % view->inner;
}

/* XLA takes E[x^2] - E[x]^2; two passes give the same value with less rounding. No elements: NaN, as 0 / 0 is. */
static void norm_moments(const norm_view *view, const interp_value *x, int64_t f, double *mean, double *variance) {
  int64_t n = view->outer * view->inner;
  double sum = 0, squares = 0;
  for (int64_t j = 0; j < n; j++) sum += norm_load(view, x, norm_at(view, f, j));
  *mean = sum / (double)n;
  for (int64_t j = 0; j < n; j++) {
    double d = norm_load(view, x, norm_at(view, f, j)) - *mean;
    squares += d * d;
  }
  *variance = squares / (double)n;
}

/* One feature of (x - mean) / sqrt(variance + epsilon) * scale + offset. */
static void norm_apply(const norm_view *view, interp_value *const *operands, int64_t f, double mean, double variance,
                       interp_value *out) {
  double factor = norm_load(view, operands[1], f) / sqrt(variance + view->epsilon),
         offset = norm_load(view, operands[2], f);
  for (int64_t j = 0; j < view->outer * view->inner; j++) {
    int64_t at = norm_at(view, f, j);
    norm_store(view, out, at, (norm_load(view, operands[0], at) - mean) * factor + offset);
  }
}

int interp_eval_batch_norm_inference(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                     interp_value **out) {
  assert(op->n_operands == 5);
  norm_view view;
  TRY(norm_view_of(ctx, op, operands, &view));
  interp_value *v = interp_array(ctx, view.type, operands[0]->rank, operands[0]->dims);
  if (!v) return base_oom(ctx->err, "batch-norm-inference");
  int status = 0;
  for (int64_t f = 0; f < view.features && status == 0; f++) {
    norm_apply(&view, operands, f, norm_load(&view, operands[3], f), norm_load(&view, operands[4], f), v);
    status = interp_tick(ctx, (uint64_t)(view.outer * view.inner));
  }
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}

/* One feature: results are the normalised operand, mean and variance. */
static void norm_train_feature(const norm_view *view, interp_value *const *operands, int64_t f,
                               interp_value *const *results) {
  double mean, variance;
  norm_moments(view, operands[0], f, &mean, &variance);
  norm_store(view, results[1], f, mean);
  norm_store(view, results[2], f, variance);
  norm_apply(view, operands, f, mean, variance, results[0]);
}

/* One feature; operands are x, scale, mean, variance and the output's gradient g. With d = x - mean, s = variance +
 * epsilon: offset' = sum g, scale' = sum g d / sqrt(s), x' = scale / sqrt(s) * (g - sum g / n - d * sum(g d) / (n s)).
 */
static void norm_grad_feature(const norm_view *view, interp_value *const *operands, int64_t f,
                              interp_value *const *results) {
  int64_t n = view->outer * view->inner;
  double mean = norm_load(view, operands[2], f), s = norm_load(view, operands[3], f) + view->epsilon;
  double sum_g = 0, sum_gd = 0;
  for (int64_t j = 0; j < n; j++) {
    int64_t at = norm_at(view, f, j);
    double g = norm_load(view, operands[4], at);
    sum_g += g;
    sum_gd += g * (norm_load(view, operands[0], at) - mean);
  }
  double factor = norm_load(view, operands[1], f) / sqrt(s);
  for (int64_t j = 0; j < n; j++) {
    int64_t at = norm_at(view, f, j);
    double d = norm_load(view, operands[0], at) - mean, g = norm_load(view, operands[4], at);
    norm_store(view, results[0], at, factor * (g - sum_g / (double)n - d * sum_gd / ((double)n * s)));
  }
  norm_store(view, results[1], f, sum_gd / sqrt(s));
  norm_store(view, results[2], f, sum_g);
}

typedef void norm_feature_fn(const norm_view *view, interp_value *const *operands, int64_t f,
                             interp_value *const *results);

/* Ops that give (array, per feature, per feature). */
static int norm_three(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, norm_feature_fn *fn,
                      interp_value **out) {
  norm_view view;
  TRY(norm_view_of(ctx, op, operands, &view));
  interp_value *results[3] = {interp_array(ctx, view.type, operands[0]->rank, operands[0]->dims),
                              interp_array(ctx, view.type, 1, &view.features),
                              interp_array(ctx, view.type, 1, &view.features)};
  int status = results[0] && results[1] && results[2] ? 0 : base_oom(ctx->err, "batch normalisation");
  for (int64_t f = 0; f < view.features && status == 0; f++) {
    fn(&view, operands, f, results);
    status = interp_tick(ctx, (uint64_t)(view.outer * view.inner * 2));
  }
  if (status == 0 && !(*out = interp_tuple(ctx, 3, results))) status = base_oom(ctx->err, "batch normalisation");
  for (uint32_t i = 0; i < 3; i++) interp_release(results[i]);
  return status;
}

int interp_eval_batch_norm_training(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                    interp_value **out) {
  return norm_three(ctx, op, operands, norm_train_feature, out);
}

int interp_eval_batch_norm_grad(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return norm_three(ctx, op, operands, norm_grad_feature, out);
}
