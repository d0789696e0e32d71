/* Conversions of arrays between all pairs of element types, and of single elements.
 *
 * The native types are those of C: pred and the integers of 8 to 64 bits, f32, f64. Every other type has a native one
 * next to it that holds all its values: f32 for the narrow floats, s8 and u8 for the integers of 1 to 4 bits, the real
 * part's type for complex numbers. There is a loop for every pair of native types, and one each way between another
 * type and its native one; a conversion is a route of up to three of them: from bf16 to s4 by way of f32 and s8. */
#include <assert.h>
#include <string.h>

#include "../dtype.h"
#include "narrow_float.h"

/* Converts n elements. dst and src may be unaligned but not overlap. */
typedef void (*convert_loop)(void *restrict dst, const void *restrict src, size_t n);

/* Element types at any address, whatever else is accessed there: callers hand over bytes of files and of NumPy views.
 */
#define LOOSE __attribute__((aligned(1), may_alias))
typedef uint8_t LOOSE loose_u8;
typedef int8_t LOOSE loose_s8;
typedef uint16_t LOOSE loose_u16;
typedef int16_t LOOSE loose_s16;
typedef uint32_t LOOSE loose_u32;
typedef int32_t LOOSE loose_s32;
typedef uint64_t LOOSE loose_u64;
typedef int64_t LOOSE loose_s64;
typedef float LOOSE loose_f32;
typedef double LOOSE loose_f64;
#undef LOOSE

/* --- between f32 and f16 by the processor's own instructions ---
 *
 * The bits are those of base_narrow_encode and base_narrow_decode: the instructions differ from them in the payloads of
 * NaNs alone, so these are done one by one. */
#if defined(__x86_64__)
#include <immintrin.h>

/* XLAC_F16's row of dtypes.def. */
static const base_narrow half_facts = {10, 15, 15, 0x7BFF, 0x7C00, 0x7E00, true, true};

static uint16_t half_of(float v) {
  return (uint16_t)base_narrow_encode(half_facts, v);
}

__attribute__((target("avx2,f16c"))) static void narrow_half(void *restrict dst, const void *restrict src, size_t n) {
  const char *from = src;
  char *to = dst;
  for (; n >= 8; n -= 8, from += 32, to += 16) {
    __m256 v = _mm256_loadu_ps((const float *)(const void *)from);
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)to, h);
    unsigned nans = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    for (; nans; nans &= nans - 1) {
      float one;
      unsigned i = (unsigned)__builtin_ctz(nans);
      memcpy(&one, from + 4 * i, sizeof one);
      uint16_t bits = half_of(one);
      memcpy(to + 2 * i, &bits, sizeof bits);
    }
  }
  for (; n; n--, from += 4, to += 2) {
    float one;
    memcpy(&one, from, sizeof one);
    uint16_t bits = half_of(one);
    memcpy(to, &bits, sizeof bits);
  }
}

__attribute__((target("avx2,f16c"))) static void widen_half(void *restrict dst, const void *restrict src, size_t n) {
  const loose_u16 *from = src;
  loose_f32 *to = dst;
  for (; n >= 8; n -= 8, from += 8, to += 8) {
    __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
    _mm256_storeu_ps((float *)(void *)to, v);
    unsigned nans = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    for (; nans; nans &= nans - 1) {
      unsigned i = (unsigned)__builtin_ctz(nans);
      to[i] = base_narrow_decode(half_facts, from[i]);
    }
  }
  for (; n; n--) *to++ = base_narrow_decode(half_facts, *from++);
}

/* Between f32 and f16 in vector instructions, or NULL where the processor has none for it. */
static convert_loop find_half_loop(bool widen) {
  /* Not base_isa_best: this is asked while programs run, when others may change the environment; the bits are the same.
   */
  return __builtin_cpu_supports("avx2") ? widen ? widen_half : narrow_half : NULL; /* F16C came before AVX2 */
}
#else
static convert_loop find_half_loop(bool widen) {
  (void)widen;
  return NULL;
}
#endif

