/* The steps of a reshard, one collective each, in the order they are tried: all_slice, collective_permute, all_to_all
 * and all_gather. Each takes what it can from the difference of the two shardings (rtc in collectives.h) and makes
 * its op. */
#include "../../base/number/gcd.h"
#include "collectives.h"

/* all_slice: axes that the value lacks come as far as dimensions have room for them: where they belong, or where an
 * all_to_all will later take them from. */

/* From [{"x"}, {}] to [{}, {"x", "y"}]: an all_slice gives [{"x", "y"}, {}], an all_to_all 0->1 the rest. From there
 * to [{"y"}, {}]: an all_to_all of "y" 1->0, then an all_gather of "x". Slicing first keeps what is moved small,
 * gathering last too. */
/* Axes [from, to) of the result's dimension `target` to be sliced at `source` for an all_to_all; false: none. */
typedef struct rtc_borrowed {
  uint32_t target, from, to;
} rtc_borrowed;

/* The place of a in the list; the length where it is not there. */
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

/* Source dimensions that the result does not shard, whose last axis goes to a dimension that has nothing yet: the
 * axes that follow it there are sliced here, while the tensor is whole, so that one all_to_all moves them all. The
 * dimension must divide by them. */
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

/* Slices at sources of later all_to_alls.
 * Returns whether any axis was sliced. */
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
    /* At the front with nothing before it: the axis is where it belongs, and done. */
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

/* capacity: what the result's number of parts has beyond the value's, so that slicing never cuts finer than the
 * result. */
void rtc_all_slice(rtc *x) {
  rtc_list *sliced = base_arena_zalloc(x->arena, ((size_t)x->rank + 1) * sizeof *sliced);
  rtc_list available = {NULL, 0, 0};
  x->failed = x->failed || !sliced;
  if (x->failed) return;
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t in = rtc_size(x, &x->in[d]), out = rtc_size(x, &x->out[d]);
    x->capacity[d] = out / base_gcd(in, out);
  }
  bool any = rtc_slice_ahead(x, sliced);
  for (uint32_t d = 0; d < x->rank; d++) any = rtc_slice_here(x, d, sliced, &available) || any;
  rtc_taken taken = {sliced, x->now, false};
  rtc_distribute(x, &available, false, false, &taken);
  rtc_find_places(x);
  if (any || taken.any) rtc_make(x, IR_OP_SDY_ALL_SLICE, "slicing_axes", rtc_axis_lists(x, sliced));
}

/* collective_permute: axes are exchanged for others of the same size, so that each dimension has as many parts as
 * before, and what is left are moves of ends of lists. */

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

/* An axis in the way at the front, or an order that moves of ends can't bring about, or an axis to be gathered for
 * which another of a fitting size is to be sliced. */
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

/* Every dimension keeps its number of parts: the result's axes first, then what others have no room for, then what
 * was there. After it only ends of lists differ. */
