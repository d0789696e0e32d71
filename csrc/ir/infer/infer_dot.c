/* Inference of dot, scaled-dot and ragged-dot. The element type is the more precise operand's; a module may declare any
 * other (XLA's preferred_element_type), which is the verifier's affair. */
#include "infer.h"

typedef struct dot_dims {
  const ir_ints *lhs_batch, *rhs_batch, *lhs_contracting, *rhs_contracting;
} dot_dims;

static dot_dims dot_dims_of(const ir_op *op) {
  return (dot_dims){ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS),
                    ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS), ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS)};
}

/* Dimensions a of lhs and b of rhs come in pairs of fitting sizes. */
static int check_dot_pairs(const char *what, const ir_type *lhs, const ir_type *rhs, const ir_ints *a, const ir_ints *b,
                           xlac_error *err) {
  if (a->n != b->n)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "lhs has %u %s dimensions, but rhs has %u", a->n, what, b->n);
  for (uint32_t i = 0; i < a->n; i++)
    if (!ir_sizes_fit(lhs->dims[a->v[i]], rhs->dims[b->v[i]]))
      return base_fail(err, XLAC_E_INFER, "%s dimension %lld of %s and %lld of %s differ in size", what,
                       (long long)a->v[i], IR_SHOW(lhs), (long long)b->v[i], IR_SHOW(rhs));
  return 0;
}

static int check_dot_dims(const ir_type *lhs, const ir_type *rhs, dot_dims n, xlac_error *err) {
  TRY(ir_check_dims_set("lhs_contracting_dims and lhs_batch_dims", n.lhs_contracting, n.lhs_batch, lhs->rank, err));
  TRY(ir_check_dims_set("rhs_contracting_dims and rhs_batch_dims", n.rhs_contracting, n.rhs_batch, rhs->rank, err));
  TRY(check_dot_pairs("contracting", lhs, rhs, n.lhs_contracting, n.rhs_contracting, err));
  return check_dot_pairs("batch", lhs, rhs, n.lhs_batch, n.rhs_batch, err);
}

/* Dimensions of t in neither list (nor the third, if given) go to d in their order. */
static int push_free_dims(ir_dims *d, const ir_type *t, const ir_ints *a, const ir_ints *b, const ir_ints *c,
                          xlac_error *err) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (!ir_ints_has(a, i) && !ir_ints_has(b, i) && !(c && ir_ints_has(c, i)))
      TRY(ir_dims_push(d, t->dims[i], ir_dim_is_dynamic(t, i), err));
  return 0;
}

/* Batch, free lhs, free rhs dimensions, after what d holds already. */
static int finish_dot(ir_module *m, const ir_type *lhs, const ir_type *rhs, dot_dims n, const ir_ints *groups,
                      ir_dims *d, const ir_type **out, xlac_error *err) {
  for (uint32_t i = 0; i < n.lhs_batch->n; i++) {
    uint32_t dim = (uint32_t)n.lhs_batch->v[i];
    assert(dim < lhs->rank);
    TRY(ir_dims_push(d, lhs->dims[dim], ir_dim_is_dynamic(lhs, dim), err));
  }
  TRY(push_free_dims(d, lhs, n.lhs_contracting, n.lhs_batch, NULL, err));
  TRY(push_free_dims(d, rhs, n.rhs_contracting, n.rhs_batch, groups, err));
  base_dtype dtype;
  TRY(ir_infer_precision(lhs->dtype, rhs->dtype, &dtype, err));
  return ir_dims_tensor(m, dtype, d, out, err);
}

int ir_infer_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  dot_dims n = dot_dims_of(op);
  TRY(check_dot_dims(lhs, rhs, n, err));
  ir_dims d = {.rank = 0};
  return finish_dot(m, lhs, rhs, n, NULL, &d, out, err);
}

/* Operands are lhs, rhs and their scales; what the scales must be is the verifier's affair. */
int ir_infer_scaled_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_all_tensors(op, err));
  return ir_infer_dot(m, op, out, err);
}

/* --- ragged-dot --- */

/* What kind of lhs dimension is ragged. With b batch, m free, k contracting, g groups:
 *   FREE         [b,m,k] [g,b,k,n] -> [b,m,n]
 *   CONTRACTING  [b,m,k] [b,k,n]   -> [g,b,m,n]
 *   BATCH        [b,m,k] [b,k,n]   -> [b,m,n] */
typedef enum ragged_mode { RAGGED_FREE, RAGGED_CONTRACTING, RAGGED_BATCH } ragged_mode;

static ragged_mode ragged_mode_of(dot_dims n, int64_t ragged) {
  if (ir_ints_has(n.lhs_batch, ragged)) return RAGGED_BATCH;
  return ir_ints_has(n.lhs_contracting, ragged) ? RAGGED_CONTRACTING : RAGGED_FREE;
}

