#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

/* floor(mantissa_bits * log10(2)) and ceil((mantissa_bits + 1) * log10(2) + 1): std::numeric_limits' digits10 and max_digits10. */
static int digits10_of(base_dtype t) { return base_dtype_of(t)->mantissa_bits * 30103 / 100000; }
static int max_digits10_of(base_dtype t) { return ((base_dtype_of(t)->mantissa_bits + 1) * 30103 + 199999) / 100000; }

static double value_of(base_dtype t, uint64_t bits) {
  double d;
  if (t != XLAC_F64) return base_float_to_f64(t, (uint32_t)bits);
  memcpy(&d, &bits, sizeof d);
  return d;
}

size_t base_print_float(base_dtype t, uint64_t bits, char out[32]) {
  assert(base_dtype_is_float(t));
  double v = value_of(t, bits);
  int n = snprintf(out, 32, "%.*g", digits10_of(t), v);
  double back = strtod(out, NULL);
  if (t != XLAC_F64) back = base_float_to_f64(t, base_float_from_f64(t, back));
  if (v == v && back != v) n = snprintf(out, 32, "%.*g", max_digits10_of(t), v);
  return (size_t)n;
}
