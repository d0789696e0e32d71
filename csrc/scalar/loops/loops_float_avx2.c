/* loops_float.c for CPUs with AVX2. Elsewhere empty tables, which nobody asks.
 *
 * Included, not linked: the same text compiled under the target pragmas of isa_avx2_begin.h, with other
 * names. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx2
#define LOOPS_FUSED
#include "../../base/isa/isa_avx2_begin.h"
#include "loops_float.c"
#include "../../base/isa/isa_end.h"
#undef LOOPS_FUSED
#else
#include "loops.h"
scalar_loop_table scalar_loops_f32_avx2 = {NULL}, scalar_loops_f64_avx2 = {NULL};
scalar_loop_fn *const scalar_loops_turn_avx2[3] = {NULL};
#endif