static int push_until(ir_dims *d, const ir_type *lhs, const ir_ints *list, int64_t stop, xlac_error *err) {
  for (uint32_t i = 0; i < list->n && list->v[i] != stop; i++) TRY(ir_dims_push(d, lhs->dims[list->v[i]], false, err));
  return 0;
}

/* The sizes that group_sizes has before its last dimension when it is given per batch and per outer dimension. */
static int group_prefix(const ir_type *lhs, dot_dims n, int64_t ragged, ir_dims *d, xlac_error *err) {
  assert(ragged >= 0 && ragged < lhs->rank);
  ragged_mode mode = ragged_mode_of(n, ragged);
  TRY(push_until(d, lhs, n.lhs_batch, ragged, err));
  if (mode == RAGGED_CONTRACTING) return push_until(d, lhs, n.lhs_contracting, ragged, err);
  for (uint32_t i = 0; mode == RAGGED_FREE && i < (uint32_t)ragged; i++)
    if (!ir_ints_has(n.lhs_contracting, i) && !ir_ints_has(n.lhs_batch, i))
      TRY(ir_dims_push(d, lhs->dims[i], false, err));
  return 0;
}

static int check_group_sizes(const ir_type *lhs, const ir_type *sizes, dot_dims n, int64_t ragged, xlac_error *err) {
  if (sizes->rank == 1) return 0;
  ir_dims prefix = {.rank = 0};
  TRY(group_prefix(lhs, n, ragged, &prefix, err));
  bool ok = sizes->rank == prefix.rank + 1;
  for (uint32_t i = 0; ok && i < prefix.rank; i++) ok = sizes->dims[i] == prefix.size[i];
  if (ok) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                   "group_sizes of ragged-dot must be one vector or have the leading dimensions %s, "
                   "but is %s",
                   IR_SHOW_INTS(prefix.rank, prefix.size), IR_SHOW(sizes));
}

static int check_rhs_groups(const ir_op *op, const ir_type *rhs, dot_dims n, ragged_mode mode, int64_t groups,
                            xlac_error *err) {
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS);
  TRY(ir_check_dims_in_range("rhs_group_dims", dims, rhs->rank, err));
  for (uint32_t i = 0; i < dims->n; i++)
    if (ir_ints_has(n.rhs_batch, dims->v[i]) || ir_ints_has(n.rhs_contracting, dims->v[i]))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                       "rhs_group_dims names dimension %lld, which is a batch or contracting one",
                       (long long)dims->v[i]);
  uint32_t need = mode == RAGGED_FREE;
  if (dims->n != need)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE,
                     "rhs_group_dims must name %u dimension%s when the ragged dimension is a %s one, "
                     "but names %u",
                     need, need == 1 ? "" : "s",
                     mode == RAGGED_FREE    ? "free"
                     : mode == RAGGED_BATCH ? "batch"
                                            : "contracting",
                     dims->n);
  if (need && !ir_sizes_fit(groups, rhs->dims[dims->v[0]]))
    return base_fail(err, XLAC_E_INFER, "group dimension %lld of rhs %s must have the size of group_sizes, %lld",
                     (long long)dims->v[0], IR_SHOW(rhs), (long long)groups);
  return 0;
}

int ir_infer_ragged_dot(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *lhs, *rhs, *sizes;
  int64_t ragged;
  TRY(ir_check_tensor(op, 0, &lhs, err));
  TRY(ir_check_tensor(op, 1, &rhs, err));
  TRY(ir_check_tensor(op, 2, &sizes, err));
  dot_dims n = dot_dims_of(op);
  TRY(check_dot_dims(lhs, rhs, n, err));
  TRY(ir_check_one_dim("lhs_ragged_dims", ir_get_ints(op, IR_ATTR_LHS_RAGGED_DIMS), lhs->rank, &ragged, err));
  TRY(check_group_sizes(lhs, sizes, n, ragged, err));
  if (sizes->rank == 0) return base_fail(err, XLAC_E_VERIFY_OPERANDS, "group_sizes of ragged-dot must not be a scalar");
  ragged_mode mode = ragged_mode_of(n, ragged);
  uint32_t last = sizes->rank - 1;
  TRY(check_rhs_groups(op, rhs, n, mode, sizes->dims[last], err));
  ir_dims d = {.rank = 0};
  if (mode == RAGGED_CONTRACTING) TRY(ir_dims_push(&d, sizes->dims[last], ir_dim_is_dynamic(sizes, last), err));
  return finish_dot(m, lhs, rhs, n, ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS), &d, out, err);
}
