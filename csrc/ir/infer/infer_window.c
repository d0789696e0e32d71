/* Window arithmetic, and the ops with windows: reduce-window, select-and-scatter. Convolution is in infer_conv.c. */
#include "infer.h"

/* Elements with dilation - 1 holes between neighbours. */
static bool dilate(int64_t size, int64_t dilation, int64_t *out) {
  *out = 0;
  return size == 0 || (base_mul_i64(size - 1, dilation, out) && base_add_i64(*out, 1, out));
}

int ir_infer_window_size(const ir_window_dim *w, int64_t size, int64_t *out, xlac_error *err) {
  assert((w->size > 0 || w->size == IR_UNBOUNDED) && w->stride > 0 && w->base_dilation > 0 && w->window_dilation > 0);
  *out = IR_UNBOUNDED;
  if (size == IR_UNBOUNDED || w->size == IR_UNBOUNDED) return 0;
  int64_t base, window;
  bool ok = dilate(size, w->base_dilation, &base) && base_add_i64(base, w->padding_low, &base) &&
            base_add_i64(base, w->padding_high, &base) && dilate(w->size, w->window_dilation, &window);
  if (!ok)
    return base_fail(err, XLAC_E_TOO_LARGE, "the padded and dilated size of a window dimension is beyond 2^63 - 1");
  if (base < 0)
    return base_fail(err, XLAC_E_INFER, "padding %lld_%lld crops more than there is of a dimension of size %lld",
                     (long long)w->padding_low, (long long)w->padding_high, (long long)size);
  *out = base == 0 || window > base ? 0 : (base - window) / w->stride + 1;
  return 0;
}

int ir_infer_window(const ir_type *t, const ir_window *w, ir_dims *out, xlac_error *err) {
  TRY(ir_check_window(w, t->rank, err));
  out->rank = t->rank;
  for (uint32_t i = 0; i < t->rank; i++) {
    TRY(ir_infer_window_size(&w->v[i], t->dims[i], &out->size[i], err));
    out->dynamic[i] = ir_dim_is_dynamic(t, i);
  }
  return 0;
}

/* --- reduce-window --- */

/* Operands are n inputs of the same dimensions and n initial values; says n. */
static int check_window_inputs(const ir_op *op, uint32_t *n, xlac_error *err) {
  if (op->n_operands == 0 || op->n_operands % 2)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes as many initial values as inputs, but has %u operands",
                     ir_opcode_text(op->opcode), op->n_operands);
  TRY(ir_check_all_tensors(op, err));
  *n = op->n_operands / 2;
  const ir_type *first = ir_operand_type(op, 0);
  for (uint32_t i = 1; i < *n; i++)
    if (!ir_same_dims(first, ir_operand_type(op, i)))
      return base_fail(err, XLAC_E_INFER, "the inputs of %s must have the same dimensions, but are %s and %s",
                       ir_opcode_text(op->opcode), IR_SHOW(first), IR_SHOW(ir_operand_type(op, i)));
  return 0;
}

/* Runs the reducer check with scratch for n element types each; a scratch beyond the stack's comes from the heap. */
static int check_op_reducer(ir_module *m, const ir_op *op, uint32_t n, xlac_error *err) {
  assert(n > 0 && op->n_operands == 2 * n);
  base_dtype few[32];
  base_dtype *types = n <= 16 ? few : base_malloc(m->alloc, (size_t)n * 2 * sizeof *types);
  if (!types) return base_oom(err, "a reducer's types");
  for (uint32_t i = 0; i < n; i++) {
    types[i] = ir_operand_type(op, n + i)->dtype;
    types[n + i] = ir_operand_type(op, i)->dtype;
  }
  int status = 0;
  for (uint32_t i = 0; i < n && status == 0; i++)
    if (!ir_is_scalar(ir_operand_type(op, n + i)))
      status = base_fail(err, XLAC_E_VERIFY_OPERANDS, "initial value %u of %s must be a scalar, but is %s", i,
                         ir_opcode_text(op->opcode), IR_SHOW(ir_operand_type(op, n + i)));
  if (status == 0) status = ir_check_reducer("to_apply", op->called[0], n, types, types + n, err);
  if (types != few) base_free(m->alloc, types);
  return status;
}

