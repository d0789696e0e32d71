/* loops_int.c for CPUs with AVX-512. Elsewhere empty tables, which nobody asks.
 *
 * As loops_int_avx2.c does it. */
#if defined(__x86_64__)
#define LOOPS_SUFFIX(name) name##_avx512
#include "../../base/isa/isa_avx512_begin.h"
#include "loops_int.c"
#include "../../base/isa/isa_end.h"
#else
#include "loops.h"
scalar_loop_table scalar_loops_s8_avx512 = {NULL}, scalar_loops_s16_avx512 = {NULL}, scalar_loops_s32_avx512 = {NULL},
                  scalar_loops_s64_avx512 = {NULL}, scalar_loops_u8_avx512 = {NULL}, scalar_loops_u16_avx512 = {NULL},
                  scalar_loops_u32_avx512 = {NULL}, scalar_loops_u64_avx512 = {NULL}, scalar_loops_pred_avx512 = {NULL};
#endif
