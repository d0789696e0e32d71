/* chlo.next_after: the next number of x's type after each x, towards y, bit by bit as the interpreter has it. */
#include "../interp/eval/next_after.h"
#include "routine.h"

enum { NEXTA_RANGE = 1 << 13 };

typedef struct nexta_work {
  base_dtype t;
  const char *x, *y;
  char *to;
} nexta_work;

/* For rt_parallel_for: elements begin .. end. */
static void nexta_range(void *ctx, size_t begin, size_t end) {
  assert(begin <= end && base_dtype_is_float(((const nexta_work *)ctx)->t));
  const nexta_work *w = ctx;
  size_t at = begin * base_dtype_bytes(w->t);
  interp_next_after(w->t, (int64_t)(end - begin), w->x + at, w->y + at, w->to + at);
}

static int nexta_run(const cpu_routine_run *r) {
  const ir_type *t = r->step->op->type;
  nexta_work w = {(base_dtype)t->dtype, r->in[0], r->in[1], r->out[0]};
  rt_parallel_for(r->run->exe->pool, (size_t)t->count, NEXTA_RANGE, nexta_range, &w);
  return 0;
}

int cpu_prepare_next_after(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  if (!ir_is_tensor(op->type) || !base_dtype_is_float((base_dtype)op->type->dtype)) return 0;
  for (uint32_t i = 0; i < 2; i++)
    if (ir_operand_type(op, i)->dtype != op->type->dtype || ir_operand_type(op, i)->count != op->type->count) return 0;
  x->out->name = "next-after";
  x->out->in_place = 1;
  x->out->work = (uint64_t)op->type->count * 8;
  x->out->stoppable = true;
  x->code = nexta_run;
  return 0;
}
