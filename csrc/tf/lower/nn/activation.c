/* Activations of neural networks, softmax, and their gradients as TensorFlow's own ops for them. */
#include "../row.h"
#include "../windows.h"

/* --- activations --- */

/* Klambauer et al., "Self-normalizing neural networks" (2017): scale, and scale times alpha. */
static const double selu_scale = 1.0507009873554804934193349852946;
static const double selu_scale_alpha = 1.7580993408473768599402175208123;

static ir_value act_mul(tfl_op *x, ir_value a, ir_value b) {
  return opt_binary(x->rw, IR_OP_MULTIPLY, a, b);
}

/* k - v */
static ir_value act_from(tfl_op *x, double k, ir_value v) {
  return opt_binary(x->rw, IR_OP_SUBTRACT, tfl_like(x, v, k), v);
}

/* v <direction> k */
static ir_value act_is(tfl_op *x, ir_direction direction, ir_value v, double k) {
  return tfl_compare(x, direction, v, tfl_like(x, v, k));
}

int tfl_row_relu(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_MAXIMUM, v, tfl_like(x, v, 0)));
  return x->status;
}

int tfl_row_relu6(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  ir_value up = opt_binary(x->rw, IR_OP_MAXIMUM, v, tfl_like(x, v, 0));
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_MINIMUM, up, tfl_like(x, v, 6)));
  return x->status;
}

/* alpha v below 0, whatever alpha's sign. */
int tfl_row_leaky_relu(tfl_op *x) {
  ir_value v = tfl_in(x, 0), low = tfl_with(x, IR_OP_MULTIPLY, v, tfl_attr_float(x, "alpha"));
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_GT, v, 0), v, low));
  return x->status;
}

/* expm1 keeps small values exact. */
int tfl_row_elu(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_LT, v, 0), opt_unary(x->rw, IR_OP_EXPM1, v), v));
  return x->status;
}

int tfl_row_selu(tfl_op *x) {
  ir_value v = tfl_in(x, 0), low = tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_EXPM1, v), selu_scale_alpha);
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_LT, v, 0), low, tfl_with(x, IR_OP_MULTIPLY, v, selu_scale)));
  return x->status;
}

/* log(1 + exp(v)): v itself where that is as exact, exp(v) where 1 + exp(v) would be 1. */
int tfl_row_softplus(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  const base_dtype_info *t = base_dtype_of((base_dtype)opt_type(v)->dtype);
  double threshold = -(double)t->mantissa_bits * 0.69314718055994530942 + 2;
  ir_value e = opt_unary(x->rw, IR_OP_EXP, v), middle = opt_unary(x->rw, IR_OP_LOG1P, e);
  ir_value low = opt_select(x->rw, act_is(x, IR_DIRECTION_LT, v, threshold), e, middle);
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_GT, v, -threshold), v, low));
  return x->status;
}

/* 1 + |v| */
static ir_value act_one_more_than_abs(tfl_op *x, ir_value v) {
  return tfl_with(x, IR_OP_ADD, opt_unary(x->rw, IR_OP_ABS, v), 1);
}

int tfl_row_softsign(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, v, act_one_more_than_abs(x, v)));
  return x->status;
}

/* --- gradients: of the output (dy) and what the op took (v) or gave (y) --- */

/* Inputs 0 and 1, of one type; false after a failure. */
static bool act_pair(tfl_op *x, ir_value *a, ir_value *b) {
  *a = tfl_in(x, 0);
  *b = tfl_in(x, 1);
  if (a->op && b->op && opt_type(*a) != opt_type(*b)) tfl_fail(x, "its inputs have two shapes");
  return a->op && b->op && !x->status;
}

/* arg: the value where it is cut off above (Relu6Grad), or 0. */
int tfl_row_relu_grad(tfl_op *x) {
  ir_value dy, v;
  if (!act_pair(x, &dy, &v)) return x->status;
  ir_value on = act_is(x, IR_DIRECTION_GT, v, 0);
  if (x->row->arg) on = opt_binary(x->rw, IR_OP_AND, on, act_is(x, IR_DIRECTION_LT, v, x->row->arg));
  tfl_out(x, 0, opt_select(x->rw, on, dy, tfl_like(x, dy, 0)));
  return x->status;
}

int tfl_row_leaky_relu_grad(tfl_op *x) {
  ir_value dy, v;
  if (!act_pair(x, &dy, &v)) return x->status;
  ir_value low = tfl_with(x, IR_OP_MULTIPLY, dy, tfl_attr_float(x, "alpha"));
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_GT, v, 0), dy, low));
  return x->status;
}

