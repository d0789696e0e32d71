/* From a body to machine code: one pass that gives registers and emits. */
#ifndef XLAC_CPU_NATIVE_EMIT_H
#define XLAC_CPU_NATIVE_EMIT_H

#include "body.h"

/* What the code is called with. at: by stream, where its row begins. */
typedef struct nat_arguments {
  int64_t n; /* iterations, all of one row */
  const void *at[NAT_MAX_STREAMS];
} nat_arguments;
typedef void nat_code_fn(nat_arguments *a);

/* Whether the code goes to any n; else only whole vectors are done, and the caller does the rest. */
bool nat_has_tail(const nat_body *b);
/* Appends the code, a nat_code_fn, to c, which has none yet. false where it needs more than there is of anything. */
bool nat_emit(const nat_body *b, x86_code *c, base_arena *scratch);

#endif
