/* Quantisation: numbers rounded to those that a quantised one can stand for, and numbers of 8 bits themselves. */
#include <float.h>
#include <stdio.h>

#include "../windows.h"
#include "../row.h"

/* --- FakeQuant --- */

/* FakeQuantWithMinMax*: values rounded to the steps that a quantised number would have. The range is moved a
 * little so that 0 is a step ("nudged"). Source: TensorFlow's documentation, its CPU kernels' behaviour. */
typedef struct fq_range {
  ir_value low, high, scale, inverse; /* scalars, or one for each feature */
  ir_value empty;                     /* the range is [0, 0]: everything is 0 */
} fq_range;

static ir_value fq_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return tfl_binary(x, opcode, a, b);
}

/* arg 0: attributes; else inputs `i` and i + 1. */
static int fq_range_of(tfl_op *x, uint32_t i, fq_range *r) {
  assert(x->row->arg >= 0 && x->row->arg <= 2);
  int64_t bits = tfl_attr_int(x, "num_bits");
  if (bits < 2 || bits > 16) return tfl_fail(x, "num_bits %lld: expected 2 to 16", (long long)bits);
  double first = tfl_attr_bool(x, "narrow_range") ? 1 : 0, last = (double)((1 << bits) - 1);
  bool given = x->row->arg == 0;
  ir_value low = given ? tfl_scalar(x, XLAC_F32, tfl_attr_float(x, "min")) : tfl_in(x, i);
  ir_value high = given ? tfl_scalar(x, XLAC_F32, tfl_attr_float(x, "max")) : tfl_in(x, i + 1);
  if (!low.op || !high.op) return x->status;
  if (opt_type(low) != opt_type(high)) return tfl_fail(x, "the ends of the range have not the same type");
  ir_value zero = tfl_like(x, low, 0), start = tfl_like(x, low, first), end = tfl_like(x, low, last);
  r->empty = opt_binary(x->rw, IR_OP_AND, tfl_compare(x, IR_DIRECTION_EQ, low, zero),
                        tfl_compare(x, IR_DIRECTION_EQ, high, zero));
  r->scale = fq_op(x, IR_OP_DIVIDE, fq_op(x, IR_OP_SUBTRACT, high, low), tfl_like(x, low, last - first));
  r->inverse = fq_op(x, IR_OP_DIVIDE, tfl_like(x, low, last - first), fq_op(x, IR_OP_SUBTRACT, high, low));
  ir_value point = fq_op(x, IR_OP_SUBTRACT, start, fq_op(x, IR_OP_DIVIDE, low, r->scale));
  ir_value half = tfl_like(x, low, 0.5), whole = opt_unary(x->rw, IR_OP_FLOOR, fq_op(x, IR_OP_ADD, point, half));
  whole = fq_op(x, IR_OP_MINIMUM, fq_op(x, IR_OP_MAXIMUM, whole, start), end);
  r->low = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, start, whole), r->scale);
  r->high = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, end, whole), r->scale);
  return x->status;
}

/* arg: 0 the range by attributes, 1 by scalars, 2 by a vector with an element for each feature. */
int tfl_row_fake_quant(tfl_op *x) {
  fq_range r;
  TRY(fq_range_of(x, 1, &r));
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  ir_value held = fq_op(x, IR_OP_MINIMUM, fq_op(x, IR_OP_MAXIMUM, v, r.low), r.high);
  ir_value steps = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, held, r.low), r.inverse);
  steps = opt_unary(x->rw, IR_OP_FLOOR, tfl_with(x, IR_OP_ADD, steps, 0.5));
  ir_value out = fq_op(x, IR_OP_ADD, fq_op(x, IR_OP_MULTIPLY, steps, r.scale), r.low);
  if (!out.op) return x->status;
  ir_value empty = tfl_broadcast(x, r.empty, opt_type(out)->rank, opt_type(out)->dims);
  tfl_out(x, 0, opt_select(x->rw, empty, tfl_like(x, out, 0), out));
  return x->status;
}

