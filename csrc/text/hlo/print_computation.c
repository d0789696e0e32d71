/* Prints computations: the signature line, the ops in order, the closing line. */
#include "../../base/heed.h"
#include "print.h"

static void write_indent(text_printer *p) {
  for (uint32_t i = 0; i < p->indent; i++) BASE_PUT(p->out, "  ");
}

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

static void write_closing(text_printer *p, const ir_computation *c) {
  write_indent(p);
  base_putc(p->out, '}');
  if (!p->ids || !c->execution_thread || strcmp(c->execution_thread->s, "main") == 0) return;
  BASE_PUT(p->out, ", execution_thread=");
  text_put_raw_quoted(p->out, c->execution_thread);
}

static void write_one(text_printer *p, const ir_computation *c, const ir_op *op) {
  write_indent(p);
  BASE_PUT(p->out, "  ");
  if (op == ir_root(c)) BASE_PUT(p->out, "ROOT ");
  p->indent++;
  text_write_op(p, op);
  p->indent--;
  base_putc(p->out, '\n');
}

static void write_in_post_order(text_printer *p, const ir_computation *c) {
  uint32_t n = 0;
  ir_op **ops = ir_post_order(c, &p->arena, &n);
  if (!ops) {
    p->out->failed = true;
    return;
  }
  for (uint32_t i = 0; i < n && p->status == 0; i++) write_one(p, c, ops[i]);
}

/* Canonical names start anew in every computation, and every time it is printed. */
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

int text_print_computation(base_text *out, const ir_computation *c, const text_print_options *options,
                           xlac_error *err) {
  text_printer p;
  text_printer_init(&p, out, c->module, options);
  text_write_computation(&p, c);
  return text_printer_finish(&p, err);
}
