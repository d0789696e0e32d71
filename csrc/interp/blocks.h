/* Loops over elements that heed interrupts: every long loop of an evaluator runs as blocks, with a tick after each. */
#ifndef XLAC_INTERP_BLOCKS_H
#define XLAC_INTERP_BLOCKS_H

#include "interp.h"

enum { INTERP_BLOCK = 1 << 16 /* element operations between two ticks */ };

/* Elements begin <= i < end. */
typedef void interp_block_fn(void *x, int64_t begin, int64_t end);

/* Runs fn over [0, n), in order, in blocks that begin at multiples of 64. Nonzero when the run was interrupted. */
XLAC_MUST_USE int interp_in_blocks(interp_ctx *ctx, int64_t n, interp_block_fn *fn, void *x);
/* memcpy and memset to zero of n bytes. */
XLAC_MUST_USE int interp_copy_bytes(interp_ctx *ctx, void *to, const void *from, size_t n);
XLAC_MUST_USE int interp_zero_bytes(interp_ctx *ctx, void *to, size_t n);

#endif