/* --- between other types and their native ones --- */
#define LOOP(name, S, D, value)                                              \
  static void name(void *restrict dst, const void *restrict src, size_t n) { \
    const loose_##S *s = src;                                                \
    loose_##D *d = dst;                                                      \
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

/* v kept between least and most. */
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
    const loose_##part *s = src;                                                      \
    loose_##part *d = dst;                                                            \
    for (size_t i = 0; i < n; ++i) d[2 * i] = s[i], d[2 * i + 1] = 0;                 \
  }
COMPLEX_LOOPS(C64, f32)
COMPLEX_LOOPS(C128, f64)

LOOP(odd_F64, f64, f32, base_f32_odd(s[i]))
LOOP(odd_U32, u32, f32, base_f32_odd((double)s[i]))
LOOP(odd_S32, s32, f32, base_f32_odd((double)s[i]))
LOOP(odd_U64, u64, f32, base_f32_odd(base_f64_odd(s[i])))
/* Rounded to odd twice, which is as once: 64 bits to f64's 53, then to f32's 24. */
static inline float odd_f32_of_s64(int64_t v) {
  float magnitude = base_f32_odd(base_f64_odd(v < 0 ? 0 - (uint64_t)v : (uint64_t)v));
  return v < 0 ? -magnitude : magnitude;
}
LOOP(odd_S64, s64, f32, odd_f32_of_s64(s[i]))

/* `wrap` and `clamp` differ for integers alone. */
typedef struct narrow_loops {
  convert_loop widen, wrap, clamp;
} narrow_loops;

/* Native types have none. */
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

/* From t to its native type; NULL for native types. */
static convert_loop find_widen_loop(base_dtype t) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  convert_loop half = t == XLAC_F16 ? find_half_loop(true) : NULL;
  return half ? half : loops_of[t].widen;
}

/* From t's native type to t; NULL for native types. `clamp`: an integer too wide for t gives t's nearest value (what a
 * float converts to), not its low bits (what an integer does). */
static convert_loop find_narrow_loop(base_dtype t, bool clamp) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  convert_loop half = t == XLAC_F16 ? find_half_loop(false) : NULL;
  if (half) return half;
  return clamp ? loops_of[t].clamp : loops_of[t].wrap;
}

/* From a native type to f32, rounded to odd where f32 can't hold the value, so that narrowing the result rounds but
 * once. NULL where f32 always can. */
