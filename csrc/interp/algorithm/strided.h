/* Copies between arrays whose dimensions have any strides: the one loop nest under every data-moving op. Thread-safe.
 */
#ifndef XLAC_INTERP_ALGORITHM_STRIDED_H
#define XLAC_INTERP_ALGORITHM_STRIDED_H

#include "../interp.h"

/* Copies prod(dims) elements of `bytes` each (1, 2, 4, 8 or 16). Strides count elements and may be zero or negative;
 * `to` and `from` point at the element of index 0 and must not overlap; distinct indices must have distinct places in
 * `to`. Nonzero only when the run was interrupted. */
XLAC_MUST_USE int interp_strided_copy(interp_ctx *ctx, size_t bytes, uint32_t rank, const int64_t *dims, void *to,
                                      const int64_t *to_strides, const void *from, const int64_t *from_strides);
/* One row of n elements. */
void interp_copy_row(size_t bytes, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n);
/* to[i] = from[places[i]]. */
void interp_copy_listed(size_t bytes, void *to, const void *from, const int64_t *places, int64_t n);
/* to[places[i]] = from[i]. */
void interp_spread_listed(size_t bytes, void *to, const void *from, const int64_t *places, int64_t n);
/* n copies of one element. */
void interp_fill(size_t bytes, void *to, int64_t n, const void *element);

#endif
