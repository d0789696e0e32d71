/* In which order ops and shardings take part: op priorities, user priorities, and the four passes as schedules of both.
 */
#include <stdlib.h>

#include "../../passes/pass.h"
#include "propagate.h"

/* Op priorities: at level 0 only ops that pass shardings on as they are, and whose operands nobody else reads; then
 * with other readers; then all ops, but along factors that need no communication; then everything, except from a
 * broadcast's operand to its result; then everything. Source: Shardy's description of the pass. */

/* Scalars are free to copy, so they may have any number of readers. */
static bool level_single_use(const shard_state *s, const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    const ir_type *t = use->op->types[use->index];
    if (ir_is_scalar(t)) continue;
    if (!shard_has_one_use(s, shard_slot_of(s, use->op, use->index))) return false;
  }
  return true;
}

/* Moves between host and device memory, which are elementwise in all but name. */
static bool level_is_offload(const ir_op *op) {
  if (op->opcode != IR_OP_CUSTOM_CALL) return false;
  const char *target = ir_m_get_str(op, "call_target_name");
  return strcmp(target, "MoveToDevice") == 0 || strcmp(target, "MoveToHost") == 0;
}

/* Ops of the first two levels: what they read and what they make is sharded alike at no cost (isPassThroughOp). A
 * dynamic slice is smaller than its operand, so it asks nothing of it. */
static shard_direction level_pass_through(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_RESHAPE:
    case IR_OP_TRANSPOSE:
    case IR_OP_SDY_DATA_FLOW_EDGE:
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      return SHARD_BOTH;
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return SHARD_FORWARD;
    default:
      return shard_is_elementwise(op) || level_is_offload(op) ? SHARD_BOTH : SHARD_NONE;
  }
}

/* Lists of a handful of factors. */
static bool level_is_in(sdy_ints factors, uint32_t factor) {
  for (uint32_t i = 0; i < factors.n; i++)
    if (factors.v[i] == factor) return true;
  return false;
}

/* Directions are bits: forward 1, backward 2. */
static shard_direction level_union(shard_direction a, shard_direction b) {
  return (shard_direction)((int)a | (int)b);
}

/* `rule` is NULL for edges. In a replay level 0 need not ask who else reads the operands: an op that another reader
 * held back would have changed nothing, so no look of it was recorded. */
shard_direction shard_level_direction(const shard_driver *d, const ir_op *op, const sdy_rule *rule, uint32_t factor) {
  assert(d->level >= 0 && d->level <= SHARD_LEVELS);
  if (d->level >= SHARD_LEVELS - 1) return SHARD_BOTH;
  shard_direction all = level_pass_through(op);
  if (d->level == 0 && d->replays) return all; /* else nothing would have changed */
  if (d->level == 0) return all != SHARD_NONE && level_single_use(&d->state, op) ? all : SHARD_NONE;
  if (d->level == 1) return all;
  bool passes = d->level > 2 || !rule ||
                !(level_is_in(rule->reduction, factor) || level_is_in(rule->need_replication, factor) ||
                  level_is_in(rule->permutation, factor));
  if (!passes) return all;
  return level_union(all, op->opcode == IR_OP_BROADCAST ? SHARD_BACKWARD : SHARD_BOTH);
}

/* User priorities: first what has priority 0, the rest closed and its axes kept free; then priority by priority. */

/* A priority of some dimension of a slot's sharding, and the sharding that the user wrote. */
typedef struct user_entry {
  int64_t priority;
  uint32_t slot;
  const sdy_sharding *original;
} user_entry;
BASE_VEC(user_entries, user_entry);

