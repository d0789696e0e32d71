/* Places for blocks of memory whose times are known. */
#ifndef XLAC_PLAN_PACK_H
#define XLAC_PLAN_PACK_H

#include "plan.h"

/* In: bytes, first, last, number. Out: offset. */
typedef struct plan_block {
  int64_t bytes, offset;
  uint32_t first, last, number; /* steps from and to which it is in use; number: among the blocks */
} plan_block;

/* Sets the offsets, from `begin` on, and gives the end of the last; -1 when out of memory. Blocks that live at one
 * time never overlap. Quadratic in n. */
int64_t plan_pack(plan_block *blocks, uint32_t n, int64_t begin, base_arena *scratch);

#endif
