/* Packing: A in rows whose elements are neighbours along k, B in panels whose elements are neighbours along n. A
 * tile then reads both from the first byte to the last. Narrow types are widened on the way (bf16 and f16 to f32, 8-bit
 * integers to 16 bits). Offsets of lines (rows of A, columns of B) come in a list; k is walked by runs of its
 * innermost dimension. */
#include "../square.h"
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
  for (int64_t i = 0; i < n;) { /* runs along the last dimension */
    uint32_t d = dims->n - 1;
    int64_t left = dims->n ? dims->v[d].n - at[d] : n, run = n - i < left ? n - i : left, by = dims->n ? step[d] : 0;
    for (int64_t j = 0; j < run; j++) out[i + j] = offset + j * by;
    i += run;
    if (i == n) break;
    at[d] += run;
    offset += run * by;
    for (; d > 0 && at[d] == dims->v[d].n; d--) {
      offset += step[d - 1] - step[d] * dims->v[d].n;
      at[d] = 0;
      at[d - 1]++;
    }
  }
}

/* n elements of k of each line, whose offsets `lines` has; the first is number p of the block. at: where they lie from
 * the line's beginning; NULL: they are neighbours. columns: of a panel; 0 for rows. */
typedef void pack_fn(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p,
                     char *to, int columns);

enum { PACK_SHORT = 4 }; /* columns that are not a run */
enum { PACK_WIDE = 32 }; /* columns of the widest panels of 4-byte elements */
enum { PACK_AHEAD = 8 }; /* rows of B */
enum { PACK_STRIP = 8 }; /* elements of a line at a time, where lines are far apart in memory */
enum { PACK_LONG = 8 };  /* neighbours along k that are copied as such: fewer are found by a table, as others are */
enum { PACK_TABLE = GEMM_BLOCK_BYTES / 2 };

/* The next line is elsewhere: the CPU's prefetcher does not guess where. */
static inline void pack_fetch(const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)from + i);
}

/* How many columns from number c on are neighbours in memory, up to n. */
static int pack_run(const int64_t *lines, int c, int n) {
  int run = 1;
  while (c + run < n && lines[c + run] == lines[c] + run) run++;
  return run;
}

/* Elements are aligned as their types are, which may be bytes. */
typedef uint32_t pack_four __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t pack_four_half __attribute__((vector_size(8), aligned(1), may_alias));
/* Four rows of 4 by 4 elements of 4 bytes to where its columns are to be, `step` elements apart. */
static inline void pack_transpose(pack_four r0, pack_four r1, pack_four r2, pack_four r3, uint32_t *to, int64_t step) {
  CPU_TURN_SQUARE(pack_four, r0, r1, r2, r3, *(pack_four *)(void *)to, *(pack_four *)(void *)(to + step),
                  *(pack_four *)(void *)(to + 2 * step), *(pack_four *)(void *)(to + 3 * step));
}

/* Four lines at a time, contiguous along k, to columns of 4 bytes (of UNIT elements): 4 by 4 of these are transposed in
 * registers. Lines beyond a multiple of four are left; false where an element would be half of one. */
#define PACK_TURN(name, S, UNIT, LOAD, ONE)                                                                          \
  static bool name(const S *x, const int64_t *lines, int n_lines, int64_t n, int64_t p, uint32_t *to, int columns) { \
    if (p % (UNIT) || n % (UNIT)) return false;                                                                      \
    uint32_t *out = to + p / (UNIT) * columns;                                                                       \
    for (int c = 0; c + 4 <= n_lines; c += 4) {                                                                      \
      const S *const all[4] = {x + lines[c], x + lines[c + 1], x + lines[c + 2], x + lines[c + 3]};                  \
      int64_t j = 0;                                                                                                 \
      for (uint32_t *at = out + c; j + 4 <= n / (UNIT); j += 4, at += 4 * columns)                                   \
        pack_transpose(LOAD(all[0] + j * (UNIT)), LOAD(all[1] + j * (UNIT)), LOAD(all[2] + j * (UNIT)),              \
                       LOAD(all[3] + j * (UNIT)), at, columns);                                                      \
      for (; j < n / (UNIT); j++)                                                                                    \
        for (int r = 0; r < 4; r++) out[j * columns + c + r] = ONE(all[r] + j * (UNIT));                             \
    }                                                                                                                \
    return true;                                                                                                     \
  }
