/* Types against each other: dimensions, and which of two element types XLA keeps. */
#include "check.h"

bool ir_same_dims(const ir_type *a, const ir_type *b) {
  assert(ir_is_tensor(a) && ir_is_tensor(b));
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (!ir_sizes_fit(a->dims[i], b->dims[i])) return false;
  return true;
}

bool ir_same_dtype_or_float(base_dtype a, base_dtype b) {
  return a == b || (base_dtype_is_float(a) && base_dtype_is_float(b));
}

/* std::numeric_limits::max_exponent of a float type, for all that XLA has. */
static int64_t overflow_exponent(base_dtype t) {
  const base_dtype_info *f = base_dtype_of(t);
  assert(f->exponent_bits > 0 && f->exponent_bits < 16);
  int64_t top = (INT64_C(1) << f->exponent_bits) - 1;
  bool top_is_taken = base_float_has_inf(t) || (f->mantissa_bits == 0 && base_float_has_nan(t));
  return top - top_is_taken - f->bias + 1;
}

/* Orders element types: the one with the greater value is kept. */
static int64_t precision_order(base_dtype t) {
  base_dtype part = base_dtype_real_part(t);
  int64_t range = -1, digits = -1;
  if (base_dtype_is_float(part)) {
    range = overflow_exponent(part);
    digits = base_dtype_of(part)->mantissa_bits + 1;
  }
  int64_t order = base_dtype_is_complex(t);
  order = order * 4096 + range + 1;
  order = order * 128 + digits + 1;
  order = order * 256 + base_dtype_of(part)->bits;
  return order * 2 + base_dtype_is_signed(part);
}

base_dtype ir_higher_precision(base_dtype a, base_dtype b) {
  if (a == b) return a;
  int64_t x = precision_order(a), y = precision_order(b);
  return x > y ? a : y > x ? b : BASE_DTYPE_INVALID;
}
