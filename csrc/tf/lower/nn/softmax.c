/* Softmax and the losses on it, over the last dimension. */
#include "../windows.h"

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

static ir_value softmax_shift(tfl_op *x, ir_value v) {
  if (!v.op) return v;
  ir_value most = softmax_fold(x, IR_OP_MAXIMUM, v, tfl_lowest(x, (base_dtype)opt_type(v)->dtype));
  return opt_binary(x->rw, IR_OP_SUBTRACT, v, softmax_back(x, most, v));
}

static ir_value softmax_sum(tfl_op *x, ir_value v) {
  return v.op ? softmax_fold(x, IR_OP_ADD, v, tfl_scalar(x, (base_dtype)opt_type(v)->dtype, 0)) : v;
}

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
  product = opt_select(x->rw, tfl_compare(x, "EQ", labels, zero), zero, product);
  tfl_out(x, 0, tfl_cast(x, softmax_sum(x, product), dtype));
  ir_value share = opt_binary(x->rw, IR_OP_DIVIDE, e, softmax_back(x, sum, e));
  tfl_out(x, 1, tfl_cast(x, opt_binary(x->rw, IR_OP_SUBTRACT, share, labels), dtype));
}

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
  const ir_type *t = tfl_in_type(x, 0), *l = tfl_in_type(x, 1);
  if (t->rank != 2 || l->rank != 1 || l->dims[0] != t->dims[0])
    return tfl_fail(x, "logits of rank %u and labels of rank %u: expected [batch, classes] and [batch]", t->rank,
                    l->rank);
  base_dtype dtype = (base_dtype)t->dtype, sum = tfl_sum_dtype(dtype), index = (base_dtype)l->dtype;
  ir_value logits = softmax_in(x, 0), labels = tfl_in(x, 1);
  ir_value places = tfl_iota(x, index, 2, t->dims, 1), one = tfl_full(x, sum, 2, t->dims, 1);
  ir_value here = opt_compare(x->rw, "EQ", NULL, places, tfl_along(x, labels, places, 0));
  ir_value hot = opt_select(x->rw, here, one, tfl_full(x, sum, 2, t->dims, 0));
  ir_value low = tfl_compare(x, "LT", labels, tfl_like(x, labels, 0));
  ir_value high = tfl_compare(x, "GE", labels, tfl_like(x, labels, (double)t->dims[1]));
  ir_value bad = opt_binary(x->rw, IR_OP_OR, low, high), nan = tfl_full(x, sum, 2, t->dims, __builtin_nan(""));
  softmax_losses(x, logits, opt_select(x->rw, tfl_along(x, bad, places, 0), nan, hot), dtype);
  return x->status;
}
