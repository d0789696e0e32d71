/* The custom-call target "TopK": the k largest elements of each row, descending, and their indices; k is the results'
 * last dimension. Floats compare by total order, so NaN comes first and 0 before -0; equal elements keep their order.
 */
#include "../algorithm/sort_keys.h"

static bool topk_fits(const ir_op *op, interp_value *const *operands) {
  const ir_type *t = op->type;
  if (op->n_operands != 1 || operands[0]->kind != INTERP_ARRAY || operands[0]->rank == 0) return false;
  if (base_dtype_is_complex(operands[0]->dtype) || !ir_is_tuple(t) || t->n_elements != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *e = t->elements[i];
    if (!ir_is_tensor(e) || e->rank != operands[0]->rank) return false;
    for (uint32_t d = 0; d < e->rank; d++)
      if (d + 1 < e->rank ? e->dims[d] != operands[0]->dims[d] : e->dims[d] < 0 || e->dims[d] > operands[0]->dims[d])
        return false;
  }
  const ir_type *values = t->elements[0], *indices = t->elements[1];
  return values->count == indices->count && values->dtype == operands[0]->dtype &&
         base_dtype_is_integer(indices->dtype);
}

int interp_custom_topk(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (!topk_fits(op, operands))
    return interp_fail(ctx, op, XLAC_E_EVAL, "TopK takes [..., n] and gives ([..., k], integer [..., k]) with k <= n");
  interp_value *result = interp_zeros(ctx, op->type);
  if (!result) return interp_failed(ctx);
  int64_t k = result->elements[0]->dims[operands[0]->rank - 1];
  int status = interp_topk_rows(ctx, operands[0], k, true, result->elements[0], result->elements[1]);
  if (status != 0) return interp_release(result), status;
  *out = result;
  return 0;
}
