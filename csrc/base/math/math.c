/* Functions of f64 and of complex numbers that libm lacks, or whose accuracy there is not enough. The same bits on
 * every libc where it matters: what libm gives is only a start, corrected on pairs of f64, or a value that all of
 * them round alike.
 *
 * Elementary functions of f64 are within 1 ulp where libm promises only 2; complex ones follow C99's branch cuts;
 * special functions (gamma and its kin, the inverse of erf, a Bessel function) use series and asymptotic expansions
 * from the NIST Digital Library of Mathematical Functions, each where it converges to the last few bits. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* lgamma_r */
#endif
#include "math.h"
#include "math_dd.h"

/* libm multiplies and adds with one rounding where the CPU has no instruction for it; written out at each place that
 * would be 4 KB. */
float math_erfc_f32(float x) {
  return math_erfc_inline_f32_fma(x);
}
float math_cosh_f32(float x) {
  return math_cosh_inline_f32_fma(x);
}

#define MATH_REST(a, b, p) math_dd_rest(a, b, p)
#include "math_called.h"

/* Large arguments need more of pi than there is in f64's pairs. */
double math_sin_f64(double x) {
  return __builtin_fabs(x) < 0x1p20 ? math_turned_f64(x, 0) : sin(x);
}
double math_cos_f64(double x) {
  return __builtin_fabs(x) < 0x1p20 ? math_turned_f64(x, 1) : cos(x);
}

#include "math_c128.h"

/* --- special functions --- */
#define SPECIAL_PI 0x1.921fb54442d18p+1

/* libm's erfc is within 1 ulp. */
double math_erfc_f64(double x) {
  return erfc(x);
}

/* lgamma_r: lgamma writes a global variable. */
double math_lgamma_f64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/* --- digamma --- */

#define DIGAMMA_ROOT 0x1.762d86356be3fp+0
#define DIGAMMA_ROOT_LO 0x1.b86a722197829p-54

/* Taylor's series about the positive root, where log(x) and the rest cancel: psi^(k)(root) / k!. */
static double digamma_near_root(double x) {
  static const double c[] = {
      0x1.ef72bc8ee38acp-1,  -0x1.c563b54aa1a35p-2,  0x1.08b4294d50381p-2,  -0x1.4fc1317257da8p-3,
      0x1.b9a5b6370f3abp-4,  -0x1.27baba261cc2cp-4,  0x1.8fce02b239ca7p-5,  -0x1.0fa7ec36a7d8fp-5,
      0x1.723d6807edcc0p-6,  -0x1.f970508e1b6a2p-7,  0x1.5955caaa962f3p-7,  -0x1.d828079282eb8p-8,
      0x1.42e1acf81d8dcp-8,  -0x1.b9afc7cee8a14p-9,  0x1.2e23345f79aafp-9,  -0x1.9d626f71d1f7ap-10,
      0x1.1acebbd761089p-10, -0x1.82f6345c65b35p-11, 0x1.08bdae1a261d4p-11, -0x1.6a3fddea11304p-12,
      0x1.efacab6fb8985p-13, -0x1.531f5dc5eb563p-13, 0x1.d0080f810fab5p-14, -0x1.3d7972688af67p-14,
      0x1.b2691182c5c34p-15};
  double d = (x - DIGAMMA_ROOT) - DIGAMMA_ROOT_LO, sum = 0;
  for (size_t k = sizeof c / sizeof *c; k-- > 0;) sum = (sum + c[k]) * d;
  return sum;
}

