#include <assert.h>

#include "convert_half.h"
#include "convert_loops.h"
#include "narrow_float.h"

#define LOOP(name, S, D, value)                                              \
  static void name(void *restrict dst, const void *restrict src, size_t n) { \
    const base_loose_##S *s = src;                                           \
    base_loose_##D *d = dst;                                                 \
    for (size_t i = 0; i < n; ++i) d[i] = value;                             \
  }

#define FLOAT_PAIR(name, U, decoded, encoded) \
  LOOP(widen_##name, U, f32, decoded)         \
  LOOP(narrow_##name, f32, U, encoded)

#define CODE_u8 uint8_t
#define CODE_u16 uint16_t
#define PAIR_OF(name, U, ...)                                             \
  FLOAT_PAIR(name, U, base_narrow_decode(BASE_NARROW(__VA_ARGS__), s[i]), \
             (CODE_##U)base_narrow_encode(BASE_NARROW(__VA_ARGS__), s[i]))
/* A row's sign bit says how wide its codes are. */
#define CODE_OF_3 u8
#define CODE_OF_5 u8
#define CODE_OF_7 u8
#define CODE_OF_15 u16
#define PAIR_WITH(name, U, ...) PAIR_OF(name, U, __VA_ARGS__)
#define NARROW(name, text, bits, bytes, exponent, mantissa, bias, sign_bit, ...) \
  PAIR_WITH(name, CODE_OF_##sign_bit, mantissa, bias, sign_bit, __VA_ARGS__)
#include "../dtypes.def"
FLOAT_PAIR(F8E8M0FNU, u8, base_e8m0_decode(s[i]), (uint8_t)base_e8m0_encode(s[i]))

static inline int at_least_most(int v, int least, int most) {
  return v < least ? least : v > most ? most : v;
}

/* In memory a narrow integer fills its byte, sign-extended; what is read is nonetheless its low bits. */
#define SIGNED_LOOPS(name, bits)                                                           \
  LOOP(wrap_##name, s8, s8, (int8_t)((int8_t)((uint8_t)s[i] << (8 - bits)) >> (8 - bits))) \
  LOOP(clamp_##name, s8, s8, (int8_t)at_least_most(s[i], -(1 << (bits - 1)), (1 << (bits - 1)) - 1))
#define UNSIGNED_LOOPS(name, bits)                    \
  LOOP(wrap_##name, u8, u8, s[i] & ((1 << bits) - 1)) \
  LOOP(clamp_##name, u8, u8, (uint8_t)at_least_most(s[i], 0, (1 << bits) - 1))
SIGNED_LOOPS(S1, 1)
SIGNED_LOOPS(S2, 2)
SIGNED_LOOPS(S4, 4)
UNSIGNED_LOOPS(U1, 1)
UNSIGNED_LOOPS(U2, 2)
UNSIGNED_LOOPS(U4, 4)

/* Complex numbers are pairs: the real part is taken, or given a zero beside it. */
#define COMPLEX_LOOPS(name, part)                                                     \
  LOOP(widen_##name, part, part, s[2 * i])                                            \
  static void narrow_##name(void *restrict dst, const void *restrict src, size_t n) { \
    const base_loose_##part *s = src;                                                 \
    base_loose_##part *d = dst;                                                       \
    for (size_t i = 0; i < n; ++i) d[2 * i] = s[i], d[2 * i + 1] = 0;                 \
  }
COMPLEX_LOOPS(C64, f32)
COMPLEX_LOOPS(C128, f64)

LOOP(odd_F64, f64, f32, base_f32_odd(s[i]))
LOOP(odd_U32, u32, f32, base_f32_odd((double)s[i]))
LOOP(odd_S32, s32, f32, base_f32_odd((double)s[i]))
LOOP(odd_U64, u64, f32, base_f32_odd(base_f64_odd(s[i])))
static inline float odd_f32_of_s64(int64_t v) {
  float magnitude = base_f32_odd(base_f64_odd(v < 0 ? 0 - (uint64_t)v : (uint64_t)v));
  return v < 0 ? -magnitude : magnitude;
}
LOOP(odd_S64, s64, f32, odd_f32_of_s64(s[i]))

typedef struct narrow_loops {
  base_loop widen, wrap, clamp;
} narrow_loops;

static const narrow_loops loops_of[BASE_DTYPE_COUNT] = {
#define NARROW(name, ...) [XLAC_##name] = {widen_##name, narrow_##name, narrow_##name},
#include "../dtypes.def"
    [XLAC_F8E8M0FNU] = {widen_F8E8M0FNU, narrow_F8E8M0FNU, narrow_F8E8M0FNU},
    [XLAC_S1] = {wrap_S1, wrap_S1, clamp_S1},
    [XLAC_S2] = {wrap_S2, wrap_S2, clamp_S2},
    [XLAC_S4] = {wrap_S4, wrap_S4, clamp_S4},
    [XLAC_U1] = {wrap_U1, wrap_U1, clamp_U1},
    [XLAC_U2] = {wrap_U2, wrap_U2, clamp_U2},
    [XLAC_U4] = {wrap_U4, wrap_U4, clamp_U4},
    [XLAC_C64] = {widen_C64, narrow_C64, narrow_C64},
    [XLAC_C128] = {widen_C128, narrow_C128, narrow_C128},
};

base_loop base_widen_loop(base_dtype t) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  return loops_of[t].widen;
}

base_loop base_narrow_loop(base_dtype t, bool clamp) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  base_loop half = t == XLAC_F16 ? base_narrow_half() : NULL;
  if (half) return half;
  return clamp ? loops_of[t].clamp : loops_of[t].wrap;
}

base_loop base_odd_loop(base_dtype from) {
  switch (from) {
    case XLAC_F64:
      return odd_F64;
    case XLAC_S32:
      return odd_S32;
    case XLAC_S64:
      return odd_S64;
    case XLAC_U32:
      return odd_U32;
    case XLAC_U64:
      return odd_U64;
    default:
      return NULL;
  }
}

#undef LOOP
#undef FLOAT_PAIR
#undef PAIR_OF
#undef PAIR_WITH
#undef SIGNED_LOOPS
#undef UNSIGNED_LOOPS
#undef COMPLEX_LOOPS
