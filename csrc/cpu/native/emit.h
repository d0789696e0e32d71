/* From a body to machine code: one pass that gives registers and emits. */
#ifndef XLAC_CPU_NATIVE_EMIT_H
#define XLAC_CPU_NATIVE_EMIT_H

#include "body.h"

/* What the code is called with, and changes. at, by: by stream, where the first row begins, and how far it is from one
 * row to the next. */
typedef struct nat_arguments {
  int64_t n, rows; /* iterations of a row; how many rows, 1 or more */
  const void *at[NAT_MAX_STREAMS];
  int64_t by[NAT_MAX_STREAMS];
} nat_arguments;
typedef void nat_code_fn(nat_arguments *a);

/* Whether the code goes to any n; else only whole vectors are done, and the caller does the rest. */
bool nat_has_tail(const nat_body *b);
/* How many vectors a trip of the code does, at most. */
uint32_t nat_turns_of(const nat_body *b);
/* Iterations of a row that the code does without a loop; 0: of none. */
uint32_t nat_short_row(const nat_body *b);
/* Whether there are instructions for lanes of `width` bytes that the pattern spreads (emit_spread.c); *room: the
 * furthest element of the array that a cycle's pointer may be at, so that nothing behind its last one is read. */
bool nat_spreads(const nat_body *b, const nat_pattern *p, uint32_t width, int64_t *room);
/* Appends the code, a nat_code_fn, to c, which has none yet. false where it needs more than there is of anything. */
bool nat_emit(const nat_body *b, x86_code *c, base_arena *scratch);

#endif
