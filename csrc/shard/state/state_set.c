/* Changing the table, and writing it back into the module. */
#include <stdlib.h>

#include "../../passes/rewrite/rewrite.h"
#include "state.h"

/* Looked up by name once a run: symbol tables are searched linearly. */
const sdy_mesh *shard_state_mesh(shard_state *s, const sdy_sharding *of) {
  if (!of->mesh_name) return of->mesh;
  for (uint32_t i = 0; i < s->meshes.n; i++)
    if (s->meshes.items[i].name == of->mesh_name) return s->meshes.items[i].mesh;
  shard_mesh_entry e = {of->mesh_name, sdy_mesh_named(s->m, of->mesh_name)};
  if (!BASE_VEC_PUSH(s->m->alloc, &s->meshes, e)) return NULL;
  return e.mesh;
}

/* Ticks are 31 bits, since a slot keeps a flag beside them. state_put refuses more changes than that. */
enum { STATE_LAST_TICK = INT32_MAX };

/* Every change goes through here: it is logged where the trace wants to go back, and gets the next tick. false: out
 * of memory, or more changes than a tick can count. */
static bool state_put(shard_state *s, uint32_t slot, const sdy_sharding *to) {
  assert(slot < s->n_slots && to != NULL);
  if (s->tick >= STATE_LAST_TICK) return false;
  if (s->logs && !BASE_VEC_PUSH(s->m->alloc, &s->changes, ((shard_change){s->slots[slot].now, slot}))) return false;
  s->slots[slot].now = to;
  s->slots[slot].changed = true;
  s->slots[slot].when = ++s->tick & STATE_LAST_TICK;
  return true;
}

/* Values whose shardings are in one list of their op: all have one as soon as one of them has.
 * `params`: ops are the arguments of a region, which its owner lists; else ops[0] is an op with several results. */
static bool state_open_rest(shard_state *s, const ir_op *const *ops, uint32_t n, bool params,
                            const sdy_sharding *like) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t slot = params ? shard_slot_of(s, ops[i], 0) : shard_slot_of(s, ops[0], i);
    if (s->slots[slot].now) continue;
    const sdy_sharding *open =
        sdy_sharding_empty(s->m, like, sdy_rank(ops[params ? i : 0]->types[params ? 0 : i]), true);
    if (!open || !state_put(s, slot, open)) return false;
  }
  return true;
}

/* The module can only say a list of shardings for all results of an op, so the first one that is set makes the others
 * open and unsharded, as in Shardy (setShardings). Function arguments are apart: each has its own attribute. */
bool shard_state_set(shard_state *s, uint32_t slot, const sdy_sharding *to) {
  slot = shard_home(s, slot);
  if (slot == SHARD_NO_SLOT) return true;
  const sdy_sharding *kept = shard_state_keep(s, to);
  bool had = s->slots[slot].now != NULL;
  if (!kept || !state_put(s, slot, kept)) return false;
  const ir_op *op = s->slots[slot].op;
  if (had || !op) return true;
  if (op->opcode != IR_OP_PARAMETER) return op->n_results < 2 || state_open_rest(s, &op, op->n_results, false, kept);
  if (op->parent->kind != IR_REGION) return true;
  const ir_op *const *params = (const ir_op *const *)op->parent->params;
  return state_open_rest(s, params, op->parent->n_params, true, kept);
}

/* --- manual computations --- */

/* Names are compared by pointer first: they are interned, but the attribute may come from another module. */
static bool state_is_manual(const base_istr *name, const sdy_names *manual) {
  for (uint32_t i = 0; i < manual->n; i++)
    if (manual->v[i] == name || sdy_name_equal(manual->v[i], name)) return true;
  return false;
}

/* Manual axes come before free ones in every dimension, so one index separates the two. */
static uint32_t state_first_free(sdy_axes axes, const sdy_names *manual) {
  uint32_t i = 0;
  while (i < axes.n && state_is_manual(axes.v[i].name, manual)) i++;
  return i;
}

/* Lists that are not a dimension's (replicated, unreduced) may have manual axes anywhere. */
static sdy_axes state_free_axes(shard_pool *pool, sdy_axes axes, const sdy_names *manual) {
  sdy_axis *v = axes.n ? shard_pool_alloc(pool, axes.n * sizeof *v) : NULL;
  sdy_axes out = {0, v};
  for (uint32_t i = 0; v && i < axes.n; i++)
    if (!state_is_manual(axes.v[i].name, manual)) v[out.n++] = axes.v[i];
  return out;
}

