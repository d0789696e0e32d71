/* Packing: A in rows whose elements are neighbours along k, B in panels whose elements are neighbours along n. A
 * tile then reads both from the first byte to the last. Narrow types are widened on the way (bf16 to f32, 8-bit
 * integers to 16 bits). Offsets of lines (rows of A, columns of B) come in a list; k is walked by runs of its
 * innermost dimension. */
#include "dot_gemm.h"

/* A complex number of doubles. */
typedef struct pack_pair16 {
  uint64_t half[2];
} pack_pair16;

/* One division a dimension for the first, then counting. */
void cpu_gemm_offsets(const cpu_gemm_dims *dims, char which, int64_t from, int64_t n, int64_t *out) {
  assert(dims->n <= GEMM_MAX_DIMS && from >= 0);
  int64_t at[GEMM_MAX_DIMS] = {0}, step[GEMM_MAX_DIMS], offset = 0;
  for (uint32_t d = dims->n; d-- > 0; from /= dims->v[d].n) {
    const cpu_gemm_dim *x = &dims->v[d];
    at[d] = from % x->n;
    step[d] = which == 'a' ? x->a : which == 'b' ? x->b : x->c;
    offset += at[d] * step[d];
  }
  for (int64_t i = 0; i < n; i++) {
    out[i] = offset;
    for (uint32_t d = dims->n; d-- > 0;) {
      offset += step[d];
      if (++at[d] < dims->v[d].n) break;
      offset -= step[d] * dims->v[d].n;
      at[d] = 0;
    }
  }
}

/* A walk along k by runs of the innermost dimension, in A or in B. at: the indexes of the present run's first
 * element; rest: what is left of the block after it. */
typedef struct pack_walk {
  const cpu_gemm_dims *dims;
  bool left; /* A's offsets, else B's */
  int64_t at[GEMM_MAX_DIMS], rest, step;
  int64_t offset, length; /* of the run */
} pack_walk;

/* Along dimension d, in elements of the array. */
static int64_t pack_step(const pack_walk *w, uint32_t d) {
  return w->left ? w->dims->v[d].a : w->dims->v[d].b;
}

/* A walk over `count` numbers of k from number `from` on; pack_next goes to its first run. */
static void pack_begin(pack_walk *w, const cpu_gemm_dims *dims, bool left, int64_t from, int64_t count) {
  *w = (pack_walk){.dims = dims, .left = left, .rest = count};
  if (count == 0) return;
  for (uint32_t d = dims->n; d-- > 0; from /= dims->v[d].n) {
    w->at[d] = from % dims->v[d].n;
    w->offset += w->at[d] * pack_step(w, d);
  }
  w->step = dims->n ? pack_step(w, dims->n - 1) : 0;
}

/* The next run, at w->offset and w->length long; false at the end. */
static bool pack_next(pack_walk *w) {
  const cpu_gemm_dims *dims = w->dims;
  uint32_t d = dims->n;
  if (w->length && d) { /* past the run: it ended the innermost dimension, or everything */
    w->offset += w->length * w->step;
    w->at[d - 1] += w->length;
    while (d > 1 && w->at[d - 1] == dims->v[d - 1].n) {
      w->offset += pack_step(w, d - 2) - w->at[d - 1] * pack_step(w, d - 1);
      w->at[d - 1] = 0;
      w->at[--d - 1]++;
    }
  }
  if (w->rest == 0) return false;
  w->length = dims->n ? dims->v[dims->n - 1].n - w->at[dims->n - 1] : 1;
  if (w->length > w->rest) w->length = w->rest;
  w->rest -= w->length;
  return true;
}

/* n elements of k, `step` apart, of each line, whose offsets `lines` has; the first is number p of the block.
 * columns: of a panel; 0 for rows. */
typedef void pack_fn(const char *from, const int64_t *lines, int n_lines, int64_t step, int64_t n, int64_t p, char *to,
                     int columns);

enum { PACK_SHORT = 4 }; /* columns that are not a run */
enum { PACK_WIDE = 32 }; /* columns of the widest panels of 4-byte elements */
enum { PACK_AHEAD = 8 }; /* rows of B */
enum { PACK_STRIP = 8 }; /* elements of a line at a time, where lines are far apart in memory */

/* The next line is elsewhere: the CPU's prefetcher does not guess where. */
static inline void pack_fetch(const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)from + i);
}

