/* User priorities: first what has priority 0, the rest closed and its axes kept free; then priority by priority. */
#include <stdlib.h>

#include "propagate.h"

typedef struct user_entry {
  int64_t priority;
  uint32_t slot;
  const sdy_sharding *original;
} user_entry;
BASE_VEC(user_entries, user_entry);

static int user_order(const void *x, const void *y) {
  const user_entry *a = x, *b = y;
  if (a->priority != b->priority) return a->priority < b->priority ? -1 : 1;
  return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static int64_t user_priority_of(const sdy_dim *dim) {
  return dim->priority < 0 ? 0 : dim->priority;
}

static void user_sort(sdy_axis *v, uint32_t n, const sdy_mesh *mesh) {
  for (uint32_t i = 1; i < n; i++) { /* lists of a few */
    sdy_axis a = v[i];
    uint32_t j = i;
    for (; j > 0 && sdy_axis_compare(v[j - 1], a, mesh) > 0; j--) v[j] = v[j - 1];
    v[j] = a;
  }
}

/* Dimensions of later priorities become empty and closed; their axes are replicated until their turn comes. */
static bool user_begin(shard_driver *d, uint32_t slot) {
  const sdy_sharding *old = d->state.slots[slot].now;
  const sdy_mesh *mesh = shard_state_mesh(&d->state, old);
  uint32_t n = old->replicated.n;
  for (uint32_t i = 0; i < old->n_dims; i++) n += old->dims[i].axes.n;
  shard_pool_empty(&d->pool);
  sdy_dim *dims = shard_pool_alloc(&d->pool, (old->n_dims + 1) * sizeof *dims);
  sdy_axis *replicated = shard_pool_alloc(&d->pool, (n + 1) * sizeof *replicated);
  if (!dims || !replicated || !mesh) return false;
  n = old->replicated.n;
  if (n) memcpy(replicated, old->replicated.v, n * sizeof *replicated);
  for (uint32_t i = 0; i < old->n_dims; i++) {
    dims[i] = old->dims[i];
    dims[i].priority = -1;
    if (user_priority_of(&old->dims[i]) == 0) continue;
    for (uint32_t a = 0; a < dims[i].axes.n; a++) replicated[n++] = dims[i].axes.v[a];
    dims[i].axes = (sdy_axes){0, NULL};
    dims[i].open = false;
  }
  user_sort(replicated, n, mesh);
  sdy_sharding to = *old;
  to.dims = dims;
  to.replicated = (sdy_axes){n, replicated};
  return sdy_sharding_equal(old, &to) || shard_state_set(&d->state, slot, &to);
}

static bool user_has(const sdy_sharding *s, int64_t priority, sdy_axis axis) {
  for (uint32_t i = 0; i < s->n_dims; i++) {
    if (user_priority_of(&s->dims[i]) != priority) continue;
    for (uint32_t a = 0; a < s->dims[i].axes.n; a++)
      if (sdy_axis_equal(s->dims[i].axes.v[a], axis)) return true;
  }
  return false;
}

static bool user_restore(shard_driver *d, const user_entry *e) {
  const sdy_sharding *now = d->state.slots[e->slot].now;
  shard_pool_empty(&d->pool);
  sdy_dim *dims = shard_pool_alloc(&d->pool, (now->n_dims + 1) * sizeof *dims);
  sdy_axis *replicated = shard_pool_alloc(&d->pool, (now->replicated.n + 1) * sizeof *replicated);
  if (!dims || !replicated) return false;
  for (uint32_t i = 0; i < now->n_dims; i++) {
    bool own = user_priority_of(&e->original->dims[i]) == e->priority;
    dims[i] = own ? e->original->dims[i] : now->dims[i];
    if (own) dims[i].priority = -1;
  }
  uint32_t n = 0;
  for (uint32_t a = 0; a < now->replicated.n; a++)
    if (!user_has(e->original, e->priority, now->replicated.v[a])) replicated[n++] = now->replicated.v[a];
  sdy_sharding to = *now;
  to.dims = dims;
  to.replicated = (sdy_axes){n, replicated};
  return sdy_sharding_equal(now, &to) || shard_state_set(&d->state, e->slot, &to);
}

/* All that has a sharding of its own; targets of data flow edges show that of the edge. */
static bool user_collect(shard_driver *d, user_entries *list) {
  for (uint32_t slot = 0; slot < d->state.n_slots; slot++) {
    const sdy_sharding *s = d->state.slots[slot].now;
    if (!s || d->state.slots[slot].home != slot) continue;
    for (uint32_t i = 0; i < s->n_dims; i++) {
      int64_t priority = user_priority_of(&s->dims[i]);
      bool seen = priority == 0;
      for (uint32_t j = 0; j < i; j++) seen = seen || user_priority_of(&s->dims[j]) == priority;
      if (!seen && !BASE_VEC_PUSH(d->state.m->alloc, list, ((user_entry){priority, slot, s}))) return false;
    }
    if (!user_begin(d, slot)) return false;
  }
  if (list->n) qsort(list->items, list->n, sizeof *list->items, user_order);
  return true;
}

void shard_by_user_priority(shard_driver *d, void (*once)(shard_driver *d)) {
  user_entries list = {NULL, 0, 0};
  if (!user_collect(d, &list)) shard_driver_fail(d, base_oom(d->err, "propagation"));
  d->user_priority = 0;
  if (d->status == 0) once(d);
  for (uint32_t i = 0; i < list.n && d->status == 0;) {
    d->user_priority = list.items[i].priority;
    for (; i < list.n && list.items[i].priority == d->user_priority; i++)
      if (!user_restore(d, &list.items[i])) shard_driver_fail(d, base_oom(d->err, "propagation"));
    if (d->status == 0) once(d);
  }
  BASE_VEC_FREE(d->state.m->alloc, &list);
}
