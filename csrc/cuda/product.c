/* Products of matrices by cuBLASLt. It counts columns first: what it computes here is the transposed result, which is
 * the right operand's matrix times the left one's. f32 stays f32: only fast numerics let it be rounded to tf32. */
#include "product.h"

#include "../passes/hlo/hlo_make.h"
#include "print/dot.h"
#include "run.h"

#include <stdlib.h>

/* Of cudaDataType, cublasComputeType_t and the attributes' enumerations. */
enum {
  CU_BLAS_F32 = 0,
  CU_BLAS_F64 = 1,
  CU_BLAS_F16 = 2,
  CU_BLAS_S8 = 3,
  CU_BLAS_S32 = 10,
  CU_BLAS_BF16 = 14,
  CU_BLAS_COMPUTE_F32 = 68,
  CU_BLAS_COMPUTE_F64 = 70,
  CU_BLAS_COMPUTE_S32 = 72,
  CU_BLAS_COMPUTE_TF32 = 77,
  CU_BLAS_TRANSPOSE_A = 3,
  CU_BLAS_TRANSPOSE_B = 4,
  CU_BLAS_BATCH_COUNT = 5,
  CU_BLAS_BATCH_STRIDE = 6,
  CU_BLAS_WORKSPACE = 1,
  CU_BLAS_ALIGNMENT_A = 5 /* of B, C and D: those behind it */
};

enum {
  CU_PRODUCT_LEAST = 1 << 15,   /* multiplications from which on it is worth a library's launch */
  CU_PRODUCT_OUTER = 64,        /* calls, where one stride does not go through all of the batch */
  CU_PRODUCT_ALIGN = 16,        /* of arrays */
  CU_PRODUCT_S8_STEP = 4,       /* what columns, terms and strides of s8 are multiples of */
  CU_PRODUCT_S8_TERMS = 1 << 16 /* whose sums cannot wrap */
};

/* A side as cuBLASLt has it: a matrix whose columns lie one behind the other. */
typedef struct cu_product_matrix {
  uint64_t rows, columns;
  int64_t leading, batch_stride, outer_stride;
  int transposed; /* before it is multiplied */
} cu_product_matrix;

struct cuda_product {
  cuda_blas_object matmul, layouts[3]; /* layouts: of the right operand, the left one, the result */
  cuda_blas_choice choice;
  int64_t outer, steps[3]; /* calls; bytes from one to the next, of left, right, result */
  union {
    float f32;
    double f64;
    int32_t s32;
  } one, zero;
};

/* --- what is asked for --- */

/* A role as one index. */
static bool cu_product_stride(const cuda_dot_role *x, int64_t *stride) {
  *stride = x->n ? x->strides[0] : 0;
  return x->n <= 1;
}

/* By its free and its contracting index, one of which must go by one. Outer ones of `rows` and `terms` where it is read
 * along the contracting one. */
static bool cu_product_matrix_of(const cuda_dot_side *x, bool terms_first, cu_product_matrix *out) {
  int64_t row = 0, term = 0, rows = x->free.count, terms = x->contracting.count;
  if (!cu_product_stride(&x->free, &row) || !cu_product_stride(&x->contracting, &term)) return false;
  bool along_terms = terms == 1 ? row != 1 : term == 1;
  if (!along_terms && rows > 1 && row != 1) return false;
  int64_t leading = along_terms ? row : term, inner = along_terms ? terms : rows;
  *out = (cu_product_matrix){.rows = (uint64_t)inner,
                             .columns = (uint64_t)(along_terms ? rows : terms),
                             .leading = leading > inner ? leading : inner,
                             .transposed = along_terms != terms_first};
  return leading == 0 || leading >= inner;
}

/* The batch as outer calls of a batch that one stride goes through: how many of each. */
static bool cu_product_batch(const cuda_dot_side *a, const cuda_dot_side *b, int64_t *outer, int64_t *inner) {
  const cuda_dot_role *most = a->batch.n >= b->batch.n ? &a->batch : &b->batch;
  *outer = most->n == 2 ? most->extents[0] : 1;
  *inner = most->n ? most->extents[most->n - 1] : 1;
  return most->n <= 2 && *outer <= CU_PRODUCT_OUTER && *inner <= INT32_MAX &&
         (a->batch.n < 2 || b->batch.n < 2 || a->batch.extents[0] == b->batch.extents[0]);
}

static void cu_product_set_batch(cu_product_matrix *m, const cuda_dot_role *batch, int64_t inner) {
  m->batch_stride = batch->n ? batch->strides[batch->n - 1] : 0;
  m->outer_stride = batch->n == 2 ? batch->strides[0] : m->batch_stride * inner;
}

