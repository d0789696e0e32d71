/* Which axes an op's tensors get in common, by factor, where the shardings they have do not go together. Three ways,
 * in this order: shardings that go together already stay; of two tensors the better one's is taken; else candidates
 * (a factor with a list of axes) are taken greedily, the most valuable first. Lists of axes are sets here; all lie in
 * the pool. */
#include "explicit.h"

/* Lists of axes as sets. */

static int explicit_axis_order(shard_axis a, shard_axis b) {
  if (a.axis != b.axis) return a.axis < b.axis ? -1 : 1;
  if (a.pre != b.pre) return a.pre < b.pre ? -1 : 1;
  return a.size < b.size ? -1 : a.size > b.size;
}

/* The part of a that is minor to b: "x" (of size 8) after "x":(1)2 is "x":(2)4. false: there is none, or the two
 * can't be parts of one axis. */
bool explicit_suffix(shard_axis a, shard_axis b, shard_axis *out) {
  *out = a;
  if (!shard_axis_coexists(a, b)) return false;
  if (!shard_axis_overlaps(a, b)) return true;
  int64_t end = shard_axis_end(a), from = shard_axis_end(b);
  assert(from > 0);
  if (end <= from) return false;
  *out = (shard_axis){a.axis, from, end / from};
  return true;
}

/* A copy each time: lists are short, and others may share the old one. */
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

/* In the pool, so nothing is freed one by one. */
shard_axes explicit_join(shard_pool *pool, shard_axes a, shard_axes b) {
  if (b.n == 0) return a;
  shard_axis *room = shard_axes_room(pool, a.n + b.n);
  assert(a.n + b.n > 0);
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

/* An axis that b cuts in the middle leaves the part before and the part after. */
shard_axes explicit_minus(shard_pool *pool, shard_axes a, shard_axes b) {
  /* Each of b splits at most one axis in two, so a.n + b.n parts are the most there can be. */
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
      assert(out.n <= a.n + b.n);
      if (!explicit_suffix(rest, *other, &after)) break;
      rest = after;
    }
  }
  return out;
}

/* Insertion sort; then neighbours that meet are merged by explicit_push. */
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

/* Lists of a few axes: no index. */
bool explicit_overlaps(shard_axes a, shard_axes b) {
  for (uint32_t i = 0; i < a.n; i++)
    for (uint32_t j = 0; j < b.n; j++)
      if (shard_axis_overlaps(a.v[i], b.v[j])) return true;
  return false;
}

/* At the first axis that meets one of b; the part of it that is major to all of b stays. Returns whether anything
 * went. */
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

/* The choice among axes that are in each other's way: one factor's axes after the other, the most valuable first. */

typedef struct pick {
  uint32_t factor;
  shard_axes axes;
  int64_t bytes; /* elements of the tensors that are sharded so already */
  int64_t gain;  /* shards it adds */
} pick;
typedef struct pick_bag {
  explicit_op *x;
  uint32_t n;
  pick *v;
  uint8_t *waits; /* [factor][on]: `on` comes before it in a dimension, and is not sharded as far as it goes yet */
} pick_bag;

/* What is cheapest to have sharded is ranked highest: pass-through needs no communication, a reduction one all-
 * reduce, a permutation an exchange; a factor that must be whole would be gathered again. */
static int pick_kind_rank(shard_kind kind) {
  switch (kind) {
    case SHARD_PASS:
      return 3;
    case SHARD_REDUCTION:
      return 2;
    case SHARD_PERMUTATION:
      return 1;
    default:
      return 0;
  }
}

/* Ties are settled by the names of axes as strings, not by their place in the mesh, as Shardy does. */
static int pick_axis_order(const explicit_op *x, shard_axis a, shard_axis b) {
  if (a.axis != b.axis) {
    const base_istr *s = x->mesh->axes[a.axis].name, *t = x->mesh->axes[b.axis].name;
    int order = memcmp(s->s, t->s, s->n < t->n ? s->n : t->n);
    return order ? order : s->n < t->n ? -1 : 1;
  }
  if (a.pre != b.pre) return a.pre < b.pre ? -1 : 1;
  return a.size < b.size ? -1 : a.size > b.size;
}

/* Longer lists are more, then those whose axes come later by name. */
static int pick_axes_order(const explicit_op *x, shard_axes a, shard_axes b) {
  if (a.n != b.n) return a.n < b.n ? -1 : 1;
  for (uint32_t i = 0; i < a.n; i++)
    if (!shard_axis_same(a.v[i], b.v[i])) return pick_axis_order(x, a.v[i], b.v[i]);
  return 0;
}

