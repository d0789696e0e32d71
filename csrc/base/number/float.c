#include <assert.h>

#include "narrow_float.h"

#define NARROW(name, text, bits, bytes, exponent, mantissa, bias, sign_bit, ...) \
  _Static_assert((mantissa) <= 10 && (bias) <= 127 && (sign_bit) <= 15, #name " does not fit in f32");
#include "../dtypes.def"

float base_float_to_f32(base_dtype t, uint32_t bits) {
  assert(base_dtype_is_float(t) && t != XLAC_F64);
  switch (t) {
#define NARROW(name, text, bits_of, bytes, exponent, ...) \
  case XLAC_##name:                                       \
    return base_narrow_decode(BASE_NARROW(__VA_ARGS__), bits);
#include "../dtypes.def"
    case XLAC_F8E8M0FNU:
      return base_e8m0_decode(bits);
    default:
      return base_f32_of(bits);
  }
}

double base_float_to_f64(base_dtype t, uint32_t bits) {
  return (double)base_float_to_f32(t, bits);
}

uint32_t base_float_from_f32(base_dtype t, float v) {
  assert(base_dtype_is_float(t) && t != XLAC_F64);
  switch (t) {
#define NARROW(name, text, bits_of, bytes, exponent, ...) \
  case XLAC_##name:                                       \
    return base_narrow_encode(BASE_NARROW(__VA_ARGS__), v);
#include "../dtypes.def"
    case XLAC_F8E8M0FNU:
      return base_e8m0_encode(v);
    default:
      return base_f32_bits(v);
  }
}

uint32_t base_float_from_f64(base_dtype t, double v) {
  return base_float_from_f32(t, t == XLAC_F32 ? (float)v : base_f32_odd(v));
}