/* Ascending priorities: the least number goes first. */
static int user_order(const void *x, const void *y) {
  const user_entry *a = x, *b = y;
  if (a->priority != b->priority) return a->priority < b->priority ? -1 : 1;
  return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* A dimension without a priority has priority 0. */
static int64_t user_priority_of(const sdy_dim *dim) {
  return dim->priority < 0 ? 0 : dim->priority;
}

/* Replicated axes are listed in mesh order. */
static void user_sort(sdy_axis *v, uint32_t n, const sdy_mesh *mesh) {
  for (uint32_t i = 1; i < n; i++) { /* lists of a few */
    sdy_axis a = v[i];
    uint32_t j = i;
    for (; j > 0 && sdy_axis_compare(v[j - 1], a, mesh) > 0; j--) v[j] = v[j - 1];
    v[j] = a;
  }
}

/* Dimensions of later priorities become empty and closed; their axes are replicated until their turn comes, so that
 * earlier rounds can't use them: [{"x"}, {"y"}p1] is [{"x"}, {}] with replicated={"y"} at first. */
static bool user_begin(shard_driver *d, uint32_t slot) {
  const sdy_sharding *old = d->state.slots[slot].now;
  assert(old != NULL);
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

/* Of dimensions with just that priority. */
static bool user_has(const sdy_sharding *s, int64_t priority, sdy_axis axis) {
  for (uint32_t i = 0; i < s->n_dims; i++) {
    if (user_priority_of(&s->dims[i]) != priority) continue;
    for (uint32_t a = 0; a < s->dims[i].axes.n; a++)
      if (sdy_axis_equal(s->dims[i].axes.v[a], axis)) return true;
  }
  return false;
}

/* The dimensions of this priority get back what the user wrote; their axes are not kept free any more. Priorities
 * themselves are dropped: propagation's results have none. */
static bool user_restore(shard_driver *d, const user_entry *e) {
  const sdy_sharding *now = d->state.slots[e->slot].now;
  assert(now->n_dims == e->original->n_dims);
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

/* All that has a sharding of its own; targets of data flow edges show that of the edge. One entry for each priority
 * above 0 that a sharding has. */
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

/* `once` runs all op levels: user priorities are the outer loop, as in Shardy. */
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

/* The passes of propagation. */

opt_pass_fn shard_pass_basic, shard_pass_aggressive, shard_pass_op_priority, shard_pass_user_priority;

/* The words of Shardy's option; none is "aggressive", its default. */
static int propagate_strategy(base_slice word, shard_options *o, xlac_error *err) {
  o->strategy = SHARD_AGGRESSIVE;
  if (word.n == 0 || base_slice_is(word, "aggressive")) return 0;
  o->strategy = SHARD_BASIC;
  if (base_slice_is(word, "basic")) return 0;
  o->strategy = SHARD_BASIC_THEN_AGGRESSIVE;
  if (base_slice_is(word, "basic-then-aggressive")) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT,
                   "propagation-strategy is basic, aggressive or basic-then-aggressive, found '%.*s'", (int)word.n,
                   word.p);
}

/* What all propagation passes have in common. */
static shard_options propagate_options(const opt_args *args) {
  return (shard_options){.keep_rules = opt_get(args, "keep-sharding-rules"),
                         .conservative = opt_get(args, "conservative-propagation"),
                         .debug_origins = opt_get(args, "debug-sharding-origins"),
                         .debug_edges = opt_get(args, "debug-propagation-edge-sharding")};
}

/* A strategy of its own, so it takes no option for one. */
int shard_pass_basic(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_options o = propagate_options(args);
  o.strategy = SHARD_BASIC;
  return shard_propagate(m, &o, err);
}

int shard_pass_aggressive(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_options o = propagate_options(args);
  TRY(propagate_strategy(opt_get_text(args, "propagation-strategy"), &o, err));
  return shard_propagate(m, &o, err);
}

static int propagate_by_op(ir_module *m, const opt_args *args, bool by_user, xlac_error *err) {
  shard_options o = propagate_options(args);
  TRY(propagate_strategy(opt_get_text(args, "propagation-strategy"), &o, err));
  o.by_op = opt_get(args, "run-op-priority-propagation");
  o.by_user = by_user;
  return shard_propagate(m, &o, err);
}

int shard_pass_op_priority(ir_module *m, const opt_args *args, xlac_error *err) {
  return propagate_by_op(m, args, false, err);
}

int shard_pass_user_priority(ir_module *m, const opt_args *args, xlac_error *err) {
  return propagate_by_op(m, args, true, err);
}
