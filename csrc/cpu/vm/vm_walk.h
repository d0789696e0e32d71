/* How a kernel's iterations are walked, run by run along the innermost dimension. */
#ifndef XLAC_CPU_VM_VM_WALK_H
#define XLAC_CPU_VM_VM_WALK_H

#include "vm_inside.h"

/* A complex number of doubles, the largest element. */
typedef struct vm_16 {
  uint64_t v[2];
} vm_16;

/* Where iteration number `at` is: its index in each dimension, the last one innermost. A division a dimension, and
 * so done once a block; from there on indexes are carried. */
static inline void vm_locate(const kernel *k, int64_t at, int64_t *index) {
  for (uint32_t d = k->rank; d-- > 0;) {
    index[d] = at % k->extents[d];
    at /= k->extents[d];
  }
}

/* In elements, from the beginning of the input. */
static inline int64_t vm_offset(const kernel *k, const kernel_index *x, const int64_t *index) {
  int64_t offset = x->offset;
  for (uint32_t d = 0; d < k->rank; d++) offset += x->strides[d] * index[d];
  return offset;
}

/* What comes next begins where a run along dimension d ended: the digits of a number whose base changes from place
 * to place. */
static inline void vm_carry_above(const kernel *k, uint32_t d, int64_t *index) {
  for (; index[d] >= k->extents[d]; d--) {
    index[d] = 0;
    if (d == 0) return;
    index[d - 1]++;
  }
}

/* The same for runs along the innermost dimension. */
static inline void vm_carry(const kernel *k, int64_t *index) {
  if (k->rank) vm_carry_above(k, k->rank - 1, index);
}

/* Of a run from `index` on along the innermost dimension, n long, the part that is in the box: *from .. *to,
 * counted from the run's first element. false where it is empty. b NULL is a box that has everything. */
static inline bool vm_run_in_box(const kernel *k, const kernel_box *b, const int64_t *index, int64_t n, int64_t *from,
                                 int64_t *to) {
  uint32_t inner = k->rank - 1;
  *from = 0;
  *to = n;
  if (!b) return true;
  for (uint32_t d = 0; d < inner; d++)
    if (index[d] < b->from[d] || index[d] >= b->to[d]) return false;
  if (b->from[inner] > index[inner]) *from = b->from[inner] - index[inner];
  if (b->to[inner] - index[inner] < n) *to = b->to[inner] - index[inner];
  return *from < *to;
}

#endif
