/* Ops that only move elements: broadcast, concatenate, pad, reverse, slice, transpose. Result sizes follow the
 * operands' actual sizes, which differ from the types' only where a dimension is dynamic.
 *
 * All of them are one strided copy: an op says which strides its operand is read with (0 repeats, negative
 * reverses), or at which strides its result is written. interp_strided_copy does the rest. */
#include "../../ir/check/check.h"
#include "../algorithm/arrays.h"
#include "../blocks.h"

/* dimensions={1}: operand dimension 0 becomes result dimension 1; the others repeat, with stride 0. */
int interp_eval_broadcast(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_ints *map = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t dims[IR_MAX_RANK], own[IR_MAX_RANK], from[IR_MAX_RANK] = {0}, to[IR_MAX_RANK];
  assert(map->n == x->rank);
  for (uint32_t d = 0; d < op->type->rank; d++) dims[d] = op->type->dims[d];
  interp_strides(x->rank, x->dims, own);
  for (uint32_t i = 0; i < map->n; i++) {
    int64_t d = map->v[i];
    assert(d >= 0 && d < op->type->rank);
    if (x->dims[i] == 1 && dims[d] != 1 && dims[d] >= 0) continue; /* a repeated single element */
    dims[d] = x->dims[i];
    from[d] = own[i];
  }
  for (uint32_t d = 0; d < op->type->rank; d++)
    if (dims[d] < 0) return interp_fail(ctx, op, XLAC_E_EVAL, "nothing says what size dimension %u has", d);
  interp_value *r = interp_array(ctx, x->dtype, op->type->rank, dims);
  if (!r) return interp_failed(ctx);
  interp_strides(r->rank, dims, to);
  int status = interp_strided_copy(ctx, base_dtype_bytes(x->dtype), r->rank, dims, r->data, to, x->data, from);
  return interp_deliver(status, r, out);
}

/* Nonzero unless all operands agree but for dimension d; *total is their sum along it. */
static int concatenate_total(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t d,
                             int64_t *total) {
  *total = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    for (uint32_t k = 0; k < operands[i]->rank; k++)
      if (k != d && operands[i]->dims[k] != operands[0]->dims[k])
        return interp_fail(ctx, op, XLAC_E_EVAL, "operand %u has %lld elements along dimension %u, operand 0 has %lld",
                           i, (long long)operands[i]->dims[k], k, (long long)operands[0]->dims[k]);
    if (!base_add_i64(*total, operands[i]->dims[d], total))
      return interp_fail(ctx, op, XLAC_E_TOO_LARGE, "the result's dimension %u overflows", d);
  }
  return 0;
}

/* Each operand to its place along d. */
static int concatenate_copy(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t d,
                            interp_value *r) {
  size_t bytes = base_dtype_bytes(r->dtype);
  int64_t to[IR_MAX_RANK], from[IR_MAX_RANK], at = 0;
  interp_strides(r->rank, r->dims, to);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const interp_value *x = operands[i];
    interp_strides(r->rank, x->dims, from);
    TRY(interp_strided_copy(ctx, bytes, r->rank, x->dims, (char *)r->data + at * to[d] * (int64_t)bytes, to, x->data,
                            from));
    at += x->dims[d];
  }
  return 0;
}

int interp_eval_concatenate(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  assert(list->n == 1 && op->n_operands > 0 && list->v[0] >= 0 && list->v[0] < operands[0]->rank);
  uint32_t d = (uint32_t)list->v[0], rank = operands[0]->rank;
  int64_t dims[IR_MAX_RANK];
  memcpy(dims, operands[0]->dims, rank * sizeof *dims);
  TRY(concatenate_total(ctx, op, operands, d, &dims[d]));
  interp_value *r = interp_array(ctx, operands[0]->dtype, rank, dims);
  if (!r) return interp_failed(ctx);
  return interp_deliver(concatenate_copy(ctx, op, operands, d, r), r, out);
}

/* One dimension of a pad: the operand's elements [first, first + n) stay, element first lands at place `at`, and
 * neighbours land `step` apart. */
typedef struct pad_dim {
  int64_t size, first, n, at, step;
} pad_dim;

/* Negative padding cuts: low=-1 drops the first element. `first` is the first operand element that lands
 * inside, `at` where. */
