/* CHLO's functions by their formulas. */
#include "formula.h"
#include "chlo.h"

ir_value opt_as_type(opt_rewriter *rw, ir_value v, const ir_type *type) {
  return !v.op || opt_type(v) == type ? v : opt_make(rw, IR_OP_CONVERT, type, 1, &v);
}

/* The name with `suffix`, else (unless it is needed) without. */
static const opt_formula *chlo_formula(const char *name, const char *suffix, bool needed) {
  char text[64];
  size_t n = strlen(name), more = strlen(suffix);
  assert(n + more < sizeof text);
  memcpy(text, name, n);
  memcpy(text + n, suffix, more);
  const opt_formula *f = opt_formula_find(text, n + more);
  return f || needed ? f : opt_formula_find(name, n);
}

static const opt_formula *chlo_formula_of(const ir_op *op, base_dtype t) {
  const char *name = ir_opcode_info(op->opcode)->mlir->name + strlen("chlo.");
  if (*name == '_') name++;
  if (base_dtype_is_complex(t)) return chlo_formula(name, "_complex", true);
  return chlo_formula(name, t == XLAC_F64 ? "_f64" : "", false);
}

/* These work on the bits, or lose nothing in a narrow type. */
static bool chlo_keeps_type(unsigned opcode) {
  return opcode == IR_OP_NEXT_AFTER || opcode == IR_OP_SQUARE || opcode == IR_OP_CHLO_TAN || opcode == IR_OP_IS_INF ||
         opcode == IR_OP_IS_POS_INF || opcode == IR_OP_IS_NEG_INF || opcode == IR_OP_MULHI;
}

/* Whether the function is defined for the element type. */
static bool chlo_takes(unsigned opcode, base_dtype t) {
  unsigned bits = base_dtype_of(t)->bits;
  if (opcode == IR_OP_NEXT_AFTER) return base_dtype_is_float(t) && (bits & (bits - 1)) == 0;
  if (opcode == IR_OP_MULHI) return base_dtype_is_integer(t) && bits > 1;
  return base_dtype_is_float(t) || base_dtype_is_complex(t) || opcode == IR_OP_SQUARE || opcode == IR_OP_CONJ;
}

int opt_chlo_math(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *type = ir_operand_type(op, 0);
  base_dtype t = (base_dtype)type->dtype;
  bool tensor = (type->kind == IR_TYPE_TENSOR || type->kind == IR_TYPE_UNRANKED) && !type->quant && !type->text;
  if (!tensor || !chlo_takes(op->opcode, t)) return 0;
  if (op->opcode == IR_OP_CONJ && !base_dtype_is_complex(t)) {
    opt_replace_one(rw, op, opt_as_type(rw, opt_operand(op, 0), op->type));
    *changed = true;
    return 0;
  }
  bool widen = base_dtype_is_float(t) && base_dtype_of(t)->bits < 32 && !chlo_keeps_type(op->opcode);
  const opt_formula *formula = chlo_formula_of(op, widen ? XLAC_F32 : t);
  if (!formula) return 0;
  ir_value args[2];
  assert(op->n_operands <= 2);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    args[i] = opt_operand(op, i);
    if (widen) args[i] = opt_convert(rw, args[i], XLAC_F32);
  }
  ir_value v = opt_formula_apply(rw, formula, op->n_operands, args);
  if (widen) v = opt_convert(rw, v, t);
  v = opt_as_type(rw, v, op->type);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}
