/* Ops that are kernels of the loop IR: moves, and reductions whose dimensions do not lie in order. */
#include "../../interp/interp.h"
#include "routine.h"

/* A kernel that is being made; all lies in the scratch arena. */
typedef struct cu_kernels_make {
  kernel k;
  kernel_value *values;
  kernel_store store;
  kernel_reduction reduction;
} cu_kernels_make;

/* Room for so many values. NULL: out of memory, or too many dimensions. */
static cu_kernels_make *cu_kernels_begin(cuda_routine *r, uint32_t rank, uint32_t n_values, uint32_t n_inputs) {
  cu_kernels_make *m = rank <= KERNEL_MAX_RANK ? BASE_NEW(r->scratch, cu_kernels_make) : NULL;
  if (!m || !(m->values = base_arena_zalloc(r->scratch, (n_values + 1u) * sizeof *m->values))) return NULL;
  m->k = (kernel){.rank = rank, .count = 1, .n_inputs = n_inputs, .n_stores = 1};
  m->k.values = m->values;
  m->k.stores = &m->store;
  return m;
}

static kernel_index *cu_kernels_index(cuda_routine *r) {
  return BASE_NEW(r->scratch, kernel_index);
}

static void cu_kernels_extend(cu_kernels_make *m, const ir_type *t) {
  for (uint32_t d = 0; d < t->rank; d++) {
    m->k.extents[d] = t->dims[d];
    m->k.count *= t->dims[d];
  }
}

/* The last value is stored in the order of the iterations. */
static bool cu_kernels_print(cuda_routine *r, cu_kernels_make *m, const ir_type *result) {
  m->store.value = m->k.n_values - 1;
  if (!m->k.reduction) cuda_routine_strides(result, m->store.index.strides);
  return cuda_routine_kernel(r, &m->k);
}

static void cu_kernels_load(cu_kernels_make *m, uint32_t buffer, base_dtype t, const kernel_index *index) {
  m->values[m->k.n_values++] =
      (kernel_value){.kind = KERNEL_LOAD, .dtype = (uint8_t)t, .buffer = buffer, .index = index};
}

/* --- moves --- */

static void cu_kernels_reverse(const ir_op *op, const int64_t *own, kernel_index *x) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  memcpy(x->strides, own, op->type->rank * sizeof *own);
  for (uint32_t i = 0; i < list->n; i++) {
    int64_t d = list->v[i];
    x->offset += (op->type->dims[d] - 1) * own[d];
    x->strides[d] = -own[d];
  }
}

static void cu_kernels_slice(const ir_op *op, const int64_t *own, kernel_index *x) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SLICE);
  for (uint32_t d = 0; d < op->type->rank; d++) {
    x->offset += a->v.slice->v[d].start * own[d];
    x->strides[d] = op->type->dims[d] > 1 ? own[d] * a->v.slice->v[d].stride : 0;
  }
}

static void cu_kernels_broadcast(const ir_op *op, const int64_t *own, kernel_index *x) {
  const ir_ints *map = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const ir_type *t = ir_operand_type(op, 0);
  for (uint32_t i = 0; i < map->n; i++)
    if (t->dims[i] == op->type->dims[map->v[i]]) x->strides[map->v[i]] = own[i];
}

static void cu_kernels_transpose(const ir_op *op, const int64_t *own, kernel_index *x) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  for (uint32_t d = 0; d < op->type->rank; d++) x->strides[d] = own[list->v[d]];
}

/* One load by index. */
bool cuda_print_move(cuda_routine *r) {
  const ir_op *op = r->op;
  int64_t own[IR_MAX_RANK];
  cu_kernels_make *m = cu_kernels_begin(r, op->type->rank, 1, 1);
  kernel_index *x = cu_kernels_index(r);
  if (!m || !x) return false;
  cu_kernels_extend(m, op->type);
  cuda_routine_strides(ir_operand_type(op, 0), own);
  if (op->opcode == IR_OP_REVERSE)
    cu_kernels_reverse(op, own, x);
  else if (op->opcode == IR_OP_SLICE)
    cu_kernels_slice(op, own, x);
  else if (op->opcode == IR_OP_BROADCAST)
    cu_kernels_broadcast(op, own, x);
  else if (op->opcode == IR_OP_TRANSPOSE)
    cu_kernels_transpose(op, own, x);
  else
    memcpy(x->strides, own, op->type->rank * sizeof *own);
  cu_kernels_load(m, 0, (base_dtype)op->type->dtype, x);
  kernel_index *const indexes[] = {x, &m->store.index};
  cuda_routine_strides(op->type, m->store.index.strides);
  kernel_collapse(&m->k, 2, indexes, 0, NULL);
  m->store.value = 0;
  return cuda_routine_kernel(r, &m->k);
}

