/* Axes by number, and the way from dimensions to factors and back: Shardy's sharding_projection.cc. Numbers make
 * comparisons cheap: a strategy compares every pair of axes of every op it looks at. */
#include "../../base/number/gcd.h"
#include "project.h"

shard_axis *shard_axes_room(shard_pool *pool, uint32_t n) {
  return shard_pool_alloc(pool, (size_t)n * sizeof(shard_axis));
}

/* On overlap the shared range is from `high` to `low_end`, and each bound must be a multiple of the one before it;
 * without, the gap between them must be a factor too. "x":(1)2 and "x":(3)2 can't: 2 and 3 do not both split 6. */
bool shard_axis_coexists(shard_axis a, shard_axis b) {
  if (a.axis != b.axis || shard_axis_same(a, b)) return true;
  int64_t low = a.pre < b.pre ? a.pre : b.pre, high = a.pre < b.pre ? b.pre : a.pre;
  assert(low > 0);
  int64_t end_a = shard_axis_end(a), end_b = shard_axis_end(b);
  int64_t low_end = end_a < end_b ? end_a : end_b, high_end = end_a < end_b ? end_b : end_a;
  if (low_end > high) return low_end % high == 0 && high % low == 0 && high_end % low_end == 0;
  return high % low_end == 0;
}

/* Narrows *a to what is major to b on the same axis. */
bool shard_axis_before(shard_axis *a, shard_axis b) {
  assert(a->size > 0 && b.pre > 0);
  if (a->axis != b.axis) return true;
  if (!shard_axis_coexists(*a, b)) return false;
  if (!shard_axis_overlaps(*a, b)) return true;
  if (a->pre >= b.pre) return false;
  a->size = b.pre / a->pre;
  return true;
}

/* Each step may narrow the axis further. */
bool shard_axis_before_all(shard_axis *a, shard_axes others) {
  for (uint32_t i = 0; i < others.n; i++)
    if (!shard_axis_before(a, others.v[i])) return false;
  return true;
}

/* In order: {x, y} shards otherwise than {y, x}. */
bool shard_axes_same(shard_axes a, shard_axes b) {
  if (a.n != b.n) return false;
  for (uint32_t i = 0; i < a.n; i++)
    if (!shard_axis_same(a.v[i], b.v[i])) return false;
  return true;
}

/* INT64_MAX where it would overflow: larger than any dimension, so it never divides one. */
int64_t shard_axes_size(shard_axes a) {
  int64_t size = 1;
  for (uint32_t i = 0; i < a.n; i++)
    if (!base_mul_i64(size, a.v[i].size, &size)) return INT64_MAX;
  return size;
}

/* Only the last axis of a may be a proper part of b's: what came after it would not be contiguous. */
shard_prefix shard_axes_prefix(shard_axes a, shard_axes b) {
  if (a.n == 0) return b.n == 0 ? SHARD_EQUAL : SHARD_STRICT_PREFIX;
  if (a.n > b.n) return SHARD_NOT_PREFIX;
  for (uint32_t i = 0; i + 1 < a.n; i++)
    if (!shard_axis_same(a.v[i], b.v[i])) return SHARD_NOT_PREFIX;
  shard_axis last = a.v[a.n - 1], other = b.v[a.n - 1];
  if (a.n == b.n && shard_axis_same(last, other)) return SHARD_EQUAL;
  return shard_axis_prefix(last, other) ? SHARD_STRICT_PREFIX : SHARD_NOT_PREFIX;
}

/* --- from and to the attribute's lists --- */

/* Verified shardings name axes of their mesh; an axis of size 1 in the text has a size, 0 stands for the whole. */
static shard_axis project_axis(sdy_axis a, const sdy_mesh *mesh) {
  uint32_t i = 0;
  while (i < mesh->n_axes && mesh->axes[i].name != a.name) i++;
  if (i == mesh->n_axes) { /* another module's string, or none of this mesh */
    int at = sdy_mesh_find(mesh, a.name);
    i = at < 0 ? 0 : (uint32_t)at;
  }
  assert(i < mesh->n_axes);
  return a.size ? (shard_axis){i, a.pre, a.size} : (shard_axis){i, 1, mesh->axes[i].size};
}

shard_axes shard_axes_from(shard_pool *pool, sdy_axes from, const sdy_mesh *mesh) {
  if (from.n == 0) return (shard_axes){0, NULL};
  shard_axis *v = shard_axes_room(pool, from.n);
  if (!v) return (shard_axes){0, NULL};
  for (uint32_t i = 0; i < from.n; i++) v[i] = project_axis(from.v[i], mesh);
  return (shard_axes){from.n, v};
}

