/* Why each op is where it is: the decisions of fusion as text, one line an op, for Executable.explain("fusion"). The
 * reasons themselves are constant texts of fusion.c and fusion_merge.c. */
#include "../base/plural.h"
#include "plan.h"

static const char explain_step[] = "a step of its own: no element of it follows from few elements of its operands";

/* Of an op that fusion left alone. */
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
      return explain_step;
  }
}

/* What the plan does with each value, by op id: the step that computes it, one that reads it from memory. Fusion only
 * proposes, so what is in memory is told of the plan. Arrays by op id, NULL where the plan has no such step. */
typedef struct explain_facts {
  const plan_step **maker, **reader;
  bool *lives;  /* a result comes of it, or a step is made for it */
  bool *copied; /* for kernels that read it along another dimension than its last */
} explain_facts;

/* The first reader is enough for a reason. */
static void explain_find(explain_facts *x, const plan_program *p) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    const bool copies = s->kind == PLAN_KERNEL && !p->buffers[s->out[0]].type;
    x->copied[s->op->id] = x->copied[s->op->id] || copies;
    if (copies) continue;
    x->maker[s->op->id] = s;
    for (uint32_t j = 0; j < s->n_out; j++)
      if (p->buffers[s->out[j]].op) x->maker[p->buffers[s->out[j]].op->id] = s;
    for (uint32_t j = 0; j < s->n_in; j++) {
      const ir_op *op = p->buffers[s->in[j]].op;
      if (op && !x->reader[op->id]) x->reader[op->id] = s;
    }
  }
}

static void explain_mark(explain_facts *x, const ir_op **stack, uint32_t *n, const ir_op *op) {
  if (!op || x->lives[op->id]) return;
  x->lives[op->id] = true;
  stack[(*n)++] = op;
}

/* What steps and the results come of. `stack` has room for all ops. */
static void explain_find_living(explain_facts *x, const plan_program *p, const ir_op **stack) {
  uint32_t n = 0;
  explain_mark(x, stack, &n, ir_root(p->computation));
  for (uint32_t i = 0; i < p->n_steps; i++) {
    explain_mark(x, stack, &n, p->steps[i].op);
    for (uint32_t j = 0; j < p->steps[i].n_out; j++) explain_mark(x, stack, &n, p->buffers[p->steps[i].out[j]].op);
  }
  while (n) {
    const ir_op *op = stack[--n];
    for (uint32_t k = 0; k < op->n_operands; k++) explain_mark(x, stack, &n, ir_operand(op, k));
  }
}

/* For cheap ops that are in memory besides. */
static void explain_reader(base_text *out, const explain_facts *x, const ir_op *op) {
  const plan_step *reader = x->reader[op->id];
  if (reader)
    base_putf(out, ", and in memory since %s %s reads it there", ir_opcode_text(reader->op->opcode),
              reader->op->name->s);
  else if (x->maker[op->id])
    BASE_PUT(out, ", and in memory since it is a result");
}

/* The two ways that were weighed, where they were. */
static void explain_weighed(base_text *out, const fusion_op *f) {
  if (f->stored == 0 && f->anew == 0) return;
  BASE_PUT(out, " (all in all ");
  fusion_put_time(out, f->stored);
  BASE_PUT(out, " if it is stored, ");
  fusion_put_time(out, f->anew);
  BASE_PUT(out, " if each computes it)");
}

static void explain_root(base_text *out, const fusion_plan *f, const ir_op *op) {
  assert(f->of[op->id].why);
  uint32_t size = f->of[op->id].size;
  base_putf(out, "ends a kernel of %u op%s, in memory since %s", size, base_plural(size), f->of[op->id].why);
  explain_weighed(out, &f->of[op->id]);
  if (f->of[op->id].merged_first != op)
    base_putf(out, "; one kernel with %s, since %s", f->of[op->id].merged_first->name->s, f->of[op->id].merge_reason);
  else if (f->of[op->id].merge_reason)
    base_putf(out, "; a kernel of its own although it could share a pass through memory, since %s",
              f->of[op->id].merge_reason);
}

