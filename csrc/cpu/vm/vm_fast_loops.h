/* No include guard: loops over lanes of which some operands are one number, and loops of two ops at once, for one type.
 * The includer defines T and FAST(name), a function's name; the pragmas around keep what the interpreter's loops keep:
 * nothing is contracted or reordered. */
#include "vm_fast_rows.h"
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
#define FAST_DO(name, code, side, expr)     \
  MATH_INLINE T FAST(do_##name)(T x, T y) { \
    return expr;                            \
  }
SCALAR_LINKS(FAST_DO)

/* Two links: t = first(x, y), then second(t, z). Y and Z say which operands are lanes (1) or one number (0). */
#define FAST_THREE(name, Y, Z, first, then)                             \
  static void FAST(name)(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], *b = in[1], *c = in[2], one_y = *b, one_z = *c; \
    T *r = out;                                                         \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                        \
      T x = a[i], y = Y ? b[i] : one_y, z = Z ? c[i] : one_z;           \
      r[i] = FAST(do_##then)(FAST(do_##first)(x, y), z);                \
    }                                                                   \
  }
#define FAST_KINDS(first, then)                      \
  FAST_THREE(first##_##then##_ss, 0, 0, first, then) \
  FAST_THREE(first##_##then##_sv, 0, 1, first, then) \
  FAST_THREE(first##_##then##_vs, 1, 0, first, then) \
  FAST_THREE(first##_##then##_vv, 1, 1, first, then)
#define FAST_FIRST(name, code, side, expr) SCALAR_LINK_NAMES(FAST_KINDS, name)
SCALAR_LINKS(FAST_FIRST)

#define FAST_NAMES(first, then)                                                   \
  [SCALAR_LINK_##then] = {{FAST(first##_##then##_ss), FAST(first##_##then##_sv)}, \
                          {FAST(first##_##then##_vs), FAST(first##_##then##_vv)}},
#define FAST_ROW(name, code, side, expr) [SCALAR_LINK_##name] = {SCALAR_LINK_NAMES(FAST_NAMES, name)},
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

#undef FAST_HAS_MAXIMUM_right
#undef FAST_HAS_MINIMUM_right
#undef FAST_HAS_MAXIMUM_left
#undef FAST_HAS_MINIMUM_left
#undef FAST_THREE
#undef FAST_KINDS
#undef FAST_DO
#undef FAST_FIRST
#undef FAST_NAMES
#undef FAST_ROW
#undef FAST
#undef T
