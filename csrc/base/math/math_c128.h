/* No include guard: the functions of complex numbers of two f64, which loops call; math.c has them, behind
 * math_called.h and math_hypot.
 *
 * Each has a short way for ordinary numbers, those of which no square and no exponential leaves f64, by the functions
 * of f64 that are computed in registers; what is left, special values above all, is C99's function. Where a sum may
 * cancel it is one of differences that are exact, or of pairs of f64. Pure functions. */

#define MATH_C99_1(name)                                 \
  static math_c128 math_c99_##name##_c128(math_c128 x) { \
    return math_from_c99(c##name(math_c99(x)));          \
  }
MATH_C99_1(exp)
MATH_C99_1(log)
MATH_C99_1(sqrt)
MATH_C99_1(sinh)
MATH_C99_1(cosh)
MATH_C99_1(tanh)
MATH_C99_1(asin)
MATH_C99_1(acos)
MATH_C99_1(atanh)
#undef MATH_C99_1

math_c128 math_div_c128(math_c128 x, math_c128 y) {
  return math_div_is_tame_c128(x, y) ? math_div_tame_c128(x, y) : math_from_c99(math_c99(x) / math_c99(y));
}

/* Of two infinite parts neither the size nor the direction is known: NaN, as XLA's product of exp and cos gives. */
math_c128 math_exp_c128(math_c128 x) {
  if (math_is_below_c128(x, 700)) return math_exp_tame_c128(x);
  if (__builtin_isinf(x.re) && __builtin_isinf(x.im)) return (math_c128){NAN, NAN};
  return math_c99_exp_c128(x);
}

math_c128 math_log_c128(math_c128 x) {
  math_dd square = math_squares(x.re, x.im);
  return math_log_is_tame_c128(x, square) ? math_log_tame_c128(x, square) : math_c99_log_c128(x);
}

math_c128 math_log1p_c128(math_c128 x) {
  double a = x.re, b = x.im;
  if (!(__builtin_fabs(a) < 0x1p400 && __builtin_fabs(b) < 0x1p400)) return math_log_c128((math_c128){1 + a, b});
  math_dd t = math_log1p_square_c128(x);
  if (t.hi < -0.5) return (math_c128){log(math_hypot(1 + a, b)), atan2(b, 1 + a)};
  return math_log1p_tame_c128(x, t);
}

math_c128 math_sqrt_c128(math_c128 x) {
  return math_sqrt_is_tame_c128(x) ? math_sqrt_tame_c128(x) : math_c99_sqrt_c128(x);
}

math_c128 math_sinh_c128(math_c128 x) {
  return math_is_below_c128(x, 700) ? math_sinh_tame_c128(x) : math_c99_sinh_c128(x);
}
math_c128 math_cosh_c128(math_c128 x) {
  return math_is_below_c128(x, 700) ? math_cosh_tame_c128(x) : math_c99_cosh_c128(x);
}
math_c128 math_tanh_c128(math_c128 x) {
  return math_is_below_c128(x, 300) ? math_tanh_tame_c128(x) : math_c99_tanh_c128(x);
}

math_c128 math_expm1_c128(math_c128 x) {
  if (!math_is_below_c128(x, 700)) { /* the 1 does not matter, or the special cases are exp's */
    math_c128 e = math_exp_c128(x);
    return (math_c128){x.im == 0 ? expm1(x.re) : e.re - 1, x.im == 0 ? x.im : e.im};
  }
  return math_expm1_tame_c128(x);
}

/* As XLA: 0^0 is 1, 0 to a power of positive real part is 0. A positive real base and a real exponent keep pow's
 * accuracy. */
math_c128 math_pow_c128(math_c128 x, math_c128 y) {
  if (y.re == 0 && y.im == 0) return (math_c128){1, 0};
  if (x.re == 0 && x.im == 0 && y.re > 0) return (math_c128){0, 0};
  if (x.im == 0 && y.im == 0 && x.re > 0) return (math_c128){pow(x.re, y.re), 0};
  math_c128 p = math_mul_c128(y, math_log_c128(x));
  if (p.re - p.re == 0 && p.im - p.im == 0) return math_exp_c128(p);
  return math_from_c99(cpow(math_c99(x), math_c99(y)));
}
/* Likewise in f64 for less than that, where what the angle is off by, 2^-44, does not show in an f32 for exponents of
 * some thousands. */
math_c64 math_pow_c64(math_c64 x, math_c64 y) {
  double size = math_size_c64(x), most = __builtin_fabs((double)y.re) + __builtin_fabs((double)y.im);
  if (most < 0x1p10 && most > 0 && size > 0 && size < INFINITY && (x.im != 0 || y.im != 0)) {
    double l = math_size_log_c64(x), angle = math_angle(x.im, x.re), turn = y.re * angle + y.im * l;
    double e = math_exp_narrow(math_bound(y.re * l - y.im * angle, -700, 700));
    return (math_c64){(float)(e * cos(turn)), (float)(e * sin(turn))};
  }
  return math_narrow(math_pow_c128(math_widen(x), math_widen(y)));
}

math_c128 math_atanh_c128(math_c128 x) {
  return math_atanh_is_tame_c128(x) ? math_atanh_tame_c128(x) : math_c99_atanh_c128(x);
}
math_c128 math_asin_c128(math_c128 x) {
  return math_have_squares_c128(x) ? math_asin_tame_c128(x) : math_c99_asin_c128(x);
}
math_c128 math_acos_c128(math_c128 x) {
  return math_have_squares_c128(x) ? math_acos_tame_c128(x) : math_c99_acos_c128(x);
}
math_c128 math_asin_acos_kernel_c128(math_c128 z) {
  double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im);
  if (math_have_squares_c128(z)) return math_sides_c128(x, y);
  double re = y;
  if (fmax(x, y) < 0x1p500) { /* y^2 vanishes */
    double d = __builtin_fabs(1 - x);
    re = x <= 1 ? __builtin_sqrt((1 + x) * d) : y * __builtin_sqrt(x / (x + 1) * (x / d));
  }
  return (math_c128){re, __builtin_fabs(math_c99_asin_c128((math_c128){x, y}).im)};
}

/* -i log((x + i y) / sqrt(x^2 + y^2)), as XLA has it; for real arguments the real atan2. With q = y / x it is the arc
 * tangent of q where x sqrt(1 + q^2) is the principal root of x^2 + y^2, to the right of the cut, and half a turn off
 * where it is the other one; next to the cut it is computed as it stands. */
math_c128 math_atan2_c128(math_c128 y, math_c128 x) {
  if (x.im == 0 && y.im == 0) return (math_c128){atan2(y.re, x.re), 0};
  math_c128 q = math_div_c128(y, x), square = math_square_c128(q),
            root = math_sqrt_c128((math_c128){1 + square.re, square.im});
  double p = x.re * root.re, r = x.im * root.im, side = p - r;
  if (__builtin_fabs(side) > 0x1p-10 * (__builtin_fabs(p) + __builtin_fabs(r)) && q.re != 0) {
    math_c128 angle = math_atan_c128(q);
    if (side < 0) angle.re -= __builtin_copysign(0x1.921fb54442d18p+1, angle.re);
    return angle;
  }
  double complex a = math_c99(x), b = math_c99(y);
  math_c128 up = math_from_c99(math_c99((math_c128){x.re - y.im, x.im + y.re}) / csqrt(a * a + b * b));
  math_c128 l = math_log_c128(up);
  return (math_c128){l.im, -l.re};
}