/* The operands from the last on, each taking its box of what there is. */
bool cuda_print_concatenate(cuda_routine *r) {
  const ir_op *op = r->op;
  uint32_t n = op->n_operands, d = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  int64_t own[IR_MAX_RANK], at = op->type->dims[d];
  cu_kernels_make *m = cu_kernels_begin(r, op->type->rank, 2 * n, n);
  if (!m || n > 64) return false;
  cu_kernels_extend(m, op->type);
  for (uint32_t i = n; i-- > 0;) {
    const ir_type *t = ir_operand_type(op, i);
    kernel_index *x = cu_kernels_index(r);
    kernel_box *box = BASE_NEW(r->scratch, kernel_box);
    if (!x || !box) return false;
    cuda_routine_strides(t, own);
    memcpy(x->strides, own, op->type->rank * sizeof *own);
    memcpy(box->to, op->type->dims, op->type->rank * sizeof *own);
    box->to[d] = at;
    at -= t->dims[d];
    box->from[d] = at;
    x->offset = -at * own[d];
    cu_kernels_load(m, i, (base_dtype)op->type->dtype, x);
    m->values[m->k.n_values - 1].box = box;
    uint32_t load = m->k.n_values - 1;
    if (i == n - 1) continue;
    m->values[m->k.n_values++] =
        (kernel_value){.kind = KERNEL_PICK, .dtype = op->type->dtype, .n_in = 2, .in = {load, load - 1}, .pick = box};
  }
  return cu_kernels_print(r, m, op->type);
}

/* Places that can be other than 0, at most three of them. */
bool cuda_print_dynamic_slice(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *whole = ir_operand_type(op, 0);
  cu_kernels_make *m = cu_kernels_begin(r, op->type->rank, 4, op->n_operands);
  kernel_index *x = cu_kernels_index(r), *nowhere = cu_kernels_index(r);
  kernel_base *bases = base_arena_zalloc(r->scratch, 3 * sizeof *bases);
  kernel_value load = {.kind = KERNEL_LOAD, .dtype = op->type->dtype, .index = x, .bases = bases};
  if (!m || !x || !nowhere || !bases || op->n_operands != whole->rank + 1u) return false;
  cu_kernels_extend(m, op->type);
  cuda_routine_strides(whole, x->strides);
  for (uint32_t d = 0; d < whole->rank; d++) {
    int64_t last = whole->dims[d] - op->type->dims[d];
    if (last == 0) continue;
    if (load.n_in == 3) return false;
    cu_kernels_load(m, d + 1, (base_dtype)ir_operand_type(op, d + 1)->dtype, nowhere);
    bases[load.n_in] = (kernel_base){x->strides[d], last};
    load.in[load.n_in++] = m->k.n_values - 1;
  }
  m->values[m->k.n_values++] = load;
  return cu_kernels_print(r, m, op->type);
}

/* --- reductions --- */

/* What a computation on two values is, if that is one op on them. */
static scalar_code cu_kernels_single(cuda_routine *r) {
  const scalar_program *p = NULL;
  xlac_error err;
  if (scalar_program_make(r->op->called[0], r->scratch, &p, &err) || !p) return SCALAR_NONE;
  return scalar_program_single(p);
}

/* Kept dimensions outside, reduced ones inside. */
bool cuda_print_reduce(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0);
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t own[IR_MAX_RANK];
  bool reduced[IR_MAX_RANK] = {false};
  uint32_t at = 0;
  scalar_code by = op->n_operands == 2 ? cu_kernels_single(r) : SCALAR_NONE;
  cu_kernels_make *m = by ? cu_kernels_begin(r, t->rank, 2, 2) : NULL;
  kernel_index *x = cu_kernels_index(r), *nowhere = cu_kernels_index(r);
  if (!by) return cuda_print_reduce_body(r);
  if (!m || !x || !nowhere || t->dtype != op->type->dtype || ir_operand_type(op, 1)->dtype != t->dtype) return false;
  cuda_routine_strides(t, own);
  for (uint32_t i = 0; i < list->n; i++) reduced[list->v[i]] = true;
  m->reduction = (kernel_reduction){1, 1, 1};
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t d = 0; d < t->rank; d++) {
      if (reduced[d] != (pass == 1)) continue;
      *(pass ? &m->reduction.reduced : &m->reduction.outer) *= t->dims[d];
      m->k.extents[at] = t->dims[d];
      x->strides[at++] = own[d];
      m->k.count *= t->dims[d];
    }
  m->k.reduction = &m->reduction;
  cu_kernels_load(m, 0, (base_dtype)t->dtype, x);
  cu_kernels_load(m, 1, (base_dtype)t->dtype, nowhere);
  m->store = (kernel_store){.value = 0, .by = by, .init = 1};
  return cuda_routine_kernel(r, &m->k);
}
