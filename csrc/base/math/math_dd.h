/* Pairs of f64 whose sum is the value, hi the rounded sum: some 100 bits, for the functions of math.c that libm
 * gives only to 2 ulp. Pure functions. Compiled without contraction (-ffp-contract=off), as all of xlac is. */
#ifndef XLAC_BASE_MATH_MATH_DD_H
#define XLAC_BASE_MATH_MATH_DD_H

typedef struct math_dd {
  double hi, lo;
} math_dd;

/* a + b exactly, for |a| >= |b| or a == 0. */
static inline math_dd math_dd_fast(double a, double b) {
  double s = a + b;
  return (math_dd){s, b - (s - a)};
}
/* a + b exactly. */
static inline math_dd math_dd_sum(double a, double b) {
  double s = a + b, t = s - a;
  return (math_dd){s, (a - (s - t)) + (b - t)};
}
/* What a * b has beyond p, its rounded value, exactly: for factors and products away from overflow and underflow. */
static inline double math_dd_rest(double a, double b, double p) {
#ifdef __FP_FAST_FMA
  return __builtin_fma(a, b, -p);
#else
  double ta = a * 134217729.0, tb = b * 134217729.0; /* 2^27 + 1 splits 53 bits into 26 and 27 */
  double ah = ta - (ta - a), al = a - ah, bh = tb - (tb - b), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}
/* a * b exactly, likewise. */
static inline math_dd math_dd_product(double a, double b) {
  double p = a * b;
  return (math_dd){p, math_dd_rest(a, b, p)};
}
static inline math_dd math_dd_add(math_dd a, math_dd b) {
  math_dd s = math_dd_sum(a.hi, b.hi), t = math_dd_sum(a.lo, b.lo);
  s = math_dd_fast(s.hi, s.lo + t.hi);
  return math_dd_fast(s.hi, s.lo + t.lo);
}
static inline math_dd math_dd_add_f64(math_dd a, double b) {
  math_dd s = math_dd_sum(a.hi, b);
  return math_dd_fast(s.hi, s.lo + a.lo);
}
static inline math_dd math_dd_mul(math_dd a, math_dd b) {
  math_dd p = math_dd_product(a.hi, b.hi);
  return math_dd_fast(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
static inline math_dd math_dd_div(math_dd a, math_dd b) {
  double q = a.hi / b.hi;
  math_dd p = math_dd_mul((math_dd){q, 0}, b);
  double r = ((a.hi - p.hi) - p.lo) + a.lo;
  return math_dd_fast(q, r / b.hi);
}
static inline math_dd math_dd_sqrt(math_dd a) {
  double s = __builtin_sqrt(a.hi);
  if (!(s > 0)) return (math_dd){s, 0};
  math_dd p = math_dd_product(s, s);
  return math_dd_fast(s, (((a.hi - p.hi) - p.lo) + a.lo) / (2 * s));
}
/* Exact scaling by a power of two. */
static inline math_dd math_dd_scale(math_dd a, double power) {
  return (math_dd){a.hi * power, a.lo * power};
}

#endif
