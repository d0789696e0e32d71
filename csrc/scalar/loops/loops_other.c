/* The loops that are not an expression over one element type: select, parts of complex numbers, tests and roundings of
 * floats, and conversions. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include "../../base/math/math.h"
#include "loops.h"

#if defined(__clang__)
#define OTHER_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define OTHER_LANES _Pragma("GCC ivdep")
#endif

/* --- select, by element size --- */

/* Both sides are read whatever the pred is, so that the loop becomes a blend of vectors; elements are
 * bytes moved, of whatever type. */
#define SELECT_LOOP(name, T, choice)                                                    \
  static void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    const uint8_t *which = in[0];                                                       \
    const T *a = in[1], *b = in[2];                                                     \
    T *r = out;                                                                         \
    (void)l;                                                                            \
    OTHER_LANES for (int64_t i = 0; i < n; i++) {                                       \
      T x = a[i], y = b[i];                                                             \
      r[i] = choice;                                                                    \
    }                                                                                   \
  }
SELECT_LOOP(select_1, uint8_t, which[i] ? x : y)
SELECT_LOOP(select_2, uint16_t, which[i] ? x : y)
SELECT_LOOP(select_4, uint32_t, which[i] ? x : y)
SELECT_LOOP(select_8, uint64_t, which[i] ? x : y)
/* By masks: a branch for each would be a guess. */
typedef struct other_pair {
  uint64_t low, high;
} other_pair;
static other_pair other_either(bool first, other_pair x, other_pair y) {
  uint64_t all = -(uint64_t)first;
  return (other_pair){(x.low & all) | (y.low & ~all), (x.high & all) | (y.high & ~all)};
}
SELECT_LOOP(select_16, other_pair, other_either(which[i], x, y))

/* bytes is an element's size: a power of two up to 16. */
scalar_loop_fn *scalar_select_loop(size_t bytes) {
  switch (bytes) {
    case 1:
      return select_1;
    case 2:
      return select_2;
    case 4:
      return select_4;
    case 8:
      return select_8;
    default:
      assert(bytes == 16);
      return select_16;
  }
}

/* --- one type in, another out --- */

/* One operand of type T, a result of type R. */
#define PART_LOOP(name, T, R, expr)                                                     \
  static void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    const T *in_x = in[0];                                                              \
    R *r = out;                                                                         \
    (void)l;                                                                            \
    OTHER_LANES for (int64_t i = 0; i < n; i++) {                                       \
      T x = in_x[i];                                                                    \
      r[i] = (expr);                                                                    \
    }                                                                                   \
  }
PART_LOOP(abs_of_c64, math_c64, float, math_abs(x))
PART_LOOP(abs_of_c128, math_c128, double, math_abs(x))
PART_LOOP(real_of_c64, math_c64, float, x.re)
PART_LOOP(real_of_c128, math_c128, double, x.re)
PART_LOOP(imag_of_c64, math_c64, float, x.im)
PART_LOOP(imag_of_c128, math_c128, double, x.im)
PART_LOOP(real_of_f32, float, float, x)
PART_LOOP(real_of_f64, double, double, x)
PART_LOOP(imag_of_f32, float, float, ((void)x, 0))
PART_LOOP(imag_of_f64, double, double, ((void)x, 0))
/* x - x is 0 for finite numbers, NaN for the others. */
PART_LOOP(finite_f32, float, uint8_t, x - x == 0)
PART_LOOP(finite_f64, double, uint8_t, x - x == 0)
PART_LOOP(infinite_f32, float, uint8_t, x == INFINITY || x == -INFINITY)
PART_LOOP(infinite_f64, double, uint8_t, x == INFINITY || x == -INFINITY)
PART_LOOP(plus_infinite_f32, float, uint8_t, x == INFINITY)
PART_LOOP(plus_infinite_f64, double, uint8_t, x == INFINITY)
PART_LOOP(minus_infinite_f32, float, uint8_t, x == -INFINITY)
PART_LOOP(minus_infinite_f64, double, uint8_t, x == -INFINITY)

