/* Numbers as text, parsed and printed; both go through decimal.h's exact conversions.
 *
 * Reading: the digits become w * 10^q with w of at most 19 digits; one 64 x 128 bit product with a power of five
 * (Eisel and Lemire's method) gives more than enough bits to round, and the rare number too near a half way is
 * compared exactly. Printing goes the same way back: one product gives N digits and nearly always enough behind them
 * to round as printf does. Exact comparisons are made with natural numbers of up to 3072 bits on the stack; nothing
 * here allocates or looks at the locale. */
#include <string.h>

#include "decimal.h"
#include "narrow_float.h"
#include "number.h"

/* --- reading ---
 *
 * Digits that fit in 64 bits whatever they are. */
enum { WORD_DIGITS = 19 };

/* A number as it stands in the text: "-12.50e3" is w 1250, q 1, last 1, negative. */
typedef struct decimal_text {
  uint64_t w;
  int64_t q;                /* of w */
  int64_t last;             /* of the text's last digit */
  bool negative, truncated; /* truncated: w lacks digits that are not all zero */
  const char *digits;       /* from the first digit to before the exponent, '.' among them */
  size_t n;
} decimal_text;

/* Above 9 for what is not a digit. */
static unsigned digit_at(const char *p) {
  return (unsigned char)(*p - '0');
}
static bool at_digit(const char *p, const char *end) {
  return p < end && digit_at(p) < 10;
}

/* All eight bytes are '0' to '9': adding 6 carries what is above 9 into the high nibble. */
static bool eight_digits(uint64_t v) {
  return ((v & (v + 0x0606060606060606u)) & 0xF0F0F0F0F0F0F0F0u) == 0x3030303030303030u;
}

/* Eight digits at once: pairs, then fours, then all, each step one multiplication for all lanes. */
static uint64_t eight_digit_value(uint64_t v) {
  v = (v & 0x0F0F0F0F0F0F0F0Fu) * ((10u << 8) + 1) >> 8;
  v = (v & 0x00FF00FF00FF00FFu) * ((100u << 16) + 1) >> 16;
  return (v & 0x0000FFFF0000FFFFu) * (((uint64_t)10000 << 32) + 1) >> 32;
}

/* Wraps beyond 64 bits; who cares counts the digits. */
static const char *take_digits(const char *p, const char *end, uint64_t *w) {
  uint64_t v = *w, eight;
  while (end - p >= 8) {
    memcpy(&eight, p, 8);
    if (!eight_digits(eight)) break;
    v = v * 100000000 + eight_digit_value(eight);
    p += 8;
  }
  for (; at_digit(p, end); ++p) v = v * 10 + digit_at(p);
  *w = v;
  return p;
}

/* No exponent where no digit follows the 'e': the number then ends before it. */
static const char *take_exponent(const char *p, const char *end, int64_t *exponent) {
  assert(exponent);
  const char *start = p;
  if (p == end || (*p != 'e' && *p != 'E')) return p;
  ++p;
  bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  if (!at_digit(p, end)) return start;
  int64_t v = 0;
  for (; at_digit(p, end); ++p)
    if (v < (int64_t)1 << 56)
      v = v * 10 + digit_at(p); /* as good as infinite, and added to a length it stays in range */
  *exponent = negative ? -v : v;
  return p;
}

/* Too many digits for w: takes the first 19 that count, and counts the others into q. */
static void retake_digits(decimal_text *d) {
  assert(d->n > 0);
  const char *p = d->digits, *end = p + d->n;
  while (p < end && (*p == '0' || *p == '.')) ++p;
  int taken = 0;
  d->w = 0;
  for (; p < end; ++p) {
    if (*p == '.') continue;
    if (taken < WORD_DIGITS) {
      d->w = d->w * 10 + digit_at(p);
      ++taken;
    } else {
      d->truncated |= *p != '0';
      d->q++;
    }
  }
}

