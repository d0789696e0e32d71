/* Fusion's decisions, inside. */
#ifndef XLAC_FUSE_FUSION_INSIDE_H
#define XLAC_FUSE_FUSION_INSIDE_H

#include "fusion.h"

/* Ops in one kernel, at most: registers are many then, and cache lines few. Decisions and merging go by it. */
enum { FUSION_MAX_OPS = 96 };

/* The op by which a reduction or a window combines two values, if it does so by one that a kernel can do lane by lane;
 * or NULL. */
const ir_op *fusion_combiner(const ir_op *op);

#endif
