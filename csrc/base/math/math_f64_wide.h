/* No include guard: elementary functions of f64 without branches or calls, so that loops over them vectorise. The
 * includer defines MD(name), a function's name, and MD_REST(a, b, p), what the product a * b has beyond p, its rounded
 * value: one fused instruction or several plain ones; it is exact, so the bits are the same. Nothing else is fused.
 * Values that need more than 53 bits are pairs. Errors are below 0.6 units in the last place, of subnormal results 1.
 * Pure functions in round-to-nearest mode. */

/* e^v = 2^k (h + l), h the rounded sum, for |v| <= 750. */
typedef struct MD(exp_parts) {
  double h, l;
  uint64_t k;
} MD(exp_parts);
MATH_INLINE MD(exp_parts) MD(exp_reduced)(double v) {
  double t = v * MATH_INV_LN2 + MATH_ROUND_F64, n = t - MATH_ROUND_F64;
  double whole = v - n * 0x1.62e42fefa38p-1, part = n * 0x1.ef35793c7673p-45; /* 43 bits of ln 2: exact */
  double r = whole - part, low = (whole - r) - part, q = 0x1.1f9c43688f7a8p-29;
  q = q * r + 0x1.af6cd31e0ff3cp-26;
  q = q * r + 0x1.27e4c0867b379p-22;
  q = q * r + 0x1.71ddef902bab6p-19;
  q = q * r + 0x1.a01a01b38a6edp-16;
  q = q * r + 0x1.a01a01b3bbce3p-13;
  q = q * r + 0x1.6c16c16c138f0p-10;
  q = q * r + 0x1.111111110ebb8p-7;
  q = q * r + 0x1.555555555555dp-5;
  q = q * r + 0x1.555555555555cp-3;
  q = q * r + 0.5;
  double one = 1 + r, rest = (r * r) * q + (((1 - one) + r) + low), h = one + rest;
  return (MD(exp_parts)){h, (one - h) + rest, base_f64_bits(t) - 0x4338000000000000};
}
/* v 2^k with one rounding, k in -1100..1100. */
MATH_INLINE double MD(scaled)(double v, uint64_t k) {
  uint64_t half = ((k + 4096) >> 1) - 2048;
  return v * base_f64_of((half + 1023) << 52) * base_f64_of((k - half + 1023) << 52);
}
MATH_INLINE double MD(exp)(double x) {
  MD(exp_parts) e = MD(exp_reduced)(math_bound(x, -750, 710));
  return MD(scaled)(e.h, e.k);
}

/* log of x 2^exponent, x normal, and of 1 + more, which is next to nothing: with x as 2^k (1 + f), by the odd series of
 * log((1 + s) / (1 - s)): f - s (f - 2 s^3 ...). */
MATH_INLINE double MD(log_parts)(double x, double exponent, double more) {
  uint64_t t = base_f64_bits(x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  double k = base_f64_of((t >> 52 & 0xFFF) | 0x4330000000000000) - (0x1p52 + 1023) + exponent;
  double f = base_f64_of((t & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD) - 1;
  double s = f / (2 + f), z = s * s, half = 0.5 * f * f, p = 0x1.0f7492dec8bb5p-3;
  p = p * z + 0x1.0f5adc4d5d740p-3;
  p = p * z + 0x1.3b20c16f70b3fp-3;
  p = p * z + 0x1.745cddb5330f0p-3;
  p = p * z + 0x1.c71c725a9a8d0p-3;
  p = p * z + 0x1.2492492429dfdp-2;
  p = p * z + 0x1.9999999999e11p-2;
  p = p * z + 0x1.5555555555555p-1;
  double big = k * 0x1.62e42fefa38p-1, h = big + f, l = (big - h) + f;
  return h + (l + (k * 0x1.ef35793c7673p-45 - (half - s * (half + p * z)) + more));
}
MATH_INLINE double MD(log)(double x) {
  bool small = x < 0x1p-1022;
  double v = MD(log_parts)(small ? x * 0x1p54 : x, small ? -54 : 0, 0);
  v = x > 0 ? v : x == 0 ? -INFINITY : NAN;
  return x == INFINITY ? x : v;
}

/* (n + nl) / (d + dl). */
MATH_INLINE double MD(quotient)(double n, double nl, double d, double dl) {
  double inverse = 1 / d, q = n * inverse, p = q * d, rest = ((n - p) - MD_REST(q, d, p)) + (nl - q * dl);
  return q + rest * inverse;
}
/* (1 - z) / (1 + z), z = e^-2|x|. Near 0 an odd polynomial. */
MATH_INLINE double MD(tanh)(double x) {
  double a = __builtin_fabs(x), square = x * x, p = 0x1.1f9fa5d7a2b60p-14;
  MD(exp_parts) e = MD(exp_reduced)(math_bound(-2 * a, -50, 0));
  double s = base_f64_of((e.k + 1023) << 52), z = s * e.h, low = s * e.l, n = 1 - z, d = 1 + z;
  double far = MD(quotient)(n, ((1 - n) - z) - low, d, ((1 - d) + z) + low);
  p = p * square - 0x1.e08a51bdca90dp-13;
  p = p * square + 0x1.344459825c2f4p-11;
  p = p * square - 0x1.7d91939589c3ap-10;
  p = p * square + 0x1.d6d312f34fbc1p-9;
  p = p * square - 0x1.226e32d4fc52cp-7;
  p = p * square + 0x1.664f487800cd5p-6;
  p = p * square - 0x1.ba1ba1ba016cep-5;
  p = p * square + 0x1.1111111111014p-3;
  p = p * square - 0x1.5555555555555p-2;
  double near = a + a * (square * p);
  return __builtin_copysign(a < 0.4 ? near : far, x);
}
/* 1 / (1 + z) or z / (1 + z), z = e^-|x|. */
MATH_INLINE double MD(logistic)(double x) {
  MD(exp_parts) e = MD(exp_reduced)(math_bound(-__builtin_fabs(x), -750, 0));
  double z = MD(scaled)(e.h, e.k), low = MD(scaled)(e.l, e.k), d = 1 + z;
  double v = MD(quotient)(x < 0 ? z : 1, x < 0 ? low : 0, d, ((1 - d) + z) + low);
  return x < -42 ? z : v; /* there the 1 of 1 + z is all that counts */
}
