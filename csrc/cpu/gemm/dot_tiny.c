/* Many tiny products, each of which is too little for packing, and even for a call: rows of results are vectors, with
 * masks for what a matrix lacks, and all offsets but those of the batch are strides. Products of a long matrix and a
 * small one (points by a rotation, pixels by a change of colours, blocks by a cosine transform) are such, piece by
 * piece: packing what is read once would cost as much as the product.
 *
 *    by rows      results of a row side by side: row i is the sum of A[i,p] times row p of B
 *    by columns   one result a row, both operands contiguous along k: four rows' products are folded together
 *
 * f32 and f64, with AVX2 or AVX-512. Sums are in the order of k by rows (four sums in turn, for rows that are not
 * four), by lanes of k by columns. */
#include "../../base/isa/isa.h"
#include "dot_tiny.h"

enum {
  TINY_BATCHES = 8,    /* fewer are not many */
  TINY_WORK = 1024,    /* products in each, of two matrices */
  TINY_VECTOR = 8192,  /* and where one is a vector */
  TINY_TURNED = 256,   /* elements of a B whose rows are not neighbours: it is copied */
  TINY_OFFSETS = 64,   /* batches whose offsets are listed at a time */
  TINY_LONG = 256,     /* rows, or columns, from which on a matrix is long */
  TINY_LEAST = 4,      /* along its innermost dimension */
  TINY_SIDE = 64,      /* of the other matrix at most */
  TINY_SIDE_AVX2 = 8,  /* with more, each of A's numbers is spread several times */
  TINY_SMALL = 512,    /* and elements of it */
  TINY_PIECE = 4096,   /* elements of the long matrix in a piece, about */
  TINY_GRAIN = 1 << 15 /* products for which another thread is worth while */
};

typedef void tiny_fn(const cpu_tiny *t, const char *a, const char *b, char *c);

/* Strides in elements. n counts columns; by columns there is one. turned: from one of B's columns to the next, where
 * they are not neighbours; then b_k is that of the copy. */
struct cpu_tiny {
  int64_t m, n, k, a_m, a_k, b_k, c_m, turned, turned_k;
  bool by_columns, is_double;
  tiny_fn *fn;             /* for the CPU where it was made */
  bool is_long, long_rows; /* the long matrix's rows are m, else n is its columns */
  int64_t piece, pieces;   /* rows or columns; one piece where none is long */
  cpu_gemm_dims batch;
};

#if defined(__x86_64__)
#include <immintrin.h>
#define TINY_512 __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#define TINY_256 __attribute__((target("avx2,fma")))

/* The first n lanes, or all. */
static inline __mmask16 tiny_bits(int64_t n) {
  return (__mmask16)(n < 16 ? (1 << n) - 1 : -1);
}
static inline TINY_256 __m256i tiny_lanes_4(int64_t n) {
  static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)(const void *)(lanes + 8 - (n < 8 ? n : 8)));
}
static inline TINY_256 __m256i tiny_lanes_8(int64_t n) {
  static const int64_t lanes[8] = {-1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)(const void *)(lanes + 4 - (n < 4 ? n : 4)));
}
static inline TINY_256 __m256 tiny_load_4(__m256i mask, const float *from) {
  return _mm256_maskload_ps(from, mask);
}
static inline TINY_256 __m256d tiny_load_8(__m256i mask, const double *from) {
  return _mm256_maskload_pd(from, mask);
}

/* By rows, eight or four at a time: a row of B is loaded once for them, and that many sums are on their way. */
#define TINY_SOME(R, T, VEC, ZERO, LOAD, STORE, SPREAD, MADD)                    \
  for (; i + (R) <= t->m; i += (R)) {                                            \
    VEC s[R];                                                                    \
    const T *x = a + i * t->a_m;                                                 \
    for (int r = 0; r < (R); r++) s[r] = ZERO();                                 \
    for (int64_t p = 0; p < t->k; p++, x += t->a_k) {                            \
      VEC y = LOAD(mask, b + p * t->b_k);                                        \
      for (int r = 0; r < (R); r++) s[r] = MADD(SPREAD(x[r * t->a_m]), y, s[r]); \
    }                                                                            \
    for (int r = 0; r < (R); r++) STORE(c + (i + r) * t->c_m + j, mask, s[r]);   \
  }