/* A copy whose dimensions may be written to: *dims are those of the copy. */
static sdy_sharding *state_copy(shard_pool *pool, const sdy_sharding *of, sdy_dim **dims) {
  sdy_sharding *s = shard_pool_alloc(pool, sizeof *s);
  *dims = shard_pool_alloc(pool, (of->n_dims ? of->n_dims : 1) * sizeof **dims);
  if (!s || !*dims) return NULL;
  *s = *of;
  if (of->n_dims) memcpy(*dims, of->dims, of->n_dims * sizeof **dims);
  s->dims = *dims;
  return s;
}

/* With manual_axes = {"x"}, [{"x", "y"}, {}] outside is [{"y"}, {}] inside: the body sees local shapes along "x". */
const sdy_sharding *shard_manual_inside(shard_pool *pool, const sdy_sharding *outer, const sdy_names *manual) {
  if (manual->n == 0) return outer;
  sdy_dim *dims = NULL;
  sdy_sharding *s = state_copy(pool, outer, &dims);
  if (!s) return NULL;
  for (uint32_t d = 0; d < s->n_dims; d++) {
    uint32_t skip = state_first_free(dims[d].axes, manual);
    dims[d].axes = (sdy_axes){dims[d].axes.n - skip, dims[d].axes.v + skip};
  }
  s->replicated = state_free_axes(pool, outer->replicated, manual);
  s->unreduced = state_free_axes(pool, outer->unreduced, manual);
  return s;
}

/* The inverse: inner's axes follow the manual ones of `outer`. [{"y"}] inside and [{"x"}] outside give [{"x", "y"}].
 * Replicated and unreduced axes are those of outside, since propagation changes neither. */
const sdy_sharding *shard_manual_outside(shard_pool *pool, const sdy_sharding *outer, const sdy_sharding *inner,
                                         const sdy_names *manual) {
  assert(outer->n_dims == inner->n_dims || outer->n_dims == 0 || inner->n_dims == 0);
  sdy_dim *dims = NULL;
  sdy_sharding *s = state_copy(pool, inner, &dims);
  if (!s) return NULL;
  for (uint32_t d = 0; d < s->n_dims && d < outer->n_dims; d++) {
    uint32_t own = state_first_free(outer->dims[d].axes, manual), n = own + inner->dims[d].axes.n;
    sdy_axis *v = shard_pool_alloc(pool, (n ? n : 1) * sizeof *v);
    if (!v) return NULL;
    for (uint32_t i = 0; i < n; i++) v[i] = i < own ? outer->dims[d].axes.v[i] : inner->dims[d].axes.v[i - own];
    dims[d].axes = (sdy_axes){n, v};
  }
  s->replicated = outer->replicated;
  s->unreduced = outer->unreduced;
  return s;
}

/* --- back into the module --- */

/* The arguments' list of a named or manual computation. */
static bool state_store_arguments(shard_state *s, const ir_computation *c, shard_pool *pool) {
  ir_op *owner = c->owner;
  const sdy_names *manual = sdy_of(ir_mattr_of(owner, "manual_axes"), SDY_MANUAL_AXES);
  const sdy_shardings *old = sdy_of(ir_mattr_of(owner, "in_shardings"), SDY_SHARDINGS);
  const sdy_sharding **list = shard_pool_alloc(pool, ((size_t)c->n_params + 1) * sizeof *list);
  if (!list) return false;
  for (uint32_t i = 0; i < c->n_params; i++) {
    list[i] = s->slots[shard_slot_of(s, c->params[i], 0)].now;
    if (manual && old && i < old->n) { /* what the module holds may not lie in the pool */
      const sdy_sharding *outside = shard_manual_outside(pool, old->v[i], list[i], manual);
      list[i] = outside ? sdy_sharding_make(s->m, outside) : NULL;
    }
    if (!list[i]) return false;
  }
  const sdy_shardings *made = sdy_shardings_make(s->m, c->n_params, list);
  return made && ir_m_set(owner, "in_shardings", sdy_attr(s->m, SDY_SHARDINGS, made));
}

/* An op's results at once. */
static bool state_store_results(shard_state *s, ir_op *op, shard_pool *pool) {
  assert(op->n_results > 0 && op->id < s->n_ids);
  uint32_t first = shard_slot_of(s, op, 0);
  if (op->n_results == 1) return shard_state_write(s, (ir_value){op, 0}, s->slots[first].now);
  const sdy_sharding **list = shard_pool_alloc(pool, op->n_results * sizeof *list);
  if (!list) return false;
  for (uint32_t i = 0; i < op->n_results; i++) list[i] = s->slots[first + i].now;
  const sdy_shardings *made = sdy_shardings_make(s->m, op->n_results, list);
  return made && sdy_set_list(op, made);
}

