/* Strided copies. The nest is first simplified (unit dimensions dropped, neighbours merged where both sides allow),
 * then its innermost part runs as a memcpy, a strided row, or, where the two sides are contiguous along different
 * dimensions, as tiles that fit in the first-level cache. */
#include "strided.h"

#include "arrays.h"

#include <stdlib.h>

enum { STRIDED_TILE = 16, STRIDED_SHORT = 48, STRIDED_TICK = 1 << 16 };

typedef struct strided_nest {
  size_t bytes;
  uint32_t rank;
  int64_t dims[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK]; /* strides in elements */
} strided_nest;

/* One row of n elements; strides in elements. The element is read whole before it is written, so that the compiler may
 * keep a zero-stride source in a register. */
#define STRIDED_ROW(name, T)                                                                             \
  static void name(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {      \
    T v;                                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                    \
      memcpy(&v, from + i * from_stride * (int64_t)sizeof(T), sizeof(T));                                \
      memcpy(to + i * to_stride * (int64_t)sizeof(T), &v, sizeof(T));                                    \
    }                                                                                                    \
  }                                                                                                      \
  static void name##_fill(char *to, const char *from, int64_t n) {                                       \
    T v;                                                                                                 \
    memcpy(&v, from, sizeof(T));                                                                         \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * (int64_t)sizeof(T), &v, sizeof(T));                  \
  }                                                                                                      \
  static void name##_listed(char *to, const char *from, const int64_t *places, int64_t n, bool spread) { \
    const int64_t size = sizeof(T);                                                                      \
    if (spread)                                                                                          \
      for (int64_t i = 0; i < n; i++) memcpy(to + places[i] * size, from + i * size, sizeof(T));         \
    else                                                                                                 \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + places[i] * size, sizeof(T));         \
  }
typedef struct element16 {
  uint64_t half[2];
} element16;
STRIDED_ROW(row_1, uint8_t)
STRIDED_ROW(row_2, uint16_t)
STRIDED_ROW(row_4, uint32_t)
STRIDED_ROW(row_8, uint64_t)
STRIDED_ROW(row_16, element16)
#undef STRIDED_ROW

/* n copies of one element. */
void interp_fill(size_t bytes, void *to, int64_t n, const void *element) {
  switch (bytes) {
    case 1:
      row_1_fill(to, element, n);
      break;
    case 2:
      row_2_fill(to, element, n);
      break;
    case 4:
      row_4_fill(to, element, n);
      break;
    case 8:
      row_8_fill(to, element, n);
      break;
    default:
      assert(bytes == 16);
      row_16_fill(to, element, n);
  }
}

/* n elements, strides in elements; both may be negative. */
void interp_copy_row(size_t bytes, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1 && (size_t)n * bytes >= STRIDED_SHORT) {
    memcpy(to, from, (size_t)n * bytes);
    return;
  }
  if (to_stride == 1 && from_stride == 0) {
    interp_fill(bytes, to, n, from);
    return;
  }
  switch (bytes) {
    case 1:
      row_1(to, to_stride, from, from_stride, n);
      break;
    case 2:
      row_2(to, to_stride, from, from_stride, n);
      break;
    case 4:
      row_4(to, to_stride, from, from_stride, n);
      break;
    case 8:
      row_8(to, to_stride, from, from_stride, n);
      break;
    default:
      assert(bytes == 16);
      row_16(to, to_stride, from, from_stride, n);
  }
}

/* spread: to[places[i]] = from[i]; else to[i] = from[places[i]]. */
static void copy_by_list(size_t bytes, void *to, const void *from, const int64_t *places, int64_t n, bool spread) {
  switch (bytes) {
    case 1:
      row_1_listed(to, from, places, n, spread);
      break;
    case 2:
      row_2_listed(to, from, places, n, spread);
      break;
    case 4:
      row_4_listed(to, from, places, n, spread);
      break;
    case 8:
      row_8_listed(to, from, places, n, spread);
      break;
    default:
      assert(bytes == 16);
      row_16_listed(to, from, places, n, spread);
  }
}

void interp_copy_listed(size_t bytes, void *to, const void *from, const int64_t *places, int64_t n) {
  copy_by_list(bytes, to, from, places, n, false);
}

void interp_spread_listed(size_t bytes, void *to, const void *from, const int64_t *places, int64_t n) {
  copy_by_list(bytes, to, from, places, n, true);
}

/* False when there is nothing to copy. */
static bool nest_make(strided_nest *s, size_t bytes, uint32_t rank, const int64_t *dims, const int64_t *to,
                      const int64_t *from) {
  assert(rank <= IR_MAX_RANK);
  s->bytes = bytes;
  s->rank = 0;
  for (uint32_t d = 0; d < rank; d++) {
    assert(dims[d] >= 0);
    if (dims[d] == 0) return false;
    if (dims[d] == 1) continue;
    uint32_t last = s->rank - 1;
    if (s->rank && s->to[last] == to[d] * dims[d] && s->from[last] == from[d] * dims[d]) {
      s->dims[last] *= dims[d];
      s->to[last] = to[d];
      s->from[last] = from[d];
      continue;
    }
    s->dims[s->rank] = dims[d];
    s->to[s->rank] = to[d];
    s->from[s->rank++] = from[d];
  }
  return true;
}

