/* Strided copies. Unit dimensions are dropped, neighbours that both sides walk as one are merged, what is contiguous on
 * both sides becomes one block. Where the two sides are contiguous along different dimensions, tiles go through a small
 * buffer, so that each cache line of either side is touched once. */
#include "move.h"

#include "../../interp/algorithm/strided.h"
#include "../square.h"

/* MOVE_PIECE: bytes for a thread at a time. MOVE_ALONE: so few bytes that one thread does them all. MOVE_LINE: bytes
 * of a cache line, which a tile is long. MOVE_LINES: tiles side by side before the next row of them. MOVE_FEW: so few
 * neighbours need no tiles. */
enum { MOVE_PIECE = 1 << 17, MOVE_ALONE = 1 << 18, MOVE_LINE = 64, MOVE_LINES = 8, MOVE_FEW = 4 };

/* --- making --- */

/* The copy while its dimensions are dropped and merged. */
typedef struct move_draft {
  uint32_t rank;
  int64_t block;
  cpu_move_dim d[IR_MAX_RANK];
} move_draft;

/* Dimensions in bytes, merged; false when there is no element. */
static bool move_draft_dims(move_draft *x, size_t bytes, uint32_t rank, const int64_t *dims, const int64_t *to,
                            const int64_t *from) {
  int64_t size = (int64_t)bytes;
  x->rank = 0;
  x->block = size;
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] == 0) return false;
  for (uint32_t i = 0; i < rank; i++) {
    cpu_move_dim d = {dims[i], to[i] * size, from[i] * size}, *last = x->rank ? &x->d[x->rank - 1] : NULL;
    if (d.n == 1) continue;
    /* Both sides walk the two as one: the outer step is the whole of the inner dimension. */
    if (last && last->to == d.to * d.n && last->from == d.from * d.n) {
      *last = (cpu_move_dim){last->n * d.n, d.to, d.from};
      continue;
    }
    x->d[x->rank++] = d;
  }
  while (x->rank && x->d[x->rank - 1].to == x->block && x->d[x->rank - 1].from == x->block)
    x->block *= x->d[--x->rank].n;
  return true;
}

/* Moves dimension d behind the others. */
static void move_draft_last(move_draft *x, uint32_t d) {
  assert(d < x->rank);
  cpu_move_dim moved = x->d[d];
  memmove(&x->d[d], &x->d[d + 1], (x->rank - 1 - d) * sizeof moved);
  x->d[x->rank - 1] = moved;
}

/* Whether a block has a loop of its own: 1, 2, 4, 8 or 16 bytes. */
static bool move_is_element(int64_t block) {
  assert(block > 0);
  return block <= 16 && (block & (block - 1)) == 0;
}

/* The dimension that is nearest in `to` comes last; before it, for tiles, the one that is contiguous in `from`. Gives
 * the kind that is for that order. Only for drafts with dimensions. */
static uint8_t move_draft_order(move_draft *x) {
  assert(x->rank > 0);
  uint32_t near = x->rank - 1;
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->d[i].to < x->d[near].to) near = i;
  move_draft_last(x, near);
  const cpu_move_dim *last = &x->d[x->rank - 1];
  if (!move_is_element(x->block) || last->to != x->block || last->n < 2) return CPU_MOVE_ROWS;
  for (uint32_t i = 0; i + 1 < x->rank; i++) {
    if (x->d[i].from != x->block || x->d[i].n < 2) continue;
    move_draft_last(x, i);
    move_draft_last(x, x->rank - 2);
    return CPU_MOVE_TILES;
  }
  return CPU_MOVE_ROWS;
}

