/* Depthwise convolution: no product of matrices, since every output feature sees one input feature. Rows of neighbours
 * in memory, features or positions, are multiplied by the kernel's row or by one of its elements and added up, window
 * element by window element, as the interpreter does: to its bits. */
#include "../../base/isa/isa.h"
#include "conv.h"

#include "../../interp/algorithm/placement.h"

/* DEPTHWISE_ENTRIES: elements of the window but for its last dimension, at most: they are on the stack.
 * DEPTHWISE_GRAIN: multiplications for a thread at a time. */
enum { DEPTHWISE_ENTRIES = 256, DEPTHWISE_GRAIN = 1 << 16 };

/* An element of the window but for its last dimension: where it is in input and kernel. */
typedef struct dwconv_entry {
  int64_t in, kernel;
} dwconv_entry;

/* One row of results, and where what it is computed from begins. */
typedef struct dwconv_row_run {
  const cpu_conv *c;
  const char *in, *kernel; /* of this row: batch, feature and outer positions */
  char *out;
  uint32_t n;
  dwconv_entry entries[DEPTHWISE_ENTRIES];
} dwconv_row_run;

/* Computes a row. One for each type and instruction set; all of one type give the same bits. */
typedef void dwconv_fn(const dwconv_row_run *r);
typedef struct dwconv_routine {
  cpu_conv c;
  dwconv_fn *row;
  bool by_features; /* a row is all positions by all features, else all positions of one feature */
  int64_t rows;     /* in all */
} dwconv_routine;

/* The elements of the last window dimension that meet the input at output position o: [*from, *to). */
static inline void dwconv_meets(const ir_window_dim *w, int64_t size, int64_t o, int64_t *from, int64_t *to) {
  int64_t at = o * w->stride - w->padding_low, d = w->window_dilation;
  *from = at < 0 ? (-at + d - 1) / d : 0;
  *to = at >= size ? 0 : (size - 1 - at) / d + 1;
  if (*to > w->size) *to = w->size;
}

/* Features lie side by side: two vectors of them at a time go through the window with their sums in registers, and
 * the rest one by one, in the same order of additions. */
#define DEPTHWISE_FEATURES(name, T, VEC, TARGET)                                                                 \
  TARGET static void name(const dwconv_row_run *r) {                                                             \
    const cpu_conv *c = r->c;                                                                                    \
    uint32_t last = c->n - 1;                                                                                    \
    const ir_window_dim *w = &c->window->v[last];                                                                \
    const int64_t wide = 2 * (int64_t)(sizeof(VEC) / sizeof(T)), step = w->window_dilation * c->in_stride[last]; \
    const int64_t kernel_step = w->reversal ? -c->kernel_stride[last] : c->kernel_stride[last];                  \
    for (int64_t o = 0; o < c->out_size[last]; o++) {                                                            \
      int64_t from = 0, to = 0, f = 0;                                                                           \
      dwconv_meets(w, c->in_size[last], o, &from, &to);                                                          \
      const T *x0 = (const T *)(const void *)r->in +                                                             \
                    (o * w->stride - w->padding_low + from * w->window_dilation) * c->in_stride[last];           \
      const T *k0 = (const T *)(const void *)r->kernel + from * kernel_step;                                     \
      T *out = (T *)(void *)r->out + o * c->out_stride[last];                                                    \
      for (; f + wide <= c->feature_groups; f += wide) {                                                         \
        VEC s0 = {0}, s1 = {0};                                                                                  \
        for (uint32_t e = 0; e < r->n; e++) {                                                                    \
          const T *x = x0 + r->entries[e].in + f, *k = k0 + r->entries[e].kernel + f;                            \
          for (int64_t i = from; i < to; i++, x += step, k += kernel_step) {                                     \
            VEC x_0, x_1, k_0, k_1;                                                                              \
            memcpy(&x_0, x, sizeof x_0);                                                                         \
            memcpy(&x_1, x + wide / 2, sizeof x_1);                                                              \
            memcpy(&k_0, k, sizeof k_0);                                                                         \
            memcpy(&k_1, k + wide / 2, sizeof k_1);                                                              \
            s0 += x_0 * k_0;                                                                                     \
            s1 += x_1 * k_1;                                                                                     \
          }                                                                                                      \
        }                                                                                                        \
        memcpy(out + f, &s0, sizeof s0);                                                                         \
        memcpy(out + f + wide / 2, &s1, sizeof s1);                                                              \
      }                                                                                                          \
      for (; f < c->feature_groups; f++) {                                                                       \
        T s = 0;                                                                                                 \
        for (uint32_t e = 0; e < r->n; e++) {                                                                    \
          const T *x = x0 + r->entries[e].in + f, *k = k0 + r->entries[e].kernel + f;                            \
          for (int64_t i = from; i < to; i++, x += step, k += kernel_step) s += *x * *k;                         \
        }                                                                                                        \
        out[f] = s;                                                                                              \
      }                                                                                                          \
    }                                                                                                            \
  }