static int cu_product_type(base_dtype t) {
  switch (t) {
    case XLAC_F32:
      return CU_BLAS_F32;
    case XLAC_F64:
      return CU_BLAS_F64;
    case XLAC_F16:
      return CU_BLAS_F16;
    case XLAC_BF16:
      return CU_BLAS_BF16;
    case XLAC_S8:
      return CU_BLAS_S8;
    case XLAC_S32:
      return CU_BLAS_S32;
    default:
      return -1;
  }
}

/* What it is made of: right, left, result. */
typedef struct cu_product_plan {
  cu_product_matrix m[3];
  int types[2]; /* of operands, of the result */
  int64_t outer, batch;
} cu_product_plan;

/* Operands of one type, and the result of that or, of narrow floats, of f32; of s8 it is s32. */
static bool cu_product_find_types(const ir_op *dot, cu_product_plan *x) {
  base_dtype a = (base_dtype)ir_operand_type(dot, 0)->dtype, b = (base_dtype)ir_operand_type(dot, 1)->dtype,
             c = (base_dtype)dot->type->dtype;
  x->types[0] = cu_product_type(a);
  x->types[1] = cu_product_type(c);
  if (a == XLAC_S8 || a == XLAC_S32) return a == b && a == XLAC_S8 && c == XLAC_S32;
  return a == b && x->types[0] >= 0 && (a == c || (c == XLAC_F32 && cuda_is_narrow_float(a)));
}

/* Of s8 the library has products of operands that are both read along the terms, in words of four bytes. */
static bool cu_product_has_words(const cu_product_plan *x) {
  const cu_product_matrix *right = &x->m[0], *left = &x->m[1];
  int64_t all = (int64_t)right->columns | (int64_t)right->rows | right->leading | left->leading | right->batch_stride |
                left->batch_stride | right->outer_stride | left->outer_stride;
  return right->transposed && !left->transposed && all % CU_PRODUCT_S8_STEP == 0 && right->rows <= CU_PRODUCT_S8_TERMS;
}

static bool cu_product_plan_of(const ir_op *dot, cu_product_plan *x) {
  cuda_dot_side a, b;
  if (!cu_product_find_types(dot, x)) return false;
  cuda_dot_sides(dot, &a, &b);
  int64_t rows = a.free.count, columns = b.free.count, terms = a.contracting.count;
  if (rows * columns == 0 || terms == 0 || rows > INT32_MAX || columns > INT32_MAX || terms > INT32_MAX) return false;
  if ((double)rows * (double)columns * (double)terms * (double)a.batch.count < CU_PRODUCT_LEAST) return false;
  if (!cu_product_matrix_of(&b, false, &x->m[0]) || !cu_product_matrix_of(&a, true, &x->m[1])) return false;
  if (!cu_product_batch(&a, &b, &x->outer, &x->batch)) return false;
  x->m[2] = (cu_product_matrix){.rows = (uint64_t)columns,
                                .columns = (uint64_t)rows,
                                .leading = columns,
                                .batch_stride = rows * columns,
                                .outer_stride = rows * columns * x->batch};
  cu_product_set_batch(&x->m[0], &b.batch, x->batch);
  cu_product_set_batch(&x->m[1], &a.batch, x->batch);
  return x->types[0] != CU_BLAS_S8 || cu_product_has_words(x);
}

/* --- operands that are transposed for it --- */

/* The dot op's lists of dimensions. */
static const ir_attr_key cu_product_batches[2] = {IR_ATTR_LHS_BATCH_DIMS, IR_ATTR_RHS_BATCH_DIMS};
static const ir_attr_key cu_product_terms[2] = {IR_ATTR_LHS_CONTRACTING_DIMS, IR_ATTR_RHS_CONTRACTING_DIMS};

/* The order of an operand's dimensions in which each role is one index: batches outermost; and the terms inside of the
 * rows or outside, so that the innermost dimension stays the innermost one where it can, as whole pieces of memory are
 * moved then; of s8 they are inside. Sets the lists to where the dimensions went. */
static void cu_product_order(const ir_type *t, const ir_ints *batch, const ir_ints *terms, int64_t *order) {
  uint32_t n = 0;
  bool terms_last = t->dtype == XLAC_S8 || ir_ints_has(terms, (int64_t)t->rank - 1);
  for (uint32_t i = 0; i < batch->n; i++) order[n++] = batch->v[i];
  for (int half = 0; half < 2; half++) {
    if (half == terms_last)
      for (uint32_t i = 0; i < terms->n; i++) order[n++] = terms->v[i];
    else
      for (uint32_t d = 0; d < t->rank; d++)
        if (!ir_ints_has(batch, d) && !ir_ints_has(terms, d)) order[n++] = d;
  }
  assert(n == t->rank);
}