#define TINY_ROWS(name, TARGET, T, VEC, MASK, FIRST, LANES, ZERO, LOAD, STORE, SPREAD, MADD)     \
  TARGET static void name(const cpu_tiny *t, const char *from_a, const char *from_b, char *to) { \
    const T *a = (const T *)(const void *)from_a;                                                \
    T *c = (T *)(void *)to;                                                                      \
    for (int64_t j = 0; j < t->n; j += LANES) {                                                  \
      const T *b = (const T *)(const void *)from_b + j;                                          \
      MASK mask = FIRST(t->n - j);                                                               \
      int64_t i = 0;                                                                             \
      TINY_SOME(8, T, VEC, ZERO, LOAD, STORE, SPREAD, MADD)                                      \
      TINY_SOME(4, T, VEC, ZERO, LOAD, STORE, SPREAD, MADD)                                      \
      for (; i < t->m; i++) {                                                                    \
        VEC s0 = ZERO(), s1 = ZERO(), s2 = ZERO(), s3 = ZERO();                                  \
        const T *x = a + i * t->a_m;                                                             \
        int64_t p = 0;                                                                           \
        for (; p + 4 <= t->k; p += 4) {                                                          \
          s0 = MADD(SPREAD(x[p * t->a_k]), LOAD(mask, b + p * t->b_k), s0);                      \
          s1 = MADD(SPREAD(x[(p + 1) * t->a_k]), LOAD(mask, b + (p + 1) * t->b_k), s1);          \
          s2 = MADD(SPREAD(x[(p + 2) * t->a_k]), LOAD(mask, b + (p + 2) * t->b_k), s2);          \
          s3 = MADD(SPREAD(x[(p + 3) * t->a_k]), LOAD(mask, b + (p + 3) * t->b_k), s3);          \
        }                                                                                        \
        for (; p < t->k; p++) s0 = MADD(SPREAD(x[p * t->a_k]), LOAD(mask, b + p * t->b_k), s0);  \
        STORE(c + i * t->c_m + j, mask, (s0 + s1) + (s2 + s3));                                  \
      }                                                                                          \
    }                                                                                            \
  }
TINY_ROWS(tiny_rows_f32_4, TINY_512, float, __m128, __mmask8, tiny_bits, 4, _mm_setzero_ps, _mm_maskz_loadu_ps,
          _mm_mask_storeu_ps, _mm_set1_ps, _mm_fmadd_ps)
TINY_ROWS(tiny_rows_f32_16, TINY_512, float, __m512, __mmask16, tiny_bits, 16, _mm512_setzero_ps, _mm512_maskz_loadu_ps,
          _mm512_mask_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps)
TINY_ROWS(tiny_rows_f64_8, TINY_512, double, __m512d, __mmask8, tiny_bits, 8, _mm512_setzero_pd, _mm512_maskz_loadu_pd,
          _mm512_mask_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd)
TINY_ROWS(tiny_rows_f32_avx2, TINY_256, float, __m256, __m256i, tiny_lanes_4, 8, _mm256_setzero_ps, tiny_load_4,
          _mm256_maskstore_ps, _mm256_set1_ps, _mm256_fmadd_ps)
TINY_ROWS(tiny_rows_f64_avx2, TINY_256, double, __m256d, __m256i, tiny_lanes_8, 4, _mm256_setzero_pd, tiny_load_8,
          _mm256_maskstore_pd, _mm256_set1_pd, _mm256_fmadd_pd)

/* The sums of four vectors, side by side. */
static inline TINY_256 __m128 tiny_fold_f32_4(const __m128 *s) {
  return _mm_hadd_ps(_mm_hadd_ps(s[0], s[1]), _mm_hadd_ps(s[2], s[3]));
}
static inline TINY_256 __m128 tiny_fold_f32_8(const __m256 *s) {
  __m256 x = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}
static inline TINY_512 __m128 tiny_fold_f32_16(const __m512 *s) {
  __m128 x[4];
  for (int r = 0; r < 4; r++) {
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(s[r]), _mm512_extractf32x8_ps(s[r], 1));
    x[r] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  }
  return tiny_fold_f32_4(x);
}
static inline TINY_256 __m256d tiny_fold_f64_4(const __m256d *s) {
  __m256d low = _mm256_hadd_pd(s[0], s[1]), high = _mm256_hadd_pd(s[2], s[3]);
  return _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x20), _mm256_permute2f128_pd(low, high, 0x31));
}
static inline TINY_512 __m256d tiny_fold_f64_8(const __m512d *s) {
  __m256d x[4];
  for (int r = 0; r < 4; r++) x[r] = _mm256_add_pd(_mm512_castpd512_pd256(s[r]), _mm512_extractf64x4_pd(s[r], 1));
  return tiny_fold_f64_4(x);
}

