/* XLA's rules of who is in a group. Without a channel, groups name replicas, and every partition forms its
 * own groups. With a channel they name partitions for ops that move data, or, for reductions and gathers,
 * replicas together with all their partitions; with use_global_device_ids they name devices: replica *
 * partitions + partition. StableHLO spec: cross_replica, cross_partition, cross_replica_and_partition,
 * flattened_ids. */
#include "collective_group.h"

#include "../../runtime/communicator.h"

/* What the numbers in groups and pairs are. */
typedef enum group_ids { GROUP_REPLICAS, GROUP_PARTITIONS, GROUP_BOTH, GROUP_FLAT } group_ids;

/* From channel_id, the op and use_global_device_ids. */
static group_ids group_ids_of(const ir_op *op) {
  if (ir_get_int(op, IR_ATTR_CHANNEL_ID, 0) <= 0) return GROUP_REPLICAS;
  switch (op->opcode) {
    case IR_OP_ALL_TO_ALL:
    case IR_OP_RAGGED_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
      return GROUP_PARTITIONS;
    default:
      return ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false) ? GROUP_FLAT : GROUP_BOTH;
  }
}

interp_grid interp_group_grid(const interp_ctx *ctx) {
  const rt_communicator *c = ctx->options.communicator;
  assert(ctx->options.hub || c);
  if (ctx->options.hub) return *interp_hub_grid(ctx->options.hub);
  return (interp_grid){.replicas = c->replicas, .partitions = c->partitions};
}

/* This participant's number in the grid. */
uint32_t interp_group_us(const interp_ctx *ctx) {
  return (uint32_t)(ctx->options.replica * interp_group_grid(ctx).partitions + ctx->options.partition);
}

/* How many numbers there are in that mode. */
static int64_t group_count(const interp_grid *grid, group_ids mode) {
  return mode == GROUP_PARTITIONS ? grid->partitions
         : mode == GROUP_FLAT     ? grid->replicas * grid->partitions
                                  : grid->replicas;
}

/* The number that stands for us. */
static int64_t group_self(const interp_ctx *ctx, group_ids mode) {
  return mode == GROUP_PARTITIONS ? ctx->options.partition
         : mode == GROUP_FLAT     ? (int64_t)interp_group_us(ctx)
                                  : ctx->options.replica;
}

/* With `partition` for modes whose numbers are replicas. The participant that number `id` stands for; -1:
 * out of range. */
static int64_t group_participant(const interp_ctx *ctx, group_ids mode, int64_t id, int64_t partition) {
  interp_grid own = interp_group_grid(ctx), *grid = &own;
  if (id < 0 || id >= group_count(grid, mode)) return -1;
  if (mode == GROUP_FLAT) return id;
  if (mode == GROUP_PARTITIONS) return ctx->options.replica * grid->partitions + id;
  return id * grid->partitions + partition;
}

int64_t interp_group_peer(const interp_ctx *ctx, const ir_op *op, int64_t id) {
  return group_participant(ctx, group_ids_of(op), id, ctx->options.partition);
}

/* --- the numbers of our group --- */

/* Of one group. */
static int64_t iota_size(const ir_groups *g) {
  return g->n_dims ? g->dims[g->n_dims - 1] : 1;
}

/* Element i of the iota form: the numbers 0, 1, ... of shape `reshape`, transposed by perm, read row by row. */
static int64_t iota_at(const ir_groups *g, int64_t i) {
  int64_t strides[IR_MAX_RANK], id = 0;
  if (!g->perm || g->n_reshape > IR_MAX_RANK) return i;
  interp_strides(g->n_reshape, g->reshape, strides);
  for (uint32_t d = g->n_reshape; d-- > 0;) {
    int64_t size = g->reshape[g->perm[d]];
    if (size <= 0) return -1;
    id += i % size * strides[g->perm[d]];
    i /= size;
  }
  return id;
}

/* *from: where our group begins in the list. */
static bool iota_find(const ir_groups *g, int64_t self, int64_t total, int64_t *from) {
  int64_t size = iota_size(g);
  for (int64_t i = 0; size > 0 && i < total; i++) {
    if (iota_at(g, i) != self) continue;
    *from = i / size * size;
    return true;
  }
  return false;
}

/* Our group's numbers into ids (room for `total`); *n of them, 0 when no group names us. */
static void group_numbers(const ir_groups *g, int64_t self, int64_t total, int64_t *ids, uint32_t *n) {
  *n = 0;
  if (g && g->iota) {
    int64_t from = 0;
    if (!iota_find(g, self, total, &from)) return;
    for (int64_t i = from; i < from + iota_size(g) && i < total; i++) ids[(*n)++] = iota_at(g, i);
    return;
  }
  if (!g || !g->lists || g->lists->n == 0 || (g->lists->n == 1 && g->lists->v[0]->n == 0)) {
    for (int64_t i = 0; i < total; i++) ids[(*n)++] = i;
    return;
  }
  for (uint32_t i = 0; i < g->lists->n; i++) {
    const ir_ints *list = g->lists->v[i];
    if (!ir_ints_has(list, self)) continue;
    for (uint32_t k = 0; k < list->n && (int64_t)*n < total; k++)
      if (list->v[k] >= 0) ids[(*n)++] = list->v[k]; /* -1 fills short groups up */
    return;
  }
}