/* The order of value: elements of tensors that are sharded so already, kind, shards gained, then factor and axes so
 * that the order is total. */
static bool pick_less(const explicit_op *x, const pick *a, const pick *b) {
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  int p = pick_kind_rank(explicit_kind(x->rule, a->factor)), q = pick_kind_rank(explicit_kind(x->rule, b->factor));
  if (p != q) return p < q;
  if (a->gain != b->gain) return a->gain < b->gain;
  if (a->factor != b->factor) return a->factor < b->factor;
  return pick_axes_order(x, a->axes, b->axes) < 0;
}

/* A factor that is not the first of its dimension can only be sharded once the one before it is sharded to its full
 * size; else the dimension's axes would not be contiguous. */
static void pick_waits(pick_bag *bag) {
  const sdy_rule *rule = bag->x->rule;
  for (uint32_t t = 0; t < rule->n_operands + rule->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(rule, t);
    for (uint32_t d = 0; d < map->n_dims; d++)
      for (uint32_t i = 1; i < map->dims[d].n; i++)
        bag->waits[map->dims[d].v[i] * rule->sizes.n + map->dims[d].v[i - 1]] = 1;
  }
}

/* Whether the factor waits for no other. */
static bool pick_is_free(const pick_bag *bag, uint32_t factor) {
  assert(factor < bag->x->rule->sizes.n);
  uint32_t n = bag->x->rule->sizes.n;
  for (uint32_t i = 0; i < n; i++)
    if (bag->waits[(size_t)factor * n + i]) return false;
  return true;
}

/* Candidates are distinct; several tensors propose the same ones. */
static void pick_add(pick_bag *bag, uint32_t factor, shard_axes axes) {
  for (uint32_t i = 0; i < bag->n; i++)
    if (bag->v[i].factor == factor && shard_axes_same(bag->v[i].axes, axes)) return;
  bag->v[bag->n++] = (pick){factor, axes, 0, shard_axes_size(axes)};
}

/* Every factor with every beginning of its axes in any tensor. */
static bool pick_collect(pick_bag *bag) {
  explicit_op *x = bag->x;
  uint32_t most = 0, n = x->rule->sizes.n;
  for (uint32_t t = 0; t < x->p.n_tensors; t++)
    for (uint32_t i = 0; i < x->p.tensors[t].n_parts; i++) most += x->p.tensors[t].parts[i].axes.n;
  bag->v = shard_pool_alloc(x->p.pool, (most + 1) * sizeof *bag->v);
  bag->waits = shard_pool_alloc(x->p.pool, (size_t)n * n + 1);
  if (!bag->v || !bag->waits) return false;
  memset(bag->waits, 0, (size_t)n * n);
  pick_waits(bag);
  assert(bag->n == 0);
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const shard_tensor *tensor = &x->p.tensors[t];
    for (uint32_t i = 0; i < tensor->n_parts; i++)
      for (uint32_t k = tensor->parts[i].axes.n; k > 0; k--)
        pick_add(bag, tensor->parts[i].factor, (shard_axes){k, tensor->parts[i].axes.v});
  }
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const shard_tensor *tensor = &x->p.tensors[t];
    for (uint32_t i = 0; i < tensor->n_parts; i++)
      for (uint32_t c = 0; c < bag->n; c++)
        if (bag->v[c].factor == tensor->parts[i].factor &&
            shard_axes_prefix(bag->v[c].axes, tensor->parts[i].axes) != SHARD_NOT_PREFIX)
          bag->v[c].bytes += x->sizes[t];
  }
  return true;
}

/* The order of the list does not matter, since the order of value is total. */
static const pick *pick_best(const pick_bag *bag) {
  const pick *best = NULL;
  for (uint32_t i = 0; i < bag->n; i++)
    if (pick_is_free(bag, bag->v[i].factor) && (!best || pick_less(bag->x, best, &bag->v[i]))) best = &bag->v[i];
  return best;
}

/* Once `best` is taken: what is left of a candidate. Of the same factor only longer lists remain, and gain what they
 * add; of others the part before the first axis that `best` has taken. false: it goes. */
