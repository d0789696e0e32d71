/* Pooling and its gradients. An average divides by the number of elements that lie in the image, as TensorFlow's
 * does.
 *   MaxPool(x)            reduce_window(max)
 *   MaxPoolGrad           select_and_scatter(GE, add)
 *   AvgPoolGrad           pad with interior zeros, then reduce_window(add) with stride 1 */
#include "../windows.h"

/* Windows over the spatial dimensions of an image. */
typedef struct pool_plan {
  tfl_layout l;
  tfl_span spans[TFL_MOST_SPATIAL];
  tfl_window w;
} pool_plan;

/* In a row's arg, beside the number of spatial dimensions: sizes and strides are the last two inputs. */
enum { POOL_BY_INPUT = 16 };

/* A number for each dimension of the image, by attribute or by input. */
static int pool_sizes(tfl_op *x, const char *name, uint32_t from_end, const tfl_layout *l, int64_t *out) {
  assert(l->n <= TFL_MOST_SPATIAL);
  const int64_t *v = NULL;
  uint32_t n = 0;
  if (x->row->arg < POOL_BY_INPUT) return tfl_spatial_attr(x, name, l, out);
  if (x->n_in < 3) return tfl_fail(x, "input '%s' is missing", name);
  TRY(tfl_ints(x, x->n_in - from_end, &v, &n));
  if (n != l->n + 2 || v[l->batch] != 1 || v[l->feature] != 1)
    return tfl_fail(x, "%s has not a number for each dimension, 1 for batch and features", name);
  for (uint32_t i = 0; i < l->n; i++) {
    out[i] = v[l->spatial[i]];
    if (out[i] < 1 || out[i] > INT32_MAX) return tfl_fail(x, "%s has %lld", name, (long long)out[i]);
  }
  return 0;
}

/* arg: the number of spatial dimensions, and POOL_BY_INPUT. */
static int pool_plan_of(tfl_op *x, const ir_type *image, pool_plan *p) {
  uint32_t n = (uint32_t)x->row->arg % POOL_BY_INPUT;
  int64_t sizes[TFL_MOST_SPATIAL], strides[TFL_MOST_SPATIAL];
  TRY(tfl_layout_of(x, n, image, &p->l));
  TRY(pool_sizes(x, "ksize", 2, &p->l, sizes));
  TRY(pool_sizes(x, "strides", 1, &p->l, strides));
  for (uint32_t i = 0; i < n; i++)
    p->spans[i] = (tfl_span){.in = image->dims[p->l.spatial[i]], .size = sizes[i], .stride = strides[i], .dilation = 1};
  TRY(tfl_pad_spans(x, &p->l, p->spans));
  p->w = tfl_window_of(image, &p->l, p->spans);
  return 0;
}

/* Padding has the lowest value, which never is the largest. */
int tfl_row_max_pool(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  pool_plan p;
  TRY(pool_plan_of(x, t, &p));
  tfl_out(x, 0, tfl_reduce_window(x, IR_OP_MAXIMUM, tfl_in(x, 0), tfl_lowest(x, (base_dtype)t->dtype), &p.w));
  return x->status;
}

/* Inputs: the image, the result, the result's gradient. The gradient's shape is checked, since select_and_scatter
 * takes it on trust here. */
int tfl_row_max_pool_gradient(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  pool_plan p;
  TRY(pool_plan_of(x, t, &p));
  if (x->n_in < 3 || tfl_in_type(x, 2)->rank != t->rank)
    return tfl_fail(x, "the gradient has not the rank of the image");
  for (uint32_t d = 0, i = 0; d < t->rank; d++) {
    bool spatial = d != p.l.batch && d != p.l.feature;
    if (tfl_in_type(x, 2)->dims[d] != (spatial ? p.spans[i++].out : t->dims[d]))
      return tfl_fail(x, "the gradient has not the shape of the pooled image");
  }
  tfl_out(x, 0, tfl_scatter_to_largest(x, tfl_in(x, 0), tfl_in(x, 2), &p.w));
  return x->status;
}

/* Every `stride`th element from `at` on along the spatial dimensions: what place `at` of all windows sees. */
static ir_value pool_see(tfl_op *x, const pool_plan *p, ir_value v, const int64_t *at) {
  assert(p->l.n <= TFL_MOST_SPATIAL);
  int64_t starts[TFL_MOST_DIMS], limits[TFL_MOST_DIMS], strides[TFL_MOST_DIMS];
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  for (uint32_t d = 0; d < t->rank; d++) {
    starts[d] = 0;
    limits[d] = t->dims[d];
    strides[d] = 1;
  }
  for (uint32_t i = 0; i < p->l.n; i++) {
    uint32_t d = p->l.spatial[i];
    starts[d] = at[i];
    strides[d] = p->spans[i].stride;
    limits[d] = at[i] + (p->spans[i].out - 1) * strides[d] + 1;
  }
  return opt_slice(x->rw, v, starts, limits, strides);
}

/* Places of a window that are written out, a slice each. */
enum { POOL_MOST_PLACES = 4096 };

/* Inputs: the image, the result, the gradient of the gradient: of each window the one where its first largest element
 * is. */
