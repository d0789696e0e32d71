/* No include guard: the transforms of fft_lanes.c, included once for float and once for double. The includer defines T
 * and K(name). All of it is inlined into one function for each instruction set. */
#define INLINE static inline __attribute__((always_inline))

/* --- passes: from x to y, S numbers side by side --- */

INLINE void K(turn)(const T *w, int64_t k, T *re, T *im) {
  T r = *re * w[2 * k] - *im * w[2 * k + 1];
  *im = *re * w[2 * k + 1] + *im * w[2 * k];
  *re = r;
}

INLINE void K(pass2)(const fft_lanes_pass *f, const T *restrict xr, const T *restrict xi, T *restrict yr,
                     T *restrict yi, int64_t S) {
  for (int64_t p = 0; p < f->m; p++) {
    const T *w = (const T *)f->twiddles + 2 * p;
    const T *ar = xr + S * p, *ai = xi + S * p, *br = ar + S * f->m, *bi = ai + S * f->m;
    T *cr = yr + S * 2 * p, *ci = yi + S * 2 * p, *dr = cr + S, *di = ci + S;
    for (int64_t q = 0; q < S; q++) {
      T re = ar[q] - br[q], im = ai[q] - bi[q];
      cr[q] = ar[q] + br[q], ci[q] = ai[q] + bi[q];
      if (p) K(turn)(w, 0, &re, &im);
      dr[q] = re, di[q] = im;
    }
  }
}

INLINE void K(pass3)(const fft_lanes_pass *f, const T *restrict xr, const T *restrict xi, T *restrict yr,
                     T *restrict yi, int64_t S) {
  const T h = (T)0.86602540378443864676;
  for (int64_t p = 0; p < f->m; p++) {
    const T *w = (const T *)f->twiddles + 4 * p;
    const T *ar = xr + S * p, *ai = xi + S * p;
    T *cr = yr + S * 3 * p, *ci = yi + S * 3 * p;
    int64_t M = S * f->m;
    for (int64_t q = 0; q < S; q++) {
      T sr = ar[q + M] + ar[q + 2 * M], si = ai[q + M] + ai[q + 2 * M];
      T dr = h * (ai[q + M] - ai[q + 2 * M]), di = h * (ar[q + 2 * M] - ar[q + M]);
      T mr = ar[q] - (T)0.5 * sr, mi = ai[q] - (T)0.5 * si;
      T br = mr + dr, bi = mi + di, er = mr - dr, ei = mi - di;
      cr[q] = ar[q] + sr, ci[q] = ai[q] + si;
      if (p) K(turn)(w, 0, &br, &bi), K(turn)(w, 1, &er, &ei);
      cr[q + S] = br, ci[q + S] = bi;
      cr[q + 2 * S] = er, ci[q + 2 * S] = ei;
    }
  }
}

/* Four numbers in place; the second and fourth results change places with an inverse, which nobody needs. */
INLINE void K(four)(T *re, T *im) {
  T sr = re[0] + re[2], si = im[0] + im[2], dr = re[0] - re[2], di = im[0] - im[2];
  T tr = re[1] + re[3], ti = im[1] + im[3], ur = re[1] - re[3], ui = im[1] - im[3];
  re[0] = sr + tr, im[0] = si + ti, re[2] = sr - tr, im[2] = si - ti;
  re[1] = dr + ui, im[1] = di - ur, re[3] = dr - ui, im[3] = di + ur;
}

INLINE void K(pass4_group)(const T *w, const T *restrict ar, const T *restrict ai, int64_t M, T *restrict cr,
                           T *restrict ci, int64_t S, bool turned) {
  for (int64_t q = 0; q < S; q++) {
    T re[4] = {ar[q], ar[q + M], ar[q + 2 * M], ar[q + 3 * M]};
    T im[4] = {ai[q], ai[q + M], ai[q + 2 * M], ai[q + 3 * M]};
    K(four)(re, im);
    if (turned) K(turn)(w, 0, re + 1, im + 1), K(turn)(w, 1, re + 2, im + 2), K(turn)(w, 2, re + 3, im + 3);
    cr[q] = re[0], cr[q + S] = re[1], cr[q + 2 * S] = re[2], cr[q + 3 * S] = re[3];
    ci[q] = im[0], ci[q + S] = im[1], ci[q + 2 * S] = im[2], ci[q + 3 * S] = im[3];
  }
}

INLINE void K(pass4)(const fft_lanes_pass *f, const T *xr, const T *xi, T *yr, T *yi, int64_t S) {
  int64_t M = S * f->m;
  K(pass4_group)(f->twiddles, xr, xi, M, yr, yi, S, false);
  for (int64_t p = 1; p < f->m; p++)
    K(pass4_group)((const T *)f->twiddles + 6 * p, xr + S * p, xi + S * p, M, yr + S * 4 * p, yi + S * 4 * p, S, true);
}

