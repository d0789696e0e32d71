/* Merge sort, bottom up. All merges of one level advance together, one lane each, so that the comparator runs on
 * thousands of pairs at once; where a level has few long merges, each is cut into pieces by searching, again in lanes,
 * which elements of its two runs come first (the "merge path").
 *
 * Whatever the comparator does, the result is a permutation: a comparator that is not an order gives an order
 * that means nothing, as in XLA. */
#include "sort_merge.h"

enum { SORT_LANES = 4096, MIN_PIECE = 16 };

/* Outputs [begin, end) of the merge of run a (na elements from base) and run b (nb elements behind it). */
typedef struct merge_piece {
  int64_t base, na, nb, begin, end;
  int64_t a, a_end; /* how many of the first begin, end outputs come from a */
} merge_piece;

typedef struct merge_run {
  interp_sort *s;
  const int64_t *from;
  int64_t *to;
  merge_piece *pieces;
  int64_t n_pieces, a_before; /* a_end of the last piece made */
  int32_t *active;
  int64_t *left, *right, *low, *high;
  uint8_t *before; /* comparator's answers */
  void **sides;    /* 2 n argument arrays */
  const void **args;
} merge_run;

/* before[i] = comparator(left[i], right[i]), for element numbers. Parameters that nobody reads are not
 * fetched. One call of interp_apply for all n pairs. */
static int merge_compare(merge_run *r, int64_t n) {
  const interp_sort *s = r->s;
  for (uint32_t k = 0; k < 2 * s->n; k++) {
    r->args[k] = r->sides[k];
    if (!s->comparator->params[k]->uses && ir_root(s->comparator) != s->comparator->params[k]) continue;
    interp_copy_listed(base_dtype_bytes(s->types[k / 2]), r->sides[k], s->data[k / 2], k % 2 ? r->right : r->left, n);
  }
  TRY(interp_tick(s->ctx, (uint64_t)n * (s->n + 1)));
  return interp_apply(s->ctx, s->body, n, r->args, (void *[]){r->before});
}

/* Sets low[p] to how many of the first `end` outputs of piece p come from run a. Binary search along the
 * diagonal a + b = end, in all pieces at once. Answers true mean: b's element comes before a's. */
static int merge_search(merge_run *r) {
  int64_t active = 0;
  for (int64_t p = 0; p < r->n_pieces; p++) {
    const merge_piece *m = &r->pieces[p];
    r->low[p] = interp_max(0, m->end - m->nb);
    r->high[p] = interp_min(m->end, m->na);
    if (r->low[p] < r->high[p]) r->active[active++] = (int32_t)p;
  }
  while (active > 0) {
    for (int64_t i = 0; i < active; i++) {
      const merge_piece *m = &r->pieces[r->active[i]];
      int64_t mid = (r->low[r->active[i]] + r->high[r->active[i]]) / 2;
      r->right[i] = r->from[m->base + mid];
      r->left[i] = r->from[m->base + m->na + m->end - 1 - mid];
    }
    TRY(merge_compare(r, active));
    int64_t still = 0;
    for (int64_t i = 0; i < active; i++) {
      int32_t p = r->active[i];
      int64_t mid = (r->low[p] + r->high[p]) / 2;
      if (r->before[i])
        r->high[p] = mid;
      else
        r->low[p] = mid + 1;
      if (r->low[p] < r->high[p]) r->active[still++] = p;
    }
    active = still;
  }
  return 0;
}

/* Where each piece starts and ends in run a. A comparator that is not an order (plain < on NaN) can make the search's
 * answers inconsistent; each end is held between what the piece before took and what is left, so the result is a
 * permutation. */
static void merge_bounds(merge_run *r) {
  for (int64_t p = 0; p < r->n_pieces; p++) {
    merge_piece *m = &r->pieces[p];
    m->a = m->begin == 0 ? 0 : r->a_before;
    int64_t least = interp_max(m->a, m->end - m->nb), most = interp_min(m->a + m->end - m->begin, m->na);
    assert(least <= most);
    m->a_end = interp_clamp(r->low[p], least, most);
    r->a_before = m->a_end;
  }
}

/* Copies the rest of a piece of which one run is used up. `out` outputs have been made. */
static void merge_rest(merge_run *r, const merge_piece *m, int64_t a, int64_t out) {
  int64_t b = out - a, b_end = m->end - m->a_end, *to = r->to + m->base + out;
  const int64_t *from = r->from + m->base;
  assert(a <= m->a_end && b <= b_end && (a == m->a_end || b == b_end));
  memcpy(to, from + a, (size_t)(m->a_end - a) * sizeof *to);
  memcpy(to + (m->a_end - a), from + m->na + b, (size_t)(b_end - b) * sizeof *to);
}

/* Merges all pieces, an output of each at a step. low and high hold the outputs made and those taken from
 * run a. Equal elements come from run a: the comparator is asked whether b's element is before a's, so the
 * sort is stable. */