/* The sum over all dimensions, but for one range a feature over all but the last. */
static ir_value fq_sum(tfl_op *x, ir_value v) {
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  uint32_t rank = opt_type(v)->rank, n = x->row->arg == 2 ? rank - 1 : rank;
  for (uint32_t d = 0; d < n; d++) dims[d] = d;
  return tfl_reduce(x, IR_OP_ADD, v, 0, n, dims);
}

/* Inputs: the gradient, the value, the range. Within the range gradients go through; below they count for its low end,
 * above for its high end. */
int tfl_row_fake_quant_gradient(tfl_op *x) {
  fq_range r;
  TRY(fq_range_of(x, 2, &r));
  ir_value g = tfl_in(x, 0), v = tfl_in(x, 1);
  if (!g.op || !v.op) return x->status;
  if (opt_type(g) != opt_type(v) || (x->row->arg == 2 && opt_type(v)->rank == 0))
    return tfl_fail(x, "the gradient has not the value's type");
  ir_value empty = tfl_broadcast(x, r.empty, opt_type(v)->rank, opt_type(v)->dims), zero = tfl_like(x, g, 0);
  ir_value below = tfl_compare(x, IR_DIRECTION_LT, v, r.low), above = tfl_compare(x, IR_DIRECTION_GT, v, r.high);
  ir_value outside = opt_binary(x->rw, IR_OP_OR, below, above);
  tfl_out(x, 0, opt_select(x->rw, empty, g, opt_select(x->rw, outside, zero, g)));
  if (x->row->arg == 0) return x->status;
  ir_value none = opt_unary(x->rw, IR_OP_NOT, empty);
  tfl_out(x, 1, fq_sum(x, opt_select(x->rw, opt_binary(x->rw, IR_OP_AND, below, none), g, zero)));
  tfl_out(x, 2, fq_sum(x, opt_select(x->rw, opt_binary(x->rw, IR_OP_AND, above, none), g, zero)));
  return x->status;
}

/* --- QuantizeAndDequantize --- */

/* QuantizeAndDequantize: unlike FakeQuant's, the range is made symmetric about what 0 stands for. Source:
 * TensorFlow's documentation, its CPU kernels' behaviour. */
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

/* -1: one range for all. */
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

/* quantised / end, where they are on the same side of 0 */
static ir_value qb_side(tfl_op *x, double quantised, ir_value end) {
  ir_value zero = tfl_like(x, end, 0), q = tfl_like(x, end, quantised);
  ir_value with = tfl_compare(x, IR_DIRECTION_GT, tfl_with(x, IR_OP_MULTIPLY, end, quantised), zero);
  return opt_select(x->rw, with, qb_op(x, IR_OP_DIVIDE, q, end), tfl_like(x, end, FLT_MAX));
}

/* The side with the smaller scale decides; the other end of the range follows. */
static void qb_scales(tfl_op *x, qb_plan *p) {
  if (!p->low.op || !p->high.op) return;
  ir_value at_low = qb_side(x, p->least, p->low), at_high = qb_side(x, p->most, p->high);
  ir_value lower = tfl_compare(x, IR_DIRECTION_LT, at_low, at_high);
  ir_value least = tfl_like(x, p->low, p->least), most = tfl_like(x, p->low, p->most);
  ir_value by_low = p->least != 0 ? qb_op(x, IR_OP_DIVIDE, p->low, least) : tfl_like(x, p->low, 0);
  ir_value by_high = qb_op(x, IR_OP_DIVIDE, p->high, most);
  p->scale = opt_select(x->rw, lower, at_low, at_high);
  p->inverse = opt_select(x->rw, lower, by_low, by_high);
  p->low = opt_select(x->rw, lower, p->low, qb_op(x, IR_OP_MULTIPLY, least, p->inverse));
  p->high = opt_select(x->rw, lower, qb_op(x, IR_OP_MULTIPLY, most, p->inverse), p->high);
}

