/* Complex functions that C99 lacks or leaves open at zero. */
#include "math.h"
#include "math_dd.h"

/* The root h of two squares, neither of which overflows or vanishes, less half the relative error of h^2. That error is
 * summed from differences that are exact (C. F. Borges, "An improved algorithm for hypot(a, b)", 2019). */
static double math_root_of_squares(double big, double small) {
  double h = __builtin_sqrt(big * big + small * small), most, rest;
  if (h <= 2 * small) {
    double d = h - small;
    most = big * (2 * d - big), rest = (d - 2 * (big - small)) * d;
  } else {
    double d = h - big;
    most = 2 * d * (big - 2 * small), rest = (4 * d - small) * small + d * d;
  }
  return h - (most + rest) / (2 * h);
}

double math_hypot(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y), big = a < b ? b : a, small = a < b ? a : b;
  if (!(a < INFINITY && b < INFINITY)) return a == INFINITY || b == INFINITY ? INFINITY : x + y;
  if (small <= big * 0x1p-54) return big + small;
  if (big > 0x1p511) return math_root_of_squares(big * 0x1p-600, small * 0x1p-600) * 0x1p600;
  if (small < 0x1p-459) return math_root_of_squares(big * 0x1p600, small * 0x1p600) * 0x1p-600;
  return math_root_of_squares(big, small);
}

/* e^a (cos b + i sin b) - 1, the real part as expm1(a) cos b - 2 sin^2(b/2) lest 1 cancel. */
math_c128 math_expm1_c128(math_c128 x) {
  double large = exp(x.re), s = sin(0.5 * x.im);
  double im = x.im == 0 ? x.im : large * sin(x.im);
  if (x.im == 0) return (math_c128){expm1(x.re), im};
  if (!(__builtin_fabs(x.re) < 700)) { /* the 1 does not matter, or the special cases are exp's */
    math_c128 e = math_exp_c128(x);
    return (math_c128){e.re - 1, e.im};
  }
  math_dd re = math_dd_sum(expm1(x.re) * cos(x.im), -2 * s * s);
  return (math_c128){re.hi, im};
}

/* log|1 + z| is half of log1p(2a + a^2 + b^2), a sum in which much may cancel near the circle |1 + z| = 1. */
math_c128 math_log1p_c128(math_c128 x) {
  double a = x.re, b = x.im, im = atan2(b, 1 + a);
  if (!(__builtin_fabs(a) < 0x1p400 && __builtin_fabs(b) < 0x1p400)) {
    return math_log_c128((math_c128){1 + a, b});
  }
  math_dd square = math_dd_add(math_dd_product(a, a), math_dd_product(b, b));
  math_dd t = math_dd_add_f64(square, 2 * a);
  if (t.hi < -0.5) return (math_c128){log(math_hypot(1 + a, b)), im};
  return (math_c128){0.5 * log1p(t.hi) + 0.5 * t.lo / (1 + t.hi), im};
}

/* As XLA: 0^0 is 1, 0 to a power of positive real part is 0. A positive real base and a real exponent keep pow's
 * accuracy. */
math_c128 math_pow_c128(math_c128 x, math_c128 y) {
  if (y.re == 0 && y.im == 0) return (math_c128){1, 0};
  if (x.re == 0 && x.im == 0 && y.re > 0) return (math_c128){0, 0};
  if (x.im == 0 && y.im == 0 && x.re > 0) return (math_c128){pow(x.re, y.re), 0};
  return math_from_c99(cpow(math_c99(x), math_c99(y)));
}

/* -i log((x + i y) / sqrt(x^2 + y^2)); for real arguments the real atan2; and where that logarithm's argument is near 1
 * and x well to the right of the cut, the arc tangent of the quotient, which is the same but loses nothing. */
math_c128 math_atan2_c128(math_c128 y, math_c128 x) {
  if (x.im == 0 && y.im == 0) return (math_c128){atan2(y.re, x.re), 0};
  math_c128 quotient = math_div_c128(y, x);
  if (x.re > 0.5 * __builtin_fabs(x.im) && math_hypot(quotient.re, quotient.im) < 0.5) return math_atan_c128(quotient);
  double complex a = math_c99(x), b = math_c99(y);
  math_c128 up = math_from_c99(math_c99((math_c128){x.re - y.im, x.im + y.re}) / csqrt(a * a + b * b));
  math_c128 l = math_log_c128(up);
  return (math_c128){l.im, -l.re};
}
