/* Ops that compute nothing, but read their operands at other indexes: in a kernel they are part of a load's index, or
 * of the box of iterations in which a value is there. Whether an op can be that is a question of its attributes: a
 * reshape f32[6] to f32[2,3] is (6 = 2 * 3), f32[2,3] to f32[3,2] is not, as no dimension is a product of whole
 * others. */
#include "fusion_inside.h"

enum { MOVES_PLACES = 3 /* dimensions in which a dynamic slice may begin elsewhere: what a load has room for */ };

bool fusion_has_edges(const ir_op *op) {
  return op->opcode == IR_OP_PAD || op->opcode == IR_OP_CONCATENATE;
}

/* Dimension d of a reshape's operand is dimensions *from to *to - 1 of its result, the first of which is not looked at
 * yet. false where it is only a part of one. */
static bool moves_next_group(const ir_type *in, const ir_type *out, uint32_t d, uint32_t *from, uint32_t *to) {
  assert(d < in->rank);
  int64_t product = 1;
  *from = *to;
  while (product < in->dims[d] && *to < out->rank) product *= out->dims[(*to)++];
  return product == in->dims[d];
}

bool fusion_reshape_groups(const ir_op *op, uint32_t *from, uint32_t *to) {
  const ir_type *in = ir_operand_type(op, 0);
  uint32_t at = 0;
  assert(op->opcode == IR_OP_RESHAPE);
  for (uint32_t d = 0; d < in->rank; d++) {
    if (!moves_next_group(in, op->type, d, &from[d], &at)) return false;
    to[d] = at;
  }
  return true;
}

/* Dimensions of size 1 do not count. */
bool fusion_splits(const ir_op *op) {
  uint32_t from[IR_MAX_RANK], to[IR_MAX_RANK];
  if (op->opcode != IR_OP_RESHAPE || !fusion_reshape_groups(op, from, to)) return false;
  for (uint32_t d = 0; d < ir_operand_type(op, 0)->rank; d++) {
    uint32_t wide = 0;
    for (uint32_t j = from[d]; j < to[d]; j++) wide += op->type->dims[j] != 1;
    if (wide > 1) return true;
  }
  return false;
}

/* Interior padding would make boxes with holes. */
static bool moves_by_padding(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PADDING);
  if (!a) return false;
  for (uint32_t d = 0; d < a->v.padding->n; d++)
    if (a->v.padding->v[d].interior) return false;
  return ir_operand_type(op, 1)->rank == 0;
}

/* Starts are scalars of one integer type, few of which can differ. */
static bool moves_by_place(const ir_op *op) {
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t places = 0;
  if (op->n_operands != t->rank + 1) return false;
  for (uint32_t d = 0; d < t->rank; d++) {
    const ir_type *start = ir_operand_type(op, d + 1);
    if (start->rank != 0 || !base_dtype_is_integer((base_dtype)start->dtype)) return false;
    if (base_dtype_of((base_dtype)start->dtype)->bits < 8) return false;
    places += t->dims[d] != op->type->dims[d];
  }
  return places > 0 && places <= MOVES_PLACES;
}

/* Arrays without elements are left to the steps that do nothing for them. */
bool fusion_moves_index(const ir_op *op) {
  uint32_t from[IR_MAX_RANK], to[IR_MAX_RANK];
  switch (op->opcode) {
    case IR_OP_BROADCAST:
    case IR_OP_SLICE:
    case IR_OP_REVERSE:
    case IR_OP_TRANSPOSE:
      return true;
    case IR_OP_CONCATENATE:
      return op->type->count > 0 && op->n_operands > 1;
    case IR_OP_PAD:
      return op->type->count > 0 && moves_by_padding(op);
    case IR_OP_RESHAPE:
      return op->type->count > 0 && fusion_reshape_groups(op, from, to);
    case IR_OP_DYNAMIC_SLICE:
      return op->type->count > 0 && moves_by_place(op);
    case IR_OP_GATHER:
      return fusion_gathers(op);
    default:
      return false;
  }
}

/* The window is one element wide, so this dimension is not combined. */
static bool moves_no_window(const ir_window_dim *d) {
  return d->size == 1 && d->stride == 1 && d->padding_low == 0 && d->padding_high == 0 && d->base_dilation == 1;
}

/* The windows of dimension d begin at its first element and end at the result's, or begin there and end at the last. */
static bool moves_all_before(const ir_window_dim *d, int64_t n, bool *back) {
  *back = d->padding_low == 0;
  bool one_sided = *back ? d->padding_high == d->size - 1 : d->padding_low == d->size - 1 && d->padding_high == 0;
  return n > 1 && d->size >= n && one_sided && d->stride == 1 && d->window_dilation == 1 && d->base_dilation == 1;
}

/* A cumulative sum in XLA's form: reduce-window with size=n pad=n-1_0 along one dimension, the rest size 1. */
const ir_op *fusion_scan(const ir_op *op, uint32_t *along, bool *back) {
  assert(along && back);
  const ir_window *w = op->opcode == IR_OP_REDUCE_WINDOW ? ir_get_window(op) : NULL;
  const ir_type *t = w ? ir_operand_type(op, 0) : NULL;
  const ir_op *body = w ? fusion_combiner(op) : NULL;
  uint32_t scans = 0;
  if (!body || w->n != t->rank || op->type->count != t->count) return NULL;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (moves_no_window(&w->v[d])) continue;
    if (!moves_all_before(&w->v[d], t->dims[d], back)) return NULL;
    *along = d;
    scans++;
  }
  return scans == 1 ? body : NULL;
}

/* Views (reshape) and copies that a routine does as well. */
bool fusion_is_soft(const ir_op *op) {
  if (op->opcode == IR_OP_REDUCE_WINDOW) return true;
  return op->opcode == IR_OP_RESHAPE || op->opcode == IR_OP_DYNAMIC_SLICE || op->opcode == IR_OP_GATHER ||
         fusion_has_edges(op);
}
