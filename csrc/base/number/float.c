#include <assert.h>

#include "narrow_float.h"

#define NARROW(name, mantissa, bias, sign_bit, largest, overflow, nan, has_inf, has_negative_zero) \
  _Static_assert((mantissa) <= 10 && (bias) <= 127 && (sign_bit) <= 15, #name " does not fit in f32");
#include "narrow_floats.def"
#undef NARROW

float base_float_to_f32(base_dtype t, uint32_t bits) {
  assert(base_dtype_is_float(t) && t != XLAC_F64);
  switch (t) {
#define NARROW(name, ...) \
  case XLAC_##name:       \
    return base_narrow_decode((base_narrow){__VA_ARGS__}, bits);
#include "narrow_floats.def"
#undef NARROW
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
#define NARROW(name, ...) \
  case XLAC_##name:       \
    return base_narrow_encode((base_narrow){__VA_ARGS__}, v);
#include "narrow_floats.def"
#undef NARROW
    case XLAC_F8E8M0FNU:
      return base_e8m0_encode(v);
    default:
      return base_f32_bits(v);
  }
}

uint32_t base_float_from_f64(base_dtype t, double v) {
  return base_float_from_f32(t, t == XLAC_F32 ? (float)v : base_f32_odd(v));
}