/* Of the op's output y: exp(v) is y + alpha. arg 1: SeluGrad. */
int tfl_row_elu_grad(tfl_op *x) {
  ir_value dy, y;
  if (!act_pair(x, &dy, &y)) return x->status;
  ir_value low = act_mul(x, tfl_with(x, IR_OP_ADD, y, x->row->arg ? selu_scale_alpha : 1), dy);
  ir_value high = x->row->arg ? tfl_with(x, IR_OP_MULTIPLY, dy, selu_scale) : dy;
  tfl_out(x, 0, opt_select(x->rw, act_is(x, IR_DIRECTION_LT, y, 0), low, high));
  return x->status;
}

/* dy / (1 + exp(-v)) */
int tfl_row_softplus_grad(tfl_op *x) {
  ir_value dy, v;
  if (!act_pair(x, &dy, &v)) return x->status;
  ir_value e = opt_unary(x->rw, IR_OP_EXP, opt_unary(x->rw, IR_OP_NEGATE, v));
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, dy, tfl_with(x, IR_OP_ADD, e, 1)));
  return x->status;
}

/* dy / (1 + |v|)^2 */
int tfl_row_softsign_grad(tfl_op *x) {
  ir_value dy, v;
  if (!act_pair(x, &dy, &v)) return x->status;
  ir_value a = act_one_more_than_abs(x, v);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, dy, act_mul(x, a, a)));
  return x->status;
}

/* Of what gave y: conj(y) counts where y is complex. */
static bool act_output_pair(tfl_op *x, ir_value *y, ir_value *dy) {
  if (!act_pair(x, y, dy)) return false;
  if (base_dtype_is_complex((base_dtype)opt_type(*y)->dtype)) *y = opt_unary(x->rw, IR_OP_CONJ, *y);
  return true;
}

/* dy y (1 - y) */
int tfl_row_sigmoid_grad(tfl_op *x) {
  ir_value y, dy;
  if (act_output_pair(x, &y, &dy)) tfl_out(x, 0, act_mul(x, act_mul(x, dy, y), act_from(x, 1, y)));
  return x->status;
}

/* dy (1 - y^2) */
int tfl_row_tanh_grad(tfl_op *x) {
  ir_value y, dy;
  if (act_output_pair(x, &y, &dy)) tfl_out(x, 0, act_mul(x, dy, act_from(x, 1, act_mul(x, y, y))));
  return x->status;
}

/* -dy y^3 / 2, multiplied in this order */
int tfl_row_rsqrt_grad(tfl_op *x) {
  ir_value y, dy;
  if (!act_output_pair(x, &y, &dy)) return x->status;
  ir_value half = tfl_with(x, IR_OP_MULTIPLY, act_mul(x, dy, y), -0.5);
  tfl_out(x, 0, act_mul(x, half, act_mul(x, y, y)));
  return x->status;
}

/* dy / (2 y) */
int tfl_row_sqrt_grad(tfl_op *x) {
  ir_value y, dy;
  if (act_output_pair(x, &y, &dy))
    tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, tfl_with(x, IR_OP_MULTIPLY, dy, 0.5), y));
  return x->status;
}

/* -dy y^2 */
int tfl_row_reciprocal_grad(tfl_op *x) {
  ir_value y, dy;
  if (act_output_pair(x, &y, &dy)) tfl_out(x, 0, opt_unary(x->rw, IR_OP_NEGATE, act_mul(x, dy, act_mul(x, y, y))));
  return x->status;
}

/* --- softmax and the losses on it --- */

/* Over the last dimension, in which Softmax and its losses work. */
static ir_value softmax_fold(tfl_op *x, ir_opcode opcode, ir_value v, ir_value init) {
  int64_t last = v.op ? (int64_t)opt_type(v)->rank - 1 : 0;
  return opt_reduce(x->rw, opcode, v, init, 1, &last);
}

/* What is left of a fold, in every place of v's last dimension. */
static ir_value softmax_back(tfl_op *x, ir_value folded, ir_value v) {
  int64_t dims[TFL_MOST_DIMS];
  if (!folded.op || !v.op) return (ir_value){NULL, 0};
  const ir_type *t = opt_type(v);
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d;
  return opt_broadcast_in_dim(x->rw, folded, opt_with_dtype(x->rw, t, (base_dtype)opt_type(folded)->dtype), dims);
}

/* v less its largest element, so that exp does not overflow. */
static ir_value softmax_shift(tfl_op *x, ir_value v) {
  if (!v.op) return v;
  ir_value most = softmax_fold(x, IR_OP_MAXIMUM, v, tfl_lowest(x, (base_dtype)opt_type(v)->dtype));
  return opt_binary(x->rw, IR_OP_SUBTRACT, v, softmax_back(x, most, v));
}

static ir_value softmax_sum(tfl_op *x, ir_value v) {
  return v.op ? softmax_fold(x, IR_OP_ADD, v, tfl_scalar(x, (base_dtype)opt_type(v)->dtype, 0)) : v;
}

