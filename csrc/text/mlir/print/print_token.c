/* The small pieces of MLIR text: numbers, strings, names and symbols.
 *
 * Floats are printed with six digits and an exponent where that reads back as the same number, else with as many
 * digits as tell all numbers of the type apart, else as their bits:
 *   1.500000e+00      0.1 of f64: 1.000000e-01      1/3 of f64: 0.33333333333333331      NaN of f32: 0x7FC00000
 * MLIR prints through LLVM's APFloat::toString, whose rounding is not quite that of printf: it cuts the decimal
 * expansion to a number of digits by way of bits first, and rounds halves up. mprint_dropped and mprint_round do as
 * it does. */
#include <math.h>

#include "../../../base/number/decimal.h"
#include "../../../base/number/number.h"
#include "print.h"

/* digits * 10^q */
typedef struct mprint_decimal {
  uint64_t digits;
  int q;
} mprint_decimal;

/* The sign of a zero is in the bits only. */
static uint64_t mprint_f64_bits(double v) {
  uint64_t b;
  memcpy(&b, &v, sizeof b);
  return b;
}

/* How many decimal digits LLVM drops unseen before it rounds to n digits: it cuts the integer m * 5^-e (m odd; or m
 * * 2^e), a number of so many bits, down to about n digits first. 59/196 stands for log10(2) in APFloat, and 196/59
 * for its inverse. */
static int mprint_dropped(uint64_t m, int e, int n) {
  int zeros = __builtin_ctzll(m), want = (n * 196 + 58) / 59;
  double odd = log2((double)(m >> zeros)); /* exact enough: 1e-12 and the sum is never that near a whole */
  e += zeros;
  int bits = (int)(odd + (e < 0 ? -e * 2.32192809488736234787 : e)) + 1;
  return bits <= want ? 0 : (bits - want) * 59 / 196;
}

/* n digits of v > 0 as LLVM gives them: the next digit, if it is still there, rounds halves up. */
static mprint_decimal mprint_round(double v, int n) {
  assert(v > 0 && n > 0);
  uint64_t b = mprint_f64_bits(v), m = b & (((uint64_t)1 << 52) - 1);
  int e = (int)(b >> 52 & 2047);
  m = e ? m | (uint64_t)1 << 52 : m;
  e = e ? e - 1075 : -1074;
  mprint_decimal d;
  d.digits = base_first_digits(m, e, n + 1, &d.q);
  int lowest = e + __builtin_ctzll(m); /* the power of ten of the integer's last digit, where negative */
  int first_left = (lowest < 0 ? lowest : 0) + mprint_dropped(m, e, n);
  bool seen = first_left <= d.q;
  d.digits = (d.digits + (seen ? 5 : 0)) / 10;
  d.q++;
  return d;
}

/* Whether the digits mean v again when they are read as type t. */
static bool mprint_reads_back(mprint_decimal d, base_dtype t, double v) {
  if (t == XLAC_F64) return base_round_f64(d.digits, d.q) == mprint_f64_bits(v);
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (t == XLAC_F32) return base_round_f32(d.digits, d.q) == bits;
  uint64_t near = base_round_f64(d.digits, d.q);
  double back;
  memcpy(&back, &near, sizeof back);
  return base_float_from_f64(t, back) == base_float_from_f64(t, v);
}

/* Returns how many digits there are, without a terminator. */
static int mprint_digits_of(uint64_t v, char out[20]) {
  int n = 0;
  char back[20];
  do {
    back[n++] = (char)('0' + v % 10);
    v /= 10;
  } while (v);
  for (int i = 0; i < n; i++) out[i] = back[n - 1 - i];
  return n;
}

/* 1.234560e+07: six digits and a zero. */
static void mprint_scientific6(base_text *o, mprint_decimal d) {
  char s[20];
  int n = mprint_digits_of(d.digits, s), x = d.q + n - 1; /* n is 7 where 9s were rounded up */
  assert(n == 6 || n == 7);
  base_putc(o, s[0]);
  base_putc(o, '.');
  base_put(o, s + 1, 5);
  BASE_PUT(o, "0e");
  base_putc(o, x < 0 ? '-' : '+');
  unsigned a = (unsigned)(x < 0 ? -x : x);
  if (a < 10) base_putc(o, '0');
  base_put_u64(o, a);
}

