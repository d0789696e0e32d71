/* No include guard: functions that loops call, for the library's size; math.c has them. They are straight-line, and
 * machine code for kernels has them inlined (cpu/native/functions.py). The includer defines MATH_REST(a, b, p), what
 * the product a * b has beyond p, its rounded value, which is exact. */

/* The angle of (x, y), error 2^-44; both from f32, or such that no quotient overflows: n / d is between -tan(pi/8) and
 * that, of the angle less pi/2, less pi/4, or of itself. */
double math_angle(double y, double x) {
  double a = __builtin_fabs(y), b = __builtin_fabs(x);
  bool both = a == INFINITY && b == INFINITY;
  a = both ? 1 : a;
  b = both ? 1 : b;
  bool steep = a > 0x1.3504f333f9de6p+1 * b, middle = a > 0x1.a827999fcef32p-2 * b;
  double n = steep ? -b : middle ? a - b : a, d = steep ? a : middle ? a + b : b;
  double r = n / (d == 0 ? 1 : d), z = r * r, p = 0x1.f657ae7e09908p-6;
  p = p * z - 0x1.e13ac280a9accp-5;
  p = p * z + 0x1.35ced8de982a2p-4;
  p = p * z - 0x1.73d9cba10d56bp-4;
  p = p * z + 0x1.c714d3e720df5p-4;
  p = p * z - 0x1.2492291945813p-3;
  p = p * z + 0x1.99999911c1573p-3;
  p = p * z - 0x1.55555554e5fc5p-2;
  p = p * z + 0x1.fffffffffff0fp-1;
  double v = r * p + (steep ? 0x1.921fb54442d18p+0 : middle ? 0x1.921fb54442d18p-1 : 0);
  v = __builtin_copysign(1.0, x) < 0 ? 0x1.921fb54442d18p+1 - v : v;
  return __builtin_copysign(v, y);
}

/* sin(x + shift pi/2) for |x| < 2^20, shift 0 or 1. x less n pi/2 is y + low: of pi/2's four parts three have 33 bits,
 * so that n times each is exact, and so are the differences (W. J. Cody and W. Waite). The polynomials for |y| <= pi/4
 * are fdlibm's. */
double math_turned_f64(double x, double shift) {
  double k = x * 0x1.45f306dc9c883p-1 + MATH_ROUND_F64, n = k - MATH_ROUND_F64;
  double a = x - n * 0x1.921fb544p+0, second = n * 0x1.0b4611a6p-34, b = a - second, third = n * 0x1.3198a2ep-69;
  double y = b - third, low = (((b - y) - third) + ((a - b) - second)) - n * 0x1.b839a252049c1p-104;
  double z = y * y, w = z * z, cube = z * y, half = 0.5 * z, whole = 1 - half;
  double s = 0x1.111111110f8a6p-7 + z * (-0x1.a01a019c161d5p-13 + z * 0x1.71de357b1fe7dp-19) +
             z * w * (-0x1.ae5e68a2b9cebp-26 + z * 0x1.5d93a5acfd57cp-33);
  double c = z * (0x1.555555555554cp-5 + z * (-0x1.6c16c16c15177p-10 + z * 0x1.a01a019cb1590p-16)) +
             w * w * (-0x1.27e4f809c52adp-22 + z * (0x1.1ee9ebdb4b1c4p-29 - z * 0x1.8fae9be8838d4p-37));
  double sine = y - ((z * (0.5 * low - cube * s) - low) - cube * -0x1.5555555555549p-3);
  double cosine = whole + (((1 - whole) - half) + (z * c - y * low));
  uint64_t q = base_f64_bits(k + shift);
  return base_f64_of(base_f64_bits(q & 1 ? cosine : sine) ^ (q & 2) << 62);
}

/* The cube root of a, 2^-1020 < a < 2^1020, error 2^-41. The upper half of a number's bits is its logarithm, about, so
 * that a third of it is that of the root, within 5 %; each of Halley's two steps takes the error to its cube. */
static double math_cbrt_start(double a) {
  double third = base_f64_of((base_f64_bits(a) >> 32) | 0x4330000000000000) - 0x1p52;
  third = third * 0x1.5555555555555p-2 + (0x1p52 + 715094163);
  double r = base_f64_of(base_f64_bits(third) << 32), cube = r * r * r;
  r = r * ((cube + 2 * a) / (2 * cube + a));
  cube = r * r * r;
  return r * ((cube + 2 * a) / (2 * cube + a));
}
float math_cbrt_f32(float x) {
  double a = __builtin_fabs((double)x);
  float r = (float)math_cbrt_start(a);
  return a < INFINITY ? __builtin_copysignf(r, x) : x;
}
/* And one of Newton's steps, with the cube's error. */
double math_cbrt_f64(double x) {
  double a = __builtin_fabs(x), m = a > 1 ? a * 0x1p-60 : a * 0x1p60, r = math_cbrt_start(m);
  double square = r * r, cube = square * r, less = MATH_REST(square, r, cube) + r * MATH_REST(r, r, square);
  r = r + ((m - cube) - less) / (3 * square);
  r = r * (a > 1 ? 0x1p20 : 0x1p-20);
  return a > 0 && a < INFINITY ? __builtin_copysign(r, x) : x;
}

