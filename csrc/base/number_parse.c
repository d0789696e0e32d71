#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

static const char *skip_digits(const char *p, const char *end) {
  while (p < end && is_digit(*p)) ++p;
  return p;
}

static const char *skip_number(const char *p, const char *end) {
  if (p < end && *p == '-') ++p;
  const char *digits = p;
  p = skip_digits(p, end);
  if (p == digits) return NULL;
  if (p < end && *p == '.') p = skip_digits(p + 1, end);
  if (p == end || (*p != 'e' && *p != 'E')) return p;
  const char *e = p + 1;
  if (e < end && (*e == '-' || *e == '+')) ++e;
  return e < end && is_digit(*e) ? skip_digits(e, end) : p;
}

static char *copy_text(const char *p, size_t n, char *small, size_t room) {
  char *s = n < room ? small : malloc(n + 1);
  if (!s) return NULL;
  memcpy(s, p, n);
  s[n] = 0;
  return s;
}

const char *base_parse_f64(const char *p, const char *end, double *out) {
  const char *stop = skip_number(p, end);
  if (!stop) return NULL;
  char small[64], *s = copy_text(p, (size_t)(stop - p), small, sizeof small);
  if (!s) return NULL;
  *out = strtod(s, NULL);
  if (s != small) free(s);
  return stop;
}

const char *base_parse_f32(const char *p, const char *end, float *out) {
  const char *stop = skip_number(p, end);
  if (!stop) return NULL;
  char small[64], *s = copy_text(p, (size_t)(stop - p), small, sizeof small);
  if (!s) return NULL;
  *out = strtof(s, NULL);
  if (s != small) free(s);
  return stop;
}

static const char *parse_magnitude(const char *p, const char *end, uint64_t *out) {
  const char *start = p;
  uint64_t v = 0;
  for (; p < end && is_digit(*p); ++p)
    if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) return NULL;
  if (p == start) return NULL;
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
