/* Inference of ops with windows: reduce, reduce-window, select-and-scatter, convolution.
 *
 * A window slides over the padded, dilated operand: size 3, stride 2 over 8 elements with padding 1_1 has (8 + 2 - 3)
 * / 2 + 1 = 4 places. Dilation d puts d - 1 holes between neighbours, of the operand (base, lhs_dilate) or of the
 * window (rhs_dilate). Sizes go through checked arithmetic: a user's padding may be any int64. */
#include "infer.h"

/* Elements with dilation - 1 holes between neighbours. No elements stay no elements. False on overflow. */
static bool dilate(int64_t size, int64_t dilation, int64_t *out) {
  *out = 0;
  return size == 0 || (base_mul_i64(size - 1, dilation, out) && base_add_i64(*out, 1, out));
}

/* Negative padding crops; cropping more than there is is an error, a window larger than what is left has no place. */
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

/* Dynamic dimensions stay dynamic, with the bound's number of places. */
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

/* ctx is a `reduced`. */
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

/* Results take the initial values' element types. */
int ir_infer_reduce_window(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  reduced r = {.op = op, .as_reducer = false};
  TRY(check_window_inputs(op, &r.n, err));
  TRY(check_op_reducer(m, op, r.n, err));
  TRY(ir_infer_window(ir_operand_type(op, 0), ir_get_window(op), &r.dims, err));
  return reduced_type(m, &r, out, err);
}

/* Results take the reducer's element types, and the dimensions that are not reduced. */
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

/* (a, b) -> pred over the operand's elements. */
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

/* (operand, source, init): source has an element for each place of the window, and the result the operand's type. */
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

/* --- convolution ---
 *
 * Two special dimensions and the spatial ones name each of the rank's dimensions once. */
static int check_conv_labels(const char *what, int64_t a, int64_t b, const int64_t *spatial, uint32_t n,
                             xlac_error *err) {
  if (n > IR_MAX_RANK - 2) return base_fail(err, XLAC_E_TOO_LARGE, "dim_labels has %u spatial dimensions", n);
  int64_t all[IR_MAX_RANK];
  all[0] = a;
  all[1] = b;
  for (uint32_t i = 0; i < n; i++) all[2 + i] = spatial[i];
  return ir_check_permutation(what, n + 2, all, n + 2, err);
}

/* dim_labels=b01f_01io->b01f: input, kernel and output each. */
static int check_conv_dims(const ir_conv_dims *n, const ir_type *lhs, const ir_type *rhs, xlac_error *err) {
  TRY(check_conv_labels("dim_labels of the input", n->input_batch, n->input_feature, n->input_spatial, n->n_spatial,
                        err));
  TRY(check_conv_labels("dim_labels of the kernel", n->kernel_input_feature, n->kernel_output_feature,
                        n->kernel_spatial, n->n_spatial, err));
  TRY(check_conv_labels("dim_labels of the output", n->output_batch, n->output_feature, n->output_spatial, n->n_spatial,
                        err));
  if (lhs->rank == n->n_spatial + 2 && rhs->rank == n->n_spatial + 2) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "dim_labels is for operands of rank %u, but got %s and %s",
                   n->n_spatial + 2, IR_SHOW(lhs), IR_SHOW(rhs));
}

/* feature_group_count cuts features into independent convolutions, batch_group_count the batch. */
typedef struct conv_groups {
  int64_t feature, batch;
} conv_groups;

/* XLA allows one of the two at a time. */
static int check_conv_groups(conv_groups g, xlac_error *err) {
  if (g.feature <= 0 || g.batch <= 0)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "feature_group_count (%lld) and batch_group_count (%lld) must be positive", (long long)g.feature,
                     (long long)g.batch);
  if (g.feature > 1 && g.batch > 1)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "feature_group_count (%lld) and batch_group_count (%lld) can't both be above 1",
                     (long long)g.feature, (long long)g.batch);
  return 0;
}