/* Members keep the group's order, which decides the order of sums and of parts. */
static int group_add(interp_ctx *ctx, const ir_op *op, interp_group *g, group_ids mode, int64_t id, int64_t partition) {
  assert(g->members);
  interp_grid grid = interp_group_grid(ctx);
  int64_t p = group_participant(ctx, mode, id, partition);
  if (p < 0)
    return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s names participant %lld of %lld", ir_opcode_text(op->opcode),
                       (long long)id, (long long)group_count(&grid, mode));
  for (uint32_t i = 0; i < g->n; i++)
    if (g->members[i] == (uint32_t)p)
      return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s names participant %lld twice", ir_opcode_text(op->opcode),
                         (long long)id);
  if ((uint32_t)p == interp_group_us(ctx)) g->place = g->n;
  g->members[g->n++] = (uint32_t)p;
  return 0;
}

static int group_fill(interp_ctx *ctx, const ir_op *op, interp_group *g, group_ids mode, uint32_t n,
                      const int64_t *ids) {
  interp_grid own = interp_group_grid(ctx), *grid = &own;
  if (mode != GROUP_BOTH) {
    for (uint32_t i = 0; i < n; i++) TRY(group_add(ctx, op, g, mode, ids[i], ctx->options.partition));
    return 0;
  }
  int64_t outer = grid->partition_major ? grid->partitions : n, inner = grid->partition_major ? n : grid->partitions;
  for (int64_t a = 0; a < outer; a++) {
    for (int64_t b = 0; b < inner; b++) {
      int64_t id = ids[grid->partition_major ? b : a], partition = grid->partition_major ? a : b;
      TRY(group_add(ctx, op, g, mode, id, partition));
    }
  }
  return 0;
}

/* g->named is false where no group names us; then it has no members. */
int interp_group_of(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_group *g) {
  interp_grid own = interp_group_grid(ctx), *grid = &own;
  group_ids mode = group_ids_of(op);
  int64_t total = group_count(grid, mode), all = grid->replicas * grid->partitions;
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  int64_t *ids = BASE_ARRAY(arena, int64_t, (size_t)total);
  uint32_t n = 0;
  memset(g, 0, sizeof *g);
  g->members = BASE_ARRAY(arena, uint32_t, (size_t)all);
  if (!ids || !g->members) return base_oom(ctx->err, "a collective's group");
  if (a && a->v.groups && a->v.groups->mesh_text)
    return interp_fail(ctx, op, XLAC_E_EVAL, "replica groups over mesh axes are not evaluated");
  g->channel = interp_max(0, ir_get_int(op, IR_ATTR_CHANNEL_ID, 0));
  group_numbers(a ? a->v.groups : NULL, group_self(ctx, mode), total, ids, &n);
  g->named = n > 0;
  return group_fill(ctx, op, g, mode, n, ids);
}

/* --- collective-permute: pairs, not groups --- */

/* The member's place; one that is new is added. */
static uint32_t pairs_place(interp_group *g, uint32_t participant) {
  for (uint32_t i = 0; i < g->n; i++)
    if (g->members[i] == participant) return i;
  g->members[g->n] = participant;
  return g->n++;
}

int interp_group_of_pairs(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_group *g, uint32_t **sources) {
  interp_grid grid = interp_group_grid(ctx);
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SOURCE_TARGET_PAIRS);
  size_t most = (size_t)(grid.replicas * grid.partitions);
  uint32_t us = interp_group_us(ctx);
  *g = (interp_group){.members = BASE_ARRAY(arena, uint32_t, most)};
  *sources = BASE_ARRAY(arena, uint32_t, most);
  if (!g->members || !*sources) return base_oom(ctx->err, "a permute's members");
  for (size_t i = 0; i < most; i++) (*sources)[i] = UINT32_MAX;
  for (uint32_t i = 0; a && a->v.lists && i < a->v.lists->n; i++) {
    const ir_ints *pair = a->v.lists->v[i];
    uint32_t ends[2];
    for (int e = 0; e < 2; e++) {
      int64_t end = interp_group_peer(ctx, op, pair->v[e]);
      if (end < 0)
        return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s names participant %lld, which is not there",
                           ir_opcode_text(op->opcode), (long long)pair->v[e]);
      ends[e] = pairs_place(g, (uint32_t)end);
    }
    (*sources)[ends[1]] = ends[0];
  }
  for (uint32_t i = 0; i < g->n; i++) {
    if (g->members[i] != us) continue;
    g->place = i;
    g->named = true;
  }
  g->channel = interp_max(0, ir_get_int(op, IR_ATTR_CHANNEL_ID, 0));
  return 0;
}
