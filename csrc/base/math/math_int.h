/* Integer functions that the expressions of ops.def use. Pure. */
#ifndef XLAC_BASE_MATH_MATH_INT_H
#define XLAC_BASE_MATH_MATH_INT_H

#include <stdint.h>

__extension__ typedef __int128 math_i128;
__extension__ typedef unsigned __int128 math_u128;

/* x to the y, modulo 2^64. */
static inline uint64_t int_pow(uint64_t x, uint64_t y) {
  uint64_t r = 1;
  for (; y; y >>= 1, x *= x) {
    uint64_t all = -(y & 1); /* no branch: which bits of y are set cannot be foretold */
    r *= (x & all) | (~all & 1);
  }
  return r;
}

/* The same of signed numbers; a negative power is the quotient 1 / x^-y truncated, and of 0 it is 0. XLA's two emitters
 * give
 * (-1)^-1 as 0 or -1: this is the one that is right. */
static inline uint64_t int_power(int64_t x, int64_t y) {
  if (y >= 0) return int_pow((uint64_t)x, (uint64_t)y);
  return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? (uint64_t)-1 : 0;
}

/* Quotient and remainder of integers of at most 32 bits by way of doubles, which CPUs divide several at a time: where x
 * and y are below 2^32, no quotient that is not an integer is so near to one that it is rounded to it, so truncating it
 * is exact. y is not 0, and not -1. */
#define int_quotient(x, y)                             \
  _Generic((x),                                        \
      int32_t: (int32_t)((double)(x) / (double)(y)),   \
      uint32_t: (uint32_t)((double)(x) / (double)(y)), \
      default: (x) / (y))
#define int_remainder(x, y)                                                             \
  _Generic((x),                                                                         \
      int32_t: (int32_t)((uint32_t)(x) - (uint32_t)int_quotient(x, y) * (uint32_t)(y)), \
      uint32_t: (uint32_t)((x) - int_quotient(x, y) * (y)),                             \
      default: (x) % (y))

/* How many bits are set, and how many zeros stand above the highest one, by additions, shifts and masks alone: vector
 * units have those for lanes of every size, so loops over either are vectors of as many lanes as fit. */
static inline uint32_t int_popcount_32(uint32_t x) {
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  x = (x + (x >> 4)) & 0x0F0F0F0F;
  x += x >> 8;
  return (x + (x >> 16)) & 0x3F;
}

static inline uint64_t int_popcount_64(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F;
  x += x >> 8;
  x += x >> 16;
  return (x + (x >> 32)) & 0x7F;
}

/* With all bits below the highest one set, what is left of the width is the zeros above. */
static inline uint32_t int_clz_32(uint32_t x, uint32_t bits) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return bits - int_popcount_32(x);
}

static inline uint64_t int_clz_64(uint64_t x, uint64_t bits) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  x |= x >> 32;
  return bits - int_popcount_64(x);
}

/* Of unsigned x of any size; of int where smaller ones were promoted. */
#define int_popcount(x) _Generic((x), uint64_t: int_popcount_64, default: int_popcount_32)(x)
#define int_clz(x, bits) _Generic((x), uint64_t: int_clz_64, default: int_clz_32)(x, bits)

#endif
