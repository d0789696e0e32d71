/* Keyed elements, inside: how a key is made of an element's bits, and where key and place stand. */
#ifndef XLAC_CPU_SORT_SORT_KEYED_H
#define XLAC_CPU_SORT_SORT_KEYED_H

#include "../../interp/algorithm/arrays.h"
#include "sort.h"

/* How a key is made of an element's bits, without branches. `size` is what is below the top bit. */
typedef struct keyed_coding {
  uint64_t zero, most, nan; /* size < zero: 0; size > most: nan */
  uint64_t negative, flip;  /* of negative floats, of everything */
} keyed_coding;

static inline keyed_coding keyed_coding_of(const cpu_sort_key *k) {
  base_dtype t = (base_dtype)k->dtype;
  uint32_t width = 8 * (uint32_t)base_dtype_bytes(t);
  uint64_t all = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1, top = (uint64_t)1 << (width - 1);
  uint64_t infinity = t == XLAC_F16    ? 0x7c00
                      : t == XLAC_BF16 ? 0x7f80
                      : t == XLAC_F32  ? 0x7f800000
                                       : (uint64_t)0x7ff << 52;
  bool is_float = base_dtype_is_float(t);
  keyed_coding c = {.zero = is_float && k->zeros_equal, .most = is_float && k->nan_equal ? infinity : all ^ top};
  c.nan = k->nan;
  c.negative = is_float ? all ^ top : 0;
  c.flip = k->descending ? all : 0;
  if (is_float || base_dtype_is_signed(t)) c.flip ^= top;
  return c;
}

#define KEYED_KEY(U, S)                                                 \
  static inline U keyed_key_##U(const keyed_coding *c, const char *p) { \
    U v;                                                                \
    memcpy(&v, p, sizeof v);                                            \
    const S size = (S)(v & (U)((U) ~(U)0 >> 1));                        \
    v = size < (S)c->zero ? 0 : v;                                      \
    v = size > (S)c->most ? (U)c->nan : v;                              \
    U negative = (U)((S)v >> (8 * sizeof v - 1));                       \
    return (U)(v ^ (negative & (U)c->negative) ^ (U)c->flip);           \
  }
KEYED_KEY(uint8_t, int8_t)
KEYED_KEY(uint16_t, int16_t)
KEYED_KEY(uint32_t, int32_t)
KEYED_KEY(uint64_t, int64_t)
#undef KEYED_KEY

/* Key above, place below. */
typedef uint64_t keyed_narrow;
typedef struct keyed_wide {
  uint64_t key, at;
} keyed_wide;
#define NARROW_KEY(e) ((uint32_t)((e) >> 32))
#define NARROW_AT(e) ((int64_t)((e) & 0xffffffffu))
#define NARROW_MAKE(key, at) ((uint64_t)(key) << 32 | (uint64_t)(at))
#define WIDE_KEY(e) ((e).key)
#define WIDE_AT(e) ((int64_t)(e).at)
#define WIDE_MAKE(key, at) ((keyed_wide){(key), (uint64_t)(at)})

/* cpu_sort_kind's select. sort_select.c */
int64_t cpu_sort_select_narrow(const cpu_sort_key *key, int64_t k, bool ties, const char *data, int64_t stride,
                               int64_t first, int64_t n, void *out);
int64_t cpu_sort_select_wide(const cpu_sort_key *key, int64_t k, bool ties, const char *data, int64_t stride,
                             int64_t first, int64_t n, void *out);

#endif
