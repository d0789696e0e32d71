/* The loops of vm_fast_loops.h, vm_fast_loops_int.h and vm_fold_loops.h for CPUs with AVX-512. */
#include "../base/math.h"
#include "vm_fast.h"
#include "vm_fold.h"

#if defined(__x86_64__)
#include "../base/isa_avx512_begin.h"

#define T float
#define FAST(name) vm_fast_f32_avx512_##name
#include "vm_fast_loops.h"

#define T double
#define FAST(name) vm_fast_f64_avx512_##name
#include "vm_fast_loops.h"

#define FAST(name) vm_fast_int_avx512_##name
#include "vm_fast_loops_int.h"

#define T float
#define U uint32_t
#define INF 0x7F800000
#define FOLD(name) vm_fold_f32_avx512_##name
#define FOLD_TABLE vm_fold_f32_avx512
#include "vm_fold_loops.h"

#define T double
#define U uint64_t
#define INF 0x7FF0000000000000
#define FOLD(name) vm_fold_f64_avx512_##name
#define FOLD_TABLE vm_fold_f64_avx512
#include "vm_fold_loops.h"

#include "../base/isa_end.h"
#endif
