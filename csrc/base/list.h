/* Short lists of numbers: dimensions, axes, members of groups. */
#ifndef XLAC_BASE_LIST_H
#define XLAC_BASE_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* Where x first stands among the n numbers at v; -1: nowhere. v may be NULL where n is 0. */
int64_t base_list_at(const int64_t *v, uint32_t n, int64_t x);

static inline bool base_list_has(const int64_t *v, uint32_t n, int64_t x) {
  return base_list_at(v, n, x) >= 0;
}

#endif
