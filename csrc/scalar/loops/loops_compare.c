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
#define COMPARE_LOOP(name, T, test)                                                                               \
  static __attribute__((noinline)) void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    const T *in_x = in[0], *in_y = in[1];                                                                         \
    uint8_t *r = out;                                                                                             \
    const unsigned bits = l->bits; /* which r might be, for all that the compiler knows */                        \
    (void)bits;                                                                                                   \
    COMPARE_LANES for (int64_t i = 0; i < n; i++) {                                                               \
      T x = in_x[i], y = in_y[i];                                                                                 \
      r[i] = (test);                                                                                              \
    }                                                                                                             \
  }
/* x >= y is y <= x: a call more, and a third fewer loops. */
#define COMPARE_TURNED(name, turned)                                                    \
  static void name(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    turned(l, n, (const void *const[]){in[1], in[0]}, out);                             \
  }
/* A comparison with NaN is false but for NE, as IEEE 754 and HLO have it. x and y are put in by `key`. */
#define COMPARE_EQUALITY(suffix, T, key)                       \
  COMPARE_LOOP(compare_eq_##suffix, T, key(T, x) == key(T, y)) \
  COMPARE_LOOP(compare_ne_##suffix, T, key(T, x) != key(T, y))
#define COMPARE_ORDER(suffix, T, key)                          \
  COMPARE_LOOP(compare_le_##suffix, T, key(T, x) <= key(T, y)) \
  COMPARE_LOOP(compare_lt_##suffix, T, key(T, x) < key(T, y))  \
  COMPARE_TURNED(compare_ge_##suffix, compare_le_##suffix)     \
  COMPARE_TURNED(compare_gt_##suffix, compare_lt_##suffix)
#define COMPARE_SELF(T, v) v
#define COMPARE_LOOPS(suffix, T) COMPARE_EQUALITY(suffix, T, COMPARE_SELF) COMPARE_ORDER(suffix, T, COMPARE_SELF)
/* In the order of scalar_direction; integers are equal where their bits are, with a sign or without. */
#define COMPARE_TABLE(equality, order)                                                                         \
  {[SCALAR_EQ] = compare_eq_##equality, [SCALAR_NE] = compare_ne_##equality, [SCALAR_GE] = compare_ge_##order, \
   [SCALAR_GT] = compare_gt_##order,    [SCALAR_LE] = compare_le_##order,    [SCALAR_LT] = compare_lt_##order}
#define COMPARE_NAMES(suffix) COMPARE_TABLE(suffix, suffix)

COMPARE_LOOPS(f32, float)
COMPARE_LOOPS(f64, double)
COMPARE_LOOPS(s8, int8_t)
COMPARE_LOOPS(s16, int16_t)
COMPARE_LOOPS(s32, int32_t)
COMPARE_LOOPS(s64, int64_t)
COMPARE_ORDER(u8, uint8_t, COMPARE_SELF)
COMPARE_ORDER(u16, uint16_t, COMPARE_SELF)
COMPARE_ORDER(u32, uint32_t, COMPARE_SELF)
COMPARE_ORDER(u64, uint64_t, COMPARE_SELF)
COMPARE_LOOP(compare_eq_c64, math_c64, (x.re == y.re) & (x.im == y.im))
COMPARE_LOOP(compare_ne_c64, math_c64, (x.re != y.re) | (x.im != y.im))
COMPARE_LOOP(compare_eq_c128, math_c128, (x.re == y.re) & (x.im == y.im))
COMPARE_LOOP(compare_ne_c128, math_c128, (x.re != y.re) | (x.im != y.im))

/* A float's bits as a signed integer in total order: -NaN, -inf, ..., -0, 0, ..., NaN. The sign stands at the top of
 * the `bits` low ones, and a negative number's other bits count backwards. */
#define TOTAL_KEY(T, U, MAX, v) \
  ((T)((U)(v) << (8 * sizeof(T) - bits)) ^ (((T)((U)(v) << (8 * sizeof(T) - bits)) >> (8 * sizeof(T) - 1)) & MAX))
/* MAX is the type's largest value: all bits but the sign. */
#define TOTAL_8(T, v) TOTAL_KEY(T, uint8_t, INT8_MAX, v)
#define TOTAL_16(T, v) TOTAL_KEY(T, uint16_t, INT16_MAX, v)
#define TOTAL_32(T, v) TOTAL_KEY(T, uint32_t, INT32_MAX, v)
#define TOTAL_64(T, v) TOTAL_KEY(T, uint64_t, INT64_MAX, v)
#define TOTAL_LOOPS(suffix, T, key) COMPARE_EQUALITY(suffix, T, key) COMPARE_ORDER(suffix, T, key)
TOTAL_LOOPS(total8, int8_t, TOTAL_8)
TOTAL_LOOPS(total16, int16_t, TOTAL_16)
TOTAL_LOOPS(total32, int32_t, TOTAL_32)
TOTAL_LOOPS(total64, int64_t, TOTAL_64)

/* By log2 of the size, then direction. */
static scalar_loop_fn *const compare_signed[4][6] = {COMPARE_NAMES(s8), COMPARE_NAMES(s16), COMPARE_NAMES(s32),
                                                     COMPARE_NAMES(s64)};
static scalar_loop_fn *const compare_unsigned[4][6] = {COMPARE_TABLE(s8, u8), COMPARE_TABLE(s16, u16),
                                                       COMPARE_TABLE(s32, u32), COMPARE_TABLE(s64, u64)};
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