/*   1.5E+20   1.0E-7 */
static void mprint_scientific(base_text *o, const char *s, int n, int q) {
  assert(n > 0);
  int x = q + n - 1;
  base_putc(o, s[0]);
  base_putc(o, '.');
  if (n == 1) base_putc(o, '0');
  base_put(o, s + 1, (size_t)(n - 1));
  base_putc(o, 'E');
  base_putc(o, x < 0 ? '-' : '+');
  base_put_u64(o, (uint64_t)(x < 0 ? -x : x));
}

/* All digits, as LLVM's APFloat writes them by default; false, and nothing written, where that has no point. MLIR
 * would read digits without a point as an integer, so that such numbers are printed as bits. */
static bool mprint_long(base_text *o, mprint_decimal d, int precision, bool negative) {
  assert(d.digits > 0);
  enum { PADDING = 3 };
  while (d.digits % 10 == 0) {
    d.digits /= 10;
    d.q++;
  }
  char s[20];
  int n = mprint_digits_of(d.digits, s), top = d.q + n - 1; /* the power of the first digit */
  bool scientific = d.q >= 0 ? d.q > PADDING || n + d.q > precision : top < 0 && -top > PADDING;
  if (!scientific && d.q >= 0) return false;
  if (negative) base_putc(o, '-');
  if (scientific) {
    mprint_scientific(o, s, n, d.q);
    return true;
  }
  int whole = n + d.q;
  if (whole > 0) {
    base_put(o, s, (size_t)whole);
    base_putc(o, '.');
    base_put(o, s + whole, (size_t)(n - whole));
    return true;
  }
  BASE_PUT(o, "0.");
  for (int i = whole; i < 0; i++) base_putc(o, '0');
  base_put(o, s, (size_t)n);
  return true;
}

/* As MLIR writes floats:
 *
 *   1.000000e+00       six digits behind the point, where they read back as the same number
 *   0.333333343        as many digits as the type can need, where six do not
 *   0x7FC00000         infinities, NaN and what has no point, by their bits */
void mprint_float(base_text *o, base_dtype t, uint64_t bits, double v) {
  double a = v < 0 ? -v : v;
  bool negative = mprint_f64_bits(v) >> 63;
  if (a == 0) {
    base_puts(o, negative ? "-0.000000e+00" : "0.000000e+00");
    return;
  }
  if (a <= 1.7976931348623157e308) { /* neither infinite nor NaN */
    mprint_decimal d = mprint_round(a, 6);
    if (mprint_reads_back(d, t, a)) {
      if (negative) base_putc(o, '-');
      mprint_scientific6(o, d);
      return;
    }
    int precision = 2 + (base_dtype_of(t)->mantissa_bits + 1) * 59 / 196;
    if (mprint_long(o, mprint_round(a, precision), precision, negative)) return;
  }
  base_putf(o, "0x%llX", (unsigned long long)bits);
}

/* A double by its value alone. */
void mprint_f64(base_text *o, double v) {
  mprint_float(o, XLAC_F64, mprint_f64_bits(v), v);
}

/* An element's bytes as a number. */
static uint64_t mprint_load_bits(base_dtype t, const void *p) {
  uint64_t bits = 0;
  memcpy(&bits, p, base_dtype_bytes(t)); /* little-endian machines only, as all of xlac */
  return bits;
}