/* How the work is cut. Tiles are cut along their longer side, rows where there are few of them. Sizes alone decide. */
static void move_cut(cpu_move *m, const move_draft *x) {
  int64_t outer = 1, inner = 1, element = m->block;
  uint32_t around = m->rank - (m->kind == CPU_MOVE_TILES ? 2 : 1);
  for (uint32_t i = 0; i < around; i++) outer *= x->d[i].n;
  for (uint32_t i = around; i < m->rank; i++) inner *= x->d[i].n;
  m->cut = m->rank - 1;
  if (m->kind == CPU_MOVE_TILES && x->d[m->rank - 2].n > x->d[m->rank - 1].n) m->cut = m->rank - 2;
  int64_t n = x->d[m->cut].n, each = inner / n * element;
  m->step = n;
  if (outer < 64 && inner * element > MOVE_PIECE) {
    m->step = MOVE_PIECE / each;
    m->step = m->step < MOVE_LINE ? MOVE_LINE : m->step / MOVE_LINE * MOVE_LINE; /* whole tiles of all sizes */
  }
  m->pieces = (n + m->step - 1) / m->step;
  m->units = outer * m->pieces;
  m->bytes = outer * inner * element;
  m->grain = MOVE_PIECE / ((m->step < n ? m->step : n) * each);
  if (m->grain < 1) m->grain = 1;
}

/* Linear in the rank. */
bool cpu_move_make(cpu_move *m, base_arena *arena, size_t bytes, uint32_t rank, const int64_t *dims, const int64_t *to,
                   const int64_t *from) {
  move_draft x;
  assert(rank <= IR_MAX_RANK);
  *m = (cpu_move){.kind = CPU_MOVE_NOTHING};
  if (!move_draft_dims(&x, bytes, rank, dims, to, from)) return true;
  m->block = m->bytes = x.block;
  m->kind = CPU_MOVE_BLOCK;
  /* Nothing but one block is left. */
  if (x.rank == 0) return true;
  m->kind = move_draft_order(&x);
  m->rank = x.rank;
  move_cut(m, &x);
  m->dims = base_arena_memdup(arena, x.d, x.rank * sizeof *x.d);
  return m->dims != NULL;
}

void cpu_move_strides(const ir_type *t, int64_t *strides) {
  int64_t n = 1;
  for (uint32_t d = t->rank; d-- > 0;) {
    strides[d] = n;
    n *= t->dims[d];
  }
}

/* --- rows --- */

/* An element of 16 bytes, copied as one. */
typedef struct move_16 {
  uint64_t half[2];
} move_16;

/* n elements from one stride to another. The common strides have loops that the compiler turns into vector code: one
 * element again and again, every second one, and backwards. */
#define MOVE_ROW(name, T)                                                                           \
  static void name(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) { \
    const int64_t size = sizeof(T);                                                                 \
    T v;                                                                                            \
    if (to_stride == size && from_stride == 0) {                                                    \
      memcpy(&v, from, sizeof v);                                                                   \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * size, &v, sizeof v);                          \
      return;                                                                                       \
    }                                                                                               \
    if (to_stride == size && from_stride == 2 * size) {                                             \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + i * 2 * size, sizeof v);         \
      return;                                                                                       \
    }                                                                                               \
    if (to_stride == size && from_stride == -size) {                                                \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from - i * size, sizeof v);             \
      return;                                                                                       \
    }                                                                                               \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, sizeof v);   \
  }
MOVE_ROW(move_row_1, uint8_t)
MOVE_ROW(move_row_2, uint16_t)
MOVE_ROW(move_row_4, uint32_t)
MOVE_ROW(move_row_8, uint64_t)
MOVE_ROW(move_row_16, move_16)
#undef MOVE_ROW

/* Blocks of other sizes than an element's go by memcpy. */
void cpu_move_row(int64_t block, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
  switch (block) {
    case 1:
      move_row_1(to, to_stride, from, from_stride, n);
      return;
    case 2:
      move_row_2(to, to_stride, from, from_stride, n);
      return;
    case 4:
      move_row_4(to, to_stride, from, from_stride, n);
      return;
    case 8:
      move_row_8(to, to_stride, from, from_stride, n);
      return;
    case 16:
      move_row_16(to, to_stride, from, from_stride, n);
      return;
    default:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, (size_t)block);
  }
}

/* --- tiles: a along `from`, b along `to` --- */

