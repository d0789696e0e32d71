/* Making ops of the target. */
#include "from_hlo.h"

ir_op *from_hlo_emit_n(from_hlo_op *x, ir_opcode opcode, uint32_t n_results, const ir_type *const *types, uint32_t n,
                       const ir_value *operands, uint32_t n_called) {
  from_hlo *t = x->t;
  if (t->n_made >= t->max_made || n_results > UINT16_MAX) {
    t->n_made = t->max_made;
    return NULL;
  }
  t->n_made++;
  const base_istr *name = ir_intern(t->to, x->op->name->s, x->op->name->n);
  ir_op *op = name ? ir_op_new_n(x->into, opcode, n_results, types, name, n, n_called) : NULL;
  if (!op) return NULL;
  for (uint32_t i = 0; i < n; i++) ir_set_operand(op, i, operands[i]);
  op->line = x->op->line;
  op->col = x->op->col;
  op->loc = from_hlo_location(t, x->op);
  return op;
}

ir_op *from_hlo_emit(from_hlo_op *x, ir_opcode opcode, const ir_type *type, uint32_t n, const ir_value *operands) {
  return from_hlo_emit_n(x, opcode, 1, &type, n, operands, 0);
}

int from_hlo_make(from_hlo_op *x, ir_opcode opcode, uint32_t n, const ir_value *operands, uint32_t n_called,
                  ir_op **out) {
  uint32_t n_results;
  const ir_type **types;
  TRY(from_hlo_leaf_types(x->t, x->op, x->type, &n_results, &types));
  *out = from_hlo_emit_n(x, opcode, n_results, types, n, operands, n_called);
  return *out ? from_hlo_common(x, *out) : from_hlo_no_memory(x->t);
}

int from_hlo_done(from_hlo_op *x, ir_op *made) {
  ir_value *leaves = BASE_ARRAY(&x->t->to->arena, ir_value, made->n_results + 1u);
  uint32_t at = 0;
  if (!leaves) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < made->n_results; i++) leaves[i] = (ir_value){made, i};
  return from_hlo_build(x->t, x->type, leaves, &at, &x->result);
}

int from_hlo_operands(from_hlo_op *x, ir_value **out) {
  *out = BASE_ARRAY(&x->t->to->arena, ir_value, x->op->n_operands + 1u);
  if (!*out) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < x->op->n_operands; i++) TRY(from_hlo_whole(x, x->operands[i], &(*out)[i]));
  return 0;
}

int from_hlo_put(from_hlo_op *x, ir_op *made, const char *name, const ir_mattr *value) {
  return value && ir_m_set(made, name, value) ? 0 : from_hlo_no_memory(x->t);
}

int from_hlo_splat(from_hlo_op *x, const ir_type *type, double number, ir_value *out) {
  ir_module *m = x->t->to;
  const ir_type *scalar = ir_tensor(m, (base_dtype)type->dtype, 0, NULL, NULL, NULL, NULL);
  ir_literal *l = scalar ? ir_literal_new(m, scalar) : NULL;
  ir_op *made = l ? from_hlo_emit(x, IR_OP_CONSTANT, type, 0, NULL) : NULL;
  if (!made) return from_hlo_no_memory(x->t);
  base_store_f64((base_dtype)type->dtype, l->data, number);
  *out = (ir_value){made, 0};
  return from_hlo_put(x, made, "value", ir_m_dense(m, type, l, true));
}