int tfl_row_max_pool_second_gradient(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t places = 1;
  pool_plan p;
  TRY(pool_plan_of(x, t, &p));
  if (x->n_in < 3 || tfl_in_type(x, 2) != t) return tfl_fail(x, "the gradient has not the type of the image");
  for (uint32_t i = 0; i < p.l.n; i++) {
    if (p.spans[i].out < 1 || p.spans[i].size > POOL_MOST_PLACES || places > POOL_MOST_PLACES)
      return tfl_fail(x, "no windows, or too large ones");
    places *= p.spans[i].size;
  }
  base_dtype dtype = (base_dtype)t->dtype;
  ir_value v = tfl_pad(x, tfl_in(x, 0), tfl_lowest(x, dtype), p.w.low, p.w.high, NULL), best = {NULL, 0};
  ir_value g = tfl_pad(x, tfl_in(x, 2), tfl_scalar(x, dtype, 0), p.w.low, p.w.high, NULL), out = {NULL, 0};
  for (int64_t k = 0; k < places && v.op && g.op; k++) {
    int64_t at[TFL_MOST_SPATIAL], rest = k;
    for (uint32_t i = p.l.n; i-- > 0; rest /= p.spans[i].size) at[i] = rest % p.spans[i].size;
    ir_value seen = pool_see(x, &p, v, at), slope = pool_see(x, &p, g, at);
    ir_value more = k ? tfl_compare(x, IR_DIRECTION_GT, seen, best) : seen;
    out = k ? opt_select(x->rw, more, slope, out) : slope;
    best = k ? opt_select(x->rw, more, seen, best) : seen;
  }
  tfl_out(x, 0, out);
  return x->status;
}

/* How many elements each window has, along one dimension. */
static void pool_counts(const tfl_span *s, int64_t *counts) {
  assert(s->stride > 0);
  for (int64_t i = 0; i < s->out; i++) {
    int64_t from = i * s->stride - s->low, to = from + s->size;
    counts[i] = (to > s->in ? s->in : to) - (from < 0 ? 0 : from);
  }
}

/* v divided by the counts of its windows. The division is by what a float has; the counts are products of small numbers
 * and exact in f32. */
static ir_value pool_divide(tfl_op *x, ir_value v, const pool_plan *p) {
  assert(p != NULL);
  for (uint32_t i = 0; v.op && i < p->l.n; i++) {
    const tfl_span *s = &p->spans[i];
    int64_t *counts = BASE_ARRAY(x->arena, int64_t, (size_t)s->out + 1);
    float *floats = BASE_ARRAY(x->arena, float, (size_t)s->out + 1);
    if (!counts || !floats) return x->status = base_oom(x->err, "lowering"), (ir_value){NULL, 0};
    pool_counts(s, counts);
    bool same = true;
    for (int64_t k = 0; k < s->out; k++) {
      floats[k] = (float)counts[k];
      same = same && counts[k] == counts[0];
    }
    if (same && s->out) {
      v = tfl_with(x, IR_OP_DIVIDE, v, (double)counts[0]);
      continue;
    }
    ir_value c = tfl_cast(x, tfl_constant_f32(x, 1, &s->out, floats), (base_dtype)opt_type(v)->dtype);
    v = opt_binary(x->rw, IR_OP_DIVIDE, v, tfl_along(x, c, v, p->l.spatial[i]));
  }
  return v;
}

/* Sums are made in f32 for half precision. */
int tfl_row_average_pool(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  base_dtype dtype = (base_dtype)t->dtype, sum = tfl_sum_dtype(dtype);
  pool_plan p;
  TRY(pool_plan_of(x, t, &p));
  ir_value v = tfl_reduce_window(x, IR_OP_ADD, tfl_cast(x, tfl_in(x, 0), sum), tfl_scalar(x, sum, 0), &p.w);
  tfl_out(x, 0, tfl_cast(x, pool_divide(x, v, &p), dtype));
  return x->status;
}

/* Inputs: the image's shape, known; the result's gradient. Each gradient, divided, goes to all elements of its window:
 * spread out by the strides, a sum over windows of stride 1. */
int tfl_row_average_pool_gradient(tfl_op *x) {
  const ir_type *g = tfl_in_type(x, 1);
  base_dtype dtype = (base_dtype)g->dtype, sum = tfl_sum_dtype(dtype);
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  pool_plan p;
  TRY(tfl_ints(x, 0, &dims, &rank));
  const ir_type *image = tfl_type(x, dtype, rank, dims);
  if (!image) return x->status;
  TRY(pool_plan_of(x, image, &p));
  if (g->rank != rank) return tfl_fail(x, "the gradient has not the rank of the image");
  int64_t low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0}, inner[TFL_MOST_DIMS] = {0};
  for (uint32_t i = 0; i < p.l.n; i++) {
    const tfl_span *s = &p.spans[i];
    uint32_t d = p.l.spatial[i];
    if (g->dims[d] != s->out) return tfl_fail(x, "the gradient has not the shape of the pooled image");
    int64_t spread = s->out ? (s->out - 1) * s->stride + 1 : 0;
    inner[d] = s->stride - 1;
    low[d] = s->size - 1 - s->low;
    high[d] = s->in + s->size - 1 - spread - low[d];
    p.w.stride[d] = 1;
    p.w.low[d] = p.w.high[d] = 0;
  }
  ir_value v = pool_divide(x, tfl_cast(x, tfl_in(x, 1), sum), &p), zero = tfl_scalar(x, sum, 0);
  v = tfl_reduce_window(x, IR_OP_ADD, tfl_pad(x, v, zero, low, high, inner), zero, &p.w);
  tfl_out(x, 0, tfl_cast(x, v, dtype));
  return x->status;
}