/* A strip of four lines of A that are neighbours, to rows of 4 bytes. */
#define PACK_TURN_ROWS(name, S, LOAD)                                                                        \
  static inline bool name(const S *x, const int64_t *at, uint32_t *to) {                                     \
    for (int j = 0; j < PACK_STRIP; j += 4)                                                                  \
      pack_transpose(LOAD(x + at[j]), LOAD(x + at[j + 1]), LOAD(x + at[j + 2]), LOAD(x + at[j + 3]), to + j, \
                     GEMM_ROW_BYTES / 4);                                                                    \
    return true;                                                                                             \
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
PACK_TURN(pack_turn_1, uint8_t, 4, PACK_FOUR, pack_word)
PACK_TURN_ROWS(pack_turn_rows_4, uint32_t, PACK_FOUR)
PACK_TURN_ROWS(pack_turn_rows_bf16, uint16_t, PACK_FOUR_BF16)
#define PACK_NO_TURN(...) false

/* Lines of A to packed rows; SAME: they are copied as they are. Where k is not contiguous, strips of it are read from
 * all lines, which may share cache lines. */
#define PACK_ROWS(name, S, D, VALUE, TURN, SAME)                                                                 \
  static void name(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p, \
                   char *to, int columns) {                                                                      \
    const S *restrict x = (const S *)(const void *)from;                                                         \
    (void)columns;                                                                                               \
    for (int l = 0; !at && l < n_lines; l++) {                                                                   \
      D *restrict out = (D *)(void *)(to + (size_t)l * GEMM_ROW_BYTES) + p;                                      \
      const S *restrict in = x + lines[l];                                                                       \
      if (l + 1 < n_lines) pack_fetch(x + lines[l + 1], (size_t)n * sizeof *in);                                 \
      if (SAME)                                                                                                  \
        memcpy(out, in, (size_t)n * sizeof *in);                                                                 \
      else                                                                                                       \
        for (int64_t j = 0; j < n; j++) out[j] = VALUE(in[j]);                                                   \
    }                                                                                                            \
    for (int64_t i = 0; at && i < n; i += PACK_STRIP) {                                                          \
      int64_t m = n - i < PACK_STRIP ? n - i : PACK_STRIP;                                                       \
      for (int l = 0; l < n_lines; l++) {                                                                        \
        D *restrict out = (D *)(void *)(to + (size_t)l * GEMM_ROW_BYTES) + p + i;                                \
        const S *restrict in = x + lines[l];                                                                     \
        if (m == PACK_STRIP && l + 4 <= n_lines && pack_run(lines, l, l + 4) == 4 && TURN(in, at + i, out))      \
          l += 3;                                                                                                \
        else                                                                                                     \
          for (int64_t j = 0; j < m; j++) out[j] = VALUE(in[at[i + j]]);                                         \
      }                                                                                                          \
    }                                                                                                            \
  }

/* Columns of B to a panel. GROUP elements of k stand side by side: 2 where the kernel takes pairs, 4 where it takes
 * bytes. Columns that are neighbours in memory are copied row by row; others in strips along k, each of which stays in
 * a few cache lines. */
#define PACK_COLUMNS(name, S, D, GROUP, VALUE, TURN)                                                             \
  static void name(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p, \
                   char *to, int columns) {                                                                      \
    const S *restrict x = (const S *)(const void *)from;                                                         \
    D *restrict out = (D *)(void *)to;                                                                           \
    for (int first = 0, run = 0; first < n_lines; first += run) {                                                \
      run = pack_run(lines, first, n_lines);                                                                     \
      if (run >= PACK_SHORT) {                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                        \
          const S *restrict in = x + lines[first] + (at ? at[i] : i);                                            \
          D *restrict row = out + ((p + i) / (GROUP) * columns + first) * (GROUP) + (p + i) % (GROUP);           \
          if (i + PACK_AHEAD < n)                                                                                \
            pack_fetch(x + lines[first] + (at ? at[i + PACK_AHEAD] : i + PACK_AHEAD), (size_t)run * sizeof *in); \
          if (run == PACK_WIDE)                                                                                  \
            for (int c = 0; c < PACK_WIDE; c++) row[c * (GROUP)] = VALUE(in[c]);                                 \
          else                                                                                                   \
            for (int c = 0; c < run; c++) row[c * (GROUP)] = VALUE(in[c]);                                       \
        }                                                                                                        \
        continue;                                                                                                \
      }                                                                                                          \
      while (first + run < n_lines && pack_run(lines, first + run, n_lines) < PACK_SHORT) run++;                 \
      if (!at && run >= 4 && TURN(x, lines + first, run, n, p, (uint32_t *)(void *)out + first, columns)) {      \
        run -= run % 4;                                                                                          \
        continue;                                                                                                \
      }                                                                                                          \
      for (int64_t i = 0; i < n; i += PACK_STRIP)                                                                \
        for (int c = first; c < first + run; c++)                                                                \
          for (int64_t j = i; j < n && j < i + PACK_STRIP; j++)                                                  \
            out[((p + j) / (GROUP) * columns + c) * (GROUP) + (p + j) % (GROUP)] =                               \
                VALUE(x[lines[c] + (at ? at[j] : j)]);                                                           \
    }                                                                                                            \
  }

