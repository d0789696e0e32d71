/* Ops that give each element of the operand another place, the same at every run: transpose, reverse, slice, broadcast,
 * and copy. */
#include "move.h"
#include "../routine.h"

enum { REARRANGE_MUCH = 1 << 16 /* elements, that parts of an async operation share */ };

/* What is known before a run. */
typedef struct rearrange_data {
  cpu_move move;
  int64_t from; /* byte of the operand where index 0 of the result lies */
} rearrange_data;

/* The routine: one copy. */
static int rearrange_run(const cpu_routine_run *r) {
  const rearrange_data *x = r->data;
  cpu_move_run(&x->move, r->run->exe->pool, r->out[0], (const char *)r->in[0] + x->from);
  return 0;
}

/* Strides of the operand by dimension of the result, and the element at index 0. */
static int64_t rearrange_transpose(const ir_op *op, const int64_t *own, int64_t *from) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  for (uint32_t d = 0; d < op->type->rank; d++) from[d] = own[list->v[d]];
  return 0;
}

/* Backwards in the dimensions listed: from their last elements on. */
static int64_t rearrange_reverse(const ir_op *op, const int64_t *own, int64_t *from) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t at = 0;
  memcpy(from, own, op->type->rank * sizeof *from);
  for (uint32_t i = 0; i < list->n; i++) {
    int64_t d = list->v[i];
    at += (op->type->dims[d] - 1) * own[d];
    from[d] = -own[d];
  }
  return at;
}

/* A dimension of one element is not walked, and its stride could be too large to count. */
static int64_t rearrange_slice(const ir_op *op, const int64_t *own, int64_t *from) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SLICE);
  int64_t at = 0;
  for (uint32_t d = 0; d < op->type->rank; d++) {
    at += a->v.slice->v[d].start * own[d];
    from[d] = op->type->dims[d] > 1 ? own[d] * a->v.slice->v[d].stride : own[d];
  }
  return at;
}

/* Stride 0 where the operand has no such dimension, or one element in it. */
static int64_t rearrange_broadcast(const ir_op *op, const int64_t *own, int64_t *from) {
  const ir_ints *map = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const ir_type *x = ir_operand_type(op, 0);
  memset(from, 0, op->type->rank * sizeof *from);
  for (uint32_t i = 0; i < map->n; i++)
    if (x->dims[i] == op->type->dims[map->v[i]]) from[map->v[i]] = own[i];
  return 0;
}

/* own: the operand's strides. Gives the element at index 0. */
static int64_t rearrange_strides(const ir_op *op, const int64_t *own, int64_t *from) {
  switch (op->opcode) {
    case IR_OP_TRANSPOSE:
      return rearrange_transpose(op, own, from);
    case IR_OP_REVERSE:
      return rearrange_reverse(op, own, from);
    case IR_OP_SLICE:
      return rearrange_slice(op, own, from);
    default:
      assert(op->opcode == IR_OP_BROADCAST);
      return rearrange_broadcast(op, own, from);
  }
}

/* Large ones are divisible: several calls may share their work. */
int cpu_prepare_rearrange(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *operand = ir_operand_type(x->op, 0);
  int64_t own[IR_MAX_RANK], from[IR_MAX_RANK], to[IR_MAX_RANK];
  if (!ir_is_tensor(t) || !ir_is_tensor(operand) || t->dtype != operand->dtype) return 0;
  int64_t bytes = (int64_t)base_dtype_bytes(t->dtype);
  rearrange_data *data = BASE_NEW(x->arena, rearrange_data);
  cpu_move_strides(operand, own);
  cpu_move_strides(t, to);
  int64_t at = t->count ? rearrange_strides(x->op, own, from) : 0;
  /* Where there is no element, first and last may lie outside of the operand. */
  if (t->count == 0) memset(from, 0, sizeof from);
  if (!data || !cpu_move_make(&data->move, x->arena, (size_t)bytes, t->rank, t->dims, to, from))
    return base_oom(x->err, "a copy");
  data->from = at * bytes;
  x->out->name = data->move.kind == CPU_MOVE_TILES ? "tiles" : "move";
  x->data = data;
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->out->divisible = x->out->work >= REARRANGE_MUCH;
  x->code = rearrange_run;
  return 0;
}

/* --- what moves nothing within the array --- */

/* The routine. Nothing is moved where the plan gave both the same memory. */
static int rearrange_copy_run(const cpu_routine_run *r) {
  const int64_t *bytes = r->data;
  cpu_move_bytes(r->run->exe->pool, r->out[0], r->in[0], *bytes);
  return 0;
}

/* The bytes as stored, whatever the type. */
int cpu_prepare_copy(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *operand = ir_operand_type(x->op, 0);
  if (!ir_is_tensor(t) || !ir_is_tensor(operand)) return 0;
  int64_t bytes = t->count * (int64_t)base_dtype_bytes(t->dtype);
  x->out->name = "copy";
  x->data = base_arena_memdup(x->arena, &bytes, sizeof bytes);
  x->out->in_place = 1;
  x->out->work = (uint64_t)bytes / 4;
  x->out->stoppable = true;
  x->out->divisible = x->out->work >= REARRANGE_MUCH;
  x->code = rearrange_copy_run;
  return x->data ? 0 : base_oom(x->err, "a copy");
}
