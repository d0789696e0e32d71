/* Operands that lie across the lanes. Where a kernel's lanes go along a dimension of an operand that is not its last,
 * each lane is loaded by itself; where besides each element is read many times, a copy with that dimension last takes a
 * fraction of that.
 *
 * d[i,j] = sum over k of (x[i,k] - y[j,k])^2, with f32[400,32] x and f32[300,32] y: the kernel's lanes go along j, and
 * y is loaded 32 elements apart, each of them 400 times. From a copy as f32[32,300] they are neighbours. */
#include "fusion_inside.h"
#include "lower_inside.h"

enum {
  COPY_LANES = 8,       /* along the dimension: fewer are gathered anyway */
  COPY_LEAST = 1 << 14, /* iterations of a kernel that is worth another step */
  COPY_TIMES = 8        /* that each element is read */
};

/* The innermost dimension of the iteration that counts; -1: none. */
static int32_t copy_lanes_of(const lower_run *x) {
  for (uint32_t k = x->rank; k-- > 0;)
    if (x->k->extents[k] > 1) return x->k->extents[k] < COPY_LANES ? -1 : (int32_t)k;
  return -1;
}

/* Elements between neighbours along dimension d. */
static int64_t copy_stride(const ir_type *t, uint32_t d) {
  int64_t stride = 1;
  for (uint32_t i = d + 1; i < t->rank; i++) stride *= t->dims[i];
  return stride;
}

int32_t lower_last_of(const lower_run *x, const ir_op *op, const lower_map *map) {
  const ir_type *t = op->type;
  int64_t lanes = x->space->count;
  int32_t along = copy_lanes_of(x), last = -1;
  if (along < 0 || t->count == 0 || lanes < COPY_LEAST || lanes / t->count < COPY_TIMES) return -1;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (map->coef[d * x->rank + (uint32_t)along] == 0 || t->dims[d] == 1) continue;
    if (last >= 0) return -1; /* a diagonal */
    last = (int32_t)d;
  }
  return last >= 0 && copy_stride(t, (uint32_t)last) > 1 ? last : -1;
}

/* Of each dimension in the copy. */
static void copy_strides(const ir_type *t, uint32_t last, int64_t *strides) {
  int64_t stride = t->dims[last];
  assert(last < t->rank);
  strides[last] = 1;
  for (uint32_t d = t->rank; d-- > 0;) {
    if (d == last) continue;
    strides[d] = stride;
    stride *= t->dims[d];
  }
}

kernel_index *lower_index_of_copy(lower_run *x, const ir_type *t, uint32_t last, const lower_map *map) {
  kernel_index *index = BASE_NEW(x->arena, kernel_index);
  int64_t strides[IR_MAX_RANK];
  copy_strides(t, last, strides);
  for (uint32_t d = 0; index && d < t->rank; d++) {
    index->offset += strides[d] * map->offset[d];
    for (uint32_t k = 0; k < x->rank; k++) index->strides[k] += strides[d] * map->coef[d * x->rank + k];
  }
  return index;
}

/* The iteration is over the copy: dense where it is written. */
int fusion_lower_copy(const fusion_input *input, base_arena *arena, kernel **out, xlac_error *err) {
  const ir_type *t = input->op->type;
  kernel *k = *out = BASE_NEW(arena, kernel);
  kernel_value *v = BASE_NEW(arena, kernel_value);
  kernel_store *s = BASE_NEW(arena, kernel_store);
  kernel_index *index = BASE_NEW(arena, kernel_index);
  int64_t strides[IR_MAX_RANK];
  if (!k || !v || !s || !index) return base_oom(err, "a kernel");
  uint32_t last = (uint32_t)input->last;
  copy_strides(t, last, strides);
  *k = (kernel){
      .rank = t->rank, .count = t->count, .n_values = 1, .n_inputs = 1, .n_stores = 1, .values = v, .stores = s};
  for (uint32_t d = 0; d < t->rank; d++) {
    uint32_t to = d == last ? t->rank - 1 : d - (d > last);
    k->extents[to] = t->dims[d];
    index->strides[to] = copy_stride(t, d);
    s->index.strides[to] = strides[d];
  }
  *v = (kernel_value){.kind = KERNEL_LOAD, .dtype = t->dtype, .index = index};
  kernel_index *indexes[] = {index, &s->index};
  kernel_collapse(k, 2, indexes, 0, NULL);
  return 0;
}
