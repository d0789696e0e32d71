/* Mixed-radix Stockham transforms for lengths of small primes; others by Bluestein's chirp over a power of two.
 *
 * A length such as 60 = 4 * 3 * 5 is transformed by passes of radix 4, 3 and 5, each from one buffer to
 * another (Stockham: no bit reversal). A length with a prime above FFT_MAX_PRIME becomes a convolution
 * with a chirp, which a power of two computes (Bluestein). Everything in double precision; results of
 * narrower types are rounded once by the caller. */
#include "fft.h"

#include <math.h>

enum { FFT_MAX_FACTORS = 64, FFT_MAX_PRIME = 61, FFT_TICK = 1 << 12 /* loops between two ticks */ };

struct fft_plan {
  base_alloc alloc;
  int64_t n;
  uint32_t n_factors; /* 0 with chirp set: Bluestein */
  uint8_t factors[FFT_MAX_FACTORS];
  cplx *roots;  /* n of them: exp(-2 pi i k / n) */
  cplx *chirp;  /* n of them: exp(-pi i k^2 / n) */
  cplx *kernel; /* the transform of the conjugate chirp, padded to inner->n */
  fft_plan *inner;
};

/* The angle is brought into [0, pi/4] exactly, so every root is good to an ulp. exp(-2 pi i k / n). The
 * 128-bit product keeps k * 8 exact. */
cplx interp_fft_root(int64_t k, int64_t n) {
  assert(k >= 0 && k < n);
  unsigned __int128 eighths = (unsigned __int128)k * 8;
  unsigned octant = (unsigned)(eighths / (uint64_t)n);
  double part = (double)(uint64_t)(eighths % (uint64_t)n) / (double)n;
  if (octant & 1) part = (double)((uint64_t)n - (uint64_t)(eighths % (uint64_t)n)) / (double)n;
  double c = cos(part * 0.78539816339744830962), s = sin(part * 0.78539816339744830962);
  switch (octant) {
    case 0:
      return cplx_of(c, -s);
    case 1:
      return cplx_of(s, -c);
    case 2:
      return cplx_of(-s, -c);
    case 3:
      return cplx_of(-c, -s);
    case 4:
      return cplx_of(-c, s);
    case 5:
      return cplx_of(-s, c);
    case 6:
      return cplx_of(s, c);
    default:
      return cplx_of(c, s);
  }
}

/* Splits n into factors of at most FFT_MAX_PRIME; false when a larger prime divides it. 4s first, as the
 * fastest radix, then 2, 3, 5, 7, 9, ...; composite candidates find nothing left to divide. */
static bool fft_factor(fft_plan *p) {
  int64_t rest = p->n;
  assert(p->n_factors == 0);
  for (int64_t f = 4; rest > 1 && f <= FFT_MAX_PRIME;) {
    if (rest % f == 0) {
      assert(p->n_factors < FFT_MAX_FACTORS);
      p->factors[p->n_factors++] = (uint8_t)f;
      rest /= f;
    } else {
      f = f == 4 ? 2 : f == 2 ? 3 : f + 2;
    }
  }
  return rest == 1;
}

/* NULL when out of memory, or on overflow. */
static cplx *fft_numbers(base_alloc alloc, int64_t n) {
  size_t bytes;
  return base_mul((size_t)n, sizeof(cplx), &bytes) ? base_malloc(alloc, bytes) : NULL;
}

/* The chirp and the transform of its conjugate, wrapped round for the cyclic convolution. Squares are
 * reduced mod 2 n before they become an angle, or large k would lose all precision. */
