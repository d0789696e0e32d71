/* A stable merge sort of places by a comparator that is run on one pair after another. Merges are those of the
 * interpreter (interp/algorithm/sort_merge.c), cut into the same pieces, so that a comparator that is not an order,
 * such as < where there are NaNs, gives the same too. Threads share the rows, or the pieces of a long one. Where only
 * the first elements of a sorted row are kept, merges make only the pieces that these are in: a piece depends on no
 * more of its runs than it ends at, whatever the comparator. */
#include "sort_body.h"

enum {
  BSORT_LANES = 4096,   /* the interpreter's: pieces of all rows together */
  BSORT_MIN_PIECE = 16, /* the same */
  BSORT_LONG = 1 << 14, /* longer rows are shared between threads */
  BSORT_RANGE = 1 << 12,
  BSORT_POLL = 1 << 12
};

/* A comparator, with what is in its slots. A record is the place of an element in its row, then the elements of the
 * operands that the comparator reads. */
typedef struct bsort_compare {
  cpu_body_one one;
  const cpu_sort_body *s;
  const cpu_routine_run *r;
  uint32_t n_reads[2];
  cpu_body_read *reads[2]; /* of the left side, of the right one: from offsets in a record */
} bsort_compare;

static inline void bsort_fetch(uint32_t n, const cpu_body_read *reads, const char *record) {
  for (const cpu_body_read *r = reads, *end = reads + n; r < end; r++)
    cpu_body_copy(r->bytes, r->slot, record + r->step);
}

/* Whether `left` comes before `right`. */
static inline bool bsort_before(bsort_compare *c, const char *left, const char *right) {
  bsort_fetch(c->n_reads[0], c->reads[0], left); /* both, though one was there: which is what no CPU can predict */
  bsort_fetch(c->n_reads[1], c->reads[1], right);
  cpu_body_one_run(&c->one);
  return *cpu_body_result(&c->one, 0) != 0;
}

static inline void bsort_copy(int64_t record, char *to, const char *from) {
  if (record == 8)
    memcpy(to, from, 8);
  else if (record == 12)
    memcpy(to, from, 12);
  else
    memcpy(to, from, (size_t)record);
}

static bool bsort_reads(const cpu_sort_body *s, uint32_t i) {
  return s->body->program->values[2 * i].read || s->body->program->values[2 * i + 1].read;
}

/* The first element of a row. */
static int64_t bsort_row_at(const cpu_sort_body *s, int64_t row) {
  return row / s->inner * s->inner * s->length + row % s->inner;
}

/* Records of elements begin to end of a row. */
static void bsort_take(const cpu_sort_body *s, const cpu_routine_run *r, int64_t row, char *to, int64_t begin,
                       int64_t end) {
  int64_t offset = sizeof(uint32_t);
  for (int64_t i = begin; i < end; i++) {
    uint32_t place = (uint32_t)i;
    memcpy(to + i * s->record, &place, sizeof place);
  }
  for (uint32_t k = 0; k < s->n; k++) {
    int64_t bytes = s->bytes[k], step = s->inner * bytes;
    const char *from = (const char *)r->in[k] + bsort_row_at(s, row) * bytes;
    if (!bsort_reads(s, k)) continue;
    for (int64_t i = begin; i < end; i++) cpu_body_copy((size_t)bytes, to + i * s->record + offset, from + i * step);
    offset += bytes;
  }
}

/* --- merges --- */

/* The merges of runs of `width`: each in `pieces` pieces, of which the last may have nothing to do. */
typedef struct bsort_level {
  int64_t length, width, piece, pieces, merges;
  bool cut; /* in pieces, of which only one may be made */
  const char *from;
  char *to;
  uint32_t *bounds; /* by piece: how many of its first outputs come from the first run; used where it is cut */
} bsort_level;

static bsort_level bsort_level_make(const cpu_sort_body *s, int64_t width, const char *from, char *to,
                                    uint32_t *bounds) {
  bsort_level l = {.length = s->length, .width = width, .piece = s->piece, .from = from, .to = to, .bounds = bounds};
  l.pieces = (interp_min(2 * width, s->length) + s->piece - 1) / s->piece;
  l.cut = l.pieces > 1;
  l.pieces = interp_min(l.pieces, interp_max(1, (s->kept + s->piece - 1) / s->piece));
  l.merges = (s->length + 2 * width - 1) / (2 * width);
  return l;
}

