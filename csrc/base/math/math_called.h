/* No include guard: functions that loops call, for the library's size; math.c has them. They are straight-line, and
 * machine code for kernels has them inlined (cpu/native/functions.py). */

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

/* e^-a^2 times a polynomial in (a - 3) / (a + 3) over 1 + 2 a, a = |x|, error 2^-37. */
float math_erfc_f32(float x) {
  double a = math_bound(__builtin_fabs((double)x), 0, 10.1), t = (a - 3) / (a + 3), p = 0x1.4d79e7a7dada6p-23;
  p = p * t - 0x1.25b8bf9bb5103p-18;
  p = p * t - 0x1.42f5b4f5ee61ep-16;
  p = p * t + 0x1.1cb89a1f48755p-17;
  p = p * t + 0x1.0886d1ae68adfp-13;
  p = p * t - 0x1.be44718f3419ap-14;
  p = p * t - 0x1.9931ba43c253dp-11;
  p = p * t + 0x1.ef28f3f837476p-10;
  p = p * t + 0x1.4b8d315ea26ebp-9;
  p = p * t - 0x1.8574d20285f9bp-6;
  p = p * t + 0x1.17ca24670c564p-4;
  p = p * t - 0x1.e88b802afaf2fp-4;
  p = p * t + 0x1.098366bcc1c55p-3;
  p = p * t - 0x1.85a15c58273f3p-5;
  p = p * t - 0x1.15c084bbe9eccp-3;
  p = p * t + 0x1.40c522d7e4915p+0;
  double v = p * math_exp_narrow(-a * a) / (1 + 2 * a);
  return (float)(x < 0 ? 2 - v : v);
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
