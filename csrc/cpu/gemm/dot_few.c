/* Products of some rows (4 to 64). B is gone through in strips of two vectors' columns and blocks of FEW_BLOCK
 * terms; all rows of A, rearranged so that a tile reads them in order, go through a strip while it is in the
 * cache. A strip that is read often is copied first where its rows are far apart: at a stride of some kilobytes they
 * would all fall into a few sets of the first cache, and be read from the second one each time. */
#include "dot_few.h"

#include "../../base/isa/isa.h"
#include "../square.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
  FEW_LEAST_ROWS = 4,
  FEW_ROWS = 64, /* from here on packing is as fast */
  FEW_LEAST_COLUMNS = 64,
  FEW_LEAST_TERMS = 16,
  FEW_THIN_ROWS = 8,        /* so many rows read B once, and are as fast as memory is if it's long */
  FEW_THIN_BYTES = 8 << 20, /* of B */
  FEW_BLOCK = 256,          /* of k */
  FEW_AHEAD = 16,           /* rows of B */
  FEW_TASK_COLUMNS = 256,   /* for which it is worth while to take A apart */
  FEW_TASK_WORK = 1 << 20,  /* products that a thread should have */
  FEW_STRIP_BYTES = 2 * 64, /* of the widest strip's rows; of the narrowest: */
  FEW_PIECE = 2 * 16,
  FEW_COPY_ROWS = 56,        /* of A, for which a copy of a strip is worth while */
  FEW_COPY_BYTES = 512 << 10 /* of B's block: less is as fast as it is */
};

/* The inner loop: see dot_few_tile.h. */
typedef void few_fn(int64_t k, const void *a, const void *b, int64_t step, void *c, int64_t line, bool first,
                    int64_t ahead);
/* Of 8, 4, 2 and 1 rows. */
typedef struct few_tiles {
  few_fn *of[4];
  int lanes; /* in a strip */
} few_tiles;

/* Immutable. A task is `columns` columns of one batch. */
struct cpu_few {
  plan_dot dot;
  few_tiles tiles;
  int64_t columns, cuts; /* of a task, a multiple of the strip; tasks in a batch */
  bool copies;           /* strips, before they are read */
};

typedef float few_4f32 __attribute__((vector_size(16)));
typedef double few_2f64 __attribute__((vector_size(16)));

#define FEW_TARGET
#define FEW_NAME(rows) few_f32_any_##rows
#define FEW_T float
#define FEW_VEC few_4f32
#define FEW_MADD(a, b, s) ((s) + (a) * (b))
#include "dot_few_tile.h"
#define FEW_NAME(rows) few_f64_any_##rows
#define FEW_T double
#define FEW_VEC few_2f64
#define FEW_MADD(a, b, s) ((s) + (a) * (b))
#include "dot_few_tile.h"
#undef FEW_TARGET

#if defined(__x86_64__)
#define FEW_TARGET __attribute__((target("avx2,fma")))
#define FEW_NAME(rows) few_f32_avx2_##rows
#define FEW_T float
#define FEW_VEC __m256
#define FEW_MADD _mm256_fmadd_ps
#include "dot_few_tile.h"
#define FEW_NAME(rows) few_f64_avx2_##rows
#define FEW_T double
#define FEW_VEC __m256d
#define FEW_MADD _mm256_fmadd_pd
#include "dot_few_tile.h"
#undef FEW_TARGET
#define FEW_EIGHT
#define FEW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq")))
#define FEW_NAME(rows) few_f32_avx512_##rows
#define FEW_T float
#define FEW_VEC __m512
#define FEW_MADD _mm512_fmadd_ps
#include "dot_few_tile.h"
#define FEW_NAME(rows) few_f64_avx512_##rows
#define FEW_T double
#define FEW_VEC __m512d
#define FEW_MADD _mm512_fmadd_pd
#include "dot_few_tile.h"
#undef FEW_TARGET
#undef FEW_EIGHT
#endif

/* NULL where registers are too few for 8 rows. */
#define FEW_ROW(name, lanes) {{name##_8, name##_4, name##_2, name##_1}, lanes}
#define FEW_ROW_OF_4(name, lanes) {{NULL, name##_4, name##_2, name##_1}, lanes}
static const few_tiles few_table[][2] = {
    {FEW_ROW_OF_4(few_f32_any, 8), FEW_ROW_OF_4(few_f64_any, 4)},
#if defined(__x86_64__)
    {FEW_ROW_OF_4(few_f32_avx2, 16), FEW_ROW_OF_4(few_f64_avx2, 8)},
    {FEW_ROW(few_f32_avx512, 32), FEW_ROW(few_f64_avx512, 16)},
    {FEW_ROW(few_f32_avx512, 32), FEW_ROW(few_f64_avx512, 16)},
#endif
};

/* Bytes of an element. */
static int64_t few_size(const plan_dot *d) {
  return d->dtype == XLAC_F64 ? 8 : 4;
}

