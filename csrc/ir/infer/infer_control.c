/* Inference of calls and control flow. */
#include "infer.h"

int ir_infer_call(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  assert(op->n_called >= 1);
  const char *role = op->opcode == IR_OP_FUSION ? "calls" : "to_apply";
  TRY(ir_check_args(role, op->called[0], op, 0, op->n_operands, err));
  *out = ir_result_type(op->called[0]);
  return 0;
}

/* called is {condition, body}. */
int ir_infer_while(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  assert(op->n_called >= 2);
  const ir_computation *condition = op->called[0], *body = op->called[1];
  const ir_type *init = ir_operand_type(op, 0);
  TRY(ir_check_args("condition", condition, op, 0, 1, err));
  TRY(ir_check_args("body", body, op, 0, 1, err));
  if (!ir_is_scalar_of(ir_result_type(condition), XLAC_PRED))
    return base_fail(err, XLAC_E_VERIFY_CALLED, "condition of while must give a pred, but gives %s",
                     IR_SHOW(ir_result_type(condition)));
  if (!ir_compatible(ir_result_type(body), init))
    return base_fail(err, XLAC_E_VERIFY_CALLED, "body of while must give its state %s, but gives %s", IR_SHOW(init),
                     IR_SHOW(ir_result_type(body)));
  *out = init;
  return 0;
}

/* --- conditional --- */

typedef struct type_pair {
  const ir_type *a, *b;
} type_pair;

static ir_element_fn merge_element;

/* a with every dimension dynamic that is so in a or b, which are compatible. IR_MAX_TYPE_DEPTH bounds the recursion. */
static int merge_dynamic(ir_module *m, const ir_type *a, const ir_type *b, const ir_type **out, xlac_error *err) {
  assert(a->kind == b->kind && a->n_elements == b->n_elements);
  *out = a;
  if (!b->has_dynamic || a == b) return 0;
  if (ir_is_tuple(a)) return ir_infer_tuple_from(m, a->n_elements, merge_element, &(type_pair){a, b}, out, err);
  if (!ir_is_tensor(a)) return 0;
  ir_dims d;
  ir_dims_of(&d, a);
  for (uint32_t i = 0; i < a->rank; i++) d.dynamic[i] = d.dynamic[i] || ir_dim_is_dynamic(b, i);
  return ir_dims_tensor_in(m, a->dtype, &d, a->layout, out, err);
}

static int merge_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  const type_pair *p = ctx;
  return merge_dynamic(m, p->a->elements[i], p->b->elements[i], out, err);
}

static int check_branch_index(const ir_op *op, xlac_error *err) {
  TRY(ir_check_at_least(op, 1, err));
  const ir_type *index = ir_operand_type(op, 0);
  bool is_pred = ir_is_scalar_of(index, XLAC_PRED);
  if (!is_pred && !ir_is_scalar_of(index, XLAC_S32))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "conditional chooses by a scalar pred or s32, but got %s",
                     IR_SHOW(index));
  if (op->n_called == 0 || (is_pred && op->n_called != 2))
    return base_fail(err, XLAC_E_VERIFY_CALLED, "conditional by a %s has %u branches", is_pred ? "pred" : "s32",
                     op->n_called);
  if (op->n_operands == op->n_called + 1) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "conditional with %u branches takes %u operands, but has %u",
                   op->n_called, op->n_called + 1, op->n_operands);
}

int ir_infer_conditional(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(check_branch_index(op, err));
  const ir_type *result = ir_result_type(op->called[0]);
  for (uint32_t i = 0; i < op->n_called; i++) {
    const ir_type *branch = ir_result_type(op->called[i]);
    TRY(ir_check_args("branch", op->called[i], op, i + 1, 1, err));
    if (!ir_compatible(ir_result_type(op->called[0]), branch))
      return base_fail(err, XLAC_E_VERIFY_CALLED, "the branches of conditional must give one type, but give %s and %s",
                       IR_SHOW(ir_result_type(op->called[0])), IR_SHOW(branch));
    TRY(merge_dynamic(m, result, branch, &result, err));
  }
  *out = result;
  return 0;
}