static pad_dim pad_plan(ir_padding_dim p, int64_t n, int64_t size) {
  pad_dim r = {.size = size, .first = 0, .n = 0, .at = 0, .step = 1};
  assert(p.interior >= 0 && n >= 0);
  if (n > 1) r.step = p.interior + 1;
  if (n == 0 || r.size == 0) return r;
  if (p.low < 0) r.first = -(p.low / r.step) + (-p.low % r.step != 0);
  if (r.first >= n) return r;
  r.at = p.low + r.first * r.step;
  if (r.at >= r.size) return r;
  r.n = interp_min(n - r.first, 1 + (r.size - 1 - r.at) / r.step);
  return r;
}

/* The result is filled already; the operand's box goes over it. */
static int pad_copy(interp_ctx *ctx, const interp_value *x, const pad_dim *plan, interp_value *r) {
  int64_t box[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK], to_at = 0, from_at = 0;
  int64_t bytes = (int64_t)base_dtype_bytes(x->dtype);
  interp_strides(x->rank, r->dims, to);
  interp_strides(x->rank, x->dims, from);
  for (uint32_t d = 0; d < x->rank; d++) {
    box[d] = plan[d].n;
    if (box[d] == 0) return 0;
    to_at += plan[d].at * to[d];
    from_at += plan[d].first * from[d];
    if (box[d] > 1) to[d] *= plan[d].step;
  }
  return interp_strided_copy(ctx, (size_t)bytes, x->rank, box, (char *)r->data + to_at * bytes, to,
                             (const char *)x->data + from_at * bytes, from);
}

/* f32[3] padded 1_2_1 has 1 + 3 + 2 + 2 = 8 elements. */
int interp_eval_pad(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PADDING);
  int64_t dims[IR_MAX_RANK];
  pad_dim plan[IR_MAX_RANK];
  assert(a && a->v.padding->n == x->rank && operands[1]->count == 1 && operands[1]->dtype == x->dtype);
  for (uint32_t d = 0; d < x->rank; d++) {
    int status = ir_infer_pad_size(a->v.padding->v[d], x->dims[d], &dims[d], ctx->err);
    if (status) return interp_place_error(ctx, op, status);
    plan[d] = pad_plan(a->v.padding->v[d], x->dims[d], dims[d]);
  }
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  int status = interp_fill_array(ctx, r, operands[1]->data);
  return interp_deliver(status ? status : pad_copy(ctx, x, plan, r), r, out);
}

/* Starts at the last element of each reversed dimension and goes back. */
int interp_eval_reverse(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t from[IR_MAX_RANK], at = 0;
  interp_value *r = interp_array(ctx, x->dtype, x->rank, x->dims);
  if (!r) return interp_failed(ctx);
  interp_strides(x->rank, x->dims, from);
  for (uint32_t i = 0; i < list->n; i++) {
    int64_t d = list->v[i];
    assert(d >= 0 && d < x->rank && from[d] > 0);
    if (x->dims[d] > 0) at += (x->dims[d] - 1) * from[d];
    from[d] = -from[d];
  }
  int status = interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, x->dims, r->data, x->data, at, from);
  return interp_deliver(status, r, out);
}

/* Limits beyond a dynamic dimension's present size are cut to it. */
int interp_eval_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SLICE);
  int64_t dims[IR_MAX_RANK], from[IR_MAX_RANK], at = 0;
  assert(a && a->v.slice->n == x->rank);
  interp_strides(x->rank, x->dims, from);
  for (uint32_t d = 0; d < x->rank; d++) {
    ir_slice_dim s = a->v.slice->v[d];
    assert(s.stride > 0 && s.start >= 0);
    int64_t limit = interp_min(s.limit, x->dims[d]);
    dims[d] = limit > s.start ? 1 + (limit - s.start - 1) / s.stride : 0;
    if (dims[d] > 0) at += s.start * from[d];
    if (dims[d] > 1) from[d] *= s.stride;
  }
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  int status = interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, dims, r->data, x->data, at, from);
  return interp_deliver(status, r, out);
}

/* Result dimension d is operand dimension dimensions[d]. */
int interp_eval_transpose(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t dims[IR_MAX_RANK], own[IR_MAX_RANK], from[IR_MAX_RANK];
  assert(list->n == x->rank);
  interp_strides(x->rank, x->dims, own);
  for (uint32_t d = 0; d < x->rank; d++) {
    assert(list->v[d] >= 0 && list->v[d] < x->rank);
    dims[d] = x->dims[list->v[d]];
    from[d] = own[list->v[d]];
  }
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  int status = interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, dims, r->data, x->data, 0, from);
  return interp_deliver(status, r, out);
}