/* HALF_TO_EVEN, or HALF_UP. */
static ir_value qb_round(tfl_op *x, ir_value v) {
  if (tfl_attr_is(x, "round_mode", "HALF_UP")) return opt_unary(x->rw, IR_OP_FLOOR, tfl_with(x, IR_OP_ADD, v, 0.5));
  return opt_unary(x->rw, IR_OP_ROUND_NEAREST_EVEN, v);
}

/* arg 3: the number of bits is an input, and there is no round_mode. */
int tfl_row_quantize_back(tfl_op *x) {
  assert(x->n_in >= 1);
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
  ir_value in = opt_binary(x->rw, IR_OP_AND, tfl_compare(x, IR_DIRECTION_GE, v, qb_end(x, low, axis, t)),
                           tfl_compare(x, IR_DIRECTION_LE, v, qb_end(x, high, axis, t)));
  if (!in.op) return x->status;
  tfl_out(x, 0, opt_select(x->rw, in, g, tfl_like(x, g, 0)));
  tfl_out(x, 1, tfl_like(x, low, 0));
  tfl_out(x, 2, tfl_like(x, high, 0));
  return x->status;
}

/* --- Uniform --- */

/* Uniformly quantised numbers: real = (quantised - zero point) * scale, for all or for each place along an axis.
 * Their types are integers here. Source: TensorFlow's documentation, its CPU kernels' behaviour. */
typedef struct uni_side {
  ir_value scale, zero; /* f32, over the values' shape */
  double least, most;
} uni_side;

static ir_value uni_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return tfl_binary(x, opcode, a, b);
}

/* A scalar, or one number for each place along the axis. */
static int uni_spread(tfl_op *x, ir_value v, int64_t axis, const ir_type *t, ir_value *out) {
  assert(out != NULL);
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return x->status;
  *out = opt_type(v)->dtype == XLAC_F64 ? v : tfl_cast(x, v, XLAC_F32);
  if (opt_type(v)->rank == 0) return x->status;
  if (axis < 0 || axis >= t->rank || opt_type(v)->rank != 1 || opt_type(v)->dims[0] != t->dims[axis])
    return tfl_fail(x, "scales and zero points are not one for each place along axis %lld", (long long)axis);
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d == axis ? t->dims[d] : 1;
  *out = tfl_reshape(x, *out, t->rank, dims);
  return x->status;
}

/* Inputs i and i + 1: scale, zero point; attributes begin with `prefix`. */
static int uni_side_of(tfl_op *x, uint32_t i, const char *prefix, const ir_type *t, uni_side *s) {
  char name[60];
  const char *const parts[] = {"quantization_axis", "quantization_min_val", "quantization_max_val"};
  int64_t v[3];
  for (int k = 0; k < 3; k++) {
    snprintf(name, sizeof name, "%s%s", prefix, parts[k]);
    v[k] = tfl_attr_int(x, name);
  }
  s->least = (double)v[1];
  s->most = (double)v[2];
  TRY(uni_spread(x, tfl_in(x, i), v[0], t, &s->scale));
  return uni_spread(x, tfl_in(x, i + 1), v[0], t, &s->zero);
}

/* Numbers of 32 bits are exact in f64 only. */
static ir_value uni_real(tfl_op *x, ir_value v, const uni_side *s) {
  ir_value zero = tfl_cast(x, s->zero, XLAC_F64), wide = tfl_cast(x, v, XLAC_F64);
  return uni_op(x, IR_OP_MULTIPLY, uni_op(x, IR_OP_SUBTRACT, wide, zero), tfl_cast(x, s->scale, XLAC_F64));
}

/* Held in the range of quantised numbers, and in the output's type. */
static ir_value uni_held(tfl_op *x, ir_value v, const uni_side *s) {
  if (!v.op) return v;
  v = tfl_with(x, IR_OP_MINIMUM, tfl_with(x, IR_OP_MAXIMUM, v, s->least), s->most);
  return tfl_cast(x, v, tfl_out_dtype(x, 0));
}