/* A sub-axis that is the whole axis is written as the axis, since the dialect has one form for it. */
sdy_axes shard_axes_to(shard_pool *pool, shard_axes from, const sdy_mesh *mesh) {
  sdy_axis *v = from.n ? shard_pool_alloc(pool, from.n * sizeof *v) : NULL;
  if (!v) return (sdy_axes){0, NULL};
  for (uint32_t i = 0; i < from.n; i++) {
    shard_axis a = from.v[i];
    bool whole = a.pre == 1 && a.size == mesh->axes[a.axis].size;
    v[i] = (sdy_axis){mesh->axes[a.axis].name, whole ? 0 : a.pre, whole ? 0 : a.size};
  }
  return (sdy_axes){from.n, v};
}

/* Appends an axis; one that goes on where the last ended becomes one with it. */
static void project_append(shard_axes *list, shard_axis *room, shard_axis a, bool merge) {
  list->v = room;
  if (merge && list->n) {
    shard_axis *last = &room[list->n - 1];
    if (last->axis == a.axis && last->pre * last->size == a.pre && a.size > 1) {
      last->size *= a.size;
      return;
    }
  }
  room[list->n++] = a;
}

/* --- a dimension's axes into its factors --- */

typedef struct project_rest {
  const shard_axis *v;
  uint32_t n, at;
  shard_axis now; /* what is left of v[at] */
} project_rest;

static void project_next(project_rest *r) {
  if (++r->at < r->n) r->now = r->v[r->at];
}

/* All that is left. The list is used in place while nothing has been split off it. */
static shard_axes project_all(shard_pool *pool, project_rest *r) {
  shard_axes list = {0, NULL};
  if (r->at >= r->n) return list;
  if (r->now.pre == r->v[r->at].pre && r->now.size == r->v[r->at].size) { /* nothing was split off: as it is */
    list = (shard_axes){r->n - r->at, r->v + r->at};
    return list;
  }
  shard_axis *room = shard_axes_room(pool, r->n - r->at);
  if (!room) return list;
  for (; r->at < r->n; project_next(r)) project_append(&list, room, r->now, true);
  return list;
}

/* As many axes as a factor that is not minor-most can take whole; an axis that is too big is split. */
static int64_t project_take(shard_pool *pool, project_rest *r, int64_t size, shard_part *part) {
  if (r->at >= r->n) return size;
  uint32_t cap = 4, n = 0;
  while (cap < (r->n - r->at) + 64) cap *= 2; /* each splitting at least halves the size */
  shard_axis *room = shard_axes_room(pool, cap);
  if (!room) return size;
  while (r->at < r->n && n < cap) {
    /* gcd: as much of the axis as divides the rest of the factor. 1 of an axis that is larger: it can't be split to
     * fit. */
    int64_t gcd = r->now.size == 1 ? 1 : base_gcd(size, r->now.size);
    if (r->now.size != 1 && gcd <= 1) break;
    if (r->now.size > gcd) {
      room[n++] = (shard_axis){r->now.axis, r->now.pre, gcd};
      r->now.pre *= gcd;
      r->now.size /= gcd;
      size /= gcd;
    } else {
      room[n++] = r->now;
      size /= r->now.size;
      project_next(r);
    }
  }
  part->axes = (shard_axes){n, room};
  return size;
}

/* `after` is 0 until axes overflow a factor; the factor right after the overflow is still there, closed, and those
 * behind it are absent: they can't be sharded without a gap. */
static void project_dim(shard_projection *p, sdy_ints factors, shard_axes axes, bool closed, shard_part *parts) {
  project_rest rest = {axes.v, axes.n, 0, axes.n ? axes.v[0] : (shard_axis){0, 1, 1}};
  uint32_t after = 0; /* factors since the axes overflowed */
  for (uint32_t i = 0; i < factors.n; i++) {
    shard_part *part = &parts[i];
    part->factor = after > 1 ? SHARD_ABSENT : (uint32_t)factors.v[i];
    part->minor_most = i + 1 == factors.n;
    part->closed = closed || after;
    if (after && after++) continue;
    if (part->minor_most) {
      part->axes = project_all(p->pool, &rest);
      continue;
    }
    int64_t left = project_take(p->pool, &rest, p->rule->sizes.v[factors.v[i]], part);
    if (left > 1 && rest.at < rest.n) {
      after = 1;
      part->overflow = project_all(p->pool, &rest);
    }
  }
}

/* A missing sharding is open and empty, or closed where the caller says so. */
static bool project_tensor(shard_projection *p, uint32_t index, const sdy_sharding *s, bool closed_if_missing) {
  const sdy_tensor_map *map = shard_map_of(p->rule, index);
  shard_tensor *t = &p->tensors[index];
  uint32_t n = 0;
  for (uint32_t d = 0; d < map->n_dims; d++) n += map->dims[d].n;
  t->n_parts = n;
  t->parts = n ? shard_pool_alloc(p->pool, n * sizeof *t->parts) : NULL;
  if (n && !t->parts) return false;
  assert(map->n_dims == 0 || map->dims != NULL);
  if (n) memset(t->parts, 0, n * sizeof *t->parts);
  shard_part *at = t->parts;
  for (uint32_t d = 0; d < map->n_dims; d++) {
    const sdy_dim *dim = s && d < s->n_dims ? &s->dims[d] : NULL;
    shard_axes axes = dim ? shard_axes_from(p->pool, dim->axes, p->mesh) : (shard_axes){0, NULL};
    project_dim(p, map->dims[d], axes, dim ? !dim->open : closed_if_missing, at);
    at += map->dims[d].n;
  }
  if (s && s->replicated.n) t->replicated = shard_axes_from(p->pool, s->replicated, p->mesh);
  if (s && s->unreduced.n) t->unreduced = shard_axes_from(p->pool, s->unreduced, p->mesh);
  return !p->pool->failed;
}