/* Column by column into the buffer, whose rows then go out whole. Whole tiles have loops of known length. */
#define MOVE_TILE(name, T)                                                                                           \
  static inline __attribute__((always_inline)) void name##_of(char *to, int64_t to_a, const char *from,              \
                                                              int64_t from_b, int64_t na, int64_t nb) {              \
    T buffer[MOVE_LINE / sizeof(T)][MOVE_LINE / sizeof(T)];                                                          \
    for (int64_t b = 0; b < nb; b++)                                                                                 \
      for (int64_t a = 0; a < na; a++) memcpy(&buffer[a][b], from + b * from_b + a * (int64_t)sizeof(T), sizeof(T)); \
    for (int64_t a = 0; a < na; a++) memcpy(to + a * to_a, buffer[a], (size_t)nb * sizeof(T));                       \
  }                                                                                                                  \
  static void name(char *to, int64_t to_a, const char *from, int64_t from_b, int64_t na, int64_t nb) {               \
    const int64_t side = MOVE_LINE / sizeof(T);                                                                      \
    if (na == side && nb == side)                                                                                    \
      name##_of(to, to_a, from, from_b, side, side);                                                                 \
    else                                                                                                             \
      name##_of(to, to_a, from, from_b, na, nb);                                                                     \
  }
MOVE_TILE(move_tile_1, uint8_t)
MOVE_TILE(move_tile_2, uint16_t)
MOVE_TILE(move_tile_4, uint32_t)
MOVE_TILE(move_tile_8, uint64_t)
MOVE_TILE(move_tile_16, move_16)
#undef MOVE_TILE

/* Four elements of four bytes, in one register. */
typedef uint32_t move_four __attribute__((vector_size(16)));

