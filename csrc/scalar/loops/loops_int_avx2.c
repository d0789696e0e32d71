/* loops_int.c for CPUs with AVX2. Elsewhere empty tables, which nobody asks.
 *
 * The same text under the target pragmas of isa_avx2_begin.h, with other names. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx2
#include "../../base/isa/isa_avx2_begin.h"
#include "loops_int.c"
#include "../../base/isa/isa_end.h"
#else
#include "loops.h"
scalar_loop_table scalar_loops_s8_avx2 = {NULL}, scalar_loops_s16_avx2 = {NULL}, scalar_loops_s32_avx2 = {NULL},
                  scalar_loops_s64_avx2 = {NULL}, scalar_loops_u8_avx2 = {NULL}, scalar_loops_u16_avx2 = {NULL},
                  scalar_loops_u32_avx2 = {NULL}, scalar_loops_u64_avx2 = {NULL}, scalar_loops_pred_avx2 = {NULL};
#endif
