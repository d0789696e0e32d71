/* The pretty forms of sdy ops that no string describes. Each prints its own blanks. */
#include "print.h"

void sdy_print_name(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  const ir_mattr *name = ir_mattr_of(op, "sym_name");
  base_putc(p->out, ' ');
  if (name && name->str) mprint_symbol(p->out, name->str->s, name->str->n);
}

void sdy_print_direction(mprint *p, const ir_op *op, const char *form) {
  static const char *const words[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  (void)form;
  BASE_PUT(p->out, " allowed_direction=");
  base_puts(p->out, words[ir_m_get_int(op, "allowed_direction", 0) & 3]);
}

void sdy_print_reduction(mprint *p, const ir_op *op, const char *form) {
  static const char *const words[] = {"", " max", " min"};
  int64_t which = ir_m_get_int(op, "reduction_op", SDY_SUM);
  (void)form;
  if (which > 0 && which <= SDY_MIN) base_puts(p->out, words[which]);
}

static void sdy_print_stripped(mprint *p, const ir_op *op, const char *key) {
  const sdy_shardings *list = sdy_of(ir_mattr_of(op, key), SDY_SHARDINGS);
  if (!list) return;
  base_putc(p->out, ' ');
  base_puts(p->out, key);
  base_putc(p->out, '=');
  sdy_print_list(p->out, list);
}

static void sdy_print_operands(mprint *p, const ir_op *op) {
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  base_putc(p->out, ')');
}

/* " (%arg1: t) {...} {attributes} : (t) -> t" */
static void sdy_print_body(mprint *p, const ir_op *op, const char *form) {
  const ir_computation *c = op->called[0];
  BASE_PUT(p->out, " (");
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_argument(p, c->params[i]);
  }
  BASE_PUT(p->out, ") ");
  mprint_region(p, c, false);
  mprint_rest(p, op, form, false);
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
}

void sdy_print_manual(mprint *p, const ir_op *op, const char *form) {
  sdy_print_operands(p, op);
  sdy_print_stripped(p, op, "in_shardings");
  sdy_print_stripped(p, op, "out_shardings");
  BASE_PUT(p->out, " manual_axes=");
  sdy_print_bare(p->out, SDY_MANUAL_AXES, ir_mattr_of(op, "manual_axes")->v.sdy);
  sdy_print_body(p, op, form);
}

void sdy_print_named_computation(mprint *p, const ir_op *op, const char *form) {
  const ir_mattr *name = ir_mattr_of(op, "name");
  base_putc(p->out, '<');
  if (name && name->str) mprint_quoted(p->out, name->str->s, name->str->n);
  base_putc(p->out, '>');
  sdy_print_operands(p, op);
  sdy_print_stripped(p, op, "in_shardings");
  sdy_print_stripped(p, op, "out_shardings");
  sdy_print_body(p, op, form);
}

static bool sdy_number_has_word(const ir_op *op, const char *key, int64_t most) {
  int64_t v = ir_m_get_int(op, key, 0);
  return v >= 0 && v <= most;
}

bool sdy_is_sayable(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_SDY_MANUAL_COMPUTATION:
    case IR_OP_SDY_NAMED_COMPUTATION:
      return op->n_called == 1 && !op->called[0]->declaration;
    case IR_OP_SDY_PROPAGATION_BARRIER:
      return sdy_number_has_word(op, "allowed_direction", 3);
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_REDUCE_SCATTER:
      return sdy_number_has_word(op, "reduction_op", SDY_MIN);
    default:
      return true;
  }
}
