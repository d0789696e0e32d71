/* Element types as DLPack has them, and those narrower than a byte, which it packs. */
#include "dlpack.h"

#include <string.h>

static const struct {
  const char *text;
  uint8_t code, bits;
} dl_types[] = {
    {"s1", 0, 1},         {"s2", 0, 2},          {"s4", 0, 4},        {"s8", 0, 8},
    {"s16", 0, 16},       {"s32", 0, 32},        {"s64", 0, 64},      {"u1", 1, 1},
    {"u2", 1, 2},         {"u4", 1, 4},          {"u8", 1, 8},        {"u16", 1, 16},
    {"u32", 1, 32},       {"u64", 1, 64},        {"f16", 2, 16},      {"f32", 2, 32},
    {"f64", 2, 64},       {"bf16", 4, 16},       {"c64", 5, 64},      {"c128", 5, 128},
    {"pred", 6, 8},       {"f8e3m4", 7, 8},      {"f8e4m3", 8, 8},    {"f8e4m3b11fnuz", 9, 8},
    {"f8e4m3fn", 10, 8},  {"f8e4m3fnuz", 11, 8}, {"f8e5m2", 12, 8},   {"f8e5m2fnuz", 13, 8},
    {"f8e8m0fnu", 14, 8}, {"f6e2m3fn", 15, 6},   {"f6e3m2fn", 16, 6}, {"f4e2m1fn", 17, 4},
};
enum { DL_TYPES = sizeof dl_types / sizeof *dl_types };

/* By number of the element type, so that an export compares no names. */
void dl_types_fill(py_state *st) {
  for (size_t i = 0; i < DL_TYPES; i++) {
    uint32_t dtype = xlac_dtype_from_text(dl_types[i].text);
    if (dtype >= PY_MAX_DTYPES) continue;
    st->dl_codes[dtype] = dl_types[i].code;
    st->dl_bits[dtype] = dl_types[i].bits;
  }
}

uint32_t dl_type_in(const py_state *st, dl_type t) {
  for (uint32_t dtype = 1; dtype < PY_MAX_DTYPES; dtype++)
    if (st->dl_bits[dtype] == t.bits && st->dl_codes[dtype] == t.code && t.bits) return dtype;
  return 0;
}

uint32_t dl_type_by_name(dl_type t) {
  for (size_t i = 0; i < DL_TYPES; i++)
    if (dl_types[i].code == t.code && dl_types[i].bits == t.bits) return xlac_dtype_from_text(dl_types[i].text);
  return 0;
}

dl_type dl_type_out(const py_state *st, uint32_t dtype) {
  return (dl_type){st->dl_codes[dtype], st->dl_bits[dtype], 1};
}

/* --- narrower than a byte --- */

/* The element at a place counted in elements; its bits may lie in two bytes. */
static uint32_t narrow_load(const dl_narrow *n, int64_t place) {
  if (!n->packed) return n->data[place];
  int64_t bit = place * n->bits;
  const uint8_t *at = n->data + (bit >> 3);
  uint32_t shift = (uint32_t)bit & 7, v = at[0];
  if (shift + n->bits > 8) v |= (uint32_t)at[1] << 8;
  return v >> shift;
}

/* As xlac writes it: with the sign in the bits beside. */
static uint8_t narrow_extended(const dl_narrow *n, uint32_t v) {
  v &= (1u << n->bits) - 1;
  bool negative = n->is_signed && (v >> (n->bits - 1)) != 0;
  return (uint8_t)(negative ? v | ~((1u << n->bits) - 1) : v);
}

/* To the next place, row-major; false after the last. */
static bool narrow_next(const dl_narrow *n, int64_t *at, int64_t *place) {
  for (uint32_t d = n->rank; d-- > 0;) {
    *place += n->steps[d];
    if (++at[d] < n->dims[d]) return true;
    *place -= n->steps[d] * n->dims[d];
    at[d] = 0;
  }
  return false;
}

bool dl_narrow_read(const dl_narrow *n, uint8_t *to) {
  int64_t at[DL_MAX_RANK] = {0}, place = 0;
  bool clean = true;
  for (uint32_t d = 0; d < n->rank; d++)
    if (n->dims[d] == 0) return true;
  do {
    uint32_t v = narrow_load(n, place);
    uint8_t byte = narrow_extended(n, v);
    clean = clean &&
            (byte == v || v >> n->bits == 0); /* ml_dtypes has both forms of negative numbers, and xlac reads both */
    if (to) *to++ = byte;
  } while (narrow_next(n, at, &place));
  return clean;
}

void dl_narrow_pack(uint32_t bits, uint8_t *bytes, int64_t n) {
  uint32_t waiting = 0, have = 0;
  uint8_t *to = bytes; /* never overtakes what is read */
  for (int64_t i = 0; i < n; i++) {
    waiting |= (bytes[i] & ((1u << bits) - 1)) << have;
    have += bits;
    if (have < 8) continue;
    *to++ = (uint8_t)waiting;
    waiting >>= 8;
    have -= 8;
  }
  if (have) *to = (uint8_t)waiting;
}