/* A complex number re + im i is a 2 by 2 block, which makes of its product with a row (re, im) the product's two
 * parts:
 *
 *      re  im
 *     -im  re
 *
 * so that the tile of the real type does complex products with k and n twice as long. */
#define PACK_COMPLEX(name, T)                                                                                    \
  static void name(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p, \
                   char *to, int columns) {                                                                      \
    const T *restrict x = (const T *)(const void *)from;                                                         \
    T *restrict out = (T *)(void *)to + 2 * p * columns;                                                         \
    for (int64_t i = 0; i < n; i++, out += 2 * columns)                                                          \
      for (int c = 0; c < n_lines; c++) {                                                                        \
        const T *v = x + 2 * (lines[c] + (at ? at[i] : i));                                                      \
        out[2 * c] = out[columns + 2 * c + 1] = v[0];                                                            \
        out[2 * c + 1] = v[1];                                                                                   \
        out[columns + 2 * c] = -v[1];                                                                            \
      }                                                                                                          \
  }

#define PACK_SAME(v) (v)
#define PACK_SHIFTED(v) ((v) ^ 0x80) /* a signed byte, and 128 */
static inline uint32_t pack_bf16(uint16_t v) {
  return (uint32_t)v << 16;
}
PACK_ROWS(pack_rows_1, uint8_t, uint8_t, PACK_SAME, PACK_NO_TURN, true)
PACK_ROWS(pack_rows_1_shifted, uint8_t, uint8_t, PACK_SHIFTED, PACK_NO_TURN, false)
PACK_ROWS(pack_rows_2, uint16_t, uint16_t, PACK_SAME, PACK_NO_TURN, true)
PACK_ROWS(pack_rows_4, uint32_t, uint32_t, PACK_SAME, pack_turn_rows_4, true)
PACK_ROWS(pack_rows_8, uint64_t, uint64_t, PACK_SAME, PACK_NO_TURN, true)
PACK_ROWS(pack_rows_16, pack_pair16, pack_pair16, PACK_SAME, PACK_NO_TURN, true)
PACK_ROWS(pack_rows_bf16, uint16_t, uint32_t, pack_bf16, pack_turn_rows_bf16, false)
PACK_ROWS(pack_rows_s8, int8_t, int16_t, PACK_SAME, PACK_NO_TURN, false)
PACK_ROWS(pack_rows_u8, uint8_t, int16_t, PACK_SAME, PACK_NO_TURN, false)
PACK_COLUMNS(pack_columns_byte, uint8_t, uint8_t, 4, PACK_SAME, pack_turn_1)
PACK_COLUMNS(pack_columns_half, uint16_t, uint16_t, 1, PACK_SAME, PACK_NO_TURN)
PACK_COLUMNS(pack_columns_pair, uint16_t, uint16_t, 2, PACK_SAME, pack_turn_2)
PACK_COLUMNS(pack_columns_4, uint32_t, uint32_t, 1, PACK_SAME, pack_turn_4)
PACK_COLUMNS(pack_columns_8, uint64_t, uint64_t, 1, PACK_SAME, PACK_NO_TURN)
PACK_COLUMNS(pack_columns_bf16, uint16_t, uint32_t, 1, pack_bf16, pack_turn_bf16)
PACK_COLUMNS(pack_columns_s8, int8_t, int16_t, 2, PACK_SAME, PACK_NO_TURN)
PACK_COLUMNS(pack_columns_u8, uint8_t, int16_t, 2, PACK_SAME, PACK_NO_TURN)
PACK_COMPLEX(pack_columns_c64, float)
PACK_COMPLEX(pack_columns_c128, double)

