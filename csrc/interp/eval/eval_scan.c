/* scan: a computation of (slices of the inputs, carried values) that gives (slices of the outputs, carried values), run
 * along one dimension.
 *
 * Example: inputs f32[5,3] along dimension 0 and one carried f32[3] run five steps; outputs are stacked to
 * f32[5,...]. is_reverse runs from the last slice to the first; output i still belongs to slice i. */
#include "../algorithm/arrays.h"

typedef struct scan_run {
  interp_ctx *ctx;
  const ir_op *op;
  const ir_computation *c;
  uint32_t dim, n_inputs, n_carries, n_outputs;
  int64_t length;
  bool reverse;
  interp_value *const *inputs;
  interp_value **args;    /* of one step: slices, then carried values */
  interp_value **results; /* outputs, then the carried values */
} scan_run;

/* Slice `at` of x along the scan dimension, which it loses. */
static interp_value *scan_slice(const scan_run *s, const interp_value *x, int64_t at) {
  int64_t strides[IR_MAX_RANK], dims[IR_MAX_RANK], from[IR_MAX_RANK];
  uint32_t rank = 0;
  interp_strides(x->rank, x->dims, strides);
  for (uint32_t d = 0; d < x->rank; d++) {
    if (d == s->dim) continue;
    dims[rank] = x->dims[d];
    from[rank++] = strides[d];
  }
  interp_value *r = interp_array(s->ctx, x->dtype, rank, dims);
  if (!r) return NULL;
  size_t bytes = base_dtype_bytes(x->dtype);
  if (interp_copy_box(s->ctx, bytes, rank, dims, r->data, x->data, at * strides[s->dim], from) == 0) return r;
  interp_release(r);
  return NULL;
}

/* Writes one step's result i into its stack, which the first step makes. The first step's result fixes the
 * stack's shape; later ones must have it, too. */
static int scan_stack(scan_run *s, uint32_t i, const interp_value *v, int64_t at) {
  int64_t dims[IR_MAX_RANK], strides[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK];
  if (v->kind != INTERP_ARRAY || v->rank >= IR_MAX_RANK || s->dim > v->rank)
    return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "result %u of %s can't be stacked", i, s->c->name->s);
  uint32_t rank = v->rank + 1;
  for (uint32_t d = 0; d < rank; d++) dims[d] = d < s->dim ? v->dims[d] : d == s->dim ? s->length : v->dims[d - 1];
  if (!s->results[i] && !(s->results[i] = interp_array(s->ctx, v->dtype, rank, dims))) return interp_failed(s->ctx);
  interp_value *r = s->results[i];
  for (uint32_t d = 0; d < rank; d++)
    if (r->dims[d] != dims[d])
      return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "result %u of %s changes its size from step to step", i,
                         s->c->name->s);
  interp_strides(rank, dims, strides);
  interp_strides(v->rank, v->dims, from);
  for (uint32_t d = 0; d < v->rank; d++) to[d] = strides[d < s->dim ? d : d + 1];
  size_t bytes = base_dtype_bytes(v->dtype);
  return interp_strided_copy(s->ctx, bytes, v->rank, v->dims, (char *)r->data + at * strides[s->dim] * (int64_t)bytes,
                             to, v->data, from);
}

/* Sorts one step's results into stacks and the next step's carried values. Results of the computation:
 * outputs, then carried values. */
static int scan_collect(scan_run *s, interp_value *step, int64_t at) {
  assert(at >= 0 && at < s->length);
  uint32_t n = s->n_outputs + s->n_carries;
  interp_value **results = step->kind == INTERP_TUPLE ? step->elements : &step;
  if ((step->kind == INTERP_TUPLE ? step->n_elements : 1) != n)
    return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "%s does not give %u results", s->c->name->s, n);
  for (uint32_t i = 0; i < s->n_outputs; i++) TRY(scan_stack(s, i, results[i], at));
  for (uint32_t i = 0; i < s->n_carries; i++) {
    interp_value **carry = &s->results[s->n_outputs + i];
    interp_release(*carry);
    *carry = interp_retain(results[s->n_outputs + i]);
  }
  return 0;
}

