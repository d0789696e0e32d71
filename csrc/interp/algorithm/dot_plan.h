/* A dot's dimension numbers turned into offset lists for the matrix product: shared by dot, ragged-dot and scaled-dot.
 */
#ifndef XLAC_INTERP_ALGORITHM_DOT_PLAN_H
#define XLAC_INTERP_ALGORITHM_DOT_PLAN_H

#include "matmul.h"

/* Some dims of an operand, in the order a role wants them. */
typedef struct interp_dim_list {
  uint32_t n;
  int64_t dims[IR_MAX_RANK], strides[IR_MAX_RANK], source[IR_MAX_RANK]; /* sizes, strides, which dims of the operand */
  int64_t count;
} interp_dim_list;

/* The dims of v in `list`, or all but those in the three lists (NULL or empty ones name none). */
void interp_dims_listed(const interp_value *v, const ir_ints *list, interp_dim_list *out);
void interp_dims_other(const interp_value *v, const ir_ints *a, const ir_ints *b, const ir_ints *c,
                       interp_dim_list *out);

typedef struct interp_dot_plan {
  base_dtype dtype;           /* products are computed in */
  interp_value *left, *right; /* operands in that type */
  interp_dim_list left_batch, right_batch, left_contracting, right_contracting, left_free, right_free;
  int64_t *offsets; /* owns all lists below */
  int64_t *left_b, *right_b, *left_m, *left_k, *right_k, *right_n, *out_m, *out_n;
} interp_dot_plan;

/* `group` names dims of the right operand that take no part, or is NULL. The plan must be ended also on failure. */
XLAC_MUST_USE int interp_dot_plan_begin(interp_ctx *ctx, const ir_op *op, interp_value *left, interp_value *right,
                                        base_dtype dtype, const ir_ints *group, interp_dot_plan *p);
void interp_dot_plan_end(interp_ctx *ctx, interp_dot_plan *p);
/* The result's dims: batch, left free, right free. Returns their number. */
uint32_t interp_dot_dims(const interp_dot_plan *p, int64_t *dims);
/* The product of one batch, but for where its arrays are. */
interp_matmul interp_dot_product(const interp_dot_plan *p);
/* Runs all batches into out, which has the plan's type and dims. */
XLAC_MUST_USE int interp_dot_run(interp_ctx *ctx, const interp_dot_plan *p, void *out);

#endif