/* Some rows of one vector each, element by element side by side: two rows of 8 numbers, or four of 16 bytes. */
typedef uint8_t pack_bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t pack_halves __attribute__((vector_size(16), aligned(1), may_alias));
#define PACK_ZIP_8(low, a, b) \
  __builtin_shufflevector(a, b, low, low + 8, low + 1, low + 9, low + 2, low + 10, low + 3, low + 11)
#define PACK_ZIP_16(low, a, b)                                                                                   \
  __builtin_shufflevector(a, b, low, low + 16, low + 1, low + 17, low + 2, low + 18, low + 3, low + 19, low + 4, \
                          low + 20, low + 5, low + 21, low + 6, low + 22, low + 7, low + 23)
static inline void pack_zip_2(const uint16_t *const *row, int c, uint16_t *to) {
  pack_halves a = *(const pack_halves *)(row[0] + c), b = *(const pack_halves *)(row[1] + c);
  *(pack_halves *)to = PACK_ZIP_8(0, a, b);
  *(pack_halves *)(to + 8) = PACK_ZIP_8(4, a, b);
}
static inline void pack_zip_1(const uint8_t *const *row, int column, uint8_t *to) {
  pack_bytes a = *(const pack_bytes *)(row[0] + column), b = *(const pack_bytes *)(row[1] + column);
  pack_bytes c = *(const pack_bytes *)(row[2] + column), d = *(const pack_bytes *)(row[3] + column);
  pack_bytes even[2] = {PACK_ZIP_16(0, a, c), PACK_ZIP_16(8, a, c)},
             odd[2] = {PACK_ZIP_16(0, b, d), PACK_ZIP_16(8, b, d)};
  for (int i = 0; i < 2; i++) {
    *(pack_bytes *)(to + 32 * i) = PACK_ZIP_16(0, even[i], odd[i]);
    *(pack_bytes *)(to + 32 * i + 16) = PACK_ZIP_16(8, even[i], odd[i]);
  }
}

