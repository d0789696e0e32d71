/* Colours: red, green and blue, or hue, saturation and value, in the last dimension. Source: TensorFlow's
 * documentation, its CPU kernels' behaviour. */
#include "../row.h"

/* One image, a value for each channel. */
typedef struct colour {
  ir_value v[3]; /* red, green, blue; or hue, saturation, value: each [..., 1] */
} colour;

static ir_value colour_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* a <direction> b ? yes : no */
static ir_value colour_pick(tfl_op *x, ir_direction direction, ir_value a, ir_value b, ir_value yes, ir_value no) {
  return opt_select(x->rw, tfl_compare(x, direction, a, b), yes, no);
}

/* In f32, or f64 where the image is. Fails unless there are three colours. */
static int colour_split(tfl_op *x, colour *c) {
  const ir_type *t = tfl_in_type(x, 0);
  if (x->status) return x->status;
  if (t->rank == 0 || t->dims[t->rank - 1] != 3) return tfl_fail(x, "the last dimension is not one of 3 colours");
  ir_value v = tfl_cast(x, tfl_in(x, 0), t->dtype == XLAC_F64 ? XLAC_F64 : XLAC_F32);
  for (int k = 0; k < 3; k++) c->v[k] = tfl_slice(x, v, t->rank - 1, k, k + 1);
  return x->status;
}

/* Back in the image's type. */
static int colour_join(tfl_op *x, const colour *c) {
  uint32_t rank = tfl_in_type(x, 0)->rank;
  tfl_out(x, 0, tfl_cast(x, tfl_concat(x, 3, c->v, rank - 1), tfl_out_dtype(x, 0)));
  return x->status;
}

/* Sixths of the circle start at red, at green, at blue, whichever is the largest. Saturation is 0 for black, hue 0
 * for grey. */
static void colour_to_hsv(tfl_op *x, colour *c) {
  ir_value r = c->v[0], g = c->v[1], b = c->v[2];
  ir_value top = colour_op(x, IR_OP_MAXIMUM, colour_op(x, IR_OP_MAXIMUM, r, g), b);
  ir_value range = colour_op(x, IR_OP_SUBTRACT, top, colour_op(x, IR_OP_MINIMUM, colour_op(x, IR_OP_MINIMUM, r, g), b));
  ir_value zero = tfl_like(x, top, 0), one = tfl_like(x, top, 1);
  if (!range.op) return;
  ir_value norm = colour_op(x, IR_OP_DIVIDE, one, tfl_with(x, IR_OP_MULTIPLY, range, 6));
  ir_value at_r = colour_op(x, IR_OP_MULTIPLY, norm, colour_op(x, IR_OP_SUBTRACT, g, b));
  ir_value at_g = colour_op(x, IR_OP_MULTIPLY, norm, colour_op(x, IR_OP_SUBTRACT, b, r));
  ir_value at_b = colour_op(x, IR_OP_MULTIPLY, norm, colour_op(x, IR_OP_SUBTRACT, r, g));
  at_g = tfl_with(x, IR_OP_ADD, at_g, 2.0 / 6);
  at_b = tfl_with(x, IR_OP_ADD, at_b, 4.0 / 6);
  ir_value hue = colour_pick(x, IR_DIRECTION_EQ, r, top, at_r, colour_pick(x, IR_DIRECTION_EQ, g, top, at_g, at_b));
  hue = colour_pick(x, IR_DIRECTION_GT, range, zero, hue, zero);
  c->v[0] = colour_pick(x, IR_DIRECTION_LT, hue, zero, colour_op(x, IR_OP_ADD, hue, one), hue);
  c->v[1] = colour_pick(x, IR_DIRECTION_GT, top, zero, colour_op(x, IR_OP_DIVIDE, range, top), zero);
  c->v[2] = top;
}

/* sign * |6 hue - at| + shift, held in 0..1 */
static ir_value colour_wave(tfl_op *x, ir_value hue, double at, double sign, double shift) {
  ir_value v = tfl_with(x, IR_OP_SUBTRACT, tfl_with(x, IR_OP_MULTIPLY, hue, 6), at);
  v = tfl_with(x, IR_OP_ADD, tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ABS, v), sign), shift);
  return tfl_with(x, IR_OP_MAXIMUM, tfl_with(x, IR_OP_MINIMUM, v, 1), 0);
}

