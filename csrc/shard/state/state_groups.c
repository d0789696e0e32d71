/* Sharding groups: values that always have one sharding. */
#include <stdlib.h>

#include "../../passes/rewrite/rewrite.h"
#include "state.h"

typedef struct groups_member {
  uint64_t id;
  uint32_t order;
  ir_op *op; /* the sdy.sharding_group */
} groups_member;

static int groups_order(const void *x, const void *y) {
  const groups_member *a = x, *b = y;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

/* All members, by group, then in text order. */
static groups_member *groups_list(ir_module *m, base_arena *arena, uint32_t *n) {
  *n = 0;
  IR_FOR_COMPUTATIONS(c, m) IR_FOR_OPS(op, c) *n += op->opcode == IR_OP_SDY_SHARDING_GROUP;
  groups_member *list = BASE_ARRAY(arena, groups_member, *n ? *n : 1);
  if (!list) return NULL;
  uint32_t at = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode != IR_OP_SDY_SHARDING_GROUP) continue;
      list[at] = (groups_member){(uint64_t)ir_m_get_int(op, "group_id", 0), at, op};
      at++;
    }
  }
  qsort(list, *n, sizeof *list, groups_order);
  return list;
}

static uint32_t groups_end(const groups_member *list, uint32_t n, uint32_t from) {
  uint32_t to = from;
  while (to < n && list[to].id == list[from].id) to++;
  return to;
}

int shard_state_groups(shard_state *s, xlac_error *err) {
  uint32_t n = 0;
  groups_member *list = groups_list(s->m, &s->arena, &n);
  s->groups = list ? base_arena_zalloc(&s->arena, ((size_t)n + 1) * sizeof *s->groups) : NULL;
  if (!s->groups) return base_oom(err, "sharding groups");
  for (uint32_t from = 0, to = 0; from < n; from = to) {
    to = groups_end(list, n, from);
    shard_group *g = &s->groups[s->n_groups++];
    g->members = BASE_ARRAY(&s->arena, uint32_t, to - from);
    if (!g->members) return base_oom(err, "sharding groups");
    for (uint32_t i = from; i < to; i++) {
      const ir_use *use = &list[i].op->operands[0];
      uint32_t slot = shard_slot_of(s, use->op, use->index);
      if (s->slots[slot].group && s->slots[slot].group != s->n_groups)
        return base_hint(
            err,
            base_fail_at(err, XLAC_E_VERIFY_SHARDING, list[i].op->line, list[i].op->col, "sdy.sharding_group",
                         "the value is in two sharding groups, one of them %llu", (unsigned long long)list[i].id),
            "run sdy-sharding-group-import first: it joins groups that share a value");
      s->slots[slot].group = s->n_groups;
      g->members[g->n++] = slot;
    }
  }
  return 0;
}

/* --- before propagation --- */

/* The value that holds the sharding of a group's member, or an op of NULL: none can. */
static ir_value groups_value(const groups_member *member) {
  const ir_use *use = &member->op->operands[0];
  return (ir_value){use->op, use->index};
}

/* Its sharding: an argument's of a manual computation as the inside sees it. */
static const sdy_sharding *groups_sharding(opt_rewriter *rw, shard_pool *pool, const groups_member *member) {
  ir_value v = groups_value(member);
  const ir_op *owner = v.op->opcode == IR_OP_PARAMETER ? v.op->parent->owner : NULL;
  const sdy_shardings *list = owner ? sdy_of(ir_mattr_of(owner, "in_shardings"), SDY_SHARDINGS) : NULL;
  if (!list) return sdy_get(v);
  const sdy_names *manual = sdy_of(ir_mattr_of(owner, "manual_axes"), SDY_MANUAL_AXES);
  uint64_t i = (uint64_t)v.op->u.number;
  if (i >= list->n) return NULL;
  const sdy_sharding *inside = manual ? shard_manual_inside(pool, list->v[i], manual) : list->v[i];
  if (!inside) rw->failed = true;
  return inside;
}

static bool groups_says_nothing(const sdy_sharding *s) {
  if (!s) return true;
  for (uint32_t d = 0; d < s->n_dims; d++)
    if (s->dims[d].axes.n || !s->dims[d].open) return false;
  return true;
}

/* The first sharding that says something; *differ: another says something else. */
static const sdy_sharding *groups_common(opt_rewriter *rw, shard_pool *pool, const groups_member *list, uint32_t n,
                                         bool *differ) {
  const sdy_sharding *common = NULL;
  *differ = false;
  if (n == 1) return groups_sharding(rw, pool, &list[0]);
  for (uint32_t i = 0; i < n && !*differ; i++) {
    const sdy_sharding *s = groups_sharding(rw, pool, &list[i]);
    if (groups_says_nothing(s)) continue;
    if (!common)
      common = s;
    else if (!sdy_sharding_equal(s, common))
      *differ = true;
  }
  return common;
}

/* An open constraint after the member, which all others then read; the group holds it. */
static bool groups_open(opt_rewriter *rw, ir_op *op, const sdy_sharding *like) {
  ir_value v = {op->operands[0].op, op->operands[0].index};
  if (v.op->opcode == IR_OP_PARAMETER)
    opt_at_start(rw, v.op->parent);
  else {
    rw->into = v.op->parent;
    rw->before = v.op->next;
    rw->origin = v.op;
  }
  const ir_type *t = v.op->types[v.index];
  ir_value constraint = opt_make(rw, IR_OP_SDY_SHARDING_CONSTRAINT, t, 1, &v);
  const sdy_sharding *open = sdy_sharding_empty(rw->m, like, sdy_rank(t), true);
  opt_set(rw, constraint, "sharding", open ? sdy_attr(rw->m, SDY_SHARDING, open) : NULL);
  if (rw->failed) return false;
  ir_value *all = BASE_ARRAY(&rw->arena, ir_value, v.op->n_results);
  if (!all) return false;
  for (uint32_t i = 0; i < v.op->n_results; i++) all[i] = i == v.index ? constraint : (ir_value){v.op, i};
  opt_replace_results(rw, v.op, all);
  ir_set_operand(constraint.op, 0, v);
  return !rw->failed;
}

static int groups_join_one(opt_rewriter *rw, shard_pool *pool, const groups_member *list, uint32_t n) {
  bool differ = false;
  shard_pool_empty(pool);
  const sdy_sharding *common = groups_common(rw, pool, list, n, &differ);
  if (rw->failed) return base_oom(rw->err, "sharding groups");
  for (uint32_t i = 0; i < n && common; i++) {
    bool ok = differ ? groups_open(rw, list[i].op, common) : sdy_set(groups_value(&list[i]), common);
    if (!ok) return base_oom(rw->err, "sharding groups");
  }
  return 0;
}

int shard_groups_join(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  shard_pool pool;
  shard_pool_init(&pool, m->alloc);
  uint32_t n = 0;
  groups_member *list = groups_list(m, &rw.arena, &n);
  int status = list ? 0 : base_oom(err, "sharding groups");
  for (uint32_t from = 0, to = 0; from < n && status == 0; from = to) {
    to = groups_end(list, n, from);
    status = groups_join_one(&rw, &pool, list + from, to - from);
  }
  shard_pool_free(&pool);
  opt_rewriter_free(&rw);
  return status;
}
