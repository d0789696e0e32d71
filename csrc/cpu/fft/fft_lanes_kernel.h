/* No include guard: the transforms of fft_lanes.c, included for float and for double with each width of vectors. The
 * includer defines T, K(name), the vector types V of T and W of whole cache lines, and WIDTH, the numbers in a V, all
 * undefined at the end. FFT_LANES_WIDE: the vectors are those of AVX2. All of it is inlined into one function for each
 * instruction set, so that the compiler sees vectors at their true width. */

/* The numbers at even and at odd places of two vectors, and the lower and the upper halves of both in turn. */
#if WIDTH == 8
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif WIDTH == 4
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3)
#define LOW EVEN
#define HIGH ODD
#endif

#define INLINE static inline __attribute__((always_inline))

#define E V
#define STEP WIDTH
#define B(name) K(name##_v)
#include "fft_lanes_butterfly.h"
#undef E
#undef STEP
#undef B
#define E W
#define STEP (2 * WIDTH)
#define B(name) K(name##_w)
#include "fft_lanes_butterfly.h"
#undef E
#undef STEP
#undef B
#define E T
#define STEP 1
#define B(name) K(name##_s)
#include "fft_lanes_butterfly.h"
#undef E
#undef STEP
#undef B

/* Vectors as far as they go, then number by number. */
#define BOTH(name, n, ...)                            \
  do {                                                \
    K(name##_v)(__VA_ARGS__, 0 FLAG);                 \
    K(name##_s)(__VA_ARGS__, (n) - (n) % WIDTH FLAG); \
  } while (0)

/* The two pairs of arrays that passes go between, in the work memory of one group of lines. */
typedef struct K(planes) {
  T *re, *im, *other_re, *other_im;
} K(planes);

/* What a pass has written is what the next one reads. */
INLINE void K(swap)(K(planes) * a) {
  T *re = a->re, *im = a->im;
  a->re = a->other_re, a->im = a->other_im;
  a->other_re = re, a->other_im = im;
}

/* The same with vectors of twice the width first, where the machine has them: of a whole cache line, which matters
 * where many lines lie a power of two apart. */
#define PASS(name, S, ...)                               \
  do {                                                   \
    int64_t done = wide ? (S) - (S) % (2 * WIDTH) : 0;   \
    if (wide) K(name##_w)(__VA_ARGS__, 0, turned);       \
    K(name##_v)(__VA_ARGS__, done, turned);              \
    K(name##_s)(__VA_ARGS__, (S) - (S) % WIDTH, turned); \
  } while (0)

/* Pass f of group p: S numbers each of `radix` operands to `radix` results. */
INLINE void K(group)(const fft_lanes_pass *f, int64_t p, const K(planes) * a, int64_t S, bool turned, bool wide) {
  int64_t M = S * f->m, r = (int64_t)f->radix, at = S * r * p;
  const T *w = (const T *)f->twiddles + 2 * (r - 1) * p, *xr = a->re + S * p, *xi = a->im + S * p;
  T *yr = a->other_re + at, *yi = a->other_im + at;
  switch (f->radix) {
    case 2:
      PASS(pass2, S, w, xr, xi, M, yr, yi, S);
      return;
    case 3:
      PASS(pass3, S, w, xr, xi, M, yr, yi, S);
      return;
    case 4:
      PASS(pass4, S, w, xr, xi, M, yr, yi, S);
      return;
    case 5:
      PASS(pass5, S, w, xr, xi, M, yr, yi, S);
      return;
    case 8:
      PASS(pass8, S, w, xr, xi, M, yr, yi, S);
      return;
    default:
      PASS(pass_any, S, w, f->roots, r, xr, xi, M, yr, yi, S);
  }
}

/* All passes, each from one pair of arrays to the other. The first group's twiddles are all 1. Very long lines
 * look now and then whether to stop. */
INLINE void K(passes)(const fft_lanes_plan *plan, rt_pool *pool, K(planes) * a, int64_t lanes, bool wide) {
  for (uint32_t i = 0; i < plan->n_passes; i++) {
    const fft_lanes_pass *f = &plan->passes[i];
    int64_t each = f->stride * lanes, some = FFT_LANES_POLL / (each * (int64_t)f->radix) + 1;
    for (int64_t p = 0; p < f->m && !(plan->n > FFT_LANES_POLL && rt_pool_stopping(pool)); p += some)
      for (int64_t q = p; q < f->m && q < p + some; q++) K(group)(f, q, a, each, q != 0, wide);
    K(swap)(a);
  }
}

#define FLAG
/* Lines times w, an element for all lanes; from `n` on up to `size` they are zero. */
INLINE void K(times)(const T *w, int64_t n, int64_t size, K(planes) * a, int64_t lanes) {
  for (int64_t k = 0; k < n; k++) {
    T *re = a->re + k * lanes, *im = a->im + k * lanes;
    BOTH(times, lanes, w + 2 * k, re, im, lanes);
  }
  for (int64_t i = n * lanes; i < size * lanes; i++) a->re[i] = a->im[i] = 0;
}

/* Real and imaginary parts change places: a forward transform of that, mirrored again, is the inverse one. */
INLINE void K(mirror)(K(planes) * a) {
  T *re = a->re, *other = a->other_re;
  a->re = a->im, a->im = re;
  a->other_re = a->other_im, a->other_im = other;
}

/* A line's transform, by passes, or as a convolution: times the chirp, transform, times the kernel, transform
 * back, times the chirp. The kernel has the factor of the inverse in it. */
INLINE void K(transform)(const fft_lanes_plan *plan, rt_pool *pool, K(planes) * a, int64_t lanes, bool wide) {
  const fft_lanes_plan *inner = plan->inner ? plan->inner : plan;
  if (plan->inner) K(times)(plan->chirp, plan->n, inner->n, a, lanes);
  for (int round = 0; round < (plan->inner ? 2 : 1); round++) {
    K(passes)(inner, pool, a, lanes, wide);
    if (!plan->inner || rt_pool_stopping(pool)) return;
    if (round == 0) K(times)(plan->kernel, inner->n, inner->n, a, lanes);
    K(mirror)(a);
  }
  K(times)(plan->chirp, plan->n, plan->n, a, lanes);
}

/* --- lines in and out --- */

/* WIDTH lines, WIDTH / 2 of their numbers: a vector holds so many of one line in memory, of one number here. A
 * transpose in registers, then real and imaginary parts apart. */
INLINE void K(load_tile)(const T *in, int64_t across, int64_t lanes, T *re, T *im) {
  V line[WIDTH];
  for (int l = 0; l < WIDTH; l++) line[l] = *(const V *)(const void *)(in + 2 * l * across);
  for (int l = 0; l < WIDTH; l += WIDTH / 2) K(turn_tile)(line + l);
  for (int k = 0; k < WIDTH / 2; k++) {
    *(V *)(void *)(re + k * lanes) = EVEN(line[k], line[WIDTH / 2 + k]);
    *(V *)(void *)(im + k * lanes) = ODD(line[k], line[WIDTH / 2 + k]);
  }
}

/* The reverse. */
INLINE void K(store_tile)(T *out, int64_t across, int64_t lanes, const T *re, const T *im) {
  V line[WIDTH];
  for (int k = 0; k < WIDTH / 2; k++) {
    V a = *(const V *)(const void *)(re + k * lanes), b = *(const V *)(const void *)(im + k * lanes);
    line[k] = LOW(a, b), line[WIDTH / 2 + k] = HIGH(a, b);
  }
  for (int l = 0; l < WIDTH; l += WIDTH / 2) K(turn_tile)(line + l);
  for (int l = 0; l < WIDTH; l++) *(V *)(void *)(out + 2 * l * across) = line[l];
}

/* Lines from memory into two arrays of parts: by vectors where lines are neighbours, by tiles where a line's
 * numbers are, and number by number for all else and what is left. */
INLINE void K(load)(const T *in, fft_lanes_place at, int64_t n, int64_t lanes, T *re, T *im) {
  int64_t tiled = 0, whole = lanes - lanes % WIDTH;
  if (at.across == 1) {
    for (int64_t k = 0; k < n; k++)
      for (int64_t l = 0; l < whole; l += WIDTH) {
        const T *p = in + 2 * (k * at.along + l);
        V a = *(const V *)(const void *)p, b = *(const V *)(const void *)(p + WIDTH);
        *(V *)(void *)(re + k * lanes + l) = EVEN(a, b);
        *(V *)(void *)(im + k * lanes + l) = ODD(a, b);
      }
    tiled = n;
  } else if (at.along == 1) {
    tiled = n - n % (WIDTH / 2);
    for (int64_t l = 0; l < whole; l += WIDTH)
      for (int64_t k = 0; k < tiled; k += WIDTH / 2)
        K(load_tile)(in + 2 * (k + l * at.across), at.across, lanes, re + k * lanes + l, im + k * lanes + l);
  }
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = k < tiled ? whole : 0; l < lanes; l++) {
      re[k * lanes + l] = in[2 * (k * at.along + l * at.across)];
      im[k * lanes + l] = in[2 * (k * at.along + l * at.across) + 1];
    }
}

/* The reverse. */
INLINE void K(store)(T *out, fft_lanes_place at, int64_t n, int64_t lanes, const T *re, const T *im) {
  int64_t tiled = 0, whole = lanes - lanes % WIDTH;
  if (at.across == 1) {
    for (int64_t k = 0; k < n; k++)
      for (int64_t l = 0; l < whole; l += WIDTH) {
        T *p = out + 2 * (k * at.along + l);
        V a = *(const V *)(const void *)(re + k * lanes + l), b = *(const V *)(const void *)(im + k * lanes + l);
        *(V *)(void *)p = LOW(a, b);
        *(V *)(void *)(p + WIDTH) = HIGH(a, b);
      }
    tiled = n;
  } else if (at.along == 1) {
    tiled = n - n % (WIDTH / 2);
    for (int64_t l = 0; l < whole; l += WIDTH)
      for (int64_t k = 0; k < tiled; k += WIDTH / 2)
        K(store_tile)(out + 2 * (k + l * at.across), at.across, lanes, re + k * lanes + l, im + k * lanes + l);
  }
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = k < tiled ? whole : 0; l < lanes; l++) {
      out[2 * (k * at.along + l * at.across)] = re[k * lanes + l];
      out[2 * (k * at.along + l * at.across) + 1] = im[k * lanes + l];
    }
}

/* Reals as complex numbers. */
INLINE void K(load_reals)(const T *in, fft_lanes_place at, int64_t n, int64_t lanes, K(planes) * a) {
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = 0; l < lanes; l++) {
      a->re[k * lanes + l] = in[k * at.along + l * at.across];
      a->im[k * lanes + l] = 0;
    }
}

INLINE void K(store_reals)(T *out, fft_lanes_place at, int64_t n, int64_t lanes, const K(planes) * a) {
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = 0; l < lanes; l++) out[k * at.along + l * at.across] = a->re[k * lanes + l];
}

/* The whole spectrum from its first half: X[n-k] is the conjugate of X[k]. What a real signal's can't have, an
 * imaginary part of X[0] and of X[n/2], is ignored. */
INLINE void K(load_half)(const T *in, fft_lanes_place at, int64_t n, int64_t lanes, K(planes) * a) {
  K(load)(in, at, n / 2 + 1, lanes, a->re, a->im);
  for (int64_t k = n / 2 + 1; k < n; k++)
    for (int64_t l = 0; l < lanes; l++) {
      a->re[k * lanes + l] = a->re[(n - k) * lanes + l];
      a->im[k * lanes + l] = -a->im[(n - k) * lanes + l];
    }
  for (int64_t l = 0; l < lanes; l++) {
    a->im[l] = 0;
    if (n % 2 == 0) a->im[n / 2 * lanes + l] = 0;
  }
}

/* Spectrum of the pairs to spectrum of the reals, in the other arrays: h + 1 numbers. With Z the transform of
 * x[2j] + i x[2j+1], even and odd parts are (Z[k] + conj Z[h-k]) / 2 and (Z[k] - conj Z[h-k]) / 2i, and the odd
 * one is turned by root k. */
INLINE void K(split)(const T *half, int64_t h, int64_t lanes, K(planes) * a) {
  for (int64_t k = 0; k <= h; k++) {
    int64_t x = k % h * lanes, y = (h - k) % h * lanes, to = k * lanes;
    BOTH(split, lanes, half + 2 * k, a->re + x, a->im + x, a->re + y, a->im + y, a->other_re + to, a->other_im + to,
         lanes);
  }
  K(swap)(a);
}

/* The other way round, before an inverse transform. The first and the last number are real: imaginary parts that
 * they have are ignored. Twice the numbers that split would give back; the factor of the inverse has the half. */
INLINE void K(join)(const T *half, int64_t h, int64_t lanes, K(planes) * a) {
  for (int64_t l = 0; l < lanes; l++) a->im[l] = a->im[h * lanes + l] = 0;
  for (int64_t k = 0; k < h; k++) {
    int64_t x = k * lanes, y = (h - k) * lanes;
    BOTH(join, lanes, half + 2 * k, a->re + x, a->im + x, a->re + y, a->im + y, a->other_re + x, a->other_im + x,
         lanes);
  }
  K(swap)(a);
}

/* What is done to results on their way out: the turn of a long line's matrix, and the factor of inverses. */
INLINE void K(finish)(const fft_lanes_job *job, int64_t line, int64_t n, int64_t lanes, K(planes) * a) {
  const T *wr = job->twiddle_re, *wi = job->twiddle_im, scale = (T)job->scale;
  for (int64_t k = 0; wr && k < n; k++) {
    const T *cr = wr + k * job->lines + line, *ci = wi + k * job->lines + line;
    T *re = a->re + k * lanes, *im = a->im + k * lanes;
    BOTH(times_each, lanes, cr, ci, re, im, lanes);
  }
  if (job->scale == 1) return;
  for (int64_t i = 0; i < n * lanes; i++) a->re[i] *= scale;
  for (int64_t i = 0; i < n * lanes; i++) a->im[i] *= scale;
}

/* A group of lines from memory to memory: in, as their kind asks, the transform, out. */
INLINE void K(lines)(const fft_lanes_job *job, int64_t line, int64_t lanes, const T *in, T *out, T *work, bool wide) {
  const fft_lanes_plan *plan = job->plan;
  int64_t n = plan->n, each = (plan->size + 1) * lanes;
  assert(lanes > 0 && lanes <= FFT_LANES && line >= 0);
  K(planes) a = {work, work + each, work + 2 * each, work + 3 * each};
  if (job->kind == FFT_LANES_REAL_IN) {
    K(load_reals)(in, job->in, n, lanes, &a);
  } else if (job->kind == FFT_LANES_REAL_OUT) {
    K(load_half)(in, job->in, n, lanes, &a);
  } else if (job->kind == FFT_LANES_REAL_OUT_HALF) {
    K(load)(in, job->in, n + 1, lanes, a.re, a.im);
    K(join)(job->half, n, lanes, &a);
  } else {
    K(load)(in, job->in, n, lanes, a.re, a.im);
  }
  if (job->inverse) K(mirror)(&a);
  K(transform)(plan, job->pool, &a, lanes, wide);
  if (n > FFT_LANES_POLL && rt_pool_stopping(job->pool)) return;
  if (job->inverse) K(mirror)(&a);
  if (job->kind == FFT_LANES_REAL_IN_HALF) K(split)(job->half, n, lanes, &a);
  int64_t results = job->kind == FFT_LANES_REAL_IN ? n / 2 + 1 : job->kind == FFT_LANES_REAL_IN_HALF ? n + 1 : n;
  K(finish)(job, line, results, lanes, &a);
  if (job->kind == FFT_LANES_REAL_OUT)
    K(store_reals)(out, job->out, n, lanes, &a);
  else
    K(store)(out, job->out, results, lanes, a.re, a.im);
}

#ifdef FFT_LANES_WIDE
__attribute__((target("avx2"))) static void K(lines_avx2)(const fft_lanes_job *job, int64_t line, int64_t lanes,
                                                          const void *in, void *out, void *work) {
  K(lines)(job, line, lanes, in, out, work, false);
}
__attribute__((target("avx2,avx512f,avx512dq,avx512vl"))) static void K(lines_avx512)(const fft_lanes_job *job,
                                                                                      int64_t line, int64_t lanes,
                                                                                      const void *in, void *out,
                                                                                      void *work) {
  K(lines)(job, line, lanes, in, out, work, true);
}
#else
static void K(lines_plain)(const fft_lanes_job *job, int64_t line, int64_t lanes, const void *in, void *out,
                           void *work) {
  K(lines)(job, line, lanes, in, out, work, false);
}
#endif

#undef FLAG
#undef PASS
#undef BOTH
#undef INLINE
#undef EVEN
#undef ODD
#undef LOW
#undef HIGH
#undef T
#undef V
#undef W
#undef WIDTH
#undef K