static int fft_make_chirp(interp_ctx *ctx, fft_plan *p) {
  int64_t size = 1, n = p->n;
  while (size < 2 * n - 1) size *= 2;
  TRY(interp_fft_plan_create(ctx, &p->inner, size));
  cplx *scratch = fft_numbers(p->alloc, (int64_t)interp_fft_scratch(p->inner));
  p->chirp = fft_numbers(p->alloc, n);
  p->kernel = fft_numbers(p->alloc, size);
  if (!p->chirp || !p->kernel || !scratch)
    return base_free(p->alloc, scratch), base_oom(ctx->err, "a Fourier transform");
  int status = 0;
  for (int64_t i = 0; i < size; i++) p->kernel[i] = cplx_of(0, 0);
  for (int64_t k = 0; k < n && status == 0; k++) {
    if (k % FFT_TICK == 0) status = interp_tick(ctx, FFT_TICK * 32);
    p->chirp[k] = interp_fft_root((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
    p->kernel[k] = p->kernel[k ? size - k : 0] = cplx_conj(p->chirp[k]);
  }
  if (status == 0) status = interp_fft_run(ctx, p->inner, p->kernel, scratch, false);
  base_free(p->alloc, scratch);
  return status;
}

static int fft_make_roots(interp_ctx *ctx, fft_plan *p) {
  p->roots = fft_numbers(p->alloc, p->n);
  if (!p->roots) return base_oom(ctx->err, "a Fourier transform");
  for (int64_t k = 0; k < p->n; k++) {
    if (k % FFT_TICK == 0) TRY(interp_tick(ctx, FFT_TICK * 32));
    p->roots[k] = interp_fft_root(k, p->n);
  }
  return 0;
}

/* n >= 1. Plans hold no scratch memory, so one serves many lines. */
int interp_fft_plan_create(interp_ctx *ctx, fft_plan **out, int64_t n) {
  base_alloc alloc = ctx->options.alloc;
  xlac_error *err = ctx->err;
  assert(n >= 1);
  if (n > INT64_MAX / 64) return base_fail(err, XLAC_E_TOO_LARGE, "a Fourier transform of length %lld", (long long)n);
  fft_plan *p = base_malloc(alloc, sizeof *p);
  if (!p) return base_oom(err, "a Fourier transform");
  *p = (fft_plan){.alloc = alloc, .n = n};
  bool small = fft_factor(p);
  if (!small) p->n_factors = 0;
  int status = small ? fft_make_roots(ctx, p) : fft_make_chirp(ctx, p);
  if (status != 0) return interp_fft_plan_destroy(p), status;
  *out = p;
  return 0;
}

void interp_fft_plan_destroy(fft_plan *p) {
  if (!p) return;
  interp_fft_plan_destroy(p->inner);
  base_free(p->alloc, p->roots);
  base_free(p->alloc, p->chirp);
  base_free(p->alloc, p->kernel);
  base_free(p->alloc, p);
}

/* In numbers, not bytes. */
size_t interp_fft_scratch(const fft_plan *p) {
  return (size_t)(p->inner ? p->inner->n * 2 : p->n);
}

/* Multiplying by -i is an exchange of parts. */
static void fft_radix4(const cplx a[4], cplx b[4]) {
  cplx s = cplx_add(a[0], a[2]), d = cplx_sub(a[0], a[2]), t = cplx_add(a[1], a[3]), u = cplx_sub(a[1], a[3]);
  b[0] = cplx_add(s, t), b[2] = cplx_sub(s, t);
  b[1] = cplx_of(d.re + u.im, d.im - u.re), b[3] = cplx_of(d.re - u.im, d.im + u.re);
}

/* A small transform by its definition; step is p->n / r. */
static void fft_radix(const cplx *roots, int64_t step, uint32_t r, const cplx *a, cplx *b) {
  for (uint32_t k = 0; k < r; k++) {
    cplx sum = a[0];
    for (uint32_t j = 1; j < r; j++) sum = cplx_add(sum, cplx_mul(a[j], roots[(int64_t)(j * k % r) * step]));
    b[k] = sum;
  }
}

/* One pass from x to y: length r * m transforms, `stride` of them side by side. */
static int fft_pass(interp_ctx *ctx, const fft_plan *plan, const cplx *x, cplx *y, uint32_t r, int64_t m,
                    int64_t stride) {
  assert(r >= 2 && r <= FFT_MAX_PRIME && (int64_t)r * m * stride == plan->n);
  cplx a[FFT_MAX_PRIME], b[FFT_MAX_PRIME];
  for (int64_t p = 0; p < m; p++) {
    for (int64_t q = 0; q < stride; q++) {
      if ((p * stride + q) % FFT_TICK == 0) TRY(interp_tick(ctx, (uint64_t)r * FFT_TICK * 2));
      for (uint32_t j = 0; j < r; j++) a[j] = x[q + stride * (p + m * j)];
      if (r == 4) {
        fft_radix4(a, b);
      } else if (r == 2) {
        b[0] = cplx_add(a[0], a[1]), b[1] = cplx_sub(a[0], a[1]);
      } else {
        fft_radix(plan->roots, plan->n / r, r, a, b);
      }
      y[q + stride * (int64_t)r * p] = b[0];
      for (uint32_t k = 1; k < r; k++) y[q + stride * (r * p + k)] = cplx_mul(b[k], plan->roots[p * k * stride]);
    }
  }
  return 0;
}

/* x holds the result, whichever buffer the last pass wrote. */
static int fft_stockham(interp_ctx *ctx, const fft_plan *p, cplx *x, cplx *scratch) {
  cplx *from = x, *to = scratch;
  int64_t rest = p->n, stride = 1;
  for (uint32_t i = 0; i < p->n_factors; i++) {
    rest /= p->factors[i];
    TRY(fft_pass(ctx, p, from, to, p->factors[i], rest, stride));
    stride *= p->factors[i];
    cplx *swap = from;
    from = to, to = swap;
  }
  assert(rest == 1);
  if (from != x) memcpy(x, from, (size_t)p->n * sizeof *x);
  return 0;
}

/* x[k] * chirp[k], convolved with the conjugate chirp, times chirp[k]. */
static int fft_bluestein(interp_ctx *ctx, const fft_plan *p, cplx *x, cplx *scratch) {
  int64_t size = p->inner->n;
  assert(size >= 2 * p->n - 1 && !p->inner->inner);
  cplx *padded = scratch, *rest = scratch + size;
  for (int64_t k = 0; k < p->n; k++) padded[k] = cplx_mul(x[k], p->chirp[k]);
  for (int64_t k = p->n; k < size; k++) padded[k] = cplx_of(0, 0);
  TRY(interp_fft_run(ctx, p->inner, padded, rest, false));
  for (int64_t k = 0; k < size; k++) padded[k] = cplx_mul(padded[k], p->kernel[k]);
  TRY(interp_fft_run(ctx, p->inner, padded, rest, true));
  for (int64_t k = 0; k < p->n; k++) x[k] = cplx_scale(cplx_mul(padded[k], p->chirp[k]), 1.0 / (double)size);
  return 0;
}

/* The inverse is the forward transform between two conjugations. Not scaled: an inverse is n times too
 * large. scratch has room for interp_fft_scratch numbers. */
int interp_fft_run(interp_ctx *ctx, const fft_plan *p, cplx *x, cplx *scratch, bool inverse) {
  assert(p && x && scratch);
  if (inverse)
    for (int64_t k = 0; k < p->n; k++) x[k] = cplx_conj(x[k]);
  if (p->inner) {
    TRY(fft_bluestein(ctx, p, x, scratch));
  } else {
    TRY(fft_stockham(ctx, p, x, scratch));
  }
  if (inverse)
    for (int64_t k = 0; k < p->n; k++) x[k] = cplx_conj(x[k]);
  return 0;
}
