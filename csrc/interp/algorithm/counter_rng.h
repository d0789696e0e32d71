/* Counter-based random generators: Philox4x32-10 and Threefry2x32-20 (Salmon et al., SC 2011). Pure functions.
 *
 * Counter-based: block number c under key k is a pure function of both, so any block can be computed
 * alone. */
#ifndef XLAC_INTERP_ALGORITHM_COUNTER_RNG_H
#define XLAC_INTERP_ALGORITHM_COUNTER_RNG_H

#include <stdint.h>

/* A 128-bit counter; adding carries. */
typedef struct rng_counter {
  uint64_t low, high;
} rng_counter;

/* Modulo 2^128. */
static inline rng_counter rng_advance(rng_counter c, uint64_t by) {
  rng_counter sum = {c.low + by, c.high};
  if (sum.low < c.low) sum.high++;
  return sum;
}

/* Two 32 x 32 bit products, whose halves are mixed with the other words and the round keys. */
static inline void rng_philox_round(uint32_t x[4], uint32_t k0, uint32_t k1) {
  uint64_t p0 = (uint64_t)x[0] * 0xD2511F53u, p1 = (uint64_t)x[2] * 0xCD9E8D57u;
  uint32_t y0 = (uint32_t)(p1 >> 32) ^ x[1] ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x[3] ^ k1;
  x[0] = y0, x[1] = (uint32_t)p1, x[2] = y2, x[3] = (uint32_t)p0;
}

/* The four words of one block. */
static inline void rng_philox(uint64_t key, rng_counter counter, uint32_t out[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  out[0] = (uint32_t)counter.low, out[1] = (uint32_t)(counter.low >> 32);
  out[2] = (uint32_t)counter.high, out[3] = (uint32_t)(counter.high >> 32);
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) rng_philox_round(out, k0, k1);
}

/* 0 < by < 32. */
static inline uint32_t rng_rotate(uint32_t v, unsigned by) {
  return v << by | v >> (32 - by);
}

/* The two words of one block. */
static inline void rng_threefry(uint64_t key, uint64_t counter, uint32_t out[2]) {
  static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t ks[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
  ks[2] = 0x1BD11BDAu ^ ks[0] ^ ks[1];
  uint32_t a = (uint32_t)counter + ks[0], b = (uint32_t)(counter >> 32) + ks[1];
  for (uint32_t group = 0; group < 5; group++) {
    for (int i = 0; i < 4; i++) {
      a += b;
      b = rng_rotate(b, rotations[group & 1][i]) ^ a;
    }
    a += ks[(group + 1) % 3];
    b += ks[(group + 2) % 3] + group + 1;
  }
  out[0] = a, out[1] = b;
}

#endif
