/* Groups of kernels, inside. */
#ifndef XLAC_CPU_TILE_GROUP_INSIDE_H
#define XLAC_CPU_TILE_GROUP_INSIDE_H

#include "group.h"

struct cpu_group {
  uint32_t first, n;  /* steps of the program */
  int64_t rows, tile; /* in all; at a time */
  int64_t scratch;    /* bytes for a tile of all that is in no buffer */
  /* Buffers that come from before the group and are read row by row, while the last of its steps fetch those rows of
   * the next tile. */
  uint32_t n_read, read[CPU_VM_MAX_AHEAD];
  int64_t read_bytes[CPU_VM_MAX_AHEAD], ahead; /* of a row; fetched at a time, 0: none */
  int64_t room[];                              /* by output of each step: bytes of its tile, 0: it goes to its buffer */
};

#endif
