/* Ops with reshard rules of their own: dots whose result is better moved than its operands, reshapes whose axes do
 * not fit their factors; and axes whose sums are still to be made (unreduced). */
#include "../../base/number/gcd.h"
#include "explicit.h"

/* --- dots --- */

/* A dot whose result conflicts with an operand in one dimension, and has there what the contracted dimensions give:
 * sharding it as the operand and moving it afterwards is cheaper. With lhs [{"x"}, {"y"}], rhs [{"y"}, {}] and result
 * [{"y"}, {}] the dot is done with result [{"x"}, {}], and the all-reduce over "y" and reshard can become a reduce-
 * scatter. conflict: the factor; wanted: the operand's axes along it; reduced: axes of contracted dimensions; free:
 * axes of factors that one operand alone has. */
typedef struct special_dot {
  uint32_t conflict;
  bool found;
  shard_axes wanted, reduced, free;
} special_dot;

/* Adds what factor f says to *s. false: the op is no such dot, since its operands differ along f, or there is a
 * second conflict, or the result is larger than the operand. */
static bool special_factor(explicit_op *x, uint32_t f, special_dot *s) {
  assert(x->p.n_tensors == 3);
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

/* All factors must agree but one, along which the operands agree with one another and the result does not: then only
 * the result is resharded, which is the smaller tensor to move. */
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

/* Puts axes, or parts of them, into the first factors that they divide; what fits nowhere overflows the last one. */
static void special_deal(explicit_op *x, shard_tensor *t, shard_axes axes) {
  shard_pool *pool = x->p.pool;
  assert(t->n_parts == 0 || t->parts != NULL);
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
        int64_t gcd = base_gcd(left[i], now.size);
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

/* How many parts the tensor is cut into; axes of a verified sharding are distinct, so the product is at most the
 * number of devices. */
static int64_t special_shards(const shard_tensor *t) {
  int64_t size = 1;
  for (uint32_t i = 0; i < t->n_parts; i++)
    size *= shard_axes_size(t->parts[i].axes) * shard_axes_size(t->parts[i].overflow);
  return size;
}

/* All axes of the tensor, major to minor in the order of its factors. */
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

/* The common beginning; the last axis may be the major part of the other list's. */
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

/* Both sides are given the axes of the more sharded one, and projected back: what factors can really take, and both
 * sides can, is common. */
void explicit_reshape(explicit_op *x) {
  assert(x->p.n_tensors == 2);
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

/* Unreduced axes: a value whose parts on those axes are still to be added up. */

/* A sharding's unreduced axes by number, on `mesh`. */
static shard_axes unreduced_of(explicit_pass *e, const sdy_sharding *s, const sdy_mesh *mesh) {
  return s ? shard_axes_from(&e->pool, s->unreduced, mesh) : (shard_axes){0, NULL};
}

static void unreduced_fail_meshes(explicit_pass *e, const explicit_use *u) {
  const ir_op *op = u->op;
  explicit_fail(e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, op ? op->line : u->c->line, op ? op->col : u->c->col,
                                "", "a value with unreduced axes is used with a sharding on another mesh"));
}

/* The sharding with other unreduced axes; in the pool. */
static const sdy_sharding *unreduced_replace(explicit_pass *e, const sdy_sharding *s, sdy_axes axes) {
  sdy_sharding *to = shard_pool_alloc(&e->pool, sizeof *to);
  if (!to) return s;
  *to = *s;
  to->unreduced = axes;
  if (axes.n == 0) to->reduction = SDY_SUM;
  return to;
}

/* Axes that the source leaves unreduced and the user does not want so are reduced in between. */
const sdy_sharding *explicit_reduce(explicit_pass *e, explicit_use u, const sdy_sharding *source,
                                    const sdy_sharding *user) {
  if (!source || source->unreduced.n == 0) return source;
  const sdy_mesh *mesh = explicit_mesh(e, source);
  if (!mesh) return source;
  const sdy_mesh *other = user ? explicit_mesh(e, user) : NULL;
  if (user && (!other || !sdy_mesh_equal(mesh, other))) {
    unreduced_fail_meshes(e, &u);
    return source;
  }
  shard_axes from = unreduced_of(e, source, mesh), to = unreduced_of(e, user, mesh);
  shard_axes reduce = explicit_minus(&e->pool, from, to);
  if (reduce.n == 0) return source;
  sdy_axes left = shard_axes_to(&e->pool, explicit_minus(&e->pool, from, reduce), mesh);
  const sdy_sharding *out = unreduced_replace(e, source, left);
  sdy_axes axes = shard_axes_to(&e->pool, reduce, mesh);
  explicit_set(e, u, explicit_all_reduce(e, explicit_used(u), axes, source->reduction, out));
  return out;
}

/* --- to unreduced axes: from replicated ones, and from ones that shard a dimension --- */

/* Axes become unreduced without communication: one that replicates the tensor by keeping its value on one device and
 * zeros on the others, one that shards a dimension by padding the shard with zeros. */
typedef struct unreduced_plan {
  const sdy_mesh *mesh;
  const sdy_sharding *in, *out;
  shard_axes more;   /* unreduced in out only */
  sdy_dim *dims;     /* between: as out, but for dimensions whose axes become unreduced */
  sdy_axes *sharded; /* by dimension: axes that go from sharding it to unreduced */
  shard_axes all_sharded;
  bool reshard;
} unreduced_plan;

/* Axes at the end of the dimension that the result does not have there. */
static shard_axes unreduced_tail(explicit_pass *e, shard_axes in, shard_axes out) {
  shard_axes tail = {0, NULL};
  if (out.n && !shard_axis_same(out.v[out.n - 1], in.v[out.n - 1])) {
    shard_axis rest = in.v[out.n - 1];
    if (explicit_suffix(in.v[out.n - 1], out.v[out.n - 1], &rest))
      tail = explicit_join(&e->pool, tail, (shard_axes){1, memcpy(shard_axes_room(&e->pool, 1), &rest, sizeof rest)});
  }
  return explicit_join(&e->pool, tail, (shard_axes){in.n - out.n, in.v + out.n});
}

/* Axes at the end of a dimension that are to be unreduced stay for the collective; any other difference needs a
 * reshard before. */
static void unreduced_dim(explicit_pass *e, unreduced_plan *p, uint32_t d) {
  assert(d < p->in->n_dims && d < p->out->n_dims);
  shard_axes in = shard_axes_from(&e->pool, p->in->dims[d].axes, p->mesh);
  shard_axes out = shard_axes_from(&e->pool, p->out->dims[d].axes, p->mesh);
  p->dims[d] = p->out->dims[d];
  p->sharded[d] = (sdy_axes){0, NULL};
  shard_prefix how = shard_axes_prefix(out, in);
  if (how == SHARD_EQUAL) return;
  shard_axes tail = how == SHARD_STRICT_PREFIX ? unreduced_tail(e, in, out) : (shard_axes){0, NULL};
  if (how == SHARD_NOT_PREFIX || explicit_minus(&e->pool, tail, p->more).n) {
    p->reshard = true;
    return;
  }
  p->sharded[d] = shard_axes_to(&e->pool, tail, p->mesh);
  p->all_sharded = explicit_join(&e->pool, p->all_sharded, tail);
  p->dims[d] = p->in->dims[d];
}

/* The two collectives have the same form: axes, and the sharding that results. */
static ir_value unreduced_make(explicit_pass *e, ir_opcode opcode, ir_value v, const ir_mattr *axes,
                               const sdy_sharding *out) {
  const sdy_sharding *kept = sdy_sharding_make(e->rw.m, out);
  ir_value made = opt_make(&e->rw, opcode, v.op->types[v.index], 1, &v);
  opt_set(&e->rw, made, "axes", axes);
  opt_set(&e->rw, made, "out_sharding", kept ? sdy_attr(e->rw.m, SDY_SHARDING, kept) : NULL);
  if (!e->rw.failed && made.op) return made;
  explicit_fail(e, base_oom(e->err, "explicit reshards"));
  return v;
}

/* Axes of `more` that shard nothing now. */
static ir_value unreduced_from_replicated(explicit_pass *e, unreduced_plan *p, ir_value v, const sdy_sharding **last) {
  shard_axes axes = explicit_minus(&e->pool, p->more, p->all_sharded);
  if (axes.n == 0) return v;
  shard_axes all = explicit_sorted(&e->pool, explicit_join(&e->pool, unreduced_of(e, p->in, p->mesh), axes));
  sdy_sharding *out = shard_pool_alloc(&e->pool, sizeof *out);
  sdy_axes *kept = BASE_NEW(&e->rw.m->arena, sdy_axes);
  if (!out || !kept || !sdy_axes_make(e->rw.m, shard_axes_to(&e->pool, axes, p->mesh), kept)) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return v;
  }
  *out = *p->in;
  out->dims = p->dims;
  out->replicated = p->out->replicated;
  out->unreduced = shard_axes_to(&e->pool, all, p->mesh);
  *last = out;
  return unreduced_make(e, IR_OP_SDY_REPLICATED_TO_UNREDUCED, v, sdy_attr(e->rw.m, SDY_AXES, kept), out);
}

/* A reshard where dimensions differ otherwise, then from replicated, then from sharded. *last is what the value has
 * now. */
static const sdy_sharding *unreduced_run(explicit_pass *e, explicit_use u, unreduced_plan *p) {
  ir_value input = explicit_used(u), v = input;
  const sdy_sharding *last = NULL;
  if (p->reshard) {
    sdy_sharding *to = shard_pool_alloc(&e->pool, sizeof *to);
    if (!to) return NULL;
    *to = *p->in;
    to->dims = p->dims;
    v = explicit_reshard(e, v, to);
    last = to;
  }
  v = unreduced_from_replicated(e, p, v, &last);
  if (p->all_sharded.n) {
    const sdy_axis_lists *lists = sdy_axis_lists_make(e->rw.m, p->in->n_dims, p->sharded);
    v = unreduced_make(e, IR_OP_SDY_SHARDED_TO_UNREDUCED, v, sdy_attr(e->rw.m, SDY_AXIS_LISTS, lists), p->out);
    last = p->out;
  }
  if (v.op == input.op) return NULL;
  explicit_set(e, u, v);
  return last;
}

/* A value without a sharding gets one that says so, for collectives need it: whole. Where it can't, NULL. */
static const sdy_sharding *unreduced_whole(explicit_pass *e, ir_value v, const sdy_sharding *like) {
  const sdy_sharding *whole =
      sdy_rank(opt_type(v)) == like->n_dims ? sdy_sharding_empty(e->rw.m, like, like->n_dims, false) : NULL;
  return whole && sdy_set(v, whole) ? whole : NULL;
}

/* Only ever adds unreduced axes; to lose some as well would need a sum in between, which the program does not ask
 * for. */
const sdy_sharding *explicit_unreduce(explicit_pass *e, explicit_use u, const sdy_sharding *to) {
  const sdy_sharding *in = explicit_get(e, explicit_used(u));
  if (e->again && !in && to && to->unreduced.n && !(in = unreduced_whole(e, explicit_used(u), to))) return NULL;
  if (!in || !to || to->unreduced.n == 0 || in->n_dims != to->n_dims) return NULL;
  const sdy_mesh *mesh = explicit_mesh(e, in), *other = explicit_mesh(e, to);
  if (!mesh || !other || !sdy_mesh_equal(mesh, other)) {
    unreduced_fail_meshes(e, &u);
    return NULL;
  }
  unreduced_plan p = {.mesh = mesh, .in = in, .out = to};
  shard_axes before = unreduced_of(e, in, mesh), after = unreduced_of(e, to, mesh);
  p.more = explicit_minus(&e->pool, after, before);
  if (p.more.n == 0) return NULL;
  if (to->reduction != SDY_SUM) {
    explicit_fail(
        e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, u.op ? u.op->line : u.c->line, u.op ? u.op->col : u.c->col, "",
                        "a value is used with new unreduced axes of another reduction than sum"));
    return NULL;
  }
  if (explicit_minus(&e->pool, before, after).n) {
    explicit_fail(
        e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, u.op ? u.op->line : u.c->line, u.op ? u.op->col : u.c->col, "",
                        "both the value and its use have unreduced axes that the other does not have"));
    return NULL;
  }
  p.dims = shard_pool_alloc(&e->pool, (in->n_dims + 1) * sizeof *p.dims);
  p.sharded = shard_pool_alloc(&e->pool, (in->n_dims + 1) * sizeof *p.sharded);
  if (!p.dims || !p.sharded) return NULL;
  for (uint32_t d = 0; d < in->n_dims; d++) unreduced_dim(e, &p, d);
  return unreduced_run(e, u, &p);
}
