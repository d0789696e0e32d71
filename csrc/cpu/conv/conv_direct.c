/* Convolutions of few features: neighbours along a row are lanes, and each element of the window is a vector of the
 * input times one number. As a product of matrices they would copy the input once for each element of the window. The
 * input's rows are brought into a copy of planes, with zeros around it, unless they lie so: then all results of a row
 * are the same work. Sums go in the order of the window, features innermost. */
#include "../../base/isa/isa.h"
#include "../../interp/algorithm/placement.h"
#include "../move/move.h"
#include "conv.h"

/* DIRECT_FEW, DIRECT_PLANES: input features times output features of a group, at most, where results are to be put
 * between those of other features, and where they are in planes; with more, products are as fast. DIRECT_TAPS: elements
 * of the window times features, at most.
 * DIRECT_GRAIN: multiplications for a thread at a time. DIRECT_PIECE: results along a row that are computed together: a
 * long row (audio) is shared by threads, and stops in between. */
enum {
  DIRECT_FEW = 256,
  DIRECT_PLANES = 1 << 12,
  DIRECT_TAPS = 1 << 12,
  DIRECT_GRAIN = 1 << 16,
  DIRECT_PIECE = 1 << 14
};

/* Some results of a row, of as many output features as the function is for. */
typedef struct direct_row {
  const char *in; /* what the first result's window begins at */
  char *out;
  const char *weights;    /* a number for each output feature, tap by tap */
  const int64_t *taps;    /* places in the input, in elements */
  int64_t n_taps, n;      /* n: results along the row, no fewer than a vector has lanes */
  int64_t step, features; /* between results along the row, and of neighbouring output features */
} direct_row;
typedef void direct_fn(const direct_row *r);

/* How a row is read: of the copy, or the input. In elements. */
typedef struct direct_data {
  cpu_conv c;
  direct_fn *fn[3]; /* for 1, 2, 4 outputs */
  bool copied;
  int64_t extent[IR_MAX_RANK];                                 /* padded sizes */
  int64_t batch, feature, stride[IR_MAX_RANK], pitch, n_phase; /* pitch: of a phase, every stride-th element of a row */
  int64_t n_taps, *taps, *kernel;
  int64_t rows, pieces, copy_rows, copy_at, bytes; /* pieces: of a row */
} direct_data;

/* A block of results at `at`. Its sums stay in registers. */
#define DIRECT_BLOCK(T, VEC, O, V, MADD)                                                                              \
  {                                                                                                                   \
    enum { LANES = sizeof(VEC) / sizeof(T) };                                                                         \
    typedef VEC loose __attribute__((aligned(1), may_alias));                                                         \
    const T *x = (const T *)(const void *)r->in + at, *w = (const T *)(const void *)r->weights;                       \
    VEC s[O][V];                                                                                                      \
    _Pragma("GCC unroll 8") for (int o = 0; o < O; o++) _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) s[o][v] = \
        (VEC){0};                                                                                                     \
    for (int64_t t = 0; t < r->n_taps; t++, w += O) {                                                                 \
      const T *p = x + r->taps[t];                                                                                    \
      _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) {                                                           \
        VEC value = *(const loose *)(const void *)(p + v * LANES);                                                    \
        _Pragma("GCC unroll 8") for (int o = 0; o < O; o++) s[o][v] = MADD(value, w[o] - (VEC){0}, s[o][v]);          \
      }                                                                                                               \
    }                                                                                                                 \
    T *out = (T *)(void *)r->out + at * r->step;                                                                      \
    if (r->step == 1) {                                                                                               \
      _Pragma("GCC unroll 8") for (int o = 0; o < O; o++) _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) *       \
          (loose *)(void *)(out + o * r->features + v * LANES) = s[o][v];                                             \
    } else {                                                                                                          \
      T spread[O][V * LANES];                                                                                         \
      memcpy(spread, s, sizeof spread);                                                                               \
      for (int o = 0; o < O; o++) direct_spread(sizeof(T), out + o * r->features, spread[o], r->step, V * LANES);     \
    }                                                                                                                 \
  }
/* A row: blocks of V vectors, and what is left by blocks of one. The last ones end with the row: what they have in
 * common with those before is computed twice. */
#define DIRECT_ROW(name, T, VEC, O, V, TARGET, MADD)                                 \
  TARGET static void name(const direct_row *r) {                                     \
    const int64_t lanes = sizeof(VEC) / sizeof(T);                                   \
    int64_t at = 0;                                                                  \
    for (; at + V * lanes <= r->n; at += V * lanes) DIRECT_BLOCK(T, VEC, O, V, MADD) \
    for (; at < r->n; at += lanes) {                                                 \
      if (at + lanes > r->n) at = r->n - lanes;                                      \
      DIRECT_BLOCK(T, VEC, O, 1, MADD)                                               \
    }                                                                                \
  }
