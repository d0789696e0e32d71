/* Which axes all tensors of an op get along each of its factors. */
#include "explicit.h"

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

/* Shardings that go together already: alike along each factor, apart between factors, none where it must be whole. */
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

static uint32_t common_non_scalars(const explicit_op *x, uint32_t two[2]) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    if (shard_map_of(x->rule, t)->n_dims == 0) continue;
    if (n < 2) two[n] = t;
    n++;
  }
  return n;
}

static bool common_has_compound(const sdy_rule *rule) {
  for (uint32_t t = 0; t < rule->n_operands + rule->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(rule, t);
    for (uint32_t d = 0; d < map->n_dims; d++)
      if (map->dims[d].n > 1) return true;
  }
  return false;
}

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

static void common_unary(explicit_op *x, uint32_t a, uint32_t b) {
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

static void common_replicate(explicit_op *x) {
  for (uint32_t i = 0; i < x->rule->need_replication.n; i++) {
    uint32_t f = (uint32_t)x->rule->need_replication.v[i];
    shard_axes axes = x->common[f];
    x->common[f] = (shard_axes){0, NULL};
    if (axes.n && common_in_all(x, f)) common_distribute(x, axes);
  }
}

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

void explicit_apply(explicit_op *x, bool *updated) {
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

void explicit_insert(explicit_op *x, const bool *updated) {
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