/* By columns: four results, of which the last may be fewer, computed from the same row again. */
#define TINY_COLUMNS(name, TARGET, T, VEC, MASK, FIRST, LANES, ZERO, LOAD, MADD, FOLD, FOLDED)                     \
  TARGET static void name(const cpu_tiny *t, const char *from_a, const char *from_b, char *to) {                   \
    const T *a = (const T *)(const void *)from_a, *b = (const T *)(const void *)from_b;                            \
    T *c = (T *)(void *)to;                                                                                        \
    for (int64_t i = 0; i < t->m; i += 4) {                                                                        \
      int rows = t->m - i < 4 ? (int)(t->m - i) : 4;                                                               \
      int64_t second = rows > 1 ? t->a_m : 0, third = rows > 2 ? 2 * t->a_m : 0, last = rows > 3 ? 3 * t->a_m : 0; \
      VEC s[4] = {ZERO(), ZERO(), ZERO(), ZERO()};                                                                 \
      for (int64_t p = 0; p < t->k; p += LANES) {                                                                  \
        MASK mask = FIRST(t->k - p);                                                                               \
        const T *x = a + i * t->a_m + p;                                                                           \
        VEC y = LOAD(mask, b + p);                                                                                 \
        s[0] = MADD(LOAD(mask, x), y, s[0]);                                                                       \
        s[1] = MADD(LOAD(mask, x + second), y, s[1]);                                                              \
        s[2] = MADD(LOAD(mask, x + third), y, s[2]);                                                               \
        s[3] = MADD(LOAD(mask, x + last), y, s[3]);                                                                \
      }                                                                                                            \
      FOLDED sums = FOLD(s);                                                                                       \
      for (int r = 0; r < rows; r++) c[(i + r) * t->c_m] = sums[r];                                                \
    }                                                                                                              \
  }
TINY_COLUMNS(tiny_columns_f32_4, TINY_512, float, __m128, __mmask8, tiny_bits, 4, _mm_setzero_ps, _mm_maskz_loadu_ps,
             _mm_fmadd_ps, tiny_fold_f32_4, __m128)
TINY_COLUMNS(tiny_columns_f32_16, TINY_512, float, __m512, __mmask16, tiny_bits, 16, _mm512_setzero_ps,
             _mm512_maskz_loadu_ps, _mm512_fmadd_ps, tiny_fold_f32_16, __m128)
TINY_COLUMNS(tiny_columns_f64_8, TINY_512, double, __m512d, __mmask8, tiny_bits, 8, _mm512_setzero_pd,
             _mm512_maskz_loadu_pd, _mm512_fmadd_pd, tiny_fold_f64_8, __m256d)
TINY_COLUMNS(tiny_columns_f32_8, TINY_256, float, __m256, __m256i, tiny_lanes_4, 8, _mm256_setzero_ps, tiny_load_4,
             _mm256_fmadd_ps, tiny_fold_f32_8, __m128)
TINY_COLUMNS(tiny_columns_f64_4, TINY_256, double, __m256d, __m256i, tiny_lanes_8, 4, _mm256_setzero_pd, tiny_load_8,
             _mm256_fmadd_pd, tiny_fold_f64_4, __m256d)

/* The least of a vector's lengths that has all lanes that are asked for. */
static tiny_fn *tiny_fn_of(const cpu_tiny *t) {
  bool wide = base_isa_best() >= BASE_ISA_AVX512;
  if (t->by_columns && t->is_double) return wide && t->k > 4 ? tiny_columns_f64_8 : tiny_columns_f64_4;
  if (t->by_columns)
    return !wide || (t->k > 4 && t->k <= 8) ? tiny_columns_f32_8 : t->k <= 4 ? tiny_columns_f32_4 : tiny_columns_f32_16;
  if (!wide) return t->is_double ? tiny_rows_f64_avx2 : tiny_rows_f32_avx2;
  return t->is_double ? tiny_rows_f64_8 : t->n <= 4 ? tiny_rows_f32_4 : tiny_rows_f32_16;
}
static bool tiny_may_run(void) {
  return base_isa_best() >= BASE_ISA_AVX2;
}
#else
static tiny_fn *tiny_fn_of(const cpu_tiny *t) {
  (void)t;
  return NULL;
}
static bool tiny_may_run(void) {
  return false;
}
#endif

