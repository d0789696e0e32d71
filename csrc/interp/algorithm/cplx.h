/* Plain complex arithmetic on pairs of doubles, laid out as c128 elements are.
 *
 * Not C's own complex type: its product and quotient follow Annex G's rules for infinities, by library calls. */
#ifndef XLAC_INTERP_ALGORITHM_CPLX_H
#define XLAC_INTERP_ALGORITHM_CPLX_H

#include <math.h>

typedef struct cplx {
  double re, im;
} cplx;

static inline cplx cplx_of(double re, double im) {
  return (cplx){re, im};
}
static inline cplx cplx_add(cplx a, cplx b) {
  return (cplx){a.re + b.re, a.im + b.im};
}
static inline cplx cplx_sub(cplx a, cplx b) {
  return (cplx){a.re - b.re, a.im - b.im};
}
static inline cplx cplx_mul(cplx a, cplx b) {
  return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline cplx cplx_conj(cplx a) {
  return (cplx){a.re, -a.im};
}
static inline cplx cplx_scale(cplx a, double by) {
  return (cplx){a.re * by, a.im * by};
}

/* Smith's division: no overflow where the quotient has none. */
static inline cplx cplx_div(cplx a, cplx b) {
  if (fabs(b.re) >= fabs(b.im)) {
    double r = b.im / b.re, d = b.re + b.im * r;
    if (b.re == 0) return (cplx){a.re / b.re, a.im / b.re};
    return (cplx){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  double r = b.re / b.im, d = b.re * r + b.im;
  return (cplx){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}

#endif
