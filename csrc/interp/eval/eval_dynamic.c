/* dynamic-slice and dynamic-update-slice: a box whose start, clamped so that the box fits, is given at run time. */
#include "arrays.h"
#include "../blocks.h"

/* Start indices follow operand `first - 1`: one scalar a dimension, or all in one vector as in old programs. */
static int clamped_starts(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t first,
                          const int64_t *box, int64_t *at) {
  const interp_value *x = operands[0];
  bool vector = op->n_operands == first + 1 && operands[first]->rank == 1;
  assert(vector || op->n_operands == first + x->rank);
  if (vector) TRY(interp_need_size(ctx, op, operands, first, 0, x->rank, "the number of dimensions is"));
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t start = vector ? interp_element_index(operands[first], d) : interp_element_index(operands[first + d], 0);
    assert(box[d] <= x->dims[d]);
    at[d] = interp_clamp(start, 0, x->dims[d] - box[d]);
  }
  return 0;
}

static int64_t offset_of(uint32_t rank, const int64_t *at, const int64_t *strides) {
  int64_t offset = 0;
  for (uint32_t d = 0; d < rank; d++) offset += at[d] * strides[d];
  return offset;
}

int interp_eval_dynamic_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_ints *sizes = ir_get_ints(op, IR_ATTR_DYNAMIC_SLICE_SIZES);
  int64_t dims[IR_MAX_RANK], at[IR_MAX_RANK], from[IR_MAX_RANK];
  assert(sizes->n == x->rank);
  for (uint32_t d = 0; d < x->rank; d++) dims[d] = interp_min(sizes->v[d], x->dims[d]);
  TRY(clamped_starts(ctx, op, operands, 1, dims, at));
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  interp_strides(x->rank, x->dims, from);
  int status = interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, dims, r->data, x->data,
                               offset_of(x->rank, at, from), from);
  return interp_deliver(status, r, out);
}

int interp_eval_dynamic_update_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                     interp_value **out) {
  const interp_value *update = operands[1];
  int64_t at[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK];
  for (uint32_t d = 0; d < update->rank; d++)
    if (update->dims[d] > operands[0]->dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "the update has %lld elements along dimension %u, the operand only %lld",
                         (long long)update->dims[d], d, (long long)operands[0]->dims[d]);
  TRY(clamped_starts(ctx, op, operands, 2, update->dims, at));
  interp_value *r = operands[0] == operands[1] ? NULL : interp_reuse(ctx, operands, 0);
  if (!r) {
    r = interp_array(ctx, operands[0]->dtype, operands[0]->rank, operands[0]->dims);
    if (!r) return interp_failed(ctx);
    int copied = interp_copy_bytes(ctx, r->data, operands[0]->data, interp_bytes(r));
    if (copied) return interp_deliver(copied, r, out);
  }
  size_t bytes = base_dtype_bytes(r->dtype);
  interp_strides(r->rank, r->dims, to);
  interp_strides(r->rank, update->dims, from);
  char *place = (char *)r->data + offset_of(r->rank, at, to) * (int64_t)bytes;
  int status = interp_strided_copy(ctx, bytes, r->rank, update->dims, place, to, update->data, from);
  return interp_deliver(status, r, out);
}