INLINE void K(eight)(T *re, T *im) {
  const T h = (T)0.70710678118654752440;
  T er[4], ei[4], or_[4], oi[4];
  for (int i = 0; i < 4; i++) {
    er[i] = re[i] + re[i + 4], ei[i] = im[i] + im[i + 4];
    or_[i] = re[i] - re[i + 4], oi[i] = im[i] - im[i + 4];
  }
  T a = or_[1], b = or_[2], c = or_[3];
  or_[1] = h * (a + oi[1]), oi[1] = h * (oi[1] - a);
  or_[2] = oi[2], oi[2] = -b;
  or_[3] = h * (oi[3] - c), oi[3] = -h * (c + oi[3]);
  K(four)(er, ei);
  K(four)(or_, oi);
  for (int i = 0; i < 4; i++) {
    re[2 * i] = er[i], im[2 * i] = ei[i];
    re[2 * i + 1] = or_[i], im[2 * i + 1] = oi[i];
  }
}

INLINE void K(pass8_group)(const T *w, const T *restrict ar, const T *restrict ai, int64_t M, T *restrict cr,
                           T *restrict ci, int64_t S, bool turned) {
  for (int64_t q = 0; q < S; q++) {
    T re[8], im[8];
    for (int j = 0; j < 8; j++) re[j] = ar[q + j * M], im[j] = ai[q + j * M];
    K(eight)(re, im);
    if (turned)
      for (int j = 1; j < 8; j++) K(turn)(w, j - 1, re + j, im + j);
    for (int j = 0; j < 8; j++) cr[q + j * S] = re[j], ci[q + j * S] = im[j];
  }
}

INLINE void K(pass8)(const fft_lanes_pass *f, const T *xr, const T *xi, T *yr, T *yi, int64_t S) {
  int64_t M = S * f->m;
  K(pass8_group)(f->twiddles, xr, xi, M, yr, yi, S, false);
  for (int64_t p = 1; p < f->m; p++)
    K(pass8_group)((const T *)f->twiddles + 14 * p, xr + S * p, xi + S * p, M, yr + S * 8 * p, yi + S * 8 * p, S, true);
}

INLINE void K(pass5)(const fft_lanes_pass *f, const T *restrict xr, const T *restrict xi, T *restrict yr,
                     T *restrict yi, int64_t S) {
  const T c1 = (T)0.30901699437494742410, s1 = (T)0.95105651629515357212, c2 = (T)-0.80901699437494742410,
          s2 = (T)0.58778525229247312917;
  int64_t M = S * f->m;
  for (int64_t p = 0; p < f->m; p++) {
    const T *w = (const T *)f->twiddles + 8 * p, *ar = xr + S * p, *ai = xi + S * p;
    T *cr = yr + S * 5 * p, *ci = yi + S * 5 * p;
    for (int64_t q = 0; q < S; q++) {
      T ur = ar[q + M] + ar[q + 4 * M], ui = ai[q + M] + ai[q + 4 * M];
      T vr = ar[q + 2 * M] + ar[q + 3 * M], vi = ai[q + 2 * M] + ai[q + 3 * M];
      T er = ar[q + M] - ar[q + 4 * M], ei = ai[q + M] - ai[q + 4 * M];
      T fr = ar[q + 2 * M] - ar[q + 3 * M], fi = ai[q + 2 * M] - ai[q + 3 * M];
      T gr = ar[q] + c1 * ur + c2 * vr, gi = ai[q] + c1 * ui + c2 * vi;
      T hr = ar[q] + c2 * ur + c1 * vr, hi = ai[q] + c2 * ui + c1 * vi;
      T kr = s1 * ei + s2 * fi, ki = -(s1 * er + s2 * fr), lr = s2 * ei - s1 * fi, li = s1 * fr - s2 * er;
      T re[4] = {gr + kr, hr + lr, hr - lr, gr - kr}, im[4] = {gi + ki, hi + li, hi - li, gi - ki};
      cr[q] = ar[q] + ur + vr, ci[q] = ai[q] + ui + vi;
      if (p)
        for (int j = 0; j < 4; j++) K(turn)(w, j, re + j, im + j);
      for (int j = 0; j < 4; j++) cr[q + (j + 1) * S] = re[j], ci[q + (j + 1) * S] = im[j];
    }
  }
}

