/* Who takes part in a collective of a parallel run. */
#ifndef XLAC_INTERP_PARALLEL_COLLECTIVE_GROUP_H
#define XLAC_INTERP_PARALLEL_COLLECTIVE_GROUP_H

#include "../algorithm/arrays.h"
#include "hub.h"

typedef struct interp_group {
  uint32_t n, place; /* participants, and which of them we are */
  uint32_t *members; /* in the order that gathers and scatters follow; in `arena` */
  int64_t channel;   /* 0: none */
  bool named;        /* false: no group names us, n is 0 */
} interp_group;

/* Of ctx's replica and partition, in the grid of its hub or communicator. */
XLAC_MUST_USE int interp_group_of(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_group *g);
/* Of a collective-permute: everybody that a pair names; not `named` where that is not us. *sources, by place, is the
 * place of who sends to that member; UINT32_MAX: nobody. */
XLAC_MUST_USE int interp_group_of_pairs(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_group *g,
                                        uint32_t **sources);
/* The participant that number `id` of op's pairs stands for, or -1. */
int64_t interp_group_peer(const interp_ctx *ctx, const ir_op *op, int64_t id);
uint32_t interp_group_us(const interp_ctx *ctx);
/* The grid that ctx runs in: its hub's, or its communicator's, whose programs are not told. */
interp_grid interp_group_grid(const interp_ctx *ctx);

#endif
