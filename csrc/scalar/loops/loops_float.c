/* The elementwise loops of f32 and f64, for the plain instruction set and again (loops_float_avx2.c,
 * loops_float_avx512.c, with LOOPS_FUSED) for wider ones. The bits are the same: nothing is contracted or reordered. */
#ifndef LOOPS_SUFFIX
#define LOOPS_SUFFIX(name) name
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma STDC FP_CONTRACT OFF
#endif

#include "../../base/math/math.h"
#include "loops.h"

#include "../../ir/ops_columns.h"
#undef ON_FLOAT
#define ON_FLOAT(...) , (__VA_ARGS__)

/* CPUs with AVX2 have fused multiply-add, with which the functions of base/math give the same bits in less time:
 * MATH_FUSED(exp) is math_exp or math_exp_fma. */
#ifdef LOOPS_FUSED
#undef MATH_FUSED
#define MATH_FUSED(name) math_##name##_fma
#endif

/* f32, and all narrower floats by way of it. */
#define T float
#define LOOP(code) LOOPS_SUFFIX(f32_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_f32)
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"
#include "loops_turn.h"

#define T double
#define LOOP(code) LOOPS_SUFFIX(f64_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_f64)
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"

#ifdef LOOPS_FUSED
#undef MATH_FUSED
#define MATH_FUSED(name) math_##name
#endif
#undef LOOPS_SUFFIX
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