/* 2^k (h + l) - 1: what the difference is rounded by is added again. */
double math_expm1_f64(double x) {
  math_exp_parts_f64 e = math_exp_reduced_f64(math_bound(x, -50, 710));
  double n = math_scaled_f64(e.h, e.k), v = n - 1, back = v + 1, rest = (n - back) + ((back - v) - 1);
  v = v + (rest + math_scaled_f64(e.l, e.k));
  v = x > 0x1.62e42fefa39efp+9 ? INFINITY : v;
  return x == 0 ? x : v;
}

/* log(u) + c / u, u + c = 1 + x: u is rounded. */
double math_log1p_f64(double x) {
  double u = 1 + x, c = x < 1 ? x - (u - 1) : 1 - (u - x);
  double v = math_log_parts_f64(u, 0, c / u);
  v = x > -1 ? v : x == -1 ? -INFINITY : NAN;
  return x == 0 || x == INFINITY ? x : v;
}

/* log(1 + t), t >= 0 and finite: what 1 + t is rounded by is added. */
__attribute__((noinline)) static double math_log1p_narrow(double t) {
  double u = 1 + t;
  return math_log_narrow(u) + (t - (u - 1)) / u;
}
float math_asinh_f32(float x) {
  double a = __builtin_fabs((double)x);
  float r = (float)math_log1p_narrow(a + a * a / (1 + __builtin_sqrt(a * a + 1)));
  return __builtin_copysignf(a < INFINITY ? r : (float)a, x);
}
float math_acosh_f32(float x) {
  double t = (double)x - 1;
  float r = (float)math_log1p_narrow(t + __builtin_sqrt(t * (t + 2)));
  r = x < INFINITY ? r : x;
  return x < 1 ? NAN : r;
}
float math_atanh_f32(float x) {
  double a = __builtin_fabs((double)x);
  float r = (float)(0.5 * math_log1p_narrow(2 * a / (1 - a)));
  float edge = a == 1 ? INFINITY : NAN;
  return __builtin_copysignf(a < 1 ? r : edge, x);
}

/* Below 0.84 an odd polynomial, whose first term is exact; above it 1 - e^-x^2 by a polynomial, which is small
 * beside 1, and near 1 of a variable that has no error. From 6 on it is 1. */
double math_erf_f64(double x) {
  double a = __builtin_fabs(x), z = a * a, c = 0x1.20dd750429b6dp+0; /* 2 / sqrt(pi) */
  double p = 0x1.333cc1c2ede6cp-34;
  p = p * z - 0x1.4613f31c9e423p-30;
  p = p * z + 0x1.fb3f76a119fb1p-27;
  p = p * z - 0x1.5f63fdf2cadc8p-23;
  p = p * z + 0x1.b9e5e54b53afap-20;
  p = p * z - 0x1.f4d253cec2ed9p-17;
  p = p * z + 0x1.f9a326c529e13p-14;
  p = p * z - 0x1.c02db3ff70d63p-11;
  p = p * z + 0x1.565bcd0e686e5p-8;
  p = p * z - 0x1.b82ce31288b08p-6;
  p = p * z + 0x1.ce2f21a042be1p-4;
  p = p * z - 0x1.812746b0379e7p-2;
  double first = a * c, rest = a < 0x1p-300 ? 0 : MATH_REST(a, c, first);
  double near = first + (rest + a * (0x1.1ae3a914fed8p-56 + z * p));
  double far = math_bound(a, 0, 6), t = (far - 1.0) / (far + 1.0);
  double q = -0x1.875ad8d65d395p-14;
  q = q * t + 0x1.06ebe5f76f782p-12;
  q = q * t - 0x1.1f92795363441p-13;
  q = q * t - 0x1.58a591625c12ap-13;
  q = q * t + 0x1.a36f678a7a369p-12;
  q = q * t - 0x1.e3b1154394b3ep-12;
  q = q * t + 0x1.db08f68c3b67bp-14;
  q = q * t - 0x1.7617533cd754ap-13;
  q = q * t + 0x1.791cbb4b91090p-14;
  q = q * t + 0x1.d113c61c85718p-12;
  q = q * t + 0x1.c770662217600p-11;
  q = q * t + 0x1.6edb8ed95d85ap-11;
  q = q * t - 0x1.3d6949b65c54ep-10;
  q = q * t - 0x1.616d450458e97p-8;
  q = q * t - 0x1.03bb8b9ad458cp-7;
  q = q * t + 0x1.78738bb1f9122p-8;
  q = q * t + 0x1.c05ecfde2607dp-5;
  q = q * t + 0x1.23122255b6467p-4;
  q = q * t - 0x1.17c4e3f17c04fp-1;
  q = q * t + 0x1.b5d8780f956b2p-2;
  double square = far * far;
  math_exp_parts_f64 e = math_exp_reduced_f64(-square);
  far = 1 - math_scaled_f64(e.h * q + (e.l - e.h * MATH_REST(far, far, square)) * q, e.k);
  return __builtin_copysign(a < 0.84 ? near : far, x);
}

/* Of log(1 + t + low), low next to nothing beside t, which is not below 0: what 1 + t is rounded by, and low, over 1 +
 * t.
 */
