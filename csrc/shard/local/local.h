/* sdy-convert-global-to-local: what its files share. Programs become what one device runs: values get the types of
 * their shards, collectives of the dialect become StableHLO's, and ops that depend on where a shard lies compute it
 * from the device's id. The pass goes through the ops in the order of the text; what values were is written down
 * first. With [{"x"}, {}] on <["x"=4]>, %0 : tensor<8x3xf32> becomes tensor<2x3xf32>, and sdy.all_gather [{"x"}, {}]
 * a stablehlo.all_gather over replica_groups [[0, 1, 2, 3]].
 * Errors: functions of status return it; makers return an op of NULL, and p->rw says whether memory has run out or
 * p->rw.err what was refused. The program is the same text for all devices (SPMD): what differs is computed from
 * partition_id. */
#ifndef XLAC_SHARD_LOCAL_LOCAL_H
#define XLAC_SHARD_LOCAL_LOCAL_H

#include "../common/common.h"
#include "../rules/rule.h"

/* What a value was before: its whole type and its sharding (NULL: none). */
typedef struct local_fact {
  const ir_type *type;
  const sdy_sharding *s;
} local_fact;
typedef struct local_facts {
  const local_fact *operands, *results;
} local_facts;

/* per_dim, combine and mesh_axes are options of the pass: a gather for each dimension; one reduce_scatter for several
 * dimensions; replica groups as axes of a mesh. by_replica: devices are replicas rather than partitions. uneven: where
 * shards do not divide a dimension they are as long as the longest; what is past the dimension's end is anything.
 * rehearsal: the program will be planned and never run, for any number of devices: groups are axes, and tables and
 * permutations are those of one group along the axes that they are about. */
typedef struct local_pass {
  opt_rewriter rw;
  const local_facts *facts; /* by op id */
  uint32_t n_ids;
  int64_t channel; /* the next one */
  bool per_dim, combine, mesh_axes, by_replica, uneven, rehearsal;
} local_pass;

/* Tables by device id are constants in the program, so there is a limit to them. */
enum { LOCAL_MAX_DEVICES = 1 << 20 };
/* In a rehearsal nobody looks at what is in them. */
enum { LOCAL_MOST_REHEARSED = 16 };

/* --- facts, types and places: state.c --- */
/* Writes down the type and sharding of every operand and result, before any op is changed. */
XLAC_MUST_USE int local_note_facts(local_pass *p);
static inline const local_fact *local_operand(const local_pass *p, const ir_op *op, uint32_t i) {
  assert(op->id < p->n_ids && i < op->n_operands);
  return &p->facts[op->id].operands[i];
}
static inline const local_fact *local_result(const local_pass *p, const ir_op *op, uint32_t i) {
  assert(op->id < p->n_ids && i < op->n_results);
  return &p->facts[op->id].results[i];
}
/* The type of a shard. Fails at op where the sharding does not divide it. */
XLAC_MUST_USE int local_type(local_pass *p, const ir_op *op, const local_fact *f, const ir_type **out);
/* Why a maker gave nothing: what p->rw.err says was refused, or that memory has run out. Never 0. */
XLAC_MUST_USE int local_status(const local_pass *p);
/* v takes the place of op's only result, and op goes; v of NULL: making it has failed. */
XLAC_MUST_USE int local_done(local_pass *p, ir_op *op, ir_value v);
/* The axes along which op's results are parts: those that its only user adds up along, an all-reduce or a
 * reduce-scatter of all dimensions, and those that its sharding leaves unreduced; in `room`, at most `most`. */
sdy_axes local_added(local_pass *p, const ir_op *op, sdy_axis *room, uint32_t most);
/* Gives op's results their local types; everything else stays. */
XLAC_MUST_USE int local_retype(local_pass *p, ir_op *op);
/* Sizes; none of a scalar, which has no list of them. */
static inline void local_copy(int64_t *to, const int64_t *from, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = from[i];
}
/* Whether every device has all of the value. */
static inline bool local_is_whole(const local_fact *f) {
  return sdy_sharding_is_replicated(f->s);
}
/* The axes of a dimension; none where there is no sharding. */
static inline sdy_axes local_axes(const sdy_sharding *s, uint32_t d) {
  return s && d < s->n_dims ? s->dims[d].axes : (sdy_axes){0, NULL};
}
/* An error at op that says why it has no local form; the status is the return value. */
int local_fail(local_pass *p, const ir_op *op, const char *format, ...) BASE_PRINTF(3, 4);
/* Where the shards of all devices of the mesh stand along axes, by device id: v has room for as many numbers. */
void local_places(const sdy_mesh *mesh, sdy_axes axes, int64_t *v);
/* The same in the scratch arena. NULL: out of memory, or more devices than can be counted (err says which). In a
 * rehearsal the devices are those along the axes alone. */
