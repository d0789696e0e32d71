/* Numbers rounded to those that a quantised one can stand for: QuantizeAndDequantize. Unlike fake_quant.c the range is
 * made symmetric about what 0 stands for. Source: TensorFlow's documentation, its CPU kernels' behaviour. */
#include <float.h>

#include "../row.h"

typedef struct qb_plan {
  ir_value low, high, scale, inverse; /* scalars, or along an axis, broadcast over the values */
  double least, most;                 /* quantised numbers */
} qb_plan;

static ir_value qb_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return tfl_binary(x, opcode, a, b);
}

/* The shape that an end of the range gets: along the axis, or a scalar. */
static ir_value qb_end(tfl_op *x, ir_value end, int64_t axis, const ir_type *t) {
  int64_t dims[TFL_MOST_DIMS];
  if (!end.op || axis < 0) return end;
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d == axis ? t->dims[d] : 1;
  return tfl_reshape(x, end, t->rank, dims);
}

static int qb_axis(tfl_op *x, const ir_type *t, int64_t *axis) {
  *axis = tfl_attr_int(x, "axis");
  if (*axis >= -1 && *axis < (int64_t)t->rank) return x->status;
  return tfl_fail(x, "axis %lld of a value of rank %u", (long long)*axis, t->rank);
}

/* Found in the values where the node gives none. */
static int qb_range(tfl_op *x, ir_value v, int64_t axis, qb_plan *p) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t over[TFL_MOST_DIMS];
  uint32_t n = 0;
  for (uint32_t d = 0; d < t->rank; d++)
    if (d != axis) over[n++] = d;
  bool given = tfl_attr_bool(x, "range_given");
  if (!v.op || x->status) return x->status;
  ir_value low =
      given ? tfl_in(x, 1) : opt_reduce(x->rw, IR_OP_MINIMUM, v, tfl_highest(x, (base_dtype)t->dtype), n, over);
  ir_value high =
      given ? tfl_in(x, 2) : opt_reduce(x->rw, IR_OP_MAXIMUM, v, tfl_lowest(x, (base_dtype)t->dtype), n, over);
  p->low = qb_end(x, low, axis, t);
  p->high = qb_end(x, high, axis, t);
  return x->status;
}

/* quantised / end, where they lie on the same side of 0 */
static ir_value qb_side(tfl_op *x, double quantised, ir_value end) {
  ir_value zero = tfl_like(x, end, 0), q = tfl_like(x, end, quantised);
  ir_value with = tfl_compare(x, "GT", tfl_with(x, IR_OP_MULTIPLY, end, quantised), zero);
  return opt_select(x->rw, with, qb_op(x, IR_OP_DIVIDE, q, end), tfl_like(x, end, FLT_MAX));
}

/* The side with the smaller scale decides; the other end of the range follows. */
static void qb_scales(tfl_op *x, qb_plan *p) {
  if (!p->low.op || !p->high.op) return;
  ir_value at_low = qb_side(x, p->least, p->low), at_high = qb_side(x, p->most, p->high);
  ir_value lower = tfl_compare(x, "LT", at_low, at_high);
  ir_value least = tfl_like(x, p->low, p->least), most = tfl_like(x, p->low, p->most);
  ir_value by_low = p->least != 0 ? qb_op(x, IR_OP_DIVIDE, p->low, least) : tfl_like(x, p->low, 0);
  ir_value by_high = qb_op(x, IR_OP_DIVIDE, p->high, most);
  p->scale = opt_select(x->rw, lower, at_low, at_high);
  p->inverse = opt_select(x->rw, lower, by_low, by_high);
  p->low = opt_select(x->rw, lower, p->low, qb_op(x, IR_OP_MULTIPLY, least, p->inverse));
  p->high = opt_select(x->rw, lower, qb_op(x, IR_OP_MULTIPLY, most, p->inverse), p->high);
}

static ir_value qb_round(tfl_op *x, ir_value v) {
  if (tfl_attr_is(x, "round_mode", "HALF_UP")) return opt_unary(x->rw, IR_OP_FLOOR, tfl_with(x, IR_OP_ADD, v, 0.5));
  return opt_unary(x->rw, IR_OP_ROUND_NEAREST_EVEN, v);
}

/* arg 3: the number of bits is an input, and there is no round_mode. */
int tfl_row_quantize_back(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  bool third = x->row->arg == 3, is_signed = tfl_attr_bool(x, "signed_input"),
       narrow = tfl_attr_bool(x, "narrow_range");
  int64_t bits = third ? 0 : tfl_attr_int(x, "num_bits"), axis = -1;
  if (third) TRY(tfl_int(x, 3, &bits));
  if (bits < 1 + is_signed || bits > 62) return tfl_fail(x, "%lld bits can't be quantised to", (long long)bits);
  TRY(qb_axis(x, t, &axis));
  double half = (double)((int64_t)1 << (bits - is_signed));
  qb_plan p = {.least = is_signed ? (narrow ? 1 - half : -half) : 0, .most = half - 1};
  ir_value v = tfl_in(x, 0);
  TRY(qb_range(x, v, axis, &p));
  qb_scales(x, &p);
  if (!p.scale.op || !v.op) return x->status;
  if (tfl_attr_bool(x, "range_given")) v = qb_op(x, IR_OP_MAXIMUM, qb_op(x, IR_OP_MINIMUM, v, p.high), p.low);
  v = qb_op(x, IR_OP_MULTIPLY, v, p.scale);
  v = third ? opt_unary(x->rw, IR_OP_ROUND_NEAREST_EVEN, v) : qb_round(x, v);
  tfl_out(x, 0, qb_op(x, IR_OP_MULTIPLY, v, p.inverse));
  return x->status;
}

/* QuantizeAndDequantizeV4Grad(gradient, value, low, high): goes through within the range. */
int tfl_row_quantize_back_gradient(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 1);
  int64_t axis = -1;
  TRY(qb_axis(x, t, &axis));
  ir_value g = tfl_in(x, 0), v = tfl_in(x, 1), low = tfl_in(x, 2), high = tfl_in(x, 3);
  if (!g.op || !v.op || !low.op || !high.op) return x->status;
  if (opt_type(g) != t) return tfl_fail(x, "the gradient has not the value's type");
  ir_value in = opt_binary(x->rw, IR_OP_AND, tfl_compare(x, "GE", v, qb_end(x, low, axis, t)),
                           tfl_compare(x, "LE", v, qb_end(x, high, axis, t)));
  if (!in.op) return x->status;
  tfl_out(x, 0, opt_select(x->rw, in, g, tfl_like(x, g, 0)));
  tfl_out(x, 1, tfl_like(x, low, 0));
  tfl_out(x, 2, tfl_like(x, high, 0));
  return x->status;
}