/* Of an unknown size only 1 is sure to be a divisor. */
static bool divides(int64_t count, int64_t size) {
  assert(count > 0);
  return size == IR_UNBOUNDED ? count == 1 : size % count == 0;
}

/* A group's input features are the kernel's; output features are dealt out to the groups. */
static int check_conv_sizes(const ir_conv_dims *n, conv_groups g, const ir_type *lhs, const ir_type *rhs,
                            xlac_error *err) {
  int64_t in = lhs->dims[n->input_feature], batch = lhs->dims[n->input_batch];
  int64_t kernel_in = rhs->dims[n->kernel_input_feature], kernel_out = rhs->dims[n->kernel_output_feature];
  if (!divides(g.batch, kernel_out) || !divides(g.batch, batch))
    return base_fail(err, XLAC_E_INFER,
                     "batch_group_count %lld must divide the batch size of %s and the output features of %s",
                     (long long)g.batch, IR_SHOW(lhs), IR_SHOW(rhs));
  bool fits =
      in == IR_UNBOUNDED ? kernel_in == in && g.feature == 1 : in % g.feature == 0 && in / g.feature == kernel_in;
  if (!fits || !divides(g.feature, kernel_out))
    return base_fail(err, XLAC_E_INFER,
                     "the input features of %s must be those of the kernel %s times feature_group_count %lld, "
                     "which must divide the output features",
                     IR_SHOW(lhs), IR_SHOW(rhs), (long long)g.feature);
  return 0;
}

/* The window's size repeats the kernel's. */
static int conv_spatial(const ir_conv_dims *n, uint32_t i, const ir_window_dim *w, const ir_type *lhs,
                        const ir_type *rhs, ir_dims *d, xlac_error *err) {
  uint32_t in = (uint32_t)n->input_spatial[i], kernel = (uint32_t)n->kernel_spatial[i],
           to = (uint32_t)n->output_spatial[i];
  if (rhs->dims[kernel] != w->size)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "window size %lld in dimension %u is not the size of the kernel %s",
                     (long long)w->size, i, IR_SHOW(rhs));
  TRY(ir_infer_window_size(w, lhs->dims[in], &d->size[to], err));
  d->dynamic[to] = ir_dim_is_dynamic(lhs, in) || ir_dim_is_dynamic(rhs, kernel);
  return 0;
}

/* XLA's InferConvolveShape. */
int ir_infer_convolution(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  const ir_conv_dims *n = ir_get_conv_dims(op);
  if (!n) return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "convolution needs the attribute dim_labels");
  conv_groups g = {ir_get_int(op, IR_ATTR_FEATURE_GROUP_COUNT, 1), ir_get_int(op, IR_ATTR_BATCH_GROUP_COUNT, 1)};
  const ir_window *w = ir_get_window(op);
  TRY(check_conv_groups(g, err));
  TRY(ir_check_kernel_window(w, n->n_spatial, err));
  TRY(check_conv_dims(n, lhs, rhs, err));
  TRY(check_conv_sizes(n, g, lhs, rhs, err));
  if (ir_dim_is_dynamic(rhs, (uint32_t)n->kernel_output_feature))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "the output features of a kernel can't be dynamic, but it is %s",
                     IR_SHOW(rhs));
  ir_dims d = {.rank = lhs->rank};
  int64_t batch = lhs->dims[n->input_batch];
  d.size[n->output_batch] = batch == IR_UNBOUNDED ? batch : batch / g.batch;
  d.dynamic[n->output_batch] = ir_dim_is_dynamic(lhs, (uint32_t)n->input_batch);
  d.size[n->output_feature] = rhs->dims[n->kernel_output_feature];
  for (uint32_t i = 0; i < n->n_spatial; i++) TRY(conv_spatial(n, i, &w->v[i], lhs, rhs, &d, err));
  base_dtype dtype;
  TRY(ir_infer_precision(lhs->dtype, rhs->dtype, &dtype, err));
  return ir_dims_tensor(m, dtype, &d, out, err);
}
