/* The tiles of all types, for plain x86-64 (or any other CPU), AVX2 with FMA, and AVX-512: dot_kernel.h once for
 * each. Rows are as many as leave registers for two vectors of B and one number of A: 4 of 16 registers on any
 * CPU, 6 of 16 with AVX2, 12 of 32 with AVX-512. */
#include "../../base/isa/isa.h"
#include "dot_gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* An unaligned number of A. */
typedef float tile_f32 __attribute__((aligned(1), may_alias));
typedef double tile_f64 __attribute__((aligned(1), may_alias));
typedef uint32_t tile_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t tile_u64 __attribute__((aligned(1), may_alias));
typedef float tile_4f32 __attribute__((vector_size(16)));
typedef double tile_2f64 __attribute__((vector_size(16)));
typedef uint32_t tile_4u32 __attribute__((vector_size(16)));
typedef uint64_t tile_2u64 __attribute__((vector_size(16)));

#define TILE_READ(type, p) (*(const type *)(const void *)(p))

/* --- any CPU: 4 rows --- */
#define GEMM_TARGET
#define GEMM_EACH(X) X(0) X(1) X(2) X(3)
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_f32_any
#define GEMM_VEC tile_4f32
#define GEMM_SUM float
#define GEMM_SPREAD(p) (TILE_READ(tile_f32, p) - (tile_4f32){0})
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_f64_any
#define GEMM_VEC tile_2f64
#define GEMM_SUM double
#define GEMM_SPREAD(p) (TILE_READ(tile_f64, p) - (tile_2f64){0})
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s32_any
#define GEMM_VEC tile_4u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) (TILE_READ(tile_u32, p) - (tile_4u32){0})
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s64_any
#define GEMM_VEC tile_2u64
#define GEMM_SUM uint64_t
#define GEMM_SPREAD(p) (TILE_READ(tile_u64, p) - (tile_2u64){0})
#include "dot_kernel.h"

/* s + x[2i] * y[2i] + x[2i+1] * y[2i+1], x and y as 16-bit integers; wraps. */
static inline tile_4u32 tile_pairs(tile_4u32 s, tile_4u32 x, tile_4u32 y) {
#if defined(__x86_64__)
  return s + (tile_4u32)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
  typedef int32_t signed4 __attribute__((vector_size(16)));
  signed4 a = (signed4)x, b = (signed4)y;
  tile_4u32 low = (tile_4u32)((a << 16) >> 16) * (tile_4u32)((b << 16) >> 16);
  return s + low + (tile_4u32)(a >> 16) * (tile_4u32)(b >> 16);
#endif
}
#define GEMM_MADD tile_pairs
#define GEMM_NAME tile_pairs_any
#define GEMM_VEC tile_4u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) (TILE_READ(tile_u32, p) - (tile_4u32){0})
#include "dot_kernel.h"
#undef GEMM_TARGET
#undef GEMM_EACH

#if defined(__x86_64__)
/* Integers are unsigned, so that they wrap. */
typedef uint32_t tile_8u32 __attribute__((vector_size(32)));
typedef uint64_t tile_4u64 __attribute__((vector_size(32)));
typedef uint32_t tile_16u32 __attribute__((vector_size(64)));
typedef uint64_t tile_8u64 __attribute__((vector_size(64)));

/* --- AVX2: 6 rows --- */
#define GEMM_TARGET __attribute__((target("avx2,fma")))
#define GEMM_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define GEMM_MADD(s, x, y) _mm256_fmadd_ps(x, y, s)
#define GEMM_NAME tile_f32_avx2
#define GEMM_VEC __m256
#define GEMM_SUM float
#define GEMM_SPREAD(p) _mm256_set1_ps(TILE_READ(tile_f32, p))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) _mm256_fmadd_pd(x, y, s)
#define GEMM_NAME tile_f64_avx2
#define GEMM_VEC __m256d
#define GEMM_SUM double
#define GEMM_SPREAD(p) _mm256_set1_pd(TILE_READ(tile_f64, p))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s32_avx2
#define GEMM_VEC tile_8u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_8u32)_mm256_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s64_avx2
#define GEMM_VEC tile_4u64
#define GEMM_SUM uint64_t
#define GEMM_SPREAD(p) ((tile_4u64)_mm256_set1_epi64x((long long)TILE_READ(tile_u64, p)))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (tile_8u32)_mm256_madd_epi16((__m256i)(x), (__m256i)(y)))
#define GEMM_NAME tile_pairs_avx2
#define GEMM_VEC tile_8u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_8u32)_mm256_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#undef GEMM_TARGET
#undef GEMM_EACH