/* Results of a row lie side by side: each element of the window is added to all of them that it meets. */
#define DEPTHWISE_POSITIONS(name, T, TARGET)                                                                   \
  TARGET static void name(const dwconv_row_run *r) {                                                           \
    const cpu_conv *c = r->c;                                                                                  \
    uint32_t last = c->n - 1;                                                                                  \
    const ir_window_dim *w = &c->window->v[last];                                                              \
    int64_t n = c->out_size[last], in = c->in_stride[last] * w->stride, step = c->out_stride[last];            \
    T *out = (T *)(void *)r->out;                                                                              \
    for (int64_t o = 0; o < n; o++) out[o * step] = 0;                                                         \
    for (uint32_t e = 0; e < r->n; e++)                                                                        \
      for (int64_t i = 0; i < w->size; i++) {                                                                  \
        interp_placement p = interp_window_placement(w, c->in_size[last], i, 0, n);                            \
        int64_t at = w->reversal ? -i : i;                                                                     \
        T k = ((const T *)(const void *)r->kernel)[r->entries[e].kernel + at * c->kernel_stride[last]];        \
        const T *restrict x = (const T *)(const void *)r->in + r->entries[e].in + p.from * c->in_stride[last]; \
        T *restrict to = out + p.first * step;                                                                 \
        if (in == 1 && step == 1)                                                                              \
          for (int64_t o = 0; o < p.count; o++) to[o] += x[o] * k;                                             \
        else                                                                                                   \
          for (int64_t o = 0; o < p.count; o++) to[o * step] += x[o * in] * k;                                 \
      }                                                                                                        \
  }

/* Signed integers are added as unsigned ones: the bits are the same, and overflow is defined. */
typedef float dwconv_4f32 __attribute__((vector_size(16)));
typedef double dwconv_2f64 __attribute__((vector_size(16)));
typedef uint32_t dwconv_4u32 __attribute__((vector_size(16)));
typedef uint64_t dwconv_2u64 __attribute__((vector_size(16)));
DEPTHWISE_FEATURES(dwconv_features_f32, float, dwconv_4f32, )
DEPTHWISE_FEATURES(dwconv_features_f64, double, dwconv_2f64, )
DEPTHWISE_FEATURES(dwconv_features_u32, uint32_t, dwconv_4u32, )
DEPTHWISE_FEATURES(dwconv_features_u64, uint64_t, dwconv_2u64, )
DEPTHWISE_POSITIONS(dwconv_positions_f32, float, )
DEPTHWISE_POSITIONS(dwconv_positions_f64, double, )
DEPTHWISE_POSITIONS(dwconv_positions_u32, uint32_t, )
DEPTHWISE_POSITIONS(dwconv_positions_u64, uint64_t, )
#if defined(__x86_64__)
#define DEPTHWISE_AVX2 __attribute__((target("avx2")))
typedef float dwconv_8f32 __attribute__((vector_size(32)));
typedef double dwconv_4f64 __attribute__((vector_size(32)));
DEPTHWISE_FEATURES(dwconv_features_f32_avx2, float, dwconv_8f32, DEPTHWISE_AVX2)
DEPTHWISE_FEATURES(dwconv_features_f64_avx2, double, dwconv_4f64, DEPTHWISE_AVX2)
DEPTHWISE_POSITIONS(dwconv_positions_f32_avx2, float, DEPTHWISE_AVX2)
DEPTHWISE_POSITIONS(dwconv_positions_f64_avx2, double, DEPTHWISE_AVX2)
#endif

/* The fastest function for type t on this machine; NULL for types that have none. */
static dwconv_fn *dwconv_fn_of(base_dtype t, bool by_features) {
#if defined(__x86_64__)
  if (base_isa_best() >= BASE_ISA_AVX2) {
    if (t == XLAC_F32) return by_features ? dwconv_features_f32_avx2 : dwconv_positions_f32_avx2;
    if (t == XLAC_F64) return by_features ? dwconv_features_f64_avx2 : dwconv_positions_f64_avx2;
  }
#endif
  switch (t) {
    case XLAC_F32:
      return by_features ? dwconv_features_f32 : dwconv_positions_f32;
    case XLAC_F64:
      return by_features ? dwconv_features_f64 : dwconv_positions_f64;
    case XLAC_S32:
    case XLAC_U32:
      return by_features ? dwconv_features_u32 : dwconv_positions_u32;
    case XLAC_S64:
    case XLAC_U64:
      return by_features ? dwconv_features_u64 : dwconv_positions_u64;
    default:
      return NULL;
  }
}

/* The window's elements but for the last dimension that meet the input at outer output position `at`. They stay in
 * the window's order, which is the order of the sum. */
