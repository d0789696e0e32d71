/* Depthwise convolution: operands are brought to [batch, spatial..., output feature] order; then, for each element of
 * the window, rows of features are multiplied by the kernel's row and added to the result's.
 *
 * With one input feature per group there is no matrix product to speak of, and the patches of a general
 * convolution would be mostly copying. In [batch, spatial, feature] order every multiply-add is a row
 * operation that the compiler vectorises. Sums run in ascending order of window elements. */
#include "conv_depthwise.h"

typedef void depthwise_row(int64_t n, const void *x, const void *w, void *sum);

/* Signed integers run as unsigned ones, which wrap. */
#define DEPTHWISE_ROW(name, T)                                           \
  static void name(int64_t n, const void *x, const void *w, void *sum) { \
    const T *a = x, *b = w;                                              \
    T *s = sum;                                                          \
    for (int64_t i = 0; i < n; i++) s[i] += a[i] * b[i];                 \
  }
#define DEPTHWISE_COMPLEX_ROW(name, T)                                   \
  static void name(int64_t n, const void *x, const void *w, void *sum) { \
    const T *a = x, *b = w;                                              \
    T *s = sum;                                                          \
    for (int64_t i = 0; i < 2 * n; i += 2) {                             \
      s[i] += a[i] * b[i] - a[i + 1] * b[i + 1];                         \
      s[i + 1] += a[i] * b[i + 1] + a[i + 1] * b[i];                     \
    }                                                                    \
  }
DEPTHWISE_ROW(depthwise_f32, float)
DEPTHWISE_ROW(depthwise_f64, double)
DEPTHWISE_ROW(depthwise_u32, uint32_t)
DEPTHWISE_ROW(depthwise_u64, uint64_t)
DEPTHWISE_COMPLEX_ROW(depthwise_c64, float)
DEPTHWISE_COMPLEX_ROW(depthwise_c128, double)
#undef DEPTHWISE_ROW
#undef DEPTHWISE_COMPLEX_ROW

/* The type that products are computed in: interp_product_type. */
static depthwise_row *depthwise_row_of(base_dtype t) {
  switch (t) {
    case XLAC_F32:
      return depthwise_f32;
    case XLAC_F64:
      return depthwise_f64;
    case XLAC_S32:
      return depthwise_u32;
    case XLAC_S64:
      return depthwise_u64;
    case XLAC_C64:
      return depthwise_c64;
    default:
      assert(t == XLAC_C128);
      return depthwise_c128;
  }
}

/* Everything in the row order: features innermost. */
typedef struct depthwise_run {
  const interp_depthwise *p;
  uint32_t n;
  int64_t features, bytes;
  char *x, *w, *sum;
  depthwise_row *row;
} depthwise_run;

/* The rows that window element k meets, an odometer over [batch, spatial...]. */
static int depthwise_element(interp_ctx *ctx, const depthwise_run *r, const interp_window_walk *walk, const char *w) {
  int64_t at[IR_MAX_RANK] = {0}, row = r->features * r->bytes;
  char *sum = r->sum + walk->part_at * row;
  const char *x = r->x + walk->operand_at * row;
  for (;;) {
    r->row(r->features, x, w, sum);
    uint32_t d = walk->rank;
    for (; d > 0; d--) {
      sum += walk->part_strides[d - 1] * row;
      x += walk->operand_strides[d - 1] * row;
      if (++at[d - 1] < walk->count[d - 1]) break;
      sum -= walk->part_strides[d - 1] * walk->count[d - 1] * row;
      x -= walk->operand_strides[d - 1] * walk->count[d - 1] * row;
      at[d - 1] = 0;
    }
    if (d == 0) return interp_tick(ctx, (uint64_t)(walk->lanes * r->features));
  }
}

/* One batch element at a time, so that the walk is over the window's own dims. Padding and holes are never
 * visited: the walk's boxes hold only places that meet an element. */
static int depthwise_elements(interp_ctx *ctx, depthwise_run *r) {
  const interp_depthwise *p = r->p;
  int64_t low[IR_MAX_RANK] = {0}, size[IR_MAX_RANK], places[IR_MAX_RANK], in = interp_count(r->n, p->in_size);
  int64_t out = interp_count(r->n, p->out_size), row = r->features * r->bytes;
  for (uint32_t d = 0; d < r->n; d++) size[d] = p->window->v[d].size;
  interp_strides(r->n, size, places);
  for (int64_t b = 0; b < p->batch; b++, r->x += in * row, r->sum += out * row) {
    interp_window_walk walk;
    interp_window_walk_begin(&walk, p->window, p->in_size, p->out_size, low, p->out_size);
    while (interp_window_walk_next(&walk)) {
      int64_t k = 0;
      for (uint32_t d = 0; d < r->n; d++) {
        const ir_window_dim *w = &p->window->v[d];
        k += (w->reversal ? w->size - 1 - walk.k[d] : walk.k[d]) * places[d];
      }
      TRY(depthwise_element(ctx, r, &walk, r->w + k * row));
    }
  }
  return 0;
}