/* Any radix, by the definition. */
INLINE void K(pass_any)(const fft_lanes_pass *f, const T *restrict xr, const T *restrict xi, T *restrict yr,
                        T *restrict yi, int64_t S) {
  int64_t M = S * f->m, r = (int64_t)f->radix;
  const T *roots = f->roots;
  for (int64_t p = 0; p < f->m; p++) {
    const T *w = (const T *)f->twiddles + 2 * (r - 1) * p, *ar = xr + S * p, *ai = xi + S * p;
    for (int64_t k = 0; k < r; k++) {
      T *cr = yr + S * (r * p + k), *ci = yi + S * (r * p + k);
      for (int64_t q = 0; q < S; q++) cr[q] = ar[q], ci[q] = ai[q];
      for (int64_t j = 1; j < r; j++) {
        T wr = roots[2 * (j * k % r)], wi = roots[2 * (j * k % r) + 1];
        for (int64_t q = 0; q < S; q++) {
          T re = ar[q + j * M], im = ai[q + j * M];
          cr[q] += re * wr - im * wi, ci[q] += re * wi + im * wr;
        }
      }
      for (int64_t q = 0; p && k && q < S; q++) K(turn)(w, k - 1, cr + q, ci + q);
    }
  }
}

/* The two pairs of arrays that passes go between. */
typedef struct K(planes) {
  T *re, *im, *other_re, *other_im;
} K(planes);

INLINE void K(swap)(K(planes) * a) {
  T *re = a->re, *im = a->im;
  a->re = a->other_re, a->im = a->other_im;
  a->other_re = re, a->other_im = im;
}

INLINE void K(passes)(const fft_lanes_plan *plan, K(planes) * a, int64_t lanes) {
  for (uint32_t i = 0; i < plan->n_passes; i++) {
    const fft_lanes_pass *f = &plan->passes[i];
    int64_t S = f->stride * lanes;
    switch (f->radix) {
      case 2:
        K(pass2)(f, a->re, a->im, a->other_re, a->other_im, S);
        break;
      case 3:
        K(pass3)(f, a->re, a->im, a->other_re, a->other_im, S);
        break;
      case 4:
        K(pass4)(f, a->re, a->im, a->other_re, a->other_im, S);
        break;
      case 5:
        K(pass5)(f, a->re, a->im, a->other_re, a->other_im, S);
        break;
      case 8:
        K(pass8)(f, a->re, a->im, a->other_re, a->other_im, S);
        break;
      default:
        K(pass_any)(f, a->re, a->im, a->other_re, a->other_im, S);
    }
    K(swap)(a);
  }
}

/* Lines times w, an element for all lanes; from `n` on up to `size` they are zero. */
INLINE void K(times)(const T *w, int64_t n, int64_t size, K(planes) * a, int64_t lanes) {
  for (int64_t k = 0; k < n; k++) {
    T *re = a->re + k * lanes, *im = a->im + k * lanes;
    for (int64_t l = 0; l < lanes; l++) K(turn)(w, k, re + l, im + l);
  }
  for (int64_t i = n * lanes; i < size * lanes; i++) a->re[i] = a->im[i] = 0;
}

INLINE void K(mirror)(K(planes) * a) {
  T *re = a->re, *other = a->other_re;
  a->re = a->im, a->im = re;
  a->other_re = a->other_im, a->other_im = other;
}

/* The kernel has the factor of the inverse in it. */
INLINE void K(transform)(const fft_lanes_plan *plan, K(planes) * a, int64_t lanes) {
  const fft_lanes_plan *inner = plan->inner ? plan->inner : plan;
  if (plan->inner) K(times)(plan->chirp, plan->n, inner->n, a, lanes);
  for (int round = 0; round < (plan->inner ? 2 : 1); round++) {
    K(passes)(inner, a, lanes);
    if (!plan->inner) return;
    if (round == 0) K(times)(plan->kernel, inner->n, inner->n, a, lanes);
    K(mirror)(a);
  }
  K(times)(plan->chirp, plan->n, plan->n, a, lanes);
}

/* --- lines in and out --- */

INLINE void K(load)(const T *in, fft_lanes_place at, int64_t n, int64_t lanes, T *restrict re, T *restrict im) {
  if (at.across == 1) {
    for (int64_t k = 0; k < n; k++)
      for (int64_t l = 0; l < lanes; l++) {
        re[k * lanes + l] = in[2 * (k * at.along + l)];
        im[k * lanes + l] = in[2 * (k * at.along + l) + 1];
      }
    return;
  }
  for (int64_t from = 0; from < n; from += 8) {
    int64_t to = from + 8 < n ? from + 8 : n;
    for (int64_t l = 0; l < lanes; l++)
      for (int64_t k = from; k < to; k++) {
        re[k * lanes + l] = in[2 * (k * at.along + l * at.across)];
        im[k * lanes + l] = in[2 * (k * at.along + l * at.across) + 1];
      }
  }
}