const int64_t *local_shard_indices(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, uint32_t *n);
/* New ops: this device's place in a table by device id, a scalar of i64; the id itself. */
ir_value local_device(local_pass *p);
ir_value local_look_up(local_pass *p, ir_value device, uint32_t n, const int64_t *table);
/* Where this device's shard of `size` begins along axes. An op of NULL: failed. */
ir_value local_offset(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, int64_t size);
/* The shard of v, which is whole, that `lists` (axes by dimension) and the device's id say. */
ir_value local_cut(local_pass *p, const ir_op *op, const sdy_mesh *mesh, const sdy_axes *lists, ir_value v,
                   const ir_type *type);
/* v of other sizes: more elements (zeros) or fewer at its ends. */
ir_value local_resize(local_pass *p, ir_value v, const int64_t *dims);
/* v where its index along d, counted from `first` (a scalar of i64), is in [low, high); `fill`, a scalar or of its
 * type, elsewhere. */
ir_value local_mask(local_pass *p, ir_value v, uint32_t d, ir_value first, int64_t low, int64_t high, ir_value fill);
/* Operand i of op gets `fill` (an op of NULL: zeros) past the ends of those dimensions that shards do not divide. */
XLAC_MUST_USE int local_fill_ends(local_pass *p, ir_op *op, uint32_t i, uint32_t n, const int64_t *dims, ir_value fill);
/* An integer constant as a tensor without dimensions. */
ir_value local_scalar(local_pass *p, base_dtype dtype, int64_t value);
/* The smallest number there is, or the largest; infinite for floats. NULL op: none that is fit. */
ir_value local_extreme(local_pass *p, base_dtype dtype, bool largest);
/* A type of other sizes and the same elements; NULL where `like` is, or when out of memory. */
const ir_type *local_shape(local_pass *p, const ir_type *like, uint32_t rank, const int64_t *dims);

/* --- groups of devices: collectives.c --- */
/* replica_groups along axes, and how many devices a group has. */
const ir_mattr *local_groups(local_pass *p, const ir_op *op, const sdy_sharding *on, sdy_axes axes, int64_t *size);
const ir_mattr *local_channel(local_pass *p);
/* v with all shards along `lists`, axes by dimension, together. An op of NULL: failed. */
ir_value local_gathered(local_pass *p, ir_op *op, const sdy_mesh *mesh, const sdy_axes *lists, ir_value v);
/* By device id: its place along axes, times the number of devices that have that place, and its number among them. NULL
 * as local_shard_indices'. */
const int64_t *local_ranks(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, uint32_t *n);
/* The axes of the mesh, cut wherever one of `all` begins or ends; in a rehearsal those within `all` alone. */
sdy_axes local_ordered(local_pass *p, const sdy_mesh *mesh, sdy_axes all);

/* --- elements of other devices: window.c. Only where `uneven` --- */
/* Attributes of the collectives that these make: the name of the op that they are for, and axes. */
#define LOCAL_WITHIN "xlac.within"
#define LOCAL_ALONG "xlac.along"
/* Along dim, which is sharded, each element of a result of `size` looks at `window` elements of the operand, from
 * `first` on and `step` further for each. */
typedef struct local_slides {
  uint32_t dim;
  int64_t first, step, window, size;
} local_slides;
/* op's operand becomes what each device's part of the result looks at; `fill`, a scalar, past the ends of the whole (an
 * op of NULL: anything). */
XLAC_MUST_USE int local_slide(local_pass *p, ir_op *op, uint32_t operand, const local_slides *s, ir_value fill);
/* Operand 0 of a pad becomes what is padded along d already, with these edges. size: of the result. */
XLAC_MUST_USE int local_spread(local_pass *p, ir_op *op, uint32_t d, int64_t low, int64_t gaps, int64_t size);
/* A concatenation along d, which is sharded. */
XLAC_MUST_USE int local_join(local_pass *p, ir_op *op, uint32_t d);

/* --- each replaces or changes op, whose operands are local already --- */
typedef int local_fn(local_pass *p, ir_op *op);
local_fn local_all_gather, local_all_reduce, local_all_slice, local_all_to_all, local_collective_permute,
    local_constant, local_reduce_scatter, local_concatenate, local_convolution, local_dot, local_dot_general,
    local_dynamic_slice, local_dynamic_update_slice, local_gather, local_iota, local_pad, local_reduce,
    local_replicated_to_unreduced, local_reverse, local_rng_bit_generator, local_scatter, local_sharded_to_unreduced,
    local_slice, local_windowed;

#endif
