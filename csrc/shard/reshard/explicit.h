/* Explicit reshards: before propagation's shardings can be partitioned, every op must have shardings that go
 * together: along each factor of its rule all tensors have the same axes, and factors that need replication have
 * none. Where they do not, some are chosen (common_axes.c), and reshards and all-reduces make up the difference
 * (insert_explicit_reshards.c). Source: Shardy's insert_explicit_reshards.cc. A pass is explicit_begin, any number of
 * ops, explicit_end; errors stick in `status`, running out of memory also in rw.failed. */
#ifndef XLAC_SHARD_RESHARD_EXPLICIT_H
#define XLAC_SHARD_RESHARD_EXPLICIT_H

#include "../../passes/rewrite/rewrite.h"
#include "../propagate/project.h"

typedef struct explicit_pass {
  opt_rewriter rw;
  shard_pool pool;
  shard_maker maker;
  base_arena scratch; /* rules */
  base_map functions; /* interned name to ir_computation */
  bool full;          /* for all ops */
  bool again;         /* collectives stand already, and say themselves what they add up */
  xlac_error *err;
  int status;
} explicit_pass;

/* An op whose shardings must go together. */
typedef struct explicit_op {
  explicit_pass *pass;
  ir_op *op;
  const sdy_rule *rule;
  const sdy_sharding *like; /* on the mesh the op is given */
  const sdy_mesh *mesh;
  const sdy_sharding **shardings; /* operands, then results; barriers are looked through */
  int64_t *sizes;                 /* elements */
  shard_projection p;
  shard_axes *common; /* by factor: the axes all tensors get; NULL: undecided */
} explicit_op;

/* --- insert_explicit_reshards.c: for other passes that choose shardings for ops --- */
XLAC_MUST_USE int explicit_begin(explicit_pass *e, ir_module *m, xlac_error *err);
/* Frees it; what has gone wrong, or 0. */
XLAC_MUST_USE int explicit_end(explicit_pass *e);
/* The op's rule, or NULL where it has none, or one of the user's. */
const sdy_rule *explicit_rule(explicit_pass *e, const ir_op *op);
/* Fills x with the op's rule, shardings and projection; false: nothing to reshard, or e->status says why. barriers:
 * look through them; most_used: of meshes that differ in the order of devices, the one that most sharded tensors are
 * on. */
XLAC_MUST_USE bool explicit_prepare(explicit_op *x, explicit_pass *e, ir_op *op, bool barriers, bool most_used);

/* --- common_axes.c: lists of axes as sets. In the pool. --- */
/* What is in a and not in b, in a's order. */
shard_axes explicit_minus(shard_pool *pool, shard_axes a, shard_axes b);
/* In the order of the mesh; neighbours become one. */
shard_axes explicit_sorted(shard_pool *pool, shard_axes a);
shard_axes explicit_join(shard_pool *pool, shard_axes a, shard_axes b);
/* Appends, or makes the last axis longer. */
shard_axes explicit_push(shard_pool *pool, shard_axes a, shard_axis axis);
bool explicit_overlaps(shard_axes a, shard_axes b);
/* The beginning of a that overlaps nothing in b; true: it is not all of a. */
bool explicit_truncate(shard_pool *pool, shard_axes *a, shard_axes b);
bool explicit_suffix(shard_axis a, shard_axis b, shard_axis *out);

/* --- values.c: shardings of values, and ops that change them --- */
/* NULL where the value has none: it counts as replicated. */
const sdy_sharding *explicit_get(explicit_pass *e, ir_value v);
bool explicit_is_replicated(const sdy_sharding *s); /* also NULL */
/* Whether two shardings put the same elements on the same devices. */
bool explicit_equivalent(const sdy_sharding *a, const sdy_sharding *b);
const sdy_mesh *explicit_mesh(explicit_pass *e, const sdy_sharding *s);
/* A new op at the cursor: v with another sharding. */
ir_value explicit_reshard(explicit_pass *e, ir_value v, const sdy_sharding *to);
ir_value explicit_all_reduce(explicit_pass *e, ir_value v, sdy_axes axes, uint8_t reduction, const sdy_sharding *out);
/* Uses of `from` become uses of `to`, but for to's own. */
void explicit_replace(explicit_pass *e, ir_value from, ir_value to);
void explicit_after(explicit_pass *e, ir_value v); /* the cursor goes right after what gives v */
void explicit_fail(explicit_pass *e, int status);

/* An operand, or what a region or function gives back. */
typedef struct explicit_use {
  ir_op *op; /* NULL: result of `c` */
  ir_computation *c;
  uint32_t index;
} explicit_use;
/* The value that the use reads; and makes it read another one. */
ir_value explicit_used(explicit_use u);
void explicit_set(explicit_pass *e, explicit_use u, ir_value v);

/* --- special.c: unreduced axes --- */
/* An all-reduce over axes that the source leaves unreduced and the user does not take so. The sharding it has then. */
const sdy_sharding *explicit_reduce(explicit_pass *e, explicit_use u, const sdy_sharding *source,
                                    const sdy_sharding *user);
/* Collectives that make axes unreduced, where `to` has such axes. NULL: none were needed. */
const sdy_sharding *explicit_unreduce(explicit_pass *e, explicit_use u, const sdy_sharding *to);

/* --- common_axes.c: which axes all tensors of an op get, in x->common --- */
void explicit_find_common(explicit_op *x);
void explicit_heuristic(explicit_op *x);
shard_kind explicit_kind(const sdy_rule *rule, uint32_t factor);
/* The axes that all tensors with the factor have; false: they have different ones. */
bool explicit_same(const explicit_op *x, uint32_t factor, shard_axes *out);
/* Gives all tensors the common axes; true for a tensor that is changed by it, in `updated`. */
void explicit_apply(explicit_op *x, bool *updated);
/* Reshards before and after the op. */
void explicit_insert(explicit_op *x, const bool *updated);
/* --- special.c --- */
/* A reshape whose axes do not fit its factors. */
void explicit_reshape(explicit_op *x);
/* A dot whose result would better be resharded than its operands. */
void explicit_dot(explicit_op *x);

#endif
