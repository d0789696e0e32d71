/* The elementary functions, each written once, as type-generic names over float, double and complex: what the
 * expressions in ops.def use. f32: math_f32.h, vectorising. f64: math_f64_wide.h, vectorising; libm where that is
 * within 1 ulp; else math.c. Complex: math_complex.h.
 *
 * Some have a twin with fused multiply-add, of the same bits. Names mean the plain one; in loops for CPUs that have the
 * instruction MATH_FUSED is redefined to mean the twin. */
#ifndef XLAC_BASE_MATH_MATH_H
#define XLAC_BASE_MATH_MATH_H

#include "math_dd.h"
#include "math_f32.h"

#define MD(name) math_##name##_f64
#define MD_REST(a, b, p) math_dd_rest(a, b, p)
#include "math_f64_wide.h"
#undef MD
#undef MD_REST
/* The same, to be inlined into functions for CPUs with fused multiply-add. */
#define MD(name) math_##name##_f64_fma
#define MD_REST(a, b, p) __builtin_fma(a, b, -(p))
#include "math_f64_wide.h"
#undef MD
#undef MD_REST

/* Hyperbolic functions, roots and erf in f64: math.c. */
double math_sinh_f64(double x);
double math_cosh_f64(double x);
double math_rsqrt_f64(double x);
double math_erf_f64(double x);
double math_asinh_f64(double x);
double math_acosh_f64(double x);
double math_atanh_f64(double x);
double math_sin_f64(double x);
double math_cos_f64(double x);
double math_cbrt_f64(double x);
/* The special functions: math.c. */
double math_erfc_f64(double x);
double math_lgamma_f64(double x);
double math_digamma_f64(double x);
double math_zeta_f64(double x, double q);
double math_polygamma_f64(double n, double x);
double math_erf_inv_f64(double x);
double math_bessel_i1e_f64(double x);
#define MATH_ROUNDED(name)                       \
  MATH_INLINE float math_##name##_f32(float x) { \
    return (float)math_##name##_f64(x);          \
  }
MATH_ROUNDED(bessel_i1e)
#undef MATH_ROUNDED
/* math_called.h */
float math_lgamma_f32(float x);
float math_digamma_f32(float x);
MATH_INLINE float math_zeta_f32(float x, float q) {
  return (float)math_zeta_f64(x, q);
}
MATH_INLINE float math_polygamma_f32(float n, float x) {
  return (float)math_polygamma_f64(n, x);
}

MATH_INLINE double math_sqrt_f64(double x) {
  return __builtin_sqrt(x);
}
MATH_INLINE double math_rint_f64(double x) {
  double a = __builtin_fabs(x), r = (a + 0x1p52) - 0x1p52;
  return a < 0x1p52 ? __builtin_copysign(r, x) : x;
}
MATH_INLINE double math_floor_f64(double x) {
  double r = math_rint_f64(x);
  return r > x ? r - 1 : r;
}
MATH_INLINE double math_ceil_f64(double x) {
  double r = math_rint_f64(x);
  return __builtin_copysign(r < x ? r + 1 : r, x);
}
MATH_INLINE double math_round_f64(double x) {
  double a = __builtin_fabs(x), r = math_floor_f64(a);
  return __builtin_copysign(a - r >= 0.5 ? r + 1 : r, x);
}
#define MATH_FROM_LIBM(name)                       \
  MATH_INLINE double math_##name##_f64(double x) { \
    return name(x);                                \
  }
/* math_called.h */
double math_expm1_f64(double x);
double math_log1p_f64(double x);
#define math_expm1_f64_fma math_expm1_f64
#define math_log1p_f64_fma math_log1p_f64
double math_turned_f64(double x, double shift);
MATH_FROM_LIBM(tan)
MATH_FROM_LIBM(asin)
MATH_FROM_LIBM(acos)
MATH_FROM_LIBM(atan)
#undef MATH_FROM_LIBM
MATH_INLINE double math_atan2_f64(double y, double x) {
  return atan2(y, x);
}
MATH_INLINE double math_pow_f64(double x, double y) {
  return pow(x, y);
}
MATH_INLINE double math_fmod_f64(double x, double y) {
  return fmod(x, y);
}

/* --- what needs no more than arithmetic --- */

/* IEEE 754's maximum and minimum: NaN if either is, -0 below 0. */
#define MATH_EXTREMES(suffix, T, U, bits_of, of_bits) \
  MATH_INLINE T math_max_##suffix(T x, T y) {         \
    T same = of_bits(bits_of(x) & bits_of(y));        \
    T r = x == y ? same : x > y ? x : y;              \
    return x != x ? x : r;                            \
  }                                                   \
  MATH_INLINE T math_min_##suffix(T x, T y) {         \
    T same = of_bits(bits_of(x) | bits_of(y));        \
    T r = x == y ? same : x < y ? x : y;              \
    return x != x ? x : r;                            \
  }                                                   \
  MATH_INLINE T math_sign_##suffix(T x) {             \
    return x > 0 ? 1 : x < 0 ? -1 : x;                \
  }
MATH_EXTREMES(f32, float, uint32_t, base_f32_bits, base_f32_of)
MATH_EXTREMES(f64, double, uint64_t, base_f64_bits, base_f64_of)
#undef MATH_EXTREMES
MATH_INLINE float math_abs_f32(float x) {
  return __builtin_fabsf(x);
}
MATH_INLINE double math_abs_f64(double x) {
  return __builtin_fabs(x);
}

