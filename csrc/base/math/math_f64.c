/* Elementary functions of f64 within 1 ulp where libm promises only 2: on pairs of f64, from one expm1 good to 2^-66.
 */
#include "math.h"
#include "math_dd.h"

#define LN2_HI 0x1.62e42fefa38p-1 /* 43 bits: times an exponent it is exact */
#define LN2_MID 0x1.ef35793c7673p-45
#define LN2_LO 0x1.f97b57a079a19p-103

/* e^x = 2^k (1 + result), |x| <= 1100. For |x| < 0.35, k is 0 and the result is expm1(x) with full relative precision.
 */
static math_dd exp_core(math_dd x, int *k) {
  double n = __builtin_fabs(x.hi) < 0.35 ? 0 : __builtin_rint(x.hi * MATH_INV_LN2);
  math_dd r = math_dd_sum(x.hi - n * LN2_HI, -n * LN2_MID);
  r = math_dd_fast(r.hi, r.lo + (x.lo - n * LN2_LO));
  math_dd s = math_dd_scale(r, 0x1p-4); /* then squared four times */
  double x1 = s.hi, tail = 1.0 / 362880;
  static const double inverse[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};
  for (int i = 7; i-- > 0;) tail = tail * x1 + inverse[i];
  math_dd p = math_dd_fast(s.hi, s.lo + x1 * (x1 * tail) + x1 * s.lo);
  for (int i = 0; i < 4; i++) p = math_dd_add(math_dd_scale(p, 2), math_dd_mul(p, p));
  *k = (int)n;
  return p;
}

static math_dd expm1_dd(math_dd x) {
  int k;
  math_dd p = exp_core(x, &k);
  if (k == 0) return p;
  double scale = __builtin_ldexp(1, k);
  return math_dd_add(math_dd_sum(scale, -1), math_dd_scale(p, scale));
}

/* e^x / 2^k in (1/2, 2). */
static math_dd exp_dd(math_dd x, int *k) {
  return math_dd_add_f64(exp_core(x, k), 1);
}

/* log(1 + u) with full relative precision, u > -1: a Newton step from libm's value. */
static math_dd log1p_dd(math_dd u) {
  double y = log1p(u.hi);
  math_dd e = expm1_dd((math_dd){y, 0}), d = math_dd_add(u, (math_dd){-e.hi, -e.lo});
  return math_dd_fast(y, d.hi / (1 + u.hi));
}

/* log(x) for x well above 1. */
static math_dd log_dd(double x) {
  int k;
  double y = log(x);
  math_dd e = exp_dd((math_dd){-y, 0}, &k);
  e = math_dd_add_f64(math_dd_mul(e, (math_dd){__builtin_ldexp(x, k), 0}), -1);
  return math_dd_fast(y, e.hi + e.lo);
}

double math_sinh_f64(double x) {
  double a = __builtin_fabs(x), r;
  if (!(a >= 0x1p-27)) return x;
  if (a > 40) {
    if (a > 711) return x * INFINITY;
    int k;
    math_dd e = exp_dd((math_dd){a, 0}, &k);
    r = __builtin_ldexp(e.hi, k - 1);
  } else {
    math_dd e = expm1_dd((math_dd){a, 0});
    math_dd s = math_dd_add(e, math_dd_div(e, math_dd_add_f64(e, 1)));
    r = 0.5 * s.hi;
  }
  return __builtin_copysign(r, x);
}

double math_cosh_f64(double x) {
  double a = __builtin_fabs(x);
  int k;
  if (a != a || a > 711) return a * INFINITY;
  math_dd e = exp_dd((math_dd){a, 0}, &k);
  if (a > 40) return __builtin_ldexp(e.hi, k - 1);
  e = math_dd_scale(e, __builtin_ldexp(1, k));
  return 0.5 * math_dd_add(e, math_dd_div((math_dd){1, 0}, e)).hi;
}

double math_asinh_f64(double x) {
  double a = __builtin_fabs(x);
  if (!(a >= 0x1p-27) || a == INFINITY) return x;
  math_dd r;
  if (a > 0x1p30) {
    math_dd ln2 = {LN2_HI, LN2_MID};
    r = math_dd_add(log_dd(a), ln2);
  } else { /* log1p(a + a^2 / (1 + sqrt(a^2 + 1))) */
    math_dd square = math_dd_product(a, a), root = math_dd_sqrt(math_dd_add_f64(square, 1));
    r = log1p_dd(math_dd_add_f64(math_dd_div(square, math_dd_add_f64(root, 1)), a));
  }
  return __builtin_copysign(r.hi, x);
}