/* Complex numbers are (re,im) without a blank. */
void mprint_element(base_text *o, base_dtype t, const void *p) {
  const base_dtype_info *info = base_dtype_of(t);
  if (info->kind == BASE_KIND_PRED) {
    base_puts(o, *(const uint8_t *)p ? "true" : "false");
  } else if (info->kind == BASE_KIND_COMPLEX) {
    base_dtype part = base_dtype_real_part(t);
    base_putc(o, '(');
    mprint_element(o, part, p);
    base_putc(o, ',');
    mprint_element(o, part, (const char *)p + base_dtype_bytes(part));
    base_putc(o, ')');
  } else if (info->kind == BASE_KIND_FLOAT) {
    mprint_float(o, t, mprint_load_bits(t, p), base_load_f64(t, p));
  } else if (info->kind == BASE_KIND_UINT) {
    base_put_u64(o, (uint64_t)base_load_i64(t, p));
  } else {
    base_put_i64(o, base_load_i64(t, p));
  }
}

/* Appends in one piece: such texts are megabytes. */
void mprint_hex(base_text *o, const void *bytes, size_t n) {
  static const char digits[] = "0123456789ABCDEF";
  const uint8_t *b = bytes;
  size_t more;
  if (!base_mul(n, 2, &more) || (o->cap - o->n <= more && !base_text_grow(o, more))) return;
  char *p = o->s + o->n;
  for (size_t i = 0; i < n; i++) {
    *p++ = digits[b[i] >> 4];
    *p++ = digits[b[i] & 15];
  }
  o->n += more;
}

/* ---- Strings, names and symbols of MLIR text. */

/* Printable ASCII without quote and backslash. */
static bool mprint_plain_char(char c) {
  return (unsigned char)c >= 32 && (unsigned char)c < 127 && c != '"' && c != '\\';
}

/*   "a\0Ab\22c\\d"
 *
 * Runs of plain characters go at once; all others are a backslash and two hexadecimal digits, but for the backslash
 * itself. */
void mprint_quoted(base_text *o, const char *s, size_t n) {
  static const char digits[] = "0123456789ABCDEF";
  base_putc(o, '"');
  for (size_t i = 0, run; i < n; i += run) {
    for (run = 0; i + run < n && mprint_plain_char(s[i + run]);) run++;
    base_put(o, s + i, run);
    if (i + run == n) break;
    unsigned char c = (unsigned char)s[i + run++];
    base_putc(o, '\\');
    if (c == '\\') {
      base_putc(o, '\\');
    } else {
      base_putc(o, digits[c >> 4]);
      base_putc(o, digits[c & 15]);
    }
  }
  base_putc(o, '"');
}

/* What a bare identifier may begin with. */
static bool mprint_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Whether MLIR's parser takes the name without quotes. */
static bool mprint_is_bare(const char *s, size_t n) {
  if (n == 0 || !mprint_letter(s[0])) return false;
  for (size_t i = 1; i < n; i++)
    if (!mprint_letter(s[i]) && !(s[i] >= '0' && s[i] <= '9') && s[i] != '$' && s[i] != '.') return false;
  return true;
}

/*   name      "odd name" */
static void mprint_bare_or_quoted(base_text *o, const char *s, size_t n) {
  if (mprint_is_bare(s, n))
    base_put(o, s, n);
  else
    mprint_quoted(o, s, n);
}

void mprint_keyword(base_text *o, const base_istr *s) {
  mprint_bare_or_quoted(o, s->s, s->n);
}

/* An empty name can't be written; MLIR prints what says so. */
void mprint_symbol(base_text *o, const char *s, size_t n) {
  if (n == 0) {
    BASE_PUT(o, "@<<INVALID EMPTY SYMBOL>>");
    return;
  }
  base_putc(o, '@');
  mprint_bare_or_quoted(o, s, n);
}

/* In pieces of 32, since texts are printed with few. */
void mprint_spaces(mprint *p) {
  static const char blanks[] = "                                ";
  for (uint32_t n = p->indent; n;) {
    uint32_t some = n < sizeof blanks - 1 ? n : (uint32_t)sizeof blanks - 1;
    base_put(p->out, blanks, some);
    n -= some;
  }
}

void mprint_newline(mprint *p) {
  base_putc(p->out, '\n');
  mprint_spaces(p);
}