/* Shardings may have fewer dimensions than the rule says where an explicit rule does not fit: the rest is unsharded. */
bool shard_project(shard_projection *p, shard_pool *pool, const sdy_rule *rule, const sdy_mesh *mesh,
                   const sdy_sharding *const *shardings, bool closed_if_missing) {
  assert(pool && rule && mesh);
  uint32_t n = rule->n_operands + rule->n_results;
  *p = (shard_projection){.pool = pool, .mesh = mesh, .rule = rule, .n_tensors = n, .n_operands = rule->n_operands};
  p->tensors = shard_pool_alloc(pool, (n ? n : 1) * sizeof *p->tensors);
  p->updated = shard_pool_alloc(pool, n ? n : 1);
  if (!p->tensors || !p->updated) return false;
  memset(p->tensors, 0, n * sizeof *p->tensors);
  memset(p->updated, 0, n);
  for (uint32_t i = 0; i < n; i++)
    if (!project_tensor(p, i, shardings[i], closed_if_missing)) return false;
  return true;
}

/* Each axis once for a factor and tensor: rounds find the same clash again and again. */
void shard_clash_note(shard_projection *p, shard_clash clash) {
  for (uint32_t i = 0; i < p->n_clashes; i++) {
    const shard_clash *c = &p->clashes[i];
    if (c->factor == clash.factor && c->tensor == clash.tensor && shard_axis_same(c->axis, clash.axis)) return;
  }
  if (p->n_clashes == p->clash_cap) {
    uint32_t cap = p->clash_cap ? 2 * p->clash_cap : 8;
    shard_clash *more = shard_pool_alloc(p->pool, cap * sizeof *more);
    if (!more) return;
    if (p->n_clashes) memcpy(more, p->clashes, p->n_clashes * sizeof *more);
    p->clashes = more;
    p->clash_cap = cap;
  }
  p->clashes[p->n_clashes++] = clash;
}

/* --- and back --- */

/* A dimension's axes: those of its factors one after the other, up to the first that is not sharded as far as it goes:
 * what came after it would not be contiguous.
 * A dimension is closed if any of its factors that were reached is. Priorities are not propagated. */
static void unproject_dim(const shard_projection *p, sdy_ints factors, const shard_part *parts, sdy_dim *out) {
  uint32_t cap = 0;
  bool closed = false;
  for (uint32_t i = 0; i < factors.n; i++) cap += parts[i].axes.n + parts[i].overflow.n;
  shard_axis *room = cap ? shard_axes_room(p->pool, cap) : NULL;
  shard_axes list = {0, room};
  for (uint32_t i = 0; i < factors.n; i++) {
    const shard_part *part = &parts[i];
    closed = closed || part->closed;
    for (uint32_t a = 0; room && a < part->axes.n; a++) project_append(&list, room, part->axes.v[a], a == 0);
    for (uint32_t a = 0; room && a < part->overflow.n; a++) project_append(&list, room, part->overflow.v[a], a == 0);
    if (part->overflow.n || shard_axes_size(part->axes) < p->rule->sizes.v[factors.v[i]]) break;
  }
  *out = (sdy_dim){.axes = shard_axes_to(p->pool, list, p->mesh), .open = !closed, .priority = -1};
}

/* `like` gives the mesh. What no factor carries (replicated, unreduced) goes back as it came. */
const sdy_sharding *shard_unproject(const shard_projection *p, uint32_t tensor, const sdy_sharding *like) {
  const sdy_tensor_map *map = shard_map_of(p->rule, tensor);
  const shard_tensor *t = &p->tensors[tensor];
  sdy_dim *dims = shard_pool_alloc(p->pool, (map->n_dims ? map->n_dims : 1) * sizeof *dims);
  sdy_sharding *s = shard_pool_alloc(p->pool, sizeof *s);
  if (!dims || !s) return NULL;
  const shard_part *at = t->parts;
  for (uint32_t d = 0; d < map->n_dims; d++) {
    unproject_dim(p, map->dims[d], at, &dims[d]);
    at += map->dims[d].n;
  }
  *s = (sdy_sharding){.mesh_name = like->mesh_name,
                      .mesh = like->mesh,
                      .n_dims = map->n_dims,
                      .dims = dims,
                      .replicated = shard_axes_to(p->pool, t->replicated, p->mesh),
                      .unreduced = shard_axes_to(p->pool, t->unreduced, p->mesh)};
  return p->pool->failed ? NULL : s;
}
