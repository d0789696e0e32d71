/* loops_int.c for CPUs with AVX-512. Elsewhere empty tables, which nobody asks. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx512
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#endif
#include "loops_int.c"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
#include "loops.h"
interp_loop_table interp_loops_s8_avx512 = {NULL}, interp_loops_s16_avx512 = {NULL}, interp_loops_s32_avx512 = {NULL},
                  interp_loops_s64_avx512 = {NULL}, interp_loops_u8_avx512 = {NULL}, interp_loops_u16_avx512 = {NULL},
                  interp_loops_u32_avx512 = {NULL}, interp_loops_u64_avx512 = {NULL}, interp_loops_pred_avx512 = {NULL};
#endif
