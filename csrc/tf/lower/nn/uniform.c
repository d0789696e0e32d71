/* Uniformly quantised numbers: real = (quantised - zero point) * scale, for all or for each place along an axis. Their
 * types are integers here. Source: TensorFlow's documentation, its CPU kernels' behaviour. */
#include <stdio.h>

#include "../row.h"

typedef struct uni_side {
  ir_value scale, zero; /* f32, over the values' shape */
  double least, most;
} uni_side;

static ir_value uni_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return tfl_binary(x, opcode, a, b);
}

/* A scalar, or one number for each place along the axis. */
static int uni_spread(tfl_op *x, ir_value v, int64_t axis, const ir_type *t, ir_value *out) {
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

static ir_value uni_whole(tfl_op *x, ir_value real, const uni_side *s) {
  return uni_held(x, uni_op(x, IR_OP_ADD, uni_steps(x, real, s), tfl_cast(x, s->zero, XLAC_F64)), s);
}

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

/* [m, k] and [k, n]; scales along n of the right side and of the result. */
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
