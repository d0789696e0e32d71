/* Prints computations: the signature line, the ops in order, the closing line; and the ops themselves.
 *
 *   %sum (a: f32[], b: f32[]) -> f32[] {
 *     %a = f32[] parameter(0)
 *     ROOT %add = f32[] add(%a, %b)
 *   }, execution_thread="t" */
#include "../../base/heed.h"
#include "print.h"

/* ---- Decides how async chains print: "add-start(x, y)" sugar when the wrapped computation is nothing but one op on
 * its parameters in order, so that the sugar says it all; else async-start(x, y), calls=%wrapped. XLA looks at less and
 * prints sugar that reads back as another program (operands swapped or repeated, constants lost). */

/* Wrapped ops whose sugar reads back as something else, or not at all: copy-start is an opcode of its own. */
static bool has_sugar_name(const ir_op *root) {
  switch (root->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_COPY:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_GATHER:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_SEND:
    case IR_OP_RECV:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
      return false;
    default:
      return true;
  }
}

/* Only parameters and the root, whose operands are the parameters in order. */
static bool is_one_op(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  if (!root || root->n_operands != c->n_params || c->n_ops != c->n_params + 1) return false;
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_use *use = &root->operands[i];
    if (!c->params[i] || use->op != c->params[i] || use->index != 0) return false;
  }
  return true;
}

/* Attributes that would stand twice in the sugar, or move between the start and the wrapped op. */
static bool keeps_attributes(const ir_op *start, const ir_op *root) {
  if (ir_attr_find(start, IR_ATTR_SHARDING) && ir_attr_find(root, IR_ATTR_SHARDING)) return false;
  return !ir_attr_find(start, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING) ||
         !ir_opcode_takes(root->opcode, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING, NULL);
}

/* Ops that call c, but for updates and dones, whose calls= only repeats their start's. For single ops and
 * computations, where no survey of the module has been made. */
static uint32_t count_callers(const ir_computation *c) {
  uint32_t n = 0;
  IR_FOR_COMPUTATIONS(other, c->module) {
    IR_FOR_OPS(op, other) {
      if (op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE) continue;
      for (uint32_t i = 0; i < op->n_called; i++) n += op->called[i] == c;
    }
  }
  return n;
}

/* The parameters that the reader of sugar makes are of the operands' types. */
static bool is_given_what_it_takes(const ir_op *start, const ir_computation *c) {
  if (start->n_operands != c->n_params) return false;
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!ir_same_bare(ir_operand_type(start, i), c->params[i]->type)) return false;
  return true;
}

/* The wrapped computation must also be this start's alone: as sugar it is not printed anywhere else. */
static bool is_sugar_start(const ir_op *start, const uint32_t *callers) {
  assert(start->opcode == IR_OP_ASYNC_START);
  const ir_computation *c = start->n_called == 1 ? start->called[0] : NULL;
  if (!c || c == c->module->entry || !is_one_op(c) || !is_given_what_it_takes(start, c)) return false;
  const ir_op *root = ir_root(c);
  if (!has_sugar_name(root) || root->n_control_preds) return false;
  if (!keeps_attributes(start, root)) return false;
  return (callers ? callers[c->id] : count_callers(c)) == 1;
}

/* Long chains of updates cost one step an op, because their starts are remembered. */
const ir_op *text_async_start(text_printer *p, const ir_op *op, bool *is_sugar) {
  uint64_t known = 0;
  bool is_link = op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE;
  bool found = base_map_get(&p->chains, base_key(op), &known);
  if (!found && is_link && op->n_operands == 1) found = base_map_get(&p->chains, base_key(op->operands[0].op), &known);
  if (!found) {
    const ir_op *start = ir_async_start_of(op);
    if (start && start->n_called != 1) start = NULL;
    known = base_key(start) | (start && is_sugar_start(start, p->callers));
  }
  (void)base_map_set(&p->chains, base_key(op), known); /* only remembers: may run out of memory */
  *is_sugar = known & 1;
  assert(!*is_sugar || (known & ~(uint64_t)1));
  return (const ir_op *)(uintptr_t)(known & ~(uint64_t)1);
}