#include "math_complex.h"

math_c128 math_asin_acos_kernel_c128(math_c128 z); /* math.c */
MATH_INLINE math_c64 math_asin_acos_kernel_c64(math_c64 z) {
  return math_narrow(math_asin_acos_kernel_c128(math_widen(z)));
}
MATH_INLINE math_c128 math_conj_c128(math_c128 x) {
  return (math_c128){x.re, -x.im};
}
MATH_INLINE math_c64 math_conj_c64(math_c64 x) {
  return (math_c64){x.re, -x.im};
}

/* --- the type-generic names --- */

#define MATH_REAL(name, x) _Generic((x), float: math_##name##_f32, double: math_##name##_f64)
#define MATH_FUSED(name) math_##name
#define MATH_TWIN(name, x)            \
  _Generic((x),                       \
      float: MATH_FUSED(name##_f32),  \
      double: MATH_FUSED(name##_f64), \
      math_c64: math_##name##_c64,    \
      math_c128: math_##name##_c128)
#define MATH_CPLX(name, x) _Generic((x), math_c64: math_##name##_c64, math_c128: math_##name##_c128)
#define MATH_ANY(name, x)          \
  _Generic((x),                    \
      float: math_##name##_f32,    \
      double: math_##name##_f64,   \
      math_c64: math_##name##_c64, \
      math_c128: math_##name##_c128)
#define math_exp(x) MATH_TWIN(exp, x)(x)
#define math_expm1(x) MATH_TWIN(expm1, x)(x)
#define math_log(x) MATH_TWIN(log, x)(x)
#define math_log1p(x) MATH_TWIN(log1p, x)(x)
#define math_sqrt(x) MATH_ANY(sqrt, x)(x)
#define math_rsqrt(x) MATH_ANY(rsqrt, x)(x)
#define math_sin(x) MATH_ANY(sin, x)(x)
#define math_cos(x) MATH_ANY(cos, x)(x)
#define math_tan(x) MATH_ANY(tan, x)(x)
#define math_asin(x) MATH_ANY(asin, x)(x)
#define math_acos(x) MATH_ANY(acos, x)(x)
#define math_atan(x) MATH_ANY(atan, x)(x)
#define math_sinh(x) MATH_ANY(sinh, x)(x)
#define math_cosh(x)               \
  _Generic((x),                    \
      float: MATH_FUSED(cosh_f32), \
      double: math_cosh_f64,       \
      math_c64: math_cosh_c64,     \
      math_c128: math_cosh_c128)(x)
#define math_tanh(x) MATH_TWIN(tanh, x)(x)
#define math_asinh(x) MATH_ANY(asinh, x)(x)
#define math_acosh(x) MATH_ANY(acosh, x)(x)
#define math_atanh(x) MATH_ANY(atanh, x)(x)
#define math_logistic(x) MATH_TWIN(logistic, x)(x)
#define math_sign(x) MATH_ANY(sign, x)(x)
#define math_atan2(y, x) MATH_ANY(atan2, y)(y, x)
#define math_pow(x, y) MATH_ANY(pow, x)(x, y)
#define math_cbrt(x) MATH_ANY(cbrt, x)(x)
#define math_square(x) MATH_CPLX(square, x)(x)
#define math_erf(x) _Generic((x), float: MATH_FUSED(erf_f32), double: math_erf_f64)(x)
#define math_erfc(x) _Generic((x), float: MATH_FUSED(erfc_f32), double: math_erfc_f64)(x)
#define math_erf_inv(x) _Generic((x), float: MATH_FUSED(erf_inv_f32), double: math_erf_inv_f64)(x)
#define math_lgamma(x) MATH_REAL(lgamma, x)(x)
#define math_digamma(x) MATH_REAL(digamma, x)(x)
#define math_bessel_i1e(x) MATH_REAL(bessel_i1e, x)(x)
#define math_zeta(x, q) MATH_REAL(zeta, x)(x, q)
#define math_polygamma(n, x) MATH_REAL(polygamma, n)(n, x)
#define math_conj(x) MATH_CPLX(conj, x)(x)
#define math_asin_acos_kernel(x) MATH_CPLX(asin_acos_kernel, x)(x)
#define math_floor(x) MATH_REAL(floor, x)(x)
#define math_ceil(x) MATH_REAL(ceil, x)(x)
#define math_round(x) MATH_REAL(round, x)(x)
#define math_rint(x) MATH_REAL(rint, x)(x)
#define math_abs(x) \
  _Generic((x), float: math_abs_f32, double: math_abs_f64, math_c64: math_abs_c64, math_c128: math_abs_c128)(x)
#define math_max(x, y) MATH_ANY(max, x)(x, y)
#define math_min(x, y) MATH_ANY(min, x)(x, y)
#define math_fmod(x, y) MATH_REAL(fmod, x)(x, y)
#define math_neg(x) MATH_CPLX(neg, x)(x)
#define math_add(x, y) MATH_CPLX(add, x)(x, y)
#define math_sub(x, y) MATH_CPLX(sub, x)(x, y)
#define math_mul(x, y) MATH_CPLX(mul, x)(x, y)
#define math_div(x, y) MATH_CPLX(div, x)(x, y)

#endif