/* NULL where there is no number at p. */
static const char *scan_decimal(const char *p, const char *end, decimal_text *d) {
  assert(d);
  *d = (decimal_text){.negative = p < end && *p == '-'};
  p += d->negative;
  d->digits = p;
  p = take_digits(p, end, &d->w);
  ptrdiff_t whole = p - d->digits, fraction = 0;
  if (whole == 0 && !(d->negative && p < end && *p == '.' && at_digit(p + 1, end))) return NULL;
  if (p < end && *p == '.') {
    const char *dot = p;
    p = take_digits(p + 1, end, &d->w);
    fraction = p - dot - 1;
  }
  d->n = (size_t)(p - d->digits);
  p = take_exponent(p, end, &d->q);
  d->last = d->q -= fraction;
  if (whole + fraction > WORD_DIGITS) retake_digits(d);
  return p;
}

/* A value rounded down to `bits` (as an unsigned float), m * 2^ulp, and what to think of the rest. */
typedef struct rounded_down {
  uint64_t bits, m;
  int ulp;
  base_half half;
} rounded_down;

/* Below the smallest normal number bits are dropped until the exponent is that of subnormals. */
__attribute__((always_inline)) static inline rounded_down round_down(base_scaled s, base_u128 slack, int mantissa,
                                                                     int bias) {
  int top = 126 + (int)(s.bits >> 127), e = top + s.exponent, least = 1 - bias;
  bool normal = e >= least;
  int drop = top - mantissa + (normal ? 0 : least - e);
  if (drop > 128) return (rounded_down){.half = BASE_BELOW_HALF};
  base_u128 one = 1, half = one << (drop - 1);
  uint64_t m = drop == 128 ? 0 : (uint64_t)(s.bits >> drop);
  rounded_down r = {m, m, (normal ? e : least) - mantissa, BASE_BELOW_HALF};
  if (normal) r.bits += (uint64_t)(e + bias - 1) << mantissa;
  r.half = base_half_of(s, s.bits & (half + (half - 1)), half, slack);
  return r;
}

/* Away from zero above half and, from odd, at half; beyond the largest finite value it is infinity. */
static uint64_t finish_rounding(rounded_down r, int mantissa, int bias) {
  assert(r.half != BASE_HALF_UNKNOWN);
  uint64_t infinity = (uint64_t)(2 * bias + 1) << mantissa;
  uint64_t bits = r.bits + (r.half == BASE_ABOVE_HALF || (r.half == BASE_HALF && r.bits & 1));
  return bits < infinity ? bits : infinity;
}

/* With the half way itself: (2m + 1) * 2^(ulp - 1). */
__attribute__((noinline)) static base_half compare_exactly(const decimal_text *d, rounded_down r) {
  uint64_t m = 2 * r.m + 1;
  if (!d->truncated) return (base_half)base_compare_decimal(d->w, (int)d->q, m, r.ulp - 1);
  return (base_half)base_compare_digits(d->digits, d->n, d->last, m, r.ulp - 1);
}

/* w * 10^q is 0 in an f64 below 10^-342 (w < 2^64), infinite from 10^309 (w >= 1). */
__attribute__((always_inline)) static inline uint64_t round_decimal(const decimal_text *d, int mantissa, int bias) {
  if (d->w == 0 || d->q < BASE_P5_FIRST) return 0;
  if (d->q > 308) return (uint64_t)(2 * bias + 1) << mantissa;
  base_u128 slack = d->truncated ? (base_u128)3 << (64 + __builtin_clzll(d->w)) : 2;
  rounded_down r = round_down(base_scale(d->w, (int)d->q), slack, mantissa, bias);
  if (__builtin_expect(r.half == BASE_HALF_UNKNOWN, 0)) r.half = compare_exactly(d, r);
  return finish_rounding(r, mantissa, bias);
}

/* The sign is the caller's. */
uint64_t base_round_f64(uint64_t d, int q) {
  return round_decimal(&(decimal_text){.w = d, .q = q}, 52, 1023);
}
uint32_t base_round_f32(uint64_t d, int q) {
  return (uint32_t)round_decimal(&(decimal_text){.w = d, .q = q}, 23, 127);
}

const char *base_parse_f64(const char *p, const char *end, double *out) {
  decimal_text d;
  p = scan_decimal(p, end, &d);
  if (p) *out = base_f64_of(round_decimal(&d, 52, 1023) | (uint64_t)d.negative << 63);
  return p;
}