/* A merge: na elements from base, nb behind them. */
typedef struct bsort_merge {
  int64_t base, na, nb;
} bsort_merge;

static bsort_merge bsort_merge_of(const bsort_level *l, int64_t merge) {
  bsort_merge m = {.base = merge * 2 * l->width};
  m.na = interp_min(l->width, l->length - m.base);
  m.nb = interp_min(l->width, l->length - m.base - m.na);
  return m;
}

/* Where piece p of a merge ends. */
static int64_t bsort_end(const bsort_level *l, const bsort_merge *m, int64_t p) {
  return interp_min((p + 1) * l->piece, m->na + m->nb);
}

/* How many of the first `end` outputs come from the first run. */
static uint32_t bsort_search(bsort_compare *c, const bsort_level *l, const bsort_merge *m, int64_t end) {
  int64_t low = interp_max(0, end - m->nb), high = interp_min(end, m->na);
  int64_t record = c->s->record;
  const char *left = l->from + m->base * record, *right = left + m->na * record;
  while (low < high) {
    int64_t mid = (low + high) / 2;
    if (bsort_before(c, right + (end - 1 - mid) * record, left + mid * record))
      high = mid;
    else
      low = mid + 1;
  }
  return (uint32_t)low;
}

/* Answers of what is not an order may not fit each other; each is held between what the piece before took and what is
 * left, so that the result is a permutation. */
static void bsort_hold(const bsort_level *l, int64_t merge) {
  bsort_merge m = bsort_merge_of(l, merge);
  int64_t before = 0, begin = 0;
  for (int64_t p = 0; p < l->pieces && begin < m.na + m.nb; p++) {
    int64_t end = bsort_end(l, &m, p);
    int64_t least = interp_max(before, end - m.nb), most = interp_min(before + end - begin, m.na);
    uint32_t *bound = &l->bounds[merge * l->pieces + p];
    *bound = (uint32_t)interp_clamp(*bound, least, most);
    before = *bound;
    begin = end;
  }
}

static void bsort_piece(bsort_compare *c, const bsort_level *l, const bsort_merge *m, int64_t begin, int64_t end,
                        int64_t a, int64_t a_end) {
  int64_t record = c->s->record, b = begin - a, b_end = end - a_end;
  const char *left = l->from + (m->base + a) * record, *right = l->from + (m->base + m->na + b) * record;
  const char *left_end = left + (a_end - a) * record, *right_end = right + (b_end - b) * record;
  char *to = l->to + (m->base + begin) * record;
  for (; left < left_end && right < right_end; to += record) {
    int64_t takes = -(int64_t)bsort_before(c, right, left); /* as a mask: no branch to guess */
    bsort_copy(record, to, left + ((right - left) & takes));
    right += record & takes;
    left += record & ~takes;
  }
  memcpy(to, left, (size_t)(left_end - left));
  memcpy(to + (left_end - left), right, (size_t)(right_end - right));
}

static void bsort_merge_piece(bsort_compare *c, const bsort_level *l, int64_t merge, int64_t p) {
  bsort_merge m = bsort_merge_of(l, merge);
  int64_t begin = p * l->piece, end = bsort_end(l, &m, p);
  const uint32_t *bounds = l->bounds + merge * l->pieces;
  if (begin >= m.na + m.nb) return;
  if (!l->cut)
    bsort_piece(c, l, &m, 0, m.na + m.nb, 0, m.na);
  else
    bsort_piece(c, l, &m, begin, end, p ? bounds[p - 1] : 0, bounds[p]);
}

static void bsort_bound_piece(bsort_compare *c, const bsort_level *l, int64_t merge, int64_t p) {
  bsort_merge m = bsort_merge_of(l, merge);
  if (p * l->piece < m.na + m.nb) l->bounds[merge * l->pieces + p] = bsort_search(c, l, &m, bsort_end(l, &m, p));
}

/* --- rows --- */