/* Whole groups of rows whose elements are neighbours go by vectors, the rest as PLAIN packs it. */
#define PACK_GROUPS(name, T, GROUP, ZIP, PLAIN)                                                                     \
  static void name(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p,    \
                   char *to, int columns) {                                                                         \
    const T *x = (const T *)(const void *)from + lines[0];                                                          \
    const int lanes = 16 / (int)sizeof(T);                                                                          \
    int64_t i = 0;                                                                                                  \
    if (p % (GROUP) == 0 && n_lines % lanes == 0 && pack_run(lines, 0, n_lines) == n_lines)                         \
      for (; i + (GROUP) <= n; i += (GROUP)) {                                                                      \
        T *out = (T *)(void *)to + (p + i) * columns;                                                               \
        const T *row[GROUP];                                                                                        \
        for (int j = 0; j < (GROUP); j++) row[j] = x + (at ? at[i + j] : i + j);                                    \
        for (int j = 0; j < (GROUP) && i + PACK_AHEAD + j < n; j++)                                                 \
          pack_fetch(x + (at ? at[i + PACK_AHEAD + j] : i + PACK_AHEAD + j), (size_t)n_lines * sizeof(T));          \
        for (int c = 0; c < n_lines; c += lanes) ZIP(row, c, out + (GROUP) * c);                                    \
      }                                                                                                             \
    PLAIN(from + (at ? 0 : i * (int64_t)sizeof(T)), lines, n_lines, at ? at + i : NULL, n - i, p + i, to, columns); \
  }
PACK_GROUPS(pack_columns_1, uint8_t, 4, pack_zip_1, pack_columns_byte)
PACK_GROUPS(pack_columns_2, uint16_t, 2, pack_zip_2, pack_columns_pair)

/* f16 goes by pieces through a buffer to the conversion of many. */
static void pack_rows_f16(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n, int64_t p,
                          char *to, int columns) {
  const uint16_t *x = (const uint16_t *)(const void *)from;
  uint16_t piece[PACK_TABLE];
  (void)columns;
  assert(n <= PACK_TABLE);
  for (int l = 0; l < n_lines; l++) {
    const uint16_t *in = x + lines[l];
    for (int64_t j = 0; at && j < n; j++) piece[j] = in[at[j]];
    base_convert(XLAC_F32, to + l * GEMM_ROW_BYTES + p * 4, XLAC_F16, at ? piece : in, (size_t)n);
  }
}
static void pack_columns_f16(const char *from, const int64_t *lines, int n_lines, const int64_t *at, int64_t n,
                             int64_t p, char *to, int columns) {
  enum { TERMS = 64 };
  uint16_t piece[TERMS * PACK_WIDE];
  assert(columns <= PACK_WIDE);
  memset(piece, 0, sizeof piece);
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TERMS ? n - i : TERMS;
    pack_columns_half(from + (at ? 0 : 2 * i), lines, n_lines, at ? at + i : NULL, m, 0, (char *)piece, columns);
    base_convert(XLAC_F32, to + (p + i) * columns * 4, XLAC_F16, piece, (size_t)(m * columns));
  }
}

/* How an array's elements become packed ones. */
typedef enum pack_way {
  PACK_1,
  PACK_1_SHIFTED,
  PACK_2,
  PACK_4,
  PACK_8,
  PACK_BF16,
  PACK_F16,
  PACK_S8,
  PACK_U8,
  PACK_C64,
  PACK_C128,
  PACK_WAYS
} pack_way;
static pack_fn *const pack_rows[PACK_WAYS] = {pack_rows_1,  pack_rows_1_shifted, pack_rows_2,   pack_rows_4,
                                              pack_rows_8,  pack_rows_bf16,      pack_rows_f16, pack_rows_s8,
                                              pack_rows_u8, pack_rows_8,         pack_rows_16};
static pack_fn *const pack_columns[PACK_WAYS] = {pack_columns_1,  pack_columns_1,    pack_columns_2,   pack_columns_4,
                                                 pack_columns_8,  pack_columns_bf16, pack_columns_f16, pack_columns_s8,
                                                 pack_columns_u8, pack_columns_c64,  pack_columns_c128};

/* By the type of the array: cpu_gemm_types has seen to it that it is one that packing reads. */
static pack_way pack_way_of(const cpu_gemm *g, base_dtype t) {
  size_t bytes = base_dtype_bytes(t);
  if (g->is_complex) return bytes == 8 ? PACK_C64 : PACK_C128;
  if (g->bytes) return g->shifted ? PACK_1_SHIFTED : PACK_1; /* of columns these are the same */
  if (g->pairs && bytes == 1) return base_dtype_is_signed(t) ? PACK_S8 : PACK_U8;
  if (t == XLAC_BF16 && !g->pairs) return PACK_BF16;
  if (t == XLAC_F16) return PACK_F16;
  assert(bytes == 8 || bytes == 4 || (g->pairs && bytes == 2));
  return bytes == 8 ? PACK_8 : bytes == 4 ? PACK_4 : PACK_2;
}