/* One dimension at most, as one stride. */
static bool tiny_is_one(const cpu_gemm_dims *d) {
  return d->n <= 1 && d->count > 0;
}

/* The product from one side, a flag for the other: A's rows are results' rows. false where no loop does it so. */
static bool tiny_take(cpu_tiny *t, const cpu_gemm *g, bool other) {
  const cpu_gemm_dims *m = other ? &g->n : &g->m, *n = other ? &g->m : &g->n;
  const cpu_gemm_dim none = {1, 0, 0, 0}, *row = m->n ? &m->v[0] : &none, *column = n->n ? &n->v[0] : &none;
  const cpu_gemm_dim *k = g->k.n ? &g->k.v[0] : &none;
  int64_t k_a = other ? k->b : k->a, k_b = other ? k->a : k->b, n_b = other ? column->a : column->b;
  *t = (cpu_tiny){.m = row->n, .n = column->n, .k = k->n, .a_m = other ? row->b : row->a, .a_k = k_a, .b_k = k_b};
  t->c_m = row->c;
  t->by_columns = t->n == 1;
  if (t->by_columns) return k_a == 1 && k_b == 1;
  if (n_b != 1 && t->n * t->k <= TINY_TURNED) t->turned = n_b, t->turned_k = k_b, t->b_k = t->n;
  return (n_b == 1 || t->turned) && column->c == 1;
}

/* Both sides exchanged where that is how a loop does it, or does without a copy. */
static bool tiny_fit(cpu_tiny *t, const cpu_gemm *g, bool *exchanged) {
  *exchanged = false;
  if (tiny_take(t, g, false) && !t->turned) return true;
  *exchanged = true;
  if (tiny_take(t, g, true)) return true;
  *exchanged = false;
  return tiny_take(t, g, false);
}

/* Whether `tall`'s side is long and the other one's small; all but the innermost of its dimensions are batches then, in
 * which the other matrix stays. */
static bool tiny_spread(cpu_gemm_dims *batch, cpu_gemm_dims *tall, const cpu_gemm_dims *other, int64_t k) {
  int64_t most = base_isa_best() >= BASE_ISA_AVX512 ? TINY_SIDE : TINY_SIDE_AVX2;
  if (tall->count < TINY_LONG || other->count < 2 || other->count > most || other->count * k > TINY_SMALL) return false;
  if (batch->n + tall->n > GEMM_MAX_DIMS || tall->v[tall->n - 1].n < TINY_LEAST) return false;
  for (uint32_t d = 0; d + 1 < tall->n; d++) {
    cpu_gemm_add(batch, tall->v[d].n, tall->v[d].a, tall->v[d].b, tall->v[d].c);
    batch->count *= tall->v[d].n;
  }
  tall->v[0] = tall->v[tall->n - 1];
  tall->count = tall->v[0].n;
  tall->n = 1;
  return true;
}

/* Pieces of a multiple of what a loop does at once, so that all rows are computed in one way. */
static void tiny_cut(cpu_tiny *t, bool is_long) {
  int64_t piece = (TINY_PIECE / t->k + 15) / 16 * 16, n = t->m > t->n ? t->m : t->n;
  t->is_long = is_long;
  t->long_rows = t->m > t->n;
  t->piece = is_long ? piece : n;
  t->pieces = (n + t->piece - 1) / t->piece;
}

static bool tiny_is_worth(const cpu_tiny *t, int64_t batches) {
  bool vector = t->m == 1 || t->n == 1;
  return batches >= TINY_BATCHES && t->m * t->n * t->k <= (vector ? TINY_VECTOR : TINY_WORK);
}

