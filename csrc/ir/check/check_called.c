/* Signatures of called computations: which parameters a computation takes and what it gives, against its caller. */
#include "../../base/plural.h"
#include "check.h"

/* An editor may leave holes; ir_param_type may not meet one. */
static int check_params(const ir_computation *c, xlac_error *err) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i] || !c->params[i]->type)
      return base_fail(err, XLAC_E_VERIFY_CALLED, "the called computation %s has no parameter %u",
                       c->name ? c->name->s : "", i);
  return 0;
}

int ir_check_param_count(const char *role, const ir_computation *c, uint32_t n, xlac_error *err) {
  assert(role);
  assert(c && role);
  if (c->n_params == n) return check_params(c, err);
  return base_fail(err, XLAC_E_VERIFY_CALLED, "%s (%s) must take %u parameter%s, but takes %u", role,
                   c->name ? c->name->s : "", n, base_plural(n), c->n_params);
}

/* `role` names the computation's part in messages: "body", "branch". */
int ir_check_args(const char *role, const ir_computation *c, const ir_op *op, uint32_t first, uint32_t n,
                  xlac_error *err) {
  assert(role && c);
  assert(first + n <= op->n_operands);
  TRY(ir_check_param_count(role, c, n, err));
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *arg = ir_operand_type(op, first + i), *param = ir_param_type(c, i);
    if (!ir_compatible(arg, param))
      return base_fail(err, XLAC_E_VERIFY_CALLED, "parameter %u of %s (%s) is %s, but operand %u is %s", i, role,
                       c->name ? c->name->s : "", IR_SHOW(param), first + i, IR_SHOW(arg));
  }
  return 0;
}

/* Element i of the accumulator, or NULL when the result is not a scalar (n == 1) or tuple of n. */
static const ir_type *accumulator(const ir_computation *c, uint32_t n, uint32_t i) {
  const ir_type *result = ir_result_type(c);
  if (ir_is_tensor(result)) return n == 1 ? result : NULL;
  return ir_is_tuple(result) && result->n_elements == n ? result->elements[i] : NULL;
}

/* "to_apply: parameter 1 must be a scalar of f32, but is s32[]". */
static int fail_reducer(const char *role, const char *what, uint32_t i, const ir_type *found, base_dtype expected,
                        xlac_error *err) {
  return base_fail(err, XLAC_E_VERIFY_CALLED, "%s: %s %u must be a scalar of %s, but is %s", role, what, i,
                   base_dtype_of(expected)->text, IR_SHOW(found));
}

/* With n inputs the parameters are acc 0..n-1, then in 0..n-1. XLA's VerifyReducerShape. */
int ir_check_reducer(const char *role, const ir_computation *c, uint32_t n, const base_dtype *inits,
                     const base_dtype *inputs, xlac_error *err) {
  assert(n > 0 && inits && inputs);
  TRY(ir_check_param_count(role, c, 2 * n, err));
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *acc = accumulator(c, n, i), *first = ir_param_type(c, i), *second = ir_param_type(c, n + i);
    if (!acc || !ir_is_scalar(acc))
      return base_fail(err, XLAC_E_VERIFY_CALLED, "%s must give %s, but gives %s", role,
                       n == 1 ? "a scalar" : "a tuple of one scalar per input", IR_SHOW(ir_result_type(c)));
    if (!ir_same_dtype_or_float(acc->dtype, inits[i])) return fail_reducer(role, "result", i, acc, inits[i], err);
    if (!ir_is_scalar(first) || first->dtype != acc->dtype)
      return fail_reducer(role, "parameter", i, first, acc->dtype, err);
    if (!ir_is_scalar(second) || !ir_same_dtype_or_float(second->dtype, inputs[i]))
      return fail_reducer(role, "parameter", n + i, second, inputs[i], err);
    if (!ir_same_dtype_or_float(second->dtype, acc->dtype))
      return fail_reducer(role, "parameter", n + i, second, acc->dtype, err);
  }
  return 0;
}

base_dtype ir_reducer_dtype(const ir_computation *c, uint32_t i) {
  assert(c && c->n_results);
  const ir_type *result = ir_result_type(c);
  return ir_is_tuple(result) ? result->elements[i]->dtype : result->dtype;
}
