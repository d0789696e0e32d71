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

XLAC_MUST_USE int interp_group_of(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_group *g);
/* The participant that number `id` of op's pairs stands for, or -1. */
int64_t interp_group_peer(const interp_ctx *ctx, const ir_op *op, int64_t id);
uint32_t interp_group_us(const interp_ctx *ctx);

#endif
