/* Keyed elements: insertion for a few, else a radix sort, a byte at a time from the lowest, bytes that all keys share
 * left out. */
#include "sort_keyed.h"

enum { KEYED_FEW = 32 };

#define KEYED_ENCODE(name, E, U, KEY, AT, MAKE)                                                                    \
  static void name##_encode_##U(const keyed_coding *c, const char *data, int64_t stride, int64_t first, int64_t n, \
                                E *out) {                                                                          \
    const keyed_coding own = *c;                                                                                   \
    for (int64_t i = 0; i < n; i++) out[i] = MAKE(keyed_key_##U(&own, data + (first + i) * stride), first + i);    \
  }                                                                                                                \
  static void name##_again_##U(const keyed_coding *c, const char *data, int64_t stride, int64_t n, E *v) {         \
    const keyed_coding own = *c;                                                                                   \
    for (int64_t i = 0; i < n; i++) v[i] = MAKE(keyed_key_##U(&own, data + AT(v[i]) * stride), AT(v[i]));          \
  }
KEYED_ENCODE(narrow, keyed_narrow, uint8_t, NARROW_KEY, NARROW_AT, NARROW_MAKE)
KEYED_ENCODE(narrow, keyed_narrow, uint16_t, NARROW_KEY, NARROW_AT, NARROW_MAKE)
KEYED_ENCODE(narrow, keyed_narrow, uint32_t, NARROW_KEY, NARROW_AT, NARROW_MAKE)
KEYED_ENCODE(wide, keyed_wide, uint8_t, WIDE_KEY, WIDE_AT, WIDE_MAKE)
KEYED_ENCODE(wide, keyed_wide, uint16_t, WIDE_KEY, WIDE_AT, WIDE_MAKE)
KEYED_ENCODE(wide, keyed_wide, uint32_t, WIDE_KEY, WIDE_AT, WIDE_MAKE)
KEYED_ENCODE(wide, keyed_wide, uint64_t, WIDE_KEY, WIDE_AT, WIDE_MAKE)
#undef KEYED_ENCODE

static void keyed_narrow_encode(const cpu_sort_key *k, const char *data, int64_t stride, int64_t first, int64_t n,
                                void *out) {
  keyed_coding c = keyed_coding_of(k);
  size_t bytes = base_dtype_bytes((base_dtype)k->dtype);
  (bytes == 1   ? narrow_encode_uint8_t
   : bytes == 2 ? narrow_encode_uint16_t
                : narrow_encode_uint32_t)(&c, data, stride, first, n, out);
}

static void keyed_narrow_again(const cpu_sort_key *k, const char *data, int64_t stride, int64_t n, void *v) {
  keyed_coding c = keyed_coding_of(k);
  size_t bytes = base_dtype_bytes((base_dtype)k->dtype);
  (bytes == 1   ? narrow_again_uint8_t
   : bytes == 2 ? narrow_again_uint16_t
                : narrow_again_uint32_t)(&c, data, stride, n, v);
}

static void keyed_wide_encode(const cpu_sort_key *k, const char *data, int64_t stride, int64_t first, int64_t n,
                              void *out) {
  keyed_coding c = keyed_coding_of(k);
  size_t bytes = base_dtype_bytes((base_dtype)k->dtype);
  (bytes == 1   ? wide_encode_uint8_t
   : bytes == 2 ? wide_encode_uint16_t
   : bytes == 4 ? wide_encode_uint32_t
                : wide_encode_uint64_t)(&c, data, stride, first, n, out);
}

static void keyed_wide_again(const cpu_sort_key *k, const char *data, int64_t stride, int64_t n, void *v) {
  keyed_coding c = keyed_coding_of(k);
  size_t bytes = base_dtype_bytes((base_dtype)k->dtype);
  (bytes == 1   ? wide_again_uint8_t
   : bytes == 2 ? wide_again_uint16_t
   : bytes == 4 ? wide_again_uint32_t
                : wide_again_uint64_t)(&c, data, stride, n, v);
}

#define KEYED_SORT(name, E, KEY, BYTES)                                                                        \
  static void name##_insertion(E *v, int64_t n) {                                                              \
    for (int64_t i = 1; i < n; i++) {                                                                          \
      E x = v[i];                                                                                              \
      int64_t j = i;                                                                                           \
      for (; j > 0 && KEY(x) < KEY(v[j - 1]); j--) v[j] = v[j - 1];                                            \
      v[j] = x;                                                                                                \
    }                                                                                                          \
  }                                                                                                            \
  /* Stable, by byte `pass`; false where all have the same. */                                                 \
  static bool name##_pass(const E *from, E *to, int64_t n, uint32_t pass, int64_t *counts) {                   \
    const uint32_t shift = 8 * pass;                                                                           \
    int64_t at = 0;                                                                                            \
    if (counts[KEY(from[0]) >> shift & 255] == n) return false;                                                \
    for (uint32_t d = 0; d < 256; d++) {                                                                       \
      int64_t these = counts[d];                                                                               \
      counts[d] = at;                                                                                          \
      at += these;                                                                                             \
    }                                                                                                          \
    for (int64_t i = 0; i < n; i++) to[counts[KEY(from[i]) >> shift & 255]++] = from[i];                       \
    return true;                                                                                               \
  }                                                                                                            \
  static void name##_sort(void *v, void *spare, int64_t n, uint32_t width) {                                   \
    int64_t counts[BYTES][256];                                                                                \
    E *from = v, *to = spare;                                                                                  \
    const uint32_t passes = width / 8;                                                                         \
    assert(passes <= BYTES);                                                                                   \
    if (n <= KEYED_FEW) {                                                                                      \
      name##_insertion(v, n);                                                                                  \
      return;                                                                                                  \
    }                                                                                                          \
    memset(counts, 0, passes * sizeof *counts);                                                                \
    for (int64_t i = 0; i < n; i++)                                                                            \
      for (uint32_t p = 0; p < passes; p++) counts[p][KEY(from[i]) >> (8 * p) & 255]++;                        \
    for (uint32_t p = 0; p < passes; p++) {                                                                    \
      if (!name##_pass(from, to, n, p, counts[p])) continue;                                                   \
      E *swap = from;                                                                                          \
      from = to;                                                                                               \
      to = swap;                                                                                               \
    }                                                                                                          \
    if (from != v) memcpy(v, from, (size_t)n * sizeof(E));                                                     \
  }                                                                                                            \
  /* How many of the first `end` of the merge come from a. */                                                  \
  static int64_t name##_split(const E *a, int64_t na, const E *b, int64_t nb, int64_t end) {                   \
    int64_t low = interp_max(0, end - nb), high = interp_min(end, na);                                         \
    while (low < high) {                                                                                       \
      int64_t mid = low + (high - low) / 2;                                                                    \
      if (KEY(b[end - 1 - mid]) < KEY(a[mid]))                                                                 \
        high = mid;                                                                                            \
      else                                                                                                     \
        low = mid + 1;                                                                                         \
    }                                                                                                          \
    return low;                                                                                                \
  }                                                                                                            \
  static void name##_merge(const void *pa, int64_t na, const void *pb, int64_t nb, int64_t begin, int64_t end, \
                           void *out) {                                                                        \
    const E *a = pa, *b = pb;                                                                                  \
    E *to = out;                                                                                               \
    int64_t i = name##_split(a, na, b, nb, begin), j = begin - i;                                              \
    int64_t i_end = name##_split(a, na, b, nb, end), j_end = end - i_end;                                      \
    for (; i < i_end && j < j_end; begin++) {                                                                  \
      bool second = KEY(b[j]) < KEY(a[i]);                                                                     \
      to[begin] = second ? b[j] : a[i];                                                                        \
      j += second;                                                                                             \
      i += !second;                                                                                            \
    }                                                                                                          \
    memcpy(to + begin, a + i, (size_t)(i_end - i) * sizeof(E));                                                \
    memcpy(to + begin + (i_end - i), b + j, (size_t)(j_end - j) * sizeof(E));                                  \
  }
