/* Resizing of images. */
#include "../windows.h"

/* --- resizing: NHWC --- */

typedef struct images_axis {
  int64_t in, out;
  int32_t *low, *high; /* for each place in the result: what it lies between */
  float *way;          /* from low to high */
} images_axis;

static float images_scale(int64_t in, int64_t out, bool corners) {
  return corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

/* Where place i of the result lies; in f32, as TensorFlow has it. */
static float images_place(const images_axis *a, int64_t i, bool corners, bool half) {
  float scale = images_scale(a->in, a->out, corners);
  return half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

static int images_axis_make(tfl_op *x, int64_t in, int64_t out, images_axis *a) {
  *a = (images_axis){.in = in, .out = out};
  if (in < 1 || out < 1 || in > INT32_MAX || out > INT32_MAX)
    return tfl_fail(x, "an image of %lld resized to %lld", (long long)in, (long long)out);
  a->low = BASE_ARRAY(x->arena, int32_t, (size_t)out);
  a->high = BASE_ARRAY(x->arena, int32_t, (size_t)out);
  a->way = BASE_ARRAY(x->arena, float, (size_t)out);
  return a->low && a->high && a->way ? 0 : (x->status = base_oom(x->err, "lowering"));
}

static void images_between(images_axis *a, bool corners, bool half) {
  for (int64_t i = 0; i < a->out; i++) {
    float at = images_place(a, i, corners, half), floor = __builtin_floorf(at);
    int64_t low = floor < 0 ? 0 : (int64_t)floor, high = (int64_t)__builtin_ceilf(at);
    a->low[i] = (int32_t)(low < a->in ? low : a->in - 1);
    a->high[i] = (int32_t)(high < 0 ? 0 : high < a->in ? high : a->in - 1);
    a->way[i] = at - floor;
  }
}

static void images_nearest(images_axis *a, bool corners, bool half) {
  float scale = images_scale(a->in, a->out, corners);
  for (int64_t i = 0; i < a->out; i++) {
    float at = half ? ((float)i + 0.5f) * scale : (float)i * scale;
    int64_t near = (int64_t)(corners ? __builtin_roundf(at) : __builtin_floorf(at));
    a->low[i] = a->high[i] = (int32_t)(near < 0 ? 0 : near < a->in ? near : a->in - 1);
    a->way[i] = 0;
  }
}

/* Along dimension d: low + (high - low) * way. */
static ir_value images_lerp(tfl_op *x, ir_value v, uint32_t d, const images_axis *a, bool nearest) {
  ir_value low = tfl_take(x, v, tfl_constant_i32(x, 1, &a->out, a->low), d, 0);
  if (nearest || !low.op) return low;
  ir_value high = tfl_take(x, v, tfl_constant_i32(x, 1, &a->out, a->high), d, 0);
  ir_value way = tfl_along(x, tfl_constant_f32(x, 1, &a->out, a->way), low, d);
  return opt_binary(x->rw, IR_OP_ADD, low,
                    opt_binary(x->rw, IR_OP_MULTIPLY, opt_binary(x->rw, IR_OP_SUBTRACT, high, low), way));
}

static int images_axes(tfl_op *x, const int64_t *in, const int64_t *out, images_axis *axes) {
  bool corners = tfl_attr_bool(x, "align_corners"), half = tfl_attr_bool(x, "half_pixel_centers");
  for (int i = 0; i < 2; i++) {
    TRY(images_axis_make(x, in[i], out[i], &axes[i]));
    if (x->row->arg)
      images_nearest(&axes[i], corners, half);
    else
      images_between(&axes[i], corners, half);
  }
  return x->status;
}

int tfl_image_sizes(tfl_op *x, const int64_t **sizes) {
  uint32_t rank = tfl_in_type(x, 0)->rank, n = 0;
  TRY(tfl_ints(x, 1, sizes, &n));
  return rank == 4 && n == 2 ? 0 : tfl_fail(x, "an image of rank %u and %u sizes: expected 4 and 2", rank, n);
}

/* arg: 0 bilinear, whose result is f32; 1 nearest. */
int tfl_row_resize(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *size = NULL;
  images_axis axes[2];
  TRY(tfl_image_sizes(x, &size));
  TRY(images_axes(x, t->dims + 1, size, axes));
  ir_value v = x->row->arg ? tfl_in(x, 0) : tfl_cast(x, tfl_in(x, 0), XLAC_F32);
  v = images_lerp(x, v, 2, &axes[1], x->row->arg);
  tfl_out(x, 0, images_lerp(x, v, 1, &axes[0], x->row->arg));
  return x->status;
}

/* [out, in] weights of an axis, for the gradients: what each place of the result takes of each place of the image. */
static ir_value images_weights(tfl_op *x, const images_axis *a) {
  int64_t dims[] = {a->out, a->in};
  if (a->out > (1 << 24) / a->in)
    return tfl_fail(x, "an image of %lld by %lld is too large", (long long)a->in, (long long)a->out),
           (ir_value){NULL, 0};
  float *w = BASE_ARRAY(x->arena, float, (size_t)(a->out * a->in));
  if (!w) return x->status = base_oom(x->err, "lowering"), (ir_value){NULL, 0};
  for (int64_t i = 0; i < a->out * a->in; i++) w[i] = 0;
  for (int64_t i = 0; i < a->out; i++) {
    w[i * a->in + a->low[i]] += 1 - a->way[i];
    w[i * a->in + a->high[i]] += a->way[i];
  }
  return tfl_constant_f32(x, 2, dims, w);
}

/* The sum over dimension d of v, by the weights; the new dimension takes its place. */
static ir_value images_back(tfl_op *x, ir_value v, uint32_t d, const images_axis *a) {
  tfl_dot dot = {.n_contract = 1, .a_contract = {d}, .b_contract = {0}};
  int64_t turn[4];
  ir_value r = tfl_dot_general(x, v, images_weights(x, a), &dot, XLAC_F32);
  for (uint32_t i = 0; i < 4; i++) turn[i] = i < d ? i : i == d ? 3 : i - 1;
  return tfl_transpose(x, r, turn);
}

/* Inputs: the result's gradient; the image, or (nearest) its size. */
int tfl_row_resize_gradient(tfl_op *x) {
  const ir_type *g = tfl_in_type(x, 0);
  const int64_t *size = tfl_in_type(x, 1)->dims + 1;
  uint32_t n = 2;
  images_axis axes[2];
  if (x->row->arg) TRY(tfl_ints(x, 1, &size, &n));
  if (g->rank != 4 || n != 2 || (!x->row->arg && tfl_in_type(x, 1)->rank != 4))
    return tfl_fail(x, "a gradient of rank %u: expected 4", g->rank);
  TRY(images_axes(x, size, g->dims + 1, axes));
  ir_value v = images_back(x, images_back(x, tfl_cast(x, tfl_in(x, 0), XLAC_F32), 1, &axes[0]), 2, &axes[1]);
  tfl_out(x, 0, tfl_cast(x, v, tfl_out_dtype(x, 0)));
  return x->status;
}