MATH_INLINE double math_rest_of_sum(double t, double low) {
  double u = 1 + t, c = t < 1 ? t - (u - 1) : 1 - (u - t);
  return (c + low) / u;
}
/* What the root of q + low has beyond r, the root of q, and n + more over d + low beyond z, n over d. */
MATH_INLINE double math_root_rest(double q, double low, double r) {
  double p = r * r;
  return (((q - p) - MATH_REST(r, r, p)) + low) / (r == 0 ? 1.0 : 2 * r);
}
MATH_INLINE double math_quotient_rest(double n, double more, double d, double low, double z) {
  double p = z * d;
  return ((((n - p) - MATH_REST(z, d, p)) + more) - z * low) / d;
}
/* log1p(a + a^2 / (1 + sqrt(a^2 + 1))), on pairs. Below 2^-28 it is x, above 2^28 log(2x). */
double math_asinh_f64(double x) {
  double a = __builtin_fabs(x), v = math_bound(a, 0x1p-28, 0x1p28), s = v * v, low = MATH_REST(v, v, s);
  double q = s + 1, more = (s < 1 ? s - (q - 1) : 1 - (q - s)) + low, r = __builtin_sqrt(q), d = 1 + r;
  double z = s / d, t = v + z;
  double rest = math_quotient_rest(s, low, d, (1 - (d - r)) + math_root_rest(q, more, r), z);
  bool far = a > 0x1p28, same = (a < 0x1p-28) | (a == INFINITY);
  double y =
      math_log_parts_f64(far ? a : 1 + t, far ? 1.0 : 0.0, far ? 0.0 : math_rest_of_sum(t, (z - (t - v)) + rest));
  return __builtin_copysign(same ? a : y, x);
}
/* log1p(t + sqrt(t (t + 2))), t = x - 1, which is exact. */
double math_acosh_f64(double x) {
  double t = math_bound(x, 1, 0x1p30) - 1, s = t * t, w = 2 * t, q = s + w, part = q - s;
  double more = ((s - (q - part)) + (w - part)) + MATH_REST(t, t, s), r = __builtin_sqrt(q), u = r + t;
  bool far = x > 0x1p30;
  double low = math_rest_of_sum(u, (t - (u - r)) + math_root_rest(q, more, r));
  double y = math_log_parts_f64(far ? x : 1 + u, far ? 1.0 : 0.0, far ? 0.0 : low);
  y = x == INFINITY ? x : y;
  return x < 1 ? NAN : y;
}
/* Half of log1p(2a / (1 - a)). */
double math_atanh_f64(double x) {
  double a = __builtin_fabs(x), v = math_bound(a, 0x1p-28, 0x1.fffffffffffffp-1), d = 1 - v, z = 2 * v / d;
  double low = math_rest_of_sum(z, math_quotient_rest(2 * v, 0, d, (1 - d) - v, z));
  double y = 0.5 * math_log_parts_f64(1 + z, 0, low);
  double edge = a == 1 ? INFINITY : NAN;
  y = a < 0x1p-28 ? a : y;
  return __builtin_copysign(a < 1 ? y : edge, x);
}

/* Half of e^a and of e^-a = 2^-k / h, which does not show from 22 on; below 1 sinh is an odd polynomial. */
static double math_inverse_f64(double h, uint64_t k, double a) {
  double inverse = base_f64_of((1023 - k - k) << 52) / h;
  return a < 22 ? inverse : 0;
}
/* sinh and cosh of the size. */
typedef struct math_hyperbolic {
  double s, c;
} math_hyperbolic;
__attribute__((noinline)) static math_hyperbolic math_hyperbolic_f64(double x) {
  double a = __builtin_fabs(x), z = a * a;
  double p = 0x1.328de90012662p-57;
  p = p * z + 0x1.952654734b725p-49;
  p = p * z + 0x1.ae7f44a89136cp-41;
  p = p * z + 0x1.61246136ddcb0p-33;
  p = p * z + 0x1.ae64567f56d72p-26;
  p = p * z + 0x1.71de3a556c724p-19;
  p = p * z + 0x1.a01a01a01a01ap-13;
  p = p * z + 0x1.1111111111111p-7;
  p = p * z + 0x1.5555555555555p-3;
  math_exp_parts_f64 e = math_exp_reduced_f64(math_bound(a, 0, 740));
  double inverse = math_inverse_f64(e.h, e.k, a), far = math_scaled_f64(e.h + (e.l - inverse), e.k - 1);
  return (math_hyperbolic){a < 1 ? a + a * (z * p) : far, math_scaled_f64(e.h + (e.l + inverse), e.k - 1)};
}
double math_cosh_f64(double x) {
  return math_hyperbolic_f64(x).c;
}
double math_sinh_f64(double x) {
  return __builtin_copysign(math_hyperbolic_f64(x).s, x);
}

/* One Newton step, away from the ends of the exponents. */
double math_rsqrt_f64(double x) {
  bool small = x < 0x1p-500, big = x > 0x1p500;
  double m = x * (small ? 0x1p512 : big ? 0x1p-512 : 1), r = 1 / __builtin_sqrt(m), p = r * r, q = p * m;
  double off = ((q - 1) + MATH_REST(p, m, q)) + MATH_REST(r, r, p) * m;
  r = (r - 0.5 * r * off) * (small ? 0x1p256 : big ? 0x1p-256 : 1);
  bool plain = (x > 0) & (x < INFINITY);
  return plain ? r : 1 / __builtin_sqrt(x);
}

