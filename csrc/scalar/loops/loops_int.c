/* The elementwise loops of integers and preds. Types narrower than a byte run as s8 and u8, and scalar_loop_run cuts
 * results to their width. For the plain instruction set, and again for wider ones. */
#ifndef LOOPS_SUFFIX
#define LOOPS_SUFFIX(name) name
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include "../../base/math/math_int.h"
#include "loops.h"

/* Zero- and sign-extension of an element of BITS bits, for expressions that look at the whole number:
 * shifts, division, comparison. T is the loop's type, U and S the unsigned and signed types of its size, W
 * the unsigned type in which products can't overflow as signed ints would. */
#define ZEXT(x) ((U)((U)(x) << (8 * sizeof(T) - (size_t)BITS)) >> (8 * sizeof(T) - (size_t)BITS))
#define SEXT(x) ((S)(U)((U)(x) << (8 * sizeof(T) - (size_t)BITS)) >> (8 * sizeof(T) - (size_t)BITS))

#include "../../ir/ops_columns.h"
#undef ON_INT
#undef ON_SINT
#define ON_INT(...) , (__VA_ARGS__)
#define ON_SINT(...) , (__VA_ARGS__)

/* s8, and s2 and s4 by way of it. */
#define T int8_t
#define U uint8_t
#define S int8_t
#define W uint32_t
#define LOOP(code) LOOPS_SUFFIX(s8_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_s8)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S

#define T int16_t
#define U uint16_t
#define S int16_t
#define LOOP(code) LOOPS_SUFFIX(s16_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_s16)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S

#define T int32_t
#define U uint32_t
#define S int32_t
#define LOOP(code) LOOPS_SUFFIX(s32_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_s32)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S
#undef W

#define T int64_t
#define U uint64_t
#define S int64_t
#define W uint64_t
#define LOOP(code) LOOPS_SUFFIX(s64_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_s64)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S
#undef W

/* From here on unsigned types: the column of signed ones is out, that of unsigned ones in. What ON_INT says is of the
 * bits alone: unsigned numbers take the loops of the signed ones. */
#undef ON_INT
#undef ON_SINT
#undef ON_UINT
#define ON_INT(...) , (__VA_ARGS__), shared
#define ON_SINT(...)
#define ON_UINT(...) , (__VA_ARGS__)

/* u8, and u2 and u4 by way of it. */
#define T uint8_t
#define U uint8_t
#define S int8_t
#define W uint32_t
#define LOOP(code) LOOPS_SUFFIX(u8_##code)
#define LOOP_TWIN(code) LOOPS_SUFFIX(s8_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_u8)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S

#define T uint16_t
#define U uint16_t
#define S int16_t
#define LOOP(code) LOOPS_SUFFIX(u16_##code)
#define LOOP_TWIN(code) LOOPS_SUFFIX(s16_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_u16)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S

#define T uint32_t
#define U uint32_t
#define S int32_t
#define LOOP(code) LOOPS_SUFFIX(u32_##code)
#define LOOP_TWIN(code) LOOPS_SUFFIX(s32_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_u32)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S
#undef W

#define T uint64_t
#define U uint64_t
#define S int64_t
#define W uint64_t
#define LOOP(code) LOOPS_SUFFIX(u64_##code)
#define LOOP_TWIN(code) LOOPS_SUFFIX(s64_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_u64)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"
#undef U
#undef S
#undef W

#undef ON_INT
#undef ON_UINT
/* Preds have a column of their own, with their own meaning: add is `or`, not is `!x`. */
#undef ON_PRED
#define ON_INT(...)
#define ON_UINT(...)
#define ON_PRED(...) , (__VA_ARGS__)

#define T uint8_t
#define LOOP(code) LOOPS_SUFFIX(pred_##code)
#define LOOPS LOOPS_SUFFIX(scalar_loops_pred)
#define LOOP_RESULT(expr) (T) expr
#include "loops_gen.h"

#undef ZEXT
#undef SEXT
#undef LOOPS_SUFFIX
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
