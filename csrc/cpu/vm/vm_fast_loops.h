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

/* Each link's expressions as functions, as links are made of two. */
#if defined(FAST_LOOSE)
#define SCALAR_ONCE FAST_LOOSE
#define FAST_DO_ONCE(name, once)                   \
  MATH_INLINE T FAST(once_##name)(T x, T y, T z) { \
    return once;                                   \
  }
#define FAST_AFTER_multiply(then, x, y, z) FAST(once_##then)(x, y, z)
#else
#define FAST_DO_ONCE(name, once)
#define FAST_AFTER_multiply(then, x, y, z) FAST_IN_TURN(multiply, then, x, y, z)
#endif
#define FAST_DO(name, code, side, expr, once) \
  MATH_INLINE T FAST(do_##name)(T x, T y) {   \
    return expr;                              \
  }                                           \
  FAST_DO_ONCE(name, once)
SCALAR_LINKS(FAST_DO)
#define FAST_IN_TURN(first, then, x, y, z) FAST(do_##then)(FAST(do_##first)(x, y), z)
#define FAST_AFTER_add(then, x, y, z) FAST_IN_TURN(add, then, x, y, z)
#define FAST_AFTER_subtract(then, x, y, z) FAST_IN_TURN(subtract, then, x, y, z)
#define FAST_AFTER_from(then, x, y, z) FAST_IN_TURN(from, then, x, y, z)

/* Two links: t = first(x, y), then second(t, z). Y and Z say which operands are lanes (1) or one number (0). */
#define FAST_THREE(name, Y, Z, first, then)                             \
  static void FAST(name)(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], *b = in[1], *c = in[2], one_y = *b, one_z = *c; \
    T *r = out;                                                         \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                        \
      T x = a[i], y = Y ? b[i] : one_y, z = Z ? c[i] : one_z;           \
      r[i] = FAST_AFTER_##first(then, x, y, z);                         \
    }                                                                   \
  }
#define FAST_KINDS(first, then)                      \
  FAST_THREE(first##_##then##_ss, 0, 0, first, then) \
  FAST_THREE(first##_##then##_sv, 0, 1, first, then) \
  FAST_THREE(first##_##then##_vs, 1, 0, first, then) \
  FAST_THREE(first##_##then##_vv, 1, 1, first, then)
#define FAST_FIRST(name, code, side, expr, once) SCALAR_LINK_NAMES(FAST_KINDS, name)
SCALAR_LINKS(FAST_FIRST)

#define FAST_NAMES(first, then)                                                   \
  [SCALAR_LINK_##then] = {{FAST(first##_##then##_ss), FAST(first##_##then##_sv)}, \
                          {FAST(first##_##then##_vs), FAST(first##_##then##_vv)}},
#define FAST_ROW(name, code, side, expr, once) [SCALAR_LINK_##name] = {SCALAR_LINK_NAMES(FAST_NAMES, name)},
#define FAST_SOME FAST_ENTRY
const vm_fast_table FAST(table) = {.two =
                                       {
#include "../../ir/ops.def"
                                       },
                                   .three = {SCALAR_LINKS(FAST_ROW)}};
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
#undef FAST_DO
#undef FAST_DO_ONCE
#undef FAST_IN_TURN
#undef FAST_AFTER_add
#undef FAST_AFTER_multiply
#undef FAST_AFTER_subtract
#undef FAST_AFTER_from
#undef FAST_FIRST
#undef SCALAR_ONCE
#undef FAST_NAMES
#undef FAST_ROW
#undef FAST_LOOSE
#undef FAST_TINY
#undef FAST_HUGE
#undef FAST
#undef T
