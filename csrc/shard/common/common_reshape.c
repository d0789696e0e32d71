/* Reshapes of shards: whether every device can do its part alone. */
#include <stdlib.h>

#include "common.h"

/* One group of dimensions whose sizes have the same product on both sides. */
typedef struct shc_group {
  const ir_type *t;
  const int64_t *padded;
  uint32_t next;
  int64_t size, grown;
} shc_group;

/* Only the outermost dimension of a group may be padded: then the elements of others stay where they are in it. */
static bool shc_group_add(shc_group *g) {
  if (g->next >= g->t->rank) return false;
  int64_t size = g->t->dims[g->next], padded = g->padded[g->next++];
  if (size != padded && g->size != 1) return false;
  g->size *= size;
  g->grown *= padded;
  return true;
}

/* 8x3 padded to 9x3 and 24 padded to 27 keep: both grow by whole rows at the end. Groups of dimensions are walked as
 * in the rule of a reshape, and each must grow alike on both sides. */
bool shc_reshape_keeps(const ir_type *in, const int64_t *padded_in, const ir_type *out, const int64_t *padded_out) {
  assert(!in->has_dynamic && !out->has_dynamic);
  shc_group a = {.t = in, .padded = padded_in}, b = {.t = out, .padded = padded_out};
  if (in->count == 0 || out->count == 0) return false;
  while (a.next < in->rank || b.next < out->rank) {
    a.size = a.grown = b.size = b.grown = 1;
    if (a.next < in->rank && !shc_group_add(&a)) return false;
    if (b.next < out->rank && !shc_group_add(&b)) return false;
    while (a.size != b.size)
      if (!shc_group_add(a.size < b.size ? &a : &b)) return false;
    if (a.grown != b.grown) return false;
  }
  return true;
}

/* --- places of shards --- */

/* A digit of the place of an element: of `size`, `stride` elements apart; along an axis where it is sharded. */
typedef struct shc_digit {
  const base_istr *name; /* NULL: within the shard */
  int64_t pre, size, stride;
} shc_digit;
typedef struct shc_digits {
  shc_digit *v;
  uint32_t n;
} shc_digits;

/* Sharded digits by axis, major first, then the digits within the shard by falling stride: a normal form. */
static int shc_digit_order(const void *a, const void *b) {
  const shc_digit *x = a, *y = b;
  if (!x->name != !y->name) return x->name ? -1 : 1;
  if (!x->name) return (x->stride < y->stride) - (x->stride > y->stride);
  int by_name = strcmp(x->name->s, y->name->s);
  return by_name ? by_name : (x->pre > y->pre) - (x->pre < y->pre);
}

/* Whether b goes on where a ends, so that both are one digit. */
static bool shc_digits_meet(const shc_digit *a, const shc_digit *b) {
  if (a->stride != b->stride * b->size) return false;
  return a->name ? b->name && strcmp(a->name->s, b->name->s) == 0 && a->pre * a->size == b->pre : !b->name;
}

/* Digits of size 1 say nothing, and neighbours that meet are one: then equal placements have equal lists. */
static void shc_digits_normal(shc_digits *d) {
  uint32_t n = 0;
  qsort(d->v, d->n, sizeof *d->v, shc_digit_order);
  for (uint32_t i = 0; i < d->n; i++) {
    if (d->v[i].size == 1) continue;
    if (n && shc_digits_meet(&d->v[n - 1], &d->v[i])) {
      d->v[n - 1].size *= d->v[i].size;
      d->v[n - 1].stride = d->v[i].stride;
      continue;
    }
    d->v[n++] = d->v[i];
  }
  d->n = n;
}

/* Of a tensor of these dimensions, which shards divide. false when out of memory. */
static bool shc_digits_of(base_arena *arena, uint32_t rank, const int64_t *dims, const sdy_sharding *s,
                          const sdy_mesh *mesh, shc_digits *out) {
  uint32_t most = rank;
  for (uint32_t d = 0; s && d < s->n_dims; d++) most += s->dims[d].axes.n;
  *out = (shc_digits){.v = BASE_ARRAY(arena, shc_digit, (size_t)most + 1)};
  int64_t stride = 1;
  for (uint32_t d = rank; out->v && d-- > 0;) {
    sdy_axes axes = s && d < s->n_dims ? s->dims[d].axes : (sdy_axes){0, NULL};
    int64_t own = dims[d] / sdy_axes_size(axes, mesh);
    assert(own > 0 || dims[d] == 0);
    out->v[out->n++] = (shc_digit){NULL, 0, own, stride};
    stride *= own;
    for (uint32_t i = axes.n; i-- > 0;) {
      int64_t size = sdy_axis_size(axes.v[i], mesh);
      out->v[out->n++] = (shc_digit){axes.v[i].name, sdy_axis_pre(axes.v[i]), size, stride};
      stride *= size;
    }
  }
  if (out->v) shc_digits_normal(out);
  return out->v != NULL;
}

/* Both sides are written as digits of the element's linear place; if these are the same, each device has the same
 * elements before and after. */
bool shc_reshape_is_local(base_arena *arena, const sdy_mesh *mesh, uint32_t rank_in, const int64_t *in,
                          const sdy_sharding *s_in, uint32_t rank_out, const int64_t *out, const sdy_sharding *s_out) {
  shc_digits a, b;
  if (!shc_digits_of(arena, rank_in, in, s_in, mesh, &a) || !shc_digits_of(arena, rank_out, out, s_out, mesh, &b))
    return false;
  bool same = a.n == b.n;
  for (uint32_t i = 0; same && i < a.n; i++) {
    const shc_digit *x = &a.v[i], *y = &b.v[i];
    same = !x->name == !y->name && x->size == y->size && x->stride == y->stride &&
           (!x->name || (x->pre == y->pre && strcmp(x->name->s, y->name->s) == 0));
  }
  return same;
}
