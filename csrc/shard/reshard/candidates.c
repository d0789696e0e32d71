/* The choice among axes that are in each other's way: one factor's axes after the other, the most valuable first. */
#include "explicit.h"

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

static bool pick_less(const explicit_op *x, const pick *a, const pick *b) {
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  int p = pick_kind_rank(explicit_kind(x->rule, a->factor)), q = pick_kind_rank(explicit_kind(x->rule, b->factor));
  if (p != q) return p < q;
  if (a->gain != b->gain) return a->gain < b->gain;
  if (a->factor != b->factor) return a->factor < b->factor;
  return pick_axes_order(x, a->axes, b->axes) < 0;
}

static void pick_waits(pick_bag *bag) {
  const sdy_rule *rule = bag->x->rule;
  for (uint32_t t = 0; t < rule->n_operands + rule->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(rule, t);
    for (uint32_t d = 0; d < map->n_dims; d++)
      for (uint32_t i = 1; i < map->dims[d].n; i++)
        bag->waits[map->dims[d].v[i] * rule->sizes.n + map->dims[d].v[i - 1]] = 1;
  }
}

static bool pick_is_free(const pick_bag *bag, uint32_t factor) {
  uint32_t n = bag->x->rule->sizes.n;
  for (uint32_t i = 0; i < n; i++)
    if (bag->waits[(size_t)factor * n + i]) return false;
  return true;
}

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

static const pick *pick_best(const pick_bag *bag) {
  const pick *best = NULL;
  for (uint32_t i = 0; i < bag->n; i++)
    if (pick_is_free(bag, bag->v[i].factor) && (!best || pick_less(bag->x, best, &bag->v[i]))) best = &bag->v[i];
  return best;
}

/* Once `best` is taken: what is left of a candidate. false: it goes. */
static bool pick_update(explicit_op *x, pick *c, const pick *best) {
  if (c->factor == best->factor) {
    if (shard_axes_prefix(best->axes, c->axes) != SHARD_STRICT_PREFIX) return false;
    c->gain = shard_axes_size(c->axes) / shard_axes_size(best->axes);
    return true;
  }
  shard_axes have = x->common[c->factor];
  if (!explicit_truncate(x->p.pool, &c->axes, best->axes)) {
    c->gain = shard_axes_size(c->axes);
    return true;
  }
  if (shard_axes_same(c->axes, have)) return false;
  c->gain = shard_axes_size(c->axes) / shard_axes_size(have);
  return true;
}

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
