/* No include guard: loops over lanes with one number, for one type.
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

#define FAST_SOME FAST_ENTRY
const vm_fast_two FAST(table) = {
#include "../../ir/ops.def"
};
#undef FAST_SOME
#define FAST_END
#include "vm_fast_rows.h"
#undef FAST_END

#undef FAST_HAS_MAXIMUM_right
#undef FAST_HAS_MINIMUM_right
#undef FAST_HAS_MAXIMUM_left
#undef FAST_HAS_MINIMUM_left
#undef FAST
#undef T