/* Lines of A to packed rows. Where k is not contiguous, strips of it are read from all lines, which may share
 * cache lines. */
#define PACK_ROWS(name, S, D, VALUE)                                                                                  \
  static void name(const char *from, const int64_t *lines, int n_lines, int64_t step, int64_t n, int64_t p, char *to, \
                   int columns) {                                                                                     \
    const S *restrict x = (const S *)(const void *)from;                                                              \
    (void)columns;                                                                                                    \
    int64_t strip = step == 1 ? n : PACK_STRIP;                                                                       \
    for (int64_t i = 0; i < n; i += strip) {                                                                          \
      int64_t m = n - i < strip ? n - i : strip;                                                                      \
      for (int l = 0; l < n_lines; l++) {                                                                             \
        D *restrict out = (D *)(void *)(to + (size_t)l * GEMM_ROW_BYTES) + p + i;                                     \
        const S *restrict in = x + lines[l] + i * step;                                                               \
        if (step == 1 && l + 1 < n_lines) pack_fetch(x + lines[l + 1] + i, (size_t)m * sizeof *in);                   \
        if (step == 1)                                                                                                \
          for (int64_t j = 0; j < m; j++) out[j] = VALUE(in[j]);                                                      \
        else                                                                                                          \
          for (int64_t j = 0; j < m; j++) out[j] = VALUE(in[j * step]);                                               \
      }                                                                                                               \
    }                                                                                                                 \
  }

/* How many columns from number c on are neighbours in memory, up to n. */
static int pack_run(const int64_t *lines, int c, int n) {
  int run = 1;
  while (c + run < n && lines[c + run] == lines[c] + run) run++;
  return run;
}

/* Four lines at a time, contiguous along k, to columns of 4 bytes (of UNIT elements): 4 by 4 of these are transposed in
 * registers. Lines beyond a multiple of four are left; false where an element would be half of one. */
typedef uint32_t pack_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint16_t pack_four_half __attribute__((vector_size(8), aligned(2), may_alias));
#define PACK_TURN(name, S, UNIT, LOAD, ONE)                                                                          \
  static bool name(const S *x, const int64_t *lines, int n_lines, int64_t n, int64_t p, uint32_t *to, int columns) { \
    if (p % (UNIT) || n % (UNIT)) return false;                                                                      \
    uint32_t *out = to + p / (UNIT) * columns;                                                                       \
    for (int c = 0; c + 4 <= n_lines; c += 4) {                                                                      \
      const S *l0 = x + lines[c], *l1 = x + lines[c + 1], *l2 = x + lines[c + 2], *l3 = x + lines[c + 3];            \
      const S *const all[4] = {l0, l1, l2, l3};                                                                      \
      int64_t j = 0;                                                                                                 \
      for (uint32_t *at = out + c; j + 4 <= n / (UNIT); j += 4, at += 4 * columns) {                                 \
        pack_four r0 = LOAD(l0 + j * (UNIT)), r1 = LOAD(l1 + j * (UNIT));                                            \
        pack_four r2 = LOAD(l2 + j * (UNIT)), r3 = LOAD(l3 + j * (UNIT));                                            \
        pack_four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);                                               \
        pack_four high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);                                              \
        pack_four low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);                                               \
        pack_four high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);                                              \
        *(pack_four *)(void *)at = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);                                \
        *(pack_four *)(void *)(at + columns) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);                    \
        *(pack_four *)(void *)(at + 2 * columns) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);              \
        *(pack_four *)(void *)(at + 3 * columns) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);              \
      }                                                                                                              \
      for (; j < n / (UNIT); j++)                                                                                    \
        for (int r = 0; r < 4; r++) out[j * columns + c + r] = ONE(all[r] + j * (UNIT));                             \
    }                                                                                                                \
    return true;                                                                                                     \
  }
