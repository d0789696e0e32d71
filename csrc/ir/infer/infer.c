/* Shape inference: the entry, and the pieces that the functions of many opcodes share.
 *
 * For each opcode it is XLA's ShapeInference, error for error: what XLA would refuse is refused, and dynamic
 * dimensions (f32[<=3]) and unbounded ones (f32[?]) go where XLA lets them go. Nothing looks at op->type but where
 * infer_collective.c says so, so the parser may infer a type that the text leaves out. */
#include "infer.h"

/* On failure *out stays as it was. */
int ir_infer(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  assert(m && op && out && op->opcode > IR_OP_INVALID && op->opcode < IR_OP_COUNT);
  const ir_op_info *info = ir_opcode_info(op->opcode);
  const ir_type *t = NULL;
  if (!info->infer || info->infer == ir_infer_none) return ir_check_stamp(op, ir_infer_none(m, op, &t, err), err);
  int status = ir_check_op(op, err);
  if (status == 0) status = info->infer(m, op, &t, err);
  if (status != 0) return ir_check_stamp(op, status, err);
  assert(t);
  *out = t;
  return 0;
}

/* INFER(none) of ops.def: the type has to be declared. */
int ir_infer_none(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  (void)out;
  int status = base_fail(err, XLAC_E_CANNOT_INFER, "the result type of %s does not follow from its operands",
                         ir_opcode_text(op->opcode));
  return base_hint(err, status, "write the result type before the opcode");
}

/* --- dims --- */

void ir_dims_of(ir_dims *d, const ir_type *t) {
  assert(d);
  assert(ir_is_tensor(t) && t->rank <= IR_MAX_RANK);
  d->rank = t->rank;
  for (uint32_t i = 0; i < t->rank; i++) {
    d->size[i] = t->dims[i];
    d->dynamic[i] = ir_dim_is_dynamic(t, i);
  }
}

/* Appends; the rank limit is the user's to exceed, so it is an error and no assert. */
int ir_dims_push(ir_dims *d, int64_t size, bool dynamic, xlac_error *err) {
  assert(d->rank <= IR_MAX_RANK);
  if (d->rank == IR_MAX_RANK)
    return base_fail(err, XLAC_E_TOO_LARGE, "the result would have more than %d dimensions", IR_MAX_RANK);
  d->size[d->rank] = size;
  d->dynamic[d->rank++] = dynamic;
  return 0;
}

/* The status of a maker that gave NULL: what it said, or else that memory ran out. */
static int made(const ir_type *t, const ir_type **out, const xlac_error *said, xlac_error *err) {
  if (!t) {
    if (said->code == 0) return base_oom(err, "a type");
    if (err) *err = *said;
    return -said->code;
  }
  *out = t;
  return 0;
}

/* The only place where dims become a type: negative sizes, which arithmetic on sizes can give, end here. */
int ir_dims_tensor_in(ir_module *m, base_dtype dtype, const ir_dims *d, const ir_layout *layout, const ir_type **out,
                      xlac_error *err) {
  assert(d->rank <= IR_MAX_RANK);
  bool dynamic[IR_MAX_RANK];
  for (uint32_t i = 0; i < d->rank; i++) {
    dynamic[i] = d->dynamic[i] || d->size[i] == IR_UNBOUNDED;
    if (d->size[i] < 0 && d->size[i] != IR_UNBOUNDED)
      return base_fail(err, XLAC_E_INFER, "dimension %u of the result would have the negative size %lld", i,
                       (long long)d->size[i]);
  }
  xlac_error said = {0};
  return made(ir_tensor(m, dtype, d->rank, d->size, dynamic, layout, &said), out, &said, err);
}

int ir_dims_tensor(ir_module *m, base_dtype dtype, const ir_dims *d, const ir_type **out, xlac_error *err) {
  const ir_layout *layout = ir_layout_default(m, d->rank);
  if (!layout) return base_oom(err, "a layout");
  return ir_dims_tensor_in(m, dtype, d, layout, out, err);
}

/* --- types --- */

/* E(4) means nothing for an f32, so the element size leaves the layout with a type that fills bytes. */
int ir_infer_retype(ir_module *m, const ir_type *t, base_dtype dtype, const ir_type **out, xlac_error *err) {
  assert(ir_is_tensor(t));
  bool sub_byte = base_dtype_of(dtype)->bits < 8 && dtype != XLAC_PRED;
  const ir_layout *layout = t->layout;
  if (layout && layout->element_bits && !sub_byte) {
    ir_layout plain = *layout;
    plain.element_bits = 0;
    layout = ir_layout_intern(m, &plain);
    if (!layout) return base_oom(err, "a layout");
  }
  ir_dims d;
  ir_dims_of(&d, t);
  return ir_dims_tensor_in(m, dtype, &d, layout, out, err);
}

int ir_infer_scalar(ir_module *m, base_dtype dtype, const ir_type **out, xlac_error *err) {
  xlac_error said = {0};
  return made(ir_scalar(m, dtype), out, &said, err);
}