/* From any address. */
static inline move_four move_load(const char *p) {
  move_four v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* A whole tile of 16 by 16, four by four; the buffer's rows are whole cache lines. */
static void move_whole_tile_4(char *to, int64_t to_a, const char *from, int64_t from_b) {
  move_four buffer[16][4];
  for (int b = 0; b < 4; b++) {
    for (int a = 0; a < 4; a++) {
      const char *p = from + 4 * b * from_b + 16 * a;
      move_four r0 = move_load(p), r1 = move_load(p + from_b), r2 = move_load(p + 2 * from_b),
                r3 = move_load(p + 3 * from_b);
      CPU_TURN_SQUARE(move_four, r0, r1, r2, r3, buffer[4 * a][b], buffer[4 * a + 1][b], buffer[4 * a + 2][b],
                      buffer[4 * a + 3][b]);
    }
  }
  for (int a = 0; a < 16; a++) memcpy(to + a * to_a, buffer[a], sizeof buffer[a]);
}

/* One tile of na by nb blocks, at most a cache line on each side. */
static void move_tile(int64_t block, char *to, int64_t to_a, const char *from, int64_t from_b, int64_t na, int64_t nb) {
  switch (block) {
    case 1:
      move_tile_1(to, to_a, from, from_b, na, nb);
      return;
    case 2:
      move_tile_2(to, to_a, from, from_b, na, nb);
      return;
    case 4:
      if (na == 16 && nb == 16)
        move_whole_tile_4(to, to_a, from, from_b);
      else
        move_tile_4(to, to_a, from, from_b, na, nb);
      return;
    case 8:
      move_tile_8(to, to_a, from, from_b, na, nb);
      return;
    default:
      assert(block == 16);
      move_tile_16(to, to_a, from, from_b, na, nb);
  }
}

/* n times 2 to 4 blocks: `long` is from each time to the next, `few` between them. */
typedef struct move_steps {
  int64_t n, few, to_long, from_long, to_few, from_few;
} move_steps;

/* Pairs that lie together on one side and in two rows on the other: with steps known here, the compiler makes vectors
 * of it. Other numbers of blocks go one by one. */
#define MOVE_PAIRS(T, x_long, y_long, x_few, y_few) \
  for (int64_t i = 0; i < s->n; i++)                \
    for (int64_t j = 0; j < 2; j++)                 \
  memcpy(to + i * (x_long) + j * (x_few), from + i * (y_long) + j * (y_few), sizeof(T))
#define MOVE_TURN(name, T, few_n)                                              \
  case few_n:                                                                  \
    for (int64_t i = 0; i < s->n; i++, to += s->to_long, from += s->from_long) \
      _Pragma("GCC unroll 4") for (int64_t j = 0; j < few_n; j++)              \
          memcpy(to + j * s->to_few, from + j * s->from_few, sizeof(T));       \
    return;
#define MOVE_TURNS(name, T)                                                                          \
  static void name(const move_steps *s, char *restrict to, const char *restrict from) {              \
    const int64_t own = sizeof(T);                                                                   \
    bool to_rows = s->few == 2 && s->to_long == own, from_rows = s->few == 2 && s->from_long == own; \
    if (to_rows && s->from_few == own && s->from_long == 2 * own) {                                  \
      MOVE_PAIRS(T, own, 2 * own, s->to_few, own);                                                   \
    } else if (from_rows && s->to_few == own && s->to_long == 2 * own) {                             \
      MOVE_PAIRS(T, 2 * own, own, own, s->from_few);                                                 \
    } else {                                                                                         \
      switch (s->few) { MOVE_TURN(name, T, 2) MOVE_TURN(name, T, 3) MOVE_TURN(name, T, 4) }          \
    }                                                                                                \
  }
MOVE_TURNS(move_few_1, uint8_t)
MOVE_TURNS(move_few_2, uint16_t)
MOVE_TURNS(move_few_4, uint32_t)
MOVE_TURNS(move_few_8, uint64_t)
#undef MOVE_TURNS
#undef MOVE_TURN
#undef MOVE_PAIRS

/* Planes to points of few coordinates, or back: one side goes through a few rows at once. false: it is not so. */
static bool move_few(const cpu_move *m, char *to, const char *from, int64_t na, int64_t nb) {
  static void (*const loops[])(const move_steps *, char *, const char *) = {move_few_1, move_few_2, move_few_4,
                                                                            move_few_8};
  const cpu_move_dim *a = &m->dims[m->rank - 2], *b = &m->dims[m->rank - 1];
  bool by_a = na <= MOVE_FEW;
  move_steps s = {nb, na, b->to, b->from, a->to, a->from};
  if ((!by_a && nb > MOVE_FEW) || na < 2 || nb < 2 || m->block > 8) return false;
  if (!by_a) s = (move_steps){na, nb, a->to, a->from, b->to, b->from};
  loops[__builtin_ctzll((uint64_t)m->block)](&s, to, from);
  return true;
}

/* Tiles go along `to`, some lines of `from` wide, so that both sides stay within few pages for a while. */
static void move_tiles(const cpu_move *m, char *to, const char *from, int64_t na, int64_t nb) {
  const cpu_move_dim *a = &m->dims[m->rank - 2], *b = &m->dims[m->rank - 1];
  int64_t side = MOVE_LINE / m->block, wide = MOVE_LINES * side;
  if (move_few(m, to, from, na, nb)) return;
  for (int64_t w = 0; w < na; w += wide) {
    int64_t end = na - w < wide ? na : w + wide;
    for (int64_t j = 0; j < nb; j += side) {
      int64_t nj = nb - j < side ? nb - j : side;
      for (int64_t i = w; i < end; i += side)
        move_tile(m->block, to + i * a->to + j * b->to, a->to, from + i * a->from + j * b->from, b->from,
                  end - i < side ? end - i : side, nj);
    }
  }
}

/* --- running --- */

/* One run: shared by its threads. */
typedef struct move_run {
  const cpu_move *m;
  char *to;
  const char *from;
} move_run;

/* One piece of an outer place, from element `begin` of the cut dimension on; the last piece may be shorter. */
static void move_inner(const cpu_move *m, char *to, const char *from, int64_t begin) {
  const cpu_move_dim *c = &m->dims[m->cut], *last = &m->dims[m->rank - 1];
  int64_t n = c->n - begin < m->step ? c->n - begin : m->step;
  to += begin * c->to;
  from += begin * c->from;
  if (m->kind == CPU_MOVE_ROWS)
    cpu_move_row(m->block, to, last->to, from, last->from, n);
  else
    move_tiles(m, to, from, m->cut == m->rank - 2 ? n : m->dims[m->rank - 2].n, m->cut == m->rank - 1 ? n : last->n);
}

/* Units begin to end: outer places in order, each with its pieces. Places are found by division once, and counted up
 * after. */
static void move_range(void *ctx, size_t begin, size_t end) {
  assert(begin < end && ((const move_run *)ctx)->m->rank > 0);
  const move_run *x = ctx;
  const cpu_move *m = x->m;
  char *to = x->to;
  const char *from = x->from;
  int64_t at[IR_MAX_RANK], rest = (int64_t)begin / m->pieces, piece = (int64_t)begin % m->pieces;
  uint32_t outer = m->rank - (m->kind == CPU_MOVE_TILES ? 2 : 1);
  for (uint32_t d = outer; d-- > 0;) {
    at[d] = rest % m->dims[d].n;
    rest /= m->dims[d].n;
    to += at[d] * m->dims[d].to;
    from += at[d] * m->dims[d].from;
  }
  for (size_t i = begin; i < end; i++) {
    move_inner(m, to, from, piece * m->step);
    /* The place's last piece is done: on to the next place, counting from the innermost dimension. */
    if (++piece < m->pieces) continue;
    piece = 0;
    for (uint32_t d = outer; d-- > 0;) {
      to += m->dims[d].to;
      from += m->dims[d].from;
      if (++at[d] < m->dims[d].n) break;
      to -= m->dims[d].to * at[d];
      from -= m->dims[d].from * at[d];
      at[d] = 0;
    }
  }
}

/* Bytes begin to end; for rt_parallel_for. */
static void move_bytes_range(void *ctx, size_t begin, size_t end) {
  const move_run *x = ctx;
  memcpy(x->to + begin, x->from + begin, end - begin);
}

void cpu_move_bytes(rt_pool *pool, void *to, const void *from, int64_t n) {
  assert(n >= 0);
  move_run x = {NULL, to, from};
  if (to == from || n == 0) return;
  if (n <= MOVE_ALONE)
    memcpy(to, from, (size_t)n);
  else
    rt_parallel_for(pool, (size_t)n, MOVE_PIECE, move_bytes_range, &x);
}

/* One fill: shared by its threads. */
typedef struct move_filling {
  size_t bytes;
  char *to;
  const void *element;
} move_filling;

/* Elements begin to end; for rt_parallel_for. */
static void move_fill_range(void *ctx, size_t begin, size_t end) {
  const move_filling *x = ctx;
  interp_fill(x->bytes, x->to + begin * x->bytes, (int64_t)(end - begin), x->element);
}

void cpu_move_fill(rt_pool *pool, size_t bytes, void *to, int64_t n, const void *element) {
  assert(n >= 0 && bytes > 0 && bytes <= MOVE_PIECE);
  move_filling x = {bytes, to, element};
  if (n * (int64_t)bytes <= MOVE_ALONE)
    interp_fill(bytes, to, n, element);
  else
    rt_parallel_for(pool, (size_t)n, MOVE_PIECE / bytes, move_fill_range, &x);
}

/* Small copies don't ask the pool: that would cost more than they do. */
void cpu_move_run(const cpu_move *m, rt_pool *pool, void *to, const void *from) {
  move_run x = {m, to, from};
  if (m->kind == CPU_MOVE_NOTHING) return;
  if (m->kind == CPU_MOVE_BLOCK)
    cpu_move_bytes(pool, to, from, m->bytes);
  else if (m->bytes <= MOVE_ALONE || m->units <= m->grain)
    move_range(&x, 0, (size_t)m->units);
  else
    rt_parallel_for(pool, (size_t)m->units, (size_t)m->grain, move_range, &x);
}
