/* batch-norm-expander: batch normalisations become elementwise ops and sums, in f64 as the reference interpreter
 * computes them, so that inference has its bits; results round once.
 * Requires: nothing. Leaves those whose types are not plain, and those that async starts wrap, which may hold one op
 * only. Preserves: side effects, async chains, control edges, the schedule. */
#include "../effects.h"
#include "hlo_make.h"
#include "../pass.h"

/* One op seen as features and the rest: values of the operand's shape ("wide") and one a feature ("thin"), in f64. */
typedef struct norm_make {
  hlo_maker x;
  const ir_op *op;
  const ir_type *wide, *thin;
  int64_t feature, others[IR_MAX_RANK];
  uint32_t n_others;
  double count; /* of elements a feature */
} norm_make;

/* Operand i in f64. */
static ir_op *norm_input(norm_make *b, uint32_t i) {
  return hlo_convert(&b->x, ir_operand(b->op, i), XLAC_F64);
}

/* One value for each feature, to the operand's shape. */
static ir_op *norm_spread(norm_make *b, ir_op *thin) {
  assert(b->feature >= 0);
  return hlo_broadcast(&b->x, thin, b->wide, 1, &b->feature);
}

/* Over all dimensions but the feature's. */
static ir_op *norm_total(norm_make *b, ir_op *wide) {
  return hlo_sum(&b->x, wide, b->thin, b->n_others, b->others);
}

/* Of no elements: 0 / 0, NaN. */
static ir_op *norm_mean(norm_make *b, ir_op *wide) {
  return hlo_binary(&b->x, IR_OP_DIVIDE, norm_total(b, wide), hlo_splat(&b->x, b->thin, b->count));
}

/* x - mean. */
static ir_op *norm_centred(norm_make *b, ir_op *mean) {
  return hlo_binary(&b->x, IR_OP_SUBTRACT, norm_input(b, 0), norm_spread(b, mean));
}

/* variance + epsilon */
static ir_op *norm_with_epsilon(norm_make *b, ir_op *variance) {
  return hlo_binary(&b->x, IR_OP_ADD, variance, hlo_splat(&b->x, b->thin, ir_get_float(b->op, IR_ATTR_EPSILON, 0)));
}

/* scale / sqrt(variance + epsilon). */
static ir_op *norm_factor(norm_make *b, ir_op *with_epsilon) {
  return hlo_binary(&b->x, IR_OP_DIVIDE, norm_input(b, 1), hlo_unary(&b->x, IR_OP_SQRT, with_epsilon));
}

/* Rounded to the operand's type. */
static ir_op *norm_output(norm_make *b, ir_op *value) {
  return hlo_convert(&b->x, value, (base_dtype)ir_operand_type(b->op, 0)->dtype);
}

/* (x - mean) * factor + offset. */
static ir_op *norm_apply_to(norm_make *b, ir_op *mean, ir_op *variance) {
  ir_op *factor = norm_factor(b, norm_with_epsilon(b, variance));
  ir_op *scaled = hlo_binary(&b->x, IR_OP_MULTIPLY, norm_centred(b, mean), norm_spread(b, factor));
  return norm_output(b, hlo_binary(&b->x, IR_OP_ADD, scaled, norm_spread(b, norm_input(b, 2))));
}

static ir_op *norm_expand_inference(norm_make *b) {
  return norm_apply_to(b, norm_input(b, 3), norm_input(b, 4));
}

/* The variance is that of the whole population: divided by n, not n - 1. */
static ir_op *norm_expand_training(norm_make *b) {
  ir_op *mean = norm_mean(b, norm_input(b, 0)), *d = norm_centred(b, mean);
  ir_op *variance = norm_mean(b, hlo_binary(&b->x, IR_OP_MULTIPLY, d, d));
  ir_op *results[] = {norm_apply_to(b, mean, variance), norm_output(b, mean), norm_output(b, variance)};
  return hlo_tuple(&b->x, b->op->type, results);
}

/* With d = x - mean, s = variance + epsilon: offset' = sum g, scale' = sum g d / sqrt(s),
 * x' = scale / sqrt(s) * (g - sum g / n - d * sum(g d) / (n s)). */
