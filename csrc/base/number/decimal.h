/* Decimal numbers w * 10^q against binary ones: what reading and printing share. Thread-safe: pure functions. */
#ifndef XLAC_BASE_NUMBER_DECIMAL_H
#define XLAC_BASE_NUMBER_DECIMAL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned __int128 base_u128;

/* 128 bits of a power of five, the highest bit set. */
typedef struct base_power5 {
  uint64_t high, low;
} base_power5;

enum { BASE_P5_FIRST = -342, BASE_P5_LAST = 340, BASE_P5_EXACT = 55 };
extern const base_power5 base_powers5[BASE_P5_LAST - BASE_P5_FIRST + 1];

/* A product w * 10^q: the real value lies in [bits, bits + slack) * 2^exponent, and is exactly (bits + low / 2^64) *
 * 2^exponent if `exact`. The highest bit of `bits` is 126 or 127. */
typedef struct base_scaled {
  base_u128 bits;
  uint64_t low;
  int exponent;
  bool exact;
} base_scaled;

/* floor(q * log2(10)) by a 16-bit approximation of the factor, exact for all q of the table. */
static inline int base_floor_log2_of_power10(int q) {
  return q * 217706 >> 16;
}

/* One 64 x 128 bit product. Up to 5^55 fits in 128 bits, so the product is exact there. */
static inline base_scaled base_scale(uint64_t w, int q) {
  assert(w && q >= BASE_P5_FIRST && q <= BASE_P5_LAST);
  int zeros = __builtin_clzll(w);
  base_power5 p = base_powers5[q - BASE_P5_FIRST];
  base_u128 high = (base_u128)(w << zeros) * p.high, low = (base_u128)(w << zeros) * p.low;
  int exponent = base_floor_log2_of_power10(q) - 63 - zeros;
  return (base_scaled){high + (low >> 64), (uint64_t)low, exponent, q >= 0 && q <= BASE_P5_EXACT};
}

typedef enum base_half { BASE_BELOW_HALF = -1, BASE_HALF = 0, BASE_ABOVE_HALF = 1, BASE_HALF_UNKNOWN = 2 } base_half;

/* Where `rest`, the part of s.bits to be rounded away, stands to `half`, given that the real rest is less than slack
 * more. */
static inline base_half base_half_of(base_scaled s, base_u128 rest, base_u128 half, base_u128 slack) {
  if (rest > half) return BASE_ABOVE_HALF;
  if (s.exact && slack <= 2) return rest < half ? BASE_BELOW_HALF : s.low ? BASE_ABOVE_HALF : BASE_HALF;
  return half - rest >= slack ? BASE_BELOW_HALF : BASE_HALF_UNKNOWN;
}

/* Beyond this many significant digits only whether any is not zero can matter to an f64. */
enum { BASE_MAX_DIGITS = 770 };

/* Exact: whether d * 10^q is below (-1), equal to (0) or above (1) m * 2^e, where d is the n digits at s; other
 * characters between them are skipped. The two must be within a factor of two or so. */
int base_compare_digits(const char *s, size_t n, int64_t q, uint64_t m, int e);
int base_compare_decimal(uint64_t d, int q, uint64_t m, int e);

/* The bits of the f64 or f32 nearest to d * 10^q, for d that has all its digits. */
uint64_t base_round_f64(uint64_t d, int q);
uint32_t base_round_f32(uint64_t d, int q);
/* The first n digits (1 to 18) of m * 2^e, m not 0, what follows dropped; *q is the power of ten of the last one. */
uint64_t base_first_digits(uint64_t m, int e, int n, int *q);

#endif