static int merge_pieces(merge_run *r) {
  int64_t active = r->n_pieces;
  for (int64_t p = 0; p < active; p++) {
    r->active[p] = (int32_t)p;
    r->low[p] = r->pieces[p].begin;
    r->high[p] = r->pieces[p].a;
  }
  while (active > 0) {
    int64_t still = 0;
    for (int64_t i = 0; i < active; i++) {
      int32_t p = r->active[i];
      const merge_piece *m = &r->pieces[p];
      int64_t a = r->high[p], b = r->low[p] - a;
      if (a == m->a_end || b == m->end - m->a_end) {
        merge_rest(r, m, a, r->low[p]);
        continue;
      }
      r->left[still] = r->from[m->base + m->na + b];
      r->right[still] = r->from[m->base + a];
      r->active[still++] = p;
    }
    active = still;
    if (active > 0) TRY(merge_compare(r, active));
    for (int64_t i = 0; i < active; i++) {
      int32_t p = r->active[i];
      r->to[r->pieces[p].base + r->low[p]++] = r->before[i] ? r->left[i] : r->right[i];
      r->high[p] += !r->before[i];
    }
  }
  return 0;
}

/* Merges what has been collected, at most SORT_LANES pieces. */
static int merge_flush(merge_run *r) {
  if (r->n_pieces == 0) return 0;
  TRY(merge_search(r));
  merge_bounds(r);
  TRY(merge_pieces(r));
  r->n_pieces = 0;
  return 0;
}

/* From runs of `width` to runs of twice that; rows are never mixed. */
static int merge_level(merge_run *r, int64_t width) {
  const interp_sort *s = r->s;
  int64_t piece = interp_max(MIN_PIECE, s->rows * s->length / SORT_LANES);
  for (int64_t row = 0; row < s->rows; row++) {
    for (int64_t at = 0; at < s->length; at += 2 * width) {
      merge_piece m = {.base = row * s->length + at, .na = interp_min(width, s->length - at)};
      m.nb = interp_min(width, s->length - at - m.na);
      for (m.begin = 0; m.begin < m.na + m.nb; m.begin = m.end) {
        m.end = interp_min(m.begin + piece, m.na + m.nb);
        if (r->n_pieces == SORT_LANES) TRY(merge_flush(r));
        r->pieces[r->n_pieces++] = m;
      }
    }
  }
  return merge_flush(r);
}

/* False when out of memory; merge_free is due in any case. */
static bool merge_alloc(merge_run *r) {
  interp_ctx *ctx = r->s->ctx;
  uint32_t sides = 2 * r->s->n;
  bool ok =
      (r->pieces = INTERP_SCRATCH(ctx, merge_piece, SORT_LANES)) &&
      (r->active = INTERP_SCRATCH(ctx, int32_t, SORT_LANES)) && (r->left = INTERP_SCRATCH(ctx, int64_t, SORT_LANES)) &&
      (r->right = INTERP_SCRATCH(ctx, int64_t, SORT_LANES)) && (r->low = INTERP_SCRATCH(ctx, int64_t, SORT_LANES)) &&
      (r->high = INTERP_SCRATCH(ctx, int64_t, SORT_LANES)) && (r->before = INTERP_SCRATCH(ctx, uint8_t, SORT_LANES)) &&
      (r->args = INTERP_SCRATCH(ctx, const void *, sides)) && (r->sides = INTERP_SCRATCH(ctx, void *, sides));
  if (!ok) return false;
  memset(r->sides, 0, sides * sizeof *r->sides);
  for (uint32_t k = 0; k < sides && ok; k++) {
    size_t bytes = base_dtype_bytes(r->s->types[k / 2]);
    ok = (r->sides[k] = interp_scratch(ctx, SORT_LANES, bytes)) != NULL;
    if (ok) memset(r->sides[k], 0, SORT_LANES * bytes); /* parameters nobody reads stay so */
  }
  return ok;
}

static void merge_free(merge_run *r) {
  interp_ctx *ctx = r->s->ctx;
  for (uint32_t k = 0; r->sides && k < 2 * r->s->n; k++) interp_scratch_free(ctx, r->sides[k]);
  void *all[] = {r->pieces, r->active, r->left, r->right, r->low, r->high, r->before, r->args, r->sides};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) interp_scratch_free(ctx, all[i]);
}

/* order: rows x length element numbers, row by row in sorted order. */
int interp_sort_by_body(interp_sort *s, int64_t *order) {
  assert(s->n > 0);
  int64_t count = s->rows * s->length;
  merge_run r = {.s = s};
  int64_t *spare = INTERP_SCRATCH(s->ctx, int64_t, count), *from = order, *to = spare;
  int status = spare && merge_alloc(&r) ? 0 : interp_failed(s->ctx);
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t width = 1; status == 0 && width < s->length; width *= 2) {
    r.from = from;
    r.to = to;
    status = merge_level(&r, width);
    int64_t *swap = from;
    from = to;
    to = swap;
  }
  if (status == 0 && from != order) memcpy(order, from, (size_t)count * sizeof *order);
  merge_free(&r);
  interp_scratch_free(s->ctx, spare);
  return status;
}