#define PACK_FOUR(p) (*(const pack_four *)(const void *)(p))
#define PACK_FOUR_BF16(p) (__builtin_convertvector(*(const pack_four_half *)(const void *)(p), pack_four) << 16)
static inline uint32_t pack_word(const void *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
#define PACK_ONE_BF16(p) ((uint32_t)*(p) << 16)
PACK_TURN(pack_turn_4, uint32_t, 1, PACK_FOUR, pack_word)
PACK_TURN(pack_turn_bf16, uint16_t, 1, PACK_FOUR_BF16, PACK_ONE_BF16)
PACK_TURN(pack_turn_2, uint16_t, 2, PACK_FOUR, pack_word)
#define PACK_NO_TURN(x, lines, n_lines, n, p, to, columns) false

/* Columns of B to a panel. GROUP elements of k stand side by side: 2 where the kernel takes pairs. Columns that
 * are neighbours in memory are copied row by row; others in strips along k, each of which stays in a few cache
 * lines. */
#define PACK_COLUMNS(name, S, D, GROUP, VALUE, TURN)                                                                  \
  static void name(const char *from, const int64_t *lines, int n_lines, int64_t step, int64_t n, int64_t p, char *to, \
                   int columns) {                                                                                     \
    const S *restrict x = (const S *)(const void *)from;                                                              \
    D *restrict out = (D *)(void *)to;                                                                                \
    for (int first = 0, run = 0; first < n_lines; first += run) {                                                     \
      run = pack_run(lines, first, n_lines);                                                                          \
      if (run >= PACK_SHORT) {                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                             \
          const S *restrict in = x + lines[first] + i * step;                                                         \
          D *restrict row = out + ((p + i) / (GROUP) * columns + first) * (GROUP) + (p + i) % (GROUP);                \
          if (i + PACK_AHEAD < n) pack_fetch(in + PACK_AHEAD * step, (size_t)run * sizeof *in);                       \
          if (run == PACK_WIDE)                                                                                       \
            for (int c = 0; c < PACK_WIDE; c++) row[c * (GROUP)] = VALUE(in[c]);                                      \
          else                                                                                                        \
            for (int c = 0; c < run; c++) row[c * (GROUP)] = VALUE(in[c]);                                            \
        }                                                                                                             \
        continue;                                                                                                     \
      }                                                                                                               \
      while (first + run < n_lines && pack_run(lines, first + run, n_lines) < PACK_SHORT) run++;                      \
      if (step == 1 && run >= 4 && TURN(x, lines + first, run, n, p, (uint32_t *)(void *)out + first, columns)) {     \
        run -= run % 4;                                                                                               \
        continue;                                                                                                     \
      }                                                                                                               \
      for (int64_t i = 0; i < n; i += PACK_STRIP)                                                                     \
        for (int c = first; c < first + run; c++)                                                                     \
          for (int64_t j = i; j < n && j < i + PACK_STRIP; j++)                                                       \
            out[((p + j) / (GROUP) * columns + c) * (GROUP) + (p + j) % (GROUP)] = VALUE(x[lines[c] + j * step]);     \
    }                                                                                                                 \
  }

/* A complex number re + im i is a 2 by 2 block, which makes of its product with a row (re, im) the product's two
 * parts:
 *
 *      re  im
 *     -im  re
 *
 * so that the tile of the real type does complex products with k and n twice as long. */
#define PACK_COMPLEX(name, T)                                                                                         \
  static void name(const char *from, const int64_t *lines, int n_lines, int64_t step, int64_t n, int64_t p, char *to, \
                   int columns) {                                                                                     \
    const T *restrict x = (const T *)(const void *)from;                                                              \
    T *restrict out = (T *)(void *)to + 2 * p * columns;                                                              \
    for (int64_t i = 0; i < n; i++, out += 2 * columns)                                                               \
      for (int c = 0; c < n_lines; c++) {                                                                             \
        const T *v = x + 2 * (lines[c] + i * step);                                                                   \
        out[2 * c] = out[columns + 2 * c + 1] = v[0];                                                                 \
        out[2 * c + 1] = v[1];                                                                                        \
        out[columns + 2 * c] = -v[1];                                                                                 \
      }                                                                                                               \
  }