/* --- complex numbers of two f32 --- */

/* Once for all that follow, for the library's size. */
__attribute__((noinline)) static float math_sin_apart(float x) {
  return math_sin_f32(x);
}
__attribute__((noinline)) static float math_cos_apart(float x) {
  return math_cos_f32(x);
}

math_c64 math_sign_c64(math_c64 x) {
  double a = math_size_c64(x);
  bool zero = (x.re == 0) & (x.im == 0);
  return (math_c64){zero ? 0 : (float)(x.re / a), zero ? 0 : (float)(x.im / a)};
}
/* An infinite part as 1 and a finite one as 0, with their signs. */
static double math_direction(float part) {
  return __builtin_copysign(__builtin_fabsf(part) == INFINITY ? 1.0 : 0.0, (double)part);
}
/* Where not both parts are NaN. */
MATH_INLINE math_c64 math_div_plain_c64(math_c64 x, math_c64 y) {
  double a = x.re, b = x.im, c = y.re, d = y.im, size = c * c + d * d;
  return (math_c64){(float)((a * c + b * d) / size), (float)((b * c - a * d) / size)};
}
/* As C99's annex G has it: where both parts are NaN, a divisor of zero gives infinities, and an infinity by a finite
 * number or the other way round is computed from its direction. */
math_c64 math_div_c64(math_c64 x, math_c64 y) {
  double a = x.re, b = x.im, c = y.re, d = y.im, size = c * c + d * d;
  double re = (a * c + b * d) / size, im = (b * c - a * d) / size;
  bool lost = (re != re) & (im != im), zero = size == 0;
  bool large = math_is_infinite_c64(x) & (size < INFINITY);
  bool small = math_is_infinite_c64(y) & (a - a == 0) & (b - b == 0);
  double infinity = __builtin_copysign((double)INFINITY, c), factor = large ? (double)INFINITY : 0.0;
  double p = large ? math_direction(x.re) : a, q = large ? math_direction(x.im) : b;
  double r = small ? math_direction(y.re) : c, s = small ? math_direction(y.im) : d;
  double known_re = zero ? infinity * a : factor * (p * r + q * s);
  double known_im = zero ? infinity * b : factor * (q * r - p * s);
  bool mend = lost & (zero | large | small);
  return (math_c64){(float)(mend ? known_re : re), (float)(mend ? known_im : im)};
}
/* The larger part is the root of half of |x| and the real part's size; the other is im over two times that. */
MATH_INLINE math_c128 math_root_c64(math_c64 x) {
  double im = __builtin_fabs((double)x.im);
  double root = __builtin_sqrt(0.5 * (__builtin_fabs((double)x.re) + math_size_c64(x)));
  double other = root == 0 ? im : im / (2 * root), re = x.re < 0 ? other : root, part = x.re < 0 ? root : other;
  bool up = __builtin_fabsf(x.im) == INFINITY;
  return (math_c128){up ? (double)INFINITY : re, __builtin_copysign(up ? (double)INFINITY : part, (double)x.im)};
}
math_c64 math_sqrt_c64(math_c64 x) {
  return math_narrow(math_root_c64(x));
}
/* Of 0 it is C99's quotient 1 / 0. */
math_c64 math_rsqrt_c64(math_c64 x) {
  math_c128 r = math_root_c64(x);
  double size = r.re * r.re + r.im * r.im;
  float re = (float)(r.re / size), im = (float)(-r.im / size);
  bool far = math_is_infinite_c64(x);
  float side = x.im != x.im ? 1 : x.im; /* a NaN's sign is the machine's own */
  return (math_c64){far ? 0 : size == 0 ? INFINITY : re, far ? __builtin_copysignf(0, -side) : im};
}
/* log|x| of |x|^2; where that is near 1, of what it has beyond 1, in which the difference of the larger part's square
 * and 1 is exact. */
__attribute__((noinline)) static double math_size_log_c64(math_c64 x) {
  double a = __builtin_fabs((double)x.re), b = __builtin_fabs((double)x.im);
  double big = a < b ? b : a, small = a < b ? a : b;
  bool near = (big > 0.7) & (big < 1.5);
  double beyond = (big * big - 1) + small * small, square = near ? 1 + beyond : big * big + small * small;
  double more = near ? (beyond - (square - 1)) / square : 0.0;
  double size = 0.5 * (math_log_narrow(square) + more);
  return square == 0 ? -(double)INFINITY : square != square ? square : size;
}
math_c64 math_log_c64(math_c64 x) {
  double size = math_size_log_c64(x);
  return (math_c64){math_is_infinite_c64(x) ? INFINITY : (float)size, math_atan2_f32(x.im, x.re)};
}
/* log|1 + x| is half of log1p(2a + a^2 + b^2), a sum in which much may cancel near the circle |1 + x| = 1: what it is
 * rounded by is added. Near -1 it is that of the parts' squares. */