/* The dimensions of k as one operand has them: what is one dimension there is merged, so that windows of an image or
 * the weights of a layer are long runs. The order stays. Only steps of `a` are filled in. */
static void pack_own_dims(const cpu_gemm_dims *k, bool left, cpu_gemm_dims *own) {
  own->n = 0;
  for (uint32_t d = 0; d < k->n; d++) {
    int64_t n = k->v[d].n, step = left ? k->v[d].a : k->v[d].b;
    cpu_gemm_dim *out = own->n ? &own->v[own->n - 1] : NULL;
    if (out && out->a == step * n)
      *out = (cpu_gemm_dim){.n = out->n * n, .a = step};
    else
      own->v[own->n++] = (cpu_gemm_dim){.n = n, .a = step};
  }
}

/* All of a block's elements by fn: run by run where neighbours along k lie side by side, else by a table of places. */
static void pack_all(const cpu_gemm *g, const cpu_gemm_block *block, bool left, pack_fn *fn, char *to) {
  cpu_gemm_dims own;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)(left ? g->a_type : g->b_type)), at[PACK_TABLE], n;
  int columns = left ? 0 : g->kernel.columns;
  pack_own_dims(&g->k, left, &own);
  const cpu_gemm_dim *inner = own.n ? &own.v[own.n - 1] : NULL;
  bool runs = inner && inner->a == 1 && inner->n >= PACK_LONG;
  for (int64_t p = 0; p < block->count; p += n) {
    int64_t rest = runs ? inner->n - (block->p + p) % inner->n : PACK_TABLE;
    n = block->count - p < rest ? block->count - p : rest;
    cpu_gemm_offsets(&own, 'a', block->p + p, runs ? 1 : n, at);
    fn(block->from + (runs ? at[0] * bytes : 0), block->lines, block->n_lines, runs ? NULL : at, n, p, to, columns);
  }
}

void cpu_gemm_pack_a(const cpu_gemm *g, const cpu_gemm_block *block, int padded, char *to) {
  pack_fn *fn = pack_rows[pack_way_of(g, (base_dtype)g->a_type)];
  assert(block->n_lines + g->shifted <= padded && padded <= GEMM_ROWS && block->count <= g->k_block);
  pack_all(g, block, true, fn, to);
  /* A step that is not full: B's part of it is zeros, so that of A may be anything that is no NaN. */
  int64_t end = block->count * (g->bytes ? 1 : 2);
  for (int l = 0; g->pairs && end % 4 && l < block->n_lines; l++)
    memset(to + (size_t)l * GEMM_ROW_BYTES + end, 0, (size_t)(4 - end % 4));
  for (int l = block->n_lines; l < padded; l++) memset(to + (size_t)l * GEMM_ROW_BYTES, 0, GEMM_BLOCK_BYTES);
  if (g->shifted) memset(to + (size_t)block->n_lines * GEMM_ROW_BYTES, 0x80, GEMM_BLOCK_BYTES);
}

/* A panel of B, or a block's part of it. One that is not full, or has part of a step at its end, is zeroed first. */
void cpu_gemm_pack_b(const cpu_gemm *g, const cpu_gemm_block *block, char *to) {
  pack_fn *fn = pack_columns[pack_way_of(g, (base_dtype)g->b_type)];
  int width = g->kernel.columns / (g->is_complex ? 2 : 1);
  int64_t line = g->kernel.columns * (int64_t)base_dtype_bytes((base_dtype)g->sum);
  if (block->n_lines < width || (g->pairs && block->count % (g->bytes ? 4 : 2)))
    memset(to, 0, (size_t)(cpu_gemm_steps(g, block->count) * line));
  pack_all(g, block, false, fn, to);
}
