/* The loops of vm_fast_loops.h, vm_loose_math.h, vm_fast_loops_int.h and vm_fold_loops.h for CPUs with AVX2: each
 * is included once for every element type. */
#include "../../base/math/math.h"
#include "vm_fast.h"
#include "vm_fold.h"

#if defined(__x86_64__)
#include "../../base/isa/isa_avx2_begin.h"

#define T float
#define FAST(name) vm_fast_f32_avx2_##name
#include "vm_fast_loops.h"

#define T double
#define FAST(name) vm_fast_f64_avx2_##name
#include "vm_fast_loops.h"

#define LOOSE(name) vm_loose_avx2_##name
#define LOOSE_TABLE_F32 vm_loose_one_f32_avx2
#define LOOSE_TABLE_F64 vm_loose_one_f64_avx2
#include "vm_loose_math.h"

#define FAST(name) vm_fast_int_avx2_##name
#include "vm_fast_loops_int.h"

#define T float
#define S int32_t
#define INF 0x7F800000
#define FOLD_WIDTH 32
#define FOLD(name) vm_fold_f32_avx2_##name
#define FOLD_TABLE vm_fold_f32_avx2
#include "vm_fold_loops.h"

#define T double
#define S int64_t
#define INF 0x7FF0000000000000
#define FOLD_WIDTH 32
#define FOLD(name) vm_fold_f64_avx2_##name
#define FOLD_TABLE vm_fold_f64_avx2
#include "vm_fold_loops.h"

#include "../../base/isa/isa_end.h"
#endif
