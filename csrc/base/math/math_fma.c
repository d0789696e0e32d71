/* Twins with fused multiply-add of functions of f32 that are called, not inlined; the plain ones are in math.c. */
#include "math.h"
#if defined(__x86_64__)
#include "../isa/isa_avx2_begin.h"
#endif
float math_erfc_f32_fma(float x) {
  return math_erfc_inline_f32_fma(x);
}
float math_cosh_f32_fma(float x) {
  return math_cosh_inline_f32_fma(x);
}
#if defined(__x86_64__)
#include "../isa/isa_end.h"
#endif
