/* loops_float.c's f32 for CPUs with AVX-512; f64 gains nothing from it. Elsewhere an empty table, which nobody asks. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx512
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#endif
#define LOOPS_ONLY_F32
#include "loops_float.c"
#undef LOOPS_ONLY_F32
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
#include "loops.h"
interp_loop_table interp_loops_f32_avx512 = {NULL};
#endif