static ir_op *norm_expand_grad(norm_make *b) {
  hlo_maker *x = &b->x;
  ir_op *g = norm_input(b, 4), *d = norm_centred(b, norm_input(b, 2)), *s = norm_with_epsilon(b, norm_input(b, 3));
  ir_op *sum_g = norm_total(b, g), *sum_gd = norm_total(b, hlo_binary(x, IR_OP_MULTIPLY, g, d));
  ir_op *n = hlo_splat(x, b->thin, b->count), *root = hlo_unary(x, IR_OP_SQRT, s);
  ir_op *factor = norm_factor(b, s), *mean_g = hlo_binary(x, IR_OP_DIVIDE, sum_g, n);
  ir_op *left = hlo_binary(x, IR_OP_SUBTRACT, g, norm_spread(b, mean_g));
  ir_op *right = hlo_binary(x, IR_OP_DIVIDE, hlo_binary(x, IR_OP_MULTIPLY, d, norm_spread(b, sum_gd)),
                            norm_spread(b, hlo_binary(x, IR_OP_MULTIPLY, n, s)));
  ir_op *inner = hlo_binary(x, IR_OP_SUBTRACT, left, right);
  ir_op *results[] = {norm_output(b, hlo_binary(x, IR_OP_MULTIPLY, norm_spread(b, factor), inner)),
                      norm_output(b, hlo_binary(x, IR_OP_DIVIDE, sum_gd, root)), norm_output(b, sum_g)};
  return hlo_tuple(x, b->op->type, results);
}

/* All operands and results of one float type, so that one conversion at either end suffices. */
static bool norm_may_expand(const opt_facts *facts, const ir_op *op) {
  const ir_type *t = op->n_operands ? ir_operand_type(op, 0) : NULL;
  int64_t feature = ir_get_int(op, IR_ATTR_FEATURE_INDEX, 0);
  if (!t || opt_in_edge(facts, op) || !base_dtype_is_float((base_dtype)t->dtype)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!hlo_is_plain(ir_operand_type(op, i)) || ir_operand_type(op, i)->dtype != t->dtype) return false;
  for (uint32_t i = 0; ir_is_tuple(op->type) && i < op->type->n_elements; i++)
    if (!hlo_is_plain(op->type->elements[i])) return false;
  return feature >= 0 && feature < t->rank;
}

/* The maker is kept from op to op: it remembers the sums made. */
static bool norm_prepare(norm_make *b, ir_module *m, const ir_op *op) {
  const ir_type *t = ir_operand_type(op, 0);
  b->x.m = m;
  b->x.before = op;
  b->op = op;
  b->n_others = 0;
  b->count = 1;
  b->feature = ir_get_int(op, IR_ATTR_FEATURE_INDEX, 0);
  b->wide = ir_tensor_default(m, XLAC_F64, t->rank, t->dims, NULL);
  b->thin = ir_tensor_default(m, XLAC_F64, 1, &t->dims[b->feature], NULL);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d == b->feature) continue;
    b->others[b->n_others++] = d;
    b->count *= (double)t->dims[d];
  }
  return b->wide && b->thin;
}

/* norm_is_one has let nothing else through. */
static ir_op *norm_expand(norm_make *b) {
  switch (b->op->opcode) {
    case IR_OP_BATCH_NORM_INFERENCE:
      return norm_expand_inference(b);
    case IR_OP_BATCH_NORM_TRAINING:
      return norm_expand_training(b);
    default:
      return norm_expand_grad(b);
  }
}

static bool norm_is_one(const ir_op *op) {
  return op->opcode == IR_OP_BATCH_NORM_INFERENCE || op->opcode == IR_OP_BATCH_NORM_TRAINING ||
         op->opcode == IR_OP_BATCH_NORM_GRAD;
}

int opt_batch_norm_expander(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  /* One maker for all: it remembers the computations for sums. */
  norm_make b = {.op = NULL};
  opt_facts facts;
  bool ok = true;
  TRY(opt_facts_make(&facts, m, err));
  const uint8_t *wrapped = opt_called_by(m, &facts.arena, IR_OP_ASYNC_START);
  ok = wrapped != NULL;
  for (uint32_t i = 0; i < facts.n_order && ok; i++) {
    IR_FOR_OPS_SAFE(op, facts.order[i]) {
      if (!ok || wrapped[op->parent->id] || !norm_is_one(op) || !norm_may_expand(&facts, op)) continue;
      ok = norm_prepare(&b, m, op);
      ir_op *with = ok ? norm_expand(&b) : NULL;
      ok = ok && !b.x.failed && with && ir_replace_uses(op, with);
      if (ok) ir_op_remove(op);
    }
  }
  opt_facts_free(&facts);
  return ok ? 0 : base_oom(err, "batch-norm-expander");
}
