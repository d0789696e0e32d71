/* stablehlo-complex-math-expander: functions of complex numbers become real ones that are accurate everywhere.
 * Requires: nothing. Preserves: all other ops, and functions that ask for another accuracy than the usual. */
#include "formula.h"

/* Ops that name a tolerance or HIGHEST are left to who knows how to meet it. */
static bool complex_is_usual(const ir_op *op) {
  const ir_mattr *accuracy = ir_mattr_of(op, "result_accuracy");
  if (!accuracy) return true;
  const ir_mattr *mode = ir_m_field(accuracy, "mode");
  return mode && mode->kind == IR_M_ENUM && mode->v.i == IR_ACCURACY_DEFAULT;
}

/* stablehlo.log1p becomes the formula log1p_complex; on floats it stays what it is. */
static int complex_expand(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(op->n_operands == 1);
  const char *name = ir_opcode_info(op->opcode)->mlir->name + strlen("stablehlo.");
  const ir_type *t = ir_operand_type(op, 0);
  bool tensor = t->kind == IR_TYPE_TENSOR || t->kind == IR_TYPE_UNRANKED;
  if (!tensor || !base_dtype_is_complex((base_dtype)t->dtype) || !complex_is_usual(op)) return 0;
  char full[64];
  size_t n = strlen(name), more = strlen("_complex");
  assert(n + more < sizeof full);
  memcpy(full, name, n);
  memcpy(full + n, "_complex", more);
  const opt_formula *formula = opt_formula_find(full, n + more);
  assert(formula);
  ir_value z = opt_operand(op, 0), v = opt_formula_apply(rw, formula, 1, &z);
  if (v.op && opt_type(v) != op->type) v = opt_make(rw, IR_OP_CONVERT, op->type, 1, &v);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* The four functions for which the plain formulas lose accuracy or overflow early. */
int opt_expand_complex_math(ir_module *m, const opt_args *args, xlac_error *err) {
  static const opt_pattern patterns[] = {{IR_OP_EXP, complex_expand},
                                         {IR_OP_LOG, complex_expand},
                                         {IR_OP_LOG1P, complex_expand},
                                         {IR_OP_SQRT, complex_expand}};
  opt_rewriter rw;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, 4, patterns);
  opt_rewriter_free(&rw);
  return status;
}
