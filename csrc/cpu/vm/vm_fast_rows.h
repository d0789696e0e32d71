/* No include guard: loops of lanes with one number, for the rows of ops.def that have two operands and an expression
 * for the type T, but for elementary functions. The includer defines FAST(name), a function's name, includes this,
 * redefines the columns that it wants as `, (expression)`, and includes ops.def twice: with FAST_SOME as FAST_LOOPS for
 * the loops, and as FAST_ENTRY for their table by scalar_code. What has loops of its own, FAST(ADD_right) say, has
 * FAST_HAS_ADD_right defined as `0,`. With FAST_END this undefines it all. */
#if !defined(FAST_END)
#if defined(__clang__)
#define FAST_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define FAST_LANES _Pragma("GCC ivdep")
#endif
#define FAST_SKIP(...)
/* A row's columns are `, (expression)` where it has one for the type, and `, 0, 0` where it is a function. */
#define FAST_PICK(code, arity, expr, a, b, choice, ...) choice
#define FAST_OP(...) FAST_PICK(__VA_ARGS__, FAST_SKIP, FAST_SKIP, FAST_BY_ARITY, FAST_SKIP, )(__VA_ARGS__)
#define FAST_BY_ARITY(code, arity, expr) FAST_ARITY_##arity(code, expr)
#define FAST_ARITY_1(code, expr)
#define FAST_ARITY_2(code, expr) FAST_SOME(code, expr)
#define FAST_ARITY_3(code, expr)
#define OP(code, text, arity, columns) FAST_OP(code, arity columns)
#include "../../ir/ops_columns.h"
#undef COST
#define COST(kind) FAST_COST_##kind
#define FAST_COST_FUNCTION , 0, 0
#define FAST_COST_MOVE
#define FAST_COST_SLOW

/* The number is read once, before the loop: a result may lie over it. _right: it is y; _left: it is x. */
#define FAST_RIGHT(code, expr)                                                  \
  static void FAST(code##_right)(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], y = *(const T *)in[1];                                  \
    T *r = out;                                                                 \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                                \
      T x = a[i];                                                               \
      r[i] = (T)expr;                                                           \
    }                                                                           \
  }
#define FAST_LEFT(code, expr)                                                  \
  static void FAST(code##_left)(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], x = *(const T *)in[1];                                 \
    T *r = out;                                                                \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                               \
      T y = a[i];                                                              \
      r[i] = (T)expr;                                                          \
    }                                                                          \
  }
#define FAST_SECOND_(a, b, ...) b
#define FAST_SECOND(...) FAST_SECOND_(__VA_ARGS__)
#define FAST_LOOPS(code, expr)                                             \
  FAST_SECOND(FAST_HAS_##code##_right FAST_SKIP, FAST_RIGHT, )(code, expr) \
      FAST_SECOND(FAST_HAS_##code##_left FAST_SKIP, FAST_LEFT, )(code, expr)
#define FAST_ENTRY(code, expr) [SCALAR_##code] = {FAST(code##_right), FAST(code##_left)},
#else
#include "../../ir/ops_columns.h"
#undef OP
#undef FAST_LANES
#undef FAST_SKIP
#undef FAST_PICK
#undef FAST_OP
#undef FAST_BY_ARITY
#undef FAST_ARITY_1
#undef FAST_ARITY_2
#undef FAST_ARITY_3
#undef FAST_COST_FUNCTION
#undef FAST_COST_MOVE
#undef FAST_COST_SLOW
#undef FAST_RIGHT
#undef FAST_LEFT
#undef FAST_SECOND
#undef FAST_SECOND_
#undef FAST_LOOPS
#undef FAST_ENTRY
#endif
