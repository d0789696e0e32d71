/* The table of element types, and words to its rows. */
#include "dtype.h"
#include "export.h"

#include <assert.h>
#include <string.h>

/* The columns of dtypes.def, each an initializer of base_dtype_info. */
#define HAS(...) .has = __VA_ARGS__,
#define MLIR(word) .mlir = word,
#define NUMPY(name) .numpy = name, .numpy_has = true,
#define ML_DTYPES(name) .numpy = name,
#define PROTO(number, field, how) .proto = number, .proto_field = field, .proto_values = BASE_PROTO_##how,
#define FFI(number) .ffi = number,
#define DLPACK(code, bits) .dlpack_code = code, .dlpack_bits = bits,
#define VHLO_TYPE(code, major, minor) .vhlo = code, .vhlo_major = major, .vhlo_minor = minor,
#define BUILTIN(code) .builtin = code,
/* A narrow float without infinity has a NaN only if overflow gives it; one with an infinity has both. */
#define BASE_NARROW_HAS(overflow, nan, inf, negative_zero)                              \
  (BASE_SIGN | ((inf) ? BASE_INF : 0) | ((inf) || (overflow) == (nan) ? BASE_NAN : 0) | \
   ((negative_zero) ? BASE_NEGATIVE_ZERO : 0))

BASE_EXPORT const base_dtype_info base_dtype_table[BASE_DTYPE_COUNT] = {
    [BASE_DTYPE_INVALID] = {.text = "invalid"},
#define DTYPE(name, word, kind_of, width, size, exponent, mantissa, bias_of, ...) \
  [XLAC_##name] = {.text = word,                                                  \
                   .kind = BASE_KIND_##kind_of,                                   \
                   .bits = width,                                                 \
                   .bytes = size,                                                 \
                   .exponent_bits = exponent,                                     \
                   .mantissa_bits = mantissa,                                     \
                   .bias = bias_of,                                               \
                   __VA_ARGS__},
#include "dtypes.def"
};

#undef HAS
#undef MLIR
#undef NUMPY
#undef ML_DTYPES
#undef PROTO
#undef FFI
#undef DLPACK
#undef VHLO_TYPE
#undef BUILTIN
#undef BASE_NARROW_HAS

/* --- by name --- */

/* n bytes at s, not terminated. */
static bool is_word(const char *word, const char *s, size_t n) {
  return strlen(word) == n && memcmp(word, s, n) == 0;
}

/* The type of [first, last] whose word is s; from the last back, since wider types are what programs have most of. */
static base_dtype text_among(base_dtype first, base_dtype last, const char *s, size_t n) {
  for (int t = last; t >= (int)first; --t)
    if (is_word(base_dtype_table[t].text, s, n)) return (base_dtype)t;
  return BASE_DTYPE_INVALID;
}

/* The same by MLIR's words. */
static base_dtype mlir_among(base_dtype first, base_dtype last, const char *s, size_t n) {
  for (int t = last; t >= (int)first; --t)
    if (is_word(base_dtype_table[t].mlir, s, n)) return (base_dtype)t;
  return BASE_DTYPE_INVALID;
}

/* The first letter tells the kind, so that at most a kind's types are compared. */
base_dtype base_dtype_from_text(const char *s, size_t n) {
  switch (n ? *s : 0) {
    case 'p':
      return text_among(XLAC_PRED, XLAC_PRED, s, n);
    case 's':
      return text_among(XLAC_S1, XLAC_S64, s, n);
    case 'u':
      return text_among(XLAC_U1, XLAC_U64, s, n);
    case 'f':
    case 'b':
      return text_among(XLAC_F4E2M1FN, XLAC_F64, s, n);
    case 'c':
      return text_among(XLAC_C64, XLAC_C128, s, n);
    default:
      return BASE_DTYPE_INVALID;
  }
}

/* MLIR's integers are signless: i1 is pred, i8 to i64 the signed types, ui8 to ui64 the unsigned ones. */
base_dtype base_dtype_from_mlir(const char *s, size_t n) {
  assert(s || n == 0);
  switch (n ? *s : 0) {
    case 'i':
      return is_word(base_dtype_table[XLAC_PRED].mlir, s, n) ? XLAC_PRED : mlir_among(XLAC_S2, XLAC_S64, s, n);
    case 'u':
      return mlir_among(XLAC_U1, XLAC_U64, s, n);
    case 'f':
    case 'b':
      return mlir_among(XLAC_F4E2M1FN, XLAC_F64, s, n);
    default:
      return BASE_DTYPE_INVALID;
  }
}

/* --- facts --- */

BASE_EXPORT base_dtype base_dtype_real_part(base_dtype t) {
  return t == XLAC_C64 ? XLAC_F32 : t == XLAC_C128 ? XLAC_F64 : t;
}

static bool float_has(base_dtype t, int what) {
  assert(base_dtype_is_float(t));
  return (base_dtype_table[t].has & what) != 0;
}

bool base_float_has_inf(base_dtype t) {
  return float_has(t, BASE_INF);
}

bool base_float_has_nan(base_dtype t) {
  return float_has(t, BASE_NAN);
}

bool base_float_has_negative_zero(base_dtype t) {
  return float_has(t, BASE_NEGATIVE_ZERO);
}

bool base_float_is_signed(base_dtype t) {
  return float_has(t, BASE_SIGN);
}
