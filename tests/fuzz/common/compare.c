/* Whether two engines gave the same. */
#include <math.h>

#include "fuzz.h"

/* The element as a double; for types that C lacks false. */
static bool to_double(const char *name, const uint8_t *p, double *out) {
  if (strcmp(name, "f64") == 0 || strcmp(name, "c128") == 0) {
    memcpy(out, p, 8);
    return true;
  }
  uint16_t half;
  uint32_t bits;
  float f;
  if (strcmp(name, "f32") == 0 || strcmp(name, "c64") == 0) {
    memcpy(&f, p, 4);
  } else if (strcmp(name, "bf16") == 0) {
    memcpy(&half, p, 2);
    bits = (uint32_t)half << 16;
    memcpy(&f, &bits, 4);
  } else if (strcmp(name, "f16") == 0) {
    memcpy(&half, p, 2);
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    *out = half >> 15 ? -v : v;
    return true;
  } else {
    return false;
  }
  *out = f;
  return true;
}

static double tolerance_of(const char *name) {
  if (strcmp(name, "f64") == 0 || strcmp(name, "c128") == 0) return 1e-9;
  return strcmp(name, "bf16") == 0 ? 0.06 : strcmp(name, "f16") == 0 ? 0.02 : 1e-3;
}

/* The greatest finite magnitude of both arrays: what sums that cancel are measured by. */
static double scale_of(const char *name, const uint8_t *a, const uint8_t *b, size_t n, uint32_t step) {
  double scale = 1e-30;
  for (size_t at = 0; at < n; at += step) {
    double x = 0, y = 0;
    to_double(name, a + at, &x);
    to_double(name, b + at, &y);
    if (isfinite(x) && isfinite(y)) scale = fmax(scale, fmax(fabs(x), fabs(y)));
  }
  return scale;
}

/* Narrow floats count as sign and magnitude; the next number is near enough, and so is NaN of another sign. */
static bool near_bits(uint8_t a, uint8_t b) {
  int x = a & 127, y = b & 127;
  if (x == y) return x == 127 || x == 0 || a == b;
  return (a >> 7) == (b >> 7) && abs(x - y) <= 2;
}

static const char *compare_floats(const char *name, const xlac_value_info *a, const xlac_value_info *b, uint32_t step) {
  const uint8_t *p = a->data, *q = b->data;
  double x, y, scale = scale_of(name, p, q, a->bytes, step), tolerance = tolerance_of(name);
  for (size_t at = 0; at < a->bytes; at += step) {
    if (!to_double(name, p + at, &x)) {
      if (!near_bits(p[at], q[at])) return "other narrow floats";
      continue;
    }
    to_double(name, q + at, &y);
    if (isnan(x) != isnan(y)) return "NaN in one only";
    if (isnan(x) || x == y) continue;
    if (isinf(x) || isinf(y)) return "an infinity in one only";
    if (fabs(x - y) > tolerance * scale) return "other floats";
  }
  return NULL;
}

/* An integer element as a double: near enough to compare by. */
static double integer_at(const uint8_t *p, uint32_t bytes, bool is_signed) {
  int64_t v = 0;
  memcpy(&v, p, bytes);
  unsigned unused = 64 - 8 * bytes;
  if (is_signed) return (double)((int64_t)((uint64_t)v << unused) >> unused);
  return (double)(uint64_t)v;
}

/* Integers that stand for quantised numbers: a step, or f32's rounding, apart. */
static const char *compare_steps(const xlac_value_info *a, const xlac_value_info *b, bool is_signed) {
  uint32_t step = xlac_dtype_bytes(a->dtype);
  const uint8_t *p = a->data, *q = b->data;
  double scale = 0;
  for (size_t at = 0; at < a->bytes; at += step) scale = fmax(scale, fabs(integer_at(p + at, step, is_signed)));
  for (size_t at = 0; at < a->bytes; at += step)
    if (fabs(integer_at(p + at, step, is_signed) - integer_at(q + at, step, is_signed)) > 1 + 1e-5 * scale)
      return "other integers, by more than a step";
  return NULL;
}

static const char *compare_arrays(const xlac_value_info *a, const xlac_value_info *b, fuzz_likeness how) {
  if (a->dtype != b->dtype) return "another element type";
  if (a->rank != b->rank) return "another rank";
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return "other dimensions";
  if (a->bytes != b->bytes) return "another number of bytes";
  if (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0) return NULL;
  const char *kind = xlac_dtype_kind(a->dtype), *name = xlac_dtype_text(a->dtype);
  bool complex_pair = strcmp(kind, "complex") == 0, is_signed = strcmp(kind, "sint") == 0;
  if (how == FUZZ_BITS) return "other bits";
  if (strcmp(kind, "float") == 0 || complex_pair)
    return compare_floats(name, a, b, xlac_dtype_bytes(a->dtype) / (complex_pair ? 2 : 1));
  bool steps = how == FUZZ_STEPS && (is_signed || strcmp(kind, "uint") == 0);
  return steps ? compare_steps(a, b, is_signed) : "other integers";
}

const char *fuzz_compare(const xlac_value *a, const xlac_value *b, fuzz_likeness how) {
  xlac_value_info x, y;
  xlac_value_get(a, &x);
  xlac_value_get(b, &y);
  if (x.kind != y.kind) return "another kind of value";
  if (x.kind == XLAC_VALUE_ARRAY) return compare_arrays(&x, &y, how);
  if (x.n_elements != y.n_elements) return "another number of elements";
  for (uint32_t i = 0; i < x.n_elements; i++) {
    const char *what = fuzz_compare(xlac_value_element(a, i), xlac_value_element(b, i), how);
    if (what) return what;
  }
  return NULL;
}

bool fuzz_is_finite(const xlac_value *v) {
  xlac_value_info x;
  double d;
  xlac_value_get(v, &x);
  const char *kind = x.kind == XLAC_VALUE_ARRAY ? xlac_dtype_kind(x.dtype) : "";
  if (strcmp(kind, "float") != 0 && strcmp(kind, "complex") != 0) return true;
  uint32_t step = xlac_dtype_bytes(x.dtype) / (kind[0] == 'c' ? 2 : 1);
  for (size_t at = 0; at < x.bytes; at += step)
    if (to_double(xlac_dtype_text(x.dtype), (const uint8_t *)x.data + at, &d) && !(fabs(d) < 1e15)) return false;
  return true;
}
