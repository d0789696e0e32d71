/* Products with few rows, or with few terms in each sum: B is read once, as stored. Packing it would cost as much as
 * the product. Sums are over k in order where B's rows are read, by lanes of k (folded by halves) where its columns
 * are. */
#include "../../base/isa/isa.h"
#include "dot_gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
  THIN_PIECES = 8, /* of k, where B is large: its rows are then read whole, as the memory likes it */
  THIN_LARGE = 1 << 18,
  THIN_WIDE = 4096, /* columns at a time then */
  THIN_ROWS = 8,
  THIN_TERMS = 4,
  THIN_COLUMNS = 512,
  THIN_DOTS = 64,
  THIN_LEAST = 32,
  THIN_GRAIN = 1 << 17
};

/* A range of C: `rows` by `columns`, summed over k terms. Rows of x are x_line apart, those of `sums` line. */
typedef struct thin_task {
  const char *x, *b;
  int64_t rows, columns, k, x_line, line, step; /* step: of b along the dimension that is not contiguous, in elements */
  char *sums;
} thin_task;
typedef void thin_fn(const thin_task *t);

/* How an element of B becomes one of the type of sums. */
#define THIN_SAME(T, v) (v)
#define THIN_BF16(T, v) thin_bf16(v)
static inline float thin_bf16(uint16_t v) {
  uint32_t u = (uint32_t)v << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/* By rows of B: four or eight terms at a time, so that sums are loaded and stored once for them. LOAD(vector, from): a
 * vector's worth of B, widened. Nothing is fetched ahead: that many streams the CPU follows by itself, and to ask for
 * whole rows at once keeps it from reading the one that is needed. */
#define THIN_ROW_BEGIN(T, S)                                      \
  T *s = (T *)(void *)t->sums + i * t->line;                      \
  const T *x = (const T *)(const void *)t->x + i * t->x_line + p; \
  int64_t j = 0;
/* Four numbers of A, which stay in registers: the compiler can't know that sums don't lie there. */
#define THIN_FOUR(T, x, from) const T x##0 = (from)[0], x##1 = (from)[1], x##2 = (from)[2], x##3 = (from)[3];
#define THIN_ROW_ADD(v, x, b, MADD) \
  v = MADD(b##0, x##0, v);          \
  v = MADD(b##1, x##1, v);          \
  v = MADD(b##2, x##2, v);          \
  v = MADD(b##3, x##3, v);
#define THIN_ROW_LOAD(VEC, b, row, LOAD) \
  VEC b##0, b##1, b##2, b##3;            \
  LOAD(b##0, (row) + j);                 \
  LOAD(b##1, (row) + step + j);          \
  LOAD(b##2, (row) + 2 * step + j);      \
  LOAD(b##3, (row) + 3 * step + j);
/* One row, eight terms at a time: how many terms it took. */
#define THIN_BY_EIGHT(name, T, S, WIDE, VEC, LOAD, MADD, VEC_MADD, TARGET)                                     \
  TARGET static int64_t name##_eight(const thin_task *t) {                                                     \
    const int lanes = (int)(sizeof(VEC) / sizeof(T));                                                          \
    const int64_t step = t->step, whole = t->columns / lanes * lanes, terms = t->rows == 1 ? t->k / 8 * 8 : 0; \
    for (int64_t p = 0; p < terms; p += 8) {                                                                   \
      const S *row = (const S *)(const void *)t->b + p * step, *next = row + 4 * step;                         \
      const int64_t i = 0;                                                                                     \
      THIN_ROW_BEGIN(T, S)                                                                                     \
      THIN_FOUR(T, x, x)                                                                                       \
      THIN_FOUR(T, y, x + 4)                                                                                   \
      for (; j < whole; j += lanes) {                                                                          \
        VEC v;                                                                                                 \
        memcpy(&v, s + j, sizeof v);                                                                           \
        THIN_ROW_LOAD(VEC, b, row, LOAD)                                                                       \
        THIN_ROW_ADD(v, x, b, VEC_MADD)                                                                        \
        THIN_ROW_LOAD(VEC, c, next, LOAD)                                                                      \
        THIN_ROW_ADD(v, y, c, VEC_MADD)                                                                        \
        memcpy(s + j, &v, sizeof v);                                                                           \
      }                                                                                                        \
      for (; j < t->columns; j++)                                                                              \
        for (int64_t q = 0; q < 8; q++) s[j] = MADD(x[q], WIDE(T, row[q * step + j]), s[j]);                   \
    }                                                                                                          \
    return terms;                                                                                              \
  }
#define THIN_BY_ROWS(name, T, S, WIDE, VEC, LOAD, MADD, VEC_MADD, TARGET)                             \
  THIN_BY_EIGHT(name, T, S, WIDE, VEC, LOAD, MADD, VEC_MADD, TARGET)                                  \
  TARGET static void name(const thin_task *t) {                                                       \
    const int lanes = (int)(sizeof(VEC) / sizeof(T));                                                 \
    const int64_t step = t->step, whole = t->columns / lanes * lanes;                                 \
    for (int64_t i = 0; i < t->rows; i++)                                                             \
      memset(t->sums + (size_t)(i * t->line) * sizeof(T), 0, (size_t)t->columns * sizeof(T));         \
    for (int64_t p = name##_eight(t); p < t->k; p += 4) {                                             \
      const S *row = (const S *)(const void *)t->b + p * step;                                        \
      int64_t i = 0;                                                                                  \
      for (; i + 2 <= t->rows && p + 4 <= t->k; i += 2) { /* two rows share what they load of B */    \
        THIN_ROW_BEGIN(T, S)                                                                          \
        THIN_FOUR(T, x, x)                                                                            \
        THIN_FOUR(T, y, x + t->x_line)                                                                \
        for (; j < whole; j += lanes) {                                                               \
          VEC v, w;                                                                                   \
          memcpy(&v, s + j, sizeof v);                                                                \
          memcpy(&w, s + t->line + j, sizeof w);                                                      \
          THIN_ROW_LOAD(VEC, b, row, LOAD)                                                            \
          THIN_ROW_ADD(v, x, b, VEC_MADD)                                                             \
          THIN_ROW_ADD(w, y, b, VEC_MADD)                                                             \
          memcpy(s + j, &v, sizeof v);                                                                \
          memcpy(s + t->line + j, &w, sizeof w);                                                      \
        }                                                                                             \
        for (; j < t->columns; j++)                                                                   \
          for (int64_t q = 0; q < 4; q++) {                                                           \
            s[j] = MADD(x[q], WIDE(T, row[q * step + j]), s[j]);                                      \
            s[j + t->line] = MADD(x[q + t->x_line], WIDE(T, row[q * step + j]), s[j + t->line]);      \
          }                                                                                           \
      }                                                                                               \
      for (; i < t->rows && p + 4 <= t->k; i++) {                                                     \
        THIN_ROW_BEGIN(T, S)                                                                          \
        THIN_FOUR(T, x, x)                                                                            \
        for (; j < whole; j += lanes) {                                                               \
          VEC v;                                                                                      \
          memcpy(&v, s + j, sizeof v);                                                                \
          THIN_ROW_LOAD(VEC, b, row, LOAD)                                                            \
          THIN_ROW_ADD(v, x, b, VEC_MADD)                                                             \
          memcpy(s + j, &v, sizeof v);                                                                \
        }                                                                                             \
        for (; j < t->columns; j++)                                                                   \
          for (int64_t q = 0; q < 4; q++) s[j] = MADD(x[q], WIDE(T, row[q * step + j]), s[j]);        \
      }                                                                                               \
      for (; i < t->rows; i++) {                                                                      \
        THIN_ROW_BEGIN(T, S)                                                                          \
        for (; j < t->columns; j++)                                                                   \
          for (int64_t q = 0; p + q < t->k; q++) s[j] = MADD(x[q], WIDE(T, row[q * step + j]), s[j]); \
      }                                                                                               \
    }                                                                                                 \
  }

/* Few terms: lanes are the rows of A, which are turned for it, and each result is one sum in order. */
#define THIN_BY_FEW_TERMS(T, S, WIDE, MADD)                                                               \
  T turned[LANES][THIN_ROWS] = {{0}};                                                                     \
  for (int64_t i = 0; i < t->rows; i++)                                                                   \
    for (int64_t p = 0; p < t->k; p++) turned[p][i] = ((const T *)(const void *)t->x)[i * t->x_line + p]; \
  for (int64_t j = 0; j < t->columns; j++) {                                                              \
    const S *b = (const S *)(const void *)t->b + j * t->step;                                             \
    T s[THIN_ROWS] = {0};                                                                                 \
    for (int64_t p = 0; p < t->k; p++)                                                                    \
      for (int l = 0; l < THIN_ROWS; l++) s[l] = MADD(turned[p][l], WIDE(T, b[p]), s[l]);                 \
    for (int64_t i = 0; i < t->rows; i++) ((T *)(void *)t->sums)[i * t->line + j] = 0 + s[i];             \
  }

/* 32 partial sums of each result. */
#define THIN_BY_COLUMNS(name, T, S, WIDE, MADD, TARGET)                                   \
  TARGET static void name(const thin_task *t) {                                           \
    enum { LANES = 32 };                                                                  \
    if (t->k < LANES) {                                                                   \
      THIN_BY_FEW_TERMS(T, S, WIDE, MADD)                                                 \
      return;                                                                             \
    }                                                                                     \
    for (int64_t j = 0; j < t->columns; j++)                                              \
      for (int64_t i = 0; i < t->rows; i++) {                                             \
        const S *restrict b = (const S *)(const void *)t->b + j * t->step;                \
        const T *restrict x = (const T *)(const void *)t->x + i * t->x_line;              \
        T s[LANES] = {0}, rest = 0;                                                       \
        int64_t p = 0;                                                                    \
        for (; p + LANES <= t->k; p += LANES)                                             \
          for (int l = 0; l < LANES; l++) s[l] = MADD(x[p + l], WIDE(T, b[p + l]), s[l]); \
        for (; p < t->k; p++) rest = MADD(x[p], WIDE(T, b[p]), rest);                     \
        for (int half = LANES / 2; half > 0; half /= 2)                                   \
          for (int l = 0; l < half; l++) s[l] += s[l + half];                             \
        ((T *)(void *)t->sums)[i * t->line + j] = s[0] + rest;                            \
      }                                                                                   \
  }

/* One row of sums over a B in the cache: eight vectors of sums stay in registers through all terms, in order. */
#define THIN_ONE_ROW(name, T, VEC, LOAD, MADD, VEC_MADD, TARGET)                            \
  TARGET static void name(const thin_task *t) {                                             \
    enum { EACH = sizeof(VEC) / sizeof(T), N = 8 };                                         \
    const T *x = (const T *)(const void *)t->x, *b = (const T *)(const void *)t->b;         \
    T *to = (T *)(void *)t->sums;                                                           \
    int64_t j = 0, step = t->step, k = t->k, columns = t->columns;                          \
    for (; j + N * EACH <= columns; j += N * EACH) {                                        \
      VEC s[N], v;                                                                          \
      _Pragma("GCC unroll 8") for (int q = 0; q < N; q++) s[q] = (VEC){0};                  \
      for (int64_t p = 0; p < k; p++) _Pragma("GCC unroll 8") for (int q = 0; q < N; q++) { \
          LOAD(v, b + p * step + j + q * EACH);                                             \
          s[q] = VEC_MADD(v, x[p], s[q]);                                                   \
        }                                                                                   \
      memcpy(to + j, s, sizeof s);                                                          \
    }                                                                                       \
    for (; j + EACH <= columns; j += EACH) {                                                \
      VEC s = (VEC){0}, v;                                                                  \
      for (int64_t p = 0; p < k; p++) {                                                     \
        LOAD(v, b + p * step + j);                                                          \
        s = VEC_MADD(v, x[p], s);                                                           \
      }                                                                                     \
      memcpy(to + j, &s, sizeof s);                                                         \
    }                                                                                       \
    for (; j < columns; j++) {                                                              \
      T s = 0;                                                                              \
      for (int64_t p = 0; p < k; p++) s = MADD(x[p], b[p * step + j], s);                   \
      to[j] = s;                                                                            \
    }                                                                                       \
  }

/* The same sums by vectors: those of COLUMNS results at once are in registers, and share what is read of x. */
#define THIN_BY_VECTORS(name, T, S, WIDE, VEC, COLUMNS, LOAD, MADD, VEC_MADD, HALVES, OTHER, TARGET)       \
  TARGET static void name(const thin_task *t) {                                                            \
    enum { LANES = 32, EACH = sizeof(VEC) / sizeof(T), N = LANES / EACH };                                 \
    const int64_t k = t->k, whole = k / LANES * LANES, step = t->step, columns = t->columns;               \
    thin_task last = *t;                                                                                   \
    int64_t j = 0;                                                                                         \
    for (; whole && j + 4 <= columns; j += 4)                                                              \
      for (int64_t i = 0; i < t->rows; i++) {                                                              \
        const S *b = (const S *)(const void *)t->b + j * step;                                             \
        const T *x = (const T *)(const void *)t->x + i * t->x_line;                                        \
        VEC sums[4];                                                                                       \
        T rest[4] = {0, 0, 0, 0};                                                                          \
        _Pragma("GCC unroll 4") for (int d = 0; d < 4; d += COLUMNS) {                                     \
          VEC s[COLUMNS][N], u, v;                                                                         \
          _Pragma("GCC unroll 4") for (int c = 0; c < COLUMNS; c++)                                        \
              _Pragma("GCC unroll 8") for (int q = 0; q < N; q++) s[c][q] = (VEC){0};                      \
          for (int64_t p = 0; p < whole; p += LANES) _Pragma("GCC unroll 8") for (int q = 0; q < N; q++) { \
              memcpy(&u, x + p + q * EACH, sizeof u);                                                      \
              _Pragma("GCC unroll 4") for (int c = 0; c < COLUMNS; c++) {                                  \
                LOAD(v, b + (d + c) * step + p + q * EACH);                                                \
                s[c][q] = VEC_MADD(v, u, s[c][q]);                                                         \
              }                                                                                            \
            }                                                                                              \
          _Pragma("GCC unroll 4") for (int c = 0; c < COLUMNS; c++) {                                      \
            _Pragma("GCC unroll 4") for (int half = N / 2; half > 0; half /= 2)                            \
                _Pragma("GCC unroll 4") for (int q = 0; q < half; q++) s[c][q] += s[c][q + half];          \
            sums[d + c] = s[c][0];                                                                         \
          }                                                                                                \
        }                                                                                                  \
        for (int64_t p = whole; p < k; p++)                                                                \
          for (int c = 0; c < 4; c++) rest[c] = MADD(x[p], WIDE(T, b[c * step + p]), rest[c]);             \
        HALVES((T *)(void *)t->sums + i * t->line + j, sums, rest)                                         \
      }                                                                                                    \
    last.columns -= j;                                                                                     \
    last.b += (size_t)(j * step) * sizeof(S);                                                              \
    last.sums += (size_t)j * sizeof(T);                                                                    \
    if (last.columns) OTHER(&last);                                                                        \
  }

#define THIN_PLAIN(x, y, s) ((s) + (x) * (y))
typedef float thin_4f32 __attribute__((vector_size(16)));
typedef double thin_2f64 __attribute__((vector_size(16)));
typedef uint16_t thin_4u16 __attribute__((vector_size(8)));
typedef uint32_t thin_4u32 __attribute__((vector_size(16)));
#define THIN_LOAD(v, from) memcpy(&(v), (from), sizeof(v))
#define THIN_LOAD_BF16(v, from, NARROW, WIDE)                  \
  {                                                            \
    NARROW narrow_;                                            \
    memcpy(&narrow_, (from), sizeof narrow_);                  \
    WIDE wide_ = __builtin_convertvector(narrow_, WIDE) << 16; \
    memcpy(&(v), &wide_, sizeof(v));                           \
  }
#define THIN_LOAD_4BF16(v, from) THIN_LOAD_BF16(v, from, thin_4u16, thin_4u32)
#define THIN_VEC_PLAIN(b, x, s) ((s) + (b) * (x))
THIN_BY_ROWS(thin_rows_f32, float, float, THIN_SAME, thin_4f32, THIN_LOAD, THIN_PLAIN, THIN_VEC_PLAIN, )
THIN_BY_ROWS(thin_rows_f64, double, double, THIN_SAME, thin_2f64, THIN_LOAD, THIN_PLAIN, THIN_VEC_PLAIN, )
THIN_BY_ROWS(thin_rows_bf16, float, uint16_t, THIN_BF16, thin_4f32, THIN_LOAD_4BF16, THIN_PLAIN, THIN_VEC_PLAIN, )
THIN_BY_COLUMNS(thin_columns_f32, float, float, THIN_SAME, THIN_PLAIN, )
THIN_BY_COLUMNS(thin_columns_f64, double, double, THIN_SAME, THIN_PLAIN, )
THIN_BY_COLUMNS(thin_columns_bf16, float, uint16_t, THIN_BF16, THIN_PLAIN, )
#if defined(__x86_64__)
#define THIN_AVX2 __attribute__((target("avx2,fma")))
typedef uint16_t thin_8u16 __attribute__((vector_size(16)));
typedef uint32_t thin_8u32 __attribute__((vector_size(32)));
#define THIN_LOAD_8BF16(v, from) THIN_LOAD_BF16(v, from, thin_8u16, thin_8u32)
#define THIN_FMA_PS(b, x, s) _mm256_fmadd_ps(b, _mm256_set1_ps(x), s)
#define THIN_FMA_PD(b, x, s) _mm256_fmadd_pd(b, _mm256_set1_pd(x), s)
THIN_BY_ROWS(thin_rows_f32_avx2, float, float, THIN_SAME, __m256, THIN_LOAD, __builtin_fmaf, THIN_FMA_PS, THIN_AVX2)
THIN_BY_ROWS(thin_rows_f64_avx2, double, double, THIN_SAME, __m256d, THIN_LOAD, __builtin_fma, THIN_FMA_PD, THIN_AVX2)
THIN_BY_ROWS(thin_rows_bf16_avx2, float, uint16_t, THIN_BF16, __m256, THIN_LOAD_8BF16, __builtin_fmaf, THIN_FMA_PS,
             THIN_AVX2)
THIN_BY_COLUMNS(thin_columns_f32_avx2, float, float, THIN_SAME, __builtin_fmaf, THIN_AVX2)
THIN_BY_COLUMNS(thin_columns_f64_avx2, double, double, THIN_SAME, __builtin_fma, THIN_AVX2)
THIN_BY_COLUMNS(thin_columns_bf16_avx2, float, uint16_t, THIN_BF16, __builtin_fmaf, THIN_AVX2)
/* Vectors of four results to one number each, by halves, and what is left of each. */
#define THIN_HALVES_PS(to, s, rest)                                                                      \
  {                                                                                                      \
    __m256 a = _mm256_permute2f128_ps(s[0], s[1], 0x20), b_ = _mm256_permute2f128_ps(s[0], s[1], 0x31);  \
    __m256 c_ = _mm256_permute2f128_ps(s[2], s[3], 0x20), d_ = _mm256_permute2f128_ps(s[2], s[3], 0x31); \
    __m256d e = _mm256_castps_pd(_mm256_add_ps(a, b_)), f = _mm256_castps_pd(_mm256_add_ps(c_, d_));     \
    a = _mm256_castpd_ps(_mm256_unpacklo_pd(e, f)), b_ = _mm256_castpd_ps(_mm256_unpackhi_pd(e, f));     \
    a = _mm256_add_ps(a, b_);                                                                            \
    a = _mm256_add_ps(_mm256_shuffle_ps(a, a, 0x88), _mm256_shuffle_ps(a, a, 0xDD));                     \
    __m128 g = _mm_unpacklo_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));                  \
    _mm_storeu_ps(to, _mm_add_ps(g, _mm_loadu_ps(rest)));                                                \
  }
#define THIN_HALVES_PD(to, s, rest)                                                                       \
  {                                                                                                       \
    __m256d a = _mm256_permute2f128_pd(s[0], s[1], 0x20), b_ = _mm256_permute2f128_pd(s[0], s[1], 0x31);  \
    __m256d c_ = _mm256_permute2f128_pd(s[2], s[3], 0x20), d_ = _mm256_permute2f128_pd(s[2], s[3], 0x31); \
    a = _mm256_add_pd(a, b_), c_ = _mm256_add_pd(c_, d_);                                                 \
    a = _mm256_add_pd(_mm256_unpacklo_pd(a, c_), _mm256_unpackhi_pd(a, c_));                              \
    _mm256_storeu_pd(to, _mm256_add_pd(_mm256_permute4x64_pd(a, 0xD8), _mm256_loadu_pd(rest)));           \
  }
THIN_BY_VECTORS(thin_dots_f32_avx2, float, float, THIN_SAME, __m256, 2, THIN_LOAD, __builtin_fmaf, _mm256_fmadd_ps,
                THIN_HALVES_PS, thin_columns_f32_avx2, THIN_AVX2)
/* Twice the lanes: their halves are the partial sums that the above has, added up in the same order. */
#define THIN_AVX512 __attribute__((target("avx512f,avx2,fma")))
#define THIN_HALVES_512_PS(to, s, rest)                                                                     \
  {                                                                                                         \
    __m256 h[4];                                                                                            \
    _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) h[c] = _mm256_add_ps(                               \
        _mm512_castps512_ps256(s[c]), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(s[c]), 1))); \
    THIN_HALVES_PS(to, h, rest)                                                                             \
  }
THIN_BY_VECTORS(thin_dots_f32_avx512, float, float, THIN_SAME, __m512, 4, THIN_LOAD, __builtin_fmaf, _mm512_fmadd_ps,
                THIN_HALVES_512_PS, thin_columns_f32_avx2, THIN_AVX512)
THIN_ONE_ROW(thin_row_f32_avx2, float, __m256, THIN_LOAD, __builtin_fmaf, THIN_FMA_PS, THIN_AVX2)
THIN_ONE_ROW(thin_row_f64_avx2, double, __m256d, THIN_LOAD, __builtin_fma, THIN_FMA_PD, THIN_AVX2)
THIN_BY_VECTORS(thin_dots_f64_avx2, double, double, THIN_SAME, __m256d, 1, THIN_LOAD, __builtin_fma, _mm256_fmadd_pd,
                THIN_HALVES_PD, thin_columns_f64_avx2, THIN_AVX2)
#endif

/* For elements of B of that type. */
static thin_fn *thin_fn_of(base_dtype b, bool by_columns, base_isa isa) {
  static thin_fn *const plain[3][2] = {
      {thin_rows_f32, thin_columns_f32}, {thin_rows_f64, thin_columns_f64}, {thin_rows_bf16, thin_columns_bf16}};
  int row = b == XLAC_F32 ? 0 : b == XLAC_F64 ? 1 : 2;
  assert(row < 2 || b == XLAC_BF16);
#if defined(__x86_64__)
  static thin_fn *const avx2[3][2] = {{thin_rows_f32_avx2, thin_dots_f32_avx2},
                                      {thin_rows_f64_avx2, thin_dots_f64_avx2},
                                      {thin_rows_bf16_avx2, thin_columns_bf16_avx2}};
  if (isa >= BASE_ISA_AVX512 && row == 0 && by_columns) return thin_dots_f32_avx512;
  if (isa >= BASE_ISA_AVX2) return avx2[row][by_columns];
#endif
  (void)isa;
  return plain[row][by_columns];
}

/* Whether B is a matrix with neighbours along n, or along k (*by_columns). *step: from one of its rows, or
 * columns, to the next, in elements. */
static bool thin_matrix(const cpu_gemm *g, bool *by_columns, int64_t *step) {
  if (g->n.n != 1 || g->k.n > 1 || g->n.v[0].n != g->n.count) return false;
  int64_t n = g->n.v[0].b, k = g->k.n ? g->k.v[0].b : n == 1 ? 0 : 1;
  *by_columns = n != 1;
  *step = n == 1 ? k : n;
  return n == 1 || k == 1;
}

/* B must be a matrix of f32, f64 or bf16 that can be read along its rows or columns. */
bool cpu_gemm_is_thin(const cpu_gemm *g) {
  bool by_columns = false;
  int64_t step = 0;
  base_dtype b = (base_dtype)g->b_type;
  if (g->is_complex || g->small || (b != XLAC_F32 && b != XLAC_F64 && b != XLAC_BF16)) return false;
  if ((g->packed != XLAC_F32 && g->packed != XLAC_F64) || g->k.count == 0) return false;
  if (!thin_matrix(g, &by_columns, &step) || g->n.count < THIN_LEAST) return false;
  if (b == XLAC_BF16 && g->m.count > 2) return false; /* packing converts once, not for each row */
  return g->m.count <= THIN_ROWS || (!by_columns && g->k.count <= THIN_TERMS);
}

/* Pieces that k is cut into, whose sums are added in their order: THIN_PIECES for one large B, else 1. */
static int64_t thin_pieces(const cpu_gemm *g) {
  bool by_columns = false;
  int64_t step = 0;
  if (!thin_matrix(g, &by_columns, &step) || by_columns || g->batch.count != 1 || g->m.count > THIN_ROWS) return 1;
  return g->k.count >= 64 * THIN_PIECES && g->k.count > THIN_LARGE / g->n.count ? THIN_PIECES : 1;
}

/* The dense copy of A in the type of sums, then the partial sums of all pieces but none where there is one. */
int64_t cpu_gemm_thin_bytes(const cpu_gemm *g) {
  int64_t n = 0, size = (int64_t)base_dtype_bytes((base_dtype)g->packed), pieces = thin_pieces(g);
  bool fits =
      base_mul_i64(g->m.count, g->k.count, &n) && base_mul_i64(n, g->batch.count, &n) && base_mul_i64(n, size, &n);
  if (fits && pieces > 1) n += pieces * g->m.count * g->n.count * size;
  return fits ? n : -1;
}

/* One product at work. */
typedef struct thin_run {
  const cpu_gemm *g;
  const char *a, *b;
  char *c, *x, *partial; /* x: A, dense, in the type of sums */
  thin_fn *fn;
  bool by_columns;
  int64_t step, rows, columns, down, across; /* of a task; tasks in a batch */
} thin_run;

/* Where a batch begins in an array, in elements from its first. */
static int64_t thin_batch(const cpu_gemm *g, char which, int64_t batch) {
  int64_t at = 0;
  cpu_gemm_offsets(&g->batch, which, batch, 1, &at);
  return at;
}

/* Rows of A, counted over batches, made dense and converted: for rt_parallel_for. */
static void thin_gather(void *ctx, size_t begin, size_t end) {
  const thin_run *r = ctx;
  const cpu_gemm *g = r->g;
  size_t from = base_dtype_bytes((base_dtype)g->a_type), to = base_dtype_bytes((base_dtype)g->packed);
  int64_t step = g->k.n ? g->k.v[0].a : 1, m = 0;
  for (size_t i = begin; i < end; i++) {
    cpu_gemm_offsets(&g->m, 'a', (int64_t)i % g->m.count, 1, &m);
    const char *a = r->a + (size_t)(g->a_at + thin_batch(g, 'a', (int64_t)i / g->m.count) + m) * from;
    char *x = r->x + i * (size_t)g->k.count * to;
    if (step == 1)
      base_convert((base_dtype)g->packed, x, (base_dtype)g->a_type, a, (size_t)g->k.count);
    else
      for (int64_t p = 0; p < g->k.count; p++)
        base_convert((base_dtype)g->packed, x + (size_t)p * to, (base_dtype)g->a_type, a + p * step * (int64_t)from, 1);
  }
}

/* The sums of a task to their places in C, converted. */
static void thin_store(const thin_run *r, const thin_task *t, int64_t batch, int64_t row, int64_t column) {
  const cpu_gemm *g = r->g;
  base_dtype sum = (base_dtype)g->packed, to = (base_dtype)g->c_type;
  int64_t bytes = (int64_t)base_dtype_bytes(to), size = (int64_t)base_dtype_bytes(sum), step = g->n.v[0].c, m = 0;
  for (int64_t i = 0; i < t->rows; i++) {
    cpu_gemm_offsets(&g->m, 'c', row + i, 1, &m);
    char *c = r->c + (thin_batch(g, 'c', batch) + m + column * step) * bytes;
    const char *s = t->sums + i * t->line * size;
    if (step == 1)
      base_convert(to, c, sum, s, (size_t)t->columns);
    else if (to == XLAC_F32 && sum == to)
      for (int64_t j = 0; j < t->columns; j++) memcpy(c + j * step * bytes, s + j * size, sizeof(float));
    else
      for (int64_t j = 0; j < t->columns; j++) base_convert(to, c + j * step * bytes, sum, s + j * size, 1);
  }
}

/* For rt_parallel_for: tasks are numbered along n, then along m, then by batch. */
static void thin_tasks(void *ctx, size_t begin, size_t end) {
  const thin_run *r = ctx;
  const cpu_gemm *g = r->g;
  assert(r->rows <= THIN_ROWS && r->columns <= THIN_COLUMNS);
  char sums[THIN_ROWS * THIN_COLUMNS * sizeof(double)] __attribute__((aligned(64)));
  int64_t size = (int64_t)base_dtype_bytes((base_dtype)g->packed),
          bytes = (int64_t)base_dtype_bytes((base_dtype)g->b_type);
  for (size_t i = begin; i < end; i++) {
    int64_t batch = (int64_t)i / (r->down * r->across), row = (int64_t)i / r->across % r->down * r->rows;
    int64_t column = (int64_t)i % r->across * r->columns;
    thin_task t = {.k = g->k.count, .x_line = g->k.count, .line = THIN_COLUMNS, .step = r->step, .sums = sums};
    t.rows = g->m.count - row < r->rows ? g->m.count - row : r->rows;
    t.columns = g->n.count - column < r->columns ? g->n.count - column : r->columns;
    t.x = r->x + (batch * g->m.count + row) * g->k.count * size;
    t.b = r->b + (g->b_at + thin_batch(g, 'b', batch) + column * g->n.v[0].b) * bytes;
    r->fn(&t);
    thin_store(r, &t, batch, row, column);
  }
}

/* Partial sums of a piece of k, for THIN_WIDE columns: for rt_parallel_for. The last piece has what is left of
 * k. */
static void thin_partial(void *ctx, size_t begin, size_t end) {
  const thin_run *r = ctx;
  const cpu_gemm *g = r->g;
  int64_t size = (int64_t)base_dtype_bytes((base_dtype)g->packed), n = g->n.count, each = g->k.count / THIN_PIECES;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->b_type);
  for (size_t i = begin; i < end; i++) {
    int64_t piece = (int64_t)i / r->across, column = (int64_t)i % r->across * THIN_WIDE;
    thin_task t = {.rows = g->m.count, .x_line = g->k.count, .line = n, .step = r->step};
    t.k = piece == THIN_PIECES - 1 ? g->k.count - piece * each : each;
    t.columns = n - column < THIN_WIDE ? n - column : THIN_WIDE;
    t.x = r->x + piece * each * size;
    t.b = r->b + (g->b_at + piece * each * r->step + column) * bytes;
    t.sums = r->partial + (piece * g->m.count * n + column) * size;
    r->fn(&t);
  }
}

#define THIN_ADD_PIECES(T)                                 \
  for (int64_t p = 1; p < THIN_PIECES; p++) {              \
    T *s = (T *)(void *)r->partial + begin;                \
    const T *x = s + p * all;                              \
    for (size_t i = 0; i < end - begin; i++) s[i] += x[i]; \
  }
/* For rt_parallel_for: elements begin .. end of C, the pieces' sums in the order of the pieces. */
static void thin_add_pieces(void *ctx, size_t begin, size_t end) {
  const thin_run *r = ctx;
  int64_t all = r->g->m.count * r->g->n.count;
  if (r->g->packed == XLAC_F64) {
    THIN_ADD_PIECES(double)
  } else {
    THIN_ADD_PIECES(float)
  }
}

/* One batch of few rows over a large B: pieces of k run side by side. */
static void thin_in_pieces(thin_run *r, rt_pool *pool) {
  const cpu_gemm *g = r->g;
  r->partial = r->x + g->m.count * g->k.count * (int64_t)base_dtype_bytes((base_dtype)g->packed);
  r->across = (g->n.count + THIN_WIDE - 1) / THIN_WIDE;
  rt_parallel_for(pool, (size_t)(THIN_PIECES * r->across), 1, thin_partial, r);
  rt_parallel_for(pool, (size_t)(g->m.count * g->n.count), THIN_WIDE, thin_add_pieces, r);
  thin_task t = {.rows = g->m.count, .columns = g->n.count, .line = g->n.count, .sums = r->partial};
  thin_store(r, &t, 0, 0, 0);
}

/* A vector by a matrix in the cache, both as stored: one task. */
static bool thin_at_once(const thin_run *r) {
  const cpu_gemm *g = r->g;
  bool is = g->m.count == 1 && g->batch.count == 1 && g->a_type == g->packed && g->b_type == g->packed;
  is = is && g->c_type == g->packed && g->n.v[0].c == 1 && (g->k.n == 0 || g->k.v[0].a == 1);
  if (!is || g->n.count * g->k.count > THIN_GRAIN) return false;
  int64_t size = (int64_t)base_dtype_bytes((base_dtype)g->packed);
  thin_task t = {.rows = 1, .columns = g->n.count, .k = g->k.count, .step = r->step, .sums = r->c};
  t.x = r->a + g->a_at * size;
  t.b = r->b + g->b_at * size;
  thin_fn *fn = r->fn;
#if defined(__x86_64__)
  if (!r->by_columns && g->isa >= BASE_ISA_AVX2) fn = size == 4 ? thin_row_f32_avx2 : thin_row_f64_avx2;
#endif
  fn(&t);
  return true;
}

/* Tasks are narrower where there would be fewer than four. */
void cpu_gemm_run_thin(const cpu_gemm *g, rt_pool *pool, const void *a, const void *b, void *c, char *scratch) {
  thin_run r = {.g = g, .a = a, .b = b, .c = c, .x = scratch, .rows = THIN_ROWS};
  bool is = thin_matrix(g, &r.by_columns, &r.step);
  assert(is);
  (void)is;
  r.fn = thin_fn_of((base_dtype)g->b_type, r.by_columns, (base_isa)g->isa);
  if (thin_pieces(g) == 1 && thin_at_once(&r)) return;
  r.columns = r.by_columns ? THIN_DOTS : THIN_COLUMNS;
  while (r.columns > 128 && g->n.count < 4 * r.columns) r.columns /= 2;
  r.down = (g->m.count + r.rows - 1) / r.rows;
  r.across = (g->n.count + r.columns - 1) / r.columns;
  int64_t work = r.rows * r.columns * g->k.count;
  rt_parallel_for(pool, (size_t)(g->batch.count * g->m.count), (size_t)(THIN_GRAIN / g->k.count + 1), thin_gather, &r);
  if (thin_pieces(g) > 1) {
    thin_in_pieces(&r, pool);
    return;
  }
  rt_parallel_for(pool, (size_t)(g->batch.count * r.down * r.across), (size_t)(THIN_GRAIN / work + 1), thin_tasks, &r);
}
