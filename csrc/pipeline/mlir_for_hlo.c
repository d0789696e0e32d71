/* The passes that come before the translation to HLO. */
#include "for_hlo.h"
#include "pipeline.h"

#include "../ir/stablehlo/stablehlo.h"
#include "../passes/chlo/chlo.h"
#include "../passes/stablehlo/legalize_deprecated_ops.h"

typedef enum beyond_kind { BEYOND_NOTHING, BEYOND_CHLO, BEYOND_DEPRECATED, BEYOND_DYNAMIC } beyond_kind;

static beyond_kind beyond_kind_of(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_EINSUM:
    case IR_OP_UNARY_EINSUM:
    case IR_OP_TORCH_INDEX_SELECT:
      return BEYOND_DEPRECATED;
    case IR_OP_DYNAMIC_BROADCAST_IN_DIM:
    case IR_OP_DYNAMIC_CONV:
    case IR_OP_DYNAMIC_GATHER:
    case IR_OP_DYNAMIC_IOTA:
    case IR_OP_DYNAMIC_PAD:
    case IR_OP_REAL_DYNAMIC_SLICE:
    case IR_OP_STABLEHLO_DYNAMIC_RESHAPE:
      return BEYOND_DYNAMIC;
    default: {
      const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
      bool chlo = mlir && strncmp(mlir->name, "chlo.", 5) == 0;
      return chlo && opt_chlo_is_not_in_hlo(op) ? BEYOND_CHLO : BEYOND_NOTHING;
    }
  }
}

static bool beyond_has(const ir_module *m, beyond_kind kind) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c)
    if (beyond_kind_of(op) == kind) return true;
  }
  return false;
}

bool opt_is_beyond_hlo(const ir_module *m) {
  if (m->form != IR_FORM_MLIR) return false;
  return beyond_has(m, BEYOND_CHLO) || beyond_has(m, BEYOND_DEPRECATED) || beyond_has(m, BEYOND_DYNAMIC);
}

int opt_expand_for_hlo(ir_module *m, xlac_error *err) {
  static const char canonicalize[] = "stablehlo-canonicalize-dynamism";
  const size_t n = sizeof canonicalize - 1;
  if (beyond_has(m, BEYOND_DEPRECATED)) TRY(opt_legalize_deprecated(m, false, err));
  if (beyond_has(m, BEYOND_CHLO)) TRY(opt_legalize_chlo(m, OPT_CHLO_NOT_IN_HLO, err));
  const opt_pass_info *pass = opt_pass_find(canonicalize, n, IR_FORM_MLIR);
  if (pass && beyond_has(m, BEYOND_DYNAMIC)) TRY(opt_run_pipeline(m, canonicalize, n, NULL, err));
  return 0;
}

int opt_expand_for_executor(ir_module *m, ir_module **out, xlac_error *err) {
  bool any = false;
  *out = NULL;
  if (m->form != IR_FORM_MLIR) return 0;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) any = any || opt_chlo_is_exact(op);
  }
  xlac_error ignored = {.code = 0};
  if (!any || stablehlo_verify(m, &ignored)) return 0; /* what is wrong is said of what it is translated to */
  TRY(ir_module_clone(out, m, err));
  int status = opt_legalize_chlo(*out, OPT_CHLO_EXACT, err);
  if (status) ir_module_destroy(*out);
  return status;
}
