/* Complex arithmetic and functions. c64 computes in f64 and rounds at the end, so neither overflow nor underflow nor
 * cancellation in between shows; functions are straight-line code, of which machine code for kernels is made, or take
 * c128's. c128 has C99's branch cuts and special cases (math_c128.h).
 * Products are naive, as XLA's: an infinity times something with a NaN part is NaN. Pure functions. Included by math.h.
 */
#ifndef XLAC_BASE_MATH_MATH_COMPLEX_H
#define XLAC_BASE_MATH_MATH_COMPLEX_H

#include <complex.h>

typedef struct math_c64 {
  float re, im;
} math_c64;
typedef struct math_c128 {
  double re, im;
} math_c128;

MATH_INLINE double complex math_c99(math_c128 x) {
  double complex z;
  __builtin_memcpy(&z, &x, sizeof z);
  return z;
}
MATH_INLINE math_c128 math_from_c99(double complex z) {
  math_c128 x;
  __builtin_memcpy(&x, &z, sizeof x);
  return x;
}
MATH_INLINE math_c128 math_widen(math_c64 x) {
  return (math_c128){x.re, x.im};
}
MATH_INLINE math_c64 math_narrow(math_c128 x) {
  return (math_c64){(float)x.re, (float)x.im};
}

MATH_INLINE math_c128 math_neg_c128(math_c128 x) {
  return (math_c128){-x.re, -x.im};
}
MATH_INLINE math_c128 math_add_c128(math_c128 x, math_c128 y) {
  return (math_c128){x.re + y.re, x.im + y.im};
}
MATH_INLINE math_c128 math_sub_c128(math_c128 x, math_c128 y) {
  return (math_c128){x.re - y.re, x.im - y.im};
}
MATH_INLINE math_c128 math_mul_c128(math_c128 x, math_c128 y) {
  return (math_c128){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
/* math_c128.h */
math_c128 math_div_c128(math_c128 x, math_c128 y);
math_c128 math_exp_c128(math_c128 x);
math_c128 math_log_c128(math_c128 x);
math_c128 math_sqrt_c128(math_c128 x);
math_c128 math_sinh_c128(math_c128 x);
math_c128 math_cosh_c128(math_c128 x);
math_c128 math_tanh_c128(math_c128 x);
math_c128 math_asin_c128(math_c128 x);
math_c128 math_acos_c128(math_c128 x);
math_c128 math_atanh_c128(math_c128 x);
math_c128 math_expm1_c128(math_c128 x);
math_c128 math_log1p_c128(math_c128 x);
math_c128 math_pow_c128(math_c128 x, math_c128 y);
math_c128 math_atan2_c128(math_c128 y, math_c128 x);

#define math_part_abs_c128 __builtin_fabs
#define math_part_sign_c128 __builtin_copysign
#define math_part_abs_c64 __builtin_fabsf
#define math_part_sign_c64 __builtin_copysignf
/* f(z) = -i g(iz): of sinh, tanh, asin and atanh the sine, the tangent, asinh and the arc tangent. cos z = cosh iz, and
 * acosh is acos, turned so that its real part is not below 0. */
#define MATH_TURNED(C, name, of)                           \
  MATH_INLINE math_##C math_##name##_##C(math_##C x) {     \
    math_##C r = math_##of##_##C((math_##C){-x.im, x.re}); \
    return (math_##C){r.im, -r.re};                        \
  }
#define MATH_TURNS(C)                                                           \
  MATH_TURNED(C, sin, sinh)                                                     \
  MATH_TURNED(C, tan, tanh)                                                     \
  MATH_TURNED(C, asinh, asin)                                                   \
  MATH_TURNED(C, atan, atanh)                                                   \
  MATH_INLINE math_##C math_cos_##C(math_##C x) {                               \
    return math_cosh_##C((math_##C){-x.im, x.re});                              \
  }                                                                             \
  MATH_INLINE math_##C math_acosh_##C(math_##C x) {                             \
    math_##C r = math_acos_##C(x);                                              \
    return (math_##C){math_part_abs_##C(r.im), math_part_sign_##C(r.re, x.im)}; \
  }
MATH_TURNS(c128)

MATH_INLINE math_c128 math_rsqrt_c128(math_c128 x) {
  return math_div_c128((math_c128){1, 0}, math_sqrt_c128(x));
}
MATH_INLINE math_c128 math_logistic_c128(math_c128 x) {
  math_c128 e = math_exp_c128(math_neg_c128(x));
  return math_div_c128((math_c128){1, 0}, (math_c128){1 + e.re, e.im});
}
/* sqrt(x^2 + y^2), the same bits with every libc: glibc's own hypot changed its answers, and its version, in 2.35;
 * math_called.h. */
double math_hypot(double x, double y);
MATH_INLINE math_c128 math_sign_c128(math_c128 x) {
  double a = math_hypot(x.re, x.im);
  bool none = (x.re == 0) & (x.im == 0);
  return (math_c128){none ? 0 : x.re / a, none ? 0 : x.im / a};
}
/* --- c64, in f64 without branches: squares neither overflow nor vanish there --- */
MATH_INLINE bool math_is_infinite_c64(math_c64 x) {
  return (__builtin_fabsf(x.re) == INFINITY) | (__builtin_fabsf(x.im) == INFINITY);
}
MATH_INLINE double math_size_c64(math_c64 x) { /* hypot's: infinite when a part is, though the other be NaN */
  double re = x.re, im = x.im, a = __builtin_sqrt(re * re + im * im);
  return math_is_infinite_c64(x) ? (double)INFINITY : a;
}
MATH_INLINE float math_abs_c64(math_c64 x) {
  return (float)math_size_c64(x);
}
/* math_called.h */
math_c64 math_sign_c64(math_c64 x);
math_c64 math_div_c64(math_c64 x, math_c64 y);
math_c64 math_sqrt_c64(math_c64 x);
math_c64 math_rsqrt_c64(math_c64 x);
math_c64 math_log1p_c64(math_c64 x);
math_c64 math_logistic_c64(math_c64 x);
math_c64 math_log_c64(math_c64 x);
math_c64 math_exp_c64(math_c64 x);
math_c64 math_sinh_c64(math_c64 x);
math_c64 math_cosh_c64(math_c64 x);
math_c64 math_tanh_c64(math_c64 x);
math_c64 math_asin_c64(math_c64 x);
math_c64 math_acos_c64(math_c64 x);
math_c64 math_atanh_c64(math_c64 x);
math_c64 math_expm1_c64(math_c64 x);
MATH_TURNS(c64)
#undef MATH_TURNED
#undef MATH_TURNS
#undef math_part_abs_c128
#undef math_part_sign_c128
#undef math_part_abs_c64
#undef math_part_sign_c64
math_c64 math_pow_c64(math_c64 x, math_c64 y); /* math_c128.h */
MATH_INLINE double math_abs_c128(math_c128 x) {
  return math_hypot(x.re, x.im);
}

MATH_INLINE math_c64 math_neg_c64(math_c64 x) {
  return (math_c64){-x.re, -x.im};
}
MATH_INLINE math_c64 math_add_c64(math_c64 x, math_c64 y) {
  return (math_c64){x.re + y.re, x.im + y.im};
}
MATH_INLINE math_c64 math_sub_c64(math_c64 x, math_c64 y) {
  return (math_c64){x.re - y.re, x.im - y.im};
}
/* StableHLO alone orders complex numbers: by real, then by imaginary part. */
#define MATH_CPLX_EXTREMES(C)                                  \
  MATH_INLINE math_##C math_max_##C(math_##C x, math_##C y) {  \
    return (x.re == y.re ? x.im > y.im : x.re > y.re) ? x : y; \
  }                                                            \
  MATH_INLINE math_##C math_min_##C(math_##C x, math_##C y) {  \
    return (x.re == y.re ? x.im < y.im : x.re < y.re) ? x : y; \
  }
