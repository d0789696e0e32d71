/* No include guard: the passes of fft_lanes_kernel.h over numbers q, q + STEP, ... from `from` on, STEP of them at a
 * time as one E. Included for vectors and for single numbers; B(name) is the name of this instance. */

/* A number times root k of w. */
INLINE void B(turn)(const T *w, int64_t k, E *re, E *im) {
  E r = *re * w[2 * k] - *im * w[2 * k + 1];
  *im = *re * w[2 * k + 1] + *im * w[2 * k];
  *re = r;
}

/* An element of the operands, of the results. */
#define X(p, i) (*(const E *)(const void *)((p) + (i)))
#define Y(p, i) (*(E *)(void *)((p) + (i)))

/* The butterfly of 2: sum and difference. Operands are M apart, results S; w: the twiddles, where `turned` (the
 * first group's are all 1). */
INLINE void B(pass2)(const T *w, const T *xr, const T *xi, int64_t M, T *yr, T *yi, int64_t S, int64_t from,
                     bool turned) {
  for (int64_t q = from; q + STEP <= S; q += STEP) {
    E ar = X(xr, q), ai = X(xi, q), br = X(xr, q + M), bi = X(xi, q + M), re = ar - br, im = ai - bi;
    if (turned) B(turn)(w, 0, &re, &im);
    Y(yr, q) = ar + br, Y(yi, q) = ai + bi;
    Y(yr, q + S) = re, Y(yi, q + S) = im;
  }
}

/* Of 3, by the real and imaginary parts of the cube root of 1: -1/2 and sqrt(3)/2. */
INLINE void B(pass3)(const T *w, const T *xr, const T *xi, int64_t M, T *yr, T *yi, int64_t S, int64_t from,
                     bool turned) {
  const T h = (T)0.86602540378443864676;
  for (int64_t q = from; q + STEP <= S; q += STEP) {
    E ar = X(xr, q), ai = X(xi, q), br = X(xr, q + M), bi = X(xi, q + M), cr = X(xr, q + 2 * M), ci = X(xi, q + 2 * M);
    E sr = br + cr, si = bi + ci, dr = h * (bi - ci), di = h * (cr - br);
    E mr = ar - (T)0.5 * sr, mi = ai - (T)0.5 * si, er = mr + dr, ei = mi + di, fr = mr - dr, fi = mi - di;
    if (turned) B(turn)(w, 0, &er, &ei), B(turn)(w, 1, &fr, &fi);
    Y(yr, q) = ar + sr, Y(yi, q) = ai + si;
    Y(yr, q + S) = er, Y(yi, q + S) = ei;
    Y(yr, q + 2 * S) = fr, Y(yi, q + 2 * S) = fi;
  }
}

/* Of 4 in registers: two steps of 2, and a turn by -i that is a swap. */
INLINE void B(four)(E *r0, E *i0, E *r1, E *i1, E *r2, E *i2, E *r3, E *i3) {
  E sr = *r0 + *r2, si = *i0 + *i2, dr = *r0 - *r2, di = *i0 - *i2;
  E tr = *r1 + *r3, ti = *i1 + *i3, ur = *r1 - *r3, ui = *i1 - *i3;
  *r0 = sr + tr, *i0 = si + ti, *r2 = sr - tr, *i2 = si - ti;
  *r1 = dr + ui, *i1 = di - ur, *r3 = dr - ui, *i3 = di + ur;
}

INLINE void B(pass4)(const T *w, const T *xr, const T *xi, int64_t M, T *yr, T *yi, int64_t S, int64_t from,
                     bool turned) {
  for (int64_t q = from; q + STEP <= S; q += STEP) {
    E r0 = X(xr, q), r1 = X(xr, q + M), r2 = X(xr, q + 2 * M), r3 = X(xr, q + 3 * M);
    E i0 = X(xi, q), i1 = X(xi, q + M), i2 = X(xi, q + 2 * M), i3 = X(xi, q + 3 * M);
    B(four)(&r0, &i0, &r1, &i1, &r2, &i2, &r3, &i3);
    if (turned) B(turn)(w, 0, &r1, &i1), B(turn)(w, 1, &r2, &i2), B(turn)(w, 2, &r3, &i3);
    Y(yr, q) = r0, Y(yr, q + S) = r1, Y(yr, q + 2 * S) = r2, Y(yr, q + 3 * S) = r3;
    Y(yi, q) = i0, Y(yi, q + S) = i1, Y(yi, q + 2 * S) = i2, Y(yi, q + 3 * S) = i3;
  }
}