/* In no kernel: what it is instead, and why. */
static void explain_other(base_text *out, const fusion_plan *f, const explain_facts *x, const ir_op *op) {
  const plan_step *maker = x->maker[op->id];
  const bool moves = f->of[op->id].role == FUSION_ROOT && maker && maker->kind != PLAN_KERNEL;
  base_putf(out, "no kernel, %s",
            moves                                                ? "a step of its own: it moves what is in memory"
            : op->opcode == IR_OP_CONSTANT && !x->reader[op->id] ? "a constant"
            : f->of[op->id].role == FUSION_ROOT && !maker        ? "another view of its operand"
                                                                 : explain_no_kernel(op));
  if (f->of[op->id].role == FUSION_NO && f->of[op->id].why) base_putf(out, "; in none since %s", f->of[op->id].why);
}

/* Ops that only have names in tuples of which nobody takes them live, too, but nothing was made for them. */
static bool explain_is_left_out(const fusion_plan *f, const explain_facts *x, const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER) return false;
  if (!x->lives[op->id]) return true;
  if (f->of[op->id].role == FUSION_INNER) return !x->maker[f->of[op->id].root->id];
  return f->of[op->id].role == FUSION_NO && !x->maker[op->id] && explain_no_kernel(op) == explain_step;
}

static void explain_op(base_text *out, const fusion_plan *f, const explain_facts *x, const ir_op *op) {
  assert(op->id < op->parent->module->n_ids);
  const plan_step *maker = x->maker[op->id];
  base_putf(out, "  %s %s: ", ir_opcode_text(op->opcode), op->name->s);
  if (explain_is_left_out(f, x, op)) {
    BASE_PUT(out, "not run: no result comes of it\n");
    return;
  }
  switch ((fusion_role)f->of[op->id].role) {
    case FUSION_NO:
      explain_other(out, f, x, op);
      break;
    case FUSION_ROOT:
      if (maker && maker->kind == PLAN_KERNEL)
        explain_root(out, f, op);
      else
        explain_other(out, f, x, op);
      break;
    case FUSION_INNER:
      base_putf(out, "in the kernel that ends at %s", f->of[op->id].root->name->s);
      break;
    case FUSION_CHEAP:
      BASE_PUT(out, "in every kernel that uses it");
      explain_weighed(out, &f->of[op->id]);
      explain_reader(out, x, op);
      break;
  }
  if (x->copied[op->id]) BASE_PUT(out, "; copied for those who read it across its rows, many times");
  BASE_PUT(out, "\n");
}

/* Two tables by op id, for this computation's ops alone. */
static bool explain_ops(base_text *out, const plan_program *p) {
  base_alloc alloc = p->computation->module->alloc;
  size_t n = (size_t)p->computation->module->n_ids + 1;
  size_t bytes = n * (2 * sizeof(const plan_step *) + sizeof(const ir_op *) + 2 * sizeof(bool));
  const plan_step **both = base_malloc(alloc, bytes);
  if (!both) return false;
  memset(both, 0, bytes);
  const ir_op **stack = (const ir_op **)(void *)(both + 2 * n);
  bool *flags = (bool *)(stack + n);
  explain_facts x = {both, both + n, flags, flags + n};
  explain_find(&x, p);
  explain_find_living(&x, p, stack);
  IR_FOR_OPS(op, p->computation) explain_op(out, p->fusion, &x, op);
  base_free(alloc, both);
  return true;
}

/* Depth is bounded by the plan's. A computation that several steps share is listed once: `seen`, by id. */
static bool explain_program(base_text *out, const plan_program *p, uint8_t *seen) {
  const ir_computation *c = p->computation;
  if (seen[c->id]) return true;
  seen[c->id] = 1;
  base_putf(out, "%s:", c->name->s);
  if (p->interpreted) {
    base_putf(out, " interpreted, since %s\n", p->why);
    return true;
  }
  BASE_PUT(out, "\n");
  if (p->fusion && !explain_ops(out, p)) return false;
  for (uint32_t i = 0; i < p->n_steps; i++)
    for (uint32_t j = 0; j < p->steps[i].n_nested; j++)
      if (!explain_program(out, p->steps[i].nested[j], seen)) return false;
  return true;
}

int plan_explain_fusion(base_text *out, const plan_program *p, xlac_error *err) {
  assert(out && p);
  base_alloc alloc = p->computation->module->alloc;
  size_t n = (size_t)p->computation->module->n_computation_ids + 1;
  uint8_t *seen = base_malloc(alloc, n);
  if (!seen) return base_oom(err, "an explanation");
  memset(seen, 0, n);
  bool ok = explain_program(out, p, seen);
  base_free(alloc, seen);
  return ok ? 0 : base_oom(err, "an explanation");
}
