/* The loops of vm_fast_loops.h, vm_loose_math.h, vm_fast_loops_int.h and vm_fold_loops.h for CPUs with AVX-512:
 * the same inclusions as in vm_fast_avx2.c, which the two files must keep in step. */
#include "../../base/math/math.h"
#include "vm_fast.h"
#include "vm_fold.h"

#if defined(__x86_64__)
#include "../../base/isa/isa_avx512_begin.h"

#define T float
#define FAST(name) vm_fast_f32_avx512_##name
#include "vm_fast_loops.h"

#define T double
#define FAST(name) vm_fast_f64_avx512_##name
#include "vm_fast_loops.h"

#define T float
#define FAST(name) vm_loose_f32_avx512_##name
#define FAST_LOOSE(a, b, c) __builtin_fmaf(a, b, c)
#define FAST_TINY 0x1p-126f
#define FAST_HUGE 0x1.fffffep127f
#include "vm_fast_loops.h"

#define T double
#define FAST(name) vm_loose_f64_avx512_##name
#define FAST_LOOSE(a, b, c) __builtin_fma(a, b, c)
#define FAST_TINY 0x1p-1022
#define FAST_HUGE 0x1.fffffffffffffp1023
#include "vm_fast_loops.h"

#define LOOSE(name) vm_loose_avx512_##name
#define LOOSE_TABLE_F32 vm_loose_one_f32_avx512
#define LOOSE_TABLE_F64 vm_loose_one_f64_avx512
#include "vm_loose_math.h"

#define FAST(name) vm_fast_int_avx512_##name
#include "vm_fast_loops_int.h"

#define T float
#define S int32_t
#define INF 0x7F800000
#define FOLD_WIDTH 64
#define FOLD_FMA __builtin_fmaf
#define FOLD(name) vm_fold_f32_avx512_##name
#define FOLD_TABLE vm_fold_f32_avx512
#include "vm_fold_loops.h"

#define T double
#define S int64_t
#define INF 0x7FF0000000000000
#define FOLD_WIDTH 64
#define FOLD_FMA __builtin_fma
#define FOLD(name) vm_fold_f64_avx512_##name
#define FOLD_TABLE vm_fold_f64_avx512
#include "vm_fold_loops.h"

#include "../../base/isa/isa_end.h"
#endif
