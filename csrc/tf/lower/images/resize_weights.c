/* Resizing where each place of the result is a sum of several of the image: cubic curves, areas. The weights along each
 * axis are known while lowering: one product an axis. Source: TensorFlow's documentation, its CPU kernels' behaviour.
 */
#include <math.h>

#include "../windows.h"

enum { RW_TABLE = 1 << 10, RW_MOST = 1 << 24 };

typedef struct rw_axis {
  int64_t in, out;
  float *w; /* [out, in] */
} rw_axis;

static float rw_scale(const rw_axis *a, bool corners) {
  return corners && a->out > 1 ? (float)(a->in - 1) / (float)(a->out - 1) : (float)a->in / (float)a->out;
}

/* --- cubic curves --- */

/* The weight of what is `far` away, from 0 to 2. */
static float rw_curve(float a, double far) {
  float x = (float)far;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* TensorFlow looks weights up in a table of 1024 steps. With half pixel centers what lies outside does not count; else
 * the border does in its place. */
static void rw_cubic(const rw_axis *a, bool corners, bool half) {
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
  const tfl_dot dot = {.n_contract = 1, .a_contract = {d}, .b_contract = {!back}};
  int64_t dims[] = {a->out, a->in}, turn[4];
  ir_value r = tfl_dot_general(x, v, tfl_constant_f32(x, 2, dims, a->w), &dot, XLAC_F32);
  for (uint32_t i = 0; i < 4; i++) turn[i] = i < d ? i : i == d ? 3 : i - 1;
  return tfl_transpose(x, r, turn);
}

/* arg: 0 cubic, 1 areas. The result is f32. */
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
