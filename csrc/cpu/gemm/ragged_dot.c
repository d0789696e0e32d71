/* ragged-dot of matrices: a product for each group, whose size is known only when it runs. Either rows of the left
 * operand belong to groups, each with a matrix of its own on the right (result [m, n]), or the contracted elements
 * do, and each group gives a result ([groups, m, n]). What lies behind the last group counts as zeros; sizes that
 * are negative count as 0, and those that go too far are cut. f32 and f64 go to BLAS, the rest to our own product. */
#include "dot_gemm.h"
#include "../move/move.h"
#include "../routine.h"

typedef struct ragdot_data {
  bool rows; /* the left operand's rows are in groups; else what is contracted */
  bool blas;
  uint8_t dtype, size_type; /* of the arrays; of the groups' sizes */
  int64_t m, n, k, groups;  /* of the whole: of its extents one is cut into groups */
  plan_dot dot;
  cpu_gemm g;
} ragdot_data;

/* All of a group: from .. from + count of what is cut. Copies of the prepared product, with the group's extent in
 * the place of the whole one's. */
static void ragdot_group(const cpu_routine_run *r, int64_t group, int64_t from, int64_t count) {
  assert(count > 0 && from >= 0 && group >= 0);
  const ragdot_data *d = r->data;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)d->dtype);
  const char *a = (const char *)r->in[0] + from * (d->rows ? d->k : d->m) * bytes;
  const char *b = (const char *)r->in[1] + (d->rows ? group * d->k : from) * d->n * bytes;
  char *c = (char *)r->out[0] + (d->rows ? from : group * d->m) * d->n * bytes;
  if (d->blas) {
    plan_dot dot = d->dot;
    *(d->rows ? &dot.m : &dot.k) = count;
    cpu_blas_dot(cpu_executable_blas(r->run->exe), &dot, r->run->exe->pool, a, b, c);
    return;
  }
  cpu_gemm g = d->g;
  cpu_gemm_dims *cut = d->rows ? &g.m : &g.k;
  if (cut->n) cut->v[0].n = count;
  cut->count = count;
  cpu_gemm_run(&g, r->run->exe->pool, a, b, c, r->scratch);
}

/* Group after group; each is one product on all threads. */
static int ragdot_run(const cpu_routine_run *r) {
  const ragdot_data *d = r->data;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)d->dtype), all = d->rows ? d->m : d->k, at = 0;
  int64_t size_bytes = (int64_t)base_dtype_bytes((base_dtype)d->size_type);
  uint8_t zero = 0;
  if (!d->rows) cpu_move_fill(r->run->exe->pool, 1, r->out[0], d->groups * d->m * d->n * bytes, &zero);
  for (int64_t i = 0; i < d->groups && at < all; i++) {
    if (rt_pool_stopping(r->run->exe->pool)) return 0;
    int64_t size = base_load_i64((base_dtype)d->size_type, (const char *)r->in[2] + i * size_bytes);
    if (size > all - at || (size < 0 && d->size_type == XLAC_U64)) size = all - at;
    if (size > 0) ragdot_group(r, i, at, size);
    at += size > 0 ? size : 0;
  }
  if (d->rows && at < all)
    cpu_move_fill(r->run->exe->pool, 1, (char *)r->out[0] + at * d->n * bytes, (all - at) * d->n * bytes, &zero);
  return 0;
}

/* --- preparing --- */

/* Whether the attribute is the list {v}. */
static bool ragdot_is(const ir_op *op, ir_attr_key key, int64_t v) {
  const ir_ints *dims = ir_get_ints(op, key);
  return dims->n == 1 && dims->v[0] == v;
}

