/* Counts in messages and listings. */
#ifndef XLAC_BASE_PLURAL_H
#define XLAC_BASE_PLURAL_H

#include <stdint.h>

/* The end of a noun behind a count: "%u op%s". */
static inline const char *base_plural(uint64_t n) {
  return n == 1 ? "" : "s";
}

#endif
