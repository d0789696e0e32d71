/* The loops of vm_loose_math.h, vm_fast_loops_int.h and vm_fold_loops.h for CPUs with AVX-512:
 * the inclusions of vm_fast_avx2.c, which the two files must keep in step, but for the loops of one and two float
 * ops, which that file's do for both. */
#include "../../base/math/math.h"
#include "vm_fast.h"
#include "vm_fold.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "../../base/isa/isa_avx512_begin.h"

#define LOOSE(name) vm_loose_avx512_##name
#define LOOSE_TABLE_F32 vm_loose_one_f32_avx512
#define LOOSE_TABLE_F64 vm_loose_one_f64_avx512
#include "vm_loose_math.h"

#define FAST(name) vm_fast_int_avx512_##name
#include "vm_fast_loops_int.h"

/* Which lanes of two vectors a step of FOLD_TOGETHER takes: halves of each, fourths, and of 16 bytes each pairs, then
 * single ones. FOLD_SOME: n numbers, and -0 after them. */
#define FOLD_SOME(n, from) _mm512_mask_loadu_ps(_mm512_set1_ps(-0.0f), (__mmask16)((1u << (n)) - 1), from)
#define T float
#define S int32_t
#define INF 0x7F800000
#define FOLD_WIDTH 64
#define FOLD_HALF_LOW 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define FOLD_HALF_HIGH 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define FOLD_FOURTH_LOW 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define FOLD_FOURTH_HIGH 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#define FOLD_PAIR_LOW 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define FOLD_PAIR_HIGH 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define FOLD_SINGLE_LOW 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define FOLD_SINGLE_HIGH 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define FOLD(name) vm_fold_f32_avx512_##name
#define FOLD_TABLE vm_fold_f32_avx512
#include "vm_fold_loops.h"

#define FOLD_SOME(n, from) _mm512_mask_loadu_pd(_mm512_set1_pd(-0.0), (__mmask8)((1u << (n)) - 1), from)
#define T double
#define S int64_t
#define INF 0x7FF0000000000000
#define FOLD_WIDTH 64
#define FOLD_HALF_LOW 0, 1, 2, 3, 8, 9, 10, 11
#define FOLD_HALF_HIGH 4, 5, 6, 7, 12, 13, 14, 15
#define FOLD_FOURTH_LOW 0, 1, 4, 5, 8, 9, 12, 13
#define FOLD_FOURTH_HIGH 2, 3, 6, 7, 10, 11, 14, 15
#define FOLD_PAIR_LOW 0, 8, 2, 10, 4, 12, 6, 14
#define FOLD_PAIR_HIGH 1, 9, 3, 11, 5, 13, 7, 15
#define FOLD_SINGLE_LOW 0, 8, 2, 10, 4, 12, 6, 14
#define FOLD_SINGLE_HIGH 1, 9, 3, 11, 5, 13, 7, 15
#define FOLD(name) vm_fold_f64_avx512_##name
#define FOLD_TABLE vm_fold_f64_avx512
#include "vm_fold_loops.h"

#include "../../base/isa/isa_end.h"
#endif
