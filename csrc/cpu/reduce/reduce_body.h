/* reduce by any computation on scalars, inside: what reduce_body.c prepares, and shares with reduce_few.c. For
 * [4,5,6] reduced over dimension 1, kept is {4,6} with strides {30,1}, reduced is {5} with stride {6}; there are
 * 24 results of 5 steps. */
#ifndef XLAC_CPU_REDUCE_REDUCE_BODY_H
#define XLAC_CPU_REDUCE_REDUCE_BODY_H

#include "../body/body_share.h"

/* A reduction of n operands, prepared: immutable, in the plan's arena. Strides are in elements of the operands. */
typedef struct cpu_reduction {
  const cpu_body *body;
  uint32_t n, n_kept, n_reduced;
  const uint8_t *bytes; /* of each operand's elements */
  int64_t kept[IR_MAX_RANK], kept_stride[IR_MAX_RANK], reduced[IR_MAX_RANK], reduced_stride[IR_MAX_RANK];
  int64_t results, steps, lanes; /* lanes at a time */
  cpu_share share;               /* of blocks of lanes, or of results */
} cpu_reduction;

/* One run, as ranges see it. */
typedef struct cpu_reduce_work {
  const cpu_reduction *x;
  const cpu_routine_run *r;
} cpu_reduce_work;

/* The element that index i of the dimensions has: i is split into digits, the innermost dimension first. */
static inline int64_t cpu_reduce_place(uint32_t rank, const int64_t *dims, const int64_t *strides, int64_t i) {
  int64_t at = 0;
  for (uint32_t d = rank; d-- > 0; i /= dims[d]) at += i % dims[d] * strides[d];
  return at;
}

/* --- reduce_few.c: results begin to end, one after another; ctx is a cpu_reduce_work --- */
void cpu_reduce_few(void *ctx, size_t begin, size_t end);
/* Bytes of a range's memory. */
int64_t cpu_reduce_few_bytes(const cpu_reduction *x);

#endif
