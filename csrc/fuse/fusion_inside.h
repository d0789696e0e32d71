/* Fusion's decisions, inside. */
#ifndef XLAC_FUSE_FUSION_INSIDE_H
#define XLAC_FUSE_FUSION_INSIDE_H

#include "fuse.h"

enum {
  FUSION_MAX_OPS = 96,   /* in one kernel, at most: registers are many then, and cache lines few. Merging goes by it */
  FUSION_MAX_CODE = 240, /* the same of what becomes machine code, whose registers are the processor's */
  FUSION_MAX_CHEAP = 12, /* ops behind a cheap one, itself included; what is used twice counts twice */
  FUSION_GATHER = 2,     /* cycles of a lane that is loaded by itself */
  FUSION_NARROW = 3      /* times as long as on 4 bytes */
};

/* The op by which a reduction or a window combines two values, if it does so by one that a kernel can do lane by lane;
 * or NULL. */
const ir_op *fusion_combiner(const ir_op *op);
/* A constant of one element, of any rank: broadcast, it is an immediate of the kernel. */
bool fusion_is_scalar_constant(const ir_op *op);
/* Nothing is computed, and what is behind it is short: broadcasts, iotas, such constants. `weight` counts what is
 * behind. */
bool fusion_is_cheap(const ir_op *op, uint32_t *weight);
/* Each element is read several times. */
bool fusion_expands(const ir_op *op);

/* --- fusion_gather.c --- */
/* Whether the user, or what the use's value is moved to without being changed, reads it as indexes of a gather that a
 * kernel does, each at the iteration it is for; that gather, or NULL. */
const ir_op *fusion_gather_of(const ir_use *use);
/* Whether the indexes are computed for it alone: then it is worth a kernel of its own. */
bool fusion_gather_has_work(const ir_op *op);

/* --- fusion_anew.c --- */
/* Whether `readers` readers of op should each compute it anew rather than read it in memory: what both take, in cycles,
 * goes to entry->anew and stored. Asked of ops that somebody has to store otherwise. */
bool fusion_is_better_anew(const fusion_model *m, const ir_op *op, uint32_t readers, fusion_op *entry);

#endif
