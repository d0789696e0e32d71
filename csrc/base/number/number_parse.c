#include "decimal.h"
#include "narrow_float.h"
#include "number.h"

/* Reading a number: its digits become w * 10^q with w of at most 19 digits, one 64 x 128 bit product with a power of
 * five gives more than enough bits to round, and the rare number too near a half way is compared exactly. */

enum { WORD_DIGITS = 19 };

typedef struct decimal_text {
  uint64_t w;
  int64_t q;                /* of w */
  int64_t last;             /* of the text's last digit */
  bool negative, truncated; /* truncated: w lacks digits that are not all zero */
  const char *digits;       /* from the first digit to before the exponent, '.' among them */
  size_t n;
} decimal_text;

static unsigned digit_at(const char *p) {
  return (unsigned char)(*p - '0');
}
static bool at_digit(const char *p, const char *end) {
  return p < end && digit_at(p) < 10;
}

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

static const char *take_exponent(const char *p, const char *end, int64_t *exponent) {
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

static const char *scan_decimal(const char *p, const char *end, decimal_text *d) {
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

const char *base_parse_i64(const char *p, const char *end, int64_t *out) {
  bool negative = p < end && *p == '-';
  uint64_t v;
  p = parse_magnitude(p + negative, end, &v);
  if (!p || v > (uint64_t)INT64_MAX + negative) return NULL;
  *out = (int64_t)(negative ? 0 - v : v);
  return p;
}

const char *base_parse_u64(const char *p, const char *end, uint64_t *out) {
  bool negative = p < end && *p == '-';
  uint64_t v;
  p = parse_magnitude(p + negative, end, &v);
  if (!p || (negative && v > (uint64_t)INT64_MAX + 1)) return NULL;
  *out = negative ? 0 - v : v;
  return p;
}
