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

/* log of 2^k (1 + f) (1 + c): f in [-0.3, 0.42], c tiny; as h + l. */
typedef struct MF(log_pair) {
  float h, l;
} MF(log_pair);
MATH_INLINE MF(log_pair) MF(log_apart)(float k, float f, float c) {
  float p = -0x1.38cddcp-4f, z = f * f;
  p = MF_FMA(p, f, 0x1.055fcap-3f);
  p = MF_FMA(p, f, -0x1.0d81fcp-3f);
  p = MF_FMA(p, f, 0x1.22d904p-3f);
  p = MF_FMA(p, f, -0x1.54728cp-3f);
  p = MF_FMA(p, f, 0x1.99a01ep-3f);
  p = MF_FMA(p, f, -0x1.000226p-2f);
  p = MF_FMA(p, f, 0x1.555554p-2f);
  float big = k * 0x1.62e4p-1f, h = big + f, l = (big - h) + f;
  return (MF(log_pair)){h, MF_FMA(k, 0x1.7f7d1cp-20f, c) + MF_FMA(z, MF_FMA(p, f, -0.5f), l)};
}
MATH_INLINE float MF(log_parts)(float k, float f, float c) {
  MF(log_pair) v = MF(log_apart)(k, f, c);
  return v.h + v.l;
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

/* tanh and erf by interval: four from each power of two to the next, the first below the least of them, the last up to
 * where the result is 1. In each the function is value + d (c1 + c2 d + ...), d the distance from a center where the
 * function is so near a f32 that value is it; in the first one x itself is the value. Tables are read at the low four
 * bits of a number, as vector instructions do. */
MATH_INLINE float MF(tanh)(float x) {
  static const float center[16] = {0x1.1fc3ecp+1f, 0x1.615d86p+1f, 0x1.a1e76cp+1f, 0x1.dea94ep+1f,
                                   0x1.1dd45p+2f,  0x1.5d13ccp+2f, 0x1.ddc88p+2f,  0,
                                   0x1.229d04p-1f, 0x1.6033e2p-1f, 0x1.a0d0e6p-1f, 0x1.df65b8p-1f,
                                   0x1.1e33e2p+0f, 0x1.5cf04cp+0f, 0x1.9cd65cp+0f, 0x1.e26bdcp+0f},
                     value[16] = {0x1.f4b56p-1f,  0x1.fbeb78p-1f, 0x1.fe81fep-1f, 0x1.ff6c08p-1f,
                                  0x1.ffdd62p-1f, 0x1.fffb34p-1f, 0x1.ffffeap-1f, 0,
                                  0x1.06f644p-1f, 0x1.31794cp-1f, 0x1.57fbbap-1f, 0x1.779104p-1f,
                                  0x1.9d1d64p-1f, 0x1.c112dp-1f,  0x1.d8db8ep-1f, 0x1.e8e6f2p-1f},
                     c1[16] = {0x1.655802p-5f, 0x1.0417a4p-6f,  0x1.7d7384p-8f,  0x1.27c542p-9f,
                               0x1.14e7ep-11f, 0x1.32ffc8p-14f, 0x1.67efe6p-20f, 0,
                               0x1.78f18p-1f,  0x1.49beep-1f,   0x1.18e5bep-1f,  0x1.d905d4p-2f,
                               0x1.655828p-2f, 0x1.d87a02p-3f,  0x1.2d2b5p-3f,   0x1.693ad4p-4f},
                     c2[16] = {-0x1.5d768ep-5f,  -0x1.02051p-6f,   -0x1.7c5718p-8f,  -0x1.276faep-9f,
                               -0x1.14d11ep-11f, -0x1.32f732p-14f, -0x1.603554p-20f, -0x1.55554ep-2f,
                               -0x1.8331d8p-2f,  -0x1.8978aep-2f,  -0x1.796fcap-2f,  -0x1.5af9c4p-2f,
                               -0x1.205412p-2f,  -0x1.9e685ep-3f,  -0x1.162502p-3f,  -0x1.58eeccp-4f},
                     c3[16] = {0x1.bd4a32p-6f,  0x1.52858p-7f,   0x1.f822f4p-9f,  0x1.8900d6p-10f,
                               0x1.70922ap-12f, 0x1.98eee4p-15f, 0x1.a0ef94p-21f, 0x1.110f36p-3f,
                               -0x1.a37af6p-5f, 0x1.dd55a8p-7f,  0x1.0941c6p-4f,  0x1.836092p-4f,
                               0x1.c61c08p-4f,  0x1.9bf7fcp-4f,  0x1.38fbcep-4f,  0x1.a1ed1ap-5f},
                     c4[16] = {-0x1.94f9e8p-7f,  -0x1.479a2ap-8f,  -0x1.f21938p-10f, -0x1.874f44p-11f,
                               -0x1.711facp-13f, -0x1.9a3ac2p-16f, -0x1.cb28f8p-22f, -0x1.b996b8p-5f,
                               0x1.38504ap-3f,   0x1.e94858p-4f,   0x1.42ac5ap-4f,   0x1.65536ep-5f,
                               0x1.1ece3ap-8f,   -0x1.542562p-6f,  -0x1.9ebffp-6f,   -0x1.52bdf8p-6f},
                     c5[16] = {0x1.051bf2p-8f,  0x1.ecb92ep-10f, 0x1.888242p-11f, 0x1.392198p-12f,
                               0x1.31a72p-14f,  0x1.538caep-17f, 0x1.110ccap-22f, 0x1.5d5d54p-6f,
                               -0x1.6b57e8p-5f, -0x1.ea336p-5f,  -0x1.0133dap-4f, -0x1.b76ed8p-5f,
                               -0x1.0c9662p-5f, -0x1.50f904p-7f, 0x1.1f9236p-10f, 0x1.3072c8p-8f},
                     c6[16] = {-0x1.7bda6ep-11f, -0x1.1dff6ap-11f, -0x1.001ff8p-12f, -0x1.91424ap-14f,
                               -0x1.7c4c58p-16f, -0x1.9f15ap-19f,  -0x1.341d66p-24f, -0x1.b5c606p-8f,
                               -0x1.de627ep-5f,  -0x1.56406ep-6f,  0x1.98f70cp-4f,   0x1.6a5a06p-7f,
                               0x1.3fb25ep-6f,   0x1.677efap-7f,   0x1.38e5aap-8f,   0x1.cee728p-10f};
  float a = __builtin_fabsf(x);
  int32_t i = (int32_t)(base_f32_bits(a) >> 21);
  i = i < 503 ? 503 : i;
  i = i > 518 ? 518 : i;
  float d = (a > 9.0625f ? 9.0625f : a) - center[i & 15], v = a < 0.5f ? a * a : d, p = c6[i & 15];
  p = MF_FMA(p, v, c5[i & 15]);
  p = MF_FMA(p, v, c4[i & 15]);
  p = MF_FMA(p, v, c3[i & 15]);
  p = MF_FMA(p, v, c2[i & 15]);
  p = MF_FMA(p, v, c1[i & 15]);
  return __builtin_copysignf(MF_FMA(p, d, a < 0.5f ? a : value[i & 15]), x);
}
MATH_INLINE float MF(erf)(float x) {
  static const float
      center[16] = {0x1.214fep+1f,  0x1.63036ap+1f, 0x1.c5b4e8p+1f, 0,
                    0x1.200832p-2f, 0x1.61a74p-2f,  0x1.9cfc96p-2f, 0x1.e28b44p-2f,
                    0x1.2098eap-1f, 0x1.61b7a4p-1f, 0x1.a1596ep-1f, 0x1.deeeeep-1f,
                    0x1.1ea692p+0f, 0x1.6147aep+0f, 0x1.9e963p+0f,  0x1.defdf4p+0f},
      value[16] = {0x1.ff49a8p-1f, 0x1.fff482p-1f, 0x1.ffffeep-1f, 0,
                   0x1.3ca334p-2f, 0x1.7fbdb4p-2f, 0x1.b9ed06p-2f, 0x1.fabce4p-2f,
                   0x1.263652p-1f, 0x1.57c6c8p-1f, 0x1.8082bep-1f, 0x1.a0d4e8p-1f,
                   0x1.c5fda2p-1f, 0x1.e5e56ep-1f, 0x1.f4bbd2p-1f, 0x1.fbd4aep-1f},
      c1[16] = {0x1.beee64p-8f, 0x1.0de77p-11f, 0x1.0c874ap-18f, 0x1.06eba8p-3f, 0x1.0ae41cp+0f, 0x1.0062bep+0f,
                0x1.eb00cp-1f,  0x1.ceaf3p-1f,  0x1.a479cap-1f,  0x1.6676b4p-1f, 0x1.2946aap-1f, 0x1.e1aa5ap-2f,
                0x1.49caap-2f,  0x1.581facp-3f, 0x1.4f925ap-4f,  0x1.16e41p-5f},
      c2[16] = {-0x1.f915c2p-7f, -0x1.76515ap-10f, -0x1.e4da5ap-17f, -0x1.0f1bd4p-21f, -0x1.2c4986p-2f, -0x1.623012p-2f,
                -0x1.8c0d52p-2f, -0x1.b4114p-2f,   -0x1.da03f2p-2f,  -0x1.ef4ac4p-2f,  -0x1.e4a3d8p-2f, -0x1.c28ec6p-2f,
                -0x1.7146f4p-2f, -0x1.dae41ap-3f,  -0x1.0fb9c8p-3f,  -0x1.04e93cp-4f},
      c3[16] = {0x1.57546ep-6f,  0x1.4353c8p-9f,  0x1.efd2dap-16f, -0x1.811eeap-2f, -0x1.2b884p-2f, -0x1.044e1cp-2f,
                -0x1.b9b52cp-3f, -0x1.56ed46p-3f, -0x1.98c692p-4f, -0x1.5bb0a8p-7f, 0x1.04bc8p-4f,  0x1.e1aad2p-4f,
                0x1.4b750cp-3f,  0x1.42310cp-3f,  0x1.dae23ap-4f,  0x1.16fa4ep-4f},
      c4[16] = {-0x1.2fefdep-6f, -0x1.814d2p-9f,  -0x1.6c5af4p-15f, -0x1.410a1cp-11f, 0x1.23aaecp-3f, 0x1.4dc2d8p-3f,
                0x1.69ed54p-3f,  0x1.7c2a72p-3f,  0x1.746fd2p-3f,   0x1.5168a2p-3f,   0x1.0d77aep-3f, 0x1.77147cp-4f,
                0x1.e4d81ep-6f,  -0x1.ffc5b6p-6f, -0x1.96b9b2p-5f,  -0x1.5c1078p-5f},
      c5[16] = {0x1.55372p-7f,   0x1.534c1cp-9f,  0x1.5ba5d8p-14f, 0x1.e2ea78p-4f,  0x1.ec7822p-5f,  0x1.ea925cp-5f,
                0x1.511be2p-5f,  0x1.062feep-6f,  -0x1.6136d2p-7f, -0x1.4f9de8p-5f, -0x1.009a66p-4f, -0x1.1be2f6p-4f,
                -0x1.f88938p-5f, -0x1.eaf6eap-6f, -0x1.67c1f4p-9f, 0x1.6f5b5p-7f},
      c6[16] = {-0x1.6b2224p-9f, -0x1.b46ee4p-10f, -0x1.94a4eep-14f, -0x1.372ab4p-6f, -0x1.2ba84ep+1f, -0x1.29939ep+1f,
                -0x1.45700cp+1f, -0x1.428d8ap+1f,  0x1.96013p-5f,    -0x1.40637ap-7f, 0x1.0f8b06p-6f,  0x1.7e8ff6p-7f,
                0x1.f65c4p-7f,   0x1.5c1b54p-6f,   0x1.d76b7ap-7f,   0x1.22b49cp-8f};
  float a = __builtin_fabsf(x);
  int32_t i = (int32_t)(base_f32_bits(a) >> 21);
  i = i < 499 ? 499 : i;
  i = i > 514 ? 514 : i;
  float v = (a > 4 ? 4 : a) - center[i & 15], p = c6[i & 15];
  p = MF_FMA(p, v, c5[i & 15]);
  p = MF_FMA(p, v, c4[i & 15]);
  p = MF_FMA(p, v, c3[i & 15]);
  p = MF_FMA(p, v, c2[i & 15]);
  p = MF_FMA(p, v, c1[i & 15]);
  return __builtin_copysignf(MF_FMA(p, v, a < 0.25f ? a : value[i & 15]), x);
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

/* z + 1 / z of z = e^|x| / 2^2, so that 2^128 is in range; halves of both, times 4. */
MATH_INLINE float MF(cosh_inline)(float x) {
  MF(exp_parts) e = MF(exp_reduced)(MF(bound)(__builtin_fabsf(x), 0, 89.5f));
  float s = MF(power_of_two)(e.k - 2), z = s * e.h, inverse = 0x1p-4f / z, sum = z + inverse;
  float rest =
      ((z - sum) + inverse) + MF_FMA(16 * inverse, MF_FMA(-inverse, z, 0x1p-4f) - inverse * (s * e.l), s * e.l);
  return 2 * (sum + rest);
}

/* e^-x^2 times e^x^2 erfc(x), which changes slowly: by interval, as in tanh, four from each power of two to the next of
 * 1 + |x|. At 0 it is 1. A result is 0 from 10.06 on. */
MATH_INLINE float MF(erfc_inline)(float x) {
  static const float
      center[16] = {0x1.400b3cp+0f, 0x1.bfe88ap+0f, 0x1.200c22p+1f, 0x1.5ff8f2p+1f, 0x1.c01702p+1f, 0x1.2003dep+2f,
                    0x1.60046cp+2f, 0x1.a00204p+2f, 0x1.ffe25p+2f,  0x1.318094p+3f, 0x1.318094p+3f, 0x1.318094p+3f,
                    0x0p+0f,        0x1.801658p-2f, 0x1.3ffd6ep-1f, 0x1.c009fp-1f},
      value[16] = {0x1.789d3p-2f,  0x1.23dc0ep-2f, 0x1.d9331ap-3f, 0x1.8ca5dap-3f, 0x1.3dfb64p-3f, 0x1.f5ac3p-4f,
                   0x1.9d8586p-4f, 0x1.5f741ap-4f, 0x1.1eb924p-4f, 0x1.e18108p-5f, 0x1.e18108p-5f, 0x1.e18108p-5f,
                   0x1p+0f,        0x1.5f21d2p-1f, 0x1.1d17d2p-1f, 0x1.db6e38p-2f},
      c1[16] = {-0x1.ab97ap-3f,  -0x1.0c5244p-3f, -0x1.6a57fep-4f, -0x1.030e64p-4f, -0x1.526678p-5f, -0x1.aa3402p-6f,
                -0x1.2385a8p-6f, -0x1.a6dedap-7f, -0x1.1a788ep-7f, -0x1.8f2c4ep-8f, -0x1.8f2c4ep-8f, -0x1.8f2c4ep-8f,
                -0x1.20dd72p+0f, -0x1.3a523ap-1f, -0x1.bacp-2f,    -0x1.43627ep-2f},
      c2[16] = {0x1.b55432p-4f, 0x1.c902f4p-5f,  0x1.05fbc8p-5f,  0x1.43c9ap-6f,   0x1.5d28e2p-7f,  0x1.62b41p-8f,
                0x1.9516cap-9f, 0x1.f757f8p-10f, 0x1.143f34p-10f, 0x1.493046p-11f, 0x1.493046p-11f, 0x1.493046p-11f,
                0x1.fffe4ep-1f, 0x1.d27842p-2f,  0x1.2579dcp-2f,  0x1.80e388p-3f},
      c3[16] = {-0x1.9b3ac4p-5f,  -0x1.6ce39ep-6f,  -0x1.6851e6p-7f,  -0x1.8501ap-8f,
                -0x1.5e0f72p-9f,  -0x1.217ae4p-10f, -0x1.158842p-11f, -0x1.286f1ap-12f,
                -0x1.0c2db8p-13f, -0x1.0e15dp-14f,  -0x1.0e15dp-14f,  -0x1.0e15dp-14f,
                -0x1.80fe38p-1f,  -0x1.2e725p-2f,   -0x1.59c7acp-3f,  -0x1.9d45e2p-4f},
      c4[16] = {0x1.687dd8p-6f,  0x1.1390fcp-7f,  0x1.da0d98p-9f,  0x1.c2e88p-10f,  0x1.55d8fap-11f, 0x1.cfe2dcp-13f,
                0x1.77369ap-14f, 0x1.59a70cp-15f, 0x1.0293d6p-16f, 0x1.b8ee6cp-18f, 0x1.b8ee6cp-18f, 0x1.b8ee6cp-18f,
                0x1.fc61cp-2f,   0x1.6104eep-3f,  0x1.72db04p-4f,  0x1.981b38p-5f},
      c5[16] = {-0x1.2e2466p-7f,  -0x1.90e5d8p-9f,  -0x1.2f85acp-10f, -0x1.fcf948p-12f,
                -0x1.4dac8cp-13f, -0x1.732c6ap-15f, -0x1.fa22cep-17f, -0x1.947d88p-18f,
                -0x1.fb863ap-20f, -0x1.63fe96p-21f, -0x1.63fe96p-21f, -0x1.63fe96p-21f,
                -0x1.1f0b6ep-2f,  -0x1.7c5852p-4f,  -0x1.70a27p-5f,   -0x1.7ad664p-6f},
      c6[16] = {0x1.d751c8p-9f,  0x1.12f66ap-10f, 0x1.71584cp-12f, 0x1.14edbep-13f, 0x1.368daep-15f, 0x1.1f3e8ep-17f,
                0x1.4d8886p-19f, 0x1.cdf7b4p-21f, 0x1.e18116p-23f, 0x1.1d641ep-24f, 0x1.1d641ep-24f, 0x1.1d641ep-24f,
                0x1.ad315ap-4f,  0x1.7a61a2p-5f,  0x1.54b328p-6f,  0x1.492a34p-7f};
  float a = MF(bound)(__builtin_fabsf(x), 0, 10.1f), square = a * a, low = MF_FMA(a, a, -square);
  int32_t i = (int32_t)(base_f32_bits(1 + a) >> 21);
  float d = a - center[i & 15], p = c6[i & 15];
  p = MF_FMA(p, d, c5[i & 15]);
  p = MF_FMA(p, d, c4[i & 15]);
  p = MF_FMA(p, d, c3[i & 15]);
  p = MF_FMA(p, d, c2[i & 15]);
  p = MF_FMA(p, d, c1[i & 15]);
  float c = MF_FMA(p, d, value[i & 15]), cl = MF_FMA(p, d, value[i & 15] - c);
  MF(exp_parts) e = MF(exp_reduced)(-square);
  float n = e.h * c, nl = MF_FMA(e.h, c, -n) + (e.h * MF_FMA(-low, c, cl) + e.l * c);
  float far = MF(exp_scaled)((MF(exp_parts)){n + nl, 0, e.k, e.t}, -square);
  return x < 0 ? 2 - far : far;
}

/* The inverse of erf: x times what changes slowly with w = -log(1 - x^2), by interval, as in tanh, four from each power
 * of two to the next of 2 + w. Results of 2^-124 and less are within 1.02 ulp, others within 0.71. */
MATH_INLINE float MF(erf_inv)(float x) {
  static const float center[16] = {0x1.00014p-2f,  0x1.7feacep-1f, 0x1.3febe8p+0f, 0x1.c00be4p+0f,
                                   0x1.3ff7dap+1f, 0x1.c0059cp+1f, 0x1.200eb4p+2f, 0x1.5fead2p+2f,
                                   0x1.bfe952p+2f, 0x1.201686p+3f, 0x1.5ffd82p+3f, 0x1.a00f66p+3f,
                                   0x1.ea519ap+3f, 0x1.ea519ap+3f, 0x1.ea519ap+3f, 0x1.ea519ap+3f},
                     value[16] = {0x1.e3cc14p-1f, 0x1.10d062p+0f, 0x1.308218p+0f, 0x1.5091aep+0f,
                                  0x1.805858p+0f, 0x1.be2cbep+0f, 0x1.f8a926p+0f, 0x1.17a0fap+1f,
                                  0x1.3d60aep+1f, 0x1.6aae06p+1f, 0x1.934ea4p+1f, 0x1.b8971ep+1f,
                                  0x1.e06e82p+1f, 0x1.e06e82p+1f, 0x1.e06e82p+1f, 0x1.e06e82p+1f},
                     c1[16] = {0x1.e6145cp-3f, 0x1.f647fep-3f, 0x1.ff0358p-3f, 0x1.006e72p-2f,
                               0x1.f91fap-3f,  0x1.e20262p-3f, 0x1.c4a74p-3f,  0x1.a711ecp-3f,
                               0x1.7f7e8ap-3f, 0x1.55db1cp-3f, 0x1.3694f6p-3f, 0x1.1e41dap-3f,
                               0x1.080542p-3f, 0x1.080542p-3f, 0x1.080542p-3f, 0x1.080542p-3f},
                     c2[16] = {0x1.3fba8ap-7f,  0x1.8d827ep-8f,  0x1.497bcap-9f,  -0x1.455a96p-11f,
                               -0x1.11b2b2p-8f, -0x1.b839bap-8f, -0x1.e2d718p-8f, -0x1.caed56p-8f,
                               -0x1.7eabb2p-8f, -0x1.1e9c28p-8f, -0x1.b5d10cp-9f, -0x1.597da8p-9f,
                               -0x1.107dcp-9f,  -0x1.107dcp-9f,  -0x1.107dcp-9f,  -0x1.107dcp-9f},
                     c3[16] = {-0x1.3efdf4p-9f,  -0x1.4157eap-9f,  -0x1.277564p-9f, -0x1.f274ecp-10f,
                               -0x1.4872a6p-10f, -0x1.f88a8cp-12f, -0x1.b1bfcp-19f, 0x1.bcf5bap-13f,
                               0x1.1d8e8cp-12f,  0x1.b3523ep-13f,  0x1.27b75cp-13f, 0x1.96737ap-14f,
                               0x1.13ea7p-14f,   0x1.13ea7p-14f,   0x1.13ea7p-14f,  0x1.13ea7p-14f},
                     c4[16] = {-0x1.1f05c4p-14f, 0x1.96940cp-15f,  0x1.2c6d96p-13f,  0x1.a6656cp-13f,
                               0x1.c75086p-13f,  0x1.4c4314p-13f,  0x1.5b0bf8p-14f,  0x1.ff9c98p-16f,
                               -0x1.620206p-19f, -0x1.3d9272p-17f, -0x1.ccdbeap-18f, -0x1.22913cp-18f,
                               -0x1.59be86p-19f, -0x1.59be86p-19f, -0x1.59be86p-19f, -0x1.59be86p-19f},
                     c5[16] = {0x1.a8d064p-15f,  0x1.894bb6p-15f,  0x1.19ba22p-15f,  0x1.be3decp-17f,
                               -0x1.4261d6p-18f, -0x1.079862p-16f, -0x1.b9450cp-17f, -0x1.001e52p-17f,
                               -0x1.1b39eep-19f, 0x1.b0f3b2p-24f,  0x1.484c92p-22f,  0x1.c77fa8p-23f,
                               0x1.d4af9cp-24f,  0x1.d4af9cp-24f,  0x1.d4af9cp-24f,  0x1.d4af9cp-24f};
  int32_t k;
  float a = __builtin_fabsf(x), f = MF(log_reduced)(a < 1 ? MF_FMA(-a, a, 1) : 0.5f, &k);
  MF(log_pair) w = MF(log_apart)((float)k, f, 0);
  int32_t i = (int32_t)(base_f32_bits(2 - w.h) >> 21);
  float d = (-w.h - center[i & 15]) - w.l, p = c5[i & 15];
  p = MF_FMA(p, d, c4[i & 15]);
  p = MF_FMA(p, d, c3[i & 15]);
  p = MF_FMA(p, d, c2[i & 15]);
  p = MF_FMA(p, d, c1[i & 15]);
  float c = MF_FMA(p, d, value[i & 15]), cl = MF_FMA(p, d, value[i & 15] - c), r = MF_FMA(a, c, a * cl);
  r = a < 1 ? r : a == 1 ? INFINITY : NAN;
  return __builtin_copysignf(r, x);
}
