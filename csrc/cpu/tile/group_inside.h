/* Groups of kernels, inside. */
#ifndef XLAC_CPU_TILE_GROUP_INSIDE_H
#define XLAC_CPU_TILE_GROUP_INSIDE_H

#include "group.h"

struct cpu_group {
  uint32_t first, n;  /* steps of the program */
  int64_t rows, tile; /* in all; at a time */
  int64_t batches;    /* ranges of rows, for each of which operands of products are packed anew; 0: they are before */
  int64_t packed;     /* bytes of these in a range */
  int64_t scratch;    /* bytes for a tile of all that is in no buffer */
  /* Buffers that come from before the group and are read row by row, while the last of its steps fetch those rows of
   * the next tile. */
  uint32_t n_read, read[CPU_VM_MAX_AHEAD];
  int64_t read_bytes[CPU_VM_MAX_AHEAD], ahead; /* of a row; fetched at a time, 0: none */
  int64_t at[]; /* by output of each step: where its tile is in the scratch memory; -1: it goes to its buffer */
};

/* Of a product's operand in a range: the next product's begin after it. */
static inline int64_t cpu_group_packed_bytes(const plan_step *s) {
  return (s->routine->lines.packed / s->routine->lines.batches + 63) & ~(int64_t)63;
}

#endif
