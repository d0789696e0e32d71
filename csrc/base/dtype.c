#include "dtype.h"

#include <assert.h>
#include <string.h>

const base_dtype_info base_dtype_table[BASE_DTYPE_COUNT] = {
    [BASE_DTYPE_INVALID] = {.text = "invalid"},
#define DTYPE(name, text, kind, bits, bytes, exponent, mantissa, bias) \
  [XLAC_##name] = {text, BASE_KIND_##kind, bits, bytes, exponent, mantissa, bias},
#include "dtypes.def"
#undef DTYPE
};

/* Up to four characters as one number, so that the short names, nearly all there are in a program, are one switch. */
#define NAME2(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)
#define NAME3(a, b, c) (NAME2(a, b) | (uint32_t)(c) << 16)
#define NAME4(a, b, c, d) (NAME3(a, b, c) | (uint32_t)(d) << 24)

static base_dtype short_name(uint32_t name) {
  switch (name) {
    case NAME3('f', '3', '2'): return XLAC_F32;
    case NAME4('b', 'f', '1', '6'): return XLAC_BF16;
    case NAME3('s', '3', '2'): return XLAC_S32;
    case NAME4('p', 'r', 'e', 'd'): return XLAC_PRED;
    case NAME3('f', '1', '6'): return XLAC_F16;
    case NAME3('f', '6', '4'): return XLAC_F64;
    case NAME3('s', '6', '4'): return XLAC_S64;
    case NAME3('s', '1', '6'): return XLAC_S16;
    case NAME3('u', '1', '6'): return XLAC_U16;
    case NAME3('u', '3', '2'): return XLAC_U32;
    case NAME3('u', '6', '4'): return XLAC_U64;
    case NAME3('c', '6', '4'): return XLAC_C64;
    case NAME4('c', '1', '2', '8'): return XLAC_C128;
    case NAME2('s', '1'): return XLAC_S1;
    case NAME2('s', '2'): return XLAC_S2;
    case NAME2('s', '4'): return XLAC_S4;
    case NAME2('s', '8'): return XLAC_S8;
    case NAME2('u', '1'): return XLAC_U1;
    case NAME2('u', '2'): return XLAC_U2;
    case NAME2('u', '4'): return XLAC_U4;
    case NAME2('u', '8'): return XLAC_U8;
    default: return BASE_DTYPE_INVALID;
  }
}

static base_dtype long_name(const char *s, size_t n) {
  for (int t = XLAC_F4E2M1FN; t < XLAC_F16; ++t) {
    const char *text = base_dtype_table[t].text;
    if (strlen(text) == n && memcmp(text, s, n) == 0) return (base_dtype)t;
  }
  return BASE_DTYPE_INVALID;
}

base_dtype base_dtype_from_text(const char *s, size_t n) {
  const unsigned char *u = (const unsigned char *)s;
  switch (n) {
    case 2: return short_name(NAME2(u[0], u[1]));
    case 3: return short_name(NAME3(u[0], u[1], u[2]));
    case 4: return short_name(NAME4(u[0], u[1], u[2], u[3]));
    default: return n > 4 && s[0] == 'f' ? long_name(s, n) : BASE_DTYPE_INVALID;
  }
}

base_dtype base_dtype_real_part(base_dtype t) { return t == XLAC_C64 ? XLAC_F32 : t == XLAC_C128 ? XLAC_F64 : t; }

bool base_float_has_inf(base_dtype t) {
  assert(base_dtype_is_float(t));
  switch (t) {
    case XLAC_F8E3M4:
    case XLAC_F8E4M3:
    case XLAC_F8E5M2:
    case XLAC_F16:
    case XLAC_BF16:
    case XLAC_F32:
    case XLAC_F64: return true;
    default: return false;
  }
}

bool base_float_has_nan(base_dtype t) {
  assert(base_dtype_is_float(t));
  return t != XLAC_F4E2M1FN && t != XLAC_F6E2M3FN && t != XLAC_F6E3M2FN;
}

bool base_float_has_negative_zero(base_dtype t) {
  assert(base_dtype_is_float(t));
  return t != XLAC_F8E4M3FNUZ && t != XLAC_F8E4M3B11FNUZ && t != XLAC_F8E5M2FNUZ && t != XLAC_F8E8M0FNU;
}

bool base_float_is_signed(base_dtype t) {
  assert(base_dtype_is_float(t));
  return t != XLAC_F8E8M0FNU;
}

#undef NAME2
#undef NAME3
#undef NAME4