const cpu_tiny *cpu_tiny_make(const cpu_gemm *dims, base_dtype type, base_arena *arena, bool *exchanged, bool *failed) {
  cpu_gemm g = *dims;
  cpu_tiny t;
  *failed = false;
  if (!tiny_may_run() || (type != XLAC_F32 && type != XLAC_F64) || !cpu_gemm_settle(&g)) return NULL;
  if (!tiny_is_one(&g.k) || g.k.count > TINY_VECTOR) return NULL;
  bool is_long = tiny_spread(&g.batch, &g.m, &g.n, g.k.count) || tiny_spread(&g.batch, &g.n, &g.m, g.k.count);
  if (!tiny_is_one(&g.m) || !tiny_is_one(&g.n)) return NULL;
  if (!is_long && (g.m.count > TINY_VECTOR || g.n.count > TINY_VECTOR)) return NULL;
  if (!tiny_fit(&t, &g, exchanged) || !(is_long || tiny_is_worth(&t, g.batch.count))) return NULL;
  tiny_cut(&t, is_long);
  t.is_double = type == XLAC_F64;
  t.fn = tiny_fn_of(&t);
  t.batch = g.batch;
  for (uint32_t d = 0; *exchanged && d < t.batch.n; d++) {
    int64_t a = t.batch.v[d].a;
    t.batch.v[d].a = t.batch.v[d].b;
    t.batch.v[d].b = a;
  }
  const cpu_tiny *own = base_arena_memdup(arena, &t, sizeof t);
  *failed = !own;
  return own;
}

bool cpu_tiny_is_long(const cpu_tiny *t) {
  return t->is_long;
}

typedef struct tiny_run {
  const cpu_tiny *t;
  const char *a, *b;
  char *c;
} tiny_run;

/* B's rows side by side in `to`. */
static const char *tiny_turn(const cpu_tiny *t, const char *b, char *to) {
  if (!t->turned) return b;
  for (int64_t p = 0; p < t->k; p++)
    for (int64_t j = 0; j < t->n; j++) {
      int64_t i = p * t->n + j, from = p * t->turned_k + j * t->turned;
      if (t->is_double)
        memcpy(to + 8 * i, b + 8 * from, 8);
      else
        memcpy(to + 4 * i, b + 4 * from, 4);
    }
  return to;
}

/* A piece of one product, whose matrices begin there. */
static void tiny_piece(const cpu_tiny *t, int64_t piece, const char *a, const char *b, char *c) {
  char turned[8 * TINY_TURNED] __attribute__((aligned(64)));
  if (t->pieces == 1) {
    t->fn(t, a, tiny_turn(t, b, turned), c);
    return;
  }
  cpu_tiny part = *t;
  int64_t size = t->is_double ? 8 : 4, from = piece * t->piece, *n = t->long_rows ? &part.m : &part.n;
  if (*n - from < t->piece)
    *n -= from;
  else
    *n = t->piece;
  if (t->long_rows)
    t->fn(&part, a + from * t->a_m * size, tiny_turn(t, b, turned), c + from * t->c_m * size);
  else
    t->fn(&part, a, b + from * size, c + from * size);
}

/* For rt_parallel_for: pieces of batches. */
static void tiny_range(void *ctx, size_t begin, size_t end) {
  const tiny_run *r = ctx;
  const cpu_tiny *t = r->t;
  int64_t at[3][TINY_OFFSETS], size = t->is_double ? 8 : 4, last = (int64_t)end;
  for (int64_t i = (int64_t)begin, n = 0; i < last; i += n) {
    int64_t batch = i / t->pieces, batches = (last - 1) / t->pieces + 1 - batch;
    if (batches > TINY_OFFSETS) batches = TINY_OFFSETS;
    n = (batch + batches) * t->pieces - i < last - i ? (batch + batches) * t->pieces - i : last - i;
    for (int which = 0; which < 3; which++) cpu_gemm_offsets(&t->batch, "abc"[which], batch, batches, at[which]);
    for (int64_t j = i; j < i + n; j++) {
      int64_t b = j / t->pieces - batch;
      tiny_piece(t, j % t->pieces, r->a + at[0][b] * size, r->b + at[1][b] * size, r->c + at[2][b] * size);
    }
  }
}

void cpu_tiny_run(const cpu_tiny *t, rt_pool *pool, const void *a, const void *b, void *c) {
  tiny_run r = {t, a, b, c};
  int64_t work = t->m * t->n * t->k / t->pieces;
  assert(t->m > 0 && t->n > 0 && t->k > 0);
  rt_parallel_for(pool, (size_t)(t->batch.count * t->pieces), (size_t)(TINY_GRAIN / (work + 1) + 1), tiny_range, &r);
}