math_c64 math_log1p_c64(math_c64 x) {
  double a = x.re, b = x.im, p = a * a, q = b * b, s = p + q, part = s - p, w = 2 * a, t = s + w, other = t - s;
  double low = ((p - (s - part)) + (q - part)) + ((s - (t - other)) + (w - other));
  bool near = t < -0.5;
  double square = near ? (1 + a) * (1 + a) + q : 1 + t, more = near ? 0.0 : ((t - (square - 1)) + low) / square;
  double size = 0.5 * (math_log_narrow(square) + more);
  size = square == 0 ? -(double)INFINITY : square != square ? square : size;
  return (math_c64){math_is_infinite_c64(x) ? INFINITY : (float)size, (float)math_angle(b, 1 + a)};
}
/* Of e^a, sinh and cosh of the real part and the sine and cosine of the other, each of which is an f32 or nearly so:
 * within 1.5 ulp. Where the latter are NaN, an infinity or a zero of the former shows. Beyond 700 all is infinite. */
math_c64 math_exp_c64(math_c64 x) {
  double e = math_exp_narrow(math_bound((double)x.re, -700, 700));
  float s = math_sin_apart(x.im), c = math_cos_apart(x.im);
  bool lost = x.im != x.im, most = lost & (x.re == INFINITY), least = lost & (x.re == -INFINITY);
  float re = (float)(e * c), im = (float)(e * s);
  return (math_c64){most ? INFINITY : least ? 0 : re, x.im == 0 ? x.im : least ? 0 : im};
}
MATH_INLINE math_hyperbolic math_hyperbolic_f32(float x, double most) {
  double e = math_expm1_narrow(math_bound(__builtin_fabs((double)x), 0, most)), inverse = 1 / (e + 1);
  return (math_hyperbolic){0.5 * (e + e * inverse), 0.5 * ((e + 1) + inverse)};
}
/* Half of 1 + tanh x/2, in which nothing cancels where the size is small. */
math_c64 math_logistic_c64(math_c64 x) {
  float half = 0.5f * x.im;
  math_hyperbolic h = math_hyperbolic_f32(0.5f * x.re, 60);
  double s = math_sin_apart(half), c = math_cos_apart(half), up = h.s + h.c, size = 2 * (h.s * h.s + c * c);
  double first = x.re < 0 ? -h.s / up : h.s * up;
  return (math_c64){(float)((c * c + first) / size), x.im == 0 ? x.im : (float)(s * c / size)};
}
math_c64 math_sinh_c64(math_c64 x) {
  math_hyperbolic h = math_hyperbolic_f32(x.re, 700);
  float s = math_sin_apart(x.im), c = math_cos_apart(x.im), re = (float)(__builtin_copysign(h.s, (double)x.re) * c);
  bool shows = (c != c) & ((__builtin_fabsf(x.re) == INFINITY) | (x.re == 0));
  return (math_c64){shows ? (x.re == 0 ? x.re : INFINITY) : re, x.im == 0 ? x.im : (float)(h.c * s)};
}
math_c64 math_cosh_c64(math_c64 x) {
  math_hyperbolic h = math_hyperbolic_f32(x.re, 700);
  float s = math_sin_apart(x.im), c = math_cos_apart(x.im),
        zero = __builtin_copysignf(0, x.re) * __builtin_copysignf(1, x.im);
  float im = (float)(__builtin_copysign(h.s, (double)x.re) * s);
  bool shows = (c != c) & (__builtin_fabsf(x.re) == INFINITY);
  return (math_c64){shows ? INFINITY : (float)(h.c * c), ((x.re == 0) | (x.im == 0)) ? zero : im};
}
/* From 60 on the imaginary part is less than the least f32. */
math_c64 math_tanh_c64(math_c64 x) {
  math_hyperbolic h = math_hyperbolic_f32(x.re, 60);
  double s = math_sin_apart(x.im), c = math_cos_apart(x.im), size = h.s * h.s + c * c;
  float re = __builtin_copysignf((float)(h.s * h.c / size), x.re), im = (float)(s * c / size);
  bool far = __builtin_fabsf(x.re) == INFINITY;
  float edge = __builtin_copysignf(0, (float)(c != c ? (double)x.im : s * c));
  re = x.re == 0 ? x.re : re;
  return (math_c64){far ? __builtin_copysignf(1, x.re) : re, x.im == 0 ? x.im : far ? edge : im};
}
/* e^a (cos b + i sin b) - 1, the real part as expm1(a) cos b - (1 - cos b), lest 1 cancel: each within 2^-37. */
math_c64 math_expm1_c64(math_c64 x) {
  bool near = __builtin_fabsf(x.im) < 0x1p27f, lost = x.im != x.im, most = lost & (x.re == INFINITY);
  double quadrant, y = math_reduced_f32(near ? (double)x.im : 0.0, &quadrant);
  uint64_t q = base_f64_bits(quadrant);
  double s = near ? math_sin_turned(y, q) : (double)math_sin_apart(x.im);
  double c = near ? math_sin_turned(y, q + 1) : (double)math_cos_apart(x.im);
  double e = math_expm1_narrow(math_bound((double)x.re, -700, 700)), versine = c > 0 ? s * s / (1 + c) : 1 - c;
  bool least = lost & (x.re == -INFINITY);
  float re = (float)(e * c - versine), im = (float)((e + 1) * s);
  return (math_c64){most ? INFINITY : least ? -1 : re, x.im == 0 ? x.im : least ? 0 : im};
}
/* log((1 + x) / (1 - x)) / 2 from |1 + x|^2 / |1 - x|^2 - 1 and from the angle of (1 + x) (1 - conj x). */
math_c64 math_atanh_c64(math_c64 x) {
  double a = math_bound(__builtin_fabs((double)x.re), 0, 0x1p300);
  double b = math_bound(__builtin_fabs((double)x.im), 0, 0x1p300), d = 1 - a, size = d * d + b * b;
  float re = (float)(0.25 * math_log1p_narrow(4 * a / (size == 0 ? 1.0 : size)));
  float im = (float)(0.5 * math_angle(2 * b, d * (1 + a) - b * b));
  re = (math_is_infinite_c64(x) | (x.re == 0)) ? 0 : size == 0 ? INFINITY : re;
  im = __builtin_fabsf(x.im) == INFINITY ? 0x1.921fb6p+0f : im;
  return (math_c64){__builtin_copysignf(re, x.re), __builtin_copysignf(im, x.im)};
}
/* sqrt(m^2 - a^2) and log(m + sqrt(m^2 - 1)) of the parts' sizes a and b, m half the sum of the distances to -1 and 1.
 * m - 1 and m - a are sums of what does not cancel (T. E. Hull and others, 1997). */
