/* all_to_all: the last axes of a dimension go to the end of another. all_gather: the last axes of dimensions go. */
#include "collectives.h"

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

void rtc_make(rtc *x, ir_opcode opcode, const char *key, const ir_mattr *own) {
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

void rtc_all_to_alls(rtc *x, bool out_of_order) {
  for (uint32_t d = 0; d < x->rank && !x->failed; d++)
    while (rtc_move(x, d, out_of_order)) continue;
}

/* --- all_gather --- */

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