/* Whether any of n slots from `first` on was set since the table was made. */
static bool state_changed(const shard_state *s, uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (s->slots[first + i].changed) return true;
  return false;
}

/* What flows back from outside must not have put an axis in front of a manual one. */
static int state_check_manual(const shard_state *s, const ir_op *op, xlac_error *err) {
  const sdy_names *manual = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  for (uint32_t r = 0; manual && r < op->n_results; r++) {
    const sdy_sharding *now = s->slots[shard_slot_of(s, op, r)].now;
    for (uint32_t d = 0; now && d < now->n_dims; d++) {
      sdy_axes axes = now->dims[d].axes;
      uint32_t n = state_first_free(axes, manual);
      while (n < axes.n && !state_is_manual(axes.v[n].name, manual)) n++;
      if (n == axes.n) continue;
      return base_hint(err,
                       base_fail_at(err, XLAC_E_VERIFY_SHARDING, op->line, op->col, "sdy.manual_computation",
                                    "result sharding at index %u must have all manual axes come before free axes in "
                                    "its dimension sharding at index %u. Saw manual axis \"%s\" after a free one",
                                    r, d, axes.v[n].name->s),
                       "propagation through manual computations needs their data flow edges: run "
                       "sdy-add-data-flow-edges first");
    }
  }
  return 0;
}

/* The arguments of named and manual computations are one list on the op, written once after all of them were seen. */
static bool state_store_computation(shard_state *s, ir_computation *c, shard_pool *pool) {
  bool args = c->owner && c->n_params &&
              (c->owner->opcode == IR_OP_SDY_NAMED_COMPUTATION || c->owner->opcode == IR_OP_SDY_MANUAL_COMPUTATION);
  bool args_changed = false;
  IR_FOR_OPS(op, c) {
    if (op->id >= s->n_ids || !state_changed(s, shard_slot_of(s, op, 0), op->n_results)) continue;
    if (args && op->opcode == IR_OP_PARAMETER)
      args_changed = true;
    else if (!state_store_results(s, op, pool))
      return false;
    shard_pool_empty(pool);
  }
  if (args_changed && !state_store_arguments(s, c, pool)) return false;
  uint32_t first = s->first_result[c->id];
  for (uint32_t i = 0; first != SHARD_NO_SLOT && i < c->n_results; i++)
    if (s->slots[first + i].changed && !sdy_set_result(c, i, s->slots[first + i].now)) return false;
  return true;
}

/* The only place where propagation's result becomes part of the program. */
int shard_state_store(shard_state *s, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c)
    if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION && op->id < s->n_ids) TRY(state_check_manual(s, op, err));
  }
  shard_pool pool;
  shard_pool_init(&pool, s->m->alloc);
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, s->m) ok = ok && state_store_computation(s, c, &pool);
  shard_pool_free(&pool);
  return ok ? 0 : base_oom(err, "propagation");
}

/* Sharding groups: values that always have one sharding. */

typedef struct groups_member {
  uint64_t id;
  uint32_t order;
  ir_op *op; /* the sdy.sharding_group */
} groups_member;

/* By group, and within one by text order: qsort is not stable, so the order is a key of its own. */
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

/* The end of the run of members of one group that begins at `from`. */
static uint32_t groups_end(const groups_member *list, uint32_t n, uint32_t from) {
  assert(from < n);
  uint32_t to = from;
  while (to < n && list[to].id == list[from].id) to++;
  return to;
}

/* Groups are numbered by ascending group id, which is how the module's list comes sorted. */
int shard_state_groups(shard_state *s, xlac_error *err) {
  uint32_t n = 0;
  groups_member *list = groups_list(s->m, &s->arena, &n);
  s->groups = list ? base_arena_zalloc(&s->arena, ((size_t)n + 1) * sizeof *s->groups) : NULL;
  if (!s->groups) return base_oom(err, "sharding groups");
  for (uint32_t from = 0, to = 0; from < n; from = to) {
    to = groups_end(list, n, from);
    shard_group *g = &s->groups[s->n_groups++];
    assert(s->n_groups <= n && to > from);
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

/* No axes, and every dimension open: such a sharding asks for nothing, and is not in conflict with any other. */
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

/* Members that agree all get the common sharding now; where they differ, a constraint between each and its readers
 * takes the membership over, which Shardy does with a warning (saveShardingGroupsForPropagation). */
static int groups_join_one(opt_rewriter *rw, shard_pool *pool, const groups_member *list, uint32_t n) {
  assert(n > 0);
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

/* Members sorted by group, so that each group is one run of the list. */
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
