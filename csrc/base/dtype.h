/* Element types: their facts and exact conversions. Thread-safe: constant tables and pure functions only. */
#ifndef XLAC_BASE_DTYPE_H
#define XLAC_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are ours alone; each format's own are columns of the table. Types of one class are neighbours, which
 * base_dtype_from_text relies on. */
typedef enum base_dtype {
  BASE_DTYPE_INVALID = 0,
#define DTYPE(name, ...) XLAC_##name,
#include "dtypes.def"
  BASE_DTYPE_COUNT
} base_dtype;

/* The numeric classes; what StableHLO calls boolean is PRED. NONE is the row of BASE_DTYPE_INVALID. */
typedef enum base_dtype_kind {
  BASE_KIND_NONE = 0,
  BASE_KIND_PRED,
  BASE_KIND_SINT,
  BASE_KIND_UINT,
  BASE_KIND_FLOAT,
  BASE_KIND_COMPLEX
} base_dtype_kind;

/* Special values that a float type has. */
enum { BASE_INF = 1, BASE_NAN = 2, BASE_NEGATIVE_ZERO = 4, BASE_SIGN = 8 };

/* How xla.LiteralProto holds values: the bytes of the array, or repeated varints or fixed-width numbers. */
typedef enum base_proto_values { BASE_PROTO_RAW, BASE_PROTO_NUMBERS } base_proto_values;

/* A row of dtypes.def, which says more of each column. */
typedef struct base_dtype_info {
  const char *text;  /* "bf16" */
  const char *mlir;  /* "bf16"; of s32 "i32" */
  const char *numpy; /* name of the dtype: of NumPy, or of ml_dtypes */
  bool numpy_has;    /* NumPy itself has it */
  uint8_t kind;      /* base_dtype_kind */
  uint8_t bits;      /* logical width */
  uint8_t bytes;     /* of one element in host memory */
  uint8_t exponent_bits, mantissa_bits;
  uint8_t has;                              /* BASE_INF | ...; 0 of what is not a float */
  uint8_t proto, proto_field, proto_values; /* xla.PrimitiveType; field of LiteralProto; base_proto_values */
  uint8_t ffi;                              /* XLAC_FFI_ number where it is not proto's, else 0 */
  uint8_t dlpack_code, dlpack_bits;
  uint8_t vhlo;                   /* code of the type in VHLO's bytecode */
  uint8_t vhlo_major, vhlo_minor; /* first StableHLO version that has the code; 0.0: there is none */
  uint8_t builtin;                /* code of the float in the builtin dialect's bytecode, or 0 */
  int16_t bias;
} base_dtype_info;

extern const base_dtype_info base_dtype_table[BASE_DTYPE_COUNT];

/* t must be a base_dtype, INVALID included: no bounds are checked. */
static inline const base_dtype_info *base_dtype_of(base_dtype t) {
  return &base_dtype_table[t];
}
/* Of one element in host memory, where types of fewer than 8 bits fill a byte. */
static inline size_t base_dtype_bytes(base_dtype t) {
  return base_dtype_table[t].bytes;
}
static inline bool base_dtype_is_float(base_dtype t) {
  return base_dtype_table[t].kind == BASE_KIND_FLOAT;
}
static inline bool base_dtype_is_complex(base_dtype t) {
  return base_dtype_table[t].kind == BASE_KIND_COMPLEX;
}
static inline bool base_dtype_is_signed(base_dtype t) {
  return base_dtype_table[t].kind == BASE_KIND_SINT;
}
static inline bool base_dtype_is_unsigned(base_dtype t) {
  return base_dtype_table[t].kind == BASE_KIND_UINT;
}
/* pred is not an integer. */
static inline bool base_dtype_is_integer(base_dtype t) {
  return base_dtype_is_signed(t) || base_dtype_is_unsigned(t);
}

/* The type named by the n bytes at s, or BASE_DTYPE_INVALID. */
base_dtype base_dtype_from_text(const char *s, size_t n);
/* The same of MLIR's word: "i32", "ui8", "f8E4M3FN". Not of "si1" and "complex<f32>", which are not words of
 * StableHLO's types. */
base_dtype base_dtype_from_mlir(const char *s, size_t n);
/* c64 -> f32, c128 -> f64; others are themselves. */
base_dtype base_dtype_real_part(base_dtype t);
/* Whether a float type has an infinity, a NaN, a negative zero (f8e4m3fn has none of the first, fnuz none of the last).
 */
bool base_float_has_inf(base_dtype t);
bool base_float_has_nan(base_dtype t);
bool base_float_has_negative_zero(base_dtype t);
bool base_float_is_signed(base_dtype t); /* f8e8m0fnu is not */

/* One element of a float type narrower than f64, as raw bits in the low end, to its exact value and back. Rounding is
 * to nearest even; overflow gives infinity where the type has one, else NaN where it has one, else the largest finite
 * value (f4, f6), as ml_dtypes and XLA do; f4 and f6 make NaN a zero of the other sign. f8e8m0fnu rounds halves up, has
 * NaN for zero, negative and too large numbers, and rounds what is below 2^-126 up, but to 2^-127 if at most that.
 * base_float_from_f32 rounds once from f32, base_float_from_f64 once from f64 (XLA:CPU and ml_dtypes go from f64 to
 * f16, bf16 and f8e8m0fnu by way of f32, and XLA:CPU from s64 to bf16 too: they round twice, we don't). */
double base_float_to_f64(base_dtype t, uint32_t bits);
float base_float_to_f32(base_dtype t, uint32_t bits);
uint32_t base_float_from_f32(base_dtype t, float v);
uint32_t base_float_from_f64(base_dtype t, double v);

/* n elements of type `from` at src to type `to` at dst, with XLA's Convert semantics: float to integer truncates and
 * saturates, NaN gives 0; integer to integer wraps; anything to pred is v != 0; real to complex gets a zero imaginary
 * part; complex to real drops it, but to pred it counts. src and dst may be unaligned but not overlap, unless from ==
 * to. */
void base_convert(base_dtype to, void *dst, base_dtype from, const void *src, size_t n);

/* Any element as f64 or i64 (value conversion, not bits), and back; for slow paths, tests and printers. */
double base_load_f64(base_dtype t, const void *p);
int64_t base_load_i64(base_dtype t, const void *p);
void base_store_f64(base_dtype t, void *p, double v);
void base_store_i64(base_dtype t, void *p, int64_t v);

#endif
