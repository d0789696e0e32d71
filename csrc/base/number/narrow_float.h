/* One float of 16 bits or fewer to f32 and back, inline and without branches: with constant facts these compile to
 * loops of vector code. Everything goes by way of f32: it holds every narrow value exactly, and a wider number that was
 * first rounded to odd to f32 rounds to the same narrow value as it would have directly. Thread-safe: pure functions.
 */
#ifndef XLAC_BASE_NUMBER_NARROW_FLOAT_H
#define XLAC_BASE_NUMBER_NARROW_FLOAT_H

#include "../dtype.h"

/* A NARROW row of dtypes.def. */
typedef struct base_narrow {
  int mantissa, bias, sign_bit;
  uint32_t largest, overflow, nan;
  bool has_inf, has_negative_zero;
} base_narrow;

/* Of a row's arguments from its mantissa bits on. */
#define BASE_NARROW(mantissa, bias, sign_bit, largest, overflow, nan, inf, negative_zero, columns) \
  ((base_narrow){mantissa, bias, sign_bit, largest, overflow, nan, inf, negative_zero})

static inline uint32_t base_f32_bits(float v) {
  uint32_t b;
  __builtin_memcpy(&b, &v, sizeof b);
  return b;
}
static inline float base_f32_of(uint32_t b) {
  float v;
  __builtin_memcpy(&v, &b, sizeof v);
  return v;
}
static inline uint64_t base_f64_bits(double v) {
  uint64_t b;
  __builtin_memcpy(&b, &v, sizeof b);
  return b;
}
static inline double base_f64_of(uint64_t b) {
  double v;
  __builtin_memcpy(&v, &b, sizeof v);
  return v;
}

__attribute__((always_inline)) static inline uint32_t base_narrow_encode(base_narrow k, float v) {
  uint32_t x = base_f32_bits(v), a = x & 0x7FFFFFFF;
  int shift = 23 - k.mantissa;
  uint32_t r = (a + ((1u << (shift - 1)) - 1 + ((a >> shift) & 1))) >> shift;
  r -= (uint32_t)(127 - k.bias) << k.mantissa;
  if (k.bias < 127) { /* adding a number whose last place is the type's smallest step rounds a subnormal there */
    uint32_t magic = (uint32_t)(151 - k.bias - k.mantissa) << 23;
    uint32_t subnormal = base_f32_bits(base_f32_of(a) + base_f32_of(magic)) - magic;
    r = a < (uint32_t)(128 - k.bias) << 23 ? subnormal : r;
  }
  r = a >= 0x7F800000 || r > k.largest ? k.overflow : r;
  r = a > 0x7F800000 ? k.nan : r;
  uint32_t sign = x >> 31 << k.sign_bit;
  return k.has_negative_zero ? r ^ sign : r ? r | sign : 0;
}

__attribute__((always_inline)) static inline float base_narrow_decode(base_narrow k, uint32_t bits) {
  uint32_t sign = bits >> k.sign_bit & 1, mag = bits & ((1u << k.sign_bit) - 1);
  int shift = 23 - k.mantissa;
  uint32_t r = (mag << shift) + ((uint32_t)(127 - k.bias) << 23);
  if (k.bias <
      127) { /* a subnormal gets a leading one for a while, so that no f32 subnormal (slow, or flushed) arises */
    uint32_t one = (uint32_t)(128 - k.bias) << 23;
    r = mag >> k.mantissa ? r : base_f32_bits(base_f32_of(one | mag << shift) - base_f32_of(one));
  }
  if (k.has_inf) r = mag >= k.overflow ? 0x7F800000 | (mag << shift & 0x7FFFFF) : r;
  if (k.nan == k.overflow)
    r = (bits & ((2u << k.sign_bit) - 1) & ~(k.nan == 0x7F ? 0x80u : 0u)) == k.nan ? 0x7FC00000 : r;
  return base_f32_of(r | sign << 31);
}

/* f8e8m0fnu is an f32's exponent field alone. As ml_dtypes has it: halves round up (not to even), what is positive and
 * at most 2^-127 is 2^-127, the rest below 2^-126 is 2^-126; zero, negative and too large are NaN. */
static inline uint32_t base_e8m0_encode(float v) {
  uint32_t x = base_f32_bits(v), up = x + 0x400000 - (x == 0x400000);
  return x == 0 || x >= 0x7F800000 ? 0xFF : up >> 23;
}
static inline float base_e8m0_decode(uint32_t bits) {
  bits &= 0xFF;
  return base_f32_of(bits == 0xFF ? 0x7FC00000 : bits ? bits << 23 : 0x400000);
}

/* v to f32, towards zero, the last bit set if anything was lost: a later rounding to at most 22 bits is then as if from
 * v. */
static inline float base_f32_odd(double v) {
  float f = (float)v;
  uint32_t b = base_f32_bits(f);
  double back = (double)f;
  b -= __builtin_fabs(back) > __builtin_fabs(v);
  b |= back < v || back > v;
  return base_f32_of(b);
}

/* |v| to f64, rounded to odd; exact up to 2^53. */
static inline double base_f64_odd(uint64_t v) {
  uint64_t odd = (v | ((v & 0x7FF) + 0x7FF)) & ~(uint64_t)0x7FF;
  return (double)(v >> 53 ? odd : v);
}

#endif
