/* What the files of the partitioner share. */
#ifndef XLAC_SPMD_INSIDE_H
#define XLAC_SPMD_INSIDE_H

#include "../shard/reshard/explicit.h"
#include "spmd.h"

/* meshes.c: reshards between meshes of other axes gather first. After explicit reshards. */
XLAC_MUST_USE int spmd_split_reshards(ir_module *m, xlac_error *err);
/* mesh_groups.c: replica groups along axes of the module's meshes as lists of devices. */
XLAC_MUST_USE int spmd_list_groups(ir_module *m, xlac_error *err);
/* unreduced.c: what op computes of unreduced operands is right part by part, or is of their sums. whole: it
 * adds up in a way that nobody can do later. After explicit reshards. */
XLAC_MUST_USE int spmd_settle_parts(explicit_pass *e, ir_op *op, const sdy_rule *rule, bool *whole);
/* unreduced.c: at the cursor: v, whole along `axes`, as parts, which `to` says are unreduced. */
ir_value spmd_make_parts(explicit_pass *e, ir_value v, const sdy_sharding *to, sdy_axes axes);
/* parts.c: LEGALIZE where parts of a sum get lost, or come from nowhere. After all ops are local. */
XLAC_MUST_USE int spmd_check_parts(ir_module *m, xlac_error *err);
/* unreduced.c: whether a sharding of the program's has unreduced axes. */
bool spmd_has_parts(const ir_module *m);
/* fallback.c: how the partial results of op are combined, an sdy_reduction; -1: by no all-reduce. */
int spmd_reduction(const ir_op *op);
/* fallback.c: a constant whose elements are all zero (bits). */
bool spmd_is_zero(ir_value v);
/* whole.c: takes all shardings away but those of manual computations, and of what goes into the program and comes out.
 */
XLAC_MUST_USE int spmd_make_whole(ir_module *m, xlac_error *err);
/* sums.c: takes all unreduced axes away but those of the program's arguments and results, and manual ones of manual
 * computations. */
XLAC_MUST_USE int spmd_sum_parts(ir_module *m, xlac_error *err);
/* sums.c: what collectives read, also once reshards before them are gone, has a sharding: whole, where it has none. */
XLAC_MUST_USE int spmd_name_sources(ir_module *m, xlac_error *err);
/* fallback.c: gathers around ops that have no local form. After explicit reshards. */
XLAC_MUST_USE int spmd_make_local(spmd_program *p, ir_module *m, xlac_error *err);
/* forms.c: dynamic slices, reductions and scans along sharded dimensions get forms that gather little. After
 * propagation. */
XLAC_MUST_USE int spmd_make_forms(ir_module *m, xlac_error *err);
/* combine.c: all-reduces that are ready together become one. Of a local program. */
XLAC_MUST_USE int spmd_combine_sums(ir_module *m, xlac_error *err);
/* exponentials.c: sums of exp(x - the maximum of all shards) begin with the maximum of the own one. Of a local program.
 */
XLAC_MUST_USE int spmd_sum_exponentials(ir_module *m, xlac_error *err);
/* turned.c: transposed sums of products over devices are sums of transposed products. Of a local program. */
XLAC_MUST_USE int spmd_turn_sums(ir_module *m, xlac_error *err);
/* known.c: what Shardy's passes know nothing of gets a form or a rule that they know. */
XLAC_MUST_USE int spmd_make_known(ir_module *m, xlac_error *err);

/* movers.c: an op with the shardings of its operands, then of its results; NULL: whole. */
typedef struct spmd_mover {
  const ir_op *op;
  const sdy_sharding *const *shardings;
  base_arena *arena; /* for lists of its attributes */
} spmd_mover;
/* Whether a pad, a convolution or an op of windows reaches into other shards: along which dimension of which tensor. */
bool spmd_reaches(const spmd_mover *x, uint32_t *tensor, uint32_t *dim);
/* Whether each device can draw its part of an rng_bit_generator's numbers, sharded so. */
bool spmd_draws_alone(const ir_module *m, const ir_op *op, const sdy_sharding *s);
/* Whether the one reader of op's partial results is the all-reduce that adds them up. */
bool spmd_sums_up(const ir_op *op);

/* notes.c: where op stands, in p's arena. False when out of memory. */
XLAC_MUST_USE bool spmd_place_of(spmd_program *p, const ir_op *op, spmd_place *out);
/* notes.c: writes down what the program moves between devices: collectives of sdy, and those of its own. Before they
 * are made local. */
XLAC_MUST_USE int spmd_note_moves(spmd_program *p, ir_module *m, xlac_error *err);
/* The same of what ops exchange within their local form. After they are made local. */
XLAC_MUST_USE int spmd_note_exchanges(spmd_program *p, ir_module *m, xlac_error *err);

#endif
