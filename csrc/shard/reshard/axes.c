/* Lists of axes as sets. */
#include "explicit.h"

static int explicit_axis_order(shard_axis a, shard_axis b) {
  if (a.axis != b.axis) return a.axis < b.axis ? -1 : 1;
  if (a.pre != b.pre) return a.pre < b.pre ? -1 : 1;
  return a.size < b.size ? -1 : a.size > b.size;
}

bool explicit_suffix(shard_axis a, shard_axis b, shard_axis *out) {
  *out = a;
  if (!shard_axis_coexists(a, b)) return false;
  if (!shard_axis_overlaps(a, b)) return true;
  int64_t end = shard_axis_end(a), from = shard_axis_end(b);
  if (end <= from) return false;
  *out = (shard_axis){a.axis, from, end / from};
  return true;
}

shard_axes explicit_push(shard_pool *pool, shard_axes a, shard_axis axis) {
  shard_axis *room = shard_axes_room(pool, a.n + 1);
  if (!room) return a;
  if (a.n) memcpy(room, a.v, a.n * sizeof *room);
  shard_axis *last = a.n ? &room[a.n - 1] : NULL;
  if (last && last->axis == axis.axis && last->pre * last->size == axis.pre && axis.size > 1) {
    last->size *= axis.size;
    return (shard_axes){a.n, room};
  }
  room[a.n] = axis;
  return (shard_axes){a.n + 1, room};
}

shard_axes explicit_join(shard_pool *pool, shard_axes a, shard_axes b) {
  if (b.n == 0) return a;
  shard_axis *room = shard_axes_room(pool, a.n + b.n);
  if (!room) return a;
  for (uint32_t i = 0; i < a.n + b.n; i++) room[i] = i < a.n ? a.v[i] : b.v[i - a.n];
  return (shard_axes){a.n + b.n, room};
}

/* The first of b, in the order of axes, that overlaps. */
static const shard_axis *explicit_overlapping(shard_axes b, shard_axis a) {
  const shard_axis *first = NULL;
  for (uint32_t i = 0; i < b.n; i++)
    if (shard_axis_overlaps(b.v[i], a) && (!first || explicit_axis_order(b.v[i], *first) < 0)) first = &b.v[i];
  return first;
}

shard_axes explicit_minus(shard_pool *pool, shard_axes a, shard_axes b) {
  shard_axis *room = shard_axes_room(pool, a.n + b.n + 1);
  shard_axes out = {0, room};
  if (!room) return out;
  for (uint32_t i = 0; i < a.n; i++) {
    shard_axis rest = a.v[i];
    for (;;) {
      const shard_axis *other = explicit_overlapping(b, rest);
      if (!other) {
        room[out.n++] = rest;
        break;
      }
      shard_axis before = rest, after = rest;
      if (shard_axis_before(&before, *other)) room[out.n++] = before;
      if (!explicit_suffix(rest, *other, &after)) break;
      rest = after;
    }
  }
  return out;
}

shard_axes explicit_sorted(shard_pool *pool, shard_axes a) {
  shard_axis *room = shard_axes_room(pool, a.n + 1);
  if (!room) return (shard_axes){0, NULL};
  for (uint32_t i = 0; i < a.n; i++) {
    uint32_t j = i;
    for (; j > 0 && explicit_axis_order(room[j - 1], a.v[i]) > 0; j--) room[j] = room[j - 1];
    room[j] = a.v[i];
  }
  shard_axes out = {0, NULL};
  for (uint32_t i = 0; i < a.n; i++) out = explicit_push(pool, out, room[i]);
  return out;
}

bool explicit_overlaps(shard_axes a, shard_axes b) {
  for (uint32_t i = 0; i < a.n; i++)
    for (uint32_t j = 0; j < b.n; j++)
      if (shard_axis_overlaps(a.v[i], b.v[j])) return true;
  return false;
}

bool explicit_truncate(shard_pool *pool, shard_axes *a, shard_axes b) {
  for (uint32_t i = 0; i < a->n; i++) {
    shard_axis axis = a->v[i];
    bool some = shard_axis_before_all(&axis, b);
    if (some && shard_axis_same(axis, a->v[i])) continue;
    shard_axis *room = shard_axes_room(pool, i + 1);
    if (!room) return true;
    if (i) memcpy(room, a->v, i * sizeof *room);
    room[i] = axis;
    *a = (shard_axes){some ? i + 1 : i, room};
    return true;
  }
  return false;
}