/* Two arrays of parts, interleaved. */
#define COMPLEX_LOOP(name, T, C)                                                        \
  static void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    const T *re = in[0], *im = in[1];                                                   \
    C *r = out;                                                                         \
    (void)l;                                                                            \
    for (int64_t i = 0; i < n; i++) r[i] = (C){re[i], im[i]};                           \
  }
COMPLEX_LOOP(complex_of_f32, float, math_c64)
COMPLEX_LOOP(complex_of_f64, double, math_c128)

/* XLA's ReducePrecision: the mantissa rounds to nearest even; what then is over the largest exponent is infinite, what
 * is below the smallest normal one is zero; NaN stays, as in XLA's fusions. */
#define REDUCE_LOOP(name, T, U, bits_of, of_bits, MANTISSA, EXPONENT)                                           \
  static T reduced_##name(T x, int exponent_bits, int mantissa_bits) {                                          \
    const U sign_mask = (U)1 << (MANTISSA + EXPONENT), infinity = sign_mask - ((U)1 << MANTISSA);               \
    U b = bits_of(x), sign = b & sign_mask, a = b ^ sign;                                                       \
    if (a > infinity) return x;                                                                                 \
    if (mantissa_bits < MANTISSA) {                                                                             \
      int cut = MANTISSA - mantissa_bits;                                                                       \
      U last = (U)1 << cut;                                                                                     \
      a += (last >> 1) - 1 + (a >> cut & 1);                                                                    \
      a &= ~(last - 1);                                                                                         \
    }                                                                                                           \
    if (exponent_bits < EXPONENT) {                                                                             \
      int bias = (1 << (EXPONENT - 1)) - 1, reduced = (1 << (exponent_bits - 1)) - 1, e = (int)(a >> MANTISSA); \
      a = e > bias + reduced ? infinity : e <= bias - reduced ? 0 : a;                                          \
    }                                                                                                           \
    return of_bits(sign | a);                                                                                   \
  }                                                                                                             \
  PART_LOOP(reduce_precision_##name, T, T, reduced_##name(x, l->exponent_bits, l->mantissa_bits))
/* 23 and 52 mantissa bits, 8 and 11 exponent bits: IEEE 754's binary32 and binary64. */
REDUCE_LOOP(f32, float, uint32_t, base_f32_bits, base_f32_of, 23, 8)
REDUCE_LOOP(f64, double, uint64_t, base_f64_bits, base_f64_of, 52, 11)

/* By type: f32, f64, c64, c128. */
typedef struct part_row {
  uint8_t code;
  scalar_loop_fn *loop[4];
} part_row;
static const part_row part_rows[] = {
    {SCALAR_ABS, {NULL, NULL, abs_of_c64, abs_of_c128}},
    {SCALAR_REAL, {real_of_f32, real_of_f64, real_of_c64, real_of_c128}},
    {SCALAR_IMAG, {imag_of_f32, imag_of_f64, imag_of_c64, imag_of_c128}},
    {SCALAR_COMPLEX, {complex_of_f32, complex_of_f64, NULL, NULL}},
    {SCALAR_IS_FINITE, {finite_f32, finite_f64, NULL, NULL}},
    {SCALAR_IS_INF, {infinite_f32, infinite_f64, NULL, NULL}},
    {SCALAR_IS_POS_INF, {plus_infinite_f32, plus_infinite_f64, NULL, NULL}},
    {SCALAR_IS_NEG_INF, {minus_infinite_f32, minus_infinite_f64, NULL, NULL}},
    {SCALAR_REDUCE_PRECISION, {reduce_precision_f32, reduce_precision_f64, NULL, NULL}},
};

/* NULL for other ops, and for types that an op does not have here. */
scalar_loop_fn *scalar_part_loop(scalar_code code, base_dtype t) {
  int column = t == XLAC_F32 ? 0 : t == XLAC_F64 ? 1 : t == XLAC_C64 ? 2 : t == XLAC_C128 ? 3 : -1;
  for (size_t i = 0; i < sizeof part_rows / sizeof *part_rows; i++) {
    if (part_rows[i].code == code) return column < 0 ? NULL : part_rows[i].loop[column];
  }
  return NULL;
}

/* --- conversions --- */

/* Rounds to nearest even and saturates as base_convert says; copying an array onto itself is nothing. */
void scalar_convert_loop(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  if (out == in[0] && l->out == l->in[0]) return;
  base_convert((base_dtype)l->out, out, (base_dtype)l->in[0], in[0], (size_t)n);
}

/*   v| to an integer: up when the random fraction is below v's own. |v| = 2.3 gives 2 or 3; 3 in three cases of ten. */
static double stochastic_integer(double magnitude, double random) {
  assert(!(magnitude < 0));
  double low = math_floor_f64(magnitude);
  return random < magnitude - low ? low + 1 : low;
}

/* a > 0 to one of its two neighbours in float type t: the upper one when the random fraction is below a's place between
 * them. Bit patterns are in the order of their values; past the largest comes infinity or NaN, as one more step. */
static uint32_t stochastic_magnitude(base_dtype t, double a, double random) {
  uint32_t nearest = base_float_from_f64(t, a);
  double at = base_float_to_f64(t, nearest);
  assert(a > 0);
  if (at == a || (nearest == 0 && at > a)) return nearest; /* f8e8m0fnu has no zero below its least */
  uint32_t low = at <= a ? nearest : nearest - 1;
  double from = base_float_to_f64(t, low), to = base_float_to_f64(t, low + 1);
  if (to <= from) return low; /* the type has neither: conversions to it saturate */
  if (!(to < INFINITY)) to = 2 * from - base_float_to_f64(t, low - 1);
  return random < (a - from) / (to - from) ? low + 1 : low;
}

/* Zeros, infinities and NaN have nothing to choose: they convert as usual. */
static uint32_t stochastic_float(base_dtype t, double v, double random) {
  double a = __builtin_fabs(v);
  if (!(a > 0) || a == INFINITY) return base_float_from_f64(t, v);
  uint32_t bits = stochastic_magnitude(t, a, random);
  return v < 0 ? base_float_from_f64(t, -base_float_to_f64(t, bits)) : bits;
}

/* NaN becomes 0 in integers, as in convert. */
static void stochastic_store(base_dtype to, void *r, double v, double random) {
  base_dtype part = base_dtype_real_part(to);
  memset(r, 0, base_dtype_bytes(to)); /* imaginary parts */
  if (part == XLAC_F64) {
    memcpy(r, &v, sizeof v);
  } else if (base_dtype_is_float(part)) {
    uint32_t bits = stochastic_float(part, v, random);
    memcpy(r, &bits, base_dtype_bytes(part)); /* little-endian, as all that xlac runs on */
  } else {
    v = v != v ? 0 : __builtin_copysign(stochastic_integer(__builtin_fabs(v), random), v);
    base_convert(to, r, XLAC_F64, &v, 1);
  }
}

/* The random operand is a fraction of 2^width. */
void scalar_stochastic_loop(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  base_dtype from = (base_dtype)l->in[0], to = (base_dtype)l->out;
  size_t from_bytes = base_dtype_bytes(from), random_bytes = base_dtype_bytes((base_dtype)l->in[1]);
  double unit = __builtin_ldexp(1, -(int)base_dtype_of((base_dtype)l->in[1])->bits);
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)in[1] + (size_t)i * random_bytes, random_bytes);
    double v = base_load_f64(from, (const char *)in[0] + (size_t)i * from_bytes);
    stochastic_store(to, (char *)out + (size_t)i * base_dtype_bytes(to), v, (double)bits * unit);
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