/* On failure the slices made so far are in args, for the caller to release. */
static int scan_step(scan_run *s, int64_t at) {
  interp_value *step = NULL;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!(s->args[i] = scan_slice(s, s->inputs[i], at))) return interp_failed(s->ctx);
  for (uint32_t i = 0; i < s->n_carries; i++) { /* given away, so that the step may update them in place */
    s->args[s->n_inputs + i] = s->results[s->n_outputs + i];
    s->results[s->n_outputs + i] = NULL;
  }
  TRY(interp_call_move(s->ctx, s->c, s->n_inputs + s->n_carries, s->args, &step));
  int status = scan_collect(s, step, at);
  interp_release(step);
  return status;
}

/* Outputs of no steps: empty along the scan dimension, the type's sizes elsewhere. */
static int scan_empty(scan_run *s) {
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    const ir_type *t = ir_is_tuple(s->op->type) ? s->op->type->elements[i] : s->op->type;
    int64_t dims[IR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++) {
      dims[d] = d == s->dim ? 0 : t->dims[d];
      if (dims[d] < 0)
        return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "no step says what size dimension %u of result %u has", d, i);
    }
    if (!(s->results[i] = interp_array(s->ctx, t->dtype, t->rank, dims))) return interp_failed(s->ctx);
  }
  return 0;
}

/* The carried values begin as the last operands. */
static int scan_steps(scan_run *s, interp_value *const *inits) {
  for (uint32_t i = 0; i < s->n_carries; i++) s->results[s->n_outputs + i] = interp_retain(inits[i]);
  if (s->length == 0) return scan_empty(s);
  for (int64_t i = 0; i < s->length; i++) TRY(scan_step(s, s->reverse ? s->length - 1 - i : i));
  return 0;
}

/* How many steps: all inputs must agree. */
static int scan_measure(scan_run *s) {
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if (s->dim >= s->inputs[i]->rank || s->inputs[i]->dims[s->dim] != s->inputs[0]->dims[s->dim])
      return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "the inputs differ in length along dimension %u", s->dim);
  }
  s->length = s->n_inputs ? s->inputs[0]->dims[s->dim] : 0;
  return 0;
}

/* args and results share one allocation. */
int interp_eval_scan(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  uint32_t n_results = ir_is_tuple(op->type) ? op->type->n_elements : 1,
           carries = (uint32_t)ir_get_int(op, IR_ATTR_NUM_CARRIES, 0);
  assert(list->n == 1 && carries <= op->n_operands && carries <= n_results);
  scan_run s = {.ctx = ctx,
                .op = op,
                .c = op->called[0],
                .dim = (uint32_t)list->v[0],
                .n_inputs = op->n_operands - carries,
                .n_carries = carries,
                .n_outputs = n_results - carries,
                .inputs = operands,
                .reverse = ir_get_bool(op, IR_ATTR_IS_REVERSE, false)};
  if (s.c->n_params != op->n_operands)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s does not take %u values", s.c->name->s, op->n_operands);
  TRY(scan_measure(&s));
  uint32_t room = op->n_operands + n_results;
  interp_value **values = INTERP_SCRATCH(ctx, interp_value *, room);
  if (!values) return interp_failed(ctx);
  memset(values, 0, room * sizeof *values);
  s.args = values;
  s.results = values + op->n_operands;
  int status = scan_steps(&s, operands + s.n_inputs);
  interp_release_all(op->n_operands, s.args);
  if (status == 0)
    status = interp_finish_all(ctx, op, n_results, s.results, out);
  else
    interp_release_all(n_results, s.results);
  interp_scratch_free(ctx, values);
  return status;
}