/* x > 0. Upwards by psi(x) = psi(x + 1) - 1/x until the asymptotic series is good, at 12. */
static double digamma_positive(double x) {
  static const double bernoulli[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  double shift = 0, tail = 0;
  if (x > 1.2 && x < 1.75) return digamma_near_root(x);
  for (; x < 12; x += 1) shift += 1 / x;
  double z = 1 / (x * x);
  for (int k = 8; k-- > 0;) tail = (tail + bernoulli[k]) * z;
  return (log(x) - 0.5 / x) - tail - shift;
}

/* Below 0 by reflection; at 0, -1, -2, ... there are poles. */
double math_digamma_f64(double x) {
  if (x != x || x == INFINITY) return x;
  if (x > 0) return digamma_positive(x);
  if (x == floor(x)) return NAN;
  double centred = x - rint(x); /* exact, also next to zero; of the reflection's cotangent, whose period is 1 */
  return digamma_positive(1 - x) - SPECIAL_PI / tan(SPECIAL_PI * centred);
}

/* --- Hurwitz's zeta --- */

/* sum of (q + k)^-x over k >= 0, q > 0, x > 1: a few terms, then Euler and Maclaurin's formula. */
static double zeta_positive(double x, double q) {
  /* B_2k / (2k)! */
  static const double c[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15,
                             -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26,  -0x1.22805d644267fp-31,
                             0x1.d6db2c4e09162p-37,  -0x1.7da4e1f79955cp-42, 0x1.355871d652e9ep-47,
                             -0x1.f57d968caacf1p-53, 0x1.967e1f09c376fp-58,  -0x1.497d9033a2b5cp-63};
  double sum = 0, first = pow(q, -x);
  if (q == INFINITY) return 0;
  if (first == INFINITY) return first;
  for (; q < 12 + x; q += 1) { /* the formula wants q over x; the sum ends sooner where x is large */
    double term = pow(q, -x);
    sum += term;
    if (term <= sum * 0x1p-60) return sum; /* zero too: with x large no number of steps gets q there */
  }
  double power = pow(q, -x), rising = x, tail = 0;
  sum += power * q / (x - 1) + 0.5 * power;
  power /= q;
  for (int k = 0; k < 12; k++) { /* rising = x (x + 1) ... (x + 2k) */
    double term = c[k] * rising * power;
    tail += term;
    if (!(fabs(term) > fabs(sum) * 0x1p-56)) break;
    rising *= (x + 2 * k + 1) * (x + 2 * k + 2);
    power /= q * q;
  }
  return sum + tail;
}

/* As the Cephes function that JAX's zeta is: NaN below x = 1, infinite at it. */
double math_zeta_f64(double x, double q) {
  if (x != x || q != q || x < 1) return NAN;
  if (x == 1) return INFINITY;
  if (q > 0) return x == INFINITY ? (q > 1 ? 0 : q == 1 ? 1 : INFINITY) : zeta_positive(x, q);
  bool even = fmod(x, 2) == 0;
  if (q == floor(q)) return even ? INFINITY : NAN; /* a pole, whose sides agree when x is even */
  if (x != floor(x)) return NAN;
  /* The terms below zero are, but for their sign, those of zeta(1 - part) without zeta(1 - q)'s. */
  double part = q - floor(q), below = zeta_positive(x, 1 - part) - zeta_positive(x, 1 - q);
  return zeta_positive(x, part) + (even ? below : -below);
}

/* (-1)^(n+1) n! zeta(n + 1, x); n! beyond 170 only by its logarithm. */
double math_polygamma_f64(double n, double x) {
  if (n != n || n < 0 || n != floor(n)) return NAN;
  if (n == 0) return math_digamma_f64(x);
  double zeta = math_zeta_f64(n + 1, x), size;
  if (n <= 170) {
    size = tgamma(n + 1) * zeta;
    if (zeta == 0 || !(fabs(size) < INFINITY))
      size = exp(math_lgamma_f64(n + 1) + log(fabs(zeta))) * (zeta < 0 ? -1 : 1);
  } else {
    size = exp(math_lgamma_f64(n + 1) + log(fabs(zeta))) * (zeta < 0 ? -1 : 1);
  }
  return fmod(n, 2) == 0 ? -size : size;
}

/* --- the inverse of erf --- */

/* A first guess good to some 2%, from the tail's leading behaviour. */
static double erf_inv_guess(double x, double rest) {
  double a = 0.147, l = log(rest * (1 + x)), b = 2 / (SPECIAL_PI * a) + l / 2;
  return sqrt(sqrt(b * b - l / a) - b);
}

/* Halley's steps on erf, or on erfc where erf is near 1. */
double math_erf_inv_f64(double x) {
  double a = fabs(x), rest = 1 - a;
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
  if (a < 0x1p-30) return x * 0x1.c5bf891b4ef6bp-1; /* sqrt(pi) / 2 */
  double z = erf_inv_guess(a, rest);
  for (int i = 0; i < 4; i++) { /* Halley's steps: the error is cubed */
    double off = a < 0.5 ? math_erf_f64(z) - a : rest - erfc(z);
    double step = off / (0x1.20dd750429b6dp+0 * exp(-z * z)); /* erf' = 2 / sqrt(pi) e^(-z^2) */
    z -= step / (1 + z * step);
    if (fabs(step) <= fabs(z) * 0x1p-50) break;
  }
  return copysign(z, x);
}

/* --- Bessel --- */

/* e^-|x| I1(x): the power series, all of whose terms have one sign, and far out the asymptotic one. */
double math_bessel_i1e_f64(double x) {
  double a = fabs(x), sum = 1, term = 1;
  if (x != x) return x;
  if (a < 25) {
    double z = a * a / 4;
    for (int k = 1; k < 80 && term > sum * 0x1p-56; k++) sum += term *= z / ((double)k * (k + 1));
    return x / 2 * sum * exp(-a);
  }
  for (int k = 1; k < 40 && fabs(term) > 0x1p-57; k++) {
    double odd = 2 * k - 1;
    sum += term *= (odd * odd - 4) / (8 * k * a);
  }
  return copysign(sum / sqrt(2 * SPECIAL_PI * a), x);
}
