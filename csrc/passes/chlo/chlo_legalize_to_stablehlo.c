/* chlo-legalize-to-stablehlo: CHLO's ops become StableHLO's.
 * Requires: nothing. Preserves: all other ops. An op that has no form in StableHLO (unranked broadcasts, element types
 * that a function is not defined for) is an error at that op. */
#include "chlo.h"

static const opt_pattern chlo_patterns[] = {
#define MATH(op) {IR_OP_##op, opt_chlo_math},
    MATH(ACOS) MATH(ACOSH) MATH(ASIN) MATH(ASINH) MATH(ATAN) MATH(ATANH) MATH(COSH) MATH(SINH) MATH(CHLO_TAN) MATH(ERF)
        MATH(ERFC) MATH(ERF_INV) MATH(LGAMMA) MATH(DIGAMMA) MATH(POLYGAMMA) MATH(ZETA) MATH(BESSEL_I1E) MATH(NEXT_AFTER)
            MATH(CONJ) MATH(IS_INF) MATH(IS_POS_INF) MATH(IS_NEG_INF) MATH(SQUARE) MATH(ASIN_ACOS_KERNEL) MATH(MULHI)
#undef MATH
#define BROADCAST(op) {IR_OP_CHLO_BROADCAST_##op, opt_chlo_broadcast},
                BROADCAST(ADD) BROADCAST(AND) BROADCAST(ATAN2) BROADCAST(COMPARE) BROADCAST(COMPLEX) BROADCAST(DIVIDE)
                    BROADCAST(MAXIMUM) BROADCAST(MINIMUM) BROADCAST(MULTIPLY) BROADCAST(NEXT_AFTER) BROADCAST(OR)
                        BROADCAST(POLYGAMMA) BROADCAST(POWER) BROADCAST(REMAINDER) BROADCAST(SELECT)
                            BROADCAST(SHIFT_LEFT) BROADCAST(SHIFT_RIGHT_ARITHMETIC) BROADCAST(SHIFT_RIGHT_LOGICAL)
                                BROADCAST(SUBTRACT) BROADCAST(XOR) BROADCAST(ZETA)
#undef BROADCAST
                                    {IR_OP_CHLO_CONSTANT, opt_chlo_constant},
    {IR_OP_CONSTANT_LIKE, opt_chlo_constant_like},
    {IR_OP_TOPK, opt_chlo_top_k},
    {IR_OP_SCAN, opt_chlo_scan},
    {IR_OP_RAGGED_DOT, opt_chlo_ragged_dot},
};

enum { CHLO_PATTERNS = sizeof chlo_patterns / sizeof chlo_patterns[0] };

bool opt_chlo_is_not_in_hlo(const ir_op *op) {
  if (ir_opcode_has(op->opcode, IR_MLIR_ONLY)) return true;
  return ir_opcode_has(op->opcode, IR_NEWER);
}

static int chlo_without_hlo(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!opt_chlo_is_not_in_hlo(op)) return 0;
  for (uint32_t i = 0; i < CHLO_PATTERNS; i++)
    if (chlo_patterns[i].opcode == op->opcode) return chlo_patterns[i].fn(rw, op, changed);
  return 0;
}

/* Ops that only broadcast their operands, and constants. */
bool opt_chlo_is_exact(const ir_op *op) {
  if (!ir_opcode_has(op->opcode, IR_MLIR_ONLY) || ir_opcode_has(op->opcode, IR_ELEMENTWISE)) return false;
  for (uint32_t i = 0; i < CHLO_PATTERNS; i++)
    if (chlo_patterns[i].opcode == op->opcode) return true;
  return false;
}

static int chlo_exactly(opt_rewriter *rw, ir_op *op, bool *changed) {
  return opt_chlo_is_exact(op) ? chlo_without_hlo(rw, op, changed) : 0;
}

/* The first op in text order that should have gone. */
static int chlo_check(const opt_rewriter *rw, opt_chlo_set set) {
  IR_FOR_COMPUTATIONS(c, rw->m) {
    IR_FOR_OPS(op, c) {
      const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
      const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : mlir ? mlir->name : "";
      if (strncmp(name, "chlo.", 5) != 0 || (set != OPT_CHLO_ALL && !opt_chlo_is_not_in_hlo(op))) continue;
      return opt_rewrite_fail(rw, op, XLAC_E_LEGALIZE,
                              "failed to legalize operation '%s': StableHLO has no form of it for these types", name);
    }
  }
  return 0;
}

int opt_legalize_chlo(ir_module *m, opt_chlo_set set, xlac_error *err) {
  static const opt_pattern native[] = {{IR_OP_INVALID, chlo_without_hlo}}, exact[] = {{IR_OP_INVALID, chlo_exactly}};
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = set == OPT_CHLO_ALL ? opt_rewrite(&rw, CHLO_PATTERNS, chlo_patterns)
                                   : opt_rewrite(&rw, 1, set == OPT_CHLO_EXACT ? exact : native);
  if (status == 0 && set != OPT_CHLO_EXACT) status = chlo_check(&rw, set);
  opt_rewriter_free(&rw);
  return status;
}

int opt_chlo_legalize(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return opt_legalize_chlo(m, OPT_CHLO_ALL, err);
}