static bool pick_update(explicit_op *x, pick *c, const pick *best) {
  if (c->factor == best->factor) {
    if (shard_axes_prefix(best->axes, c->axes) != SHARD_STRICT_PREFIX) return false;
    c->gain = shard_axes_size(c->axes) / shard_axes_size(best->axes);
    return true;
  }
  shard_axes have = x->common[c->factor];
  assert(c->factor < x->rule->sizes.n);
  if (!explicit_truncate(x->p.pool, &c->axes, best->axes)) {
    c->gain = shard_axes_size(c->axes);
    return true;
  }
  if (shard_axes_same(c->axes, have)) return false;
  c->gain = shard_axes_size(c->axes) / shard_axes_size(have);
  return true;
}

/* Greedy, and quadratic in the number of candidates, which is that of axes on the op's tensors. */
void explicit_heuristic(explicit_op *x) {
  uint32_t n = x->rule->sizes.n;
  for (uint32_t f = 0; f < n; f++) x->common[f] = (shard_axes){0, NULL};
  pick_bag bag = {.x = x};
  if (!pick_collect(&bag)) return;
  while (bag.n) {
    const pick *found = pick_best(&bag);
    if (!found) return;
    pick best = *found;
    x->common[best.factor] = best.axes;
    if (shard_axes_size(best.axes) == x->rule->sizes.v[best.factor])
      for (uint32_t f = 0; f < n; f++) bag.waits[(size_t)f * n + best.factor] = 0;
    for (uint32_t i = 0; i < bag.n;) {
      if (pick_update(x, &bag.v[i], &best))
        i++;
      else
        bag.v[i] = bag.v[--bag.n];
    }
  }
}

/* Which axes all tensors of an op get along each of its factors. */

/* Rules list the factors of each kind; those in no list are pass-through. */
shard_kind explicit_kind(const sdy_rule *rule, uint32_t factor) {
  const struct {
    sdy_ints list;
    shard_kind kind;
  } kinds[] = {{rule->reduction, SHARD_REDUCTION},
               {rule->need_replication, SHARD_REPLICATION},
               {rule->permutation, SHARD_PERMUTATION}};
  for (uint32_t k = 0; k < 3; k++)
    for (uint32_t i = 0; i < kinds[k].list.n; i++)
      if (kinds[k].list.v[i] == factor) return kinds[k].kind;
  return SHARD_PASS;
}

/* The axes that all tensors with the factor have; false: they have different ones. */
bool explicit_same(const explicit_op *x, uint32_t factor, shard_axes *out) {
  assert(factor < x->rule->sizes.n);
  bool seen = false;
  *out = (shard_axes){0, NULL};
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const shard_part *part = shard_part_of(&x->p.tensors[t], factor);
    if (!part) continue;
    if (seen && !shard_axes_same(*out, part->axes)) return false;
    *out = part->axes;
    seen = true;
  }
  return true;
}

/* Shardings that go together already: alike along each factor, apart between factors, none where it must be whole.
 * Fills x->common on the way; only valid where the answer is true. */
static bool common_compatible(explicit_op *x) {
  shard_axes seen = {0, NULL};
  for (uint32_t f = 0; f < x->rule->sizes.n; f++) {
    shard_axes axes = {0, NULL};
    x->common[f] = axes;
    if (!explicit_same(x, f, &axes)) return false;
    if (explicit_kind(x->rule, f) == SHARD_REPLICATION) {
      if (axes.n) return false;
      continue;
    }
    if (explicit_overlaps(axes, seen)) return false;
    x->common[f] = axes;
    seen = explicit_join(x->p.pool, seen, axes);
  }
  return true;
}

/* --- two tensors, one factor a dimension: the better one's sharding is taken --- */

/* How many tensors have dimensions; the first two of them in `two`. */
static uint32_t common_non_scalars(const explicit_op *x, uint32_t two[2]) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    if (shard_map_of(x->rule, t)->n_dims == 0) continue;
    if (n < 2) two[n] = t;
    n++;
  }
  return n;
}

/* Whether any dimension has several factors (reshapes, convolutions). */
static bool common_has_compound(const sdy_rule *rule) {
  for (uint32_t t = 0; t < rule->n_operands + rule->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(rule, t);
    for (uint32_t d = 0; d < map->n_dims; d++)
      if (map->dims[d].n > 1) return true;
  }
  return false;
}

/* Into how many parts a tensor is cut, axes that overflow included. */
static int64_t common_shards(const shard_tensor *t) {
  int64_t size = 1;
  for (uint32_t i = 0; i < t->n_parts; i++) {
    int64_t part = 0;
    if (!base_mul_i64(shard_axes_size(t->parts[i].axes), shard_axes_size(t->parts[i].overflow), &part) ||
        !base_mul_i64(size, part, &size))
      return INT64_MAX;
  }
  return size;
}

