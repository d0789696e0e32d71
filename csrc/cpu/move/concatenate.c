/* concatenate: a copy for each operand. */
#include "move.h"
#include "../routine.h"

/* One operand: its copy, and where that begins. */
typedef struct concat_part {
  cpu_move move;
  int64_t to; /* byte of the result */
} concat_part;

/* Operands one after the other; each copy is shared by the threads. */
static int concat_run(const cpu_routine_run *r) {
  const concat_part *parts = r->data;
  for (uint32_t i = 0; i < r->step->n_in; i++)
    cpu_move_run(&parts[i].move, r->run->exe->pool, (char *)r->out[0] + parts[i].to, r->in[i]);
  return 0;
}

/* Operands of another type than the result's are left to the interpreter. */
int cpu_prepare_concatenate(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  const ir_type *t = op->type;
  uint32_t d = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  size_t bytes = base_dtype_bytes(t->dtype);
  int64_t to[IR_MAX_RANK], from[IR_MAX_RANK], at = 0;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand_type(op, i)->dtype != t->dtype) return 0;
  concat_part *parts = BASE_ARRAY(x->arena, concat_part, op->n_operands);
  if (!parts) return base_oom(x->err, "a concatenation");
  cpu_move_strides(t, to);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *own = ir_operand_type(op, i);
    cpu_move_strides(own, from);
    parts[i].to = at * to[d] * (int64_t)bytes;
    if (!cpu_move_make(&parts[i].move, x->arena, bytes, own->rank, own->dims, to, from))
      return base_oom(x->err, "a concatenation");
    at += own->dims[d];
  }
  x->out->name = "concat";
  x->data = parts;
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->code = concat_run;
  return 0;
}
