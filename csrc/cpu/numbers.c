/* Ops that give one number: who this participant is, and the size of a static dimension. */
#include "routine.h"

static int numbers_replica(const cpu_routine_run *r) {
  base_store_i64((base_dtype)r->step->op->type->dtype, r->out[0], r->run->ctx.options.replica);
  return 0;
}

static int numbers_partition(const cpu_routine_run *r) {
  base_store_i64((base_dtype)r->step->op->type->dtype, r->out[0], r->run->ctx.options.partition);
  return 0;
}

/* The extent was known when the program was planned: types here are static. */
static int numbers_size(const cpu_routine_run *r) {
  const int64_t *size = r->data;
  base_store_i64((base_dtype)r->step->op->type->dtype, r->out[0], *size);
  return 0;
}

/* replica-id and partition-id depend on the call's options, so they are read when the step runs. */
int cpu_prepare_number(cpu_prepare_run *x) {
  assert(ir_is_tensor(x->op->type));
  const ir_op *op = x->op;
  x->out->name = "number";
  x->out->work = 1;
  if (op->opcode != IR_OP_GET_DIMENSION_SIZE) {
    x->code = op->opcode == IR_OP_REPLICA_ID ? numbers_replica : numbers_partition;
    return 0;
  }
  const ir_type *t = ir_operand_type(op, 0);
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t d = list && list->n == 1 ? list->v[0] : -1;
  if (d < 0 || d >= t->rank) return 0;
  x->data = base_arena_memdup(x->arena, &t->dims[d], sizeof t->dims[d]);
  x->code = numbers_size;
  return x->data ? 0 : base_oom(x->err, "a size");
}
