/* stablehlo-legalize-composite-to-call: composites become calls of the functions that decompose them.
 * Requires: nothing. Preserves: composites whose names are listed in `except`, and those with regions. */
#include "symbols.h"

/* Whether `name` is one of the comma-separated words of `list`. */
static bool composite_is_listed(base_slice list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list.p, *end = list.p + list.n; p < end;) {
    const char *comma = memchr(p, ',', (size_t)(end - p));
    const char *to = comma ? comma : end;
    if ((size_t)(to - p) == n && memcmp(p, name, n) == 0) return true;
    p = to + 1;
  }
  return false;
}

static int composite_to_call(opt_rewriter *rw, ir_op *op) {
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  rw->failed = rw->failed || !values;
  TRY(opt_rewriter_status(rw));
  for (uint32_t i = 0; i < op->n_operands; i++) values[i] = opt_operand(op, i);
  opt_at(rw, op);
  ir_op *call = opt_make_n(rw, IR_OP_CALL, op->n_results, op->types, op->n_operands, values, 0);
  opt_set(rw, (ir_value){call, 0}, "callee", ir_mattr_of(op, "decomposition"));
  for (uint32_t i = 0; call && i < op->n_results; i++) values[i] = (ir_value){call, i};
  if (call) opt_replace_op(rw, op, values);
  return opt_rewriter_status(rw);
}

int opt_composite_to_call(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  base_slice except = opt_get_text(args, "except");
  TRY(opt_rewriter_init(&rw, m, err));
  int status = 0;
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (op->opcode != IR_OP_COMPOSITE || op->n_called) continue;
      if (!composite_is_listed(except, ir_m_get_str(op, "name"))) status = composite_to_call(&rw, op);
    }
  }
  opt_rewriter_free(&rw);
  return status;
}