/* The dimension's place in the order. */
static int64_t cu_product_place(const int64_t *order, int64_t d) {
  int64_t at = 0;
  while (order[at] != d) at++;
  return at;
}

/* The new dot's operand of that number, which has its lists, transposed. */
static bool cu_product_transpose(hlo_maker *make, ir_op *dot, uint32_t side) {
  ir_op *from = ir_operand(dot, side);
  const ir_ints *batch = ir_get_ints(dot, cu_product_batches[side]), *terms = ir_get_ints(dot, cu_product_terms[side]);
  int64_t order[IR_MAX_RANK], moved[2][IR_MAX_RANK];
  cu_product_order(from->type, batch, terms, order);
  for (uint32_t i = 0; i < batch->n; i++) moved[0][i] = cu_product_place(order, batch->v[i]);
  for (uint32_t i = 0; i < terms->n; i++) moved[1][i] = cu_product_place(order, terms->v[i]);
  ir_op *turned = hlo_transpose(make, from, order);
  if (!turned || make->failed) return false;
  ir_set_operand(dot, side, (ir_value){turned, 0});
  return ir_set_ints(dot, cu_product_batches[side], batch->n, moved[0]) &&
         ir_set_ints(dot, cu_product_terms[side], terms->n, moved[1]);
}

/* The terms in the order in which they lie in that operand: no other order changes which are added up. */
static bool cu_product_sort_terms(ir_op *dot, uint32_t side) {
  const ir_ints *lists[2] = {ir_get_ints(dot, cu_product_terms[0]), ir_get_ints(dot, cu_product_terms[1])};
  int64_t sorted[2][IR_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < ir_operand_type(dot, side)->rank; d++)
    for (uint32_t i = 0; i < lists[side]->n; i++) {
      if (lists[side]->v[i] != d) continue;
      for (int j = 0; j < 2; j++) sorted[j][n] = lists[j]->v[i];
      n++;
    }
  return ir_set_ints(dot, cu_product_terms[0], n, sorted[0]) && ir_set_ints(dot, cu_product_terms[1], n, sorted[1]);
}

/* The dot right before it, of operands of which those in `sides` are transposed, bit 0 the left one. NULL: no memory.
 */
static ir_op *cu_product_copy(ir_op *dot, unsigned sides) {
  hlo_maker make = {.m = dot->parent->module, .before = dot};
  base_map none;
  base_map_init(&none, make.m->alloc);
  ir_op *made = ir_op_clone(dot, dot->parent, &none);
  base_map_free(&none);
  if (!made || !cu_product_sort_terms(made, sides == 1)) return NULL;
  for (uint32_t i = 0; i < 2; i++)
    if (sides >> i & 1 && !cu_product_transpose(&make, made, i)) return NULL;
  ir_op_move(made, dot);
  return made;
}

/* Whether the library's product of them, those in `sides` transposed, takes less time. xlac's kernel makes between a
 * twentieth and half of the library's operations (35 of 640 Tflop/s measured on an H200 in bf16), and memory takes as
 * long for a byte that is written and read again as that kernel for a few dozen operations. */
static bool cu_product_pays(const ir_op *dot, unsigned sides) {
  enum { OPERATIONS = 64 }; /* for a byte */
  cuda_dot_side a, b;
  cuda_dot_sides(dot, &a, &b);
  double moved = 0, n = (double)a.free.count * (double)a.contracting.count * (double)a.batch.count;
  for (uint32_t i = 0; i < 2; i++)
    if (sides >> i & 1) moved += (double)ir_operand_type(dot, i)->count;
  return 2 * n * (double)b.free.count >=
         OPERATIONS * moved * base_dtype_bytes((base_dtype)ir_operand_type(dot, 0)->dtype);
}

static bool cu_product_begin(cuda_device *d);

