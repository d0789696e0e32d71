/* Loops over elements that heed interrupts: every long loop of an evaluator runs as blocks, with a tick after each. */
#ifndef XLAC_INTERP_BLOCKS_H
#define XLAC_INTERP_BLOCKS_H

#include "interp.h"

enum { INTERP_BLOCK = 1 << 16 /* element operations between two ticks */ };

/* Elements begin <= i < end. */
typedef void interp_block_fn(void *x, int64_t begin, int64_t end);

/* Runs fn over [0, n), in order, in blocks that begin at multiples of 64. Nonzero when the run was interrupted. */
XLAC_MUST_USE int interp_in_blocks(interp_ctx *ctx, int64_t n, interp_block_fn *fn, void *x);
/* The same where an element takes as long as `each` element operations. */
XLAC_MUST_USE int interp_in_heavy_blocks(interp_ctx *ctx, int64_t n, int64_t each, interp_block_fn *fn, void *x);
/* memcpy and memset to zero of n bytes. */
XLAC_MUST_USE int interp_copy_bytes(interp_ctx *ctx, void *to, const void *from, size_t n);
XLAC_MUST_USE int interp_zero_bytes(interp_ctx *ctx, void *to, size_t n);
/* base_convert of n elements. */
XLAC_MUST_USE int interp_convert(interp_ctx *ctx, base_dtype to_type, void *to, base_dtype from_type, const void *from,
                                 int64_t n);
/* All of r's elements become one of its type. */
XLAC_MUST_USE int interp_fill_array(interp_ctx *ctx, interp_value *r, const void *element);

#endif
