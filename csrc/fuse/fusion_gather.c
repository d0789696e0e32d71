/* Gathers of single elements, which a kernel does as loads from places of each iteration's own.
 *
 *    i = s32[9,2] concatenate(reshape(y), reshape(x)), dimensions={1}      y and x: of s32[9], whatever computes them
 *    g = f32[9] gather(image, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1
 *
 * becomes `load in0[0 + 512*v1 up to 511 + 1*v2 up to 511]`, with y's and x's values for v1 and v2: no index is in
 * memory. Gathers of rows are left to the routine, which copies each in one piece. */
#include "fusion_inside.h"

enum {
  GATHER_PLACES = 3, /* what a load has room for */
  GATHER_LOOK = 4    /* moves of an index that are looked through */
};

/* Dimensions along which a window may begin elsewhere. */
static uint32_t gather_places(const ir_op *op) {
  const ir_ints *to = ir_get_ints(op, IR_ATTR_START_INDEX_MAP);
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t places = 0;
  for (uint32_t i = 0; i < to->n; i++) places += t->dims[to->v[i]] > 1;
  return places;
}

bool fusion_gathers(const ir_op *op) {
  if (op->opcode != IR_OP_GATHER || op->type->count == 0) return false;
  const ir_type *t = ir_operand_type(op, 0), *indices = ir_operand_type(op, 1);
  const ir_ints *slices = ir_get_ints(op, IR_ATTR_SLICE_SIZES);
  if (t->dtype != op->type->dtype || t->count == 0 || t->has_dynamic || indices->has_dynamic) return false;
  if (!base_dtype_is_integer((base_dtype)indices->dtype) || base_dtype_of((base_dtype)indices->dtype)->bits < 8)
    return false;
  for (uint32_t d = 0; d < t->rank; d++)
    if (slices->v[d] != 1) return false;
  uint32_t places = gather_places(op);
  return places > 0 && places <= GATHER_PLACES;
}

uint32_t fusion_gather_batch(const ir_op *op, uint32_t *to) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < op->type->rank; d++)
    if (!ir_ints_has(ir_get_ints(op, IR_ATTR_OFFSET_DIMS), d)) to[n++] = d;
  return n;
}

/* No more than dimensions of size 1 are added or taken. */
static bool gather_only_reshapes(const ir_op *op) {
  if (op->opcode != IR_OP_RESHAPE && (op->opcode != IR_OP_BROADCAST || fusion_expands(op))) return false;
  const ir_type *from = ir_operand_type(op, 0), *to = op->type;
  uint32_t a = 0, b = 0;
  for (;;) {
    while (a < from->rank && from->dims[a] == 1) a++;
    while (b < to->rank && to->dims[b] == 1) b++;
    if (a == from->rank || b == to->rank) return a == from->rank && b == to->rank;
    if (from->dims[a++] != to->dims[b++]) return false;
  }
}

/* A concatenation of index components, one each. */
static bool gather_joins(const ir_op *op, uint32_t *along) {
  if (op->opcode != IR_OP_CONCATENATE) return false;
  *along = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand_type(op, i)->dims[*along] != 1) return false;
  return true;
}

const ir_op *fusion_gather_of(const ir_use *use) {
  uint32_t along = UINT32_MAX, joined = 0;
  for (uint32_t i = 0; i < GATHER_LOOK && use; i++) {
    const ir_op *user = use->user;
    if (use->slot == 1 && fusion_gathers(user)) {
      bool vector = joined == 0 || ir_get_int(user, IR_ATTR_INDEX_VECTOR_DIM, 0) == (int64_t)along;
      return vector ? user : NULL;
    }
    if (gather_joins(user, &along))
      joined++;
    else if (!gather_only_reshapes(user) || joined)
      return NULL;
    for (uint32_t r = 0; r < user->parent->n_results; r++)
      if (user->parent->results[r].op == user) return NULL;
    use = user->uses && !user->uses->next ? user->uses : NULL;
  }
  return NULL;
}

/* A value of one reader, which is not a result. */
static bool gather_is_alone(const ir_op *op) {
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return false;
  return op->uses && !op->uses->next;
}

bool fusion_gather_has_work(const ir_op *op) {
  const ir_op *from = ir_operand(op, 1);
  uint32_t along = 0;
  for (uint32_t i = 0; i < GATHER_LOOK && gather_is_alone(from); i++) {
    if (gather_joins(from, &along) && from->n_operands > 1) return true;
    if (!gather_only_reshapes(from))
      return from->opcode != IR_OP_CONSTANT && !fusion_moves_index(from) && fusion_is_candidate(from);
    from = ir_operand(from, 0);
  }
  return false;
}
