#include "list.h"

#include <assert.h>
#include <stddef.h>

int64_t base_list_at(const int64_t *v, uint32_t n, int64_t x) {
  assert(v != NULL || n == 0);
  for (uint32_t i = 0; i < n; i++)
    if (v[i] == x) return i;
  return -1;
}