/* Least memory is moved by the first of the ways. */
int cuda_product_arrange(cuda_executable *exe, ir_op *dot, bool *changed, xlac_error *err) {
  cu_product_plan x = {.outer = 1};
  if (dot->n_operands != 2 || !cu_product_find_types(dot, &x) || cu_product_plan_of(dot, &x)) return 0;
  if (!hlo_is_plain(dot->type) || !hlo_is_plain(ir_operand_type(dot, 0)) || !hlo_is_plain(ir_operand_type(dot, 1)))
    return 0;
  unsigned smaller = ir_operand_type(dot, 0)->count <= ir_operand_type(dot, 1)->count ? 1 : 2;
  unsigned sides[4] = {0, smaller, 3 - smaller, 3};
  for (int i = 0; i < 4; i++) {
    if (!cu_product_pays(dot, sides[i]) || !cu_product_begin(exe->device)) return 0;
    ir_op *made = cu_product_copy(dot, sides[i]);
    *changed = true;
    if (!made) return base_oom(err, "a product of matrices");
    if (cu_product_plan_of(made, &x)) return ir_replace_uses(dot, made) ? 0 : base_oom(err, "a product of matrices");
  }
  return 0; /* what was made and is not used goes with the dead code */
}

/* --- objects --- */

/* The library and its handle, once for the device. XLAC_CUBLASLT=0: none, for programs compiled from now on. */
static bool cu_product_begin(cuda_device *d) {
  const char *path = getenv("XLAC_CUBLASLT");
  if (path && strcmp(path, "0") == 0) return false;
  pthread_mutex_lock(&d->lock);
  if (!d->driver.blas.handle && !d->driver.blas.missing[0]) cuda_driver_find_blas(&d->driver);
  if (d->driver.blas.handle && !d->products && d->driver.cublasLtCreate(&d->products)) d->products = NULL;
  bool there = d->products != NULL;
  pthread_mutex_unlock(&d->lock);
  return there;
}

void cuda_products_end(cuda_device *d) {
  if (d->products) d->driver.cublasLtDestroy(d->products);
  d->products = NULL;
}

static bool cu_product_layout(const cuda_driver *c, const cu_product_matrix *m, int type, int64_t batch,
                              cuda_blas_object *out) {
  int32_t count = (int32_t)batch;
  if (c->cublasLtMatrixLayoutCreate(out, type, m->rows, m->columns, m->leading)) return *out = NULL, false;
  return !c->cublasLtMatrixLayoutSetAttribute(*out, CU_BLAS_BATCH_COUNT, &count, sizeof count) &&
         !c->cublasLtMatrixLayoutSetAttribute(*out, CU_BLAS_BATCH_STRIDE, &m->batch_stride, sizeof m->batch_stride);
}

static bool cu_product_objects(const cuda_driver *c, const cu_product_plan *x, bool fast, cuda_product *p) {
  bool wide = x->types[0] == CU_BLAS_F64, whole = x->types[0] == CU_BLAS_S8;
  int compute = wide                                 ? CU_BLAS_COMPUTE_F64
                : whole                              ? CU_BLAS_COMPUTE_S32
                : fast && x->types[0] == CU_BLAS_F32 ? CU_BLAS_COMPUTE_TF32
                                                     : CU_BLAS_COMPUTE_F32;
  if (c->cublasLtMatmulDescCreate(&p->matmul, compute, wide ? CU_BLAS_F64 : whole ? CU_BLAS_S32 : CU_BLAS_F32))
    return p->matmul = NULL, false;
  for (int i = 0; i < 3; i++)
    if (!cu_product_layout(c, &x->m[i], x->types[i == 2], x->batch, &p->layouts[i])) return false;
  return !c->cublasLtMatmulDescSetAttribute(p->matmul, CU_BLAS_TRANSPOSE_A, &x->m[0].transposed, sizeof(int)) &&
         !c->cublasLtMatmulDescSetAttribute(p->matmul, CU_BLAS_TRANSPOSE_B, &x->m[1].transposed, sizeof(int));
}

/* The first of what it recommends. */
static bool cu_product_choose(cuda_device *d, cuda_product *p) {
  const cuda_driver *c = &d->driver;
  cuda_blas_object preference = NULL;
  uint64_t most = d->major >= 9 ? 32 << 20 : 4 << 20;
  uint32_t align = CU_PRODUCT_ALIGN;
  int n = 0;
  if (c->cublasLtMatmulPreferenceCreate(&preference)) return false;
  bool ok = !c->cublasLtMatmulPreferenceSetAttribute(preference, CU_BLAS_WORKSPACE, &most, sizeof most);
  for (int i = 0; i < 4 && ok; i++)
    ok = !c->cublasLtMatmulPreferenceSetAttribute(preference, CU_BLAS_ALIGNMENT_A + i, &align, sizeof align);
  ok = ok && !c->cublasLtMatmulAlgoGetHeuristic(d->products, p->matmul, p->layouts[0], p->layouts[1], p->layouts[2],
                                                p->layouts[2], preference, 1, &p->choice, &n);
  c->cublasLtMatmulPreferenceDestroy(preference);
  return ok && n > 0 && p->choice.state == 0;
}

