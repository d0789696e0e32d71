/* Copies of regions' and functions' ops. */
#include "rewrite.h"

/* What the values of the original have become: by op, the copy; arguments are in a table of their own. */
typedef struct copied_run {
  opt_rewriter *rw;
  const ir_computation *from;
  const ir_value *args;
  base_map copies; /* op to op */
} copied_run;

static ir_value copied_value(const copied_run *x, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent == x->from) return x->args[v.op->u.number];
  ir_op *copy = base_map_ptr(&x->copies, v.op);
  return copy ? (ir_value){copy, v.index} : v;
}

static void copied_ops(copied_run *x, const ir_computation *from);

static void copied_region(copied_run *x, ir_op *copy, const ir_op *op, uint32_t index) {
  opt_rewriter *rw = x->rw, at = *rw;
  const ir_computation *from = op->called[index];
  ir_computation *to = opt_region(rw, copy, index);
  if (!to) return;
  to->declaration = from->declaration;
  to->return_loc = from->return_loc;
  to->return_mlir = from->return_mlir;
  to->return_name = from->return_name;
  opt_at_end(rw, to, NULL);
  for (uint32_t i = 0; i < from->n_params && !rw->failed; i++) {
    ir_value p = opt_region_argument(rw, to, from->params[i]->type);
    if (!p.op) break;
    p.op->loc = from->params[i]->loc;
    rw->failed = !base_map_set(&x->copies, base_key(from->params[i]), base_key(p.op));
  }
  copied_ops(x, from);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)from->n_results + 1);
  rw->failed = rw->failed || !results;
  for (uint32_t i = 0; !rw->failed && i < from->n_results; i++) results[i] = copied_value(x, from->results[i]);
  if (!rw->failed) opt_set_results(rw, to, from->n_results, results);
  rw->into = at.into;
  rw->before = at.before;
  rw->origin = at.origin;
}

static void copied_op(copied_run *x, const ir_op *op) {
  opt_rewriter *rw = x->rw;
  ir_value *operands = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  rw->failed = rw->failed || !operands;
  for (uint32_t i = 0; !rw->failed && i < op->n_operands; i++) operands[i] = copied_value(x, opt_operand(op, i));
  ir_op *copy = rw->failed ? NULL
                           : opt_make_n(rw, (ir_opcode)op->opcode, op->n_results, op->types, op->n_operands, operands,
                                        op->n_called);
  if (!copy) return;
  copy->mlir = op->mlir;
  copy->loc = op->loc;
  copy->line = op->line;
  copy->col = op->col;
  copy->properties = op->properties;
  copy->u = op->u;
  rw->failed = !base_map_set(&x->copies, base_key(op), base_key(copy));
  for (uint32_t i = 0; i < op->n_called && !rw->failed; i++) copied_region(x, copy, op, i);
}

static void copied_ops(copied_run *x, const ir_computation *from) {
  IR_FOR_OPS(op, from)
  if (op->opcode != IR_OP_PARAMETER && !x->rw->failed) copied_op(x, op);
}

void opt_inline(opt_rewriter *rw, const ir_computation *from, const ir_value *args, ir_value *results) {
  copied_run x = {.rw = rw, .from = from, .args = args};
  base_map_init(&x.copies, rw->m->alloc);
  assert(from != rw->into);
  copied_ops(&x, from);
  for (uint32_t i = 0; i < from->n_results; i++)
    results[i] = rw->failed ? (ir_value){NULL, 0} : copied_value(&x, from->results[i]);
  base_map_free(&x.copies);
}

void opt_copy_op(opt_rewriter *rw, const ir_op *op, const ir_value *operands, ir_value *results) {
  copied_run x = {.rw = rw};
  base_map_init(&x.copies, rw->m->alloc);
  copied_op(&x, op);
  ir_op *copy = base_map_ptr(&x.copies, op);
  base_map_free(&x.copies);
  rw->failed = rw->failed || !copy;
  for (uint32_t i = 0; !rw->failed && i < op->n_operands; i++) ir_set_operand(copy, i, operands[i]);
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = (ir_value){copy, i};
}