/* ---- Prints one op: "ROOT %y = f32[8]{0} add(%x, %k), attributes". */

/* Without ids a name ends at its first dot. XLA numbers names as "add.3"; set_print_ids(false) leaves the number
 * out. */
static size_t shown_length(const text_printer *p, const base_istr *name) {
  if (p->ids) return name->n;
  const char *dot = memchr(name->s, '.', name->n);
  return dot ? (size_t)(dot - name->s) : name->n;
}

/*   %name, or name where the mode prints no signs */
void text_write_name(text_printer *p, const base_istr *name) {
  assert(name);
  if (p->percent) base_putc(p->out, '%');
  base_put(p->out, name->s, shown_length(p, name));
}

/* Canonical names count the ops of a computation in the order they are first seen.
 *   tmp_0, tmp_1, ... */
static void write_canonical_name(text_printer *p, const ir_op *op) {
  assert(op->id < p->module->n_ids);
  uint32_t *number = &p->canonical_names[op->id];
  if (*number == 0) *number = ++p->n_canonical;
  BASE_PUT(p->out, "tmp_");
  base_put_u64(p->out, *number - 1);
}

/* In a canonical text outside of any computation (one op printed alone) nothing is named. */
void text_write_operand_name(text_printer *p, const ir_op *op) {
  if (!p->canonical)
    text_write_name(p, op->name);
  else if (p->named && p->canonical_names)
    write_canonical_name(p, op);
}

/* Large constants are elided as {...}, which reads back as a literal without values. */
static void write_constant_value(text_printer *p, const ir_literal *l) {
  if (!l)
    BASE_PUT(p->out, "{...}");
  else if (p->essential_constants)
    text_put_essential_literal(p->out, l);
  else if (p->large_constants || text_literal_is_small(l))
    text_put_literal(p->out, l, p->exact);
  else
    BASE_PUT(p->out, "{...}");
}

/* "f32[8]{0} %x, ...", with a comment before every fifth operand; canonical ops printed alone show types only. */
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

/* The line of an op, without indentation or newline. */
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

/* Prints the op alone; in the canonical modes without its name. */
int text_print_op(base_text *out, const ir_op *op, const text_print_options *options, xlac_error *err) {
  text_printer p;
  text_printer_init(&p, out, op->parent->module, options);
  for (uint32_t i = 0; i < p.indent; i++) BASE_PUT(out, "  ");
  text_write_op(&p, op);
  return text_printer_finish(&p, err);
}

/* Two blanks a level. */
static void write_indent(text_printer *p) {
  for (uint32_t i = 0; i < p->indent; i++) BASE_PUT(p->out, "  ");
}

/* Parameter names stand without '%' here, and types without layouts, as XLA prints ProgramShape. */
static void write_signature(text_printer *p, const ir_computation *c) {
  base_text *out = p->out;
  const ir_op *root = ir_root(c);
  base_putc(out, '(');
  bool is_first = true;
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_op *param = c->params[i];
    if (!param) continue;
    if (!is_first) BASE_PUT(out, ", ");
    is_first = false;
    bool percent = p->percent;
    p->percent = false;
    text_write_name(p, param->name);
    p->percent = percent;
    BASE_PUT(out, ": ");
    text_put_type(out, param->type, false);
  }
  BASE_PUT(out, ") -> ");
  if (root && root->type) text_put_type(out, root->type, false);
  base_putc(out, ' ');
}

/* The thread is printed unless it is main. */
static void write_closing(text_printer *p, const ir_computation *c) {
  write_indent(p);
  base_putc(p->out, '}');
  if (!p->ids || !c->execution_thread || strcmp(c->execution_thread->s, "main") == 0) return;
  BASE_PUT(p->out, ", execution_thread=");
  text_put_raw_quoted(p->out, c->execution_thread);
}