/* Each channel is a trapezoid wave over the hue, scaled by saturation and value. */
static void colour_to_rgb(tfl_op *x, colour *c) {
  ir_value hue = c->v[0], saturation = c->v[1], value = c->v[2];
  if (!hue.op) return;
  ir_value pale = colour_op(x, IR_OP_SUBTRACT, tfl_like(x, hue, 1), saturation);
  for (int k = 0; k < 3; k++) {
    ir_value wave = k == 0 ? colour_wave(x, hue, 3, 1, -1) : colour_wave(x, hue, k == 1 ? 2 : 4, -1, 2);
    wave = colour_op(x, IR_OP_ADD, pale, colour_op(x, IR_OP_MULTIPLY, saturation, wave));
    c->v[k] = colour_op(x, IR_OP_MULTIPLY, wave, value);
  }
}

/* arg: 0 to hue, saturation and value; 1 back. */
int tfl_row_colours(tfl_op *x) {
  colour c;
  TRY(colour_split(x, &c));
  if (x->row->arg)
    colour_to_rgb(x, &c);
  else
    colour_to_hsv(x, &c);
  return colour_join(x, &c);
}

/* A scalar input, spread over the shape of `like`. */
static ir_value colour_scalar(tfl_op *x, uint32_t i, ir_value like) {
  if (tfl_in_type(x, i)->rank != 0) tfl_fail(x, "input %u is not a scalar", i);
  ir_value v = tfl_in(x, i);
  if (!like.op || x->status) return (ir_value){NULL, 0};
  return tfl_spread(x, tfl_cast(x, v, (base_dtype)opt_type(like)->dtype), like);
}

/* AdjustHue (0) goes round the circle, AdjustSaturation (1) is held in 0..1. */
int tfl_row_adjust_colours(tfl_op *x) {
  assert(x->row->arg == 0 || x->row->arg == 1);
  colour c;
  TRY(colour_split(x, &c));
  colour_to_hsv(x, &c);
  ir_value by = colour_scalar(x, 1, c.v[0]);
  if (!by.op) return x->status;
  if (x->row->arg == 0) {
    ir_value hue = colour_op(x, IR_OP_ADD, c.v[0], by);
    c.v[0] = colour_op(x, IR_OP_SUBTRACT, hue, opt_unary(x->rw, IR_OP_FLOOR, hue));
  } else {
    c.v[1] = colour_op(x, IR_OP_MULTIPLY, c.v[1], by);
    c.v[1] = tfl_with(x, IR_OP_MINIMUM, tfl_with(x, IR_OP_MAXIMUM, c.v[1], 0), 1);
  }
  colour_to_rgb(x, &c);
  return colour_join(x, &c);
}

/* Away from the mean of each image and colour. AdjustContrastv2 computes in f32 whatever the image's type. */
int tfl_row_adjust_contrast(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t dims[TFL_MOST_DIMS];
  if (t->rank < 3) return tfl_fail(x, "an image of rank %u: expected at least 3", t->rank);
  int64_t over[] = {t->rank - 3, t->rank - 2};
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d + 3 == t->rank || d + 2 == t->rank ? 1 : t->dims[d];
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F32);
  double n = (double)t->dims[over[0]] * (double)t->dims[over[1]];
  ir_value mean = tfl_with(x, IR_OP_DIVIDE, tfl_reduce(x, IR_OP_ADD, v, 0, 2, over), n);
  mean = tfl_broadcast(x, tfl_reshape(x, mean, t->rank, dims), t->rank, t->dims);
  ir_value by = colour_scalar(x, 1, v);
  if (!by.op || !mean.op) return x->status;
  v = colour_op(x, IR_OP_MULTIPLY, colour_op(x, IR_OP_SUBTRACT, v, mean), by);
  tfl_out(x, 0, tfl_cast(x, colour_op(x, IR_OP_ADD, v, mean), tfl_out_dtype(x, 0)));
  return x->status;
}
