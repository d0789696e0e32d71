/* Dimension numbers to offset lists.
 *
 * A dot is a batch of matrix products in which rows, columns and sums are lists of dimensions. Each list
 * becomes a list of element offsets, so the product needs no transposed copies: element (m, k) of the left
 * operand is at left_m[m] + left_k[k]. */
#include "dot_plan.h"

/* Dimension d of v, with its stride. */
static void list_add(interp_dim_list *out, const interp_value *v, const int64_t *strides, int64_t d) {
  assert(d >= 0 && d < v->rank && out->n < IR_MAX_RANK);
  out->dims[out->n] = v->dims[d];
  out->strides[out->n] = strides[d];
  out->source[out->n++] = d;
  out->count *= v->dims[d];
}

/* In the order of the attribute's list, which pairs left with right. */
void interp_dims_listed(const interp_value *v, const ir_ints *list, interp_dim_list *out) {
  int64_t strides[IR_MAX_RANK];
  interp_strides(v->rank, v->dims, strides);
  out->n = 0;
  out->count = 1;
  for (uint32_t i = 0; i < list->n; i++) list_add(out, v, strides, list->v[i]);
}

/* The free dimensions, in the operand's order, as the result has them. c may be NULL. */
void interp_dims_other(const interp_value *v, const ir_ints *a, const ir_ints *b, const ir_ints *c,
                       interp_dim_list *out) {
  int64_t strides[IR_MAX_RANK];
  interp_strides(v->rank, v->dims, strides);
  out->n = 0;
  out->count = 1;
  for (uint32_t d = 0; d < v->rank; d++) {
    bool named = ir_ints_has(a, d) || ir_ints_has(b, d) || (c && ir_ints_has(c, d));
    if (!named) list_add(out, v, strides, d);
  }
}

/* Where sizes are dynamic the verifier can't know. */
static int dot_check_pairs(interp_ctx *ctx, const ir_op *op, const interp_dim_list *l, const interp_dim_list *r,
                           const char *what) {
  assert(l->n == r->n);
  for (uint32_t i = 0; i < l->n; i++)
    if (l->dims[i] != r->dims[i])
      return interp_fail(ctx, op, XLAC_E_EVAL, "%s dimension %u has %lld elements on the left and %lld on the right",
                         what, i, (long long)l->dims[i], (long long)r->dims[i]);
  return 0;
}

/* The next n numbers of one allocation. */
static int64_t *dot_take(int64_t **at, int64_t n) {
  int64_t *p = *at;
  *at += n;
  return p;
}

/* Eight lists in one allocation. */
static int plan_offsets(interp_ctx *ctx, interp_dot_plan *p) {
  int64_t b = p->left_batch.count, m = p->left_free.count, n = p->right_free.count, k = p->left_contracting.count;
  int64_t *at = p->offsets = INTERP_SCRATCH(ctx, int64_t, 2 * (b + m + n + k));
  if (!at) return interp_failed(ctx);
  const interp_dim_list *lists[] = {&p->left_batch, &p->right_batch, &p->left_free, &p->right_free};
  const int64_t *contracting[] = {p->left_contracting.strides, p->right_contracting.strides};
  int64_t *places[] = {p->left_b = dot_take(&at, b), p->right_b = dot_take(&at, b), p->left_m = dot_take(&at, m),
                       p->right_n = dot_take(&at, n)};
  int64_t *along[] = {p->left_k = dot_take(&at, k), p->right_k = dot_take(&at, k)};
  for (int i = 0; i < 4; i++) TRY(interp_offsets(ctx, lists[i]->n, lists[i]->dims, lists[i]->strides, places[i]));
  for (int i = 0; i < 2; i++)
    TRY(interp_offsets(ctx, p->left_contracting.n, p->left_contracting.dims, contracting[i], along[i]));
  TRY(interp_multiples(ctx, m, n, p->out_m = dot_take(&at, m)));
  return interp_multiples(ctx, n, 1, p->out_n = dot_take(&at, n));
}

