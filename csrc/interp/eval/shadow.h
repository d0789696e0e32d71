/* An op made up at run time so that the evaluator of another opcode may serve: a dynamic op whose sizes are known by
 * now as its static twin, a quantised op as one on real numbers. It lives on the C stack and in an arena of its own. */
#ifndef XLAC_INTERP_EVAL_SHADOW_H
#define XLAC_INTERP_EVAL_SHADOW_H

#include "../algorithm/arrays.h"

#define SHADOW_ATTRS 12

typedef struct interp_shadow {
  ir_op op; /* name and place of the op it stands for */
  ir_type result;
  const ir_type *results;
  uint32_t n;
  interp_value **values; /* borrowed */
  ir_attr attrs[SHADOW_ATTRS];
  base_arena arena;
} interp_shadow;

/* `of` as an op of `opcode` on n values of their own types. The result's type is of's, dims and dtype to be set by
 * interp_shadow_result where they differ. Nonzero when out of memory; interp_shadow_end is due in any case. */
XLAC_MUST_USE int interp_shadow_begin(interp_ctx *ctx, interp_shadow *s, const ir_op *of, ir_opcode opcode, uint32_t n,
                                      interp_value *const *values);
/* dims are copied; all static. */
XLAC_MUST_USE int interp_shadow_result(interp_ctx *ctx, interp_shadow *s, base_dtype t, uint32_t rank,
                                       const int64_t *dims);
/* Attributes, over those that `of` has. */
void interp_shadow_set(interp_shadow *s, ir_attr a);
XLAC_MUST_USE int interp_shadow_ints(interp_ctx *ctx, interp_shadow *s, ir_attr_key key, uint32_t n, const int64_t *v);
void interp_shadow_int(interp_shadow *s, ir_attr_key key, int64_t v);
/* The word stays the caller's. */
XLAC_MUST_USE int interp_shadow_eval(interp_ctx *ctx, interp_shadow *s, interp_value **out);
void interp_shadow_end(interp_shadow *s);

/* The integers of a rank-1 value (or of a scalar, as one) into v, at most `room`. Fails when there are more. */
XLAC_MUST_USE int interp_read_sizes(interp_ctx *ctx, const ir_op *op, const interp_value *from, uint32_t n, int64_t *v);
/* x spread to dims; map[i] says where x's dimension i goes. */
XLAC_MUST_USE int interp_spread(interp_ctx *ctx, const ir_op *op, const interp_value *x, const int64_t *map,
                                uint32_t rank, const int64_t *dims, interp_value **out);

#endif
