/* The loops of vm_fast_loops.h and vm_fast_loops_int.h for CPUs with AVX-512. */
#include "../base/math.h"
#include "vm_fast.h"

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

#include "../base/isa_end.h"
#endif
