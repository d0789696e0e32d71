/* Elementary functions of f32: exp, expm1, log, log1p, tanh, logistic, cosh, erf, erfc and erf_inv in f32
 * (math_f32_fma.h), within 0.97 ulp; the others in f64, within 0.51 ulp or so. No branches or calls, so that loops over
 * them vectorise. Polynomials are interpolated at Chebyshev nodes; the error quoted is relative. Where f64 libm is
 * named, its result is rounded once. Thread-safe: pure functions of their arguments in round-to-nearest mode. */
#ifndef XLAC_BASE_MATH_MATH_F32_H
#define XLAC_BASE_MATH_MATH_F32_H

#include <math.h>

#include "../number/narrow_float.h"

#define MATH_INLINE __attribute__((always_inline)) static inline

#define MATH_LN2 0x1.62e42fefa39efp-1
#define MATH_INV_LN2 0x1.71547652b82fep+0
#define MATH_ROUND_F64 \
  0x1.8p52 /* adding and subtracting it rounds to the nearest integer, halves to even, below 2^51 */

/* v kept between lo and hi; NaN stays. */
MATH_INLINE double math_bound(double v, double lo, double hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

/* e^x = scale (1 + result), |x| <= 700, error 2^-37; scale is 1 for small x. NaN stays NaN. */
MATH_INLINE double math_exp_parts(double x, double *scale) {
  double k = x * MATH_INV_LN2 + MATH_ROUND_F64;
  double r = x - (k - MATH_ROUND_F64) * MATH_LN2;
  double p = 0x1.a136bf03ec612p-16;
  p = p * r + 0x1.a17e052cd2c8fp-13;
  p = p * r + 0x1.6c166bde96885p-10;
  p = p * r + 0x1.1110a6173845ep-7;
  p = p * r + 0x1.55555565c7e0ep-5;
  p = p * r + 0x1.5555557e7777ep-3;
  p = p * r + 0x1.fffffffffe062p-2;
  p = p * r + 0x1.fffffffff61ddp-1;
  *scale = base_f64_of((base_f64_bits(k) << 52) + 0x3FF0000000000000);
  return p * r;
}
MATH_INLINE double math_exp_narrow(double x) {
  double scale, p = math_exp_parts(x, &scale);
  return scale + scale * p;
}
MATH_INLINE double math_expm1_narrow(double x) {
  double scale, p = math_exp_parts(x, &scale);
  return (scale - 1) + scale * p;
}

/* log(x) for x > 0 and finite, error 2^-45. */
MATH_INLINE double math_log_narrow(double x) {
  uint64_t bits = base_f64_bits(x);
  double e = base_f64_of((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  double m = base_f64_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  bool upper = m > 0x1.6a09e667f3bcdp+0;
  m = upper ? m * 0.5 : m;
  e = upper ? e + 1 : e;
  double s = (m - 1) / (m + 1), z = s * s;
  double p = 0x1.919abd57b321ap-3;
  p = p * z + 0x1.c6206967897bep-3;
  p = p * z + 0x1.249439a497a18p-2;
  p = p * z + 0x1.9999962870e32p-2;
  p = p * z + 0x1.5555555672baap-1;
  p = p * z + 0x1.fffffffffff11p+0;
  return e * MATH_LN2 + s * p;
}

/* a * b + c rounded once, without an instruction for it: the sum rounded to odd in f64 rounds to f32 as the exact one
 * does. */
MATH_INLINE float math_fma_plain(float a, float b, float c) {
  double p = (double)a * b, s = p + c, t = s - p, rest = (p - (s - t)) + (c - t);
  uint64_t bits = base_f64_bits(s), inwards = (bits ^ base_f64_bits(rest)) >> 63;
  uint64_t step = __builtin_fabs(rest) > 0 ? ~bits & 1 : 0;
  return (float)base_f64_of(bits + step - 2 * (step & inwards));
}
#ifdef __FP_FAST_FMAF
#define MF_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MF_FMA(a, b, c) math_fma_plain(a, b, c)
#endif
#define MF(name) math_##name##_f32
#include "math_f32_fma.h"
#undef MF
#undef MF_FMA
/* The same, to be inlined into functions for CPUs with fused multiply-add. */
#define MF(name) math_##name##_f32_fma
#define MF_FMA(a, b, c) __builtin_fmaf(a, b, c)
#include "math_f32_fma.h"
#undef MF
#undef MF_FMA

MATH_INLINE float math_sinh_f32(float x) {
  double e = math_expm1_narrow(math_bound(__builtin_fabs((double)x), 0, 100));
  return __builtin_copysignf((float)(0.5 * (e + e / (e + 1))), x);
}
MATH_INLINE float math_sqrt_f32(float x) {
  return __builtin_sqrtf(x);
}
MATH_INLINE float math_rsqrt_f32(float x) {
  return (float)(1 / __builtin_sqrt((double)x));
}

/* x * 2/pi less the nearest integer, for any finite f32, nearly to f64's precision even where x is close to a multiple
 * of pi/2; *quadrant is that integer modulo 4, in the low bits of a f64. 2/pi is taken 28 bits at a time, so each
 * product is exact; what is a multiple of 4 drops out. */
MATH_INLINE double math_quadrants_f32(double x, double *quadrant) {
  static const double part[7] = {0xa2f9836p-28,  0xe4e4415p-56,  0x29fc275p-84, 0x7d1f534p-112,
                                 0xddc0db6p-140, 0x295993cp-168, 0x439041fp-196};
  double sum = 0, whole = 0;
  for (int j = 0; j < 7; j++) {
    double t = x * part[j], q = t * 0.25, n = (q + MATH_ROUND_F64) - MATH_ROUND_F64;
    n = __builtin_fabs(q) < 0x1p51 ? n : q; /* from there on q is a multiple of 1/2 or so large that t is one of 4 */
    t = __builtin_fabs(q) < 0x1p51 ? t - 4 * n : 0;
    sum += t;
    double k = (sum + MATH_ROUND_F64) - MATH_ROUND_F64;
    sum -= k;
    whole += k;
  }
  *quadrant = whole + MATH_ROUND_F64;
  return sum;
}

/* The same for |x| < 2^27, in radians: pi/2 in three parts, of which the first two have 26 bits. */
enum { MATH_NEAR_BITS = 0x4D000000 }; /* 2^27 */
MATH_INLINE double math_reduced_f32(double x, double *quadrant) {
  double k = x * 0x1.45f306dc9c883p-1 + MATH_ROUND_F64, n = k - MATH_ROUND_F64;
  *quadrant = k;
  return ((x - n * 0x1.921fb5p+0) - n * 0x1.110b46p-26) - n * 0x1.1a62633145c07p-54;
}

/* sin(y) and cos(y) for |y| <= pi/4, errors 2^-37 and 2^-43. */
MATH_INLINE double math_sin_narrow(double y) {
  double z = y * y, p = 0x1.6cb5f9ee3566cp-19;
  p = p * z - 0x1.a00ee23c4a17fp-13;
  p = p * z + 0x1.11110743b51a1p-7;
  p = p * z - 0x1.555555493bbafp-3;
  p = p * z + 0x1.fffffffff6700p-1;
  return p * y;
}
MATH_INLINE double math_cos_narrow(double y) {
  double z = y * y, p = -0x1.23c4b4e82f460p-22;
  p = p * z + 0x1.a00e90b2c819fp-16;
  p = p * z - 0x1.6c16b2c8b6da2p-10;
  p = p * z + 0x1.5555554464fffp-5;
  p = p * z - 0x1.ffffffffe351bp-2;
  return p * z + 0x1.ffffffffffe08p-1;
}
/* sin of y + (pi/2) q, q in the low bits. */
MATH_INLINE double math_sin_turned(double y, uint64_t q) {
  double r = q & 1 ? math_cos_narrow(y) : math_sin_narrow(y);
  return base_f64_of(base_f64_bits(r) ^ (q & 2) << 62);
}
MATH_INLINE double math_tan_turned(double y, double quadrant) {
  double s = math_sin_narrow(y), c = math_cos_narrow(y);
  return base_f64_bits(quadrant) & 1 ? -c / s : s / c;
}
/* sin, cos and tan for |x| < 2^27: most loops over f32 need no more (scalar/loops/loops_turn.h). */
MATH_INLINE float math_sin_near_f32(float x) {
  double q, y = math_reduced_f32(x, &q);
  return x == 0 ? x : (float)math_sin_turned(y, base_f64_bits(q));
}
MATH_INLINE float math_cos_near_f32(float x) {
  double q, y = math_reduced_f32(x, &q);
  return (float)math_sin_turned(y, base_f64_bits(q) + 1);
}
MATH_INLINE float math_tan_near_f32(float x) {
  double q, y = math_reduced_f32(x, &q);
  return x == 0 ? x : (float)math_tan_turned(y, q);
}
/* Anywhere; infinities and NaN give NaN. */
MATH_INLINE double math_anywhere_f32(float x, double *quadrant) {
  bool near = __builtin_fabsf(x) < 0x1p27f;
  double v = x - x == 0 ? (double)x : 0, far, q, y = math_reduced_f32(near ? v : 0, quadrant);
  far = math_quadrants_f32(v, &q) * 0x1.921fb54442d18p+0;
  *quadrant = near ? *quadrant : q;
  return x - x == 0 ? (near ? y : far) : (double)NAN;
}
MATH_INLINE float math_sin_f32(float x) {
  double q, y = math_anywhere_f32(x, &q);
  return x == 0 ? x : (float)math_sin_turned(y, base_f64_bits(q));
}
MATH_INLINE float math_cos_f32(float x) {
  double q, y = math_anywhere_f32(x, &q);
  return (float)math_sin_turned(y, base_f64_bits(q) + 1);
}
MATH_INLINE float math_tan_f32(float x) {
  double q, y = math_anywhere_f32(x, &q);
  return x == 0 ? x : (float)math_tan_turned(y, q);
}

/* Rounding to integers. Vector code without SSE4.1 has no instruction for it; from 2^23 on every f32 is an integer. */
MATH_INLINE float math_rint_f32(float x) {
  float a = __builtin_fabsf(x), r = (a + 0x1p23f) - 0x1p23f;
  return a < 0x1p23f ? __builtin_copysignf(r, x) : x;
}
MATH_INLINE float math_floor_f32(float x) {
  float r = math_rint_f32(x);
  return r > x ? r - 1 : r;
}
MATH_INLINE float math_ceil_f32(float x) {
  float r = math_rint_f32(x);
  return __builtin_copysignf(r < x ? r + 1 : r, x);
}
MATH_INLINE float math_round_f32(float x) {
  float a = __builtin_fabsf(x), r = math_floor_f32(a);
  return __builtin_copysignf(a - r >= 0.5f ? r + 1 : r, x);
}

/* atan2, error 2^-44, and inverse hyperbolic functions: math_called.h. */
double math_angle(double y, double x);
/* Long enough to be called: math.c; for CPUs with fused multiply-add math_fma.c. */
float math_erfc_f32(float x);
float math_erfc_f32_fma(float x);
float math_cosh_f32(float x);
float math_cosh_f32_fma(float x);
MATH_INLINE float math_asin_f32(float x) {
  double v = x;
  return (float)math_angle(v, __builtin_sqrt((1 - v) * (1 + v)));
}
MATH_INLINE float math_acos_f32(float x) {
  double v = x;
  return (float)math_angle(__builtin_sqrt((1 - v) * (1 + v)), v);
}
MATH_INLINE float math_atan_f32(float x) {
  return (float)math_angle((double)x, 1.0);
}
float math_asinh_f32(float x);
float math_acosh_f32(float x);
float math_atanh_f32(float x);
float math_cbrt_f32(float x);
MATH_INLINE float math_atan2_f32(float y, float x) {
  return (float)math_angle((double)y, (double)x);
}
/* e^(y log |x|) with pow's rules for what is not a number, zero or negative. */
MATH_INLINE float math_pow_f32(float x, float y) {
  float a = __builtin_fabsf(x), half = 0.5f * y;
  double l = math_log_narrow(a), p = (a == 0 ? -INFINITY : a == INFINITY ? INFINITY : l) * y;
  float r = (float)math_exp_narrow(math_bound(p, -110, 90));
  bool whole = math_rint_f32(y) == y, odd = whole && math_rint_f32(half) != half;
  r = odd ? __builtin_copysignf(r, x) : r;
  r = x < 0 && !whole && a != INFINITY ? NAN : r;
  r = x != x ? x : y != y ? y : r;
  return y == 0 || x == 1 || (a == 1 && half - half != 0 && y == y) ? 1 : r;
}
MATH_INLINE float math_fmod_f32(float x, float y) {
  return fmodf(x, y);
}

#endif
