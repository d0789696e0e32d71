/* No include guard: elementary functions of fast numerics, for CPUs with fused multiply-add: those of math_f32_fma.h
 * without the pairs. Errors in units in the last place, over all of f32 and f64, are in docs/numerics.md; what is below
 * the smallest normal number may become zero. NaN, infinities and zeros are as in the strict ones. The includer defines
 * LOOSE(name), a function's name, and LOOSE_TABLE_F32, LOOSE_TABLE_F64, tables of loops by scalar_code. */
#if defined(__clang__)
#define LOOSE_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOSE_LANES _Pragma("GCC ivdep")
#endif
#define LOOSE_FMA(a, b, c) __builtin_fmaf(a, b, c)

/* e^v for v in [-104, 89]: v = n log 2 + r, and a polynomial in r. Adding 1.5 * 2^23 rounds v / log 2 to the
 * integer n, which then is in the low bits of t. */
MATH_INLINE float LOOSE(exp_bounded)(float v) {
  float t = LOOSE_FMA(v, 0x1.715476p+0f, 0x1.8p23f), n = t - 0x1.8p23f, p = 0x1.6d65fcp-10f;
  float r = LOOSE_FMA(n, -0x1.7f7d1cp-20f, LOOSE_FMA(n, -0x1.62e4p-1f, v));
  p = LOOSE_FMA(p, r, 0x1.123ab6p-7f);
  p = LOOSE_FMA(p, r, 0x1.5554d2p-5f);
  p = LOOSE_FMA(p, r, 0x1.55549p-3f);
  p = LOOSE_FMA(p, r, 0.5f);
  p = LOOSE_FMA(p, r, 1);
  p = LOOSE_FMA(p, r, 1);
  return math_scaled_f32_fma(p, (int32_t)(base_f32_bits(t) - 0x4B400000));
}
MATH_INLINE float LOOSE(exp_f32)(float x) {
  return LOOSE(exp_bounded)(math_bound_f32_fma(x, -104, 89));
}
/* log(2) * exponent + log1p(f) of the reduced mantissa. Subnormal numbers are scaled by 2^23 first. */
MATH_INLINE float LOOSE(log_f32)(float x) {
  int32_t k;
  bool small = x < 0x1p-126f;
  float f = math_log_reduced_f32_fma(small ? x * 0x1p23f : x, &k), z = f * f, p = -0x1.38cddcp-4f;
  p = LOOSE_FMA(p, f, 0x1.055fcap-3f);
  p = LOOSE_FMA(p, f, -0x1.0d81fcp-3f);
  p = LOOSE_FMA(p, f, 0x1.22d904p-3f);
  p = LOOSE_FMA(p, f, -0x1.54728cp-3f);
  p = LOOSE_FMA(p, f, 0x1.99a01ep-3f);
  p = LOOSE_FMA(p, f, -0x1.000226p-2f);
  p = LOOSE_FMA(p, f, 0x1.555554p-2f);
  float e = (float)(small ? k - 23 : k), v = LOOSE_FMA(z, LOOSE_FMA(p, f, -0.5f), f);
  v = LOOSE_FMA(e, 0x1.62e42ep-1f, LOOSE_FMA(e, 0x1.efa39ep-25f, v));
  v = x > 0 ? v : x == 0 ? -INFINITY : NAN;
  return x == INFINITY ? x : v;
}
MATH_INLINE float LOOSE(logistic_f32)(float x) {
  return 1 / (1 + LOOSE(exp_bounded)(math_bound_f32_fma(-x, -104, 89)));
}
MATH_INLINE float LOOSE(rsqrt_f32)(float x) {
  return 1 / __builtin_sqrtf(x);
}
MATH_INLINE double LOOSE(rsqrt_f64)(double x) {
  return 1 / __builtin_sqrt(x);
}
/* Sine, or with `quarter` 1 the cosine, for |x| < 2^15: x = n pi/2 + r with pi/2 in three parts, then by the
 * quadrant n + quarter the polynomial of the sine or of the cosine, and the sign. */
