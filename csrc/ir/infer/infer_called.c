/* Inference of ops that call computations: sort, map, scan, calls, control flow; and of topk, sort's relative.
 * Signatures are checked here as XLA's ShapeInference does; what its verifier asks beyond that is in verify_called.c.
 */
#include "infer.h"

/* Operands are sorted together, by the comparator over all of them: each keeps its type. */
int ir_infer_sort(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_at_least(op, 1, err));
  TRY(ir_check_all_tensors(op, err));
  const ir_type *first = ir_operand_type(op, 0);
  for (uint32_t i = 1; i < op->n_operands; i++)
    if (!ir_same_dims(first, ir_operand_type(op, i)))
      return base_fail(err, XLAC_E_INFER, "the operands of sort must have the same dimensions, but are %s and %s",
                       IR_SHOW(first), IR_SHOW(ir_operand_type(op, i)));
  return ir_infer_operands(m, op, out, err);
}

/* (values, s32 indices), both with k in place of the last dimension. k = 0 is allowed. */
int ir_infer_topk(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t, *elements[2];
  TRY(ir_check_tensor(op, 0, &t, err));
  int64_t k = ir_get_int(op, IR_ATTR_K, -1);
  if (t->rank == 0 || k < 0 || (t->dims[t->rank - 1] != IR_UNBOUNDED && k > t->dims[t->rank - 1]))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "k is %lld, but must be from 0 to the size of the last dimension of %s", (long long)k, IR_SHOW(t));
  ir_dims d;
  ir_dims_of(&d, t);
  d.size[t->rank - 1] = k;
  d.dynamic[t->rank - 1] = false;
  TRY(ir_dims_tensor(m, t->dtype, &d, &elements[0], err));
  TRY(ir_dims_tensor(m, XLAC_S32, &d, &elements[1], err));
  return ir_infer_tuple_of(m, 2, elements, out, err);
}

/* --- map --- */

/* The operand whose dimensions the result gets: all have the same, or are scalars of its element type. */
static int mapped_operand(const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_at_least(op, 1, err));
  TRY(ir_check_all_tensors(op, err));
  const ir_type *full = ir_operand_type(op, 0);
  for (uint32_t i = 1; i < op->n_operands; i++) {
    const ir_type *t = ir_operand_type(op, i);
    if (ir_same_dims(t, full)) continue;
    bool scalar = ir_same_dtype_or_float(t->dtype, full->dtype) && (ir_is_scalar(t) || ir_is_scalar(full));
    if (!scalar)
      return base_fail(err, XLAC_E_INFER, "the operands of map must have the same dimensions, but are %s and %s",
                       IR_SHOW(full), IR_SHOW(t));
    if (ir_is_scalar(full)) full = t;
  }
  *out = full;
  return 0;
}

/* One scalar for each operand; float types may differ from the operand's. */
static int check_mapped(const ir_op *op, const ir_computation *c, xlac_error *err) {
  assert(c);
  TRY(ir_check_param_count("to_apply", c, op->n_operands, err));
  if (!ir_is_scalar(ir_result_type(c)))
    return base_fail(err, XLAC_E_VERIFY_CALLED, "to_apply must give a scalar, but gives %s",
                     IR_SHOW(ir_result_type(c)));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *p = ir_param_type(c, i), *t = ir_operand_type(op, i);
    if (!ir_is_scalar(p) || !ir_same_dtype_or_float(p->dtype, t->dtype))
      return base_fail(err, XLAC_E_VERIFY_CALLED, "parameter %u of to_apply must be a scalar of %s, but is %s", i,
                       base_dtype_of(t->dtype)->text, IR_SHOW(p));
  }
  return 0;
}

