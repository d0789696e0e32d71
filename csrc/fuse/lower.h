/* From a fusion to its kernel. */
#ifndef XLAC_FUSE_LOWER_H
#define XLAC_FUSE_LOWER_H

#include "fusion.h"
#include "../kernel/kernel.h"

/* The kernel of `root` and of all that are stored with it (fusion_plan.next), one output each in that order, in
 * `arena`; *inputs gets the ops whose values it loads, by number of input, each an array of one result. Fails only when
 * out of memory. */
XLAC_MUST_USE int kernel_lower(const fusion_plan *f, const ir_op *root, base_arena *arena, kernel **out,
                               const ir_op ***inputs, xlac_error *err);

#endif
