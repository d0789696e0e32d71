/* Shardings inside and outside of manual computations, and differences of lists of axes. */
#include "sdy.h"

bool sdy_is_manual_axis(const sdy_names *axes, const base_istr *name) {
  for (uint32_t i = 0; i < axes->n; i++)
    if (sdy_name_equal(axes->v[i], name)) return true;
  return false;
}

/* Manual axes come first in a dimension: how many there are. */
static uint32_t sdy_n_manual(sdy_axes a, const sdy_names *axes) {
  uint32_t n = 0;
  while (n < a.n && sdy_is_manual_axis(axes, a.v[n].name)) n++;
  return n;
}

static sdy_axes sdy_free_only(sdy_axes a, const sdy_names *axes, sdy_axis *room) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a.n; i++)
    if (!sdy_is_manual_axis(axes, a.v[i].name)) room[n++] = a.v[i];
  return (sdy_axes){n, room};
}

const sdy_sharding *sdy_without_axes(ir_module *m, const sdy_sharding *s, const sdy_names *axes, bool manual) {
  if (manual && axes->n == 0) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  sdy_axis *room = BASE_ARRAY(&m->arena, sdy_axis, s->replicated.n + s->unreduced.n + 1u);
  if (!to || !dims || !room) return NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    sdy_axes *a = &dims[i].axes;
    uint32_t n = sdy_n_manual(*a, axes);
    *a = manual ? (sdy_axes){a->n - n, a->v ? a->v + n : NULL} : (sdy_axes){n, a->v};
  }
  to->dims = dims;
  to->replicated = sdy_free_only(s->replicated, axes, room);
  to->unreduced = sdy_free_only(s->unreduced, axes, room + s->replicated.n);
  return to;
}

const sdy_sharding *sdy_with_free_axes(ir_module *m, const sdy_sharding *outer, const sdy_sharding *free,
                                       const sdy_names *axes) {
  sdy_sharding *to = base_arena_memdup(&m->arena, free, sizeof *free);
  sdy_dim *dims = base_arena_memdup(&m->arena, outer->dims, outer->n_dims * sizeof *dims);
  if (!to || !dims) return NULL;
  for (uint32_t i = 0; i < outer->n_dims; i++) {
    uint32_t n = sdy_n_manual(dims[i].axes, axes);
    dims[i].axes.n = n;
    if (i >= free->n_dims) continue;
    const sdy_dim *more = &free->dims[i];
    sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, n + more->axes.n + 1u);
    if (!v) return NULL;
    if (n) memcpy(v, dims[i].axes.v, n * sizeof *v);
    if (more->axes.n) memcpy(v + n, more->axes.v, more->axes.n * sizeof *v);
    dims[i] = (sdy_dim){{n + more->axes.n, v}, more->open, more->priority};
  }
  to->dims = dims;
  to->n_dims = outer->n_dims;
  to->replicated = outer->replicated;
  to->unreduced = outer->unreduced;
  to->reduction = SDY_SUM;
  return to;
}

/* Where an axis begins, among those of its name. */
static int sdy_compare_place(sdy_axis a, sdy_axis b) {
  int64_t x = sdy_axis_pre(a), y = sdy_axis_pre(b);
  return (x > y) - (x < y);
}

/* The first of b that overlaps a, by where it begins; -1: none. */
static int sdy_first_overlap(sdy_axis a, sdy_axes b) {
  int first = -1;
  for (uint32_t i = 0; i < b.n; i++)
    if (sdy_axis_overlaps(a, b.v[i]) && (first < 0 || sdy_compare_place(b.v[i], b.v[first]) < 0)) first = (int)i;
  return first;
}

uint32_t sdy_axes_minus(sdy_axes a, sdy_axes b, const sdy_mesh *mesh, sdy_axis *v) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a.n; i++) {
    sdy_axis rest = a.v[i], part;
    for (;;) {
      int at = sdy_first_overlap(rest, b);
      if (at < 0) {
        v[n++] = rest;
        break;
      }
      if (sdy_axis_before(rest, b.v[at], &part)) v[n++] = part;
      if (!sdy_axis_after(rest, b.v[at], mesh, &part)) break;
      rest = part;
    }
  }
  return n;
}

uint32_t sdy_axes_append(sdy_axis *v, uint32_t n, sdy_axis a, const sdy_mesh *mesh) {
  if (n && sdy_axis_can_merge(v[n - 1], a)) {
    v[n - 1] = sdy_axis_merge(v[n - 1], a, mesh);
    return n;
  }
  v[n] = a;
  return n + 1;
}
