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

/* Once for all that follow, for the library's size. */
__attribute__((noinline)) static double math_exp_apart(double x) {
  return math_exp_f64(x);
}
/* Of x, and of 1 + more, which is next to nothing. */
__attribute__((noinline)) static double math_log_apart(double x, double more) {
  return math_log_parts_f64(x, 0, more);
}
__attribute__((noinline)) static math_dd math_squares(double a, double b) {
  return math_dd_add(math_dd_product(a, a), math_dd_product(b, b));
}
/* Sizes of parts that may be squared: what the square of b loses does not show. */
static int math_have_squares(double a, double b) {
  return (a < 0x1p500) & (b < 0x1p500) & ((b == 0) | (b > 0x1p-400));
}

math_c128 math_div_c128(math_c128 x, math_c128 y) {
  return math_div_is_tame_c128(x, y) ? math_div_tame_c128(x, y) : math_from_c99(math_c99(x) / math_c99(y));
}

/* Of two infinite parts neither the size nor the direction is known: NaN, as XLA's product of exp and cos gives. */
math_c128 math_exp_c128(math_c128 x) {
  if (__builtin_fabs(x.re) < 700 && x.im - x.im == 0) {
    double e = math_exp_apart(x.re);
    return (math_c128){e * cos(x.im), e * sin(x.im)};
  }
  if (__builtin_isinf(x.re) && __builtin_isinf(x.im)) return (math_c128){NAN, NAN};
  return math_c99_exp_c128(x);
}

/* Half the logarithm of |x|^2 as a pair of f64; where nearly nothing of that is left beside 1, it is C99's. */
math_c128 math_log_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  if (!(a < 0x1p500 && b < 0x1p500 && a + b > 0x1p-500)) return math_c99_log_c128(x);
  math_dd square = math_squares(a, b);
  if (__builtin_fabs((square.hi - 1) + square.lo) < 0x1p-49) return math_c99_log_c128(x);
  return (math_c128){0.5 * math_log_apart(square.hi, square.lo / square.hi), atan2(x.im, x.re)};
}

/* log|1 + z| is half of log1p(2a + a^2 + b^2), a sum in which much may cancel near the circle |1 + z| = 1. */
math_c128 math_log1p_c128(math_c128 x) {
  double a = x.re, b = x.im;
  if (!(__builtin_fabs(a) < 0x1p400 && __builtin_fabs(b) < 0x1p400)) return math_log_c128((math_c128){1 + a, b});
  double im = atan2(b, 1 + a);
  math_dd t = math_dd_add_f64(math_squares(a, b), 2 * a);
  if (t.hi < -0.5) return (math_c128){log(math_hypot(1 + a, b)), im};
  double u = 1 + t.hi, rest = t.hi < 1 ? t.hi - (u - 1) : 1 - (u - t.hi);
  return (math_c128){0.5 * math_log_apart(u, (rest + t.lo) / u), im};
}

math_c128 math_sqrt_c128(math_c128 x) {
  return math_sqrt_is_tame_c128(x) ? math_sqrt_tame_c128(x) : math_c99_sqrt_c128(x);
}

/* Products of sinh and cosh of the real part with sine and cosine of the other. */
math_c128 math_sinh_c128(math_c128 x) {
  if (!(__builtin_fabs(x.re) < 700 && x.im - x.im == 0)) return math_c99_sinh_c128(x);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  return (math_c128){__builtin_copysign(h.s, x.re) * cos(x.im), h.c * sin(x.im)};
}
math_c128 math_cosh_c128(math_c128 x) {
  if (!(__builtin_fabs(x.re) < 700 && x.im - x.im == 0)) return math_c99_cosh_c128(x);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  return (math_c128){h.c * cos(x.im), __builtin_copysign(h.s, x.re) * sin(x.im)};
}
math_c128 math_tanh_c128(math_c128 x) {
  if (!(__builtin_fabs(x.re) < 300 && x.im - x.im == 0)) return math_c99_tanh_c128(x);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  double s = sin(x.im), c = cos(x.im), size = h.s * h.s + c * c;
  return (math_c128){__builtin_copysign(h.s * h.c / size, x.re), s * c / size};
}

/* e^a (cos b + i sin b) - 1, the real part as expm1(a) cos b - (1 - cos b), lest 1 cancel. */
math_c128 math_expm1_c128(math_c128 x) {
  if (!(__builtin_fabs(x.re) < 700 && x.im - x.im == 0)) { /* the 1 does not matter, or the special cases are exp's */
    math_c128 e = math_exp_c128(x);
    return (math_c128){x.im == 0 ? expm1(x.re) : e.re - 1, x.im == 0 ? x.im : e.im};
  }
  double s = sin(x.im), c = cos(x.im), versine = math_pick(c > 0, s * s / (1 + c), 1 - c);
  return (math_c128){math_expm1_f64(x.re) * c - versine, math_exp_apart(x.re) * s};
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

/* log((1 + x) / (1 - x)) / 2 from |1 + x|^2 / |1 - x|^2 - 1 and from the angle of (1 + x) (1 - conj x). */
math_c128 math_atanh_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im), d = 1 - a, size = d * d + b * b;
  if (!(math_have_squares(a, b) && size > 0)) return math_c99_atanh_c128(x);
  double re = 0.25 * math_log1p_f64(4 * a / size), im = 0.5 * atan2(2 * b, d * (1 + a) - b * b);
  return (math_c128){__builtin_copysign(re, x.re), __builtin_copysign(im, x.im)};
}

/* sqrt(m^2 - x^2) + i log(m + sqrt(m^2 - 1)) of |x| and |y|, m half the sum of the distances to -1 and 1: CHLO's kernel
 * of asin and acos. m - 1 and m - x are sums of what does not cancel (T. E. Hull and others, 1997). */
static math_c128 math_sides_c128(double x, double y) {
  double r = math_hypot(x + 1, y), s = math_hypot(x - 1, y), half = 0.5 * (0.5 * (r + s) + x), square = y * y;
  double p = square / (r + (x + 1)), g = s + __builtin_fabs(x - 1), z = square / (g == 0 ? 1 : g);
  double more = 0.5 * (p + math_pick(x < 1, z, g)), re = half * (p + math_pick(x < 1, g, z));
  return (math_c128){__builtin_sqrt(re), math_log1p_f64(more + __builtin_sqrt(more * (more + 2)))};
}
math_c128 math_asin_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  if (!math_have_squares(a, b)) return math_c99_asin_c128(x);
  math_c128 k = math_sides_c128(a, b);
  return (math_c128){atan2(x.re, k.re), __builtin_copysign(k.im, x.im)};
}
math_c128 math_acos_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  if (!math_have_squares(a, b)) return math_c99_acos_c128(x);
  math_c128 k = math_sides_c128(a, b);
  return (math_c128){atan2(k.re, x.re), __builtin_copysign(k.im, -x.im)};
}
math_c128 math_asin_acos_kernel_c128(math_c128 z) {
  double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im);
  if (math_have_squares(x, y)) return math_sides_c128(x, y);
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
