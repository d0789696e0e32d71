/* dot: which way a matrix product goes. In order:
 *
 *    many tiny ones                   dot_tiny.c   vectors with masks, nothing packed
 *    some rows, B row-major           dot_few.c    reads B as stored
 *    very few rows or few terms       dot_thin.c   reads B once
 *    large or in full tiles, AVX-512  dot_gemm.c   packs A and B into blocks
 *    f32 or f64 matrices as stored  blas.c       where there is a BLAS
 *    all others, of any type          dot_gemm.c, or dot_small.c where packing costs more than the product */
#include "../../base/isa/isa.h"
#include "dot_few.h"
#include "dot_gemm.h"
#include "dot_tiny.h"
#include "../routine.h"

enum {
  DOT_OWN_LEAST = 128,    /* rows, columns and terms */
  DOT_OWN_WORK = 1 << 26, /* and products, from which on packing is worth while */
  DOT_ONE_LEAST = 96,     /* the same of one product by itself, */
  DOT_ONE_WORK = 1 << 22, /* whose */
  DOT_ONE_WASTE = 16,     /* tiles have no more than such a part beyond its edges */
  DOT_SHARED_ROWS = 32,   /* of one device, */
  DOT_SHARED = 1 << 17    /* and elements of B, from which on it pays where it is done once for many */
};

/* The library was opened when the product was prepared. */
static int dot_by_blas(const cpu_routine_run *r) {
  assert(cpu_executable_blas(r->run->exe));
  cpu_blas_dot(cpu_executable_blas(r->run->exe), r->data, r->run->exe->pool, r->in[0], r->in[1], r->out[0]);
  return 0;
}

static int dot_by_few(const cpu_routine_run *r) {
  cpu_few_run(r->data, r->run->exe->pool, r->in[0], r->in[1], r->out[0]);
  return 0;
}

/* A product of ours, with copies of the operands in the types it reads at these places of the scratch memory (-1:
 * the operand as it is). By operand of the op: `exchanged` says that the product has them the other way round. */
typedef struct dot_own {
  cpu_gemm g;
  bool exchanged;
  int64_t copy[2], count[2];
  base_dtype from[2], to[2];
} dot_own;

typedef struct dot_tiny {
  const cpu_tiny *tiny;
  bool exchanged;
} dot_tiny;

/* Operands of types that packing can't read are converted first, whole, into scratch memory. */
static int dot_by_own(const cpu_routine_run *r) {
  const dot_own *d = r->data;
  const void *operands[2];
  for (int i = 0; i < 2; i++) {
    operands[i] = r->in[i];
    if (d->copy[i] < 0) continue;
    char *copy = (char *)r->scratch + d->copy[i];
    cpu_gemm_convert(r->run->exe->pool, d->to[i], copy, d->from[i], r->in[i], d->count[i]);
    operands[i] = copy;
  }
  cpu_gemm_run(&d->g, r->run->exe->pool, operands[d->exchanged], operands[!d->exchanged], r->out[0], r->scratch);
  return 0;
}

/* Of a dense row-major array, in elements. */
static void dot_strides_of(const ir_type *t, int64_t *strides) {
  interp_strides(t->rank, t->dims, strides);
}

/* The dims of t that are in neither list, which step through the result with these strides from number *at on. */
static void dot_free_dims(cpu_gemm_dims *out, const ir_type *t, const ir_ints *batch, const ir_ints *contracting,
                          bool left, const int64_t *result, uint32_t *at) {
  int64_t strides[IR_MAX_RANK];
  dot_strides_of(t, strides);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (ir_ints_has(batch, d) || ir_ints_has(contracting, d)) continue;
    cpu_gemm_add(out, t->dims[d], left ? strides[d] : 0, left ? 0 : strides[d], result[(*at)++]);
  }
}

/* The dimensions of the product from HLO's dimension numbers: the result has the batch dimensions first, then the
 * left operand's free ones, then the right operand's. */
static void dot_give_dims(const ir_op *op, cpu_gemm *g) {
  assert(op->n_operands >= 2 && ir_is_tensor(op->type));
  const ir_type *a = ir_operand_type(op, 0), *b = ir_operand_type(op, 1);
  const ir_ints *ab = ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), *bb = ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS);
  const ir_ints *ac = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  const ir_ints *bc = ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS);
  int64_t sa[IR_MAX_RANK], sb[IR_MAX_RANK], sc[IR_MAX_RANK];
  uint32_t at = ab->n;
  dot_strides_of(a, sa);
  dot_strides_of(b, sb);
  dot_strides_of(op->type, sc);
  for (uint32_t i = 0; i < ab->n; i++) cpu_gemm_add(&g->batch, a->dims[ab->v[i]], sa[ab->v[i]], sb[bb->v[i]], sc[i]);
  for (uint32_t i = 0; i < ac->n; i++) cpu_gemm_add(&g->k, a->dims[ac->v[i]], sa[ac->v[i]], sb[bc->v[i]], 0);
  dot_free_dims(&g->m, a, ab, ac, true, sc, &at);
  dot_free_dims(&g->n, b, bb, bc, false, sc, &at);
  assert(at == op->type->rank);
}

