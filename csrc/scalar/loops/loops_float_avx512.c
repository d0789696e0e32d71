/* loops_float.c for CPUs with AVX-512. Elsewhere empty tables, which nobody asks.
 *
 * As loops_float_avx2.c does it. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx512
#define LOOPS_FUSED
#include "../../base/isa/isa_avx512_begin.h"
#include "loops_float.c"
#include "../../base/isa/isa_end.h"
#undef LOOPS_FUSED
#else
#include "loops.h"
scalar_loop_table scalar_loops_f32_avx512 = {NULL}, scalar_loops_f64_avx512 = {NULL};
scalar_loop_fn *const scalar_loops_turn_avx512[3] = {NULL};
#endif
