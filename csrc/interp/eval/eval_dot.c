/* Matrix products: dot, scaled-dot and ragged-dot. */
#include "../algorithm/dot_plan.h"
#include "../blocks.h"

/* --- dot and scaled-dot. --- */

/* Ends the plan whatever has happened. status: of making the plan. */
static int dot_planned(interp_ctx *ctx, const ir_op *op, int status, interp_dot_plan *p, interp_value **out) {
  interp_value *r = NULL;
  if (status == 0) {
    int64_t dims[IR_MAX_RANK];
    uint32_t rank = interp_dot_dims(p, dims);
    r = interp_array(ctx, p->dtype, rank, dims);
    status = r ? interp_dot_run(ctx, p, r->data) : interp_failed(ctx);
  }
  interp_dot_plan_end(ctx, p);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}

/* precision_config is not looked at: products are always in the full type. */
int interp_eval_dot(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_dot_plan p;
  base_dtype t = interp_product_type(operands[0]->dtype, operands[1]->dtype, op->type->dtype);
  int status = interp_dot_plan_begin(ctx, op, operands[0], operands[1], t, NULL, &p);
  return dot_planned(ctx, op, status, &p, out);
}

/* The type in which an operand is multiplied by its scale: the wider one, bf16 when both have fewer than 16 bits. */
static base_dtype scaled_type(base_dtype x, base_dtype scale) {
  unsigned a = base_dtype_of(x)->bits, b = base_dtype_of(scale)->bits;
  if (a < 16 && b < 16) return XLAC_BF16;
  if (x == scale) return x;
  if (a == b) return XLAC_F32;
  return a > b ? x : scale;
}

/* x times its scale, each scale serving a block of neighbours along every dimension: both as f64, where
 * products of two floats of up to 24 bits are exact, rounded once to `t`. block: how many neighbours share
 * a scale along a dimension, 32 for MX formats. */
static int scale_elements(interp_ctx *ctx, const interp_value *x, const interp_value *scale, interp_value *r) {
  assert(scale->rank == x->rank);
  int64_t at[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK];
  const char *from = x->data;
  char *to = r->data;
  interp_strides(scale->rank, scale->dims, strides);
  for (int64_t i = 0; i < x->count; i++) {
    int64_t s = 0;
    TRY(interp_tick(ctx, 4));
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t block = interp_max(1, x->dims[d] / scale->dims[d]);
      s += interp_min(at[d] / block, scale->dims[d] - 1) * strides[d];
    }
    double v = base_load_f64(x->dtype, from + i * (int64_t)base_dtype_bytes(x->dtype));
    v *= base_load_f64(scale->dtype, (const char *)scale->data + s * (int64_t)base_dtype_bytes(scale->dtype));
    base_store_f64(r->dtype, to + i * (int64_t)base_dtype_bytes(r->dtype), v);
    for (uint32_t d = x->rank; d > 0; d--) {
      if (++at[d - 1] < x->dims[d - 1]) break;
      at[d - 1] = 0;
    }
  }
  return 0;
}

/* A scalar scale stands for none. */
static int scaled_operand(interp_ctx *ctx, const ir_op *op, interp_value *x, const interp_value *scale,
                          interp_value **out) {
  if (scale->rank == 0) {
    *out = interp_retain(x);
    return 0;
  }
  bool fits = scale->rank == x->rank;
  for (uint32_t d = 0; fits && d < x->rank; d++)
    fits = x->dims[d] == 0 || (scale->dims[d] > 0 && x->dims[d] % scale->dims[d] == 0);
  if (!fits) return interp_fail(ctx, op, XLAC_E_EVAL, "a scale's dimensions do not divide those of what it scales");
  interp_value *r = interp_array(ctx, scaled_type(x->dtype, scale->dtype), x->rank, x->dims);
  if (!r) return interp_failed(ctx);
  return interp_deliver(scale_elements(ctx, x, scale, r), r, out);
}

int interp_eval_scaled_dot(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_dot_plan p;
  interp_value *left = NULL, *right = NULL;
  assert(op->n_operands == 4);
  int status = scaled_operand(ctx, op, operands[0], operands[2], &left);
  if (status == 0) status = scaled_operand(ctx, op, operands[1], operands[3], &right);
  if (status == 0) {
    base_dtype t = interp_product_type(left->dtype, right->dtype, op->type->dtype);
    status = interp_dot_plan_begin(ctx, op, left, right, t, NULL, &p);
    status = dot_planned(ctx, op, status, &p, out);
  }
  interp_release(left);
  interp_release(right);
  return status;
}

/* --- ragged_dot ---
 *
 * ragged-dot: a dot whose rows (or contracted elements) belong to groups of run-time sizes. Groups follow one another
 * along the ragged dimension; what lies behind the last one belongs to none and counts as zeros. */

/* Group membership of the rows or of the contracted elements. */
typedef struct ragged_groups {
  const interp_value *sizes;
  int64_t n_groups;
  int64_t *at;    /* by element: its coordinate along the ragged dimension */
  int64_t *table; /* by element: where its group sizes start, beside the batch's part */
  int64_t *batch; /* by batch: where its group sizes start */
} ragged_groups;