/* Whether keeping this sharding would exchange data between neighbours. */
static bool common_permutes(const explicit_op *x, const shard_tensor *t) {
  for (uint32_t i = 0; i < t->n_parts; i++)
    if (t->parts[i].axes.n && explicit_kind(x->rule, t->parts[i].factor) == SHARD_PERMUTATION) return true;
  return false;
}

/* The first is at least as good: no sharded permutation, then larger, then more sharded. */
static bool common_prefers_first(const explicit_op *x, uint32_t a, uint32_t b) {
  const shard_tensor *first = &x->p.tensors[a], *second = &x->p.tensors[b];
  bool p = common_permutes(x, first), q = common_permutes(x, second);
  if (p != q) return q;
  if (x->sizes[a] != x->sizes[b]) return x->sizes[a] > x->sizes[b];
  return common_shards(first) >= common_shards(second);
}

/* The better tensor's axes along its factors; along factors that only the other has that one's, as far as they are
 * free. */
static void common_unary(explicit_op *x, uint32_t a, uint32_t b) {
  assert(a < b && b < x->p.n_tensors);
  bool first = common_prefers_first(x, a, b);
  const shard_tensor *best = &x->p.tensors[first ? a : b], *other = &x->p.tensors[first ? b : a];
  shard_axes taken = {0, NULL};
  for (uint32_t f = 0; f < x->rule->sizes.n; f++) x->common[f] = (shard_axes){0, NULL};
  for (uint32_t i = 0; i < best->n_parts; i++) {
    if (best->parts[i].factor == SHARD_ABSENT) continue;
    x->common[best->parts[i].factor] = best->parts[i].axes;
    taken = explicit_join(x->p.pool, taken, best->parts[i].axes);
  }
  for (uint32_t i = 0; i < other->n_parts; i++) {
    uint32_t f = other->parts[i].factor;
    if (f == SHARD_ABSENT || shard_part_of(best, f)) continue;
    x->common[f] = other->parts[i].axes;
    (void)explicit_truncate(x->p.pool, &x->common[f], taken);
  }
}

/* --- axes of factors that must be whole can shard batch dimensions instead --- */

/* Scalars have no dimensions and do not count. */
static bool common_in_all(const explicit_op *x, uint32_t factor) {
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const sdy_tensor_map *map = shard_map_of(x->rule, t);
    bool has = map->n_dims == 0;
    for (uint32_t d = 0; d < map->n_dims && !has; d++)
      for (uint32_t i = 0; i < map->dims[d].n; i++) has = has || map->dims[d].v[i] == factor;
    if (!has) return false;
  }
  return true;
}

/* Whole axes only, in order, as long as they divide the factor's size per shard. */
static void common_distribute(explicit_op *x, shard_axes axes) {
  uint32_t at = 0;
  for (uint32_t f = 0; f < x->rule->sizes.n && at < axes.n; f++) {
    if (explicit_kind(x->rule, f) != SHARD_PASS || !common_in_all(x, f)) continue;
    int64_t size = x->rule->sizes.v[f], shards = shard_axes_size(x->common[f]);
    if (size == 0 || size % shards != 0) continue;
    int64_t room = size / shards;
    for (; at < axes.n && room % axes.v[at].size == 0; at++) {
      x->common[f] = explicit_push(x->p.pool, x->common[f], axes.v[at]);
      room /= axes.v[at].size;
    }
  }
}

/* Every tensor is whole along such a factor, so its axes would replicate the work: sharding a batch dimension by them
 * instead costs nothing where all tensors have it. */
static void common_replicate(explicit_op *x) {
  for (uint32_t i = 0; i < x->rule->need_replication.n; i++) {
    uint32_t f = (uint32_t)x->rule->need_replication.v[i];
    assert(f < x->rule->sizes.n);
    shard_axes axes = x->common[f];
    x->common[f] = (shard_axes){0, NULL};
    if (axes.n && common_in_all(x, f)) common_distribute(x, axes);
  }
}

/* x->common stays NULL where memory has run out; the pool remembers it. */
void explicit_find_common(explicit_op *x) {
  x->common = shard_pool_alloc(x->p.pool, (x->rule->sizes.n + 1) * sizeof *x->common);
  if (!x->common) return;
  if (common_compatible(x)) return;
  uint32_t two[2] = {0, 0};
  if (common_non_scalars(x, two) == 2 && x->rule->need_replication.n == 0 && !common_has_compound(x->rule)) {
    common_unary(x, two[0], two[1]);
    return;
  }
  explicit_heuristic(x);
  common_replicate(x);
}

