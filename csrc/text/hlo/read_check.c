/* Rules of single opcodes that XLA's reader has: what they need to be made at all. */
#include "../../ir/verify/check.h"
#include "read.h"

int text_check_counts(text_reader *r, const text_draft *d) {
  assert(r->ops.n >= d->first_operand + d->n_operands);
  int arity = ir_opcode_info(d->attrs.opcode)->arity;
  if (d->attrs.sugar || arity == IR_VARIADIC || (uint32_t)arity == d->n_operands) return 0;
  return text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "%s has %d operand%s, found %u", ir_opcode_text(d->attrs.opcode),
                   arity, arity == 1 ? "" : "s", d->n_operands);
}

/* Counts are wrong where the opcode is, attributes where the op begins. */
int text_check_op(text_reader *r, const text_draft *d, const ir_op *op) {
  xlac_error why = {0};
  if (ir_check_form(op, &why) == 0) return 0;
  return text_fail(r, why.code == XLAC_E_SYNTAX ? d->opcode_at : d->at, (base_code)why.code, "%s", why.message);
}