__attribute__((noinline)) static math_c128 math_sides_c64(math_c64 x) {
  double a = math_bound(__builtin_fabs((double)x.re), 0, 0x1p300);
  double b = math_bound(__builtin_fabs((double)x.im), 0, 0x1p300), up = a + 1, down = __builtin_fabs(a - 1);
  double square = b * b, r = __builtin_sqrt(up * up + square), s = __builtin_sqrt(down * down + square);
  double half = 0.5 * (0.5 * (r + s) + a), p = square / (r + up), g = s + down, z = square / (g == 0 ? 1.0 : g);
  double more = 0.5 * (p + (a < 1 ? z : g)), l = math_log1p_narrow(more + __builtin_sqrt(more * (more + 2)));
  return (math_c128){__builtin_sqrt(half * (p + (a < 1 ? g : z))), math_is_infinite_c64(x) ? (double)INFINITY : l};
}
math_c64 math_asin_c64(math_c64 x) {
  math_c128 k = math_sides_c64(x);
  float re = (float)math_angle(math_bound((double)x.re, -0x1p300, 0x1p300), k.re);
  return (math_c64){x.re == 0 ? x.re : re, __builtin_copysignf((float)k.im, x.im)};
}
math_c64 math_acos_c64(math_c64 x) {
  math_c128 k = math_sides_c64(x);
  float re = (float)math_angle(k.re, math_bound((double)x.re, -0x1p300, 0x1p300));
  return (math_c64){x.re == 0 ? 0x1.921fb6p+0f : re, __builtin_copysignf((float)k.im, -x.im)};
}

/* --- lgamma and digamma of f32 --- */

/* The gamma function of z + 1 is sqrt(2 pi) t^(z + 1/2) e^-t P(z) / Q(z), t = z + 7.5, for z >= -1/2 (C. Lanczos, with
 * P. Godfrey's coefficients for g = 7, n = 9); the error of its logarithm is 2^-49. Both are sums of positive terms. */
typedef struct math_lanczos {
  double p, q, p_slope, q_slope; /* and their derivatives */
} math_lanczos;
/* One step of Horner's rule, for the derivatives too. */
#define MATH_LANCZOS_STEP(a, b) \
  dp = dp * z + p;              \
  p = p * z + (a);              \
  dq = dq * z + q;              \
  q = q * z + (b);
static math_lanczos math_lanczos_of(double z) {
  double dp = 0x1.ffffffffff950p-1, p = dp * z + 0x1.e3aaaaaaaaf61p+5, dq = 1, q = z + 36;
  MATH_LANCZOS_STEP(0x1.8fc2b8e38e073p+10, 546)
  MATH_LANCZOS_STEP(0x1.79960aebc6033p+14, 4536)
  MATH_LANCZOS_STEP(0x1.bdc59b957ea02p+17, 22449)
  MATH_LANCZOS_STEP(0x1.50ca844109fdcp+20, 67284)
  MATH_LANCZOS_STEP(0x1.3e0bd4122fe4fp+22, 118124)
  MATH_LANCZOS_STEP(0x1.573aa2f825586p+23, 109584)
  MATH_LANCZOS_STEP(0x1.4415b432ba16ap+23, 40320)
  return (math_lanczos){p, q, dp, dq};
}
#undef MATH_LANCZOS_STEP

/* Below 1/2 by reflection: the logarithm of pi / |sin(pi x)|, less that of 1 - x. */
float math_lgamma_f32(float x) {
  double v = x, z = v < 0.5 ? -v : v - 1, whole = math_rint_f64(v);
  math_lanczos l = math_lanczos_of(z < 0x1p50 ? z : 0x1p50);
  double t = z + 7.5, right = (z + 0.5) * math_log_f64(t) - t + (math_log_f64(l.p / l.q) + 0x1.d67f1c864beb5p-1);
  double s = __builtin_fabs(math_turned_f64(0x1.921fb54442d18p+1 * (v - whole), 0));
  float r = (float)(v < 0.5 ? 0x1.250d048e7a1bdp+0 - math_log_f64(s) - right : right);
  r = x == 1 || x == 2 ? 0 : r;
  bool pole = v == whole && x < 0.5f;
  return pole || __builtin_fabsf(x) == INFINITY ? INFINITY : r;
}