/* By our own product; without a word where it is too large to count. only_thin: products that read an operand
 * once, which BLAS is no better at; others are then left alone. */
static int dot_prepare_own(cpu_prepare_run *x, bool only_thin) {
  const ir_op *op = x->op;
  base_dtype types[2] = {(base_dtype)ir_operand_type(op, 0)->dtype, (base_dtype)ir_operand_type(op, 1)->dtype};
  if (ir_operand_type(op, 0)->rank > GEMM_MAX_DIMS || ir_operand_type(op, 1)->rank > GEMM_MAX_DIMS) return 0;
  dot_own *d = BASE_NEW(x->arena, dot_own);
  if (!d) return base_oom(x->err, "a product");
  dot_give_dims(op, &d->g);
  cpu_gemm_types(&d->g, types[0], types[1], (base_dtype)op->type->dtype, true);
  d->to[0] = (base_dtype)d->g.a_type;
  d->to[1] = (base_dtype)d->g.b_type;
  if (!cpu_gemm_prepare(&d->g, &d->exchanged) || (only_thin && !d->g.thin)) return 0;
  int64_t scratch = d->g.scratch_bytes;
  for (int i = 0; i < 2; i++) {
    d->from[i] = types[i];
    d->count[i] = ir_operand_type(op, (uint32_t)i)->count;
    d->copy[i] = -1;
    if (d->from[i] == d->to[i]) continue;
    int64_t bytes = 0;
    d->copy[i] = scratch = (scratch + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
    if (!base_mul_i64(d->count[i], (int64_t)base_dtype_bytes(d->to[i]), &bytes) ||
        !base_add_i64(scratch, bytes, &scratch))
      return 0;
  }
  x->out->name = "product";
  x->out->work =
      (uint64_t)d->g.batch.count * (uint64_t)d->g.m.count * (uint64_t)d->g.n.count * (uint64_t)d->g.k.count / 4;
  x->out->scratch_bytes = scratch;
  x->data = d;
  x->code = dot_by_own;
  x->as_lines = !d->g.small && !d->g.thin;
  return 0;
}

/* As a product of matrices where they are: by few rows, else by BLAS. Either is one rt_parallel_for, and so
 * divisible. */
static int dot_prepare_matrices(cpu_prepare_run *x, const plan_dot *dot, bool few) {
  x->out->name = "gemm";
  x->out->divisible = true;
  x->out->work = (uint64_t)(dot->batch * dot->m * dot->n * dot->k) / 4;
  x->data = few ? (const void *)cpu_few_make(dot, x->arena) : base_arena_memdup(x->arena, dot, sizeof *dot);
  x->code = few ? dot_by_few : dot_by_blas;
  return x->data ? 0 : base_oom(x->err, "a product");
}

/* One product whose tiles are nearly full: it needs less work for packing to pay. Where A's rows are not rows in memory
 * the library takes it as quickly. */
static bool dot_one_is_better(const plan_dot *dot) {
  cpu_gemm_kernel tile = cpu_gemm_kernel_of((base_dtype)dot->dtype, false);
  assert(tile.rows > 0 && tile.columns > 0);
  int64_t down = (dot->m + tile.rows - 1) / tile.rows, across = (dot->n + tile.columns - 1) / tile.columns;
  int64_t waste = down * tile.rows * across * tile.columns - dot->m * dot->n;
  return dot->batch == 1 && !dot->transpose_a && dot->m >= DOT_ONE_LEAST && dot->n >= DOT_ONE_LEAST &&
         dot->k >= DOT_ONE_LEAST && dot->m * dot->n >= DOT_ONE_WORK / dot->k &&
         waste <= dot->m * dot->n / DOT_ONE_WASTE;
}

/* With AVX-512 our tiles are as fast as the CPU is, and packing costs less than the library's where there is much to do
 * with what is packed. */
static bool dot_own_is_better(const plan_dot *dot) {
  if (base_isa_best() < BASE_ISA_AVX512) return false;
  bool large = dot->m >= DOT_OWN_LEAST && dot->n >= DOT_OWN_LEAST && dot->k >= DOT_OWN_LEAST;
  return (large && dot->m * dot->n >= DOT_OWN_WORK / dot->k) || dot_one_is_better(dot);
}

/* A BLAS is opened only for a product that none of our own is better at: that takes longer than compiling most
 * programs. */
static int dot_by_tiny(const cpu_routine_run *r) {
  const dot_tiny *d = r->data;
  cpu_tiny_run(d->tiny, r->run->exe->pool, r->in[d->exchanged], r->in[!d->exchanged], r->out[0]);
  return 0;
}

/* Many tiny products, if it is that. dims: of x->op. */
static int dot_prepare_tiny(cpu_prepare_run *x, const cpu_gemm *dims) {
  base_dtype t = (base_dtype)x->op->type->dtype;
  bool failed = false;
  if (ir_operand_type(x->op, 0)->dtype != t || ir_operand_type(x->op, 1)->dtype != t) return 0;
  dot_tiny *d = BASE_NEW(x->arena, dot_tiny);
  if (!d) return base_oom(x->err, "a product");
  d->tiny = cpu_tiny_make(dims, t, x->arena, &d->exchanged, &failed);
  if (failed) return base_oom(x->err, "a product");
  if (!d->tiny) return 0;
  x->out->name = "tiny products";
  x->out->divisible = true;
  x->out->work = (uint64_t)ir_operand_type(x->op, 0)->count + (uint64_t)ir_operand_type(x->op, 1)->count;
  x->data = d;
  x->code = dot_by_tiny;
  return cpu_tiny_is_long(d->tiny) ? cpu_prepare_lines(x, dims) : 0; /* with what follows, it may be made by lines */
}

/* Whether several devices are given the same. */
static bool dot_is_alike(const ir_op *parameter) {
  const ir_attr *said = ir_attr_find(parameter, IR_ATTR_SHARDING);
  return said && (said->v.sharding->kind == IR_SHARDING_REPLICATED ||
                  (said->v.sharding->kind == IR_SHARDING_TILED && said->v.sharding->replicate_on_last_dim));
}

/* One of several devices may find what it reads packed for all that read the same (turns.c), but by our own product
 * alone. So that is taken of what several are given alike where packing, or reading B, is much of the time: B is large,
 * and few of a tile's rows are empty. Where each device has another B, a BLAS is as quick or quicker. */
static bool dot_is_of_many(const ir_op *op, const plan_dot *dot) {
  const ir_module *m = op->parent->module;
  const ir_op *b = ir_operand(op, 1);
  bool alike = b->opcode == IR_OP_PARAMETER && op->parent == m->entry && dot_is_alike(b);
  if (!alike || base_isa_best() < BASE_ISA_AVX512) return false;
  int64_t rows = cpu_gemm_kernel_of((base_dtype)dot->dtype, false).rows, full = (dot->m + rows - 1) / rows * rows;
  return (m->config.num_partitions > 1 || m->config.replica_count > 1) && dot->m >= DOT_SHARED_ROWS &&
         dot->n * dot->k > DOT_SHARED && 8 * full <= 9 * dot->m;
}

static int dot_prepare_whole(cpu_prepare_run *x) {
  plan_dot dot = {.dtype = 0};
  const cpu_blas *blas = NULL;
  bool matrices = plan_dot_of(x->op, &dot), many = matrices && dot_is_of_many(x->op, &dot);
  bool may = x->options->blas && matrices && !many && !dot_own_is_better(&dot);
  if (matrices && !many && cpu_few_is_better(&dot)) return dot_prepare_matrices(x, &dot, true);
  TRY(dot_prepare_own(x, may));
  if (!may || x->code) return 0;
  TRY(cpu_blas_lazy_get(x->options->blas, &blas, x->err));
  return blas ? dot_prepare_matrices(x, &dot, false) : dot_prepare_own(x, false);
}

int cpu_prepare_dot(cpu_prepare_run *x) {
  cpu_gemm dims = {0};
  if (ir_operand_type(x->op, 0)->rank > GEMM_MAX_DIMS || ir_operand_type(x->op, 1)->rank > GEMM_MAX_DIMS)
    return dot_prepare_whole(x);
  dot_give_dims(x->op, &dims);
  TRY(dot_prepare_tiny(x, &dims));
  if (x->code) return 0;
  TRY(dot_prepare_whole(x));
  if (!x->code) return 0;
  return cpu_prepare_lines(x, &dims);
}
