/* f32 to f16 by the processor's own instruction, to the bits that base_narrow_encode gives: it differs from that in the
 * payloads of NaNs alone. */
#include "convert_half.h"

#include <string.h>

#include "narrow_float.h"

#if defined(__x86_64__)
#include <immintrin.h>

static const base_narrow half_facts = {10, 15, 15, 0x7BFF, 0x7C00, 0x7E00, true, true};

static uint16_t half_of(float v) {
  return (uint16_t)base_narrow_encode(half_facts, v);
}

__attribute__((target("avx2,f16c"))) static void narrow_half(void *restrict dst, const void *restrict src, size_t n) {
  const char *from = src;
  char *to = dst;
  for (; n >= 8; n -= 8, from += 32, to += 16) {
    __m256 v = _mm256_loadu_ps((const float *)(const void *)from);
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)to, h);
    unsigned nans = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    for (; nans; nans &= nans - 1) {
      float one;
      unsigned i = (unsigned)__builtin_ctz(nans);
      memcpy(&one, from + 4 * i, sizeof one);
      uint16_t bits = half_of(one);
      memcpy(to + 2 * i, &bits, sizeof bits);
    }
  }
  for (; n; n--, from += 4, to += 2) {
    float one;
    memcpy(&one, from, sizeof one);
    uint16_t bits = half_of(one);
    memcpy(to, &bits, sizeof bits);
  }
}

base_loop base_narrow_half(void) {
  /* Not base_isa_best: this is asked while programs run, when others may change the environment; the bits are the same.
   */
  return __builtin_cpu_supports("avx2") ? narrow_half : NULL; /* F16C came before AVX2 */
}
#else
base_loop base_narrow_half(void) {
  return NULL;
}
#endif
