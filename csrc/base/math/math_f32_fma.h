/* No include guard: elementary functions of f32 in f32 with fused multiply-adds, without branches or calls, so that
 * loops over them vectorise. The includer defines MF(name), a function's name, and MF_FMA(a, b, c), which is a * b + c
 * rounded once: an instruction where there is one, else arithmetic that gives the same bits. Where a result would lose
 * more than a tenth of a unit to an earlier rounding, values are pairs whose sum is meant. Errors are quoted in units
 * in the last place, over all of f32. Pure functions in round-to-nearest mode. */

/* e^v = 2^k (h + l), h the rounded sum, for |v| <= 104. */
typedef struct MF(exp_parts) {
  float h, l;
  int32_t k;
  uint32_t t; /* its lowest bits are those of k + 63 */
} MF(exp_parts);
MATH_INLINE MF(exp_parts) MF(exp_reduced)(float v) {
  float t = MF_FMA(v, 0x1.715476p+0f, 0x1.80007ep23f), n = t - 0x1.80007ep23f;
  float whole = MF_FMA(n, -0x1.62e4p-1f, v); /* exact: 16 bits of ln 2 */
  float r = MF_FMA(n, -0x1.7f7d1cp-20f, whole), low = MF_FMA(n, -0x1.7f7d1cp-20f, whole - r);
  float q = 0x1.6d65fcp-10f;
  q = MF_FMA(q, r, 0x1.123ab6p-7f);
  q = MF_FMA(q, r, 0x1.5554d2p-5f);
  q = MF_FMA(q, r, 0x1.55549p-3f);
  q = MF_FMA(q, r, 0.5f);
  float one = 1 + r, rest = MF_FMA(r * r, q, ((1 - one) + r) + low);
  float h = one + rest;
  return (MF(exp_parts)){h, (one - h) + rest, (int32_t)(base_f32_bits(t) - 0x4B40003F), base_f32_bits(t)};
}
/* 2^k for k in -126..127. */
MATH_INLINE float MF(power_of_two)(int32_t k) {
  return base_f32_of((uint32_t)(k + 127) << 23);
}
/* v 2^k with one rounding, k in -252..254. */
MATH_INLINE float MF(scaled)(float v, int32_t k) {
  int32_t half = k >> 1;
  return v * MF(power_of_two)(half) * MF(power_of_two)(k - half);
}
MATH_INLINE float MF(bound)(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

/* h 2^k of e^x's parts, the same bits as of the above. A product that is subnormal, or so small that it is 0, costs x86
 * well over a hundred cycles, and masks make such of most elements. Where x says that it is one, 2^-126 is added before
 * it is rounded, which happens at the same place, and is taken off the bits. 2^k is a product of two powers that are
 * always in range: 2^(k-64) and 2^64, or 2^(k+64) and 2^-64. */
MATH_INLINE float MF(exp_scaled)(MF(exp_parts) e, float x) {
  uint32_t up = x < 0 ? 128u << 23 : 0;
  uint32_t least = x < -87.34f ? 0x00800000 : 0; /* e^x is below 2^-126 */
  float v = MF_FMA(e.h * base_f32_of((e.t << 23) + up), base_f32_of((191u << 23) - up), base_f32_of(least));
  return base_f32_of(base_f32_bits(v) - least);
}

MATH_INLINE float MF(exp)(float x) {
  return MF(exp_scaled)(MF(exp_reduced)(MF(bound)(x, -104, 89)), x);
}

/* Half of it, so that 2^128 is in range. */
MATH_INLINE float MF(expm1)(float x) {
  float v = MF(bound)(x, -20, 89), t = MF_FMA(v, 0x1.715476p+0f, 0x1.8p23f), n = t - 0x1.8p23f;
  float whole = MF_FMA(n, -0x1.62e4p-1f, v), r = MF_FMA(n, -0x1.7f7d1cp-20f, whole);
  float low = MF_FMA(n, -0x1.7f7d1cp-20f, whole - r), q = 0x1.a241c6p-13f;
  q = MF_FMA(q, r, 0x1.6d4beep-10f);
  q = MF_FMA(q, r, 0x1.111004p-7f);
  q = MF_FMA(q, r, 0x1.5554e8p-5f);
  q = MF_FMA(q, r, 0x1.555556p-3f);
  q = MF_FMA(q, r, 0.5f);
  float s = MF(power_of_two)((int32_t)(base_f32_bits(t) - 0x4B400000) - 1), a = s - 0.5f, b = s * r, h = a + b;
  float rest = ((a - h) + b) + ((s - a) - 0.5f), result = 2 * (h + (rest + s * MF_FMA(r * r, q, low)));
  return __builtin_fabsf(x) < 0x1p-25f ? x : result;
}

/* log of 2^k (1 + f) (1 + c): f in [-0.3, 0.42], c tiny. */
MATH_INLINE float MF(log_parts)(float k, float f, float c) {
  float p = -0x1.38cddcp-4f, z = f * f;
  p = MF_FMA(p, f, 0x1.055fcap-3f);
  p = MF_FMA(p, f, -0x1.0d81fcp-3f);
  p = MF_FMA(p, f, 0x1.22d904p-3f);
  p = MF_FMA(p, f, -0x1.54728cp-3f);
  p = MF_FMA(p, f, 0x1.99a01ep-3f);
  p = MF_FMA(p, f, -0x1.000226p-2f);
  p = MF_FMA(p, f, 0x1.555554p-2f);
  float big = k * 0x1.62e4p-1f, h = big + f, l = (big - h) + f;
  return h + (MF_FMA(k, 0x1.7f7d1cp-20f, c) + MF_FMA(z, MF_FMA(p, f, -0.5f), l));
}
/* x > 0 and normal: 2^k (1 + f). */
MATH_INLINE float MF(log_reduced)(float x, int32_t *k) {
  uint32_t t = base_f32_bits(x) - 0x3F3504F3;
  *k = (int32_t)t >> 23;
  return base_f32_of((t & 0x7FFFFF) + 0x3F3504F3) - 1;
}
MATH_INLINE float MF(log)(float x) {
  int32_t k;
  bool small = x < 0x1p-126f;
  float f = MF(log_reduced)(small ? x * 0x1p23f : x, &k);
  float v = MF(log_parts)((float)(small ? k - 23 : k), f, 0);
  v = x > 0 ? v : x == 0 ? -INFINITY : NAN;
  return x == INFINITY ? x : v;
}
MATH_INLINE float MF(log1p)(float x) {
  int32_t k;
  float u = 1 + x, c = x < 1 ? x - (u - 1) : 1 - (u - x); /* 1 + x = u + c */
  float f = MF(log_reduced)(u, &k);
  c *= MF(power_of_two)(k < 64 ? -k : -64);
  f = k == 0 ? x : f;
  c = k == 0 ? 0 : c * MF_FMA(-f, MF_FMA(-f, 1 - f, 1), 1); /* c / (1 + f) */
  float v = MF(log_parts)((float)k, f, c);
  v = x > -1 ? v : x == -1 ? -INFINITY : NAN;
  return x == INFINITY || __builtin_fabsf(x) < 0x1p-25f ? x : v;
}

/* (n + nl) / (d + dl). */
MATH_INLINE float MF(quotient)(float n, float nl, float d, float dl) {
  float inverse = 1 / d, q = n * inverse;
  return MF_FMA(MF_FMA(-q, d, n) + MF_FMA(-q, dl, nl), inverse, q);
}

/* (1 - z) / (1 + z), z = e^-2|x|. Near 0 an odd polynomial. */
MATH_INLINE float MF(tanh)(float x) {
  float a = __builtin_fabsf(x), square = x * x, p = 0x1.33181ep-6f;
  MF(exp_parts) e = MF(exp_reduced)(MF(bound)(-2 * a, -20, 0));
  float s = MF(power_of_two)(e.k), z = s * e.h, low = s * e.l, n = 1 - z, d = 1 + z;
  float far = MF(quotient)(n, ((1 - n) - z) - low, d, ((1 - d) + z) + low);
  p = MF_FMA(p, square, -0x1.b6c7p-5f);
  p = MF_FMA(p, square, 0x1.1105fp-3f);
  p = MF_FMA(p, square, -0x1.55553ep-2f);
  float near = MF_FMA(a * square, p, a);
  return __builtin_copysignf(a < 0.4f ? near : far, x);
}

/* 1 / (1 + z) or z / (1 + z), z = e^-|x|. Beyond 29 the 1 of 1 + z is all that counts: there it is of 2^-44 h, so that
 * no product is subnormal, and what is missing comes last. */
MATH_INLINE float MF(logistic)(float x) {
  float v = MF(bound)(-__builtin_fabsf(x), -104, 0);
  MF(exp_parts) e = MF(exp_reduced)(v);
  float s = MF(power_of_two)(v < -29 ? -44 : e.k), z = s * e.h, low = s * e.l, d = 1 + z;
  float near = MF(quotient)(x < 0 ? z : 1, x < 0 ? low : 0, d, ((1 - d) + z) + low);
  float rest = x < -29 ? MF(power_of_two)(e.k + 44) : 1, least = x < -87.75f ? 0x1p-126f : 0;
  return base_f32_of(base_f32_bits(MF_FMA(near, rest, least)) - base_f32_bits(least));
}

/* Up to 1 an odd polynomial; beyond 1 - e^p, p a polynomial whose error is of 0.16. */
MATH_INLINE float MF(erf)(float x) {
  float a = __builtin_fabsf(x), b = a < 4 ? a : 4, z = a * a, p = -0x1.1f5a36p-19f, q = -0x1.6bd974p-16f;
  p = MF_FMA(p, z, 0x1.69473p-14f);
  p = MF_FMA(p, z, -0x1.a988ep-11f);
  p = MF_FMA(p, z, 0x1.5481dcp-8f);
  p = MF_FMA(p, z, -0x1.b8043cp-6f);
  p = MF_FMA(p, z, 0x1.ce2d74p-4f);
  p = MF_FMA(p, z, -0x1.812740p-2f);
  p = MF_FMA(p, z, 0x1.06eba8p-3f);
  float near = MF_FMA(p, a, a);
  q = MF_FMA(q, b, 0x1.cec866p-12f);
  q = MF_FMA(q, b, -0x1.138ddcp-8f);
  q = MF_FMA(q, b, 0x1.9d0404p-6f);
  q = MF_FMA(q, b, -0x1.bc1594p-4f);
  q = MF_FMA(q, b, -0x1.443556p-1f);
  q = MF_FMA(q, b, -0x1.212c12p+0f);
  q = MF_FMA(q, b, 0x1.8a7e3ap-13f);
  MF(exp_parts) e = MF(exp_reduced)(q);
  float s = MF(power_of_two)(e.k), c = s * e.h, far = 1 - c;
  far += ((1 - far) - c) - s * e.l;
  return x != x ? x : __builtin_copysignf(a < 1 ? near : far, x);
}

/* z + 1 / z of z = e^|x| / 2^2, so that 2^128 is in range; halves of both, times 4. */
MATH_INLINE float MF(cosh_inline)(float x) {
  MF(exp_parts) e = MF(exp_reduced)(MF(bound)(__builtin_fabsf(x), 0, 89.5f));
  float s = MF(power_of_two)(e.k - 2), z = s * e.h, inverse = 0x1p-4f / z, sum = z + inverse;
  float rest =
      ((z - sum) + inverse) + MF_FMA(16 * inverse, MF_FMA(-inverse, z, 0x1p-4f) - inverse * (s * e.l), s * e.l);
  return 2 * (sum + rest);
}

/* Up to 0.75 1 - erf(x); beyond e^-a^2 times a polynomial in 1 / (a + 1/2), over a + 1/2, a = |x|: the polynomial's
 * value lies in 0.58 to 0.65, so that how the quotient was rounded hardly matters. It is 0 from 10.06 on. */
MATH_INLINE float MF(erfc_inline)(float x) {
  float a = MF(bound)(__builtin_fabsf(x), 0, 10.1f), square = a * a, low = MF_FMA(a, a, -square), p = -0x1.2ac582p-17f;
  p = MF_FMA(p, square, 0x1.cc1a02p-14f);
  p = MF_FMA(p, square, -0x1.ba61dap-11f);
  p = MF_FMA(p, square, 0x1.55ec1p-8f);
  p = MF_FMA(p, square, -0x1.b82308p-6f);
  p = MF_FMA(p, square, 0x1.ce2ea8p-4f);
  p = MF_FMA(p, square, -0x1.812744p-2f);
  p = MF_FMA(p, square, 0x1.06eba8p-3f);
  float one = 1 - x, near = one + MF_FMA(-x, p, (1 - one) - x);
  float d = a + 0.5f, dl = a - (d - 0.5f), inverse = 1 / d, t = inverse - 0.453125f, q = 0x1.799336p-2f;
  q = MF_FMA(q, t, -0x1.2b604ap-2f);
  q = MF_FMA(q, t, -0x1.4c8004p-5f);
  q = MF_FMA(q, t, 0x1.c7482ep-3f);
  q = MF_FMA(q, t, -0x1.b65572p-3f);
  q = MF_FMA(q, t, 0x1.dc30eap-5f);
  q = MF_FMA(q, t, 0x1.33036p-3f);
  q = MF_FMA(q, t, -0x1.fc0594p-3f);
  q = MF_FMA(q, t, 0x1.6fbd5p-5f);
  q *= t;
  float c = 0x1.487f44p-1f + q, cl = ((0x1.487f44p-1f - c) + q) + 0x1.614332p-26f;
  MF(exp_parts) e = MF(exp_reduced)(-square);
  float n = e.h * c, nl = MF_FMA(e.h, c, -n) + (e.h * MF_FMA(-low, c, cl) + e.l * c), far = n * inverse;
  far = MF_FMA(MF_FMA(-far, d, n) + MF_FMA(-far, dl, nl), inverse, far);
  far = MF(exp_scaled)((MF(exp_parts)){far, 0, e.k, e.t}, -square);
  far = x < 0 ? 2 - far : far;
  return __builtin_fabsf(x) < 0.75f ? near : far;
}
