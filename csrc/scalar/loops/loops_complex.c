/* The elementwise loops of complex numbers.
 *
 * Plain instructions, as struct arithmetic does not gain from wider ones, but for products of c64, which are spelled
 * out. Expressions are those of the ON_COMPLEX column, calls of base/math. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include "../../base/math/math.h"
#include "loops.h"

#include "../../ir/ops_columns.h"
#undef ON_COMPLEX
#define ON_COMPLEX(...) , (__VA_ARGS__)

/* A pair of floats, as in an array of c64. */
#define T math_c64
#define LOOP(code) c64_##code
#define LOOPS scalar_loops_c64
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"

/* A pair of doubles. */
#define T math_c128
#define LOOP(code) c128_##code
#define LOOPS scalar_loops_c128
#define LOOP_RESULT(expr) expr
#include "loops_gen.h"

#if defined(__x86_64__)
#include <immintrin.h>
/* Two numbers at a time: [re * re - im * im, im * re + re * im] in f64, as math_mul has them. */
__attribute__((target("avx2"))) void scalar_products_c64(const scalar_loop *l, int64_t n, const void *const *in,
                                                         void *out) {
  const math_c64 *a = in[0], *b = in[1];
  math_c64 *r = out;
  int64_t i = 0;
  (void)l;
  for (; i + 2 <= n; i += 2) {
    __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(&a[i].re)), y = _mm256_cvtps_pd(_mm_loadu_ps(&b[i].re));
    __m256d p = _mm256_mul_pd(x, _mm256_movedup_pd(y));
    __m256d q = _mm256_mul_pd(_mm256_permute_pd(x, 5), _mm256_permute_pd(y, 15));
    _mm_storeu_ps(&r[i].re, _mm256_cvtpd_ps(_mm256_addsub_pd(p, q)));
  }
  for (; i < n; i++) r[i] = math_mul_c64(a[i], b[i]);
}
#endif
