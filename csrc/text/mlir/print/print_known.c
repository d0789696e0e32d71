/* Ops of other dialects: their properties, and the pretty forms of check's and interpreter's. */
#include "../foreign.h"
#include "../known.h"
#include "print.h"

static bool mprint_dialect_is(const base_istr *name, const char *prefix) {
  return strncmp(name->s, prefix, strlen(prefix)) == 0;
}

/* An op of a dialect that MLIR knows has as properties all attributes whose names have no dialect. */
bool mprint_is_property(const ir_op *op, const base_istr *key) {
  const base_istr *name = op->u.name;
  const mlir_foreign *row = mlir_foreign_find(name->s);
  if (row) return mlir_foreign_is_property(row, key);
  bool known = mprint_dialect_is(name, "interpreter.");
  return op->properties || (known && !strchr(key->s, '.'));
}

/* Whether the op is what its form can say: as many operands and results, of types that go together, and the attributes
 * that must be there. */
static bool mprint_fits_form(const ir_op *op, const char *form) {
  uint32_t operands = strstr(form, "%1") ? 2 : 1, results = strstr(form, ":same") ? 1 : 0;
  if (op->n_operands != operands || op->n_results != results) return false;
  const ir_type *type = ir_operand_type(op, 0);
  const ir_mattr *value = ir_mattr_of(op, "value");
  if (operands == 2 && !strstr(form, ":01") && !mprint_same_type(type, ir_operand_type(op, 1))) return false;
  if (results && !mprint_same_type(type, op->type)) return false;
  if (strstr(form, "&value") && (!value || !value->type || !mprint_same_type(type, value->type))) return false;
  if (strstr(form, "$probe_id") && !ir_mattr_of(op, "probe_id")) return false;
  return !strstr(form, ":01") || ir_mattr_of(op, "max_ulp_difference");
}

static bool mprint_by_form(mprint *p, const ir_op *op) {
  const char *form = mlir_known_form(op->u.name);
  /* jaxlib has no dialect check, and reads its ops in the generic form only, which StableHLO's tools read too. */
  if (mprint_dialect_is(op->u.name, "check.")) return false;
  if (!form || !mprint_fits_form(op, form)) return false;
  base_puts(p->out, op->u.name->s);
  mprint_form(p, op, form);
  return true;
}

bool mprint_known(mprint *p, const ir_op *op) {
  if (op->opcode != IR_OP_UNREGISTERED) return false;
  if (op->n_called) return mprint_foreign(p, op);
  return mprint_foreign(p, op) || mprint_by_form(p, op);
}