/* log(t) - 7/t + P'/P - Q'/Q; below 1/2 by reflection: less pi / tan(pi x). */
float math_digamma_f32(float x) {
  double v = x, z = v < 0.5 ? -v : v - 1, whole = math_rint_f64(v), t = z + 7.5;
  math_lanczos l = math_lanczos_of(z < 0x1p50 ? z : 0x1p50);
  double right = math_log_f64(t) - 7 / t + (l.p_slope * l.q - l.p * l.q_slope) / (l.p * l.q);
  double pi = 0x1.921fb54442d18p+1, angle = pi * (v - whole), s = math_turned_f64(angle, 0),
         c = math_turned_f64(angle, 1);
  float r = (float)(v < 0.5 ? right - pi * c / (s == 0 ? 1.0 : s) : right);
  bool pole = v == whole && x < 0.5f;
  return x == INFINITY ? INFINITY : pole ? NAN : r;
}

/* --- sizes of complex numbers ---
 *
 * Either, without a branch: which of both it is, is not known beforehand. */
static double math_pick(bool first, double a, double b) {
  uint64_t all = -(uint64_t)first;
  return base_f64_of((base_f64_bits(a) & all) | (base_f64_bits(b) & ~all));
}

/* The root h of two squares, neither of which overflows or vanishes, less half the relative error of h^2. That error
 * is summed from differences that are exact (C. F. Borges, "An improved algorithm for hypot(a, b)", 2019). */
static double math_root_of_squares(double big, double small) {
  double h = __builtin_sqrt(big * big + small * small), d = h - small, e = h - big;
  bool alike = h <= 2 * small;
  double most = math_pick(alike, big * (2 * d - big), 2 * e * (big - 2 * small));
  double rest = math_pick(alike, (d - 2 * (big - small)) * d, (4 * e - small) * small + e * e);
  return h - (most + rest) / (2 * h);
}

/* An infinite part makes it infinite even beside a NaN, as C99 has it. Scaling by powers of two is exact. */
__attribute__((noinline)) static double math_hypot_any(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  double big = math_pick(a < b, b, a), small = math_pick(a < b, a, b);
  double up = math_pick(big > 0x1p511, 0x1p-600, math_pick(small < 0x1p-459, 0x1p600, 1));
  double down = math_pick(big > 0x1p511, 0x1p600, math_pick(small < 0x1p-459, 0x1p-600, 1));
  double root = math_root_of_squares(big * up, small * up) * down;
  root = math_pick(small <= big * 0x1p-54, big + small, root);
  bool whole = (a < INFINITY) & (b < INFINITY), infinite = (a == INFINITY) | (b == INFINITY);
  return math_pick(whole, root, math_pick(infinite, INFINITY, x + y));
}

/* The same, sooner where no square overflows or vanishes. */
double math_hypot(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  uint64_t p = base_f64_bits(a), q = base_f64_bits(b); /* whose order is that of the numbers */
  double big = base_f64_of(p < q ? q : p), small = base_f64_of(p < q ? p : q);
  bool plain = (big <= 0x1p511) & (small >= 0x1p-459) & (small > big * 0x1p-54);
  return plain ? math_root_of_squares(big, small) : math_hypot_any(x, y);
}

/* --- the short ways of c128, for operands of which nothing overflows or vanishes in between --- */

/* Numbers whose products with each other lose nothing at either end of the exponents. */
static bool math_is_tame(double v) {
  double size = __builtin_fabs(v);
  return (size >= 0x1p-250 && size < 0x1p251) || v == 0;
}
static bool math_div_is_tame_c128(math_c128 x, math_c128 y) {
  return math_is_tame(x.re) && math_is_tame(x.im) && math_is_tame(y.re) && math_is_tame(y.im) &&
         y.re * y.re + y.im * y.im > 0;
}
static math_c128 math_div_tame_c128(math_c128 x, math_c128 y) {
  double size = y.re * y.re + y.im * y.im;
  return (math_c128){(x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size};
}

static bool math_sqrt_is_tame_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  return (a < 0x1p500) & (b < 0x1p500) & (a + b > 0x1p-500);
}
/* The larger part is the root of half of |x| and the real part's size; the other is im over two times that. */
static math_c128 math_sqrt_tame_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  double root = __builtin_sqrt(0.5 * (a + math_hypot(a, b))), other = b / (2 * root);
  double re = math_pick(x.re < 0, other, root), im = math_pick(x.re < 0, root, other);
  return (math_c128){re, __builtin_copysign(im, x.im)};
}

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