static convert_loop find_odd_loop(base_dtype from) {
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

/* All pairs of native types. A row is a source type; LOOP(from, from's C type, to, to's C type, value of the element
 * v). */

/* --- between native types ---
 *
 * Nobody looks at the processor's floating-point flags, so that choices between floats may be blends of vectors. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

/* NaN becomes 0. */
static inline double clamped_f64(double v, double least, double most) {
  double c = v > least ? v : least;
  c = c < most ? c : most;
  return v == v ? c : 0;
}

/* The same where the limits are f32s: half the work for vectors. */
static inline float clamped_f32(float v, float least, float most) {
  float c = v > least ? v : least;
  c = c < most ? c : most;
  return v == v ? c : 0;
}

/* The largest s32 is not an f32, so what is past it is chosen afterwards. */
static inline int32_t saturated_s32_f32(float v) {
  float c = v < 0x1p31f ? v : 0; /* and NaN is 0 */
  int32_t r = (int32_t)(c > -0x1p31f ? c : -0x1p31f);
  return v >= 0x1p31f ? INT32_MAX : r;
}
static inline int32_t saturated_s32_f64(double v) {
  return (int32_t)clamped_f64(v, INT32_MIN, INT32_MAX);
}

/* The 64-bit limits are not f64s, so these compare with the powers of two beyond them. */
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
    const loose_##S *s = src;                                                                   \
    loose_##D *d = dst;                                                                         \
    for (size_t i = 0; i < n; ++i) {                                                            \
      __typeof__(LOAD_##from(s[i])) v = LOAD_##from(s[i]);                                      \
      d[i] = value;                                                                             \
    }                                                                                           \
  }

/* In two exact halves, so that their difference and sum round but once: each becomes the low bits of a power of two,
 * 2^84 and 2^52, which are taken away again. Vector units have no such conversion. */
static inline double f64_of_u64(uint64_t v) {
  uint64_t high = v >> 32 | 0x4530000000000000, low = (v & UINT32_MAX) | 0x4330000000000000;
  double most, least;
  memcpy(&most, &high, sizeof most);
  memcpy(&least, &low, sizeof least);
  return most - 0x1.00000001p84 + least;
}

/* What all source types have alike: to pred, f32 and f64. */
#define FLOAT_LOOPS(from, S)        \
  LOOP(from, S, PRED, u8, v != 0)   \
  LOOP(from, S, F32, f32, (float)v) \
  LOOP(from, S, F64, f64, _Generic(v, uint64_t: f64_of_u64((uint64_t)v), default: (double)v))

/* Integers wrap. */
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

/* Floats saturate; what is narrower than 32 bits goes by way of s32, which vector units have. */
#define FLOAT_ROW(from, S)                                                        \
  FLOAT_LOOPS(from, S)                                                            \
  LOOP(from, S, S8, s8, (int8_t)(int32_t)clamped_##S(v, INT8_MIN, INT8_MAX))      \
  LOOP(from, S, S16, s16, (int16_t)(int32_t)clamped_##S(v, INT16_MIN, INT16_MAX)) \
  LOOP(from, S, S32, s32, saturated_s32_##S(v))                                   \
  LOOP(from, S, S64, s64, saturated_s64(v))                                       \
  LOOP(from, S, U8, u8, (uint8_t)(int32_t)clamped_##S(v, 0, UINT8_MAX))           \
  LOOP(from, S, U16, u16, (uint16_t)(int32_t)clamped_##S(v, 0, UINT16_MAX))       \
  LOOP(from, S, U32, u32, (uint32_t)(int64_t)clamped_f64(v, 0, UINT32_MAX))       \
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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#define CELL(from, to) [XLAC_##to] = native_##from##_to_##to
#define ROW(from)                                                                                                    \
  [XLAC_##                                                                                                           \
      from] = {CELL(from, PRED), CELL(from, S8),  CELL(from, S16), CELL(from, S32), CELL(from, S64), CELL(from, U8), \
               CELL(from, U16),  CELL(from, U32), CELL(from, U64), CELL(from, F32), CELL(from, F64)}

static const convert_loop native_loops[BASE_DTYPE_COUNT][BASE_DTYPE_COUNT] = {
    ROW(PRED), ROW(S8), ROW(S16), ROW(S32), ROW(S64), ROW(U8), ROW(U16), ROW(U32), ROW(U64), ROW(F32), ROW(F64)};

/* Between native types, by value: to integers towards zero and saturating, NaN as 0. */
static convert_loop find_native_loop(base_dtype to, base_dtype from) {
  convert_loop loop = native_loops[from][to];
  assert(loop);
  return loop;
}

/* The native type next to t that holds t's values: t itself when it is native. */
static base_dtype nearest_native_type(base_dtype t) {
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

/* --- arrays --- */

/* A conversion is up to three loops: from the source type to its native type, to the target's native type, to the
 * target. One loop runs straight through; more of them work on a block that stays in the nearest cache. */

enum { BLOCK = 512 };

typedef struct stage {
  convert_loop loop;
  size_t bytes; /* of an element of its result */
} stage;

typedef struct route {
  stage stages[3];
  int n;
} route;

/* No loop, no stage: the types are the same there. */
static void add_stage(route *r, convert_loop loop, base_dtype result) {
  if (!loop) return;
  assert(r->n < 3);
  r->stages[r->n++] = (stage){loop, base_dtype_bytes(result)};
}

static bool is_narrow_float(base_dtype t) {
  return base_dtype_is_float(t) && base_dtype_of(t)->bits < 32;
}

/* A float that f32 can't hold goes to a narrow one by way of rounding to odd, lest it be rounded twice. */
static route find_route(base_dtype to, base_dtype from) {
  base_dtype near_from = nearest_native_type(from), near_to = nearest_native_type(to);
  route r = {.n = 0};
  add_stage(&r, find_widen_loop(from), near_from);
  convert_loop odd = is_narrow_float(to) ? find_odd_loop(near_from) : NULL;
  if (odd)
    add_stage(&r, odd, XLAC_F32);
  else if (near_from != near_to)
    add_stage(&r, find_native_loop(near_to, near_from), near_to);
  add_stage(&r, find_narrow_loop(to, base_dtype_is_float(near_from)), to);
  return r;
}

/* Two blocks take turns, and the last stage writes to dst. */
static void run_blocks(const route *r, char *dst, const char *src, size_t src_bytes, size_t n) {
  assert(r->n >= 2 && src_bytes > 0);
  _Alignas(64) char blocks[2][BLOCK * 8];
  size_t dst_bytes = r->stages[r->n - 1].bytes;
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t m = n - at < BLOCK ? n - at : BLOCK;
    const char *p = src + at * src_bytes;
    for (int i = 0; i < r->n; ++i) {
      char *q = i == r->n - 1 ? dst + at * dst_bytes : blocks[i];
      assert(i == r->n - 1 || r->stages[i].bytes <= 8);
      r->stages[i].loop(q, p, m);
      p = q;
    }
  }
}

/* Not zero in either part. */
static void complex_to_pred(char *dst, base_dtype from, const char *src, size_t n) {
  size_t bytes = base_dtype_bytes(from);
  base_dtype part = base_dtype_real_part(from);
  for (size_t i = 0; i < n; ++i) {
    uint8_t parts[2];
    find_native_loop(XLAC_PRED, part)(parts, src + i * bytes, 2);
    dst[i] = (char)(parts[0] | parts[1]);
  }
}

static bool is_complex(base_dtype t) {
  return base_dtype_of(t)->kind == BASE_KIND_COMPLEX;
}

void base_convert(base_dtype to, void *dst, base_dtype from, const void *src, size_t n) {
  assert(to > BASE_DTYPE_INVALID && to < BASE_DTYPE_COUNT && from > BASE_DTYPE_INVALID && from < BASE_DTYPE_COUNT);
  if (n == 0) return;
  if (to == from) {
    memmove(dst, src, n * base_dtype_bytes(to));
  } else if (is_complex(to) && is_complex(from)) {
    find_native_loop(base_dtype_real_part(to), base_dtype_real_part(from))(dst, src, 2 * n);
  } else if (is_complex(from) && to == XLAC_PRED) {
    complex_to_pred(dst, from, src, n);
  } else {
    route r = find_route(to, from);
    assert(r.n > 0);
    if (r.n == 1)
      r.stages[0].loop(dst, src, n);
    else
      run_blocks(&r, dst, src, base_dtype_bytes(from), n);
  }
}

/* One element's bits, from any address. */
static uint32_t load_code(const void *p, size_t bytes) {
  assert(bytes == 1 || bytes == 2 || bytes == 4);
  if (bytes == 1) return *(const loose_u8 *)p;
  return bytes == 2 ? *(const loose_u16 *)p : *(const loose_u32 *)p;
}

/* Narrow floats and f32 without the detour over loops: readers of literals come here for each element. */
double base_load_f64(base_dtype t, const void *p) {
  assert(p);
  if (base_dtype_is_float(t) && t != XLAC_F64) return base_float_to_f64(t, load_code(p, base_dtype_bytes(t)));
  double v;
  base_convert(XLAC_F64, &v, t, p, 1);
  return v;
}

int64_t base_load_i64(base_dtype t, const void *p) {
  int64_t v;
  base_convert(XLAC_S64, &v, t, p, 1);
  return v;
}

void base_store_f64(base_dtype t, void *p, double v) {
  base_convert(t, p, XLAC_F64, &v, 1);
}

void base_store_i64(base_dtype t, void *p, int64_t v) {
  base_convert(t, p, XLAC_S64, &v, 1);
}

/* --- single floats --- */

#define NARROW(name, text, bits, bytes, exponent, mantissa, bias, sign_bit, ...) \
  _Static_assert((mantissa) <= 10 && (bias) <= 127 && (sign_bit) <= 15, #name " does not fit in f32");
#include "../dtypes.def"

/* f32 itself comes through unchanged. */
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