#define PACK_SAME(v) (v)
static inline uint32_t pack_bf16(uint16_t v) {
  return (uint32_t)v << 16;
}
PACK_ROWS(pack_rows_2, uint16_t, uint16_t, PACK_SAME)
PACK_ROWS(pack_rows_4, uint32_t, uint32_t, PACK_SAME)
PACK_ROWS(pack_rows_8, uint64_t, uint64_t, PACK_SAME)
PACK_ROWS(pack_rows_16, pack_pair16, pack_pair16, PACK_SAME)
PACK_ROWS(pack_rows_bf16, uint16_t, uint32_t, pack_bf16)
PACK_ROWS(pack_rows_s8, int8_t, int16_t, PACK_SAME)
PACK_ROWS(pack_rows_u8, uint8_t, int16_t, PACK_SAME)
PACK_COLUMNS(pack_columns_2, uint16_t, uint16_t, 2, PACK_SAME, pack_turn_2)
PACK_COLUMNS(pack_columns_4, uint32_t, uint32_t, 1, PACK_SAME, pack_turn_4)
PACK_COLUMNS(pack_columns_8, uint64_t, uint64_t, 1, PACK_SAME, PACK_NO_TURN)
PACK_COLUMNS(pack_columns_bf16, uint16_t, uint32_t, 1, pack_bf16, pack_turn_bf16)
PACK_COLUMNS(pack_columns_s8, int8_t, int16_t, 2, PACK_SAME, PACK_NO_TURN)
PACK_COLUMNS(pack_columns_u8, uint8_t, int16_t, 2, PACK_SAME, PACK_NO_TURN)
PACK_COMPLEX(pack_columns_c64, float)
PACK_COMPLEX(pack_columns_c128, double)

/* How an array's elements become packed ones. */
typedef enum pack_way { PACK_2, PACK_4, PACK_8, PACK_BF16, PACK_S8, PACK_U8, PACK_C64, PACK_C128, PACK_WAYS } pack_way;
static pack_fn *const pack_rows[PACK_WAYS] = {pack_rows_2,  pack_rows_4,  pack_rows_8, pack_rows_bf16,
                                              pack_rows_s8, pack_rows_u8, pack_rows_8, pack_rows_16};
static pack_fn *const pack_columns[PACK_WAYS] = {pack_columns_2,  pack_columns_4,  pack_columns_8,   pack_columns_bf16,
                                                 pack_columns_s8, pack_columns_u8, pack_columns_c64, pack_columns_c128};

/* By the type of the array: cpu_gemm_types has seen to it that it is one that packing reads. */
static pack_way pack_way_of(const cpu_gemm *g, base_dtype t) {
  size_t bytes = base_dtype_bytes(t);
  if (g->is_complex) return bytes == 8 ? PACK_C64 : PACK_C128;
  if (g->pairs && bytes == 1) return base_dtype_is_signed(t) ? PACK_S8 : PACK_U8;
  if (t == XLAC_BF16 && !g->pairs) return PACK_BF16;
  assert(bytes == 8 || bytes == 4 || (g->pairs && bytes == 2));
  return bytes == 8 ? PACK_8 : bytes == 4 ? PACK_4 : PACK_2;
}

void cpu_gemm_pack_a(const cpu_gemm *g, const cpu_gemm_block *block, int padded, char *to) {
  pack_fn *fn = pack_rows[pack_way_of(g, (base_dtype)g->a_type)];
  assert(block->n_lines <= padded && padded <= GEMM_ROWS && block->count <= g->k_block);
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->a_type);
  pack_walk w;
  int64_t p = 0;
  pack_begin(&w, &g->k, true, block->p, block->count);
  while (pack_next(&w)) {
    fn(block->from + w.offset * bytes, block->lines, block->n_lines, w.step, w.length, p, to, 0);
    p += w.length;
  }
  if (g->pairs && block->count % 2)
    for (int l = 0; l < block->n_lines; l++) ((uint16_t *)(void *)(to + (size_t)l * GEMM_ROW_BYTES))[block->count] = 0;
  for (int l = block->n_lines; l < padded; l++) memset(to + (size_t)l * GEMM_ROW_BYTES, 0, GEMM_BLOCK_BYTES);
}

/* A panel of B, or a block's part of it. One that is not full, or has half a pair at its end, is zeroed first. */
void cpu_gemm_pack_b(const cpu_gemm *g, const cpu_gemm_block *block, char *to) {
  pack_fn *fn = pack_columns[pack_way_of(g, (base_dtype)g->b_type)];
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->b_type), p = 0;
  int width = g->kernel.columns / (g->is_complex ? 2 : 1);
  pack_walk w;
  int64_t line = g->kernel.columns * (int64_t)base_dtype_bytes((base_dtype)g->sum);
  if (block->n_lines < width || (g->pairs && block->count % 2))
    memset(to, 0, (size_t)(cpu_gemm_steps(g, block->count) * line));
  pack_begin(&w, &g->k, false, block->p, block->count);
  while (pack_next(&w)) {
    fn(block->from + w.offset * bytes, block->lines, block->n_lines, w.step, w.length, p, to, g->kernel.columns);
    p += w.length;
  }
}