void cuda_product_destroy(cuda_executable *exe, cuda_product *p) {
  const cuda_driver *c = &exe->device->driver;
  if (!p) return;
  for (int i = 0; i < 3; i++)
    if (p->layouts[i]) c->cublasLtMatrixLayoutDestroy(p->layouts[i]);
  if (p->matmul) c->cublasLtMatmulDescDestroy(p->matmul);
  base_free(exe->alloc, p);
}

static void cu_product_set_steps(cuda_product *p, const cu_product_plan *x, const ir_op *dot) {
  int64_t bytes = base_dtype_bytes((base_dtype)ir_operand_type(dot, 0)->dtype);
  p->outer = x->outer;
  p->steps[0] = x->m[1].outer_stride * bytes;
  p->steps[1] = x->m[0].outer_stride * bytes;
  p->steps[2] = x->m[2].outer_stride * (int64_t)base_dtype_bytes((base_dtype)dot->type->dtype);
  if (x->types[0] == CU_BLAS_F64)
    p->one.f64 = 1;
  else if (x->types[0] == CU_BLAS_S8)
    p->one.s32 = 1;
  else
    p->one.f32 = 1;
}

/* Every call's arrays must lie as the first one's do. */
static bool cu_product_keeps_aligned(const cuda_product *p) {
  return p->outer == 1 || (p->steps[0] | p->steps[1] | p->steps[2]) % CU_PRODUCT_ALIGN == 0;
}

cuda_product *cuda_product_make(cuda_executable *exe, const ir_op *dot) {
  cu_product_plan x = {.outer = 1};
  if (dot->opcode != IR_OP_DOT || dot->n_operands != 2 || dot->type->has_dynamic) return NULL;
  if (ir_operand_type(dot, 0)->has_dynamic || ir_operand_type(dot, 1)->has_dynamic) return NULL;
  if (!cu_product_plan_of(dot, &x)) return NULL;
  if (!cu_product_begin(exe->device)) return NULL;
  cuda_product *p = base_malloc(exe->alloc, sizeof *p);
  if (!p) return NULL;
  *p = (cuda_product){.matmul = NULL};
  cu_product_set_steps(p, &x, dot);
  if (cu_product_keeps_aligned(p) && cu_product_objects(&exe->device->driver, &x, exe->fast, p) &&
      cu_product_choose(exe->device, p))
    return p;
  cuda_product_destroy(exe, p);
  return NULL;
}

/* Where the kernel here makes half of the library's operations, 2 * 256 of them for a result take about as long as
 * memory takes to write and read that again; of s8 four times as many, which take half the time each and whose sums are
 * twice as wide. Not measured on a GPU. */
bool cuda_product_gives_way(cuda_executable *exe, const ir_op *dot) {
  enum { FEW_TERMS = 256, FEW_OF_BYTES = 4 * FEW_TERMS };
  cu_product_plan x = {.outer = 1};
  cuda_dot_side a, b;
  cuda_dot_sides(dot, &a, &b);
  int64_t few = ir_operand_type(dot, 0)->dtype == XLAC_S8 ? FEW_OF_BYTES : FEW_TERMS;
  return a.contracting.count <= few || !cu_product_plan_of(dot, &x) || !cu_product_begin(exe->device);
}

/* --- running --- */

size_t cuda_product_scratch(const cuda_product *p) {
  return p->choice.workspace_bytes;
}

int cuda_product_run(cuda_run *run, const cuda_product *p, const cuda_address *values) {
  const void *at[4];
  assert((values[0] | values[1] | values[2]) % CU_PRODUCT_ALIGN == 0);
  for (int64_t i = 0; i < p->outer; i++) {
    for (int j = 0; j < 4; j++)
      at[j] = (const void *)(uintptr_t)(values[j] + (j < 3 ? (uint64_t)(i * p->steps[j]) : 0));
    cuda_blas_result result = run->device->driver.cublasLtMatmul(
        run->device->products, p->matmul, &p->one, at[1], p->layouts[0], at[0], p->layouts[1], &p->zero, at[2],
        p->layouts[2], (void *)(uintptr_t)at[2], p->layouts[2], p->choice.algorithm, (void *)(uintptr_t)at[3],
        p->choice.workspace_bytes, run->stream);
    if (result) return base_fail(run->ctx.err, XLAC_E_DEVICE, "a product of matrices: cuBLASLt says status %d", result);
  }
  return 0;
}
