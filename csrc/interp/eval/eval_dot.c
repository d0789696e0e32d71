/* dot and scaled-dot. */
#include "../algorithm/dot_plan.h"

/* Ends the plan whatever has happened. */
static int dot_planned(interp_ctx *ctx, const ir_op *op, int status, interp_dot_plan *p, interp_value **out) {
  interp_value *r = NULL;
  if (status == 0) {
    int64_t dims[IR_MAX_RANK];
    uint32_t rank = interp_dot_dims(p, dims);
    r = interp_array(ctx, p->dtype, rank, dims);
    status = r ? interp_dot_run(ctx, p, r->data) : interp_failed(ctx);
  }
  interp_dot_plan_end(ctx, p);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}

int interp_eval_dot(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_dot_plan p;
  base_dtype t = interp_product_type(operands[0]->dtype, operands[1]->dtype, op->type->dtype);
  int status = interp_dot_plan_begin(ctx, op, operands[0], operands[1], t, NULL, &p);
  return dot_planned(ctx, op, status, &p, out);
}

/* The type in which an operand is multiplied by its scale: the wider one, bf16 when both have fewer than 16 bits. */
static base_dtype scaled_type(base_dtype x, base_dtype scale) {
  unsigned a = base_dtype_of(x)->bits, b = base_dtype_of(scale)->bits;
  if (a < 16 && b < 16) return XLAC_BF16;
  if (x == scale) return x;
  if (a == b) return XLAC_F32;
  return a > b ? x : scale;
}

/* x times its scale, each scale serving a block of neighbours along every dimension: both as f64, where products of two
 * floats of up to 24 bits are exact, rounded once to `t`. */
static int scale_elements(interp_ctx *ctx, const interp_value *x, const interp_value *scale, interp_value *r) {
  int64_t at[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK];
  const char *from = x->data;
  char *to = r->data;
  interp_strides(scale->rank, scale->dims, strides);
  for (int64_t i = 0; i < x->count; i++) {
    int64_t s = 0;
    TRY(interp_tick(ctx, 4));
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t block = interp_max(1, x->dims[d] / scale->dims[d]);
      s += interp_min(at[d] / block, scale->dims[d] - 1) * strides[d];
    }
    double v = base_load_f64(x->dtype, from + i * (int64_t)base_dtype_bytes(x->dtype));
    v *= base_load_f64(scale->dtype, (const char *)scale->data + s * (int64_t)base_dtype_bytes(scale->dtype));
    base_store_f64(r->dtype, to + i * (int64_t)base_dtype_bytes(r->dtype), v);
    for (uint32_t d = x->rank; d > 0; d--) {
      if (++at[d - 1] < x->dims[d - 1]) break;
      at[d - 1] = 0;
    }
  }
  return 0;
}

/* A scalar scale stands for none. */
static int scaled_operand(interp_ctx *ctx, const ir_op *op, interp_value *x, const interp_value *scale,
                          interp_value **out) {
  if (scale->rank == 0) {
    *out = interp_retain(x);
    return 0;
  }
  bool fits = scale->rank == x->rank;
  for (uint32_t d = 0; fits && d < x->rank; d++)
    fits = x->dims[d] == 0 || (scale->dims[d] > 0 && x->dims[d] % scale->dims[d] == 0);
  if (!fits) return interp_fail(ctx, op, XLAC_E_EVAL, "a scale's dimensions do not divide those of what it scales");
  interp_value *r = interp_array(ctx, scaled_type(x->dtype, scale->dtype), x->rank, x->dims);
  if (!r) return interp_failed(ctx);
  return interp_deliver(scale_elements(ctx, x, scale, r), r, out);
}

int interp_eval_scaled_dot(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_dot_plan p;
  interp_value *left = NULL, *right = NULL;
  assert(op->n_operands == 4);
  int status = scaled_operand(ctx, op, operands[0], operands[2], &left);
  if (status == 0) status = scaled_operand(ctx, op, operands[1], operands[3], &right);
  if (status == 0) {
    base_dtype t = interp_product_type(left->dtype, right->dtype, op->type->dtype);
    status = interp_dot_plan_begin(ctx, op, left, right, t, NULL, &p);
    status = dot_planned(ctx, op, status, &p, out);
  }
  interp_release(left);
  interp_release(right);
  return status;
}