/* dims [batch, spatial..., groups, copies] with these strides, and their number. */
static uint32_t depthwise_dims(const interp_depthwise *p, int64_t batch, const int64_t *spatial, int64_t *dims) {
  assert(p->window->n + 3 <= IR_MAX_RANK + 2);
  uint32_t n = p->window->n, rank = 0;
  dims[rank++] = batch;
  for (uint32_t d = 0; d < n; d++) dims[rank++] = spatial[d];
  dims[rank++] = p->groups;
  dims[rank++] = p->copies;
  return rank;
}

/* x is repeated `copies` times along features (stride 0), since each input feature serves so many output
 * features. */
static int depthwise_take(interp_ctx *ctx, depthwise_run *r, const interp_value *x, const interp_value *kernel) {
  const interp_depthwise *p = r->p;
  int64_t dims[IR_MAX_RANK + 2], strides[IR_MAX_RANK + 2], size[IR_MAX_RANK];
  uint32_t rank = depthwise_dims(p, p->batch, p->in_size, dims);
  depthwise_dims(p, p->in_batch, p->in_stride, strides);
  strides[rank - 2] = p->in_feature;
  strides[rank - 1] = 0;
  TRY(interp_copy_box(ctx, (size_t)r->bytes, rank, dims, r->x, x->data, 0, strides));
  for (uint32_t d = 0; d < r->n; d++) size[d] = p->window->v[d].size;
  depthwise_dims(p, 1, size, dims);
  depthwise_dims(p, 0, p->kernel_stride, strides);
  strides[rank - 2] = p->copies * p->kernel_feature;
  strides[rank - 1] = p->kernel_feature;
  return interp_copy_box(ctx, (size_t)r->bytes, rank, dims, r->w, kernel->data, 0, strides);
}

/* Back to the result's own order of dimensions. */
static int depthwise_give(interp_ctx *ctx, const depthwise_run *r, const char *sum, interp_value *result) {
  const interp_depthwise *p = r->p;
  int64_t dims[IR_MAX_RANK + 2], to[IR_MAX_RANK + 2], from[IR_MAX_RANK + 2];
  uint32_t rank = depthwise_dims(p, p->batch, p->out_size, dims);
  depthwise_dims(p, p->out_batch, p->out_stride, to);
  to[rank - 2] = p->copies * p->out_feature;
  to[rank - 1] = p->out_feature;
  interp_strides(rank, dims, from);
  return interp_strided_copy(ctx, (size_t)r->bytes, rank, dims, result->data, to, sum, from);
}

/* x, kernel and r have the product's type; r is written whole. */
int interp_depthwise_run(interp_ctx *ctx, const interp_depthwise *p, const interp_value *x, const interp_value *kernel,
                         interp_value *r) {
  uint32_t n = p->window->n;
  int64_t features = p->groups * p->copies, windows = 1;
  for (uint32_t d = 0; d < n; d++) windows *= p->window->v[d].size;
  if (n + 3 > IR_MAX_RANK) return base_fail(ctx->err, XLAC_E_TOO_LARGE, "a convolution of %u dimensions", n);
  depthwise_run run = {p,    n,    features, (int64_t)base_dtype_bytes(r->dtype),
                       NULL, NULL, NULL,     depthwise_row_of(r->dtype)};
  char *in = interp_scratch(ctx, p->batch * interp_count(n, p->in_size) * features, (size_t)run.bytes);
  char *w = interp_scratch(ctx, windows * features, (size_t)run.bytes);
  char *sum = interp_scratch(ctx, r->count, (size_t)run.bytes);
  run.x = in;
  run.w = w;
  run.sum = sum;
  int status = in && w && sum ? depthwise_take(ctx, &run, x, kernel) : interp_failed(ctx);
  if (status == 0) {
    memset(sum, 0, interp_bytes(r));
    status = depthwise_elements(ctx, &run);
  }
  if (status == 0) status = depthwise_give(ctx, &run, sum, r);
  interp_scratch_free(ctx, in);
  interp_scratch_free(ctx, w);
  interp_scratch_free(ctx, sum);
  return status;
}