const char *base_parse_f32(const char *p, const char *end, float *out) {
  decimal_text d;
  p = scan_decimal(p, end, &d);
  if (p) *out = base_f32_of((uint32_t)round_decimal(&d, 23, 127) | (uint32_t)d.negative << 31);
  return p;
}

/* NULL beyond 64 bits, and where there is no digit. */
static const char *parse_magnitude(const char *p, const char *end, uint64_t *out) {
  const char *start = p;
  uint64_t v = 0;
  p = take_digits(p, end, &v);
  if (p == start) return NULL;
  if (p - start > WORD_DIGITS) { /* v may have wrapped; and zeros in front do no harm */
    v = 0;
    for (const char *c = start; c < p; ++c)
      if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)digit_at(c), &v)) return NULL;
  }
  *out = v;
  return p;
}

/* INT64_MIN has one more than INT64_MAX. */
const char *base_parse_i64(const char *p, const char *end, int64_t *out) {
  bool negative = p < end && *p == '-';
  uint64_t v;
  p = parse_magnitude(p + negative, end, &v);
  if (!p || v > (uint64_t)INT64_MAX + negative) return NULL;
  *out = (int64_t)(negative ? 0 - v : v);
  return p;
}

/* -1 is UINT64_MAX, as XLA reads it; below INT64_MIN there is nothing to wrap. */
const char *base_parse_u64(const char *p, const char *end, uint64_t *out) {
  bool negative = p < end && *p == '-';
  uint64_t v;
  p = parse_magnitude(p + negative, end, &v);
  if (!p || (negative && v > (uint64_t)INT64_MAX + 1)) return NULL;
  *out = negative ? 0 - v : v;
  return p;
}

/* --- printing as C's "%.Ng" does, without it ---
 *
 * v = m * 2^e.
 *
 * v = m * 2^e. */
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

/* Of the magnitude, subnormals included. */
static binary_value split_double(double v) {
  uint64_t b = base_f64_bits(v) & INT64_MAX, m = b & (((uint64_t)1 << 52) - 1);
  int e = (int)(b >> 52);
  return e ? (binary_value){m | (uint64_t)1 << 52, e - 1075} : (binary_value){m, -1074};
}

/* 999.. rounded up has a digit too many: 1000.. with one dropped. */
static digit_run carry_digit(digit_run r, int n) {
  assert(n >= 1 && n <= 18);
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

/* Exactly n of them, zeros in front. */
static void write_digits(uint64_t v, int n, char *out) {
  assert(n >= 0 && n <= 20);
  for (char *p = out + n; n > 0; n -= 2, v /= 100) {
    const char *pair = two_digits + 2 * (v % 100);
    *--p = pair[1];
    if (n > 1) *--p = pair[0];
  }
}

/* At least two digits, as C does. */
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

/* v below 10^18. */
static char *put_integer(char *p, uint64_t v) {
  int n = 1;
  while (v >= small_powers10[n]) ++n;
  write_digits(v, n, p);
  return p + n;
}

/* What std::numeric_limits calls digits10 and max_digits10: floor(mantissa bits * log10(2)) and
 * ceil(1 + (mantissa bits + 1) * log10(2)). */
static int max_digits10(base_dtype t) {
  assert(base_dtype_is_float(t));
  return ((base_dtype_of(t)->mantissa_bits + 1) * 30103 + 199999) / 100000;
}

/* Whether the digits are enough to tell v from its neighbours. */
static bool reads_back(digit_run r, base_dtype t, double v) {
  double a = v < 0 ? -v : v;
  if (t == XLAC_F64) return base_round_f64(r.digits, r.q) == base_f64_bits(a);
  return base_round_f32(r.digits, r.q) == base_f32_bits((float)a);
}

/* Whole numbers that the digits hold are common, and printed as such. */
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

/* --- exact comparison: natural numbers of many bits ---
 *
 * 5^q for q from BASE_P5_FIRST on, 128 bits each, rounded down. */
const base_power5 base_powers5[] = {
#define P5(high, low) {high, low},
#include "powers_of_five.def"
#undef P5
};

/* A natural number of up to BIG_LIMBS * 64 bits; 771 digits or 5^1113 * 2^54 take 2640 of them. */
enum { BIG_LIMBS = 48, FIVES = 27 };
typedef struct big_number {
  uint32_t n;
  uint64_t limbs[BIG_LIMBS];
} big_number;

/* clang-format off */
static const uint64_t small_powers5[FIVES + 1] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u, 1220703125u,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
    476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u};