/* Of which the exponential of the real part stays within f64, and the imaginary one is a number. */
static bool math_is_below_c128(math_c128 x, double most) {
  return (__builtin_fabs(x.re) < most) & (x.im - x.im == 0);
}
static math_c128 math_exp_tame_c128(math_c128 x) {
  double s = sin(x.im), c = cos(x.im), e = math_exp_apart(x.re);
  return (math_c128){e * c, e * s};
}
/* e^a (cos b + i sin b) - 1, the real part as expm1(a) cos b - (1 - cos b), lest 1 cancel. */
static math_c128 math_expm1_tame_c128(math_c128 x) {
  double s = sin(x.im), c = cos(x.im), versine = math_pick(c > 0, s * s / (1 + c), 1 - c);
  return (math_c128){math_expm1_f64(x.re) * c - versine, math_exp_apart(x.re) * s};
}
/* Products of sinh and cosh of the real part with sine and cosine of the other. */
static math_c128 math_sinh_tame_c128(math_c128 x) {
  double s = sin(x.im), c = cos(x.im);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  return (math_c128){__builtin_copysign(h.s, x.re) * c, h.c * s};
}
static math_c128 math_cosh_tame_c128(math_c128 x) {
  double s = sin(x.im), c = cos(x.im);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  return (math_c128){h.c * c, __builtin_copysign(h.s, x.re) * s};
}
static math_c128 math_tanh_tame_c128(math_c128 x) {
  double s = sin(x.im), c = cos(x.im);
  math_hyperbolic h = math_hyperbolic_f64(x.re);
  double size = h.s * h.s + c * c;
  return (math_c128){__builtin_copysign(h.s * h.c / size, x.re), s * c / size};
}

/* Half the logarithm of |x|^2 as a pair of f64, unless nearly nothing of that is left beside 1. */
static bool math_log_is_tame_c128(math_c128 x, math_dd square) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  bool near = __builtin_fabs((square.hi - 1) + square.lo) < 0x1p-49;
  return (a < 0x1p500) & (b < 0x1p500) & (a + b > 0x1p-500) & !near;
}
static math_c128 math_log_tame_c128(math_c128 x, math_dd square) {
  return (math_c128){0.5 * math_log_apart(square.hi, square.lo / square.hi), atan2(x.im, x.re)};
}
/* log|1 + z| is half of log1p(t), t = 2a + a^2 + b^2, a sum in which much may cancel near the circle |1 + z| = 1; it is
 * not below -0.5 here. */
static math_dd math_log1p_square_c128(math_c128 x) {
  return math_dd_add_f64(math_squares(x.re, x.im), 2 * x.re);
}
static math_c128 math_log1p_tame_c128(math_c128 x, math_dd t) {
  double u = 1 + t.hi, rest = math_pick(t.hi < 1, t.hi - (u - 1), 1 - (u - t.hi));
  return (math_c128){0.5 * math_log_apart(u, (rest + t.lo) / u), atan2(x.im, 1 + x.re)};
}

/* Parts that may be squared: what the square of the imaginary one loses does not show. */
static bool math_have_squares_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im);
  return (a < 0x1p500) & (b < 0x1p500) & ((b == 0) | (b > 0x1p-400));
}
static double math_atanh_size_c128(math_c128 x) {
  double b = __builtin_fabs(x.im), d = 1 - __builtin_fabs(x.re);
  return d * d + b * b;
}
static bool math_atanh_is_tame_c128(math_c128 x) {
  return math_have_squares_c128(x) & (math_atanh_size_c128(x) > 0);
}
/* log((1 + x) / (1 - x)) / 2 from |1 + x|^2 / |1 - x|^2 - 1 and from the angle of (1 + x) (1 - conj x). */
static math_c128 math_atanh_tame_c128(math_c128 x) {
  double a = __builtin_fabs(x.re), b = __builtin_fabs(x.im), d = 1 - a;
  double re = 0.25 * math_log1p_f64(4 * a / math_atanh_size_c128(x)), im = 0.5 * atan2(2 * b, d * (1 + a) - b * b);
  return (math_c128){__builtin_copysign(re, x.re), __builtin_copysign(im, x.im)};
}

/* sqrt(m^2 - x^2) + i log(m + sqrt(m^2 - 1)) of |x| and |y|, m half the sum of the distances to -1 and 1: CHLO's kernel
 * of asin and acos. m - 1 and m - x are sums of what does not cancel (T. E. Hull and others, 1997). */
static math_c128 math_sides_c128(double x, double y) {
  double r = math_hypot(x + 1, y), s = math_hypot(x - 1, y), half = 0.5 * (0.5 * (r + s) + x), square = y * y;
  double p = square / (r + (x + 1)), g = s + __builtin_fabs(x - 1), z = square / math_pick(g == 0, 1, g);
  double more = 0.5 * (p + math_pick(x < 1, z, g)), re = half * (p + math_pick(x < 1, g, z));
  return (math_c128){__builtin_sqrt(re), math_log1p_f64(more + __builtin_sqrt(more * (more + 2)))};
}
static math_c128 math_asin_tame_c128(math_c128 x) {
  math_c128 k = math_sides_c128(__builtin_fabs(x.re), __builtin_fabs(x.im));
  return (math_c128){atan2(x.re, k.re), __builtin_copysign(k.im, x.im)};
}
static math_c128 math_acos_tame_c128(math_c128 x) {
  math_c128 k = math_sides_c128(__builtin_fabs(x.re), __builtin_fabs(x.im));
  return (math_c128){atan2(k.re, x.re), __builtin_copysign(k.im, -x.im)};
}