/* `group`: further dimensions of the right operand that are not free (ragged-dot's); may be NULL.
 * interp_dot_plan_end is due in any case. */
int interp_dot_plan_begin(interp_ctx *ctx, const ir_op *op, interp_value *left, interp_value *right, base_dtype dtype,
                          const ir_ints *group, interp_dot_plan *p) {
  const ir_ints *lb = ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), *rb = ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS);
  const ir_ints *lc = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  const ir_ints *rc = ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS);
  memset(p, 0, sizeof *p);
  p->dtype = dtype;
  p->left = interp_as(ctx, left, dtype);
  p->right = interp_as(ctx, right, dtype);
  if (!p->left || !p->right) return interp_failed(ctx);
  interp_dims_listed(left, lb, &p->left_batch);
  interp_dims_listed(right, rb, &p->right_batch);
  interp_dims_listed(left, lc, &p->left_contracting);
  interp_dims_listed(right, rc, &p->right_contracting);
  interp_dims_other(left, lb, lc, NULL, &p->left_free);
  interp_dims_other(right, rb, rc, group, &p->right_free);
  TRY(dot_check_pairs(ctx, op, &p->left_batch, &p->right_batch, "batch"));
  TRY(dot_check_pairs(ctx, op, &p->left_contracting, &p->right_contracting, "contracting"));
  return plan_offsets(ctx, p);
}

void interp_dot_plan_end(interp_ctx *ctx, interp_dot_plan *p) {
  interp_release(p->left);
  interp_release(p->right);
  interp_scratch_free(ctx, p->offsets);
  memset(p, 0, sizeof *p);
}

/* [batch, left free, right free], as dot_general defines it. */
uint32_t interp_dot_dims(const interp_dot_plan *p, int64_t *dims) {
  const interp_dim_list *parts[3] = {&p->left_batch, &p->left_free, &p->right_free};
  uint32_t n = 0;
  for (int i = 0; i < 3; i++)
    for (uint32_t d = 0; d < parts[i]->n; d++) dims[n++] = parts[i]->dims[d];
  assert(n <= IR_MAX_RANK);
  return n;
}

/* The product with its sides exchanged, which gives the same sums: the kernel wants many columns. */
static void exchange_sides(interp_matmul *mm) {
  interp_matmul t = *mm;
  mm->m = t.n;
  mm->n = t.m;
  mm->left = t.right;
  mm->right = t.left;
  mm->left_m = t.right_n;
  mm->left_k = t.right_k;
  mm->right_k = t.left_k;
  mm->right_n = t.left_m;
  mm->out_m = t.out_n;
  mm->out_n = t.out_m;
}

interp_matmul interp_dot_product(const interp_dot_plan *p) {
  return (interp_matmul){.dtype = p->dtype,
                         .m = p->left_free.count,
                         .n = p->right_free.count,
                         .k = p->left_contracting.count,
                         .left_m = p->left_m,
                         .left_k = p->left_k,
                         .right_k = p->right_k,
                         .right_n = p->right_n,
                         .out_m = p->out_m,
                         .out_n = p->out_n};
}

/* out is dense in that order, in the plan's type. */
int interp_dot_run(interp_ctx *ctx, const interp_dot_plan *p, void *out) {
  interp_matmul mm = interp_dot_product(p);
  int64_t m = mm.m, n = mm.n, bytes = (int64_t)base_dtype_bytes(p->dtype);
  bool exchange = n < 8 && m > n;
  if (exchange) exchange_sides(&mm);
  TRY(interp_matmul_begin(ctx, &mm));
  int status = 0;
  for (int64_t b = 0; b < p->left_batch.count && status == 0; b++) {
    const char *left = (const char *)p->left->data + p->left_b[b] * bytes;
    const char *right = (const char *)p->right->data + p->right_b[b] * bytes;
    mm.left = exchange ? right : left;
    mm.right = exchange ? left : right;
    mm.out = (char *)out + b * m * n * bytes;
    status = interp_matmul_run(ctx, &mm);
  }
  interp_matmul_end(ctx, &mm);
  return status;
}
