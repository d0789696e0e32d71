/* dynamic-slice and dynamic-update-slice: a copy whose one side starts where the indices say, clamped so that the box
 * fits. They stand in loops, mostly with a row or an element, so little happens at a run. */
#include "../../interp/algorithm/arrays.h"
#include "../threaded/list.h"
#include "../move/move.h"
#include "../routine.h"

/* One start index: where it is read, its highest value in range, and the bytes that a step means. */
typedef struct dyn_index {
  uint32_t operand; /* whose element `at` (in bytes) is the index */
  int64_t at, limit, stride;
} dyn_index;

/* What is known before a run. Indices that must be 0 are left out. */
typedef struct dyn_data {
  cpu_move move;
  int64_t bytes; /* of the whole array */
  uint8_t dtype; /* of the indices */
  uint32_t n;    /* indices that can be other than 0 */
  const dyn_index *indices;
} dyn_data;

/* An index of any integer type; the common one comes first. */
static inline int64_t dyn_load(base_dtype t, const char *p) {
  int32_t small;
  if (t != XLAC_S32) return interp_index(t, p);
  memcpy(&small, p, sizeof small);
  return small;
}

/* The byte of the whole array where the box begins. */
static inline int64_t dyn_offset(const dyn_data *x, const void *const *in) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    const dyn_index *d = &x->indices[i];
    int64_t v = dyn_load(x->dtype, (const char *)in[d->operand] + d->at);
    offset += interp_clamp(v, 0, d->limit) * d->stride;
  }
  return offset;
}

/* The routine of a dynamic-slice. */
static int dyn_slice_run(const cpu_routine_run *r) {
  const dyn_data *x = r->data;
  cpu_move_few(&x->move, r->run->exe->pool, r->out[0], (const char *)r->in[0] + dyn_offset(x, r->in));
  return 0;
}

/* The routine of a dynamic-update-slice: the whole array, unless it is there already, then the box. */
static int dyn_update_run(const cpu_routine_run *r) {
  const dyn_data *x = r->data;
  int64_t offset = dyn_offset(x, r->in);
  /* In a loop the plan mostly lets both be one memory. */
  if (r->out[0] != r->in[0]) cpu_move_bytes(r->run->exe->pool, r->out[0], r->in[0], x->bytes);
  cpu_move_few(&x->move, r->run->exe->pool, (char *)r->out[0] + offset, r->in[1]);
  return 0;
}

/* The start indices: one scalar a dimension from operand `first` on, or all in one vector as in old programs. whole:
 * the array's type; box: the sizes of what is moved. data->dtype becomes the type of all indices. */
static int dyn_prepare_indices(cpu_prepare_run *x, uint32_t first, const ir_type *whole, const int64_t *box,
                               dyn_data *data) {
  assert(first < x->op->n_operands || whole->rank == 0);
  const ir_op *op = x->op;
  int64_t strides[IR_MAX_RANK];
  bool vector = op->n_operands == first + 1 && ir_operand_type(op, first)->rank == 1;
  dyn_index *all = BASE_ARRAY(x->arena, dyn_index, (size_t)whole->rank + 1);
  if (!all) return base_oom(x->err, "a dynamic slice");
  cpu_move_strides(whole, strides);
  data->indices = all;
  for (uint32_t d = 0; d < whole->rank; d++) {
    const ir_type *t = ir_operand_type(op, vector ? first : first + d);
    dyn_index index = {.operand = vector ? first : first + d, .limit = whole->dims[d] - box[d]};
    index.stride = strides[d] * (int64_t)base_dtype_bytes(whole->dtype);
    index.at = vector ? d * (int64_t)base_dtype_bytes(t->dtype) : 0;
    data->dtype = t->dtype;
    assert(index.limit >= 0);
    /* A box as long as the dimension can only begin at 0. */
    if (index.limit > 0) all[data->n++] = index;
  }
  return 0;
}

/* All indices have one type: the verifier asks for it, but one never knows. */
static bool dyn_is_plain(const ir_op *op, uint32_t first) {
  const ir_type *whole = ir_operand_type(op, 0);
  for (uint32_t i = first; i < op->n_operands; i++)
    if (ir_operand_type(op, i)->dtype != ir_operand_type(op, first)->dtype) return false;
  bool vector = op->n_operands == first + 1 && ir_operand_type(op, first)->rank == 1;
  return (vector || op->n_operands == first + whole->rank) && whole->dtype == op->type->dtype;
}

/* From the operand's strides to dense. */
int cpu_prepare_dynamic_slice(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *whole = ir_operand_type(x->op, 0);
  int64_t to[IR_MAX_RANK], from[IR_MAX_RANK];
  dyn_data *data = BASE_NEW(x->arena, dyn_data);
  if (!data) return base_oom(x->err, "a dynamic slice");
  if (!dyn_is_plain(x->op, 1)) return 0;
  cpu_move_strides(t, to);
  cpu_move_strides(whole, from);
  if (!cpu_move_make(&data->move, x->arena, base_dtype_bytes(t->dtype), t->rank, t->dims, to, from))
    return base_oom(x->err, "a dynamic slice");
  TRY(dyn_prepare_indices(x, 1, whole, t->dims, data));
  x->out->name = "slice";
  x->data = data;
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->code = dyn_slice_run;
  return 0;
}

/* The result may be the operand: then only the box is written. */
int cpu_prepare_dynamic_update_slice(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *update = ir_operand_type(x->op, 1);
  int64_t to[IR_MAX_RANK], from[IR_MAX_RANK];
  dyn_data *data = BASE_NEW(x->arena, dyn_data);
  if (!data) return base_oom(x->err, "a dynamic slice");
  if (!dyn_is_plain(x->op, 2) || update->dtype != t->dtype) return 0;
  data->bytes = t->count * (int64_t)base_dtype_bytes(t->dtype);
  cpu_move_strides(t, to);
  /* From the dense update to the array's strides. */
  cpu_move_strides(update, from);
  if (!cpu_move_make(&data->move, x->arena, base_dtype_bytes(t->dtype), t->rank, update->dims, to, from))
    return base_oom(x->err, "a dynamic slice");
  TRY(dyn_prepare_indices(x, 2, t, update->dims, data));
  x->out->name = "update";
  x->data = data;
  x->out->in_place = 1;
  x->out->work = (uint64_t)update->count;
  x->out->stoppable = true;
  x->code = dyn_update_run;
  return 0;
}

/* For whoever runs small programs without the routine: only boxes that are one run of bytes, by one index. */
bool cpu_dynamic_row_of(const cpu_executable *exe, const plan_step *s, cpu_dynamic_row *out) {
  const ir_op *op = s->op;
  bool update = op->opcode == IR_OP_DYNAMIC_UPDATE_SLICE;
  if (s->kind != PLAN_ROUTINE || (!update && op->opcode != IR_OP_DYNAMIC_SLICE)) return false;
  const dyn_data *x = exe->routines.items[s->routine->number].data;
  const ir_type *whole = ir_operand_type(op, 0), *part = update ? ir_operand_type(op, 1) : op->type;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)whole->dtype);
  /* One index, that isn't in a vector. */
  if (x->n != 1 || x->indices->at || part->count == 0) return false;
  *out = (cpu_dynamic_row){x->indices->operand, x->dtype, x->indices->limit, x->indices->stride, part->count * bytes};
  return out->limit * out->stride + out->bytes == whole->count * bytes; /* all dimensions before are of one element */
}

int64_t cpu_dynamic_row_at(const cpu_dynamic_row *row, const void *index) {
  return interp_clamp(dyn_load((base_dtype)row->dtype, index), 0, row->limit) * row->stride;
}
