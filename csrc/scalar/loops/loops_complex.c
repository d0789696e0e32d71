/* The elementwise loops of complex numbers.
 *
 * Plain instructions only: struct arithmetic does not gain from wider ones. Expressions are those of the
 * ON_COMPLEX column, calls of base/math. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include "../../base/math/math.h"
#include "loops.h"

#include "../../ir/ops_columns.h"
#undef ON_COMPLEX
#define ON_COMPLEX(...) , (__VA_ARGS__)

/* A pair of floats, as in an array of c64. */
#define T math_c64
#define LOOP(code) c64_##code
#define LOOPS scalar_loops_c64
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"

/* A pair of doubles. */
#define T math_c128
#define LOOP(code) c128_##code
#define LOOPS scalar_loops_c128
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"
