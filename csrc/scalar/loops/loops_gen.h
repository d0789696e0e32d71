/* No include guard: makes the loops of one element type from the columns of ops.def.
 * The includer defines LOOPS (the table's name), LOOP(code) (a function's name), T, and redefines the ON_ columns it
 * wants as
 * `, (expression)`; for integers U, W, S too. A column may be `, (expression), shared`: its functions are those of
 * another type, LOOP_TWIN(code). All but the columns are undefined at the end. */

/* A row's columns expand to `code, arity` and, where it has an expression for the type, `, (expression)`, and maybe
 * `, shared`: LOOP_PICK chooses by their number between a loop, another type's loop and nothing. */
#define LOOP_PICK(code, arity, expr, shared, name, ...) name
#define LOOP_ROW(...) LOOP_PICK(__VA_ARGS__, LOOP_SHARED, LOOP_EXPR, LOOP_NONE, )(__VA_ARGS__)
/* An op without an expression for this type: its place in the table stays NULL. */
#define LOOP_NONE(code, arity)
#define LOOP_SHARED(code, arity, expr, shared)

/* x, y and z are the operands' elements in an expression; their arrays are found once. */
#define LOOP_IN_1 const T *in_x = in[0];
#define LOOP_IN_2 LOOP_IN_1 const T *in_y = in[1];
#define LOOP_IN_3 LOOP_IN_2 const T *in_z = in[2];
#define LOOP_X_1 T x = in_x[i];
#define LOOP_X_2 LOOP_X_1 T y = in_y[i];
#define LOOP_X_3 LOOP_X_2 T z = in_z[i];

/* Lanes are independent even where out is an input, which the compiler can't know. */
#if defined(__clang__)
#define LOOP_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP_LANES _Pragma("GCC ivdep")
#endif

/* BITS, in expressions of integers, is the width of the type that runs in this one: 4 for s4. */
#define LOOP_EXPR(code, arity, expr)                                                          \
  static void LOOP(code)(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    LOOP_IN_##arity T *r = out;                                                               \
    const unsigned BITS = l->bits;                                                            \
    (void)BITS;                                                                               \
    LOOP_LANES for (int64_t i = 0; i < n; i++) {                                              \
      LOOP_X_##arity r[i] = LOOP_RESULT(expr);                                                \
    }                                                                                         \
  }
#define OP(code, text, arity, columns) LOOP_ROW(code, arity columns)
#include "../../ir/ops.def"
#undef OP
#undef LOOP_EXPR
#undef LOOP_SHARED

/* The second pass over the table: names of the functions by code. */
#define LOOP_SHARED(code, arity, expr, shared) [SCALAR_##code] = LOOP_TWIN(code),
#define LOOP_EXPR(code, arity, expr) [SCALAR_##code] = LOOP(code),
#define OP(code, text, arity, columns) LOOP_ROW(code, arity columns)
scalar_loop_table LOOPS = {
#include "../../ir/ops.def"
};
#undef OP
#undef LOOP_EXPR
#undef LOOP_SHARED
#undef LOOP_TWIN
#undef LOOP_PICK
#undef LOOP_ROW
#undef LOOP_NONE
#undef LOOP_IN_1
#undef LOOP_IN_2
#undef LOOP_IN_3
#undef LOOP_X_1
#undef LOOP_X_2
#undef LOOP_X_3
#undef LOOP_LANES
#undef LOOPS
#undef LOOP
#undef LOOP_RESULT
#undef T