typedef struct bsort_work {
  const cpu_sort_body *s;
  const cpu_routine_run *r;
  bsort_level level; /* of a long row */
  int64_t row;
  char *sorted;
} bsort_work;

static int64_t bsort_room(const cpu_sort_body *s) {
  return (s->length * s->record + 63) & ~(int64_t)63;
}

/* Two arrays of records, then bounds. */
typedef struct bsort_memory {
  char *a, *b;
  uint32_t *bounds;
} bsort_memory;

static bsort_memory bsort_memory_of(const cpu_sort_body *s, char *memory) {
  int64_t room = bsort_room(s);
  return (bsort_memory){memory, memory + room, (uint32_t *)(void *)(memory + 2 * room)};
}

static void bsort_give(const cpu_sort_body *s, const cpu_routine_run *r, int64_t row, const char *sorted, int64_t begin,
                       int64_t end) {
  int64_t offset = sizeof(uint32_t);
  for (uint32_t i = 0; i < s->n; i++) {
    int64_t bytes = s->bytes[i], step = s->inner * bytes;
    const char *from = (const char *)r->in[i] + bsort_row_at(s, row) * bytes;
    char *to = (char *)r->out[i] + bsort_row_at(s, row) * bytes;
    bool here = bsort_reads(s, i);
    for (int64_t k = begin; k < end; k++) {
      uint32_t place;
      memcpy(&place, sorted + k * s->record, sizeof place);
      cpu_body_copy((size_t)bytes, to + k * step, here ? sorted + k * s->record + offset : from + place * step);
    }
    if (here) offset += bytes;
  }
}

/* false when it is to stop. */
static bool bsort_level_run(bsort_compare *c, const bsort_level *l) {
  for (int64_t m = 0; m < l->merges; m++) {
    for (int64_t p = 0; p < l->pieces && l->cut; p++) bsort_bound_piece(c, l, m, p);
    if (l->cut) bsort_hold(l, m);
    for (int64_t p = 0; p < l->pieces; p++) bsort_merge_piece(c, l, m, p);
    if (m % 64 == 0 && rt_pool_stopping(c->r->run->exe->pool)) return false;
  }
  return true;
}

static size_t bsort_compare_bytes(const cpu_sort_body *s) {
  return s->body->one_bytes + 2 * s->n * sizeof(cpu_body_read);
}

static bsort_compare bsort_compare_make(const bsort_work *w, char *memory) {
  bsort_compare c = {.s = w->s, .r = w->r};
  cpu_body_one_begin(&c.one, w->s->body, memory);
  c.reads[0] = (cpu_body_read *)(void *)(memory + w->s->body->one_bytes);
  c.reads[1] = c.reads[0] + w->s->n;
  int64_t offset = sizeof(uint32_t);
  for (uint32_t i = 0; i < w->s->n; i++) {
    if (!bsort_reads(w->s, i)) continue;
    for (uint32_t side = 0; side < 2; side++)
      if (w->s->body->program->values[2 * i + side].read)
        c.reads[side][c.n_reads[side]++] =
            (cpu_body_read){w->s->bytes[i], NULL, offset, cpu_body_slot(&c.one, 2 * i + side)};
    offset += w->s->bytes[i];
  }
  return c;
}
/* A comparator on the caller's stack. */
#define BSORT_COMPARE(name, w)                                                              \
  char *name##_memory = __builtin_alloca_with_align(bsort_compare_bytes((w)->s) + 64, 512); \
  bsort_compare name = bsort_compare_make((w), name##_memory)

static void bsort_rows(void *ctx, size_t begin, size_t end) {
  const bsort_work *w = ctx;
  const cpu_sort_body *s = w->s;
  BSORT_COMPARE(c, w);
  bsort_memory m = bsort_memory_of(s, cpu_share_memory(&s->share, w->r->scratch, begin));
  for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
    char *from = m.a, *to = m.b;
    bsort_take(s, w->r, row, from, 0, s->length);
    for (int64_t width = 1; width < s->length; width *= 2) {
      bsort_level l = bsort_level_make(s, width, from, to, m.bounds);
      if (!bsort_level_run(&c, &l)) return;
      char *swap = from;
      from = to;
      to = swap;
    }
    bsort_give(s, w->r, row, from, 0, s->kept);
  }
}

