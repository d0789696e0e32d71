/* CHLO's constants. */
#include "chlo.h"

int opt_chlo_constant(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value v = opt_make(rw, IR_OP_CONSTANT, op->type, 0, NULL);
  opt_set(rw, v, "value", ir_mattr_of(op, "value"));
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* The attribute's number as one element of type t; NULL where it is none. */
static ir_literal *chlo_number(opt_rewriter *rw, const ir_mattr *a, base_dtype t) {
  const ir_type *scalar = opt_tensor(rw, t, 0, NULL);
  ir_literal *l = scalar ? ir_literal_new(rw->m, scalar) : NULL;
  if (!l) {
    rw->failed = true;
    return NULL;
  }
  if (a->kind == IR_M_INTEGER)
    base_store_i64(t, l->data, a->v.i);
  else if (a->kind == IR_M_BOOL)
    base_store_i64(t, l->data, a->v.b);
  else if (a->kind == IR_M_FLOAT)
    base_store_f64(t, l->data, a->v.f);
  else if (a->kind == IR_M_DENSE && a->v.literal && a->v.literal->type->dtype == t && a->v.literal->type->count >= 1)
    memcpy(l->data, a->v.literal->data, base_dtype_bytes(t));
  else
    return NULL;
  return l;
}

int opt_chlo_constant_like(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value like = opt_operand(op, 0);
  const ir_type *type = op->type;
  const ir_mattr *a = ir_mattr_of(op, "value");
  if (!a || !ir_is_tensor(type) || type->quant || type->text || !ir_is_tensor(opt_type(like))) return 0;
  ir_literal *l = chlo_number(rw, a, (base_dtype)type->dtype);
  if (!l) return 0;
  ir_value v;
  if (opt_is_static(type)) {
    v = opt_constant(rw, type, l, true);
  } else {
    v = opt_constant(rw, opt_tensor(rw, (base_dtype)type->dtype, 0, NULL), l, true);
    v = opt_as_type(rw, opt_spread_like(rw, v, like), type);
  }
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}