MATH_INLINE float LOOSE(turn)(float x, uint32_t quarter) {
  float t = LOOSE_FMA(x, 0x1.45f306p-1f, 0x1.8p23f), n = t - 0x1.8p23f;
  float r = LOOSE_FMA(n, 0x1.777a5cp-25f, LOOSE_FMA(n, -0x1.921fb6p+0f, x)), z, s = -0x1.9954a8p-13f;
  r = LOOSE_FMA(n, 0x1.ee59dap-50f, r);
  z = r * r;
  s = LOOSE_FMA(s, z, 0x1.11077ap-7f);
  s = LOOSE_FMA(s, z, -0x1.555546p-3f);
  s = LOOSE_FMA(s * z, r, r);
  float c = 0x1.99e0e6p-16f;
  c = LOOSE_FMA(c, z, -0x1.6c0c1ap-10f);
  c = LOOSE_FMA(c, z, 0x1.55554ap-5f);
  c = LOOSE_FMA(c * z, z, LOOSE_FMA(z, -0.5f, 1));
  uint32_t q = base_f32_bits(t) + quarter;
  return base_f32_of(base_f32_bits(q & 1 ? c : s) ^ (q & 2) << 30);
}
MATH_INLINE float LOOSE(sin_near)(float x) {
  return x == 0 ? x : LOOSE(turn)(x, 0);
}
MATH_INLINE float LOOSE(cos_near)(float x) {
  return LOOSE(turn)(x, 1);
}

#define LOOSE_LOOP(name, T)                                                     \
  static void LOOSE(loop_##name)(int64_t n, const void *const *in, void *out) { \
    const T *x = in[0];                                                         \
    T *r = out;                                                                 \
    LOOSE_LANES for (int64_t i = 0; i < n; i++) r[i] = LOOSE(name)(x[i]);       \
  }
LOOSE_LOOP(exp_f32, float)
LOOSE_LOOP(log_f32, float)
LOOSE_LOOP(logistic_f32, float)
LOOSE_LOOP(rsqrt_f32, float)
LOOSE_LOOP(rsqrt_f64, double)
/* Blocks with arguments out of range take the strict function; which block an element is in does not change it there,
 * since all its elements in range are selected. */
#define LOOSE_TURN(name, near, any)                                                                      \
  static void LOOSE(loop_##name)(int64_t n, const void *const *in, void *out) {                          \
    for (int64_t at = 0; at < n; at += 256) {                                                            \
      const float *x = (const float *)in[0] + at;                                                        \
      float *r = (float *)out + at;                                                                      \
      int64_t m = n - at < 256 ? n - at : 256;                                                           \
      uint32_t most = 0;                                                                                 \
      for (int64_t i = 0; i < m; i++) {                                                                  \
        uint32_t size = base_f32_bits(x[i]) & 0x7FFFFFFF;                                                \
        most = size > most ? size : most;                                                                \
      }                                                                                                  \
      if (most < 0x47000000)                                                                             \
        LOOSE_LANES for (int64_t i = 0; i < m; i++) r[i] = near(x[i]);                                   \
      else                                                                                               \
        for (int64_t i = 0; i < m; i++) r[i] = __builtin_fabsf(x[i]) < 0x1p15f ? near(x[i]) : any(x[i]); \
    }                                                                                                    \
  }
LOOSE_TURN(sin, LOOSE(sin_near), math_sin_f32)
LOOSE_TURN(cos, LOOSE(cos_near), math_cos_f32)

vm_fast_one LOOSE_TABLE_F32 = {[SCALAR_EXP] = LOOSE(loop_exp_f32),
                               [SCALAR_LOG] = LOOSE(loop_log_f32),
                               [SCALAR_LOGISTIC] = LOOSE(loop_logistic_f32),
                               [SCALAR_SINE] = LOOSE(loop_sin),
                               [SCALAR_COSINE] = LOOSE(loop_cos),
                               [SCALAR_RSQRT] = LOOSE(loop_rsqrt_f32)};
vm_fast_one LOOSE_TABLE_F64 = {[SCALAR_RSQRT] = LOOSE(loop_rsqrt_f64)};

#undef LOOSE
#undef LOOSE_TABLE_F32
#undef LOOSE_TABLE_F64
#undef LOOSE_LANES
#undef LOOSE_FMA
#undef LOOSE_LOOP
#undef LOOSE_TURN