/* Bodies inside the op are indented one level more than the op. */
static void write_one(text_printer *p, const ir_computation *c, const ir_op *op) {
  write_indent(p);
  BASE_PUT(p->out, "  ");
  if (op == ir_root(c)) BASE_PUT(p->out, "ROOT ");
  p->indent++;
  text_write_op(p, op);
  p->indent--;
  base_putc(p->out, '\n');
}

/* Where nothing is scheduled, ops are printed as MakeInstructionPostOrder gives them. */
static void write_in_post_order(text_printer *p, const ir_computation *c) {
  uint32_t n = 0;
  ir_op **ops = ir_post_order(c, &p->arena, &n);
  if (!ops) {
    p->out->failed = true;
    return;
  }
  for (uint32_t i = 0; i < n && p->status == 0; i++) write_one(p, c, ops[i]);
}

/* Canonical names start anew in every computation, and every time it is printed. Canonical printing may come to a
 * computation while it prints another one: the outer numbering is saved. */
static void write_ops(text_printer *p, const ir_computation *c, bool as_scheduled) {
  uint32_t n_canonical = p->n_canonical;
  bool named = p->named;
  p->n_canonical = 0;
  p->named = true;
  if (p->canonical && p->canonical_names) {
    IR_FOR_OPS(op, c) p->canonical_names[op->id] = 0;
  }
  if (as_scheduled) {
    IR_FOR_OPS(op, c) write_one(p, c, op);
  } else {
    write_in_post_order(p, c);
  }
  p->n_canonical = n_canonical;
  p->named = named;
}

/* Whether a fusion calls this computation. Looks through the whole module: for printing one computation alone, where
 * no survey has been made. */
static bool is_fused(const ir_computation *c) {
  IR_FOR_COMPUTATIONS(other, c->module) {
    IR_FOR_OPS(op, other) {
      if (op->opcode == IR_OP_FUSION && op->n_called && op->called[0] == c) return true;
    }
  }
  return false;
}

/* The ops of a fusion have no schedule: they run as one. */
static bool has_schedule(const text_printer *p, const ir_computation *c) {
  if (!c->module->config.is_scheduled) return false;
  return p->fused ? !p->fused[c->id] : !is_fused(c);
}

/*   ENTRY %main (x: f32[]) -> f32[] { ... } */
void text_write_computation(text_printer *p, const ir_computation *c) {
  base_text *out = p->out;
  write_indent(p);
  if (c == c->module->entry) BASE_PUT(out, "ENTRY ");
  if (p->percent) base_putc(out, '%');
  if (p->ids) {
    base_put(out, c->name->s, c->name->n);
    base_putc(out, ' ');
  }
  if (p->program_shape) write_signature(p, c);
  BASE_PUT(out, "{\n");
  write_ops(p, c, has_schedule(p, c));
  write_closing(p, c);
}

/* A body inside an op: neither name nor signature, but for the modes that show a signature. */
void text_write_body(text_printer *p, const ir_computation *c) {
  if (p->digests) {
    text_write_digest(p, c);
    return;
  }
  if (p->nesting >= TEXT_MAX_NESTING) p->status = XLAC_E_TOO_DEEP;
  if (p->out->n - p->start > text_canonical_limit(p)) p->status = XLAC_E_TOO_LARGE;
  if (base_heed_tick(c->n_ops)) p->out->failed = true; /* a body may be written out very often */
  if (p->status || p->out->failed) return;
  assert(p->bodies);
  p->nesting++;
  write_indent(p);
  BASE_PUT(p->out, "{\n");
  write_ops(p, c, false);
  write_closing(p, c);
  assert(p->nesting > 0);
  p->nesting--;
}

/* One computation alone, without header and without what it calls. */
int text_print_computation(base_text *out, const ir_computation *c, const text_print_options *options,
                           xlac_error *err) {
  text_printer p;
  text_printer_init(&p, out, c->module, options);
  text_write_computation(&p, c);
  return text_printer_finish(&p, err);
}