/* Within the limits above, and where B is row-major. */
bool cpu_few_is_better(const plan_dot *d) {
  if (d->transpose_b || d->m < FEW_LEAST_ROWS || d->m > FEW_ROWS || d->n < FEW_LEAST_COLUMNS || d->k < FEW_LEAST_TERMS)
    return false;
  return d->m > FEW_THIN_ROWS || d->n * d->k <= FEW_THIN_BYTES / few_size(d);
}

/* Tasks are as wide as their share of work asks, and whole strips. */
const cpu_few *cpu_few_make(const plan_dot *dot, base_arena *arena) {
  cpu_few *f = BASE_NEW(arena, cpu_few);
  if (!f) return NULL;
  f->dot = *dot;
  f->tiles = few_table[base_isa_best()][dot->dtype == XLAC_F64];
  int64_t columns = FEW_TASK_WORK / (dot->m * dot->k) + 1;
  if (columns < FEW_TASK_COLUMNS) columns = FEW_TASK_COLUMNS;
  f->columns = (columns + f->tiles.lanes - 1) / f->tiles.lanes * f->tiles.lanes;
  f->cuts = (dot->n + f->columns - 1) / f->columns;
  f->copies =
      dot->m >= FEW_COPY_ROWS && (dot->k < FEW_BLOCK ? dot->k : FEW_BLOCK) * dot->ldb * few_size(dot) > FEW_COPY_BYTES;
  return f;
}

/* One product at work. */
typedef struct few_run {
  const cpu_few *f;
  rt_pool *pool;
  const char *a, *b;
  char *c;
} few_run;

/* Which tile takes the next of `rows` rows, and how many it takes. */
static int few_pick(const few_tiles *tiles, int64_t rows, int *taken) {
  assert(rows > 0);
  int i = 0;
  while (8 >> i > rows || !tiles->of[i]) i++;
  *taken = 8 >> i;
  return i;
}

/* `count` terms of `rows` rows to groups of so many numbers, term by term: from number `q` on one by one. */
#define FEW_APART(name, T)                                                                                \
  static void name(const T *from, int64_t row, int64_t term, int rows, int64_t q, int64_t count, T *to) { \
    for (; q < count; q++)                                                                                \
      for (int j = 0; j < rows; j++) to[q * rows + j] = from[j * row + q * term];                         \
  }
FEW_APART(few_apart_f32, float)
FEW_APART(few_apart_f64, double)

/* Fours of rows of f32 whose terms are neighbours, by squares of four terms: how many terms are done. */
static int64_t few_turn(const float *from, int64_t row, int rows, int64_t count, float *to) {
  typedef few_4f32 four __attribute__((aligned(4), may_alias));
  int64_t q = 0;
  assert(rows % 4 == 0 && count <= FEW_BLOCK);
  for (; q + 4 <= count; q += 4)
    for (int j = 0; j < rows; j += 4) {
      const float *x = from + j * row + q;
      four r0 = *(const four *)x, r1 = *(const four *)(x + row);
      four r2 = *(const four *)(x + 2 * row), r3 = *(const four *)(x + 3 * row);
      float *out = to + q * rows + j;
      CPU_TURN_SQUARE(few_4f32, r0, r1, r2, r3, *(four *)out, *(four *)(out + rows), *(four *)(out + 2 * rows),
                      *(four *)(out + 3 * rows));
    }
  return q;
}

/* A block of k of A, in the order in which tiles read it: rows in groups of 8, 4, 2 and 1, and in a group term by
 * term. */
static void few_take_apart(const cpu_few *f, const char *a, int64_t p, int64_t count, char *to) {
  const plan_dot *d = &f->dot;
  assert(count > 0 && count <= FEW_BLOCK && d->m <= FEW_ROWS);
  int64_t row = d->transpose_a ? 1 : d->lda, term = d->transpose_a ? d->lda : 1, size = few_size(d);
  for (int64_t i = 0; i < d->m;) {
    int rows = 0;
    (void)few_pick(&f->tiles, d->m - i, &rows);
    const char *from = a + (i * row + p * term) * size;
    int64_t q = 0;
    if (size == 4 && term == 1 && rows % 4 == 0)
      q = few_turn((const float *)(const void *)from, row, rows, count, (float *)(void *)to);
    if (size == 4)
      few_apart_f32((const float *)(const void *)from, row, term, rows, q, count, (float *)(void *)to);
    else
      few_apart_f64((const double *)(const void *)from, row, term, rows, q, count, (double *)(void *)to);
    to += count * rows * size;
    i += rows;
  }
}

/* All rows of A by a strip of B whose rows are `step` elements apart; C's are `line` apart. first: the sums begin
 * at zero. */
static void few_strip(const cpu_few *f, const char *a, const char *b, int64_t step, char *c, int64_t line,
                      int64_t count, bool first) {
  int64_t size = few_size(&f->dot), ahead = FEW_AHEAD * step;
  for (int64_t i = 0; i < f->dot.m;) {
    int rows = 0, which = few_pick(&f->tiles, f->dot.m - i, &rows);
    f->tiles.of[which](count, a, b, step, c + i * line * size, line, first, ahead);
    a += count * rows * size;
    i += rows;
    ahead = 0; /* it is near by now */
  }
}

