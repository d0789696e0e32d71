/* chlo.next_after on dense arrays. */
#ifndef XLAC_INTERP_EVAL_NEXT_AFTER_H
#define XLAC_INTERP_EVAL_NEXT_AFTER_H

#include "../interp.h"

/* n floats of type t: the neighbour of each x towards its y. to may be x or y. Thread-safe. eval_chlo.c */
void interp_next_after(base_dtype t, int64_t n, const void *x, const void *y, void *to);

#endif