/* Of 5, with the cosines and sines of 72 and 144 degrees; symmetric pairs share products. */
INLINE void B(pass5)(const T *w, const T *xr, const T *xi, int64_t M, T *yr, T *yi, int64_t S, int64_t from,
                     bool turned) {
  const T c1 = (T)0.30901699437494742410, s1 = (T)0.95105651629515357212, c2 = (T)-0.80901699437494742410,
          s2 = (T)0.58778525229247312917;
  for (int64_t q = from; q + STEP <= S; q += STEP) {
    E ar = X(xr, q), ai = X(xi, q);
    E ur = X(xr, q + M) + X(xr, q + 4 * M), ui = X(xi, q + M) + X(xi, q + 4 * M);
    E vr = X(xr, q + 2 * M) + X(xr, q + 3 * M), vi = X(xi, q + 2 * M) + X(xi, q + 3 * M);
    E er = X(xr, q + M) - X(xr, q + 4 * M), ei = X(xi, q + M) - X(xi, q + 4 * M);
    E fr = X(xr, q + 2 * M) - X(xr, q + 3 * M), fi = X(xi, q + 2 * M) - X(xi, q + 3 * M);
    E gr = ar + c1 * ur + c2 * vr, gi = ai + c1 * ui + c2 * vi, hr = ar + c2 * ur + c1 * vr,
      hi = ai + c2 * ui + c1 * vi;
    E kr = s1 * ei + s2 * fi, ki = -(s1 * er + s2 * fr), lr = s2 * ei - s1 * fi, li = s1 * fr - s2 * er;
    E r1 = gr + kr, i1 = gi + ki, r2 = hr + lr, i2 = hi + li, r3 = hr - lr, i3 = hi - li, r4 = gr - kr, i4 = gi - ki;
    if (turned) B(turn)(w, 0, &r1, &i1), B(turn)(w, 1, &r2, &i2), B(turn)(w, 2, &r3, &i3), B(turn)(w, 3, &r4, &i4);
    Y(yr, q) = ar + ur + vr, Y(yi, q) = ai + ui + vi;
    Y(yr, q + S) = r1, Y(yr, q + 2 * S) = r2, Y(yr, q + 3 * S) = r3, Y(yr, q + 4 * S) = r4;
    Y(yi, q + S) = i1, Y(yi, q + 2 * S) = i2, Y(yi, q + 3 * S) = i3, Y(yi, q + 4 * S) = i4;
  }
}

/* Of 8: one step of 2, the turns by eighth roots, then two of 4. */
INLINE void B(pass8)(const T *w, const T *xr, const T *xi, int64_t M, T *yr, T *yi, int64_t S, int64_t from,
                     bool turned) {
  const T h = (T)0.70710678118654752440;
  for (int64_t q = from; q + STEP <= S; q += STEP) {
    E r[8], i[8];
    for (int j = 0; j < 8; j++) r[j] = X(xr, q + j * M), i[j] = X(xi, q + j * M);
    for (int j = 0; j < 4; j++) {
      E a = r[j], b = i[j];
      r[j] = a + r[j + 4], i[j] = b + i[j + 4];
      r[j + 4] = a - r[j + 4], i[j + 4] = b - i[j + 4];
    }
    E a = r[5], b = r[6], c = r[7], d = i[7]; /* times the first three eighth roots */
    r[5] = h * (a + i[5]), i[5] = h * (i[5] - a);
    r[6] = i[6], i[6] = -b;
    r[7] = h * (d - c), i[7] = -h * (c + d);
    B(four)(&r[0], &i[0], &r[1], &i[1], &r[2], &i[2], &r[3], &i[3]);
    B(four)(&r[4], &i[4], &r[5], &i[5], &r[6], &i[6], &r[7], &i[7]);
    if (turned) {
      B(turn)(w, 0, &r[4], &i[4]), B(turn)(w, 1, &r[1], &i[1]), B(turn)(w, 2, &r[5], &i[5]),
          B(turn)(w, 3, &r[2], &i[2]);
      B(turn)(w, 4, &r[6], &i[6]), B(turn)(w, 5, &r[3], &i[3]), B(turn)(w, 6, &r[7], &i[7]);
    }
    for (int j = 0; j < 4; j++) {
      Y(yr, q + 2 * j * S) = r[j], Y(yi, q + 2 * j * S) = i[j];
      Y(yr, q + (2 * j + 1) * S) = r[j + 4], Y(yi, q + (2 * j + 1) * S) = i[j + 4];
    }
  }
}