/* The two forms that are done here: without batch dimensions, in dense order. All others are the interpreter's. */
static bool ragdot_of(const ir_op *op, ragdot_data *d) {
  const ir_type *a = ir_operand_type(op, 0), *b = ir_operand_type(op, 1), *sizes = ir_operand_type(op, 2);
  if (!ir_is_tensor(op->type) || a->rank != 2 || sizes->rank != 1 || !base_dtype_is_integer((base_dtype)sizes->dtype))
    return false;
  if (a->dtype != op->type->dtype || b->dtype != op->type->dtype || base_dtype_of(a->dtype)->bits < 8) return false;
  if (base_dtype_of(sizes->dtype)->bits < 8 || ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS)->n) return false;
  if (!ragdot_is(op, IR_ATTR_LHS_RAGGED_DIMS, 0)) return false;
  d->dtype = a->dtype;
  d->size_type = sizes->dtype;
  d->groups = sizes->dims[0];
  d->rows = ragdot_is(op, IR_ATTR_LHS_CONTRACTING_DIMS, 1);
  if (d->rows) {
    if (b->rank != 3 || !ragdot_is(op, IR_ATTR_RHS_CONTRACTING_DIMS, 1) || !ragdot_is(op, IR_ATTR_RHS_GROUP_DIMS, 0))
      return false;
    d->m = a->dims[0], d->k = a->dims[1], d->n = b->dims[2];
  } else {
    if (b->rank != 2 || !ragdot_is(op, IR_ATTR_LHS_CONTRACTING_DIMS, 0) ||
        !ragdot_is(op, IR_ATTR_RHS_CONTRACTING_DIMS, 0) || ir_get_ints(op, IR_ATTR_RHS_GROUP_DIMS)->n)
      return false;
    d->m = a->dims[1], d->k = a->dims[0], d->n = b->dims[1];
  }
  return d->m > 0 && d->k > 0 && d->n > 0 && d->m <= INT32_MAX && d->k <= INT32_MAX && d->n <= INT32_MAX;
}

/* The product of all; a group changes m or k. */
static void ragdot_by_blas(ragdot_data *d) {
  d->blas = true;
  d->dot = (plan_dot){.dtype = d->dtype, .batch = 1, .m = d->m, .n = d->n, .k = d->k, .ldb = d->n};
  d->dot.transpose_a = !d->rows;
  d->dot.lda = d->rows ? d->k : d->m;
}

/* Prepares our own product of all; a group changes an extent of a copy of it. false where our product would take
 * it in a way that depends on the extent that is cut: exchanged, thin or small. */
static bool ragdot_by_own(ragdot_data *d) {
  bool exchanged = false;
  int64_t row = d->rows ? d->k : 1, term = d->rows ? 1 : d->m;
  cpu_gemm_add(&d->g.m, d->m, row, 0, d->n);
  cpu_gemm_add(&d->g.n, d->n, 0, 1, 1);
  cpu_gemm_add(&d->g.k, d->k, term, d->n, 0);
  cpu_gemm_types(&d->g, (base_dtype)d->dtype, (base_dtype)d->dtype, (base_dtype)d->dtype, false);
  return d->g.a_type == d->dtype && d->g.b_type == d->dtype && cpu_gemm_prepare(&d->g, &exchanged) && !exchanged &&
         !d->g.thin && !d->g.small;
}

int cpu_prepare_ragged_dot(cpu_prepare_run *x) {
  ragdot_data *d = BASE_NEW(x->arena, ragdot_data);
  if (!d) return base_oom(x->err, "a product");
  if (!ragdot_of(x->op, d)) return 0;
  const cpu_blas *blas = NULL;
  if (d->dtype == XLAC_F32 || d->dtype == XLAC_F64) TRY(cpu_blas_lazy_get(x->options->blas, &blas, x->err));
  if (blas)
    ragdot_by_blas(d);
  else if (!ragdot_by_own(d))
    return 0;
  x->out->name = d->blas ? "ragged gemm" : "ragged product";
  x->data = d;
  x->out->scratch_bytes = d->g.scratch_bytes;
  x->out->work = (uint64_t)d->m * (uint64_t)d->n * (uint64_t)d->k / 4;
  x->out->stoppable = true;
  x->code = ragdot_run;
  return 0;
}
