/* CropAndResize: pieces of images, each resized. */
#include "../windows.h"

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

/* Dimension d (0, 1) of the image, which has `size` places, cut to `out`. */
static void crop_place(tfl_op *x, ir_value boxes, int64_t d, int64_t size, int64_t out, bool nearest, crop_axis *a) {
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
  a->in = opt_binary(x->rw, IR_OP_AND, tfl_compare(x, "GE", at, zero), tfl_compare(x, "LE", at, end));
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

static ir_value crop_mix(tfl_op *x, ir_value low, ir_value high, ir_value way, int64_t axis, const int64_t *dims) {
  int64_t map[] = {0, 1, 2};
  ir_value w = crop_spread(x, way, axis, dims);
  if (!w.op || !low.op || !high.op) return low;
  w = opt_broadcast_in_dim(x->rw, w, opt_type(low), map);
  return opt_binary(x->rw, IR_OP_ADD, low,
                    opt_binary(x->rw, IR_OP_MULTIPLY, opt_binary(x->rw, IR_OP_SUBTRACT, high, low), w));
}

static int crop_check(tfl_op *x, uint32_t n) {
  const ir_type *t = tfl_in_type(x, 0), *boxes = tfl_in_type(x, 1), *which = tfl_in_type(x, 2);
  bool fits = t->rank == 4 && t->count > 0 && boxes->rank == 2 && boxes->dims[1] == 4 && which->rank == 1 &&
              which->dims[0] == boxes->dims[0] && n == 2;
  return x->status || fits ? x->status : tfl_fail(x, "it takes images, [n, 4] boxes, n numbers of images and 2 sizes");
}

/* image, boxes, which image each is of, size */
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
