/* Sorting by keys, inside: comparators seen as keys, and the loops on keyed elements. */
#ifndef XLAC_CPU_SORT_SORT_H
#define XLAC_CPU_SORT_SORT_H

#include "../../ir/ir.h"

/* One key of a comparator: the elements of an operand as unsigned numbers that sort like them. */
typedef struct cpu_sort_key {
  uint32_t operand;
  uint8_t dtype;
  bool descending;
  bool zeros_equal; /* -0 sorts as 0 */
  bool nan_equal;   /* every NaN sorts as `nan` does */
  bool no_nan;      /* a plain comparison: keys serve only where there is no NaN */
  uint64_t nan;     /* its bits */
} cpu_sort_key;

enum { CPU_SORT_KEYS = 8 };

/* The keys that the comparator c sorts by, the most significant first. 0: none are known. sort_compare.c */
uint32_t cpu_sort_keys_of(const ir_computation *c, cpu_sort_key *keys);

/* An element's key and where it was: 8 bytes for keys of up to 32 bits, else 16. All functions keep the order of equal
 * keys. sort_keyed.c */
typedef struct cpu_sort_kind {
  size_t bytes;
  /* n elements of data, `stride` bytes apart, from element `first` on, to out[0] and on. */
  void (*encode)(const cpu_sort_key *k, const char *data, int64_t stride, int64_t first, int64_t n, void *out);
  /* Those at v get another key; they stay where they are. */
  void (*encode_again)(const cpu_sort_key *k, const char *data, int64_t stride, int64_t n, void *v);
  /* n elements at v by their key's lowest `width` bits, with room for as many at spare. The result is at v. */
  void (*sort)(void *v, void *spare, int64_t n, uint32_t width);
  /* Elements begin to end of the merge of a and b. */
  void (*merge)(const void *a, int64_t na, const void *b, int64_t nb, int64_t begin, int64_t end, void *out);
  /* to[i * stride] = from[stride * where element i was], for elements of `bytes`. */
  void (*pick)(const void *v, int64_t n, size_t bytes, const char *from, char *to, int64_t stride);
  /* The k least of the n elements from `first` on, in order of place, to `out`, which has room for n. Returns how many:
   * with `ties`, all that share the last one's key come too. 0 < k <= n. */
  int64_t (*select)(const cpu_sort_key *key, int64_t k, bool ties, const char *data, int64_t stride, int64_t first,
                    int64_t n, void *out);
} cpu_sort_kind;
extern const cpu_sort_kind cpu_sort_narrow, cpu_sort_wide;

#endif
