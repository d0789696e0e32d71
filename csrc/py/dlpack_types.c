/* Element types as DLPack has them, and those narrower than a byte, which it packs. */
#include "dlpack.h"

#include <string.h>

/* By number of the element type, so that an export asks nothing. */
void dl_types_fill(py_state *st) {
  for (uint32_t dtype = 1; dtype < xlac_dtype_count() && dtype < PY_MAX_DTYPES; dtype++)
    xlac_dtype_dlpack(dtype, &st->dl_codes[dtype], &st->dl_bits[dtype]);
}

uint32_t dl_type_in(const py_state *st, dl_type t) {
  for (uint32_t dtype = 1; dtype < PY_MAX_DTYPES; dtype++)
    if (st->dl_bits[dtype] == t.bits && st->dl_codes[dtype] == t.code && t.bits) return dtype;
  return 0;
}

uint32_t dl_type_by_name(dl_type t) {
  for (uint32_t dtype = 1; dtype < xlac_dtype_count(); dtype++) {
    dl_type own = {.lanes = 1};
    xlac_dtype_dlpack(dtype, &own.code, &own.bits);
    if (own.code == t.code && own.bits == t.bits) return dtype;
  }
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