/* Halves go up, as they do in arithmetic on whole numbers. */
static ir_value uni_steps(tfl_op *x, ir_value real, const uni_side *s) {
  ir_value v = uni_op(x, IR_OP_DIVIDE, real, tfl_cast(x, s->scale, XLAC_F64));
  return opt_unary(x->rw, IR_OP_FLOOR, tfl_with(x, IR_OP_ADD, v, 0.5));
}

/* Steps and zero point. */
static ir_value uni_whole(tfl_op *x, ir_value real, const uni_side *s) {
  return uni_held(x, uni_op(x, IR_OP_ADD, uni_steps(x, real, s), tfl_cast(x, s->zero, XLAC_F64)), s);
}

/* Halves go away from 0 here, as in the kernel: real numbers, not fixed point. */
int tfl_row_uniform_quantize(tfl_op *x) {
  uni_side s;
  TRY(uni_side_of(x, 1, "", tfl_in_type(x, 0), &s));
  ir_value v = uni_op(x, IR_OP_MULTIPLY, tfl_in(x, 0), uni_op(x, IR_OP_DIVIDE, tfl_scalar(x, XLAC_F32, 1), s.scale));
  v = opt_unary(x->rw, IR_OP_ROUND_NEAREST_AFZ, uni_op(x, IR_OP_ADD, v, s.zero));
  tfl_out(x, 0, uni_held(x, v, &s));
  return x->status;
}

int tfl_row_uniform_dequantize(tfl_op *x) {
  uni_side s;
  TRY(uni_side_of(x, 1, "", tfl_in_type(x, 0), &s));
  tfl_out(x, 0, tfl_cast(x, uni_real(x, tfl_in(x, 0), &s), tfl_out_dtype(x, 0)));
  return x->status;
}

/* Through the real numbers: from one scale to another. */
int tfl_row_uniform_requantize(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  uni_side from, to;
  TRY(uni_side_of(x, 1, "input_", t, &from));
  TRY(uni_side_of(x, 3, "output_", t, &to));
  tfl_out(x, 0, uni_whole(x, uni_real(x, tfl_in(x, 0), &from), &to));
  return x->status;
}

/* Each side is brought to the result's scale, and rounded, by itself. */
int tfl_row_uniform_add(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1), *t = a->rank >= b->rank ? a : b;
  uni_side lhs, rhs, out;
  TRY(uni_side_of(x, 2, "lhs_", a, &lhs));
  TRY(uni_side_of(x, 4, "rhs_", b, &rhs));
  TRY(uni_side_of(x, 6, "output_", t, &out));
  ir_value one = uni_steps(x, uni_real(x, tfl_in(x, 0), &lhs), &out);
  ir_value other = uni_steps(x, uni_real(x, tfl_in(x, 1), &rhs), &out);
  ir_value sum = uni_op(x, IR_OP_ADD, uni_op(x, IR_OP_ADD, one, other), tfl_cast(x, out.zero, XLAC_F64));
  tfl_out(x, 0, uni_held(x, sum, &out));
  return x->status;
}

/* operand, least, most: quantised all three. */
int tfl_row_uniform_clip(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t axis = tfl_attr_int(x, "quantization_axis");
  ir_value ends[2] = {{NULL, 0}, {NULL, 0}};
  for (uint32_t i = 0; i < 2; i++) {
    ir_value end = tfl_in(x, 1 + i);
    TRY(uni_spread(x, tfl_cast(x, end, XLAC_F64), axis, t, &ends[i]));
  }
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F64);
  for (uint32_t i = 0; i < 2; i++) v = uni_op(x, i ? IR_OP_MINIMUM : IR_OP_MAXIMUM, v, tfl_cast(x, ends[i], XLAC_F64));
  tfl_out(x, 0, tfl_cast(x, v, tfl_out_dtype(x, 0)));
  return x->status;
}