/* `columns` columns of B's block as a strip of its own. */
static void few_copy(const cpu_few *f, const char *b, int64_t columns, int64_t count, char *strip) {
  int64_t size = few_size(&f->dot), bytes = f->tiles.lanes * size, some = columns * size;
  assert(columns <= f->tiles.lanes && bytes <= FEW_STRIP_BYTES && bytes % FEW_PIECE == 0 && count <= FEW_BLOCK);
  for (int64_t p = 0; p < count && some == bytes; p++)
    for (int64_t at = 0; at < bytes; at += FEW_PIECE)
      memcpy(strip + p * bytes + at, b + p * f->dot.ldb * size + at, FEW_PIECE);
  for (int64_t p = 0; p < count && some < bytes; p++) {
    memcpy(strip + p * bytes, b + p * f->dot.ldb * size, (size_t)some);
    memset(strip + p * bytes + some, 0, (size_t)(bytes - some));
  }
}

/* What is left of a row is less than a strip: B's columns are copied to a strip that is filled up with zeros, and
 * the sums come and go by way of whole strips, too. */
static void few_narrow(const cpu_few *f, const char *a, const char *b, char *c, int64_t columns, int64_t count,
                       bool first) {
  char strip[FEW_BLOCK * FEW_STRIP_BYTES] __attribute__((aligned(64)));
  char sums[FEW_ROWS * FEW_STRIP_BYTES] __attribute__((aligned(64)));
  int64_t size = few_size(&f->dot), bytes = f->tiles.lanes * size, n = f->dot.n, some = columns * size;
  assert(columns > 0 && columns < f->tiles.lanes);
  few_copy(f, b, columns, count, strip);
  memset(sums, 0, (size_t)(f->dot.m * bytes));
  for (int64_t i = 0; i < f->dot.m && !first; i++) memcpy(sums + i * bytes, c + i * n * size, (size_t)some);
  few_strip(f, a, strip, f->tiles.lanes, sums, f->tiles.lanes, count, first);
  for (int64_t i = 0; i < f->dot.m; i++) memcpy(c + i * n * size, sums + i * bytes, (size_t)some);
}

/* Whole strips of B's block. */
static void few_wide(const cpu_few *f, const char *a, const char *b, char *c, int64_t columns, int64_t count,
                     bool first) {
  char strip[FEW_BLOCK * FEW_STRIP_BYTES] __attribute__((aligned(64)));
  int64_t size = few_size(&f->dot), lanes = f->tiles.lanes;
  assert(columns % lanes == 0);
  for (int64_t j = 0; j < columns; j += lanes) {
    if (f->copies) few_copy(f, b + j * size, lanes, count, strip);
    few_strip(f, a, f->copies ? strip : b + j * size, f->copies ? lanes : f->dot.ldb, c + j * size, f->dot.n, count,
              first);
  }
}

/* Columns from .. to of one batch, a block of k after the other; C collects the sums. */
static void few_columns(const few_run *r, int64_t batch, int64_t from, int64_t to) {
  const cpu_few *f = r->f;
  const plan_dot *d = &f->dot;
  char apart[FEW_ROWS * FEW_BLOCK * sizeof(double)] __attribute__((aligned(64)));
  int64_t size = few_size(d), lanes = f->tiles.lanes;
  const char *a = r->a + batch * d->stride_a * size, *b = r->b + batch * d->stride_b * size;
  char *c = r->c + batch * d->m * d->n * size;
  int64_t whole = (to - from) / lanes * lanes, rest = from + whole;
  for (int64_t p = 0; p < d->k && !(p && rt_pool_stopping(r->pool)); p += FEW_BLOCK) {
    int64_t count = d->k - p < FEW_BLOCK ? d->k - p : FEW_BLOCK;
    const char *block = b + p * d->ldb * size;
    few_take_apart(f, a, p, count, apart);
    few_wide(f, apart, block + from * size, c + from * size, whole, count, p == 0);
    if (rest < to) few_narrow(f, apart, block + rest * size, c + rest * size, to - rest, count, p == 0);
  }
}

/* For rt_parallel_for. */
static void few_tasks(void *ctx, size_t begin, size_t end) {
  const few_run *r = ctx;
  const cpu_few *f = r->f;
  for (size_t i = begin; i < end; i++) {
    int64_t from = (int64_t)i % f->cuts * f->columns, to = from + f->columns;
    few_columns(r, (int64_t)i / f->cuts, from, to < f->dot.n ? to : f->dot.n);
  }
}

/* A range is at least FEW_TASK_WORK products. */
void cpu_few_run(const cpu_few *f, rt_pool *pool, const void *a, const void *b, void *c) {
  few_run r = {.f = f, .pool = pool, .a = a, .b = b, .c = c};
  int64_t each = f->dot.m * f->dot.k * f->columns;
  rt_parallel_for(pool, (size_t)(f->dot.batch * f->cuts), (size_t)(FEW_TASK_WORK / each + 1), few_tasks, &r);
}
