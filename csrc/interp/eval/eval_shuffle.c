/* shuffle (newer XLA): rotate gives element (i + shift) mod size along each listed dimension; permute takes each
 * element from the coordinates that `indices` holds for it. indices has the operand's dimensions, of size 1 where all
 * share coordinates, and after them a dimension of one coordinate per listed dimension, which may be left out when
 * there is one.
 *
 * rotate: f32[4] with shift 1 gives elements 1, 2, 3, 0. Indices are a literal of the op, not an operand. */
#include "../interp.h"

typedef struct shuffle_walk {
  const interp_value *src;
  interp_value *dst;
  const ir_ints *dimensions;
  int64_t src_strides[IR_MAX_RANK];
  int64_t at[IR_MAX_RANK]; /* of the element being written */
  const ir_ints *shifts;   /* rotate */
  const ir_literal *indices;
  int64_t index_strides[IR_MAX_RANK], index_last; /* permute: 0 where coordinates are shared */
} shuffle_walk;

/* The source coordinate along dimensions->v[k] of the element at w->at; negative when out of range. */
static int64_t shuffle_coordinate(const shuffle_walk *w, uint32_t k) {
  assert(k < w->dimensions->n && (w->shifts || w->indices));
  uint32_t d = (uint32_t)w->dimensions->v[k];
  int64_t size = w->src->dims[d];
  if (w->shifts) {
    int64_t shift = w->shifts->v[k] % size, i = w->at[d] + (shift < 0 ? shift + size : shift);
    return i >= size ? i - size : i;
  }
  int64_t at = (int64_t)k * w->index_last;
  for (uint32_t i = 0; i < w->src->rank; i++) at += w->at[i] * w->index_strides[i];
  base_dtype type = w->indices->type->dtype;
  int64_t v = base_load_i64(type, (const char *)w->indices->data + (size_t)at * base_dtype_bytes(type));
  return v < size ? v : -1;
}

/* Element by element, by an odometer over the result. */
static int shuffle_elements(interp_ctx *ctx, const ir_op *op, shuffle_walk *w) {
  size_t bytes = base_dtype_bytes(w->src->dtype);
  for (int64_t n = 0; n < w->dst->count; n++) {
    int64_t from = 0;
    for (uint32_t d = 0; d < w->src->rank; d++) from += w->at[d] * w->src_strides[d];
    for (uint32_t k = 0; k < w->dimensions->n; k++) {
      uint32_t d = (uint32_t)w->dimensions->v[k];
      int64_t coordinate = shuffle_coordinate(w, k);
      if (coordinate < 0)
        return interp_fail(ctx, op, XLAC_E_EVAL, "an index is outside dimension %u of the operand", d);
      from += (coordinate - w->at[d]) * w->src_strides[d];
    }
    memcpy((char *)w->dst->data + (size_t)n * bytes, (const char *)w->src->data + (size_t)from * bytes, bytes);
    for (uint32_t d = w->src->rank; d-- > 0 && ++w->at[d] == w->src->dims[d];) w->at[d] = 0;
    if (n % 4096 == 0) TRY(interp_tick(ctx, 4096 * 8));
  }
  return 0;
}

/* Sets the index strides, 0 where coordinates are shared. */
static bool shuffle_indices_fit(shuffle_walk *w) {
  const ir_type *t = w->indices->type;
  uint32_t rank = w->src->rank;
  bool last = t->rank == rank + 1;
  if (w->indices->elided || !ir_is_tensor(t) || (!last && (t->rank != rank || w->dimensions->n != 1))) return false;
  if (!base_dtype_is_integer(t->dtype) || (last && t->dims[rank] != w->dimensions->n)) return false;
  int64_t strides[IR_MAX_RANK + 1];
  if (t->rank > IR_MAX_RANK) return false;
  interp_strides(t->rank, t->dims, strides);
  w->index_last = last ? strides[rank] : 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (t->dims[d] != 1 && t->dims[d] != w->src->dims[d]) return false;
    w->index_strides[d] = t->dims[d] == 1 ? 0 : strides[d];
  }
  return true;
}

/* Everything that an element relies on is checked here, but for the range of indices. */
static int shuffle_prepare(interp_ctx *ctx, const ir_op *op, shuffle_walk *w) {
  bool rotate = ir_get_word(op, IR_ATTR_MODE) == IR_SHUFFLE_ROTATE;
  const ir_attr *indices = ir_attr_find(op, IR_ATTR_INDICES);
  w->dimensions = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  for (uint32_t k = 0; k < w->dimensions->n; k++)
    if (w->dimensions->v[k] < 0 || w->dimensions->v[k] >= w->src->rank)
      return interp_fail(ctx, op, XLAC_E_EVAL, "dimension %lld is not one of the operand",
                         (long long)w->dimensions->v[k]);
  if (rotate) w->shifts = ir_get_ints(op, IR_ATTR_SHIFTS);
  if (rotate && w->shifts->n != w->dimensions->n)
    return interp_fail(ctx, op, XLAC_E_EVAL, "shifts must hold one number per dimension");
  if (!rotate) w->indices = indices ? indices->v.literal : NULL;
  if (!rotate && (!w->indices || !shuffle_indices_fit(w)))
    return interp_fail(ctx, op, XLAC_E_EVAL, "a permute needs indices that fit the operand's shape");
  interp_strides(w->src->rank, w->src->dims, w->src_strides);
  return 0;
}

int interp_eval_shuffle(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 1);
  shuffle_walk w = {.src = operands[0]};
  if (w.src->kind != INTERP_ARRAY || w.src->rank > IR_MAX_RANK)
    return interp_fail(ctx, op, XLAC_E_EVAL, "shuffle takes an array");
  TRY(shuffle_prepare(ctx, op, &w));
  w.dst = interp_array(ctx, w.src->dtype, w.src->rank, w.src->dims);
  if (!w.dst) return base_oom(ctx->err, "shuffle");
  int status = shuffle_elements(ctx, op, &w);
  if (status != 0) return interp_release(w.dst), status;
  *out = w.dst;
  return 0;
}
