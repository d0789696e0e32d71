/* The loops of vm_fast_loops.h and vm_fast_loops_int.h for CPUs with AVX2. */
#include "../base/math.h"
#include "vm_fast.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma STDC FP_CONTRACT OFF
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2")
#endif

#define T float
#define FAST(name) vm_fast_f32_avx2_##name
#include "vm_fast_loops.h"

#define T double
#define FAST(name) vm_fast_f64_avx2_##name
#include "vm_fast_loops.h"

#define FAST(name) vm_fast_int_avx2_##name
#include "vm_fast_loops_int.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
