/* Euclid's greatest common divisor. Thread-safe: a pure function. */
#ifndef XLAC_BASE_NUMBER_GCD_H
#define XLAC_BASE_NUMBER_GCD_H

#include <stdint.h>

/* Of numbers that are not negative; of 0 and n it is n. */
static inline int64_t base_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

#endif
