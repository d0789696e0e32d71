/* Two ops with ways of their own. */
#include "explicit.h"

/* --- a dot whose result conflicts with an operand in one dimension, and is what its contracted dimensions would give:
 * sharding it as the operand and moving it afterwards is cheaper --- */

typedef struct special_dot {
  uint32_t conflict;
  bool found;
  shard_axes wanted, reduced, free;
} special_dot;

/* false: no such dot. */
static bool special_factor(explicit_op *x, uint32_t f, special_dot *s) {
  const shard_part *lhs = shard_part_of(&x->p.tensors[0], f), *rhs = shard_part_of(&x->p.tensors[1], f);
  const shard_part *out = shard_part_of(&x->p.tensors[2], f);
  int64_t size = 0;
  shard_axes axes = lhs ? lhs->axes : rhs ? rhs->axes : (shard_axes){0, NULL};
  if (lhs && rhs) {
    size = x->sizes[0] > x->sizes[1] ? x->sizes[0] : x->sizes[1];
    if (!shard_axes_same(lhs->axes, rhs->axes)) return false;
    if (explicit_kind(x->rule, f) == SHARD_REDUCTION) {
      s->reduced = explicit_join(x->p.pool, s->reduced, axes);
      return true;
    }
  } else {
    size = lhs ? x->sizes[0] : x->sizes[1];
    if (explicit_overlaps(axes, s->free)) return false;
    s->free = explicit_join(x->p.pool, s->free, axes);
  }
  if (!out || shard_axes_same(out->axes, axes)) return true;
  if (axes.n == 0 || s->found || x->sizes[2] > size) return false;
  s->found = true;
  s->conflict = f;
  s->wanted = axes;
  return true;
}

void explicit_dot(explicit_op *x) {
  explicit_pass *e = x->pass;
  ir_value result = {x->op, 0};
  const sdy_sharding *old = x->shardings[2];
  if (!old) return;
  special_dot s = {.found = false};
  for (uint32_t f = 0; f < x->rule->sizes.n; f++)
    if (!special_factor(x, f, &s)) return;
  shard_part *part = s.found ? shard_part_of(&x->p.tensors[2], s.conflict) : NULL;
  if (!part || part->axes.n == 0 || !shard_axes_same(part->axes, s.reduced)) return;
  part->axes = s.wanted;
  const sdy_sharding *made = shard_unproject(&x->p, 2, x->like);
  made = made ? sdy_sharding_make(e->rw.m, made) : NULL;
  if (!made || !sdy_set(result, made)) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return;
  }
  explicit_after(e, result);
  explicit_replace(e, result, explicit_reshard(e, result, old));
}

/* --- a reshape whose axes do not divide its factors: the axes of the more sharded side are dealt out again --- */

static int64_t special_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* Puts axes, or parts of them, into the first factors that they divide; what fits nowhere overflows the last one. */
static void special_deal(explicit_op *x, shard_tensor *t, shard_axes axes) {
  shard_pool *pool = x->p.pool;
  int64_t *left = shard_pool_alloc(pool, (t->n_parts + 1) * sizeof *left);
  if (!left) return;
  shard_part *last = NULL;
  for (uint32_t i = 0; i < t->n_parts; i++) {
    if (t->parts[i].factor == SHARD_ABSENT) continue;
    last = &t->parts[i];
    last->axes = last->overflow = (shard_axes){0, NULL};
    left[i] = x->rule->sizes.v[last->factor];
  }
  for (uint32_t a = 0; a < axes.n && last; a++) {
    shard_axis now = axes.v[a];
    bool used = true, done = false;
    while (used && !done) {
      used = false;
      for (uint32_t i = 0; i < t->n_parts && !done; i++) {
        if (t->parts[i].factor == SHARD_ABSENT || left[i] <= 1) continue;
        int64_t gcd = special_gcd(left[i], now.size);
        if (gcd == 1 && now.size != 1) continue;
        used = true;
        shard_axis part = {now.axis, now.pre, gcd};
        done = now.size <= gcd;
        t->parts[i].axes = explicit_push(pool, t->parts[i].axes, done ? now : part);
        left[i] /= done ? now.size : gcd;
        now.pre *= gcd;
        now.size /= gcd;
      }
    }
    if (done) continue;
    last->overflow = explicit_push(pool, last->overflow, now);
    for (uint32_t i = a + 1; i < axes.n; i++) last->overflow = explicit_push(pool, last->overflow, axes.v[i]);
    return;
  }
}

static int64_t special_shards(const shard_tensor *t) {
  int64_t size = 1;
  for (uint32_t i = 0; i < t->n_parts; i++)
    size *= shard_axes_size(t->parts[i].axes) * shard_axes_size(t->parts[i].overflow);
  return size;
}

static shard_axes special_all(explicit_op *x, const shard_tensor *t) {
  shard_axes all = {0, NULL};
  for (uint32_t f = 0; f < x->rule->sizes.n; f++) {
    const shard_part *part = shard_part_of(t, f);
    if (!part) continue;
    all = explicit_join(x->p.pool, all, part->axes);
    all = explicit_join(x->p.pool, all, part->overflow);
  }
  return all;
}

static shard_axes special_common(shard_pool *pool, shard_axes a, shard_axes b) {
  shard_axes out = {0, NULL};
  for (uint32_t i = 0; i < a.n && i < b.n; i++) {
    bool same = shard_axis_same(a.v[i], b.v[i]);
    bool first = shard_axis_prefix(a.v[i], b.v[i]), second = shard_axis_prefix(b.v[i], a.v[i]);
    if (!same && (!shard_axis_coexists(a.v[i], b.v[i]) || !(first || second))) break;
    out = explicit_join(pool, out, (shard_axes){1, first ? &a.v[i] : &b.v[i]});
    if (!same) break;
  }
  return out;
}

void explicit_reshape(explicit_op *x) {
  shard_pool *pool = x->p.pool;
  shard_tensor *in = &x->p.tensors[0], *out = &x->p.tensors[1];
  shard_axes all = special_all(x, special_shards(in) >= special_shards(out) ? in : out);
  special_deal(x, in, all);
  special_deal(x, out, all);
  /* As they can really be, and what both sides have of it. */
  const sdy_sharding *made[2] = {shard_unproject(&x->p, 0, x->like), shard_unproject(&x->p, 1, x->like)};
  shard_projection legal;
  x->common = shard_pool_alloc(pool, (x->rule->sizes.n + 1) * sizeof *x->common);
  if (!x->common || !made[0] || !made[1] || !shard_project(&legal, pool, x->rule, x->mesh, made, false)) {
    explicit_fail(x->pass, base_oom(x->pass->err, "explicit reshards"));
    return;
  }
  for (uint32_t f = 0; f < x->rule->sizes.n; f++) {
    const shard_part *a = shard_part_of(&legal.tensors[0], f), *b = shard_part_of(&legal.tensors[1], f);
    x->common[f] = a && b ? special_common(pool, a->axes, b->axes) : a ? a->axes : b ? b->axes : (shard_axes){0, NULL};
  }
  bool updated[2] = {false, false};
  explicit_apply(x, updated);
  for (uint32_t t = 0; t < 2; t++) {
    const sdy_sharding *now = shard_unproject(&x->p, t, x->like);
    updated[t] = now && !explicit_equivalent(now, x->shardings[t]);
  }
  explicit_insert(x, updated);
}