int ir_infer_tuple_of(ir_module *m, uint32_t n, const ir_type *const *elements, const ir_type **out, xlac_error *err) {
  assert(elements || n == 0);
  uint64_t leaves = 0;
  for (uint32_t i = 0; i < n; i++) {
    leaves += elements[i]->n_leaves;
    if (elements[i]->depth >= IR_MAX_TYPE_DEPTH)
      return base_fail(err, XLAC_E_TOO_DEEP, "the tuple type would be nested more than %d deep", IR_MAX_TYPE_DEPTH);
  }
  if (leaves > IR_MAX_TYPE_LEAVES)
    return base_fail(err, XLAC_E_TOO_LARGE, "the tuple type would have more than %d leaves", IR_MAX_TYPE_LEAVES);
  xlac_error said = {0};
  return made(ir_tuple(m, n, elements), out, &said, err);
}

/* Short tuples need no memory but the type's own. */
int ir_infer_tuple_from(ir_module *m, uint32_t n, ir_element_fn *element, const void *ctx, const ir_type **out,
                        xlac_error *err) {
  const ir_type *few[16] = {NULL};
  const ir_type **elements = n <= 16 ? few : base_malloc(m->alloc, (size_t)n * sizeof *elements);
  if (!elements) return base_oom(err, "a tuple type");
  int status = 0;
  for (uint32_t i = 0; i < n && status == 0; i++) status = element(m, ctx, i, &elements[i], err);
  if (status == 0) status = ir_infer_tuple_of(m, n, elements, out, err);
  if (elements != few) base_free(m->alloc, elements);
  return status;
}

int ir_infer_operand_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  (void)m;
  (void)err;
  *out = ir_operand_type((const ir_op *)ctx, i);
  return 0;
}

/* INFER(tuple): the tuple of all operands. */
int ir_infer_tuple(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return ir_infer_tuple_from(m, op->n_operands, ir_infer_operand_element, op, out, err);
}

int ir_infer_operands(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  if (op->n_operands != 1) return ir_infer_tuple(m, op, out, err);
  *out = ir_operand_type(op, 0);
  return 0;
}

int ir_infer_precision(base_dtype a, base_dtype b, base_dtype *out, xlac_error *err) {
  assert(out);
  *out = ir_higher_precision(a, b);
  if (*out != BASE_DTYPE_INVALID) return 0;
  return base_fail(err, XLAC_E_INFER, "neither of %s and %s is the more precise element type", base_dtype_of(a)->text,
                   base_dtype_of(b)->text);
}

/* INFER(first): operand 0's type, whatever it is. */
int ir_infer_first(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  TRY(ir_check_at_least(op, 1, err));
  *out = ir_operand_type(op, 0);
  return 0;
}

/* INFER(u32), of replica-id and partition-id. */
int ir_infer_u32(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)op;
  return ir_infer_scalar(m, XLAC_U32, out, err);
}

int ir_infer_token(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)op;
  xlac_error said = {0};
  return made(ir_token(m), out, &said, err);
}

int ir_infer_after_all(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return ir_infer_token(m, op, out, err);
}

/* The one opcode whose attribute selects a type; out of range is the user's error. */
int ir_infer_get_tuple_element(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *t;
  TRY(ir_check_tuple(op, 0, 0, &t, err));
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, -1);
  if (index < 0 || index >= (int64_t)t->n_elements)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "index %lld is out of range for the %u elements of %s",
                     (long long)index, t->n_elements, IR_SHOW(t));
  *out = t->elements[index];
  return 0;
}

/* Of a start's ((operands), result, ...) the result: INFER of first-class dones. */
int ir_infer_tuple_element_1(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *t;
  TRY(ir_check_tuple(op, 0, 2, &t, err));
  *out = t->elements[1];
  return 0;
}

/* infeed: (data, token[]); recv: (data, u32[], token[]). */
static const ir_type *received_type(ir_module *m, const ir_op *op) {
  bool infeed = op->opcode == IR_OP_INFEED;
  const ir_type *token = ir_token(m), *context = infeed ? token : ir_scalar(m, XLAC_U32);
  const ir_type *parts[3] = {op->type->elements[0], context, token};
  return token && context ? ir_tuple(m, infeed ? 2 : 3, parts) : NULL;
}

bool ir_complete_type(ir_module *m, ir_op *op) {
  const ir_type *t = op->type;
  assert(t);
  switch ((ir_opcode)op->opcode) {
    case IR_OP_INFEED:
    case IR_OP_RECV:
      if (ir_is_tuple(t) && t->n_elements > 0) t = received_type(m, op);
      break;
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_AFTER_ALL:
    case IR_OP_OUTFEED:
    case IR_OP_RECV_DONE:
    case IR_OP_SEND:
    case IR_OP_SEND_DONE:
      if (ir_infer(m, op, &t, NULL) != 0) return true;
      break;
    default:
      return true;
  }
  if (t) ir_set_type(op, t);
  return t != NULL;
}
