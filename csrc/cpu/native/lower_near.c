/* Lanes whose places are near each other, as they are where short rows were made one (flatten.c): no gather, which
 * takes some cycles for each lane. A few elements are all there, in all lanes, and each lane selects; else one or two
 * vectors of neighbours hold all that the lanes read, and are permuted.
 *
 *    x[i0], of 2000 by 3 iterations: lanes 0 to 15 of a vector read 6 or 7 neighbours */
#include "emit.h"
#include "lower_inside.h"

enum { NEAR_FEW = 4, NEAR_WINDOWS = 2 };

/* Each lane, of place `at`, selects among elements 0 .. n - 1 of the run. NAT_NONE where they are too many. */
static uint32_t near_few(nat_body *b, nat_stream s, uint32_t at, int64_t n) {
  uint32_t all = NAT_NONE;
  if (n > NEAR_FEW) return NAT_NONE;
  s.made = true;
  for (int64_t j = 0; j < n && !b->failed; j++) {
    kernel_index *index = base_arena_memdup(b->arena, s.index, sizeof *index);
    if (!index) return b->failed = true, 0;
    index->offset += j;
    nat_stream one = s;
    one.index = index;
    uint32_t x = nat_load(b, s.width, nat_stream_of(b, &one));
    if (j == 0) {
      all = x;
      continue;
    }
    uint32_t mask = nat_compare_ints(b, 4, true, SCALAR_EQ, at, nat_constant(b, 4, (uint64_t)j));
    all = nat_select(b, nat_mask(b, mask, s.width), x, all);
  }
  return all;
}

/* The first lane in all of them. */
static uint32_t near_first(nat_body *b, uint32_t x) {
  return nat_op2(b, NAT_PERM, 4, nat_constant(b, 4, 0), x);
}

/* Lanes from a vector of neighbours that begins at the first lane of `start`, or before, where it would go on after
 * element `last` of the run; *from says where it begins. */
static uint32_t near_window(nat_body *b, const nat_stream *s, uint32_t start, int64_t last, uint32_t at,
                            uint32_t *from) {
  uint32_t width = s->width < 4 ? 4 : s->width;
  start = nat_op2(b, NAT_SMIN, 4, start, nat_constant(b, 4, (uint64_t)(last + 1 - b->lanes)));
  *from = near_first(b, start);
  uint32_t x = nat_read(b, NAT_NEIGHBOURS, s->width, nat_stream_of(b, s), start, NAT_NONE);
  uint32_t which = nat_resize(b, nat_op2(b, NAT_ISUB, 4, at, *from), width, false);
  return nat_resize(b, nat_op2(b, NAT_PERM, width, which, nat_resize(b, x, width, false)), s->width, false);
}

/* Elements from the place that `lead` says to the last that some lane of a vector may read. */
static int64_t near_span(const nat_body *b, const kernel_value *v) {
  int64_t span = v->bases[0].stride * ((b->lanes + v->rises - 2) / v->rises) + 1;
  for (uint32_t j = 1; j < v->n_in; j++) span += v->bases[j].stride * v->bases[j].last;
  return span;
}

uint32_t nat_lower_near(nat_body *b, const kernel_value *v, nat_stream s, uint32_t lead, uint32_t at) {
  int64_t last = 0, lanes = b->lanes;
  s.stride = 0;
  for (uint32_t j = 0; j < v->n_in; j++) last += v->bases[j].stride * v->bases[j].last;
  uint32_t x = near_few(b, s, at, last + 1), from = 0;
  bool permutes = nat_has(b, NAT_PERM, s.width < 4 ? 4 : s.width) && lanes >= 8;
  if (x != NAT_NONE || b->failed || !permutes || !v->rises || last + 1 < lanes) return x;
  int64_t windows = (near_span(b, v) + lanes - 1) / lanes;
  if (windows > NEAR_WINDOWS) return NAT_NONE;
  s.gathers = true;
  x = near_window(b, &s, lead, last, at, &from);
  if (windows == 1) return x;
  uint32_t behind = nat_op2(b, NAT_IADD, 4, from, nat_constant(b, 4, (uint64_t)lanes)), second = 0;
  uint32_t y = near_window(b, &s, behind, last, at, &second);
  uint32_t mask = nat_compare_ints(b, 4, true, SCALAR_LT, at, behind);
  return nat_select(b, nat_mask(b, mask, s.width), x, y);
}
