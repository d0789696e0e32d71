#include "dot.h"

/* Neighbours that are one walk are one dimension. */
static void cu_dot_add(cuda_dot_role *x, int64_t extent, int64_t stride) {
  x->count *= extent;
  if (extent == 1) return;
  if (x->n && x->strides[x->n - 1] == extent * stride) {
    x->extents[x->n - 1] *= extent;
    x->strides[x->n - 1] = stride;
    return;
  }
  x->extents[x->n] = extent;
  x->strides[x->n++] = stride;
}

static void cu_dot_make(cuda_dot_side *x, const ir_type *t, const ir_ints *batch, const ir_ints *contracting) {
  int64_t own[IR_MAX_RANK];
  bool listed[IR_MAX_RANK] = {false};
  *x = (cuda_dot_side){.batch.count = 1, .contracting.count = 1, .free.count = 1};
  cuda_routine_strides(t, own);
  for (uint32_t i = 0; i < batch->n; i++) cu_dot_add(&x->batch, t->dims[batch->v[i]], own[batch->v[i]]);
  for (uint32_t i = 0; i < contracting->n; i++)
    cu_dot_add(&x->contracting, t->dims[contracting->v[i]], own[contracting->v[i]]);
  for (uint32_t i = 0; i < batch->n; i++) listed[batch->v[i]] = true;
  for (uint32_t i = 0; i < contracting->n; i++) listed[contracting->v[i]] = true;
  for (uint32_t d = 0; d < t->rank; d++)
    if (!listed[d]) cu_dot_add(&x->free, t->dims[d], own[d]);
}

void cuda_dot_sides(const ir_op *op, cuda_dot_side *a, cuda_dot_side *b) {
  cu_dot_make(a, ir_operand_type(op, 0), ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS),
              ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS));
  cu_dot_make(b, ir_operand_type(op, 1), ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS),
              ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS));
}

void cuda_dot_put_role(cuda_routine *r, const cuda_dot_role *x, const char *name) {
  int64_t inside = 1;
  for (uint32_t i = x->n; i-- > 0; inside *= x->extents[i]) {
    if (i == 0 && inside == 1)
      base_putf(r->print.out, " + %s * (idx)%lld", name, (long long)x->strides[i]);
    else
      base_putf(r->print.out, " + %s / %lld %% %lld * (idx)%lld", name, (long long)inside, (long long)x->extents[i],
                (long long)x->strides[i]);
  }
}