double math_acosh_f64(double x) {
  if (!(x >= 1)) return NAN;
  if (x == INFINITY) return x;
  if (x > 0x1p30) return math_dd_add(log_dd(x), (math_dd){LN2_HI, LN2_MID}).hi;
  math_dd t = {x - 1, 0};                                             /* exact */
  math_dd root = math_dd_sqrt(math_dd_mul(t, math_dd_add_f64(t, 2))); /* log1p(t + sqrt(t (t + 2))) */
  return log1p_dd(math_dd_add(t, root)).hi;
}

double math_atanh_f64(double x) {
  double a = __builtin_fabs(x);
  if (!(a >= 0x1p-27)) return x;
  if (a >= 1) return a == 1 ? x * INFINITY : NAN;
  math_dd u = math_dd_div((math_dd){2 * a, 0}, math_dd_sum(1, -a));
  return __builtin_copysign(0.5 * log1p_dd(u).hi, x);
}

double math_cbrt_f64(double x) {
  if (x == 0 || x - x != 0) return x;
  int e;
  double m = __builtin_frexp(x, &e);
  int third = e >= 0 ? e / 3 : -((2 - e) / 3);
  m = __builtin_ldexp(m, e - 3 * third); /* in [1/2, 4) */
  double r = cbrt(m);
  math_dd cube = math_dd_mul(math_dd_product(r, r), (math_dd){r, 0});
  r += ((m - cube.hi) - cube.lo) / (3 * r * r);
  return __builtin_ldexp(r, third);
}

double math_rsqrt_f64(double x) {
  if (!(x > 0) || x == INFINITY) return 1 / __builtin_sqrt(x);
  int e;
  double m = __builtin_frexp(x, &e);
  if (e & 1) m *= 2, e--;
  double r = 1 / __builtin_sqrt(m);
  math_dd t = math_dd_mul(math_dd_product(r, r), (math_dd){m, 0}); /* 1 + 2 error */
  r -= 0.5 * r * ((t.hi - 1) + t.lo);
  return __builtin_ldexp(r, -e / 2);
}

/* --- erf --- */

/* erf(c), its low part, and erf'(c) at c = i / 16. */
static const double erf_table[97][3] = {
#include "math_erf.def"
};

/* erf(c + h) = erf(c) + erf'(c) sum_n q_n h^n, where q_1 = 1, q_2 = -c and (n+1) q_n+1 = -2 (c q_n + (n-1)/n q_n-1). */
static double erf_near(double a) {
  int i = (int)(a * 16 + 0.5);
  double c = i * (1.0 / 16), h = a - c, before = 1, q = -c, power = h * h, sum = h + q * power;
  for (int n = 2; n < 11; n++) {
    double next = -2 * (c * q + (n - 1) * before / n) / (n + 1);
    before = q;
    q = next;
    power *= h;
    sum += q * power;
  }
  return erf_table[i][0] + (erf_table[i][1] + erf_table[i][2] * sum);
}

double math_erf_f64(double x) {
  double a = __builtin_fabs(x);
  if (a != a || a == 0) return x;
  if (a >= 6) return __builtin_copysign(1, x);
  if (a >= 0.5) return __builtin_copysign(erf_near(a), x);
  /* 2/sqrt(pi) (x - x^3/3 + x^5/10 - ...): the first term as a pair, the rest is small beside it. */
  double z = x * x, p = 0;
  static const double inverse[] = {-1.0 / 3,       1.0 / 10,       -1.0 / 42,       1.0 / 216,
                                   -1.0 / 1320,    1.0 / 9360,     -1.0 / 75600,    1.0 / 685440,
                                   -1.0 / 6894720, 1.0 / 76204800, -1.0 / 918086400};
  for (int n = 11; n-- > 0;) p = p * z + inverse[n];
  double c = 0x1.20dd750429b6dp+0, c_lo = 0x1.1ae3a914fed8p-56;
  if (a < 0x1p-300) return x * c + x * c_lo;
  math_dd first = math_dd_product(x, c);
  return first.hi + (first.lo + (x * c_lo + first.hi * (p * z)));
}
