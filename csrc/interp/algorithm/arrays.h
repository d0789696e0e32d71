/* What the evaluators of structured ops share: scratch memory, run-time indices, element type changes, box copies. */
#ifndef XLAC_INTERP_ALGORITHM_ARRAYS_H
#define XLAC_INTERP_ALGORITHM_ARRAYS_H

#include "../sizes.h"
#include "strided.h"

/* n items of `size` bytes each, not zeroed; NULL, with the error filled, when out of memory or on overflow. */
void *interp_scratch(interp_ctx *ctx, int64_t n, size_t size);
static inline void interp_scratch_free(interp_ctx *ctx, void *p) {
  base_free(ctx->options.alloc, p);
}
#define INTERP_SCRATCH(ctx, type, n) ((type *)interp_scratch((ctx), (n), sizeof(type)))
/* Hands r over as *out, or releases it when filling it has failed. Returns status. */
XLAC_MUST_USE int interp_deliver(int status, interp_value *r, interp_value **out);

/* An integer element as an index: values beyond int64 saturate, so that clamping and range checks see them as large. */
int64_t interp_index(base_dtype t, const void *p);
static inline int64_t interp_element_index(const interp_value *v, int64_t i) {
  return interp_index(v->dtype, (const char *)v->data + (size_t)i * base_dtype_bytes(v->dtype));
}
static inline int64_t interp_clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}
static inline int64_t interp_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t interp_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* A new reference to v, or to a copy of it with elements converted to `t`. NULL when out of memory or
 * interrupted. */
interp_value *interp_as(interp_ctx *ctx, interp_value *v, base_dtype t);
/* A copy of v with elements converted to `t`, always its own. NULL when out of memory or interrupted. */
interp_value *interp_copy_as(interp_ctx *ctx, const interp_value *v, base_dtype t);
/* Hands *result over as *out in the op's own element type; consumes the reference. */
XLAC_MUST_USE int interp_finish(interp_ctx *ctx, base_dtype t, interp_value *result, interp_value **out);
/* The same for n results: the one result, or a tuple of them when the op's type is a tuple. Consumes all references. */
XLAC_MUST_USE int interp_finish_all(interp_ctx *ctx, const ir_op *op, uint32_t n, interp_value **results,
                                    interp_value **out);
void interp_release_all(uint32_t n, interp_value **values);

/* The number of elements in dims, for scratch sizes; dims are those of values and so can't overflow. */
int64_t interp_count(uint32_t rank, const int64_t *dims);
/* Copies the box of `dims` at element offset `from_at` of v, whose strides are given, densely to `to`. */
XLAC_MUST_USE int interp_copy_box(interp_ctx *ctx, size_t bytes, uint32_t rank, const int64_t *dims, void *to,
                                  const void *from, int64_t from_at, const int64_t *from_strides);

#endif
