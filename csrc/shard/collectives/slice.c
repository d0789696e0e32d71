/* all_slice: axes that the value lacks come as far as dimensions have room for them: where they belong, or where an
 * all_to_all will later take them from. */
#include "collectives.h"

static int64_t rtc_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* Axes [from, to) of the result's dimension `target` to be sliced at `source` for an all_to_all; false: none. */
typedef struct rtc_borrowed {
  uint32_t target, from, to;
} rtc_borrowed;

static uint32_t rtc_index(const rtc_list *list, sdy_axis a) {
  uint32_t i = 0;
  while (i < list->n && !sdy_axis_equal(list->v[i], a)) i++;
  return i;
}

/* The value's last axes at `source` are, in order, those before `from` in the target, and none of its others are there.
 * Their size in *size. */
static bool rtc_suffix_fits(const rtc *x, uint32_t source, const rtc_borrowed *b, int64_t *size) {
  const rtc_list *in = &x->in[source], *out = &x->out[b->target];
  uint32_t i = in->n, k = b->from;
  *size = 1;
  while (i && k && sdy_axis_equal(in->v[i - 1], out->v[k - 1])) {
    *size *= sdy_axis_size(in->v[i - 1], x->mesh);
    i--;
    k--;
  }
  for (; i; i--) {
    const rtc_place *place = rtc_place_of(x, in->v[i - 1]);
    if (place && place->dim == b->target) return false;
  }
  return true;
}

static bool rtc_borrow(rtc *x, uint32_t source, rtc_borrowed *b) {
  const rtc_list *in = &x->in[source];
  if (in->n == 0 || x->out[source].n) return false;
  const rtc_place *place = rtc_place_of(x, in->v[in->n - 1]);
  if (!place || x->in[place->dim].n) return false;
  const rtc_list *out = &x->out[place->dim];
  b->target = place->dim;
  b->from = rtc_index(out, in->v[in->n - 1]) + 1;
  if (b->from >= out->n || rtc_has(&x->in_set, out->v[b->from])) return false;
  int64_t common, added = 1;
  if (!rtc_suffix_fits(x, source, b, &common)) return false;
  for (b->to = b->from; b->to < out->n && !rtc_has(&x->in_set, out->v[b->to]); b->to++)
    added *= sdy_axis_size(out->v[b->to], x->mesh);
  if (x->type->dims[source] % (rtc_size(x, &x->now[source]) * added) != 0) return false;
  x->capacity[b->target] /= common * added;
  return true;
}

/* Slices at sources of later all_to_alls. */
static bool rtc_slice_ahead(rtc *x, rtc_list *sliced) {
  bool any = false;
  for (uint32_t d = 0; d < x->rank; d++) {
    rtc_borrowed b;
    if (!rtc_borrow(x, d, &b)) continue;
    any = true;
    for (uint32_t i = b.from; i < b.to && !x->failed; i++) {
      sdy_axis a = x->out[b.target].v[i];
      rtc_push(x, &x->in[d], a);
      rtc_push(x, &x->in_set, a);
      rtc_append(x, &sliced[d], a);
      rtc_append(x, &x->now[d], a);
    }
  }
  return any;
}

/* Slices a dimension along axes that belong there; those that have no room become available to others. */
static bool rtc_slice_here(rtc *x, uint32_t d, rtc_list *sliced, rtc_list *available) {
  rtc_list *in = &x->in[d], *out = &x->out[d];
  bool any = false;
  for (uint32_t i = 0; i < out->n && !x->failed;) {
    sdy_axis a = out->v[i], within, rest;
    if (rtc_has(&x->in_set, a)) {
      i++;
      continue;
    }
    if (!rtc_within(x, a, &x->capacity[d], &within, &rest)) {
      rtc_push(x, available, a);
      i++;
      continue;
    }
    any = true;
    rtc_append(x, &sliced[d], within);
    rtc_append(x, &x->now[d], within);
    if (in->n == 0 && i == 0) {
      rtc_erase(out, 0);
    } else {
      rtc_push(x, &x->in_set, within);
      rtc_push(x, in, within);
      out->v[i++] = within;
    }
    if (!rest.name) continue;
    rtc_insert(x, out, i++, rest);
    rtc_push(x, available, rest);
  }
  return any;
}

void rtc_all_slice(rtc *x) {
  rtc_list *sliced = base_arena_zalloc(x->arena, ((size_t)x->rank + 1) * sizeof *sliced);
  rtc_list available = {NULL, 0, 0};
  x->failed = x->failed || !sliced;
  if (x->failed) return;
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t in = rtc_size(x, &x->in[d]), out = rtc_size(x, &x->out[d]);
    x->capacity[d] = out / rtc_gcd(in, out);
  }
  bool any = rtc_slice_ahead(x, sliced);
  for (uint32_t d = 0; d < x->rank; d++) any = rtc_slice_here(x, d, sliced, &available) || any;
  rtc_taken taken = {sliced, x->now, false};
  rtc_distribute(x, &available, false, false, &taken);
  rtc_find_places(x);
  if (any || taken.any) rtc_make(x, IR_OP_SDY_ALL_SLICE, "slicing_axes", rtc_axis_lists(x, sliced));
}