/* Moves dimension d to place `place`, keeping the others in order. */
static void nest_move(strided_nest *s, uint32_t d, uint32_t place) {
  int64_t dim = s->dims[d], to = s->to[d], from = s->from[d];
  int step = d < place ? 1 : -1;
  for (; d != place; d += (uint32_t)step) {
    s->dims[d] = s->dims[d + (uint32_t)step];
    s->to[d] = s->to[d + (uint32_t)step];
    s->from[d] = s->from[d + (uint32_t)step];
  }
  s->dims[d] = dim;
  s->to[d] = to;
  s->from[d] = from;
}

/* Puts the two dimensions worth tiling last: where `from` is contiguous, then where `to` is. False when one row does.
 */
static bool nest_wants_tiles(strided_nest *s) {
  if (s->rank < 2) return false;
  uint32_t last = s->rank - 1, near_to = last, near_from = last;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (llabs(s->to[d]) < llabs(s->to[near_to])) near_to = d;
    if (s->from[d] != 0 && (s->from[near_from] == 0 || llabs(s->from[d]) < llabs(s->from[near_from]))) near_from = d;
  }
  if (near_to != last) {
    nest_move(s, near_to, last);
    if (near_from == near_to)
      near_from = last;
    else if (near_from > near_to)
      near_from--;
  }
  if (near_from == last || s->from[last] == 0 || s->dims[last] < 4 || s->dims[near_from] < 4) return false;
  nest_move(s, near_from, last - 1);
  return true;
}

/* The work that no tick has been told of, and the tick once that is worth one: rows and tiles may be any length. */
static int nest_tick(interp_ctx *ctx, uint64_t *pending, int64_t work) {
  *pending += (uint64_t)work;
  if (*pending < STRIDED_TICK) return 0;
  uint64_t all = *pending;
  *pending = 0;
  return interp_tick(ctx, all);
}

/* The innermost dimension as one row. */
static int nest_row(interp_ctx *ctx, const strided_nest *s, uint64_t *pending, char *to, const char *from) {
  uint32_t d = s->rank - 1;
  int64_t bytes = (int64_t)s->bytes;
  for (int64_t at = 0; at < s->dims[d]; at += STRIDED_TICK) {
    int64_t n = interp_min(s->dims[d] - at, STRIDED_TICK);
    interp_copy_row(s->bytes, to + at * s->to[d] * bytes, s->to[d], from + at * s->from[d] * bytes, s->from[d], n);
    TRY(nest_tick(ctx, pending, n));
  }
  return 0;
}

/* The two innermost dimensions in squares, so that lines of both sides stay in the cache. */
static int nest_tiles(interp_ctx *ctx, const strided_nest *s, uint64_t *pending, char *to, const char *from) {
  uint32_t a = s->rank - 2, b = s->rank - 1;
  int64_t bytes = (int64_t)s->bytes;
  for (int64_t i0 = 0; i0 < s->dims[a]; i0 += STRIDED_TILE) {
    int64_t i1 = i0 + STRIDED_TILE < s->dims[a] ? i0 + STRIDED_TILE : s->dims[a];
    for (int64_t j = 0; j < s->dims[b]; j += STRIDED_TILE) {
      int64_t n = s->dims[b] - j < STRIDED_TILE ? s->dims[b] - j : STRIDED_TILE;
      for (int64_t i = i0; i < i1; i++)
        interp_copy_row(s->bytes, to + (i * s->to[a] + j * s->to[b]) * bytes, s->to[b],
                        from + (i * s->from[a] + j * s->from[b]) * bytes, s->from[b], n);
      TRY(nest_tick(ctx, pending, n * (i1 - i0)));
    }
  }
  return 0;
}

/* Walks the outer dimensions as an odometer and runs the inner part at each place. */
static int nest_run(interp_ctx *ctx, const strided_nest *s, uint32_t outer, bool tiles, char *to, const char *from) {
  int64_t at[IR_MAX_RANK] = {0}, bytes = (int64_t)s->bytes;
  uint64_t pending = 0;
  for (;;) {
    TRY((tiles ? nest_tiles : nest_row)(ctx, s, &pending, to, from));
    uint32_t d = outer;
    for (; d > 0; d--) {
      to += s->to[d - 1] * bytes;
      from += s->from[d - 1] * bytes;
      if (++at[d - 1] < s->dims[d - 1]) break;
      to -= s->to[d - 1] * s->dims[d - 1] * bytes;
      from -= s->from[d - 1] * s->dims[d - 1] * bytes;
      at[d - 1] = 0;
    }
    if (d == 0) return interp_tick(ctx, pending);
  }
}

int interp_strided_copy(interp_ctx *ctx, size_t bytes, uint32_t rank, const int64_t *dims, void *to,
                        const int64_t *to_strides, const void *from, const int64_t *from_strides) {
  strided_nest s;
  assert(bytes && bytes <= 16 && (bytes & (bytes - 1)) == 0);
  if (!nest_make(&s, bytes, rank, dims, to_strides, from_strides)) return 0;
  if (s.rank == 0) {
    memcpy(to, from, bytes);
    return 0;
  }
  bool tiles = nest_wants_tiles(&s);
  return nest_run(ctx, &s, s.rank - (tiles ? 2 : 1), tiles, to, from);
}
