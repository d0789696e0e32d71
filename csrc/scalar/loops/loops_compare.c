/* The loops of compare: a function for each direction and type, and for the total order of floats. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math")
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include "../../base/math/math.h"
#include "../links.h"
#include "loops.h"

#if defined(__clang__)
#define COMPARE_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define COMPARE_LANES _Pragma("GCC ivdep")
#endif

/* The result is a pred: bytes 0 and 1. */
#define COMPARE_LOOP(name, T, test)                                                        \
  static void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) {    \
    const T *in_x = in[0], *in_y = in[1];                                                  \
    uint8_t *r = out;                                                                      \
    const unsigned bits = l->bits; /* which r might be, for all that the compiler knows */ \
    (void)bits;                                                                            \
    COMPARE_LANES for (int64_t i = 0; i < n; i++) {                                        \
      T x = in_x[i], y = in_y[i];                                                          \
      r[i] = (test);                                                                       \
    }                                                                                      \
  }
/* A comparison with NaN is false but for NE, as IEEE 754 and HLO have it. */
#define COMPARE_PLAIN(name, code, operator, suffix, T) COMPARE_LOOP(compare_##name##_##suffix, T, x operator y)
#define COMPARE_LOOPS(suffix, T) SCALAR_COMPARISONS(COMPARE_PLAIN, suffix, T)
/* In the order of scalar_direction. */
#define COMPARE_NAME(name, code, operator, suffix) [SCALAR_##code] = compare_##name##_##suffix,
#define COMPARE_NAMES(suffix) {SCALAR_COMPARISONS(COMPARE_NAME, suffix)}

COMPARE_LOOPS(f32, float)
COMPARE_LOOPS(f64, double)
COMPARE_LOOPS(s8, int8_t)
COMPARE_LOOPS(s16, int16_t)
COMPARE_LOOPS(s32, int32_t)
COMPARE_LOOPS(s64, int64_t)
COMPARE_LOOPS(u8, uint8_t)
COMPARE_LOOPS(u16, uint16_t)
COMPARE_LOOPS(u32, uint32_t)
COMPARE_LOOPS(u64, uint64_t)
COMPARE_LOOP(compare_eq_c64, math_c64, (x.re == y.re) & (x.im == y.im))
COMPARE_LOOP(compare_ne_c64, math_c64, (x.re != y.re) | (x.im != y.im))
COMPARE_LOOP(compare_eq_c128, math_c128, (x.re == y.re) & (x.im == y.im))
COMPARE_LOOP(compare_ne_c128, math_c128, (x.re != y.re) | (x.im != y.im))

/* A float's bits as a signed integer in total order: -NaN, -inf, ..., -0, 0, ..., NaN. The sign stands at the top of
 * the `bits` low ones, and a negative number's other bits count backwards. */
#define TOTAL_KEY(T, U, MAX, v) \
  ((T)((U)(v) << (8 * sizeof(T) - bits)) ^ (((T)((U)(v) << (8 * sizeof(T) - bits)) >> (8 * sizeof(T) - 1)) & MAX))
/* MAX is the type's largest value: all bits but the sign. */
#define TOTAL_LOOP(name, code, operator, suffix, T, U, MAX) \
  COMPARE_LOOP(compare_##name##_##suffix, T, TOTAL_KEY(T, U, MAX, x) operator TOTAL_KEY(T, U, MAX, y))
#define TOTAL_LOOPS(suffix, T, U, MAX) SCALAR_COMPARISONS(TOTAL_LOOP, suffix, T, U, MAX)
TOTAL_LOOPS(total8, int8_t, uint8_t, INT8_MAX)
TOTAL_LOOPS(total16, int16_t, uint16_t, INT16_MAX)
TOTAL_LOOPS(total32, int32_t, uint32_t, INT32_MAX)
TOTAL_LOOPS(total64, int64_t, uint64_t, INT64_MAX)

/* By log2 of the size, then direction. */
static scalar_loop_fn *const compare_signed[4][6] = {COMPARE_NAMES(s8), COMPARE_NAMES(s16), COMPARE_NAMES(s32),
                                                     COMPARE_NAMES(s64)};
static scalar_loop_fn *const compare_unsigned[4][6] = {COMPARE_NAMES(u8), COMPARE_NAMES(u16), COMPARE_NAMES(u32),
                                                       COMPARE_NAMES(u64)};
static scalar_loop_fn *const compare_total[4][6] = {COMPARE_NAMES(total8), COMPARE_NAMES(total16),
                                                    COMPARE_NAMES(total32), COMPARE_NAMES(total64)};
static scalar_loop_fn *const compare_float[2][6] = {COMPARE_NAMES(f32), COMPARE_NAMES(f64)};
static scalar_loop_fn *const compare_complex[2][2] = {{compare_eq_c64, compare_ne_c64},
                                                      {compare_eq_c128, compare_ne_c128}};

/* f8e8m0fnu has no sign, so its total order is that of its bits. Complex numbers have EQ and NE only. */
scalar_loop_fn *scalar_compare_loop(base_dtype t, scalar_direction d, bool total) {
  assert(d < SCALAR_DIRECTIONS && base_dtype_bytes(t) <= 16);
  int size = __builtin_ctz((unsigned)base_dtype_bytes(t) | 16);
  switch ((base_dtype_kind)base_dtype_of(t)->kind) {
    case BASE_KIND_SINT:
      return compare_signed[size][d];
    case BASE_KIND_PRED:
    case BASE_KIND_UINT:
      return compare_unsigned[size][d];
    case BASE_KIND_COMPLEX:
      return d <= SCALAR_NE ? compare_complex[t == XLAC_C128][d] : NULL;
    case BASE_KIND_FLOAT:
      break;
    case BASE_KIND_NONE:
      return NULL;
  }
  if (!total) return compare_float[t == XLAC_F64][d];
  return base_float_is_signed(t) ? compare_total[size][d] : compare_unsigned[size][d];
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