/* ids[i] = the group in which element i of the batch lies, -1 for none. */
static int ragged_assign(interp_ctx *ctx, const ragged_groups *r, int64_t batch, int64_t n, int64_t *ids) {
  for (int64_t i = 0; i < n; i++) {
    TRY(interp_tick(ctx, (uint64_t)r->n_groups + 1));
    int64_t start = 0, place = r->batch[batch] + r->table[i];
    ids[i] = -1;
    for (int64_t g = 0; g < r->n_groups && ids[i] < 0 && start <= r->at[i]; g++) {
      int64_t size = interp_max(0, interp_element_index(r->sizes, place + g));
      if (r->at[i] - start < size) ids[i] = g;
      start = size > INT64_MAX - start ? INT64_MAX : start + size;
    }
  }
  return 0;
}

/* Strides into group_sizes of the first n of some dims whose strides there begin at `first`; zero for the rest. */
static int ragged_table(interp_ctx *ctx, const interp_dim_list *dims, uint32_t n, const int64_t *strides,
                        int64_t *out) {
  int64_t own[IR_MAX_RANK] = {0};
  for (uint32_t i = 0; i < n; i++) own[i] = strides[i];
  return interp_offsets(ctx, dims->n, dims->dims, own, out);
}

/* Elements are the combinations of `dims`, the ragged one at `place`. */
static int ragged_begin(interp_ctx *ctx, const interp_value *sizes, const interp_dot_plan *p,
                        const interp_dim_list *dims, uint32_t place, ragged_groups *r) {
  int64_t strides[IR_MAX_RANK], along[IR_MAX_RANK] = {0};
  bool shared = sizes->rank == 1; /* one vector of sizes serves all batches */
  uint32_t batch = p->left_batch.n;
  assert(shared || sizes->rank == batch + place + 1);
  interp_strides(sizes->rank, sizes->dims, strides);
  r->sizes = sizes;
  r->n_groups = sizes->dims[sizes->rank - 1];
  r->at = INTERP_SCRATCH(ctx, int64_t, dims->count);
  r->table = INTERP_SCRATCH(ctx, int64_t, dims->count);
  r->batch = INTERP_SCRATCH(ctx, int64_t, p->left_batch.count);
  if (!r->at || !r->table || !r->batch) return interp_failed(ctx);
  along[place] = 1;
  TRY(interp_offsets(ctx, dims->n, dims->dims, along, r->at));
  TRY(ragged_table(ctx, dims, shared ? 0 : place, strides + (shared ? 0 : batch), r->table));
  return ragged_table(ctx, &p->left_batch, shared ? 0 : batch, strides, r->batch);
}

static void ragged_end(interp_ctx *ctx, ragged_groups *r) {
  interp_scratch_free(ctx, r->at);
  interp_scratch_free(ctx, r->table);
  interp_scratch_free(ctx, r->batch);
}

static void ragged_place(const interp_dot_plan *p, int64_t batch, int64_t right_at, void *out, int64_t out_at,
                         interp_matmul *mm) {
  int64_t bytes = (int64_t)base_dtype_bytes(p->dtype);
  mm->left = (const char *)p->left->data + p->left_b[batch] * bytes;
  mm->right = (const char *)p->right->data + (p->right_b[batch] + right_at) * bytes;
  mm->out = (char *)out + out_at * p->left_free.count * p->right_free.count * bytes;
}

/* Rows of group g are multiplied by the right operand's part for g. */
static int ragged_rows(interp_ctx *ctx, const interp_dot_plan *p, const ragged_groups *r, int64_t group_stride,
                       interp_matmul *mm, int64_t *lists, void *out) {
  int64_t m = p->left_free.count;
  mm->left_m = lists;
  mm->out_m = lists + m;
  for (int64_t b = 0; b < p->left_batch.count; b++) {
    TRY(ragged_assign(ctx, r, b, m, lists + 2 * m));
    for (int64_t g = 0; g < r->n_groups; g++) {
      mm->m = 0;
      for (int64_t i = 0; i < m; i++) {
        if (lists[2 * m + i] != g) continue;
        lists[mm->m] = p->left_m[i];
        lists[m + mm->m++] = p->out_m[i];
      }
      TRY(interp_tick(ctx, (uint64_t)m));
      ragged_place(p, b, g * group_stride, out, b, mm);
      TRY(interp_matmul_run(ctx, mm));
    }
  }
  return 0;
}

/* Group g's result is the product over the contracted elements of g. */
static int ragged_sums(interp_ctx *ctx, const interp_dot_plan *p, const ragged_groups *r, interp_matmul *mm,
                       int64_t *lists, void *out) {
  int64_t k = p->left_contracting.count;
  mm->left_k = lists;
  mm->right_k = lists + k;
  for (int64_t b = 0; b < p->left_batch.count; b++) {
    TRY(ragged_assign(ctx, r, b, k, lists + 2 * k));
    for (int64_t g = 0; g < r->n_groups; g++) {
      mm->k = 0;
      for (int64_t i = 0; i < k; i++) {
        if (lists[2 * k + i] != g) continue;
        lists[mm->k] = p->left_k[i];
        lists[k + mm->k++] = p->right_k[i];
      }
      TRY(interp_tick(ctx, (uint64_t)k));
      ragged_place(p, b, 0, out, g * p->left_batch.count + b, mm);
      TRY(interp_matmul_run(ctx, mm));
    }
  }
  return 0;
}