/* --- what follows from it --- */

/* Unlike propagation's, these lists replace those that were there, longer or shorter. */
void explicit_apply(explicit_op *x, bool *updated) {
  assert(x->common != NULL);
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    const shard_tensor *tensor = &x->p.tensors[t];
    for (uint32_t i = 0; i < tensor->n_parts; i++) {
      shard_part *part = &tensor->parts[i];
      if (part->factor == SHARD_ABSENT) continue;
      if (shard_axes_same(part->axes, x->common[part->factor]) && part->overflow.n == 0) continue;
      part->axes = x->common[part->factor];
      part->overflow = (shard_axes){0, NULL};
      updated[t] = true;
    }
  }
}

/* A tensor on a mesh whose devices stand in another order must be moved. */
static bool common_moves(const explicit_op *x, const sdy_sharding *s) {
  if (explicit_is_replicated(s)) return false;
  const sdy_mesh *mesh = explicit_mesh(x->pass, s);
  if (!mesh || mesh->n_ids != x->mesh->n_ids) return true;
  return mesh->n_ids && memcmp(mesh->ids, x->mesh->ids, mesh->n_ids * sizeof *mesh->ids) != 0;
}

/* No axis twice: the two sides of an op that are each fine may not go together. */
static bool common_is_valid(const explicit_op *x, const sdy_sharding *s) {
  shard_axes seen = {0, NULL};
  for (uint32_t d = 0; d < s->n_dims + 2; d++) {
    sdy_axes list = d < s->n_dims ? s->dims[d].axes : d == s->n_dims ? s->replicated : s->unreduced;
    shard_axes axes = shard_axes_from(x->p.pool, list, x->mesh);
    if (explicit_overlaps(axes, seen)) return false;
    seen = explicit_join(x->p.pool, seen, axes);
  }
  return true;
}

/* The sharding that tensor t gets. An explicit rule of a user's can ask for one that no verifier accepts. */
static const sdy_sharding *common_made(explicit_op *x, uint32_t t) {
  const sdy_sharding *s = shard_unproject(&x->p, t, x->like);
  if (s && !common_is_valid(x, s)) {
    const ir_mlir_info *info = ir_opcode_info(x->op->opcode)->mlir;
    const ir_op *at = t < x->op->n_operands ? x->op->operands[t].op : x->op; /* where the reshard would be from */
    if (!at->line) at = x->op;
    explicit_fail(x->pass,
                  base_fail_at(x->pass->err, XLAC_E_VERIFY_SHARDING, at->line, at->col, info ? info->name : "",
                               "resharding the op's operands and results to one of their shardings would give a "
                               "duplicate axis ref: one axis on two dimensions"));
    return NULL;
  }
  const sdy_sharding *kept = s ? sdy_sharding_make(x->pass->rw.m, s) : NULL;
  if (!kept) explicit_fail(x->pass, base_oom(x->pass->err, "explicit reshards"));
  return kept;
}

/* Operands are resharded right before the op. A result gets its new sharding in place, and a reshard to the one it
 * had, which all its readers then read. */
void explicit_insert(explicit_op *x, const bool *updated) {
  assert(updated != NULL);
  explicit_pass *e = x->pass;
  ir_op *op = x->op;
  opt_at(&e->rw, op);
  for (uint32_t i = 0; i < op->n_operands && e->status == 0; i++) {
    if (!updated[i] && !common_moves(x, x->shardings[i])) continue;
    ir_value v = {op->operands[i].op, op->operands[i].index};
    const sdy_sharding *to = common_made(x, i);
    if (to) ir_set_operand(op, i, explicit_reshard(e, v, to));
  }
  explicit_after(e, (ir_value){op, 0});
  for (uint32_t i = 0; i < op->n_results && e->status == 0; i++) {
    uint32_t t = op->n_operands + i;
    if (!updated[t] && !common_moves(x, x->shardings[t])) continue;
    ir_value v = {op, i};
    const sdy_sharding *to = common_made(x, t), *old = explicit_get(e, v);
    if (!old) old = sdy_sharding_empty(e->rw.m, x->like, sdy_rank(op->types[i]), false);
    if (!to || !old) continue;
    explicit_replace(e, v, explicit_reshard(e, v, old));
    if (!sdy_set(v, to)) explicit_fail(e, base_oom(e->err, "explicit reshards"));
  }
}