/* [m, k] and [k, n]; scales along n of the right side and of the result. Sums are of integers, exact; only the
 * scale is a real number. */
int tfl_row_uniform_dot(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  const tfl_dot d = {.n_contract = 1, .a_contract = {1}, .b_contract = {0}};
  if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[0]) return tfl_fail(x, "its matrices do not fit together");
  int64_t dims[] = {a->dims[0], b->dims[1]};
  const ir_type *t = tfl_type(x, XLAC_S32, 2, dims);
  uni_side lhs, rhs, out;
  TRY(uni_side_of(x, 2, "lhs_", a, &lhs));
  TRY(uni_side_of(x, 4, "rhs_", b, &rhs));
  TRY(uni_side_of(x, 6, "output_", t, &out));
  ir_value left = uni_op(x, IR_OP_SUBTRACT, tfl_cast(x, tfl_in(x, 0), XLAC_S32), tfl_cast(x, lhs.zero, XLAC_S32));
  ir_value right = uni_op(x, IR_OP_SUBTRACT, tfl_cast(x, tfl_in(x, 1), XLAC_S32), tfl_cast(x, rhs.zero, XLAC_S32));
  if (!left.op || !right.op) return x->status;
  ir_value sum = tfl_cast(x, tfl_dot_general(x, left, right, &d, XLAC_S32), XLAC_F64);
  ir_value scale = uni_op(x, IR_OP_MULTIPLY, tfl_cast(x, lhs.scale, XLAC_F64), tfl_cast(x, rhs.scale, XLAC_F64));
  tfl_out(x, 0, uni_whole(x, uni_op(x, IR_OP_MULTIPLY, sum, scale), &out));
  return x->status;
}

/* --- Dequantize --- */

/* The ends of the range are scalars; modes MIN_COMBINED, MIN_FIRST, SCALED. */
int tfl_row_dequantize(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  bool is_signed = base_dtype_is_signed((base_dtype)t->dtype), narrow = tfl_attr_bool(x, "narrow_range");
  if (base_dtype_bytes((base_dtype)t->dtype) != 1 || tfl_attr_int(x, "axis") != -1)
    return tfl_fail(x, "it takes numbers of 8 bits with one range for all");
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F32), low = tfl_in(x, 1), high = tfl_in(x, 2), out = {NULL, 0};
  ir_value range = tfl_binary(x, IR_OP_SUBTRACT, high, low);
  if (tfl_attr_is(x, "mode", "SCALED")) {
    double least = is_signed ? (narrow ? -127 : -128) : 0, most = is_signed ? 127 : 255;
    ir_value scale = tfl_with(x, IR_OP_DIVIDE, high, most);
    if (least != 0) scale = tfl_binary(x, IR_OP_MAXIMUM, scale, tfl_with(x, IR_OP_DIVIDE, low, least));
    out = tfl_binary(x, IR_OP_MULTIPLY, v, scale);
  } else if (tfl_attr_is(x, "mode", "MIN_FIRST")) {
    ir_value step = tfl_with(x, IR_OP_DIVIDE, range, 255), first = tfl_binary(x, IR_OP_DIVIDE, low, step);
    first = tfl_binary(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ROUND_NEAREST_AFZ, first), step);
    if (is_signed) v = tfl_with(x, IR_OP_ADD, v, 128);
    out = tfl_binary(x, IR_OP_ADD, tfl_binary(x, IR_OP_MULTIPLY, v, step), first);
  } else {
    if (is_signed) v = tfl_with(x, IR_OP_ADD, v, 128);
    out = tfl_binary(x, IR_OP_ADD, tfl_binary(x, IR_OP_MULTIPLY, v, tfl_with(x, IR_OP_DIVIDE, range, 255)), low);
  }
  tfl_out(x, 0, tfl_cast(x, out, tfl_out_dtype(x, 0)));
  return x->status;
}