static void dwconv_entries(dwconv_row_run *r, const int64_t *at) {
  assert(r->c->n > 0);
  const cpu_conv *c = r->c;
  int64_t s[IR_MAX_RANK] = {0};
  uint32_t outer = c->n - 1;
  r->n = 0;
  for (;;) {
    dwconv_entry e = {0, 0};
    bool meets = true;
    for (uint32_t d = 0; d < outer && meets; d++) {
      const ir_window_dim *w = &c->window->v[d];
      int64_t x = interp_window_element(w, c->in_size[d], at[d] * w->stride + s[d] * w->window_dilation);
      meets = x >= 0;
      e.in += x * c->in_stride[d];
      e.kernel += (w->reversal ? w->size - 1 - s[d] : s[d]) * c->kernel_stride[d];
    }
    const ir_window_dim *last = &c->window->v[outer];
    if (last->reversal) e.kernel += (last->size - 1) * c->kernel_stride[outer];
    if (meets) r->entries[r->n++] = e;
    uint32_t d = outer;
    for (; d > 0; d--) {
      if (++s[d - 1] < c->kernel_size[d - 1]) break;
      s[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

typedef struct dwconv_run {
  const dwconv_routine *d;
  const char *in, *kernel;
  char *out;
} dwconv_run;

/* Rows begin to end: features vary fastest, so that the entries, which depend on positions only, are found once for
 * all features at a position. */
static void dwconv_rows(void *ctx, size_t begin, size_t end) {
  const dwconv_run *run = ctx;
  const cpu_conv *c = &run->d->c;
  int64_t bytes = (int64_t)base_dtype_bytes(c->in_type), at[IR_MAX_RANK] = {0}, known = -1;
  int64_t features = run->d->by_features ? 1 : c->feature_groups * c->outputs;
  dwconv_row_run r = {.c = c};
  for (size_t i = begin; i < end; i++) {
    int64_t row = (int64_t)i / features, feature = (int64_t)i % features, in = 0, out = 0;
    int64_t rest = row;
    for (uint32_t d = c->n - 1; d-- > 0; rest /= c->out_size[d]) {
      at[d] = rest % c->out_size[d];
      out += at[d] * c->out_stride[d];
    }
    in = rest * c->in_batch + feature / c->outputs * c->in_feature;
    out += rest * c->out_batch + feature * c->out_feature;
    /* The same for all features. */
    if (row != known) dwconv_entries(&r, at);
    known = row;
    r.in = run->in + in * bytes;
    r.kernel = run->kernel + feature * c->kernel_out * bytes;
    r.out = run->out + out * bytes;
    run->d->row(&r);
  }
}

/* The routine. Grains depend on sizes alone. */
static int dwconv_all(const cpu_routine_run *r) {
  const dwconv_routine *d = r->data;
  const cpu_conv *c = &d->c;
  dwconv_run run = {d, r->in[0], r->in[1], r->out[0]};
  int64_t work = c->out_size[c->n - 1] * (d->by_features ? c->feature_groups : 1);
  for (uint32_t i = 0; i < c->n; i++) work *= c->kernel_size[i];
  rt_parallel_for(r->run->exe->pool, (size_t)d->rows, (size_t)(DEPTHWISE_GRAIN / (work + 1) + 1), dwconv_rows, &run);
  return 0;
}

/* Each way out before the routine is made leaves the convolution to products. */
int cpu_conv_prepare_depthwise(cpu_prepare_run *x, const cpu_conv *c) {
  int64_t entries = 1, rows = c->batch;
  if (c->features != 1 || c->feature_groups == 1 || c->n == 0 || x->op->type->count == 0) return 0;
  if (c->in_type != c->kernel_type || c->in_type != c->out_type) return 0;
  for (uint32_t d = 0; d + 1 < c->n; d++) {
    entries *= c->kernel_size[d];
    rows *= c->out_size[d];
    if (entries > DEPTHWISE_ENTRIES) return 0;
  }
  /* In a dilated input the positions that an element meets are apart: not here. */
  if (c->window->v[c->n - 1].base_dilation != 1) return 0;
  bool by_features = c->outputs == 1 && c->in_feature == 1 && c->kernel_out == 1 && c->out_feature == 1;
  dwconv_fn *row = dwconv_fn_of(c->in_type, by_features);
  if (!row) return 0;
  dwconv_routine *d = BASE_NEW(x->arena, dwconv_routine);
  if (!d) return base_oom(x->err, "a convolution");
  *d = (dwconv_routine){.c = *c, .row = row, .by_features = by_features};
  d->rows = by_features ? rows : rows * c->feature_groups * c->outputs;
  x->out->name = "depthwise convolution";
  x->out->work = (uint64_t)x->op->type->count * (uint64_t)(entries * c->kernel_size[c->n - 1]);
  x->data = d;
  x->out->stoppable = true;
  x->code = dwconv_all;
  return 0;
}