/* Any radix, by the definition: r * r products, which for radices up to 31 is less than a convolution takes. */
INLINE void B(pass_any)(const T *w, const T *roots, int64_t r, const T *xr, const T *xi, int64_t M, T *yr, T *yi,
                        int64_t S, int64_t from, bool turned) {
  for (int64_t q = from; q + STEP <= S; q += STEP)
    for (int64_t k = 0; k < r; k++) {
      E re = X(xr, q), im = X(xi, q);
      for (int64_t j = 1, at = k; j < r; j++, at = at + k < r ? at + k : at + k - r) {
        E a = X(xr, q + j * M), b = X(xi, q + j * M);
        B(turn)(roots, at, &a, &b);
        re += a, im += b;
      }
      if (turned && k) B(turn)(w, k - 1, &re, &im);
      Y(yr, q + k * S) = re, Y(yi, q + k * S) = im;
    }
}

/* n numbers times w, one number for all; times_each: times those of w one by one, in arrays of parts. */
INLINE void B(times)(const T *w, T *re, T *im, int64_t n, int64_t from) {
  for (int64_t q = from; q + STEP <= n; q += STEP) B(turn)(w, 0, &Y(re, q), &Y(im, q));
}

INLINE void B(times_each)(const T *wr, const T *wi, T *re, T *im, int64_t n, int64_t from) {
  for (int64_t q = from; q + STEP <= n; q += STEP) {
    E a = X(re, q), b = X(im, q), c = X(wr, q), d = X(wi, q);
    Y(re, q) = a * c - b * d, Y(im, q) = a * d + b * c;
  }
}

/* Spectrum of pairs to that of reals, at one pair of places; see fft_lanes_kernel.h. */
INLINE void B(split)(const T *w, const T *xr, const T *xi, const T *yr, const T *yi, T *re, T *im, int64_t n,
                     int64_t from) {
  for (int64_t q = from; q + STEP <= n; q += STEP) {
    E er = (T)0.5 * (X(xr, q) + X(yr, q)), ei = (T)0.5 * (X(xi, q) - X(yi, q));
    E dr = (T)0.5 * (X(xi, q) + X(yi, q)), di = (T)0.5 * (X(yr, q) - X(xr, q));
    B(turn)(w, 0, &dr, &di);
    Y(re, q) = er + dr, Y(im, q) = ei + di;
  }
}

INLINE void B(join)(const T *w, const T *xr, const T *xi, const T *yr, const T *yi, T *re, T *im, int64_t n,
                    int64_t from) {
  for (int64_t q = from; q + STEP <= n; q += STEP) {
    E er = X(xr, q) + X(yr, q), ei = X(xi, q) - X(yi, q), dr = X(xr, q) - X(yr, q), di = X(xi, q) + X(yi, q);
    E a = dr * w[0] + di * w[1], b = di * w[0] - dr * w[1]; /* times the conjugate */
    Y(re, q) = er - b, Y(im, q) = ei + a;
  }
}

#undef X
#undef Y
