/* Selection: the k least of a row, for sorts of which only so many are kept. A row is read once; what is not above the
 * k-th least key met so far is put aside, and when much has come together, what is above the k-th least of it goes.
 * Most blocks of a long row have nothing to put aside, which a loop without branches finds out. */
#include "sort_keyed.h"

enum { SELECT_BLOCK = 64, SELECT_ROOM = 128 };

/* Whether an element of a block has a key of at most `last`. */
typedef bool select_any_fn(const keyed_coding *c, const char *data, int64_t stride, int64_t n, uint64_t last);

#define SELECT_ANY(U)                                                                                             \
  static bool select_any_##U(const keyed_coding *c, const char *data, int64_t stride, int64_t n, uint64_t last) { \
    const keyed_coding own = *c;                                                                                  \
    const U most = (U)last;                                                                                       \
    U any = 0;                                                                                                    \
    if (stride == sizeof(U))                                                                                      \
      for (int64_t i = 0; i < n; i++) any |= keyed_key_##U(&own, data + i * (int64_t)sizeof(U)) <= most;          \
    else                                                                                                          \
      for (int64_t i = 0; i < n; i++) any |= keyed_key_##U(&own, data + i * stride) <= most;                      \
    return any;                                                                                                   \
  }
SELECT_ANY(uint8_t)
SELECT_ANY(uint16_t)
SELECT_ANY(uint32_t)
SELECT_ANY(uint64_t)
#undef SELECT_ANY

static select_any_fn *select_any_of(size_t bytes) {
  return bytes == 1   ? select_any_uint8_t
         : bytes == 2 ? select_any_uint16_t
         : bytes == 4 ? select_any_uint32_t
                      : select_any_uint64_t;
}

#define SELECT_OF(name, kind, E, KEY)                                                                             \
  /* The k-th least key of m elements, byte by byte from the highest, and how many are less. */                   \
  static uint64_t name##_nth(const E *v, int64_t m, int64_t k, uint32_t width, int64_t *less) {                   \
    uint64_t key = 0;                                                                                             \
    *less = 0;                                                                                                    \
    for (uint32_t shift = width; shift > 0;) {                                                                    \
      int64_t counts[256] = {0};                                                                                  \
      uint32_t digit = 0;                                                                                         \
      shift -= 8;                                                                                                 \
      for (int64_t i = 0; i < m; i++) {                                                                           \
        uint64_t bits = (uint64_t)KEY(v[i]) >> shift;                                                             \
        counts[bits & 255] += bits >> 8 == key;                                                                   \
      }                                                                                                           \
      for (; *less + counts[digit] < k; digit++) *less += counts[digit];                                          \
      assert(digit < 256);                                                                                        \
      key = key << 8 | digit;                                                                                     \
    }                                                                                                             \
    return key;                                                                                                   \
  }                                                                                                               \
  /* Leaves those up to *last, which becomes the k-th least key; those that share it from the front, or all. */   \
  static int64_t name##_shrink(E *v, int64_t m, int64_t k, bool ties, uint32_t width, uint64_t *last) {           \
    int64_t less, left = 0;                                                                                       \
    const uint64_t key = name##_nth(v, m, k, width, &less);                                                       \
    int64_t equal = ties ? m : k - less;                                                                          \
    for (int64_t i = 0; i < m; i++) {                                                                             \
      E e = v[i];                                                                                                 \
      bool same = KEY(e) == key;                                                                                  \
      v[left] = e;                                                                                                \
      left += (KEY(e) < key) | (same & (equal > 0));                                                              \
      equal -= same;                                                                                              \
    }                                                                                                             \
    *last = key;                                                                                                  \
    return left;                                                                                                  \
  }                                                                                                               \
  int64_t cpu_sort_select_##name(const cpu_sort_key *key, int64_t k, bool ties, const char *data, int64_t stride, \
                                 int64_t first, int64_t n, void *out) {                                           \
    const keyed_coding c = keyed_coding_of(key);                                                                  \
    const size_t bytes = base_dtype_bytes((base_dtype)key->dtype);                                                \
    select_any_fn *any = select_any_of(bytes);                                                                    \
    E *v = out;                                                                                                   \
    int64_t m = 0, enough = 2 * k + SELECT_ROOM;                                                                  \
    uint64_t last = UINT64_MAX; /* keys up to this one count */                                                   \
    assert(0 < k && k <= n);                                                                                      \
    for (int64_t i = first, end = first + n; i < end; i += SELECT_BLOCK) {                                        \
      int64_t block = interp_min(SELECT_BLOCK, end - i), from = m;                                                \
      if (last != UINT64_MAX && !any(&c, data + i * stride, stride, block, last)) continue;                       \
      kind.encode(key, data, stride, i, block, v + m);                                                            \
      for (int64_t j = from; j < from + block; j++) {                                                             \
        E e = v[j];                                                                                               \
        v[m] = e;                                                                                                 \
        m += KEY(e) <= last;                                                                                      \
      }                                                                                                           \
      if (m < enough) continue;                                                                                   \
      m = name##_shrink(v, m, k, ties, 8 * (uint32_t)bytes, &last);                                               \
      if (ties) enough = 2 * m + SELECT_ROOM;                                                                     \
      if (!ties && last-- == 0) return m; /* nothing is less than these, and what is equal comes later */         \
    }                                                                                                             \
    return m > k ? name##_shrink(v, m, k, ties, 8 * (uint32_t)bytes, &last) : m;                                  \
  }
SELECT_OF(narrow, cpu_sort_narrow, keyed_narrow, NARROW_KEY)
SELECT_OF(wide, cpu_sort_wide, keyed_wide, WIDE_KEY)
#undef SELECT_OF
