/* A reduction's computation, prepared to combine many accumulators with many elements at once. Serves reduce,
 * reduce-window, and the scattering ops.
 *
 * The computation is applied in the types of its own parameters, so an operand may have to be converted first. Plain
 * sums and products of floats narrower than f32 are kept in f32 and rounded once at the end, as XLA:CPU does. */
#ifndef XLAC_INTERP_EVAL_FOLD_H
#define XLAC_INTERP_EVAL_FOLD_H

#include "../algorithm/arrays.h"

typedef void interp_fold_kernel(int64_t n, const void *acc, const void *x, void *out);

typedef struct interp_fold {
  interp_body *body;
  uint32_t n;                 /* operands, and accumulators */
  interp_fold_kernel *kernel; /* replaces the body: it is one plain op and n is 1. `out` may be `acc` */
  bool associative;           /* known to be: any grouping gives the result up to rounding */
  base_dtype *acc, *x;        /* n types each */
  const void **args;          /* 2 n places for interp_apply */
} interp_fold;

/* Combines n operands by `c`, whose parameters are n accumulators, then n elements. `widen` allows f32 for narrow sums.
 */
XLAC_MUST_USE int interp_fold_begin(interp_ctx *ctx, const ir_op *op, const ir_computation *c, uint32_t n, bool widen,
                                    interp_fold *f);
void interp_fold_end(interp_ctx *ctx, interp_fold *f);
/* out[i][l] = combined acc[i][l], x[i][l] for `lanes` lanes. out must not overlap acc unless interp_fold_in_place. */
XLAC_MUST_USE int interp_fold_apply(interp_ctx *ctx, interp_fold *f, int64_t lanes, void *const *acc, void *const *x,
                                    void *const *out);
static inline bool interp_fold_in_place(const interp_fold *f) {
  return f->kernel != NULL;
}

/* The operands with their elements in the fold's types: `inits` (or arrays to update) to acc, `xs` to x. n each. On
 * failure everything is released. */
XLAC_MUST_USE int interp_fold_operands(interp_ctx *ctx, const interp_fold *f, interp_value *const *inits,
                                       interp_value *const *xs, interp_value **acc, interp_value **x);

/* A list of n values or pointers, all NULL. */
static inline void **interp_fold_list(interp_ctx *ctx, uint32_t n) {
  void **p = INTERP_SCRATCH(ctx, void *, n);
  return p ? memset(p, 0, n * sizeof *p) : NULL;
}
/* n scratch arrays of `count` elements of the given types, in a list that interp_fold_buffers_free frees with them. */
void **interp_fold_buffers(interp_ctx *ctx, uint32_t n, const base_dtype *types, int64_t count);
void interp_fold_buffers_free(interp_ctx *ctx, uint32_t n, void **buffers);

#endif
