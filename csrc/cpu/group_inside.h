/* Groups of kernels, inside. */
#ifndef XLAC_CPU_GROUP_INSIDE_H
#define XLAC_CPU_GROUP_INSIDE_H

#include "group.h"

struct cpu_group {
  uint32_t first, n;  /* steps of the program */
  int64_t rows, tile; /* in all; at a time */
  int64_t scratch;    /* bytes for a tile of all that is in no buffer */
  int64_t room[];     /* by output of each step: bytes of its tile, 0: it goes to its buffer */
};

#endif