static void rtc_permute(rtc *x) {
  rtc_list *left = base_arena_zalloc(x->arena, ((size_t)x->rank + 1) * sizeof *left);
  rtc_list out = {NULL, 0, 0}, in = {NULL, 0, 0};
  x->failed = x->failed || !left;
  if (x->failed) return;
  x->in_set.n = 0;
  for (uint32_t d = 0; d < x->rank && !x->failed; d++) {
    int64_t whole = x->capacity[d] = rtc_size(x, &x->in[d]);
    assert(whole > 0);
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

/* A change of the order of devices is a permutation too, and is made here even where no axis moves. */
void rtc_collective_permute(rtc *x) {
  bool permute = rtc_should_permute(x);
  if (permute) rtc_permute(x);
  if (!permute && !x->other_order) return;
  x->other_order = false;
  rtc_make(x, IR_OP_SDY_COLLECTIVE_PERMUTE, NULL, NULL);
}

/* all_to_all: the last axes of a dimension go to the end of another. all_gather: the last axes of dimensions go. */

/* x->now as an attribute, on the mesh of the source until a permutation has brought the devices into order. */
const sdy_sharding *rtc_sharding(rtc *x) {
  const sdy_sharding *mesh = x->other_order ? x->from : x->to;
  sdy_dim *dims = BASE_ARRAY(x->arena, sdy_dim, (size_t)x->rank + 1);
  x->failed = x->failed || !dims;
  if (x->failed) return NULL;
  for (uint32_t d = 0; d < x->rank; d++) dims[d] = (sdy_dim){{x->now[d].n, x->now[d].v}, false, -1};
  sdy_sharding s = {.mesh_name = mesh->mesh_name,
                    .mesh = mesh->mesh,
                    .n_dims = x->rank,
                    .reduction = x->to->reduction,
                    .dims = dims,
                    .unreduced = x->to->unreduced};
  const sdy_sharding *made = sdy_sharding_make(x->rw->m, &s);
  x->failed = !made;
  return made;
}

/* The value at hand becomes the op's result, and the next step goes on from there. */
void rtc_make(rtc *x, ir_opcode opcode, const char *key, const ir_mattr *own) {
  assert(x->v.op != NULL);
  const sdy_sharding *s = rtc_sharding(x);
  if (!s || (key && !own)) {
    x->failed = true;
    return;
  }
  ir_value to = opt_make(x->rw, opcode, x->type, 1, &x->v);
  if (key) opt_set(x->rw, to, key, own);
  opt_set(x->rw, to, "out_sharding", sdy_attr(x->rw->m, SDY_SHARDING, s));
  x->failed = x->failed || x->rw->failed;
  if (!x->failed) x->v = to;
}

const ir_mattr *rtc_axis_lists(rtc *x, const rtc_list *by_dim) {
  sdy_axes *v = BASE_ARRAY(x->arena, sdy_axes, (size_t)x->rank + 1);
  if (!v) return NULL;
  for (uint32_t d = 0; d < x->rank; d++) v[d] = (sdy_axes){by_dim[d].n, by_dim[d].v};
  return sdy_attr(x->rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(x->rw->m, x->rank, v));
}

/* --- all_to_all --- */

/* Where the last axes of a dimension that go to one other dimension begin; *to is that one, or -1. */
static uint32_t rtc_movable(const rtc *x, uint32_t from, int64_t *to) {
  const rtc_list *in = &x->in[from];
  uint32_t i = in->n;
  *to = -1;
  for (; i; i--) {
    const rtc_place *place = rtc_place_of(x, in->v[i - 1]);
    if (!place || place->dim == from || (*to >= 0 && place->dim != *to)) break;
    *to = place->dim;
  }
  return i;
}

/* The axes from `from` on are the very next ones of the target. */
static bool rtc_is_next(const rtc_list *in, uint32_t from, const rtc_list *out) {
  if (in->n - from > out->n) return false;
  for (uint32_t i = from; i < in->n; i++)
    if (!sdy_axis_equal(in->v[i], out->v[i - from])) return false;
  return true;
}

/* Moves axes; false: none can be. */
static bool rtc_move(rtc *x, uint32_t from, bool out_of_order) {
  int64_t target;
  uint32_t begin = rtc_movable(x, from, &target);
  if (target < 0) return false;
  uint32_t to = (uint32_t)target;
  assert(to < x->rank && to != from);
  rtc_list *in = &x->in[from], axes = {NULL, 0, 0};
  if (!out_of_order && !rtc_is_next(in, begin, &x->out[to])) return false;
  rtc_pop(x, &x->now[from], in, begin);
  for (uint32_t i = begin; i < in->n; i++) {
    sdy_axis a = in->v[i];
    rtc_append(x, &axes, a);
    rtc_append(x, &x->now[to], a);
    rtc_remove(&x->in_set, a);
    if (x->in[to].n == 0 && x->out[to].n && sdy_axis_equal(x->out[to].v[0], a)) {
      rtc_erase(&x->out[to], 0);
    } else {
      rtc_push(x, &x->in[to], a);
      rtc_push(x, &x->in_set, a);
    }
  }
  in->n = begin;
  sdy_param param = {{axes.n, axes.v}, from, to};
  rtc_make(x, IR_OP_SDY_ALL_TO_ALL, "params", sdy_attr(x->rw->m, SDY_PARAMS, sdy_params_make(x->rw->m, 1, &param)));
  return !x->failed;
}

/* out_of_order: also axes that are not the next ones of their target, once no others can be moved. */
void rtc_all_to_alls(rtc *x, bool out_of_order) {
  for (uint32_t d = 0; d < x->rank && !x->failed; d++)
    while (rtc_move(x, d, out_of_order)) continue;
}

/* --- all_gather --- */

/* The longest end of each dimension that the result has nowhere; all dimensions in one op. */
void rtc_all_gather(rtc *x) {
  rtc_list *gathered = base_arena_zalloc(x->arena, ((size_t)x->rank + 1) * sizeof *gathered);
  bool any = false;
  x->failed = x->failed || !gathered;
  for (uint32_t d = 0; d < x->rank && !x->failed; d++) {
    rtc_list *in = &x->in[d];
    uint32_t begin = in->n;
    while (begin && !rtc_place_of(x, in->v[begin - 1])) rtc_remove(&x->in_set, in->v[--begin]);
    rtc_pop(x, &x->now[d], in, begin);
    for (uint32_t i = begin; i < in->n; i++) rtc_append(x, &gathered[d], in->v[i]);
    any = any || begin < in->n;
    in->n = begin;
  }
  if (any && !x->failed) rtc_make(x, IR_OP_SDY_ALL_GATHER, "gathering_axes", rtc_axis_lists(x, gathered));
}
