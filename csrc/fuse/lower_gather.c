/* A gather of single elements as a load: the index of each iteration is a value of the kernel, wherever it comes from.
 * Dimensions that go in step with one of the indexes' (batching) are part of the load's affine index. */
#include "lower_inside.h"

/* The map of the indexes' component k, given that of the result. */
static const lower_map *gather_index_map(lower_run *x, const ir_op *op, const lower_map *map, int64_t k) {
  const ir_type *t = ir_operand_type(op, 1);
  int64_t vector = ir_get_int(op, IR_ATTR_INDEX_VECTOR_DIM, 0);
  lower_map *m = lower_new_map(x, t->rank);
  uint32_t batch[IR_MAX_RANK], n = fusion_gather_batch(op, batch), next = 0;
  for (uint32_t d = 0; m && d < t->rank; d++) {
    if (d == vector)
      m->offset[d] = k;
    else
      lower_set(x, m, d, map, batch[next++], 0, 1);
  }
  assert(!m || next == n);
  (void)n;
  return m;
}

/* Where the array is read but for the indexes: at 0, or in step with a dimension of the indexes. */
static const lower_map *gather_array_map(lower_run *x, const ir_op *op, const lower_map *index) {
  const ir_ints *array = ir_get_ints(op, IR_ATTR_OPERAND_BATCHING_DIMS);
  const ir_ints *with = ir_get_ints(op, IR_ATTR_START_INDICES_BATCHING_DIMS);
  lower_map *m = lower_new_map(x, ir_operand_type(op, 0)->rank);
  for (uint32_t i = 0; m && array && i < array->n; i++)
    lower_set(x, m, (uint32_t)array->v[i], index, (uint32_t)with->v[i], 0, 1);
  return m;
}

/* Elements from one index to the next along dimension d. */
static int64_t gather_stride(const ir_type *t, int64_t d) {
  int64_t stride = 1;
  for (uint32_t i = (uint32_t)d + 1; i < t->rank; i++) stride *= t->dims[i];
  return stride;
}

/* The places: one for each component of the index vector that can differ. */
static int gather_add_places(lower_run *x, const ir_op *op, const lower_map *map, kernel_value *v) {
  const ir_ints *to = ir_get_ints(op, IR_ATTR_START_INDEX_MAP);
  const ir_type *t = ir_operand_type(op, 0);
  kernel_base *bases = BASE_ARRAY(x->arena, kernel_base, 3);
  if (!bases) return lower_no_memory(x);
  v->bases = bases;
  for (uint32_t k = 0; k < to->n; k++) {
    int64_t last = t->dims[to->v[k]] - 1;
    if (last == 0) continue;
    assert(v->n_in < 3);
    const lower_map *index = gather_index_map(x, op, map, k);
    if (!index) return lower_no_memory(x);
    bases[v->n_in] = (kernel_base){gather_stride(t, to->v[k]), last};
    TRY(lower_value(x, ir_operand(op, 1), index, &v->in[v->n_in++]));
  }
  return 0;
}

/* Where an index is there in the wanted iterations alone, so is the element. */
int lower_gather(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  assert(fusion_gathers(op));
  const ir_op *from = ir_operand(op, 0);
  kernel_value v = {.kind = KERNEL_LOAD, .dtype = op->type->dtype};
  int64_t least = 0, most = 0;
  const lower_map *index = gather_index_map(x, op, map, 0);
  const lower_map *array = index ? gather_array_map(x, op, index) : NULL;
  if (!array || !(v.index = lower_index(x, from->type, array))) return lower_no_memory(x);
  TRY(lower_number_input(x, from, -1, &v.buffer));
  TRY(gather_add_places(x, op, map, &v));
  bool everywhere = kernel_load_reach(x->k, &v, &least, &most) && least >= 0 && most < from->type->count;
  for (uint32_t i = 0; i < v.n_in; i++) everywhere = everywhere && !x->values.items[v.in[i]].box;
  if (!everywhere) v.box = x->box;
  return lower_add(x, op, map, &v, value);
}