KEYED_SORT(keyed_narrow, keyed_narrow, NARROW_KEY, 4)
KEYED_SORT(keyed_wide, keyed_wide, WIDE_KEY, 8)
#undef KEYED_SORT

typedef struct keyed_16 {
  uint64_t half[2];
} keyed_16;

#define KEYED_PICK_AS(E, AT, T) \
  for (int64_t i = 0; i < n; i++) memcpy(to + i * stride, from + AT(((const E *)v)[i]) * stride, sizeof(T))
#define KEYED_PICK(name, E, AT)                                                                                 \
  static void name##_pick(const void *v, int64_t n, size_t bytes, const char *from, char *to, int64_t stride) { \
    if (bytes == 1)                                                                                             \
      KEYED_PICK_AS(E, AT, uint8_t);                                                                            \
    else if (bytes == 2)                                                                                        \
      KEYED_PICK_AS(E, AT, uint16_t);                                                                           \
    else if (bytes == 4)                                                                                        \
      KEYED_PICK_AS(E, AT, uint32_t);                                                                           \
    else if (bytes == 8)                                                                                        \
      KEYED_PICK_AS(E, AT, uint64_t);                                                                           \
    else                                                                                                        \
      KEYED_PICK_AS(E, AT, keyed_16);                                                                           \
  }
KEYED_PICK(keyed_narrow, keyed_narrow, NARROW_AT)
KEYED_PICK(keyed_wide, keyed_wide, WIDE_AT)
#undef KEYED_PICK
#undef KEYED_PICK_AS

const cpu_sort_kind cpu_sort_narrow = {sizeof(keyed_narrow),  keyed_narrow_encode, keyed_narrow_again,
                                       keyed_narrow_sort,     keyed_narrow_merge,  keyed_narrow_pick,
                                       cpu_sort_select_narrow};
const cpu_sort_kind cpu_sort_wide = {sizeof(keyed_wide), keyed_wide_encode, keyed_wide_again,    keyed_wide_sort,
                                     keyed_wide_merge,   keyed_wide_pick,   cpu_sort_select_wide};