MATH_CPLX_EXTREMES(c64)
MATH_CPLX_EXTREMES(c128)
#undef MATH_CPLX_EXTREMES
/* The principal root. */
MATH_INLINE math_c128 math_cbrt_c128(math_c128 x) {
  double angle = atan2(x.im, x.re) / 3, size = cbrt(math_hypot(x.re, x.im));
  return (math_c128){size * cos(angle), size * sin(angle)};
}
/* The real part as a product, which neither overflows nor cancels where the result does not. */
MATH_INLINE math_c128 math_square_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), im = x.re * x.im;
  bool even = a == __builtin_fabs(x.im) && a < INFINITY;
  return (math_c128){even ? 0 : (x.re - x.im) * (x.re + x.im), im + im};
}
#define MATH_BY_C128_1(name)                               \
  MATH_INLINE math_c64 math_##name##_c64(math_c64 x) {     \
    return math_narrow(math_##name##_c128(math_widen(x))); \
  }
#define MATH_BY_C128_2(name)                                              \
  MATH_INLINE math_c64 math_##name##_c64(math_c64 x, math_c64 y) {        \
    return math_narrow(math_##name##_c128(math_widen(x), math_widen(y))); \
  }
MATH_BY_C128_2(mul)
MATH_BY_C128_2(atan2)
MATH_BY_C128_1(cbrt)
MATH_BY_C128_1(square)
#undef MATH_BY_C128_1
#undef MATH_BY_C128_2

#endif