/* Results have these dimensions, and element types from the initial values or from the reducer. */
typedef struct reduced {
  const ir_op *op;
  uint32_t n;
  ir_dims dims;
  bool as_reducer;
} reduced;

static int reduced_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  assert(i < ((const reduced *)ctx)->n);
  const reduced *r = ctx;
  base_dtype dtype = r->as_reducer ? ir_reducer_dtype(r->op->called[0], i) : ir_operand_type(r->op, r->n + i)->dtype;
  return ir_dims_tensor(m, dtype, &r->dims, out, err);
}

/* A tuple where the reducer gives one. */
static int reduced_type(ir_module *m, const reduced *r, const ir_type **out, xlac_error *err) {
  if (!ir_is_tuple(ir_result_type(r->op->called[0]))) return reduced_element(m, r, 0, out, err);
  return ir_infer_tuple_from(m, r->n, reduced_element, r, out, err);
}

int ir_infer_reduce_window(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  reduced r = {.op = op, .as_reducer = false};
  TRY(check_window_inputs(op, &r.n, err));
  TRY(check_op_reducer(m, op, r.n, err));
  TRY(ir_infer_window(ir_operand_type(op, 0), ir_get_window(op), &r.dims, err));
  return reduced_type(m, &r, out, err);
}

int ir_infer_reduce(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  reduced r = {.op = op, .as_reducer = true};
  TRY(check_window_inputs(op, &r.n, err));
  const ir_type *first = ir_operand_type(op, 0);
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  TRY(ir_check_dims_set("dimensions", dims, NULL, first->rank, err));
  TRY(check_op_reducer(m, op, r.n, err));
  for (uint32_t i = 0; i < first->rank; i++)
    if (!ir_ints_has(dims, i)) TRY(ir_dims_push(&r.dims, first->dims[i], ir_dim_is_dynamic(first, i), err));
  return reduced_type(m, &r, out, err);
}

/* --- select-and-scatter --- */

static int check_select(const ir_computation *c, const ir_type *operand, xlac_error *err) {
  TRY(ir_check_param_count("select", c, 2, err));
  if (!ir_is_scalar_of(ir_result_type(c), XLAC_PRED))
    return base_fail(err, XLAC_E_VERIFY_CALLED, "select must give a pred, but gives %s", IR_SHOW(ir_result_type(c)));
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *p = ir_param_type(c, i);
    if (!ir_is_scalar(p) || !ir_same_dtype_or_float(p->dtype, operand->dtype))
      return base_fail(err, XLAC_E_VERIFY_CALLED, "parameter %u of select must be a scalar of %s, but is %s", i,
                       base_dtype_of(operand->dtype)->text, IR_SHOW(p));
  }
  return 0;
}

int ir_infer_select_and_scatter(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *operand, *source, *init;
  TRY(ir_check_tensor(op, 0, &operand, err));
  TRY(ir_check_tensor(op, 1, &source, err));
  TRY(ir_check_tensor(op, 2, &init, err));
  TRY(check_select(op->called[0], operand, err));
  if (!ir_is_scalar(init))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "the initial value must be a scalar, but is %s", IR_SHOW(init));
  base_dtype init_dtype = init->dtype, source_dtype = source->dtype;
  TRY(ir_check_reducer("scatter", op->called[1], 1, &init_dtype, &source_dtype, err));
  ir_dims d;
  TRY(ir_infer_window(operand, ir_get_window(op), &d, err));
  bool fits = d.rank == source->rank && ir_same_dtype_or_float(source->dtype, operand->dtype);
  for (uint32_t i = 0; fits && i < d.rank; i++) fits = ir_sizes_fit(d.size[i], source->dims[i]);
  if (!fits)
    return base_fail(err, XLAC_E_INFER, "source must be %s with dimensions %s, one element per window, but is %s",
                     base_dtype_of(operand->dtype)->text, IR_SHOW_INTS(d.rank, d.size), IR_SHOW(source));
  *out = operand;
  return 0;
}
