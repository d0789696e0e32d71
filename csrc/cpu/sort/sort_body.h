/* sort by any comparator on scalars. */
#ifndef XLAC_CPU_SORT_SORT_BODY_H
#define XLAC_CPU_SORT_SORT_BODY_H

#include "../body/body_share.h"

typedef struct cpu_sort_body {
  const cpu_body *body;
  uint32_t n;
  const uint8_t *bytes;        /* of each operand's elements */
  int64_t kept;                /* the first so many of a sorted row are made: length, or fewer */
  int64_t length, rows, inner; /* inner: elements from one of a row to the next */
  int64_t record;              /* bytes of what is sorted: a place, and the elements that the comparator reads */
  int64_t piece;               /* outputs of a merge that are made as one, in rows of few elements and in long ones */
  cpu_share share;             /* of rows */
} cpu_sort_body;

/* Fills all but body, n, bytes and kept. Returns the bytes of scratch memory. length is below 2^32. */
int64_t cpu_sort_body_make(cpu_sort_body *s, int64_t length, int64_t rows, int64_t inner);
void cpu_sort_body_run(const cpu_sort_body *s, const cpu_routine_run *r);

#endif