/* --- AVX-512: 12 rows --- */
#define GEMM_TARGET __attribute__((target("avx512f,avx512bw,avx512dq")))
#define GEMM_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define GEMM_MADD(s, x, y) _mm512_fmadd_ps(x, y, s)
#define GEMM_NAME tile_f32_avx512
#define GEMM_VEC __m512
#define GEMM_SUM float
#define GEMM_SPREAD(p) _mm512_set1_ps(TILE_READ(tile_f32, p))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) _mm512_fmadd_pd(x, y, s)
#define GEMM_NAME tile_f64_avx512
#define GEMM_VEC __m512d
#define GEMM_SUM double
#define GEMM_SPREAD(p) _mm512_set1_pd(TILE_READ(tile_f64, p))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s32_avx512
#define GEMM_VEC tile_16u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_16u32)_mm512_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (x) * (y))
#define GEMM_NAME tile_s64_avx512
#define GEMM_VEC tile_8u64
#define GEMM_SUM uint64_t
#define GEMM_SPREAD(p) ((tile_8u64)_mm512_set1_epi64((long long)TILE_READ(tile_u64, p)))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((s) + (tile_16u32)_mm512_madd_epi16((__m512i)(x), (__m512i)(y)))
#define GEMM_NAME tile_pairs_avx512
#define GEMM_VEC tile_16u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_16u32)_mm512_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#undef GEMM_TARGET
#define GEMM_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vnni")))
#define GEMM_MADD(s, x, y) ((tile_16u32)_mm512_dpwssd_epi32((__m512i)(s), (__m512i)(x), (__m512i)(y)))
#define GEMM_NAME tile_pairs_vnni
#define GEMM_VEC tile_16u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_16u32)_mm512_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#define GEMM_MADD(s, x, y) ((tile_16u32)_mm512_dpbusd_epi32((__m512i)(s), (__m512i)(x), (__m512i)(y)))
#define GEMM_NAME tile_bytes_vnni
#define GEMM_VEC tile_16u32
#define GEMM_SUM uint32_t
#define GEMM_SPREAD(p) ((tile_16u32)_mm512_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#undef GEMM_TARGET

/* Pairs of bf16, which are added to sums of f32 in the order of k. */
#define GEMM_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512bf16")))
#define GEMM_MADD(s, x, y) _mm512_dpbf16_ps(s, (__m512bh)(x), (__m512bh)(y))
#define GEMM_NAME tile_f32_bf16
#define GEMM_VEC __m512
#define GEMM_SUM float
#define GEMM_SPREAD(p) ((__m512)_mm512_set1_epi32((int)TILE_READ(tile_u32, p)))
#include "dot_kernel.h"
#undef GEMM_TARGET
#undef GEMM_EACH
#endif

enum { TILE_KINDS = 5, TILE_LEVELS = 4 };

/* By base_isa, then by type: f32, f64, s32, s64, pairs of 16 bits. {tile, rows, columns in lanes}. */
static const cpu_gemm_kernel tile_table[TILE_LEVELS][TILE_KINDS] = {
    {{tile_f32_any, 4, 8}, {tile_f64_any, 4, 4}, {tile_s32_any, 4, 8}, {tile_s64_any, 4, 4}, {tile_pairs_any, 4, 8}},
#if defined(__x86_64__)
    {{tile_f32_avx2, 6, 16},
     {tile_f64_avx2, 6, 8},
     {tile_s32_avx2, 6, 16},
     {tile_s64_avx2, 6, 8},
     {tile_pairs_avx2, 6, 16}},
    {{tile_f32_avx512, 12, 32},
     {tile_f64_avx512, 12, 16},
     {tile_s32_avx512, 12, 32},
     {tile_s64_avx512, 12, 16},
     {tile_pairs_avx512, 12, 32}},
    {{tile_f32_avx512, 12, 32},
     {tile_f64_avx512, 12, 16},
     {tile_s32_avx512, 12, 32},
     {tile_s64_avx512, 12, 16},
     {tile_pairs_vnni, 12, 32}},
#endif
};

static int tile_level(void) {
  assert((int)base_isa_best() < TILE_LEVELS);
  return (int)base_isa_best();
}

#if BASE_ISA_KNOWS_AMX
#define TILE_AMX(name) cpu_gemm_tile_amx_##name
#else
#define TILE_AMX(name) NULL
#endif
/* {NULL} where this CPU has none. */
static cpu_gemm_kernel tile_of_amx(cpu_gemm_tile *tile) {
  bool has = base_isa_narrow_products() == BASE_ISA_AMX;
  return has ? (cpu_gemm_kernel){tile, 32, 32} : (cpu_gemm_kernel){NULL, 0, 0};
}

cpu_gemm_kernel cpu_gemm_kernel_of(base_dtype t, bool pairs) {
  int kind = t == XLAC_F32 ? 0 : t == XLAC_F64 ? 1 : t == XLAC_S32 ? 2 : 3;
  assert(kind != 3 || t == XLAC_S64);
  assert(!pairs || t == XLAC_S32 || t == XLAC_F32);
#if defined(__x86_64__)
  if (pairs && t == XLAC_F32) {
    cpu_gemm_kernel amx = tile_of_amx(TILE_AMX(bf16));
    return amx.tile ? amx : (cpu_gemm_kernel){tile_f32_bf16, 12, 32};
  }
#endif
  return tile_table[tile_level()][pairs ? 4 : kind];
}

cpu_gemm_kernel cpu_gemm_kernel_of_bytes(bool a_signed, bool b_signed, bool *shifted) {
  static cpu_gemm_tile *const tiles[2][2] = {{TILE_AMX(uu), TILE_AMX(us)}, {TILE_AMX(su), TILE_AMX(ss)}};
  cpu_gemm_kernel k = tile_of_amx(tiles[a_signed][b_signed]);
  *shifted = false;
#if defined(__x86_64__)
  if (!k.tile && b_signed && base_isa_best() >= BASE_ISA_AVX512_VNNI) {
    *shifted = a_signed;
    return (cpu_gemm_kernel){tile_bytes_vnni, 12, 32};
  }
#endif
  return k;
}