INLINE void K(store)(T *out, fft_lanes_place at, int64_t n, int64_t lanes, const T *restrict re, const T *restrict im) {
  if (at.across == 1) {
    for (int64_t k = 0; k < n; k++)
      for (int64_t l = 0; l < lanes; l++) {
        out[2 * (k * at.along + l)] = re[k * lanes + l];
        out[2 * (k * at.along + l) + 1] = im[k * lanes + l];
      }
    return;
  }
  for (int64_t from = 0; from < n; from += 8) {
    int64_t to = from + 8 < n ? from + 8 : n;
    for (int64_t l = 0; l < lanes; l++)
      for (int64_t k = from; k < to; k++) {
        out[2 * (k * at.along + l * at.across)] = re[k * lanes + l];
        out[2 * (k * at.along + l * at.across) + 1] = im[k * lanes + l];
      }
  }
}

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

/* The whole spectrum from its first half. What a real signal's can't have is ignored. */
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

/* Spectrum of the pairs to spectrum of the reals, in the other arrays: h + 1 numbers. */
INLINE void K(split)(const T *half, int64_t h, int64_t lanes, K(planes) * a) {
  for (int64_t k = 0; k <= h; k++) {
    const T *xr = a->re + k % h * lanes, *xi = a->im + k % h * lanes;
    const T *yr = a->re + (h - k) % h * lanes, *yi = a->im + (h - k) % h * lanes;
    T *to_re = a->other_re + k * lanes, *to_im = a->other_im + k * lanes, wr = half[2 * k], wi = half[2 * k + 1];
    for (int64_t l = 0; l < lanes; l++) {
      T er = (T)0.5 * (xr[l] + yr[l]), ei = (T)0.5 * (xi[l] - yi[l]);
      T dr = (T)0.5 * (xi[l] + yi[l]), di = (T)0.5 * (yr[l] - xr[l]);
      to_re[l] = er + (dr * wr - di * wi), to_im[l] = ei + (dr * wi + di * wr);
    }
  }
  K(swap)(a);
}

/* The other way round, for an inverse transform, which wants real and imaginary parts exchanged. */
INLINE void K(join)(const T *half, int64_t h, int64_t lanes, K(planes) * a) {
  for (int64_t k = 0; k < h; k++) {
    const T *xr = a->re + k * lanes, *xi = a->im + k * lanes, *yr = a->re + (h - k) * lanes,
            *yi = a->im + (h - k) * lanes;
    T *to_re = a->other_re + k * lanes, *to_im = a->other_im + k * lanes, wr = half[2 * k], wi = half[2 * k + 1];
    for (int64_t l = 0; l < lanes; l++) {
      T er = xr[l] + yr[l], ei = xi[l] - yi[l], dr = xr[l] - yr[l], di = xi[l] + yi[l];
      if (k == 0) er = xr[l] + yr[l], ei = 0, dr = xr[l] - yr[l], di = 0;
      T orr = dr * wr + di * wi, oi = di * wr - dr * wi; /* times the conjugate */
      to_re[l] = er - oi, to_im[l] = ei + orr;
    }
  }
  K(swap)(a);
}

INLINE void K(finish)(const fft_lanes_job *job, int64_t line, int64_t n, int64_t lanes, K(planes) * a) {
  const T *w = job->twiddle, scale = (T)job->scale;
  for (int64_t k = 0; w && k < n; k++)
    for (int64_t l = 0; l < lanes; l++)
      K(turn)(w, k * job->lines + line + l, a->re + k * lanes + l, a->im + k * lanes + l);
  if (job->scale == 1) return;
  for (int64_t i = 0; i < n * lanes; i++) a->re[i] *= scale, a->im[i] *= scale;
}

INLINE void K(lines)(const fft_lanes_job *job, int64_t line, int64_t lanes, const T *in, T *out, T *work) {
  const fft_lanes_plan *plan = job->plan;
  int64_t n = plan->n, each = (plan->size + 1) * lanes;
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
  K(transform)(plan, &a, lanes);
  if (job->inverse) K(mirror)(&a);
  if (job->kind == FFT_LANES_REAL_IN_HALF) K(split)(job->half, n, lanes, &a);
  int64_t results = job->kind == FFT_LANES_REAL_IN ? n / 2 + 1 : job->kind == FFT_LANES_REAL_IN_HALF ? n + 1 : n;
  K(finish)(job, line, results, lanes, &a);
  if (job->kind == FFT_LANES_REAL_OUT)
    K(store_reals)(out, job->out, n, lanes, &a);
  else
    K(store)(out, job->out, results, lanes, a.re, a.im);
}

static void K(lines_plain)(const fft_lanes_job *job, int64_t line, int64_t lanes, const void *in, void *out,
                           void *work) {
  K(lines)(job, line, lanes, in, out, work);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void K(lines_avx2)(const fft_lanes_job *job, int64_t line, int64_t lanes,
                                                          const void *in, void *out, void *work) {
  if (lanes == FFT_LANES)
    K(lines)(job, line, FFT_LANES, in, out, work);
  else
    K(lines)(job, line, lanes, in, out, work);
}
#endif

#undef INLINE
