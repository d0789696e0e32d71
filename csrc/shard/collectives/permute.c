/* collective_permute: axes are exchanged for others of the same size, so that each dimension has as many parts as
 * before, and what is left are moves of ends of lists. */
#include "collectives.h"

/* What is known while dimensions are looked at. */
typedef struct rtc_wish {
  sdy_axis in, out; /* an axis to be gathered, one to be sliced; no name: none */
  bool *seen;       /* dimensions of the result that this one's axes go to */
} rtc_wish;

/* Whether the order of a dimension's axes stands against moving them by their ends. */
static bool rtc_order_is_bad(const rtc *x, uint32_t d, rtc_wish *w) {
  int64_t last_dim = -1, last_index = 0;
  memset(w->seen, 0, x->rank * sizeof *w->seen);
  for (uint32_t i = 0; i < x->in[d].n; i++) {
    const rtc_place *place = rtc_place_of(x, x->in[d].v[i]);
    if (place) {
      bool again = place->dim == d || w->seen[place->dim];
      if (again && (last_dim != place->dim || place->index != last_index + 1)) return true;
      w->seen[place->dim] = true;
      last_index = place->index;
    } else if (last_dim >= 0 && x->out[d].n == 0) {
      return true; /* to be gathered, and not at the front */
    } else {
      w->in = x->in[d].v[i];
    }
    last_dim = place ? (int64_t)place->dim : -1;
  }
  return false;
}

static bool rtc_should_permute(rtc *x) {
  rtc_wish w = {.seen = base_arena_zalloc(x->arena, (size_t)x->rank + 1)};
  x->failed = x->failed || !w.seen;
  if (x->failed) return false;
  for (uint32_t d = 0; d < x->rank; d++) {
    const rtc_list *in = &x->in[d], *out = &x->out[d];
    if (in->n && out->n && rtc_divides(sdy_axis_size(in->v[0], x->mesh), sdy_axis_size(out->v[0], x->mesh)))
      return true;
    for (uint32_t i = 0; i < out->n; i++)
      if (!rtc_has(&x->in_set, out->v[i])) w.out = out->v[i];
    if (rtc_order_is_bad(x, d, &w)) return true;
  }
  return w.in.name && w.out.name && rtc_divides(sdy_axis_size(w.out, x->mesh), sdy_axis_size(w.in, x->mesh));
}

/* The result's axes take the dimension's place as far as they fit. */
static void rtc_place_out(rtc *x, uint32_t d) {
  rtc_list *out = &x->out[d];
  while (x->capacity[d] > 1 && out->n && !x->failed) {
    sdy_axis within, rest;
    if (!rtc_within(x, out->v[0], &x->capacity[d], &within, &rest)) break;
    rtc_erase(out, 0);
    rtc_append(x, &x->now[d], within);
    if (rest.name) rtc_insert(x, out, 0, rest);
  }
}

/* The value's axes that the result has nowhere; those that have lost their place come last. */
static void rtc_left_in(rtc *x, uint32_t d, int64_t used, rtc_list *available) {
  rtc_list *in = &x->in[d];
  for (uint32_t i = in->n; i-- > 0;)
    if (rtc_place_of(x, in->v[i])) rtc_erase(in, i);
  while (used > 1 && in->n && !x->failed) {
    sdy_axis within, rest;
    if (!rtc_within(x, in->v[0], &used, &within, &rest)) break;
    rtc_erase(in, 0);
    rtc_push(x, available, within);
    if (rest.name) rtc_insert(x, in, 0, rest);
  }
  for (uint32_t i = 0; i < in->n; i++) rtc_insert(x, available, i, in->v[i]);
  in->n = 0;
}

static void rtc_permute(rtc *x) {
  rtc_list *left = base_arena_zalloc(x->arena, ((size_t)x->rank + 1) * sizeof *left);
  rtc_list out = {NULL, 0, 0}, in = {NULL, 0, 0};
  x->failed = x->failed || !left;
  if (x->failed) return;
  x->in_set.n = 0;
  for (uint32_t d = 0; d < x->rank && !x->failed; d++) {
    int64_t whole = x->capacity[d] = rtc_size(x, &x->in[d]);
    rtc_pop(x, &x->now[d], &x->in[d], 0);
    rtc_place_out(x, d);
    for (uint32_t i = 0; i < x->out[d].n; i++) rtc_push(x, &out, x->out[d].v[i]);
    rtc_left_in(x, d, whole / x->capacity[d], &left[d]);
  }
  rtc_distribute(x, &out, false, false, NULL);
  rtc_distribute(x, left, true, true, NULL);
  for (uint32_t d = 0; d < x->rank; d++)
    for (uint32_t i = 0; i < left[d].n; i++) rtc_push(x, &in, left[d].v[i]);
  rtc_distribute(x, &in, false, true, NULL);
  rtc_find_places(x);
  for (uint32_t d = 0; d < x->rank; d++)
    for (uint32_t i = 0; i < x->in[d].n; i++) rtc_append(x, &x->now[d], x->in[d].v[i]);
}

void rtc_collective_permute(rtc *x) {
  bool permute = rtc_should_permute(x);
  if (permute) rtc_permute(x);
  if (!permute && !x->other_order) return;
  x->other_order = false;
  rtc_make(x, IR_OP_SDY_COLLECTIVE_PERMUTE, NULL, NULL);
}
