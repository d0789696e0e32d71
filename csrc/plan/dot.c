/* Dots as matrix products: dimensions that lie side by side in memory count as one, and a transposed operand is a
 * flag.
 *
 * dot of f32[5,2,3] and f32[5,3,4] with batch dimension 0, contracting 2 and 1: batch 5, m 2, n 4, k 3, lda 3, ldb 4,
 * strides 6 and 12. No operand is copied; where the dimensions don't walk memory with one stride it is not a product
 * for BLAS. */
#include "plan.h"

/* Dimensions of an operand taken as one: its extent and stride. */
typedef struct dot_group {
  int64_t extent, stride;
} dot_group;

/* Row-major and dense, in elements. */
static void dot_strides(const ir_type *t, int64_t *strides) {
  int64_t stride = 1;
  for (uint32_t d = t->rank; d-- > 0;) {
    strides[d] = stride;
    stride *= t->dims[d];
  }
}

/* false where the dimensions don't walk memory with one stride. Dimensions are added from the outermost in: the next
 * one must continue where the stride of those before ends. */
static bool dot_add(dot_group *g, int64_t extent, int64_t stride) {
  assert(g);
  if (extent == 1) return true;
  if (g->extent != 1 && g->stride != extent * stride) return false;
  g->extent *= extent;
  g->stride = stride;
  return true;
}

/* Batch or contracting dimensions, in the order of the list. */
static bool dot_listed(const ir_type *t, const ir_ints *dims, dot_group *g) {
  int64_t strides[IR_MAX_RANK];
  dot_strides(t, strides);
  *g = (dot_group){1, 0};
  for (uint32_t i = 0; i < dims->n; i++)
    if (!dot_add(g, t->dims[dims->v[i]], strides[dims->v[i]])) return false;
  return true;
}

/* All that are in neither list, in the operand's order. */
static bool dot_free(const ir_type *t, const ir_ints *batch, const ir_ints *contracting, dot_group *g) {
  int64_t strides[IR_MAX_RANK];
  dot_strides(t, strides);
  *g = (dot_group){1, 0};
  for (uint32_t d = 0; d < t->rank; d++) {
    if (ir_ints_has(batch, d) || ir_ints_has(contracting, d)) continue;
    if (!dot_add(g, t->dims[d], strides[d])) return false;
  }
  return true;
}

/* A matrix of `rows` by `columns` groups: BLAS needs one of them to have stride 1. */
static bool dot_matrix(const dot_group *rows, const dot_group *columns, bool *transposed, int64_t *leading) {
  bool plain = columns->extent == 1 || columns->stride == 1;
  *transposed = !plain;
  const dot_group *inner = plain ? columns : rows, *outer = plain ? rows : columns;
  if (inner->extent != 1 && inner->stride != 1) return false;
  *leading = outer->extent == 1 ? inner->extent : outer->stride;
  return *leading >= inner->extent;
}

/* BLAS counts in 32-bit integers. */
static bool dot_fits(int64_t v) {
  return v > 0 && v <= INT32_MAX;
}

/* Products of one real type, f32 or f64, by an algorithm that asks for no less. */
bool plan_dot_of(const ir_op *op, plan_dot *dot) {
  assert(op && dot);
  if (op->opcode != IR_OP_DOT || op->n_operands != 2 || op->type->has_dynamic) return false;
  const ir_type *a = ir_operand_type(op, 0), *b = ir_operand_type(op, 1);
  bool real = op->type->dtype == XLAC_F32 || op->type->dtype == XLAC_F64;
  if (!real || a->dtype != op->type->dtype || b->dtype != op->type->dtype || op->type->count == 0) return false;
  ir_dot algorithm = (ir_dot)ir_get_word(op, IR_ATTR_ALGORITHM);
  if (algorithm != IR_DOT_UNSET && algorithm != IR_DOT_F32_F32_F32 && algorithm != IR_DOT_F64_F64_F64) return false;
  const ir_ints *ab = ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), *bb = ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS);
  const ir_ints *ac = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS),
                *bc = ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS);
  dot_group batch_a, batch_b, k_a, k_b, m, n;
  if (!dot_listed(a, ab, &batch_a) || !dot_listed(b, bb, &batch_b) || !dot_listed(a, ac, &k_a) ||
      !dot_listed(b, bc, &k_b) || !dot_free(a, ab, ac, &m) || !dot_free(b, bb, bc, &n))
    return false;
  *dot = (plan_dot){.dtype = op->type->dtype,
                    .batch = batch_a.extent,
                    .m = m.extent,
                    .n = n.extent,
                    .k = k_a.extent,
                    .stride_a = batch_a.stride,
                    .stride_b = batch_b.stride};
  if (!dot_matrix(&m, &k_a, &dot->transpose_a, &dot->lda) || !dot_matrix(&k_b, &n, &dot->transpose_b, &dot->ldb))
    return false;
  return dot_fits(dot->m) && dot_fits(dot->n) && dot_fits(dot->k) && dot_fits(dot->lda) && dot_fits(dot->ldb);
}
