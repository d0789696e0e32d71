/* Dynamic programs agree about sizes only at run time. These checks make the errors that the verifier
 * could not: each says operand, dimension and both sizes. */
#include "sizes.h"

#include <stdio.h>

bool interp_same_dims(const interp_value *a, const interp_value *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Dynamic dimensions may be smaller than their bound; unbounded ones are any. */
bool interp_dims_fit(const ir_type *t, const interp_value *v) {
  assert(ir_is_tensor(t) && v->kind == INTERP_ARRAY);
  bool fits = v->rank == t->rank;
  for (uint32_t d = 0; fits && d < t->rank; d++) {
    if (t->dims[d] == IR_UNBOUNDED) continue;
    fits = ir_dim_is_dynamic(t, d) ? v->dims[d] <= t->dims[d] : v->dims[d] == t->dims[d];
  }
  return fits;
}

/* "[2,3]" */
static const char *sizes_text(const interp_value *v, char *buf, size_t size) {
  size_t at = (size_t)snprintf(buf, size, "[");
  for (uint32_t d = 0; d < v->rank && at + 24 < size; d++)
    at += (size_t)snprintf(buf + at, size - at, "%s%lld", d ? "," : "", (long long)v->dims[d]);
  snprintf(buf + at, size - at, "]");
  return buf;
}

int interp_need_same_dims(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k, uint32_t with) {
  char own[160], other[160];
  if (interp_same_dims(operands[k], operands[with])) return 0;
  return interp_fail(ctx, op, XLAC_E_EVAL,
                     "operand %u has the run-time dimensions %s, operand %u has %s: they must be the same", k,
                     sizes_text(operands[k], own, sizeof own), with, sizes_text(operands[with], other, sizeof other));
}

/* Operands first to first + n - 1 all have the dimensions of the first. */
int interp_need_one_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t first, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) TRY(interp_need_same_dims(ctx, op, operands, first + i, first));
  return 0;
}

int interp_need_same_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k, uint32_t d,
                          uint32_t with, uint32_t e) {
  assert(d < operands[k]->rank && e < operands[with]->rank);
  int64_t own = operands[k]->dims[d], other = operands[with]->dims[e];
  if (own == other) return 0;
  return interp_fail(ctx, op, XLAC_E_EVAL,
                     "dimension %u of operand %u has the run-time size %lld, but dimension %u of operand %u has %lld: "
                     "they must be the same",
                     d, k, (long long)own, e, with, (long long)other);
}

int interp_need_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t k, uint32_t d,
                     int64_t size, const char *why) {
  assert(d < operands[k]->rank);
  int64_t own = operands[k]->dims[d];
  if (own == size) return 0;
  return interp_fail(ctx, op, XLAC_E_EVAL, "dimension %u of operand %u has the run-time size %lld, but %s %lld", d, k,
                     (long long)own, why, (long long)size);
}

/* Tuples leaf by leaf. */
static int sizes_check(interp_ctx *ctx, const ir_op *op, const ir_type *t, const interp_value *v) {
  if (ir_is_tuple(t) && v->kind == INTERP_TUPLE) {
    assert(t->n_elements == v->n_elements);
    for (uint32_t i = 0; i < t->n_elements; i++) TRY(sizes_check(ctx, op, t->elements[i], v->elements[i]));
    return 0;
  }
  if (!ir_is_tensor(t) || v->kind != INTERP_ARRAY || (v->dtype == t->dtype && interp_dims_fit(t, v))) return 0;
  char own[160], said[160];
  return interp_fail(ctx, op, XLAC_E_EVAL, "%s gives an array of the run-time dimensions %s%s, but its type is %s",
                     ir_opcode_text(op->opcode), base_dtype_table[v->dtype].text, sizes_text(v, own, sizeof own),
                     ir_type_text(t, said, sizeof said));
}

/* Run after every op: an evaluator that gave another shape than its type would otherwise break a later
 * one. */
int interp_check_result(interp_ctx *ctx, const ir_op *op, const interp_value *v) {
  return sizes_check(ctx, op, op->type, v);
}