/* clang-format on */

/* b = b * factor + carry. */
static void multiply_add(big_number *b, uint64_t factor, uint64_t carry) {
  for (uint32_t i = 0; i < b->n; ++i) {
    base_u128 v = (base_u128)b->limbs[i] * factor + carry;
    b->limbs[i] = (uint64_t)v;
    carry = (uint64_t)(v >> 64);
  }
  if (!carry) return;
  assert(b->n < BIG_LIMBS);
  b->limbs[b->n++] = carry;
}

/* By 5^27 at a time, the largest that fits. */
static void multiply_power5(big_number *b, int64_t k) {
  assert(k >= 0);
  for (; k > FIVES; k -= FIVES) multiply_add(b, small_powers5[FIVES], 0);
  multiply_add(b, small_powers5[k], 0);
}

static void shift_left(big_number *b, int64_t k) {
  assert(b->n > 0 || k == 0);
  assert(k >= 0 && k < BIG_LIMBS * 64);
  uint32_t whole = (uint32_t)(k / 64);
  multiply_add(b, (uint64_t)1 << k % 64, 0);
  assert(b->n + whole <= BIG_LIMBS);
  memmove(b->limbs + whole, b->limbs, b->n * sizeof *b->limbs);
  memset(b->limbs, 0, whole * sizeof *b->limbs);
  b->n += whole;
}

/* Neither has leading zero limbs. */
static int compare_big(const big_number *a, const big_number *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  for (uint32_t i = a->n; i-- > 0;)
    if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
  return 0;
}

/* d * 10^q against m * 2^e: the fives go to the side that keeps both whole, and so do the twos. */
static int compare_scaled(big_number *d, int64_t q, uint64_t m, int e) {
  assert(d->n && m);
  big_number b = {.n = 1, .limbs = {m}};
  if (q >= 0)
    multiply_power5(d, q);
  else
    multiply_power5(&b, -q);
  if (q >= e)
    shift_left(d, q - e);
  else
    shift_left(&b, e - q);
  return compare_big(d, &b);
}

int base_compare_decimal(uint64_t d, int q, uint64_t m, int e) {
  assert(d > 0 && m > 0);
  big_number b = {.n = 1, .limbs = {d}};
  return compare_scaled(&b, q, m, e);
}

/* The first digits of a text, gathered by machine words. */
typedef struct digit_word {
  uint64_t value, scale;
} digit_word;

/* b = b * scale + value: one long multiplication for 19 digits. */
static void flush_word(big_number *b, digit_word *w) {
  multiply_add(b, w->scale, w->value);
  *w = (digit_word){0, 1};
}

static void append_digit(big_number *b, digit_word *w, unsigned digit) {
  assert(digit < 10);
  w->value = w->value * 10 + digit;
  w->scale *= 10;
  if (w->scale == 10000000000000000000u) flush_word(b, w);
}

/* Zeros in front don't count; beyond BASE_MAX_DIGITS digits only whether any is not zero. */
int base_compare_digits(const char *s, size_t n, int64_t q, uint64_t m, int e) {
  assert(m > 0);
  big_number b = {.n = 0};
  digit_word w = {0, 1};
  int taken = 0;
  bool more = false;
  for (const char *end = s + n; s < end; ++s) {
    unsigned digit = (unsigned char)(*s - '0');
    if (digit > 9 || (digit == 0 && taken == 0)) continue;
    if (taken < BASE_MAX_DIGITS) {
      append_digit(&b, &w, digit);
      ++taken;
    } else {
      more |= digit != 0;
      ++q;
    }
  }
  if (more) { /* any digit will do for a rest that is not zero */
    append_digit(&b, &w, 1);
    --q;
  }
  flush_word(&b, &w);
  return compare_scaled(&b, q, m, e);
}
