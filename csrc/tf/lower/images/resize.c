/* Resizing of images: by two neighbours, by the nearest, by sums of several, and of pieces of them. Sizes are
 * known while lowering, so places and weights along each axis are constants: gathers and products of the image
 * with them. Places are computed in f32 with the same operations as TensorFlow's CPU kernels, since a last bit
 * decides which pixel is nearest. */
#include <math.h>

#include "../windows.h"

/* --- ResizeBilinear, ResizeNearestNeighbor --- */

/* One axis of ResizeBilinear or ResizeNearestNeighbor, on images [batch, rows, columns, channels]. */
typedef struct images_axis {
  int64_t in, out;
  int32_t *low, *high; /* for each place in the result: what it lies between */
  float *way;          /* from low to high */
} images_axis;

/* CalculateResizeScale: with align_corners the corners' centres coincide. */
static float images_scale(int64_t in, int64_t out, bool corners) {
  assert(in > 0 && out > 0);
  return corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

/* Where place i of the result lies; in f32, as TensorFlow has it. */
static float images_place(const images_axis *a, int64_t i, bool corners, bool half) {
  float scale = images_scale(a->in, a->out, corners);
  return half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

/* Fails for sizes that the graph got wrong. */
static int images_axis_make(tfl_op *x, int64_t in, int64_t out, images_axis *a) {
  *a = (images_axis){.in = in, .out = out};
  if (in < 1 || out < 1 || in > INT32_MAX || out > INT32_MAX)
    return tfl_fail(x, "an image of %lld resized to %lld", (long long)in, (long long)out);
  a->low = BASE_ARRAY(x->arena, int32_t, (size_t)out);
  a->high = BASE_ARRAY(x->arena, int32_t, (size_t)out);
  a->way = BASE_ARRAY(x->arena, float, (size_t)out);
  return a->low && a->high && a->way ? 0 : (x->status = base_oom(x->err, "lowering"));
}

/* Both neighbours and the way between; at the border both are the last pixel. */
static void images_between(images_axis *a, bool corners, bool half) {
  for (int64_t i = 0; i < a->out; i++) {
    float at = images_place(a, i, corners, half), floor = __builtin_floorf(at);
    int64_t low = floor < 0 ? 0 : (int64_t)floor, high = (int64_t)__builtin_ceilf(at);
    a->low[i] = (int32_t)(low < a->in ? low : a->in - 1);
    a->high[i] = (int32_t)(high < 0 ? 0 : high < a->in ? high : a->in - 1);
    a->way[i] = at - floor;
  }
}

/* Rounded down, or to the nearest with align_corners. */
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

/* Both axes; arg says which of the two ops. */
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
  assert(a->in > 0 && a->out > 0);
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

/* Inputs: the result's gradient; the image, or (nearest) its size. The transpose of the resize as a linear map: a
 * product with the weights, axis by axis. */
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

/* --- ResizeBicubic, ResizeArea --- */

enum { RW_TABLE = 1 << 10, RW_MOST = 1 << 24 };

/* ResizeBicubic and ResizeArea: each place of the result is a sum of several of the image, so an axis is a matrix
 * of weights, and resizing one product an axis. */
typedef struct rw_axis {
  int64_t in, out;
  float *w; /* [out, in] */
} rw_axis;

/* As images_scale. */
static float rw_scale(const rw_axis *a, bool corners) {
  return corners && a->out > 1 ? (float)(a->in - 1) / (float)(a->out - 1) : (float)a->in / (float)a->out;
}

/* --- cubic curves --- */

/* The weight of what is `far` away, from 0 to 2. Keys' cubic with parameter a: -0.5, or -0.75 without half pixel
 * centers. */
static float rw_curve(float a, double far) {
  float x = (float)far;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* TensorFlow looks weights up in a table of 1024 steps. With half pixel centers what lies outside does not count; else
 * the border does in its place. */
static void rw_cubic(const rw_axis *a, bool corners, bool half) {
  assert(a->w != NULL && a->in > 0);
  float scale = rw_scale(a, corners);
  for (int64_t i = 0; i < a->out; i++) {
    float at = half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale, sum = 0, w[4];
    int64_t base = (int64_t)floorf(at), place[4];
    double step = (double)lrintf((at - (float)base) * RW_TABLE) / RW_TABLE;
    const double far[] = {1 + step, step, 1 - step, 2 - step};
    for (int k = 0; k < 4; k++) {
      int64_t p = base + k - 1;
      place[k] = p < 0 ? 0 : p >= a->in ? a->in - 1 : p;
      w[k] = half && place[k] != p ? 0 : rw_curve(half ? -0.5f : -0.75f, far[k]);
      sum += w[k];
    }
    float norm = half && fabsf(sum) > 1e-30f ? 1 / sum : 1;
    for (int k = 0; k < 4; k++) a->w[i * a->in + place[k]] += w[k] * norm;
  }
}

/* --- areas --- */

/* Place i covers the pixels from i scale to (i + 1) scale; a pixel that is covered in part counts in part. */
static void rw_area(const rw_axis *a, bool corners) {
  float scale = rw_scale(a, corners);
  for (int64_t i = 0; i < a->out; i++) {
    float from = (float)i * scale, to = (float)(i + 1) * scale;
    for (int64_t p = (int64_t)floorf(from); p < (int64_t)ceilf(to); p++) {
      float low = (float)p < from ? from : (float)p, high = (float)(p + 1) > to ? to : (float)(p + 1);
      int64_t at = p < 0 ? 0 : p >= a->in ? a->in - 1 : p;
      a->w[i * a->in + at] += (high - low) / scale;
    }
  }
}

/* --- rows --- */

static int rw_axis_of(tfl_op *x, int64_t in, int64_t out, rw_axis *a) {
  assert(a != NULL);
  *a = (rw_axis){.in = in, .out = out};
  if (in < 1 || out < 1 || out > RW_MOST / in)
    return tfl_fail(x, "an image of %lld can't be resized to %lld", (long long)in, (long long)out);
  a->w = BASE_ARRAY(x->arena, float, (size_t)(in * out));
  if (!a->w) return x->status = base_oom(x->err, "lowering");
  memset(a->w, 0, (size_t)(in * out) * sizeof *a->w);
  bool corners = tfl_attr_bool(x, "align_corners");
  if (x->row->arg & 1)
    rw_area(a, corners);
  else
    rw_cubic(a, corners, tfl_attr_bool(x, "half_pixel_centers"));
  return x->status;
}

/* v's dimension d from in to out; back: the other way. */
static ir_value rw_product(tfl_op *x, ir_value v, uint32_t d, const rw_axis *a, bool back) {
  assert(d == 1 || d == 2);
  const tfl_dot dot = {.n_contract = 1, .a_contract = {d}, .b_contract = {!back}};
  int64_t dims[] = {a->out, a->in}, turn[4];
  ir_value r = tfl_dot_general(x, v, tfl_constant_f32(x, 2, dims, a->w), &dot, XLAC_F32);
  for (uint32_t i = 0; i < 4; i++) turn[i] = i < d ? i : i == d ? 3 : i - 1;
  return tfl_transpose(x, r, turn);
}

/* arg: 0 cubic, 1 areas. The result is f32. Rows first, then columns; the order decides the rounding, which is
 * close to, not equal to, TensorFlow's. */
int tfl_row_resize_weights(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *size = NULL;
  rw_axis axes[2];
  TRY(tfl_image_sizes(x, &size));
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F32);
  for (uint32_t d = 0; d < 2; d++) {
    TRY(rw_axis_of(x, t->dims[d + 1], size[d], &axes[d]));
    v = rw_product(x, v, d + 1, &axes[d], false);
  }
  tfl_out(x, 0, v);
  return x->status;
}

/* ResizeBicubicGrad(gradient, image). */
int tfl_row_resize_weights_gradient(tfl_op *x) {
  const ir_type *g = tfl_in_type(x, 0), *t = tfl_in_type(x, 1);
  rw_axis axes[2];
  if (t->rank != 4 || g->rank != 4) return tfl_fail(x, "a gradient of rank %u: expected 4", g->rank);
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F32);
  for (uint32_t d = 0; d < 2; d++) {
    TRY(rw_axis_of(x, t->dims[d + 1], g->dims[d + 1], &axes[d]));
    v = rw_product(x, v, d + 1, &axes[d], true);
  }
  tfl_out(x, 0, tfl_cast(x, v, tfl_out_dtype(x, 0)));
  return x->status;
}

/* --- CropAndResize --- */

/* CropAndResize: pieces of images, each resized. Boxes are values, so places are computed when it runs, all boxes
 * at once. */
typedef struct crop_axis {
  ir_value at;      /* [boxes, size], f32: where each place of the result lies */
  ir_value in;      /* it lies in the image */
  ir_value near[2]; /* i32: the places beside it */
  ir_value way;     /* from the first to the second */
} crop_axis;

/* A column of the boxes: [boxes, 1]. */
static ir_value crop_corner(tfl_op *x, ir_value boxes, int64_t k) {
  return tfl_slice(x, boxes, 1, k, k + 1);
}

/* Dimension d (0, 1) of the image, which has `size` places, cut to `out`. Boxes are in fractions of the image: 0
 * is the first pixel, 1 the last. A result of one place takes the middle. */
static void crop_place(tfl_op *x, ir_value boxes, int64_t d, int64_t size, int64_t out, bool nearest, crop_axis *a) {
  assert(d == 0 || d == 1);
  int64_t n = tfl_in_type(x, 1)->dims[0], dims[] = {n, out};
  double last = (double)(size - 1);
  ir_value from = crop_corner(x, boxes, d), to = crop_corner(x, boxes, d + 2), at = {NULL, 0};
  if (out > 1) {
    ir_value step = tfl_with(
        x, IR_OP_DIVIDE, tfl_with(x, IR_OP_MULTIPLY, tfl_binary(x, IR_OP_SUBTRACT, to, from), last), (double)(out - 1));
    at = tfl_binary(x, IR_OP_MULTIPLY, tfl_iota(x, XLAC_F32, 2, dims, 1), step);
    at = tfl_binary(x, IR_OP_ADD, tfl_with(x, IR_OP_MULTIPLY, from, last), at);
  } else {
    at = tfl_with(x, IR_OP_MULTIPLY, tfl_binary(x, IR_OP_ADD, from, to), 0.5 * last);
  }
  a->at = at;
  if (!at.op) return;
  ir_value zero = tfl_like(x, at, 0), end = tfl_like(x, at, last);
  a->in =
      opt_binary(x->rw, IR_OP_AND, tfl_compare(x, IR_DIRECTION_GE, at, zero), tfl_compare(x, IR_DIRECTION_LE, at, end));
  ir_value floor = opt_unary(x->rw, nearest ? IR_OP_ROUND_NEAREST_AFZ : IR_OP_FLOOR, at);
  a->way = tfl_binary(x, IR_OP_SUBTRACT, at, floor);
  a->near[0] = tfl_cast(x, floor, XLAC_S32);
  a->near[1] = tfl_cast(x, opt_unary(x->rw, IR_OP_CEIL, at), XLAC_S32);
}

/* v, [boxes, size of one axis], over [boxes, high, wide]; axis: 1 or 2. */
static ir_value crop_spread(tfl_op *x, ir_value v, int64_t axis, const int64_t *dims) {
  int64_t map[] = {0, axis};
  if (!v.op) return v;
  return opt_broadcast_in_dim(x->rw, v, tfl_type(x, (base_dtype)opt_type(v)->dtype, 3, dims), map);
}

/* The elements at rows y and columns x of each box's image. */
static ir_value crop_take(tfl_op *x, ir_value image, ir_value which, ir_value down, ir_value across,
                          const int64_t *dims) {
  int64_t zero = 0, place[] = {dims[0], dims[1], dims[2], 1};
  if (!which.op) return which;
  ir_value parts[] = {opt_broadcast_in_dim(x->rw, which, tfl_type(x, XLAC_S32, 3, dims), &zero),
                      crop_spread(x, down, 1, dims), crop_spread(x, across, 2, dims)};
  for (int k = 0; k < 3; k++) parts[k] = tfl_reshape(x, parts[k], 4, place);
  return tfl_take_nd(x, image, tfl_concat(x, 3, parts, 3));
}

/* low + (high - low) * way along one axis. */
static ir_value crop_mix(tfl_op *x, ir_value low, ir_value high, ir_value way, int64_t axis, const int64_t *dims) {
  int64_t map[] = {0, 1, 2};
  ir_value w = crop_spread(x, way, axis, dims);
  if (!w.op || !low.op || !high.op) return low;
  w = opt_broadcast_in_dim(x->rw, w, opt_type(low), map);
  return opt_binary(x->rw, IR_OP_ADD, low,
                    opt_binary(x->rw, IR_OP_MULTIPLY, opt_binary(x->rw, IR_OP_SUBTRACT, high, low), w));
}

/* Shapes of the inputs, as the kernel checks them. */
static int crop_check(tfl_op *x, uint32_t n) {
  const ir_type *t = tfl_in_type(x, 0), *boxes = tfl_in_type(x, 1), *which = tfl_in_type(x, 2);
  bool fits = t->rank == 4 && t->count > 0 && boxes->rank == 2 && boxes->dims[1] == 4 && which->rank == 1 &&
              which->dims[0] == boxes->dims[0] && n == 2;
  return x->status || fits ? x->status : tfl_fail(x, "it takes images, [n, 4] boxes, n numbers of images and 2 sizes");
}

/* image, boxes, which image each is of, size. What lies outside of the image is extrapolation_value. */
int tfl_row_crops(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *size = NULL;
  uint32_t n = 0;
  crop_axis down, across;
  bool nearest = tfl_attr_is(x, "method", "nearest");
  TRY(tfl_ints(x, 3, &size, &n));
  TRY(crop_check(x, n));
  if (size[0] < 1 || size[1] < 1) return tfl_fail(x, "pieces of %lld by %lld", (long long)size[0], (long long)size[1]);
  int64_t dims[] = {tfl_in_type(x, 1)->dims[0], size[0], size[1]}, map[] = {0, 1, 2};
  ir_value image = tfl_cast(x, tfl_in(x, 0), XLAC_F32), boxes = tfl_in(x, 1), which = tfl_in(x, 2);
  crop_place(x, boxes, 0, t->dims[1], size[0], nearest, &down);
  crop_place(x, boxes, 1, t->dims[2], size[1], nearest, &across);
  if (x->status || !down.at.op || !across.at.op) return x->status;
  ir_value rows[2];
  for (int k = 0; k < 2 && !(nearest && k); k++) {
    rows[k] = crop_take(x, image, which, down.near[k], across.near[0], dims);
    if (nearest) break;
    ir_value right = crop_take(x, image, which, down.near[k], across.near[1], dims);
    rows[k] = crop_mix(x, rows[k], right, across.way, 2, dims);
  }
  ir_value v = nearest ? rows[0] : crop_mix(x, rows[0], rows[1], down.way, 1, dims);
  ir_value in = opt_binary(x->rw, IR_OP_AND, crop_spread(x, down.in, 1, dims), crop_spread(x, across.in, 2, dims));
  if (!v.op || !in.op) return x->status;
  in = opt_broadcast_in_dim(x->rw, in, opt_with_dtype(x->rw, opt_type(v), XLAC_PRED), map);
  tfl_out(x, 0, opt_select(x->rw, in, v, tfl_like(x, v, tfl_attr_float(x, "extrapolation_value"))));
  return x->status;
}