/* Any list of dimensions but the trivial one is refused, as in XLA. */
int ir_infer_map(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *full = NULL;
  TRY(mapped_operand(op, &full, err));
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  bool all = dims->n == 0 || dims->n == full->rank; /* none stands for all */
  for (uint32_t i = 0; all && i < dims->n; i++) all = dims->v[i] == i;
  if (!all)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "map's dimensions must be none or 0 to %d in order, but are %s",
                     (int)full->rank - 1, IR_SHOW_INTS(dims->n, dims->v));
  TRY(check_mapped(op, op->called[0], err));
  ir_dims d;
  ir_dims_of(&d, full);
  return ir_dims_tensor(m, ir_result_type(op->called[0])->dtype, &d, out, err);
}

/* --- scan --- */

/* t with a dimension of `size` put in at `at`; the layout stays default, as scan is declared in full. */
static int stacked(ir_module *m, const ir_type *t, int64_t at, int64_t size, const ir_type **out, xlac_error *err) {
  assert(at >= 0);
  if (!ir_is_tensor(t) || at > (int64_t)t->rank)
    return base_fail(err, XLAC_E_VERIFY_CALLED, "scan stacks a result along dimension %lld, but it is %s",
                     (long long)at, IR_SHOW(t));
  ir_dims d = {.rank = 0};
  for (uint32_t i = 0; i <= t->rank; i++) {
    if ((int64_t)i == at) TRY(ir_dims_push(&d, size, size == IR_UNBOUNDED, err));
    if (i < t->rank) TRY(ir_dims_push(&d, t->dims[i], ir_dim_is_dynamic(t, i), err));
  }
  return ir_dims_tensor(m, t->dtype, &d, out, err);
}

typedef struct scan_shape {
  const ir_type *root;
  uint32_t n_outputs;
  int64_t at, size;
} scan_shape;

/* Results are the stacked outputs, then the final carries. */
static int scan_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  const scan_shape *s = ctx;
  *out = ir_is_tuple(s->root) ? s->root->elements[i] : s->root;
  return i < s->n_outputs ? stacked(m, *out, s->at, s->size, out, err) : 0;
}

/* (inputs..., initial carries...) gives (stacked outputs..., final carries...): a computation of (f32[4], f32[]) ->
 * (f32[4], f32[]) over f32[10,4] gives (f32[10,4], f32[]). */
int ir_infer_scan(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  assert(op->n_called >= 1);
  const ir_computation *c = op->called[0];
  const ir_type *root = ir_result_type(c), *first;
  uint32_t n_results = ir_is_tuple(root) ? root->n_elements : 1;
  int64_t carries = ir_get_int(op, IR_ATTR_NUM_CARRIES, 0), at;
  TRY(ir_check_param_count("to_apply", c, op->n_operands, err));
  if (carries < 0 || carries >= (int64_t)op->n_operands || carries > (int64_t)n_results)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "num_carries is %lld, but scan has %u operands, of which one at least is no "
                     "carry, and its computation %u results",
                     (long long)carries, op->n_operands, n_results);
  TRY(ir_check_tensor(op, 0, &first, err));
  TRY(ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), first->rank, &at, err));
  scan_shape s = {root, n_results - (uint32_t)carries, at, first->dims[at]};
  return ir_is_tuple(root) ? ir_infer_tuple_from(m, n_results, scan_element, &s, out, err)
                           : scan_element(m, &s, 0, out, err);
}

/* A fusion is a call in all but name. */
int ir_infer_call(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  assert(op->n_called >= 1);
  const char *role = op->opcode == IR_OP_FUSION ? "calls" : "to_apply";
  TRY(ir_check_args(role, op->called[0], op, 0, op->n_operands, err));
  *out = ir_result_type(op->called[0]);
  return 0;
}

/* called is {condition, body}. The state's type is the initial value's: the body's may differ in layout and dynamic
 * dimensions. */
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

/* ctx is a type_pair; merge_dynamic and this call each other down the tuple. */
static int merge_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  const type_pair *p = ctx;
  return merge_dynamic(m, p->a->elements[i], p->b->elements[i], out, err);
}

/* A pred chooses branch 0 when true, an s32 its branch by number. */
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

/* Operand i + 1 is branch i's argument. A dimension that is dynamic in one branch is so in the result. */
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
