/* Ops of HLO form, made one by one. */
#include "hlo_make.h"

/* A reduce has one computation, which the caller sets. */
ir_op *hlo_make(hlo_maker *x, ir_opcode opcode, const ir_type *type, uint32_t n, ir_op *const *operands) {
  assert(x->before != NULL);
  for (uint32_t i = 0; i < n; i++) x->failed = x->failed || !operands[i];
  if (x->failed || !type) return x->failed = true, NULL;
  const base_istr *name = ir_fresh_name(x->m, ir_opcode_text(opcode));
  ir_op *made = name ? ir_op_new(x->before->parent, opcode, type, name, n, opcode == IR_OP_REDUCE) : NULL;
  if (!made) return x->failed = true, NULL;
  for (uint32_t i = 0; i < n; i++) ir_set_operand(made, i, (ir_value){operands[i], 0});
  ir_op_move(made, (ir_op *)(uintptr_t)x->before);
  const ir_attr *metadata = ir_attr_find(x->before, IR_ATTR_METADATA);
  if (metadata && !ir_attr_set(made, *metadata)) x->failed = true;
  return made;
}

ir_op *hlo_unary(hlo_maker *x, ir_opcode opcode, ir_op *a) {
  return hlo_make(x, opcode, a ? a->type : NULL, 1, &a);
}

/* Comparisons, whose results have another type, are not for this. */
ir_op *hlo_binary(hlo_maker *x, ir_opcode opcode, ir_op *a, ir_op *b) {
  return hlo_make(x, opcode, a ? a->type : NULL, 2, (ir_op *[]){a, b});
}

ir_op *hlo_convert(hlo_maker *x, ir_op *a, base_dtype dtype) {
  if (!a || a->type->dtype == dtype) return a;
  return hlo_make(x, IR_OP_CONVERT, ir_type_with_dtype(x->m, a->type, dtype), 1, &a);
}

/* The literal is of the module's arena. */
ir_op *hlo_scalar(hlo_maker *x, base_dtype dtype, double value) {
  const ir_type *t = ir_tensor_default(x->m, dtype, 0, NULL, NULL);
  ir_op *c = hlo_make(x, IR_OP_CONSTANT, t, 0, NULL);
  ir_literal *l = c ? ir_literal_new(x->m, t) : NULL;
  if (!l) return x->failed = true, NULL;
  base_store_f64(dtype, l->data, value);
  ir_set_literal(c, l);
  return c;
}

ir_op *hlo_broadcast(hlo_maker *x, ir_op *a, const ir_type *type, uint32_t n, const int64_t *dims) {
  ir_op *made = hlo_make(x, IR_OP_BROADCAST, type, 1, &a);
  if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, n, dims)) x->failed = true;
  return made;
}

ir_op *hlo_transpose(hlo_maker *x, ir_op *a, const int64_t *permutation) {
  int64_t dims[IR_MAX_RANK];
  uint32_t n = a ? a->type->rank : 0;
  for (uint32_t d = 0; d < n; d++) {
    assert(permutation[d] >= 0 && permutation[d] < n);
    dims[d] = a->type->dims[permutation[d]];
  }
  const ir_type *t = a ? ir_tensor_default(x->m, (base_dtype)a->type->dtype, n, dims, NULL) : NULL;
  ir_op *made = hlo_make(x, IR_OP_TRANSPOSE, t, 1, &a);
  if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, n, permutation)) x->failed = true;
  return made;
}

/* A broadcast, not a literal of that many elements. */
ir_op *hlo_splat(hlo_maker *x, const ir_type *type, double value) {
  ir_op *c = hlo_scalar(x, (base_dtype)type->dtype, value);
  return type->rank ? hlo_broadcast(x, c, type, 0, NULL) : c;
}

static ir_op *hlo_make_parameter(hlo_maker *x, ir_computation *c, const ir_type *t, uint32_t number) {
  const base_istr *name = ir_fresh_name(x->m, "parameter");
  ir_op *p = name ? ir_op_new(c, IR_OP_PARAMETER, t, name, 0, 0) : NULL;
  return p && ir_set_parameter(p, number) ? p : NULL;
}

/* One such computation for each element type and pass. */
static ir_computation *hlo_make_sum(hlo_maker *x, base_dtype dtype) {
  const ir_type *t = ir_tensor_default(x->m, dtype, 0, NULL, NULL);
  const base_istr *name = ir_fresh_name(x->m, "sum"), *add = ir_fresh_name(x->m, "add");
  ir_computation *c = t && name && add ? ir_computation_new(x->m, name->s, name->n) : NULL;
  ir_op *a = c ? hlo_make_parameter(x, c, t, 0) : NULL, *b = a ? hlo_make_parameter(x, c, t, 1) : NULL;
  ir_op *root = b ? ir_op_new(c, IR_OP_ADD, t, add, 2, 0) : NULL;
  if (!root) return NULL;
  ir_set_operand(root, 0, (ir_value){a, 0});
  ir_set_operand(root, 1, (ir_value){b, 0});
  return ir_set_root(c, root) ? c : NULL;
}

/* A reduce with add and 0. */
ir_op *hlo_sum(hlo_maker *x, ir_op *a, const ir_type *type, uint32_t n, const int64_t *dims) {
  ir_op *zero = a ? hlo_scalar(x, (base_dtype)a->type->dtype, 0) : NULL;
  if (zero && !x->sums[a->type->dtype]) x->sums[a->type->dtype] = hlo_make_sum(x, (base_dtype)a->type->dtype);
  if (!zero || !x->sums[a->type->dtype]) return x->failed = true, NULL;
  ir_op *made = hlo_make(x, IR_OP_REDUCE, type, 2, (ir_op *[]){a, zero});
  if (!made) return NULL;
  ir_set_called(made, 0, x->sums[a->type->dtype]);
  if (!ir_set_ints(made, IR_ATTR_DIMENSIONS, n, dims)) x->failed = true;
  return made;
}

/* hlo_make fails for NULL operands, so `tuple` may be one. */
ir_op *hlo_element(hlo_maker *x, ir_op *tuple, uint32_t index) {
  ir_op *made = hlo_make(x, IR_OP_GET_TUPLE_ELEMENT, tuple ? tuple->type->elements[index] : NULL, 1, &tuple);
  if (made && !ir_set_int(made, IR_ATTR_INDEX, index)) x->failed = true;
  return made;
}

ir_op *hlo_tuple(hlo_maker *x, const ir_type *type, ir_op *const *elements) {
  return hlo_make(x, IR_OP_TUPLE, type, type ? type->n_elements : 0, elements);
}

bool hlo_is_plain(const ir_type *t) {
  if (!ir_is_tensor(t) || t->has_dynamic || t->quant || t->text || t->encoding) return false;
  if (t->layout && (t->layout->rank != t->rank || t->layout->n_tiles)) return false;
  for (uint32_t d = 0; t->layout && d < t->rank; d++)
    if (t->layout->minor_to_major[d] != t->rank - 1 - d) return false;
  return true;
}
