/* No include guard: loops over lanes of which some operands are one number, and loops of two ops at once, for one type.
 * The includer defines T and FAST(name), a function's name; the pragmas around keep what the interpreter's loops keep:
 * nothing is contracted or reordered. For fast numerics it defines FAST_LOOSE(a, b, c) too, a * b + c rounded once, and
 * FAST_TINY and FAST_HUGE, the smallest and largest normal numbers. */
#include "vm_fast_rows.h"
#if defined(FAST_LOOSE)
/* By the reciprocal, where that is a normal number: then infinities, zeros and NaN are those of the division. */
static void FAST(DIVIDE_right)(int64_t n, const void *const *in, void *out) {
  const T *a = in[0], y = *(const T *)in[1], by = 1 / y;
  T *r = out, size = by < 0 ? -by : by;
  if (!(size >= FAST_TINY && size <= FAST_HUGE)) {
    FAST_LANES for (int64_t i = 0; i < n; i++) r[i] = a[i] / y;
    return;
  }
  FAST_LANES for (int64_t i = 0; i < n; i++) r[i] = a[i] * by;
}
#define FAST_HAS_DIVIDE_right 0,
#endif
/* math_max and math_min of lanes with one number: by a single comparison, which takes x where that is NaN, and of
 * zeros the one that wins. NaN as the number is compared with nothing. Three loops, of which the number chooses
 * one before the first lane. */
#define FAST_EXTREME(name, expr, WORSE, WORSE_EQ, ZERO)                 \
  static void FAST(name)(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], y = *(const T *)in[1];                          \
    T *r = out;                                                         \
    if (y != y) {                                                       \
      FAST_LANES for (int64_t i = 0; i < n; i++) {                      \
        T x = a[i];                                                     \
        r[i] = expr;                                                    \
      }                                                                 \
    } else if (y == 0 && 1 / y ZERO 0) {                                \
      FAST_LANES for (int64_t i = 0; i < n; i++) {                      \
        T x = a[i];                                                     \
        r[i] = x WORSE y ? y : x;                                       \
      }                                                                 \
    } else {                                                            \
      FAST_LANES for (int64_t i = 0; i < n; i++) {                      \
        T x = a[i];                                                     \
        r[i] = x WORSE_EQ y ? y : x;                                    \
      }                                                                 \
    }                                                                   \
  }
FAST_EXTREME(MAXIMUM_right, math_max(x, y), <, <=, <)
FAST_EXTREME(MINIMUM_right, math_min(x, y), >, >=, >)
FAST_EXTREME(MAXIMUM_left, math_max(y, x), <, <=, <)
FAST_EXTREME(MINIMUM_left, math_min(y, x), >, >=, >)
#undef FAST_EXTREME
#define FAST_HAS_MAXIMUM_right 0,
#define FAST_HAS_MINIMUM_right 0,
#define FAST_HAS_MAXIMUM_left 0,
#define FAST_HAS_MINIMUM_left 0,

/* All others: by the expressions of ops.def. */
#undef ON_FLOAT
#define ON_FLOAT(...) , (__VA_ARGS__)
#define FAST_SOME FAST_LOOPS
#include "../../ir/ops.def"
#undef FAST_SOME

/* Two ops: t = first(x, y), then second(t, z). Y and Z say which operands are lanes (1) or one number (0). */
#define FAST_THREE(name, Y, Z, first, second)                            \
  static void FAST(name)(int64_t n, const void *const *in, void *out) {  \
    const T *a = in[0], *b = in[1], *c = in[2], one_y = *b, one_z = *c;  \
    T *r = out;                                                          \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                         \
      T x = a[i], y = Y ? b[i] : one_y, z = Z ? c[i] : one_z, t = first; \
      r[i] = second;                                                     \
    }                                                                    \
  }
#define FAST_KINDS(name, first, second)      \
  FAST_THREE(name##_ss, 0, 0, first, second) \
  FAST_THREE(name##_sv, 0, 1, first, second) \
  FAST_THREE(name##_vs, 1, 0, first, second) \
  FAST_THREE(name##_vv, 1, 1, first, second)
/* The first op with each second one. */
#define FAST_SECONDS(name, first)           \
  FAST_KINDS(name##_add, first, t + z)      \
  FAST_KINDS(name##_multiply, first, t *z)  \
  FAST_KINDS(name##_subtract, first, t - z) \
  FAST_KINDS(name##_from, first, z - t)
FAST_SECONDS(add, x + y)
#if defined(FAST_LOOSE)
FAST_KINDS(multiply_add, x, FAST_LOOSE(t, y, z))
FAST_KINDS(multiply_multiply, x *y, t *z)
FAST_KINDS(multiply_subtract, x, FAST_LOOSE(t, y, -z))
FAST_KINDS(multiply_from, x, FAST_LOOSE(-t, y, z))
#else
FAST_SECONDS(multiply, x *y)
#endif
FAST_SECONDS(subtract, x - y)
FAST_SECONDS(from, y - x)

#define FAST_NAMES(name)                  \
  {                                       \
    {FAST(name##_ss), FAST(name##_sv)}, { \
      FAST(name##_vs), FAST(name##_vv)    \
    }                                     \
  }
#define FAST_ROW(name) \
  {FAST_NAMES(name##_add), FAST_NAMES(name##_multiply), FAST_NAMES(name##_subtract), FAST_NAMES(name##_from)}
#define FAST_SOME FAST_ENTRY
const vm_fast_table FAST(table) = {.two =
                                       {
#include "../../ir/ops.def"
                                       },
                                   .three = {FAST_ROW(add), FAST_ROW(multiply), FAST_ROW(subtract), FAST_ROW(from)}};
#undef FAST_SOME
#define FAST_END
#include "vm_fast_rows.h"
#undef FAST_END

#undef FAST_HAS_DIVIDE_right
#undef FAST_HAS_MAXIMUM_right
#undef FAST_HAS_MINIMUM_right
#undef FAST_HAS_MAXIMUM_left
#undef FAST_HAS_MINIMUM_left
#undef FAST_THREE
#undef FAST_KINDS
#undef FAST_SECONDS
#undef FAST_NAMES
#undef FAST_ROW
#undef FAST_LOOSE
#undef FAST_TINY
#undef FAST_HUGE
#undef FAST
#undef T