/* --- a long row --- */

static void bsort_pieces(const bsort_work *w, size_t begin, size_t end,
                         void (*fn)(bsort_compare *, const bsort_level *, int64_t, int64_t)) {
  BSORT_COMPARE(c, w);
  for (size_t i = begin; i < end; i++) fn(&c, &w->level, (int64_t)i / w->level.pieces, (int64_t)i % w->level.pieces);
}
static void bsort_bound_range(void *ctx, size_t begin, size_t end) {
  bsort_pieces(ctx, begin, end, bsort_bound_piece);
}
static void bsort_merge_range(void *ctx, size_t begin, size_t end) {
  bsort_pieces(ctx, begin, end, bsort_merge_piece);
}

static void bsort_give_range(void *ctx, size_t begin, size_t end) {
  const bsort_work *w = ctx;
  bsort_give(w->s, w->r, w->row, w->sorted, (int64_t)begin, (int64_t)end);
}
static void bsort_take_range(void *ctx, size_t begin, size_t end) {
  const bsort_work *w = ctx;
  bsort_take(w->s, w->r, w->row, w->sorted, (int64_t)begin, (int64_t)end);
}

static void bsort_long_level(bsort_work *w, rt_pool *pool) {
  const bsort_level *l = &w->level;
  size_t all = (size_t)(l->merges * l->pieces);
  int64_t each = interp_min(2 * l->width, l->piece);
  size_t grain = (size_t)interp_max(1, BSORT_RANGE / each);
  if (l->cut) {
    rt_parallel_for(pool, all, grain, bsort_bound_range, w);
    for (int64_t m = 0; m < l->merges; m++) bsort_hold(l, m);
  }
  rt_parallel_for(pool, all, grain, bsort_merge_range, w);
}

static void bsort_long_row(bsort_work *w, rt_pool *pool) {
  const cpu_sort_body *s = w->s;
  bsort_memory m = bsort_memory_of(s, w->r->scratch);
  char *from = m.a, *to = m.b;
  w->sorted = from;
  rt_parallel_for(pool, (size_t)s->length, BSORT_RANGE * 4, bsort_take_range, w);
  for (int64_t width = 1; width < s->length; width *= 2) {
    w->level = bsort_level_make(s, width, from, to, m.bounds);
    bsort_long_level(w, pool);
    if (rt_pool_stopping(pool)) return; /* places are not all there */
    char *swap = from;
    from = to;
    to = swap;
  }
  w->sorted = from;
  rt_parallel_for(pool, (size_t)s->kept, BSORT_RANGE * 4, bsort_give_range, w);
}

/* --- the whole --- */

int64_t cpu_sort_body_make(cpu_sort_body *s, int64_t length, int64_t rows, int64_t inner) {
  s->length = length;
  s->rows = rows;
  s->inner = inner;
  s->record = sizeof(uint32_t);
  for (uint32_t i = 0; i < s->n; i++) s->record += bsort_reads(s, i) ? s->bytes[i] : 0;
  s->record = (s->record + 3) & ~(int64_t)3;
  s->piece = interp_max(BSORT_MIN_PIECE, rows * length / BSORT_LANES);
  int64_t bounds = 3 * (length / s->piece + 2) * (int64_t)sizeof(uint32_t), bytes = 2 * bsort_room(s) + bounds;
  if (length >= BSORT_LONG) return bytes;
  return cpu_share_make(&s->share, rows, BSORT_RANGE / interp_max(1, length), bytes);
}

void cpu_sort_body_run(const cpu_sort_body *s, const cpu_routine_run *r) {
  bsort_work w = {.s = s, .r = r};
  rt_pool *pool = r->run->exe->pool;
  if (s->rows == 0 || s->length == 0 || s->kept == 0) return;
  if (s->length < BSORT_LONG) {
    cpu_share_run(&s->share, pool, bsort_rows, &w);
    return;
  }
  for (w.row = 0; w.row < s->rows && !rt_pool_stopping(pool); w.row++) bsort_long_row(&w, pool);
}