#define DIRECT_ROWS(name, T, VEC, TARGET, MADD)    \
  DIRECT_ROW(name##_1, T, VEC, 1, 4, TARGET, MADD) \
  DIRECT_ROW(name##_2, T, VEC, 2, 4, TARGET, MADD) \
  DIRECT_ROW(name##_4, T, VEC, 4, 2, TARGET, MADD)
#if defined(__x86_64__)
#include <immintrin.h>
/* A vector's results, where those of other features lie between. */
static void direct_spread(size_t bytes, void *to, const void *from, int64_t step, int64_t n) {
  cpu_move_row((int64_t)bytes, to, step * (int64_t)bytes, from, (int64_t)bytes, n);
}

#define DIRECT_AVX2 __attribute__((target("avx2,fma")))
#define DIRECT_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
DIRECT_ROWS(direct_f32_avx2, float, __m256, DIRECT_AVX2, _mm256_fmadd_ps)
DIRECT_ROWS(direct_f64_avx2, double, __m256d, DIRECT_AVX2, _mm256_fmadd_pd)
DIRECT_ROWS(direct_f32_avx512, float, __m512, DIRECT_AVX512, _mm512_fmadd_ps)
DIRECT_ROWS(direct_f64_avx512, double, __m512d, DIRECT_AVX512, _mm512_fmadd_pd)
#endif

/* The functions for type t on this machine, and how many lanes they need; 0: there are none. */
static int64_t direct_choose(base_dtype t, direct_fn **fn) {
#if defined(__x86_64__)
#define DIRECT_SET(name) fn[0] = name##_1, fn[1] = name##_2, fn[2] = name##_4
  bool wide = base_isa_best() >= BASE_ISA_AVX512;
  if (base_isa_best() < BASE_ISA_AVX2) return 0;
  if (t == XLAC_F32 && wide) return DIRECT_SET(direct_f32_avx512), 16;
  if (t == XLAC_F64 && wide) return DIRECT_SET(direct_f64_avx512), 8;
  if (t == XLAC_F32) return DIRECT_SET(direct_f32_avx2), 8;
  if (t == XLAC_F64) return DIRECT_SET(direct_f64_avx2), 4;
#endif
  (void)t;
  (void)fn;
  return 0;
}

/* --- the copy --- */

typedef struct direct_run {
  const direct_data *d;
  const char *in, *kernel;
  char *copy, *out;
  const char *weights;
} direct_run;

/* Every step-th element. */
static void direct_pick(int64_t bytes, char *to, const char *from, int64_t step, int64_t n) {
  if (step == bytes)
    memcpy(to, from, (size_t)(n * bytes));
  else
    cpu_move_row(bytes, to, bytes, from, step, n);
}

/* A row of the copy: zeros, and every phase's elements side by side. from: element 0 of the row in the input. */
static void direct_copy_row(const direct_data *d, char *to, const char *from) {
  const cpu_conv *c = &d->c;
  uint32_t last = c->n - 1;
  int64_t low = c->window->v[last].padding_low, b = d->bytes, phases = d->n_phase;
  memset(to, 0, (size_t)(phases * d->pitch * b));
  if (!from) return;
  int64_t begin = interp_max(low, 0), end = interp_min(low + c->in_size[last], d->extent[last]);
  for (int64_t p = 0; p < phases; p++) {
    int64_t first = begin + (p - begin % phases + phases) % phases;
    if (first >= end) continue;
    direct_pick(b, to + (p * d->pitch + first / phases) * b, from + (first - low) * c->in_stride[last] * b,
                phases * c->in_stride[last] * b, (end - first - 1) / phases + 1);
  }
}

/* Rows begin to end of the copy: features innermost, since they may share what is read. */
static void direct_copy_rows(void *ctx, size_t begin, size_t end) {
  const direct_run *run = ctx;
  const direct_data *d = run->d;
  const cpu_conv *c = &d->c;
  int64_t features = c->features * c->feature_groups;
  for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
    int64_t rest = row / features, f = row % features, from = f * c->in_feature, to = f * d->feature;
    bool inside = true;
    for (uint32_t i = c->n - 1; i-- > 0; rest /= d->extent[i]) {
      int64_t p = rest % d->extent[i], at = p - c->window->v[i].padding_low;
      inside = inside && at >= 0 && at < c->in_size[i];
      from += at * c->in_stride[i];
      to += p * d->stride[i];
    }
    from += rest * c->in_batch;
    to += rest * d->batch;
    direct_copy_row(d, run->copy + to * d->bytes, inside ? run->in + from * d->bytes : NULL);
  }
}

/* --- the sums --- */

/* Outputs that are computed together from output `o` on. */
static int64_t direct_block(const direct_data *d, int64_t o) {
  int64_t left = d->c.outputs - o;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* The kernel in the order of use: for each group, each block of outputs, each tap. */
static void direct_weights(const direct_run *run, char *to) {
  const direct_data *d = run->d;
  int64_t b = d->bytes;
  for (int64_t g = 0; g < d->c.feature_groups; g++)
    for (int64_t o = 0, n; o < d->c.outputs; o += n) {
      n = direct_block(d, o);
      for (int64_t t = 0; t < d->n_taps; t++)
        for (int64_t i = 0; i < n; i++, to += b)
          memcpy(to, run->kernel + (d->kernel[t] + (g * d->c.outputs + o + i) * d->c.kernel_out) * b, (size_t)b);
    }
}

/* Pieces begin to end of results: batch, outer positions, group, piece of the row. The last piece of a row has the
 * rest, so that none is shorter than a vector. */
static void direct_pieces(void *ctx, size_t begin, size_t end) {
  const direct_run *run = ctx;
  const direct_data *d = run->d;
  const cpu_conv *c = &d->c;
  uint32_t last = c->n - 1;
  direct_row r = {.taps = d->taps, .n_taps = d->n_taps, .step = c->out_stride[last], .features = c->out_feature};
  for (int64_t piece = (int64_t)begin; piece < (int64_t)end; piece++) {
    int64_t first = piece % d->pieces * DIRECT_PIECE, row = piece / d->pieces;
    int64_t g = row % c->feature_groups, rest = row / c->feature_groups;
    int64_t in = g * c->features * d->feature + first, out = g * c->outputs * c->out_feature + first * r.step;
    r.n = (piece + 1) % d->pieces ? DIRECT_PIECE : c->out_size[last] - first;
    for (uint32_t i = last; i-- > 0; rest /= c->out_size[i]) {
      int64_t p = rest % c->out_size[i];
      in += p * c->window->v[i].stride * d->stride[i];
      out += p * c->out_stride[i];
    }
    r.in = (d->copied ? run->copy : run->in) + (in + rest * d->batch) * d->bytes;
    out += rest * c->out_batch;
    r.weights = run->weights + g * c->outputs * d->n_taps * d->bytes;
    for (int64_t o = 0, n; o < c->outputs; o += n, r.weights += n * d->n_taps * d->bytes) {
      n = direct_block(d, o);
      r.out = run->out + (out + o * c->out_feature) * d->bytes;
      d->fn[n / 2](&r);
    }
  }
}

/* The routine. Grains depend on sizes alone. */
static int direct_all(const cpu_routine_run *r) {
  const direct_data *d = r->data;
  const cpu_conv *c = &d->c;
  direct_run run = {d, r->in[0], r->in[1], r->scratch ? (char *)r->scratch + d->copy_at : NULL, r->out[0], r->scratch};
  rt_pool *pool = r->run->exe->pool;
  int64_t work = c->out_size[c->n - 1] / d->pieces * c->outputs * d->n_taps;
  direct_weights(&run, r->scratch);
  if (d->copied)
    rt_parallel_for(pool, (size_t)d->copy_rows, (size_t)(DIRECT_GRAIN / (d->n_phase * d->pitch + 1) + 1),
                    direct_copy_rows, &run);
  rt_parallel_for(pool, (size_t)(d->rows * d->pieces), (size_t)(DIRECT_GRAIN / (work + 1) + 1), direct_pieces, &run);
  return 0;
}

/* --- preparing --- */

/* Whether windows meet elements alone, and lie in rows of neighbours, so that the input is read in place. */
static bool direct_in_place(const cpu_conv *c) {
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    int64_t reach = (c->out_size[d] - 1) * w->stride + (w->size - 1) * w->window_dilation;
    if (w->padding_low != 0 || reach >= c->in_size[d]) return false;
  }
  return c->in_stride[c->n - 1] == 1 && c->window->v[c->n - 1].stride == 1;
}

/* Strides of the copy, or the input's. false where the copy is too large: mostly zeros, or not to be counted. */
static bool direct_places(direct_data *d, int64_t inputs) {
  const cpu_conv *c = &d->c;
  uint32_t last = c->n - 1;
  const ir_window_dim *w = c->window->v;
  d->copied = !direct_in_place(c);
  d->n_phase = w[last].stride;
  d->batch = c->in_batch;
  d->feature = c->in_feature;
  memcpy(d->stride, c->in_stride, sizeof d->stride);
  if (!d->copied) return true;
  int64_t planes = c->batch * c->features * c->feature_groups, size;
  for (uint32_t i = 0; i < c->n; i++)
    d->extent[i] = (c->out_size[i] - 1) * w[i].stride + (w[i].size - 1) * w[i].window_dilation + 1;
  d->pitch = (d->extent[last] - 1) / d->n_phase + 1;
  if (!base_mul_i64(d->n_phase, d->pitch, &size)) return false;
  for (uint32_t i = last; i-- > 0;) {
    d->stride[i] = size;
    if (!base_mul_i64(size, d->extent[i], &size)) return false;
  }
  d->feature = size;
  if (!base_mul_i64(size, planes, &size) || size / 8 > inputs + (1 << 16)) return false;
  d->batch = size / c->batch;
  d->copy_rows = size / (d->n_phase * d->pitch);
  return true;
}

/* Where each element of the window by each feature lies in input and kernel. */
static void direct_taps(direct_data *d) {
  const cpu_conv *c = &d->c;
  for (int64_t t = 0; t < d->n_taps; t++) {
    int64_t rest = t / c->features, f = t % c->features;
    d->taps[t] = f * d->feature;
    d->kernel[t] = f * c->kernel_in;
    for (uint32_t i = c->n; i-- > 0; rest /= c->kernel_size[i]) {
      int64_t k = rest % c->kernel_size[i], p = k * c->window->v[i].window_dilation;
      d->taps[t] += i + 1 < c->n ? p * d->stride[i] : d->copied ? p % d->n_phase * d->pitch + p / d->n_phase : p;
      d->kernel[t] += (c->window->v[i].reversal ? c->kernel_size[i] - 1 - k : k) * c->kernel_stride[i];
    }
  }
}

/* Whether it is for such convolutions: few features, rows of at least a vector, no holes. */
static bool direct_is_for(const cpu_conv *c, int64_t results, int64_t lanes) {
  if (c->n == 0 || results == 0 || lanes == 0 || c->batch_groups > 1 || c->features < 1) return false;
  if (c->in_type != c->kernel_type || c->in_type != c->out_type) return false;
  for (uint32_t i = 0; i < c->n; i++)
    if (c->window->v[i].base_dilation != 1) return false;
  int64_t n = c->out_size[c->n - 1], padded = (n + lanes - 1) / lanes * lanes;
  bool planes = c->out_stride[c->n - 1] == 1 && 2 * padded <= 3 * n;
  return n >= lanes && c->features * c->outputs <= (planes ? DIRECT_PLANES : DIRECT_FEW);
}

/* Each way out before the routine is made leaves the convolution to products. */
int cpu_conv_prepare_direct(cpu_prepare_run *x, const cpu_conv *c) {
  direct_fn *fn[3];
  int64_t taps = c->features;
  if (!direct_is_for(c, x->op->type->count, direct_choose(c->in_type, fn))) return 0;
  for (uint32_t i = 0; i < c->n; i++)
    if (!base_mul_i64(taps, c->kernel_size[i], &taps) || taps > DIRECT_TAPS) return 0;
  direct_data *d = BASE_NEW(x->arena, direct_data);
  int64_t *places = base_arena_alloc(x->arena, 2 * (size_t)taps * sizeof *places);
  if (!d || !places) return base_oom(x->err, "a convolution");
  *d = (direct_data){.c = *c, .n_taps = taps, .taps = places, .kernel = places + taps};
  memcpy(d->fn, fn, sizeof fn);
  d->bytes = (int64_t)base_dtype_bytes(c->in_type);
  if (!direct_places(d, ir_operand_type(x->op, 0)->count + x->op->type->count)) return 0;
  direct_taps(d);
  d->rows = x->op->type->count / (c->out_size[c->n - 1] * c->outputs);
  d->pieces = interp_max(c->out_size[c->n - 1] / DIRECT_PIECE, 1);
  int64_t weights = taps * c->outputs * c->feature_groups * d->bytes;
  d->copy_at = (weights + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  x->out->scratch_bytes = d->copy_at + (d->copied ? d->batch * c->batch * d->bytes : 0);
  x->out->name = "direct convolution";
  x->out->work = (uint64_t)x->op->type->count * (uint64_t)taps / 8;
  x->data = d;
  x->out->stoppable = true;
  x->code = direct_all;
  return 0;
}