/* f16 and bf16 are computed in f32. */
static ir_value softmax_in(tfl_op *x, uint32_t i) {
  const ir_type *t = tfl_in_type(x, i);
  if (t->rank == 0) tfl_fail(x, "a scalar: expected one dimension or more");
  return x->status ? (ir_value){NULL, 0} : tfl_cast(x, tfl_in(x, i), tfl_sum_dtype((base_dtype)t->dtype));
}

/* arg: 0 Softmax, 1 LogSoftmax. */
int tfl_row_softmax(tfl_op *x) {
  ir_value v = softmax_shift(x, softmax_in(x, 0)), e = opt_unary(x->rw, IR_OP_EXP, v), sum = softmax_sum(x, e);
  ir_value out = x->row->arg
                     ? opt_binary(x->rw, IR_OP_SUBTRACT, v, softmax_back(x, opt_unary(x->rw, IR_OP_LOG, sum), v))
                     : opt_binary(x->rw, IR_OP_DIVIDE, e, softmax_back(x, sum, e));
  tfl_out(x, 0, tfl_cast(x, out, (base_dtype)tfl_in_type(x, 0)->dtype));
  return x->status;
}

/* loss = sum(labels * (log(sum(exp)) - shifted)), gradient = exp / sum - labels; where a label is 0 the logit does not
 * matter, also where it is infinite. */
static void softmax_losses(tfl_op *x, ir_value logits, ir_value labels, base_dtype dtype) {
  ir_value v = softmax_shift(x, logits), e = opt_unary(x->rw, IR_OP_EXP, v), sum = softmax_sum(x, e);
  ir_value log_sum = softmax_back(x, opt_unary(x->rw, IR_OP_LOG, sum), v);
  ir_value product = opt_binary(x->rw, IR_OP_MULTIPLY, labels, opt_binary(x->rw, IR_OP_SUBTRACT, log_sum, v));
  if (!labels.op || !product.op) return;
  ir_value zero = tfl_like(x, labels, 0);
  product = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, labels, zero), zero, product);
  tfl_out(x, 0, tfl_cast(x, softmax_sum(x, product), dtype));
  ir_value share = opt_binary(x->rw, IR_OP_DIVIDE, e, softmax_back(x, sum, e));
  tfl_out(x, 1, tfl_cast(x, opt_binary(x->rw, IR_OP_SUBTRACT, share, labels), dtype));
}

/* Logits and labels are broadcast to one shape, of rank 2. */
int tfl_row_softmax_loss(tfl_op *x) {
  ir_value logits = softmax_in(x, 0), labels = softmax_in(x, 1);
  base_dtype dtype = (base_dtype)tfl_in_type(x, 0)->dtype;
  tfl_broadcast_pair(x, &logits, &labels);
  if (logits.op && opt_type(logits)->rank != 2)
    return tfl_fail(x, "logits of rank %u: expected 2", opt_type(logits)->rank);
  softmax_losses(x, logits, labels, dtype);
  return x->status;
}

/* Labels are numbers of classes. One that is out of range makes NaNs, as on devices; TensorFlow's CPU refuses it. */
int tfl_row_sparse_softmax_loss(tfl_op *x) {
  assert(x->n_in == 2);
  const ir_type *t = tfl_in_type(x, 0), *l = tfl_in_type(x, 1);
  if (t->rank != 2 || l->rank != 1 || l->dims[0] != t->dims[0])
    return tfl_fail(x, "logits of rank %u and labels of rank %u: expected [batch, classes] and [batch]", t->rank,
                    l->rank);
  base_dtype dtype = (base_dtype)t->dtype, sum = tfl_sum_dtype(dtype), index = (base_dtype)l->dtype;
  ir_value logits = softmax_in(x, 0), labels = tfl_in(x, 1);
  ir_value places = tfl_iota(x, index, 2, t->dims, 1), one = tfl_full(x, sum, 2, t->dims, 1);
  ir_value here = opt_compare(x->rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, places, tfl_along(x, labels, places, 0));
  ir_value hot = opt_select(x->rw, here, one, tfl_full(x, sum, 2, t->dims, 0));
  ir_value low = tfl_compare(x, IR_DIRECTION_LT, labels, tfl_like(x, labels, 0));
  ir_value high = tfl_compare(x, IR_DIRECTION_GE, labels, tfl_like(x, labels, (double)t->dims[1]));
  ir_value bad = opt_binary(x->rw, IR_OP_OR, low, high), nan = tfl_full(x, sum, 2, t->dims, __builtin_nan(""));
  softmax_losses(x, logits, opt_select(x->rw, tfl_along(x, bad, places, 0), nan, hot), dtype);
  return x->status;
}
