/* Elements as unsigned keys that sort like them, for sorting and top-k without a comparator call. */
#ifndef XLAC_INTERP_ALGORITHM_SORT_KEYS_H
#define XLAC_INTERP_ALGORITHM_SORT_KEYS_H

#include "arrays.h"

typedef struct interp_keyed {
  uint64_t key;
  int64_t at;
} interp_keyed;

/* Fills keys of n elements, at = 0, 1, ... . Floats take their total order, -NaN < -inf < ... < -0 < 0 < ... < NaN;
 * with `zeros_equal` -0 and 0 share a key. Descending order by `descending`. */
void interp_sort_keys(base_dtype t, const void *data, int64_t n, bool zeros_equal, bool descending, interp_keyed *out);
/* Whether keys can stand for comparisons of this type at all. */
bool interp_sort_keyable(base_dtype t);
bool interp_has_nan(base_dtype t, const void *data, int64_t n);
/* Sorts n of them by key, stably. `spare` has room for n; the result is in `v`. Nonzero when the run was interrupted.
 */
XLAC_MUST_USE int interp_sort_keyed(interp_ctx *ctx, interp_keyed *v, interp_keyed *spare, int64_t n);

/* The k first elements of each row of x in descending (or ascending) total order, equal ones by place, and their
 * places.
 */
int interp_topk_rows(interp_ctx *ctx, const interp_value *x, int64_t k, bool largest, interp_value *values,
                     interp_value *indices);

#endif
