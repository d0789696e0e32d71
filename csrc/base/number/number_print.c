#include "decimal.h"
#include "narrow_float.h"
#include "number.h"

/* Printing as C's "%.Ng" does, without it: one 64 x 128 bit product gives N digits and nearly always enough behind them
 * to round; a value too near a half way is compared exactly. */

/* v = m * 2^e. */
typedef struct binary_value {
  uint64_t m;
  int e;
} binary_value;

/* digits * 10^q, of a fixed number of digits. */
typedef struct digit_run {
  uint64_t digits;
  int q;
} digit_run;

/* clang-format off */
static const uint64_t small_powers10[] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u, 100000000000u,
    1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u, 100000000000000000u,
    1000000000000000000u};

static const char two_digits[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
/* clang-format on */

static binary_value split_double(double v) {
  uint64_t b = base_f64_bits(v) & INT64_MAX, m = b & (((uint64_t)1 << 52) - 1);
  int e = (int)(b >> 52);
  return e ? (binary_value){m | (uint64_t)1 << 52, e - 1075} : (binary_value){m, -1074};
}

static digit_run carry_digit(digit_run r, int n) {
  if (r.digits < small_powers10[n]) return r;
  return (digit_run){small_powers10[n - 1], r.q + 1};
}

/* The first n digits of v, what follows dropped; but for what follows being within 2^-60 or so of one, when the next
 * number may be the right one. *unit is what the last digit stands for in s->bits. */
static digit_run first_digits(binary_value v, int n, base_scaled *s, base_u128 *unit) {
  assert(v.m && n >= 1 && n <= 18);
  int log2 = v.e + 63 - __builtin_clzll(v.m);
  int log10 = log2 * 78913 >> 18; /* the floor of v's log10, or one less */
  int up = n - 1 - log10;
  *s = base_scale(v.m, up);
  int point = -(s->exponent + v.e); /* where the binary point is in s->bits */
  assert(point > 64 && point < 128);
  *unit = (base_u128)1 << point;
  digit_run r = {(uint64_t)(s->bits >> point), -up};
  if (r.digits >= small_powers10[n]) { /* log10 was one less: the last digit goes with the fraction */
    r.digits /= 10;
    r.q++;
    *unit *= 10;
  }
  return r;
}

/* The n digits nearest to v, halves to even, as printf does. */
static digit_run round_to_digits(binary_value v, int n) {
  base_scaled s;
  base_u128 unit;
  digit_run r = first_digits(v, n, &s, &unit);
  base_half half = base_half_of(s, s.bits - unit * r.digits, unit / 2, 2);
  if (half == BASE_HALF_UNKNOWN) /* r + 1/2 against v */
    half = (base_half)-base_compare_decimal(r.digits * 10 + 5, r.q - 1, v.m, v.e);
  r.digits += half == BASE_ABOVE_HALF || (half == BASE_HALF && r.digits & 1);
  return carry_digit(r, n);
}

uint64_t base_first_digits(uint64_t m, int e, int n, int *q) {
  base_scaled s;
  base_u128 unit;
  digit_run r = first_digits((binary_value){m, e}, n, &s, &unit);
  bool near = !s.exact && unit * (r.digits + 1) - s.bits <= 2; /* the product is low by less than 2 */
  if (near && base_compare_decimal(r.digits + 1, r.q, m, e) <= 0) r.digits++;
  r = carry_digit(r, n);
  *q = r.q;
  return r.digits;
}

static void write_digits(uint64_t v, int n, char *out) {
  for (char *p = out + n; n > 0; n -= 2, v /= 100) {
    const char *pair = two_digits + 2 * (v % 100);
    *--p = pair[1];
    if (n > 1) *--p = pair[0];
  }
}

static char *put_exponent(char *p, int x) {
  *p++ = 'e';
  *p++ = x < 0 ? '-' : '+';
  unsigned a = (unsigned)(x < 0 ? -x : x);
  if (a >= 100) *p++ = (char)('0' + a / 100);
  memcpy(p, two_digits + 2 * (a % 100), 2);
  return p + 2;
}

/* "%g" from the digits: fixed for exponents from -4 to n - 1, no zeros at the end of a fraction. */
static char *put_general(char *p, digit_run r, int n) {
  char digits[20] = {0};
  write_digits(r.digits, n, digits);
  int kept = n, x = r.q + n - 1;
  while (kept > 1 && digits[kept - 1] == '0') --kept;
  bool fixed = x >= -4 && x < n;
  if (fixed && x < 0) {
    memcpy(p, "0.000", 5);
    p += 1 - x;
    memcpy(p, digits, (size_t)kept);
    return p + kept;
  }
  int whole = fixed ? x + 1 : 1;
  memcpy(p, digits, (size_t)whole);
  p += whole;
  if (kept > whole) {
    *p++ = '.';
    memcpy(p, digits + whole, (size_t)(kept - whole));
    p += kept - whole;
  }
  return fixed ? p : put_exponent(p, x);
}

static char *put_integer(char *p, uint64_t v) {
  int n = 1;
  while (v >= small_powers10[n]) ++n;
  write_digits(v, n, p);
  return p + n;
}

/* What std::numeric_limits calls digits10 and max_digits10: floor(mantissa bits * log10(2)) and
 * ceil(1 + (mantissa bits + 1) * log10(2)). */
static int max_digits10(base_dtype t) {
  return ((base_dtype_of(t)->mantissa_bits + 1) * 30103 + 199999) / 100000;
}

static bool reads_back(digit_run r, base_dtype t, double v) {
  double a = v < 0 ? -v : v;
  if (t == XLAC_F64) return base_round_f64(r.digits, r.q) == base_f64_bits(a);
  return base_round_f32(r.digits, r.q) == base_f32_bits((float)a);
}

static char *put_finite(char *p, base_dtype t, double v) {
  int most = max_digits10(t), few = t == XLAC_F64 ? 15 : t == XLAC_F32 ? 6 : most;
  double a = v < 0 ? -v : v;
  if (base_f64_bits(v) >> 63) *p++ = '-';
  if (a < (double)small_powers10[few] && (double)(uint64_t)a == a) return put_integer(p, (uint64_t)a);
  digit_run r = round_to_digits(split_double(v), few);
  if (few == most || reads_back(r, t, v)) return put_general(p, r, few);
  return put_general(p, round_to_digits(split_double(v), most), most);
}

/* "nan", with its payload where the type has room for one and it is not the usual, the highest bit. */
static char *put_nan(char *p, base_dtype t, uint64_t bits) {
  const base_dtype_info *f = base_dtype_of(t);
  if (base_float_is_signed(t) && bits >> (f->bits - 1) & 1) *p++ = '-';
  memcpy(p, "nan", 3);
  p += 3;
  uint64_t payload = bits & (((uint64_t)1 << f->mantissa_bits) - 1);
  if (!base_float_has_inf(t) || payload == (uint64_t)1 << (f->mantissa_bits - 1)) return p;
  memcpy(p, "(0x", 3);
  p += 3;
  int nibbles = (67 - __builtin_clzll(payload)) / 4;
  while (nibbles-- > 0) *p++ = "0123456789abcdef"[payload >> (4 * nibbles) & 15];
  *p++ = ')';
  return p;
}

size_t base_print_float(base_dtype t, uint64_t bits, char out[32]) {
  assert(base_dtype_is_float(t));
  double v = t == XLAC_F64 ? base_f64_of(bits) : base_float_to_f64(t, (uint32_t)bits);
  char *p = out;
  if (v != v) {
    p = put_nan(p, t, bits);
  } else if (v - v != 0) {
    memcpy(p, v < 0 ? "-inf" : "inf", 4);
    p += v < 0 ? 4 : 3;
  } else {
    p = put_finite(p, t, v);
  }
  assert(p - out < 32);
  return (size_t)(p - out);
}
