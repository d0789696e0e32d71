/* Why each op is where it is: the decisions of fusion as text. */
#include "plan.h"

static const char *explain_no_kernel(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      return "an argument";
    case IR_OP_CONSTANT:
      return "a constant in memory";
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
      return "a name for values that are there";
    case IR_OP_RESHAPE:
    case IR_OP_OPT_BARRIER:
    case IR_OP_DOMAIN:
      return "another view of its operand";
    case IR_OP_COPY:
      return "a copy";
    default:
      return "a step of its own: no element of it follows from few elements of its operands";
  }
}

static void explain_op(base_text *out, const fusion_plan *f, const ir_op *op) {
  base_putf(out, "  %s %s: ", ir_opcode_text(op->opcode), op->name->s);
  switch ((fusion_role)f->role[op->id]) {
    case FUSION_NO:
      base_putf(out, "no kernel, %s", explain_no_kernel(op));
      if (f->why[op->id]) base_putf(out, "; in none since %s", f->why[op->id]);
      break;
    case FUSION_ROOT:
      base_putf(out, "ends a kernel of %u ops, in memory since %s", f->size[op->id], f->why[op->id]);
      if (f->first[op->id] != op)
        base_putf(out, "; one kernel with %s, since %s", f->first[op->id]->name->s, f->one[op->id]);
      else if (f->one[op->id])
        base_putf(out, "; a kernel of its own although it could share a pass through memory, since %s", f->one[op->id]);
      break;
    case FUSION_INNER:
      base_putf(out, "in the kernel that ends at %s", f->root[op->id]->name->s);
      break;
    case FUSION_CHEAP:
      base_putf(out, "in every kernel that uses it%s",
                f->needed[op->id] ? ", and in memory since an op that is no kernel reads it" : "");
      break;
  }
  BASE_PUT(out, "\n");
}

/* Depth is bounded by the plan's. A computation that several steps share is listed once: `seen`, by id. */
static void explain_program(base_text *out, const plan_program *p, uint8_t *seen) {
  const ir_computation *c = p->computation;
  if (seen[c->id]) return;
  seen[c->id] = 1;
  base_putf(out, "%s:", c->name->s);
  if (p->interpreted) {
    base_putf(out, " interpreted, since %s\n", p->why);
    return;
  }
  BASE_PUT(out, "\n");
  if (p->fusion) {
    IR_FOR_OPS(op, c) explain_op(out, p->fusion, op);
  }
  for (uint32_t i = 0; i < p->n_steps; i++)
    for (uint32_t j = 0; j < p->steps[i].n_nested; j++) explain_program(out, p->steps[i].nested[j], seen);
}

int plan_explain_fusion(base_text *out, const plan_program *p, xlac_error *err) {
  base_alloc alloc = p->computation->module->alloc;
  size_t n = (size_t)p->computation->module->n_computation_ids + 1;
  uint8_t *seen = base_malloc(alloc, n);
  if (!seen) return base_oom(err, "an explanation");
  memset(seen, 0, n);
  explain_program(out, p, seen);
  base_free(alloc, seen);
  return 0;
}
