/* batch-norm-training, -inference and -grad. Sums run in f64, results round once.
 *
 * The three ops see their operand as [outer, features, inner] and work on one feature at a time. Elements come in
 * blocks, so the job carries the sums from one to the next. */
#include <math.h>

#include "../blocks.h"
#include "../sizes.h"

/* The operand seen as [outer, features, inner]. */
typedef struct norm_view {
  base_dtype type;
  int64_t outer, features, inner;
  size_t bytes;
  double epsilon;
} norm_view;

/* Also the checks: per-feature operands are vectors as long as the feature dimension, batch-norm-grad's
 * last operand is shaped like the first. */
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

/* Element i of v, whatever its float type. */
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

/* What is done with one feature, element by element. */
typedef struct norm_job {
  const norm_view *view;
  interp_value *const *operands;
  interp_value *out;
  int64_t feature;
  double mean, factor, offset; /* out = (x - mean) * factor + offset */
  double sum, squares;         /* of x; of its distance from the mean */
  double sum_g, sum_gd;        /* of the gradient; of its product with that distance */
  double slope;                /* gradient: out = factor * (g - offset - distance * sum_gd / slope) */
} norm_job;

enum { NORM_WORK = 4 /* element operations that an element takes */ };

/* All elements of the job's feature, in blocks. */
static int norm_run(interp_ctx *ctx, norm_job *j, interp_block_fn *fn) {
  return interp_in_heavy_blocks(ctx, j->view->outer * j->view->inner, NORM_WORK, fn, j);
}

/* Elements [begin, end) of the feature. */
static void norm_sum_block(void *ctx, int64_t begin, int64_t end) {
  norm_job *j = ctx;
  for (int64_t i = begin; i < end; i++) j->sum += norm_load(j->view, j->operands[0], norm_at(j->view, j->feature, i));
}

static void norm_square_block(void *ctx, int64_t begin, int64_t end) {
  norm_job *j = ctx;
  for (int64_t i = begin; i < end; i++) {
    double d = norm_load(j->view, j->operands[0], norm_at(j->view, j->feature, i)) - j->mean;
    j->squares += d * d;
  }
}

/* XLA takes E[x^2] - E[x]^2; two passes give the same value with less rounding. No elements: NaN, as 0 / 0 is. */
static int norm_moments(interp_ctx *ctx, norm_job *j, double *variance) {
  double n = (double)(j->view->outer * j->view->inner);
  TRY(norm_run(ctx, j, norm_sum_block));
  j->mean = j->sum / n;
  TRY(norm_run(ctx, j, norm_square_block));
  *variance = j->squares / n;
  return 0;
}

/* Writes out; the sums are done. */
static void norm_apply_block(void *ctx, int64_t begin, int64_t end) {
  const norm_job *j = ctx;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = norm_at(j->view, j->feature, i);
    norm_store(j->view, j->out, at, (norm_load(j->view, j->operands[0], at) - j->mean) * j->factor + j->offset);
  }
}

/* One feature of (x - mean) / sqrt(variance + epsilon) * scale + offset. */
static int norm_apply(interp_ctx *ctx, norm_job *j, double variance) {
  j->factor = norm_load(j->view, j->operands[1], j->feature) / sqrt(variance + j->view->epsilon);
  j->offset = norm_load(j->view, j->operands[2], j->feature);
  return norm_run(ctx, j, norm_apply_block);
}

/* Operands: x, scale, offset, mean, variance. */
int interp_eval_batch_norm_inference(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                     interp_value **out) {
  assert(op->n_operands == 5);
  norm_view view;
  TRY(norm_view_of(ctx, op, operands, &view));
  interp_value *v = interp_array(ctx, view.type, operands[0]->rank, operands[0]->dims);
  if (!v) return base_oom(ctx->err, "batch-norm-inference");
  int status = 0;
  for (int64_t f = 0; f < view.features && status == 0; f++) {
    norm_job j = {.view = &view, .operands = operands, .out = v, .feature = f};
    j.mean = norm_load(&view, operands[3], f);
    status = norm_apply(ctx, &j, norm_load(&view, operands[4], f));
  }
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}

/* One feature: results are the normalised operand, mean and variance. */
static int norm_train_feature(interp_ctx *ctx, norm_job *j, interp_value *const *results) {
  double variance;
  TRY(norm_moments(ctx, j, &variance));
  norm_store(j->view, results[1], j->feature, j->mean);
  norm_store(j->view, results[2], j->feature, variance);
  return norm_apply(ctx, j, variance);
}

/* sum g, and sum g * (x - mean). */
static void norm_grad_sum(void *ctx, int64_t begin, int64_t end) {
  norm_job *j = ctx;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = norm_at(j->view, j->feature, i);
    double g = norm_load(j->view, j->operands[4], at);
    j->sum_g += g;
    j->sum_gd += g * (norm_load(j->view, j->operands[0], at) - j->mean);
  }
}

static void norm_grad_apply(void *ctx, int64_t begin, int64_t end) {
  const norm_job *j = ctx;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = norm_at(j->view, j->feature, i);
    double d = norm_load(j->view, j->operands[0], at) - j->mean, g = norm_load(j->view, j->operands[4], at);
    norm_store(j->view, j->out, at, j->factor * (g - j->offset - d * j->sum_gd / j->slope));
  }
}

/* One feature; operands are x, scale, mean, variance and the output's gradient g. With d = x - mean, s = variance +
 * epsilon: offset' = sum g, scale' = sum g d / sqrt(s), x' = scale / sqrt(s) * (g - sum g / n - d * sum(g d) / (n s)).
 */
static int norm_grad_feature(interp_ctx *ctx, norm_job *j, interp_value *const *results) {
  double n = (double)(j->view->outer * j->view->inner);
  double s = norm_load(j->view, j->operands[3], j->feature) + j->view->epsilon;
  j->mean = norm_load(j->view, j->operands[2], j->feature);
  TRY(norm_run(ctx, j, norm_grad_sum));
  j->factor = norm_load(j->view, j->operands[1], j->feature) / sqrt(s);
  j->offset = j->sum_g / n;
  j->slope = n * s;
  TRY(norm_run(ctx, j, norm_grad_apply));
  norm_store(j->view, results[1], j->feature, j->sum_gd / sqrt(s));
  norm_store(j->view, results[2], j->feature, j->sum_g);
  return 0;
}

typedef int norm_feature_fn(interp_ctx *ctx, norm_job *j, interp_value *const *results);

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
    norm_job j = {.view = &view, .operands = operands, .out = results[0], .feature = f};
    status = fn(ctx, &j, results);
  }
  if (status == 0 && !(*out = interp_tuple(ctx, 3, results))) status = base_oom(ctx->err, "batch normalisation");
  for (uint32_t i = 0; i < 3; i++) interp_release(results[i]);
  return status;
}

/* (normalised, mean, variance): the biased variance, over n. */
int interp_eval_batch_norm_training(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                    interp_value **out) {
  return norm_three(ctx, op, operands, norm_train_feature, out);
}

/* (gradient of x, of scale, of offset). */
int interp_eval_batch_norm_grad(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return norm_three(ctx, op, operands, norm_grad_feature, out);
}
