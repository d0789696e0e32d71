/* Prints one op: "ROOT %y = f32[8]{0} add(%x, %k), attributes". */
#include "print.h"

/* Without ids a name ends at its first dot. */
static size_t shown_length(const text_printer *p, const base_istr *name) {
  if (p->ids) return name->n;
  const char *dot = memchr(name->s, '.', name->n);
  return dot ? (size_t)(dot - name->s) : name->n;
}

void text_write_name(text_printer *p, const base_istr *name) {
  assert(name);
  if (p->percent) base_putc(p->out, '%');
  base_put(p->out, name->s, shown_length(p, name));
}

/* Canonical names count the ops of a computation in the order they are first seen. */
static void write_canonical_name(text_printer *p, const ir_op *op) {
  assert(op->id < p->module->n_ids);
  uint32_t *number = &p->canonical_names[op->id];
  if (*number == 0) *number = ++p->n_canonical;
  BASE_PUT(p->out, "tmp_");
  base_put_u64(p->out, *number - 1);
}

void text_write_operand_name(text_printer *p, const ir_op *op) {
  if (!p->canonical)
    text_write_name(p, op->name);
  else if (p->named && p->canonical_names)
    write_canonical_name(p, op);
}

static void write_constant_value(text_printer *p, const ir_literal *l) {
  if (!l)
    BASE_PUT(p->out, "{...}");
  else if (p->essential_constants)
    text_put_essential_literal(p->out, l);
  else if (p->large_constants || text_literal_is_small(l))
    text_put_literal(p->out, l, false);
  else
    BASE_PUT(p->out, "{...}");
}

static void write_operands(text_printer *p, const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *operand = op->operands[i].op;
    if (i) BASE_PUT(p->out, ", ");
    if (p->index_comments) text_put_index_comment(p->out, i);
    if (p->operand_shapes) {
      text_write_type(p, ir_operand_type(op, i));
      if (!p->canonical || p->named) base_putc(p->out, ' ');
    }
    text_write_operand_name(p, operand);
  }
}

/* A generic async op of a chain in sugar goes by the name of the op it wraps. */
static void write_opcode(text_printer *p, const ir_op *op) {
  static const char *const suffixes[] = {"-start", "-update", "-done"};
  int which = op->opcode == IR_OP_ASYNC_START    ? 0
              : op->opcode == IR_OP_ASYNC_UPDATE ? 1
              : op->opcode == IR_OP_ASYNC_DONE   ? 2
                                                 : -1;
  bool is_sugar = false;
  const ir_op *start = which < 0 ? NULL : text_async_start(p, op, &is_sugar);
  if (is_sugar) {
    base_puts(p->out, ir_opcode_text(ir_root(start->called[0])->opcode));
    base_puts(p->out, suffixes[which]);
  } else {
    base_puts(p->out, ir_opcode_text(op->opcode));
  }
}

void text_write_op(text_printer *p, const ir_op *op) {
  assert(op->opcode > IR_OP_INVALID && op->opcode < IR_OP_COUNT && op->name);
  base_text *out = p->out;
  if (!p->canonical || p->named) {
    text_write_operand_name(p, op);
    BASE_PUT(out, " = ");
  }
  if (op->type) {
    text_write_type(p, op->type);
    base_putc(out, ' ');
  }
  write_opcode(p, op);
  base_putc(out, '(');
  if (op->opcode == IR_OP_CONSTANT)
    write_constant_value(p, op->u.literal);
  else if (op->opcode == IR_OP_PARAMETER)
    base_put_i64(out, op->u.number);
  else
    write_operands(p, op);
  base_putc(out, ')');
  text_write_attributes(p, op);
}

int text_print_op(base_text *out, const ir_op *op, const text_print_options *options, xlac_error *err) {
  text_printer p;
  text_printer_init(&p, out, op->parent->module, options);
  for (uint32_t i = 0; i < p.indent; i++) BASE_PUT(out, "  ");
  text_write_op(&p, op);
  return text_printer_finish(&p, err);
}
