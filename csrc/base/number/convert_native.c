#include <assert.h>

#include "convert_loops.h"

/* All pairs of native types. A row is a source type; LOOP(from, from's C type, to, to's C type, value of the element
 * v). */

static inline double clamped(double v, double least, double most) {
  double c = v > least ? v : least;
  c = c < most ? c : most;
  return v == v ? c : 0;
}

/* The 64-bit limits are no f64s, so these compare with the powers of two beyond them. */
static inline int64_t saturated_s64(double v) {
  if (v >= 0x1p63) return INT64_MAX;
  if (v < -0x1p63) return INT64_MIN;
  return v == v ? (int64_t)v : 0;
}
static inline uint64_t saturated_u64(double v) {
  if (v >= 0x1p64) return UINT64_MAX;
  return v > 0 ? (uint64_t)v : 0;
}

#define LOOP(from, S, to, D, value)                                                             \
  static void native_##from##_to_##to(void *restrict dst, const void *restrict src, size_t n) { \
    const base_loose_##S *s = src;                                                              \
    base_loose_##D *d = dst;                                                                    \
    for (size_t i = 0; i < n; ++i) {                                                            \
      __typeof__(LOAD_##from(s[i])) v = LOAD_##from(s[i]);                                      \
      d[i] = value;                                                                             \
    }                                                                                           \
  }

#define FLOAT_LOOPS(from, S)        \
  LOOP(from, S, PRED, u8, v != 0)   \
  LOOP(from, S, F32, f32, (float)v) \
  LOOP(from, S, F64, f64, (double)v)

#define INTEGER_ROW(from, S)           \
  FLOAT_LOOPS(from, S)                 \
  LOOP(from, S, S8, s8, (int8_t)v)     \
  LOOP(from, S, S16, s16, (int16_t)v)  \
  LOOP(from, S, S32, s32, (int32_t)v)  \
  LOOP(from, S, S64, s64, (int64_t)v)  \
  LOOP(from, S, U8, u8, (uint8_t)v)    \
  LOOP(from, S, U16, u16, (uint16_t)v) \
  LOOP(from, S, U32, u32, (uint32_t)v) \
  LOOP(from, S, U64, u64, (uint64_t)v)

#define FLOAT_ROW(from, S)                                                    \
  FLOAT_LOOPS(from, S)                                                        \
  LOOP(from, S, S8, s8, (int8_t)(int32_t)clamped(v, INT8_MIN, INT8_MAX))      \
  LOOP(from, S, S16, s16, (int16_t)(int32_t)clamped(v, INT16_MIN, INT16_MAX)) \
  LOOP(from, S, S32, s32, (int32_t)clamped(v, INT32_MIN, INT32_MAX))          \
  LOOP(from, S, S64, s64, saturated_s64(v))                                   \
  LOOP(from, S, U8, u8, (uint8_t)(int32_t)clamped(v, 0, UINT8_MAX))           \
  LOOP(from, S, U16, u16, (uint16_t)(int32_t)clamped(v, 0, UINT16_MAX))       \
  LOOP(from, S, U32, u32, (uint32_t)(int64_t)clamped(v, 0, UINT32_MAX))       \
  LOOP(from, S, U64, u64, saturated_u64(v))

/* A pred is true if any of its bits is set. */
#define LOAD_PRED(v) ((uint8_t)((v) != 0))
#define LOAD_S8(v) ((int8_t)(v))
#define LOAD_S16(v) ((int16_t)(v))
#define LOAD_S32(v) ((int32_t)(v))
#define LOAD_S64(v) ((int64_t)(v))
#define LOAD_U8(v) ((uint8_t)(v))
#define LOAD_U16(v) ((uint16_t)(v))
#define LOAD_U32(v) ((uint32_t)(v))
#define LOAD_U64(v) ((uint64_t)(v))
#define LOAD_F32(v) ((float)(v))
#define LOAD_F64(v) ((double)(v))

INTEGER_ROW(PRED, u8)
INTEGER_ROW(S8, s8)
INTEGER_ROW(S16, s16)
INTEGER_ROW(S32, s32)
INTEGER_ROW(S64, s64)
INTEGER_ROW(U8, u8)
INTEGER_ROW(U16, u16)
INTEGER_ROW(U32, u32)
INTEGER_ROW(U64, u64)
FLOAT_ROW(F32, f32)
FLOAT_ROW(F64, f64)

#define CELL(from, to) [XLAC_##to] = native_##from##_to_##to
#define ROW(from)                                                                                                    \
  [XLAC_##                                                                                                           \
      from] = {CELL(from, PRED), CELL(from, S8),  CELL(from, S16), CELL(from, S32), CELL(from, S64), CELL(from, U8), \
               CELL(from, U16),  CELL(from, U32), CELL(from, U64), CELL(from, F32), CELL(from, F64)}

static const base_loop native_loops[BASE_DTYPE_COUNT][BASE_DTYPE_COUNT] = {
    ROW(PRED), ROW(S8), ROW(S16), ROW(S32), ROW(S64), ROW(U8), ROW(U16), ROW(U32), ROW(U64), ROW(F32), ROW(F64)};

base_loop base_native_loop(base_dtype to, base_dtype from) {
  base_loop loop = native_loops[from][to];
  assert(loop);
  return loop;
}

base_dtype base_native_type(base_dtype t) {
  const base_dtype_info *f = base_dtype_of(t);
  switch ((base_dtype_kind)f->kind) {
    case BASE_KIND_SINT:
      return f->bits < 8 ? XLAC_S8 : t;
    case BASE_KIND_UINT:
      return f->bits < 8 ? XLAC_U8 : t;
    case BASE_KIND_FLOAT:
      return f->bits < 32 ? XLAC_F32 : t;
    default:
      return base_dtype_real_part(t);
  }
}

#undef LOOP
#undef FLOAT_LOOPS
#undef INTEGER_ROW
#undef FLOAT_ROW
#undef CELL
#undef ROW