/* Place of dimension d of the left operand in the list, or -1. */
static int64_t dim_place(const interp_dim_list *list, int64_t d) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->source[i] == d) return i;
  return -1;
}

static int64_t group_stride_of(const interp_value *right, const ir_ints *group) {
  int64_t strides[IR_MAX_RANK];
  interp_strides(right->rank, right->dims, strides);
  return group->n ? strides[group->v[0]] : 0;
}

static int ragged_groups_run(interp_ctx *ctx, const ir_op *op, const interp_dot_plan *p, const interp_value *sizes,
                             bool rows, uint32_t place, interp_value *result) {
  const interp_dim_list *dims = rows ? &p->left_free : &p->left_contracting;
  ragged_groups r = {.sizes = NULL};
  interp_matmul mm = interp_dot_product(p);
  int64_t *lists = INTERP_SCRATCH(ctx, int64_t, 3 * dims->count);
  int status = lists ? ragged_begin(ctx, sizes, p, dims, place, &r) : interp_failed(ctx);
  if (status == 0) status = interp_matmul_begin(ctx, &mm);
  if (status == 0) {
    status = interp_zero_bytes(ctx, result->data, interp_bytes(result));
    int64_t stride = group_stride_of(p->right, ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS));
    if (status == 0)
      status = rows ? ragged_rows(ctx, p, &r, stride, &mm, lists, result->data)
                    : ragged_sums(ctx, p, &r, &mm, lists, result->data);
    interp_matmul_end(ctx, &mm);
  }
  ragged_end(ctx, &r);
  interp_scratch_free(ctx, lists);
  return status;
}

/* The sizes of the groups: one list for all, or one for each of the batches and of the dimensions before the ragged
 * one, of as many groups as the right operand has parts for. */
static int ragged_check(interp_ctx *ctx, const ir_op *op, const interp_dot_plan *p, interp_value *const *operands,
                        const interp_dim_list *dims, uint32_t place) {
  const ir_ints *group = ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS);
  uint32_t rank = operands[2]->rank, batch = p->left_batch.n;
  if (group->n) TRY(interp_need_same_size(ctx, op, operands, 1, (uint32_t)group->v[0], 2, rank - 1));
  if (rank == 1) return 0;
  if (rank != batch + place + 1)
    return interp_fail(ctx, op, XLAC_E_EVAL, "group_sizes has %u dimensions, expected 1 or %u", rank,
                       batch + place + 1);
  for (uint32_t i = 0; i + 1 < rank; i++) {
    int64_t d = i < batch ? p->left_batch.source[i] : dims->source[i - batch];
    TRY(interp_need_same_size(ctx, op, operands, 2, i, 0, (uint32_t)d));
  }
  return 0;
}

static int ragged_dot_run(interp_ctx *ctx, const ir_op *op, const interp_dot_plan *p, interp_value *const *operands,
                          interp_value **out) {
  const interp_value *sizes = operands[2];
  int64_t dims[IR_MAX_RANK], ragged = ir_get_ints(op, IR_ATTR_LHS_RAGGED_DIMS)->v[0];
  int64_t row = dim_place(&p->left_free, ragged), sum = dim_place(&p->left_contracting, ragged);
  if (row >= 0 || sum >= 0)
    TRY(ragged_check(ctx, op, p, operands, row >= 0 ? &p->left_free : &p->left_contracting,
                     (uint32_t)(row >= 0 ? row : sum)));
  uint32_t lead = sum >= 0, rank = interp_dot_dims(p, dims + lead) + lead;
  if (lead) dims[0] = sizes->dims[sizes->rank - 1];
  interp_value *r = interp_array(ctx, p->dtype, rank, dims);
  if (!r) return interp_failed(ctx);
  int status = row < 0 && sum < 0 ? interp_dot_run(ctx, p, r->data) /* ragged batches: each batch has its own product */
                                  : ragged_groups_run(ctx, op, p, sizes, row >= 0, (uint32_t)(row >= 0 ? row : sum), r);
  if (status == 0) return interp_finish(ctx, op->type->dtype, r, out);
  interp_release(r);
  return status;
}

int interp_eval_ragged_dot(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_dot_plan p;
  const ir_ints *group = ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS);
  assert(op->n_operands == 3 && ir_get_ints(op, IR_ATTR_LHS_RAGGED_DIMS)->n == 1 && operands[2]->rank > 0);
  base_dtype t = interp_product_type(operands[0]->dtype, operands[1]->dtype, op->type->dtype);
  int status = interp_dot_plan_begin(ctx, op, operands[0], operands[1], t, group, &p);
  if (status == 0) status = ragged_dot_run(ctx, op, &p, operands, out);
  interp_dot_plan_end(ctx, &p);
  return status;
}
