/* Products on tensor cores: which instruction computes a dot op, and the kernel around tensor.cuh's tensor_product. */
#include "../../fuse/fuse.h"
#include "../../interp/algorithm/matmul.h"
#include "dot.h"

enum {
  CU_TENSOR_MAJOR = 8,       /* of the first capability that has all the instructions */
  CU_TENSOR_LEAST = 16,      /* terms, and as many results as 8 by 8: for fewer a tile is mostly empty */
  CU_TENSOR_SMALL = 64,      /* rows and columns of a tile, where there are few: */
  CU_TENSOR_LARGE = 128,     /* else */
  CU_TENSOR_TILES = 128,     /* large ones that keep a GPU busy */
  CU_TENSOR_MOST = 1 << 30,  /* rows, columns or terms: kernels count by int */
  CU_TENSOR_STAGE_WORDS = 20 /* of a row of a tile in shared memory */
};

/* --- which --- */

static bool cu_tensor_asks_for_more(const ir_op *dot) {
  const ir_attr *precision = ir_attr_find(dot, IR_ATTR_OPERAND_PRECISION);
  for (uint32_t i = 0; precision && i < precision->v.ints->n; i++)
    if (precision->v.ints->v[i] != IR_PRECISION_DEFAULT) return true;
  return false;
}

static bool cu_tensor_rounds(const cuda_source *s, const ir_op *dot) {
  ir_dot algorithm = (ir_dot)ir_get_word(dot, IR_ATTR_ALGORITHM);
  if (algorithm != IR_DOT_UNSET) return algorithm == IR_DOT_TF32_TF32_F32;
  return s->fast && !cu_tensor_asks_for_more(dot);
}

cuda_tensor_kind cuda_tensor_kind_of(const cuda_source *s, const ir_op *dot, base_dtype t) {
  base_dtype a = (base_dtype)ir_operand_type(dot, 0)->dtype, b = (base_dtype)ir_operand_type(dot, 1)->dtype;
  if (s->major < CU_TENSOR_MAJOR || a != b) return CUDA_TENSOR_NONE;
  if (a == XLAC_S8) return t == XLAC_S32 ? CUDA_TENSOR_S8 : CUDA_TENSOR_NONE;
  if (t != XLAC_F32) return CUDA_TENSOR_NONE;
  if (a == XLAC_F16 || a == XLAC_BF16) return a == XLAC_F16 ? CUDA_TENSOR_F16 : CUDA_TENSOR_BF16;
  return a == XLAC_F32 && cu_tensor_rounds(s, dot) ? CUDA_TENSOR_TF32 : CUDA_TENSOR_NONE;
}

/* --- the kernel --- */

/* Whether v neighbours of the index, at a multiple of v, lie together at a multiple of v. */
static bool cu_tensor_lies(const cuda_dot_role *x, int64_t v) {
  return x->n && x->strides[x->n - 1] == 1 && x->extents[x->n - 1] % v == 0;
}

static bool cu_tensor_steps(const cuda_dot_role *x, uint32_t n, int64_t v) {
  for (uint32_t i = 0; i < n; i++)
    if (x->strides[i] % v) return false;
  return true;
}

int cuda_tensor_along(const cuda_dot_side *x, base_dtype t) {
  int64_t v = 16 / (int64_t)base_dtype_bytes(t);
  assert(v > 0);
  if (!cu_tensor_steps(&x->batch, x->batch.n, v)) return 0;
  if (cu_tensor_lies(&x->contracting, v) && cu_tensor_steps(&x->contracting, x->contracting.n - 1, v) &&
      cu_tensor_steps(&x->free, x->free.n, v))
    return 1;
  return cu_tensor_lies(&x->free, v) && cu_tensor_steps(&x->free, x->free.n - 1, v) &&
                 cu_tensor_steps(&x->contracting, x->contracting.n, v)
             ? 2
             : 0;
}

void cuda_tensor_put_at(cuda_routine *r, uint32_t number, const cuda_dot_side *x, base_dtype t) {
  base_putf(r->print.out, "    [&](int at, int term) { return &((const %s *)in%u)[0", cuda_type(t), (unsigned)number);
  cuda_dot_put_role(r, &x->batch, "batch");
  cuda_dot_put_role(r, &x->free, "at");
  cuda_dot_put_role(r, &x->contracting, "term");
  BASE_PUT(r->print.out, "]; },\n");
}

/* A product with what is elementwise of it. */
typedef struct cu_tensor_product {
  const ir_op *dot;
  uint32_t numbers[2]; /* of its operands, among the kernel's */
  cuda_tensor_kind kind;
  cuda_dot_side a, b;
  base_dtype own, sum; /* types of operands, of sums */
  int64_t tile, down, across;
  cuda_between between;
} cu_tensor_product;

static void cu_tensor_put_store(cuda_routine *r, const cu_tensor_product *x) {
  char value[24];
  base_putf(r->print.out, "    [&](int at, int column, %s sum) {\n      if (at >= %lld || column >= %lld) return;\n",
            cuda_type(x->sum), (long long)x->a.free.count, (long long)x->b.free.count);
  cuda_between_put(r, &x->between, x->sum, value);
  base_putf(r->print.out, "      ((%s *)out0)[row * all + column] = %s;\n    });\n",
            cuda_type((base_dtype)r->op->type->dtype), value);
}

static int64_t cu_tensor_tiles(int64_t n, int64_t tile) {
  return (n + tile - 1) / tile;
}

static void cu_tensor_put(cuda_routine *r, const cu_tensor_product *x) {
  base_text *out = r->print.out;
  long long tile = x->tile;
  cuda_print_needs(&r->print, "tensor_product");
  cuda_routine_head(r, r->op->n_operands, 1);
  base_putf(out, "  __shared__ uint32_t lefts[2][%lld], rights[2][%lld];\n", tile * CU_TENSOR_STAGE_WORDS,
            tile * CU_TENSOR_STAGE_WORDS);
  base_putf(out, "  const idx tile = blockIdx.x, batch = tile / %lld, row = tile / %lld %% %lld * %lld, ",
            (long long)(x->down * x->across), (long long)x->across, (long long)x->down, tile);
  base_putf(out, "column = tile %% %lld * %lld;\n", (long long)x->across, tile);
  base_putf(out, "  tensor_product<%d, %s, %s, %lld, %d, %d>(lefts, rights, row, %lld, column, %lld, %lld,\n",
            (int)x->kind, cuda_type(x->own), cuda_type(x->sum), tile, cuda_tensor_along(&x->a, x->own),
            cuda_tensor_along(&x->b, x->own), (long long)x->a.free.count, (long long)x->b.free.count,
            (long long)x->a.contracting.count);
  cuda_tensor_put_at(r, x->numbers[0], &x->a, x->own);
  cuda_tensor_put_at(r, x->numbers[1], &x->b, x->own);
  cu_tensor_put_store(r, x);
  r->launch->grid = x->down * x->across * x->a.batch.count;
}

/* false: another kernel is better, or there is no instruction. */
static bool cu_tensor_choose(cuda_routine *r, cu_tensor_product *x) {
  cuda_dot_side *a = &x->a, *b = &x->b;
  x->own = (base_dtype)ir_operand_type(x->dot, 0)->dtype;
  x->sum = cuda_sum_type(
      interp_product_type(x->own, (base_dtype)ir_operand_type(x->dot, 1)->dtype, (base_dtype)x->dot->type->dtype));
  cuda_dot_sides(x->dot, a, b);
  x->kind = cuda_tensor_kind_of(r->source, x->dot, x->sum);
  if (x->kind == CUDA_TENSOR_NONE || a->contracting.count < CU_TENSOR_LEAST) return false;
  if (a->free.count < CU_TENSOR_LEAST / 2 || b->free.count < CU_TENSOR_LEAST / 2) return false;
  if (a->free.count > CU_TENSOR_MOST || b->free.count > CU_TENSOR_MOST || a->contracting.count > CU_TENSOR_MOST)
    return false;
  int64_t tiles = cu_tensor_tiles(a->free.count, CU_TENSOR_LARGE) * cu_tensor_tiles(b->free.count, CU_TENSOR_LARGE);
  x->tile = tiles * a->batch.count >= CU_TENSOR_TILES ? CU_TENSOR_LARGE : CU_TENSOR_SMALL;
  x->down = cu_tensor_tiles(a->free.count, x->tile);
  x->across = cu_tensor_tiles(b->free.count, x->tile);
  return true;
}

static bool cu_tensor_print(cuda_routine *r, cu_tensor_product *x, ir_op *end) {
  if (!cu_tensor_choose(r, x)) return false;
  if (!cuda_between_make(r, x->dot, end, x->a.free.count, x->b.free.count, &x->between)) return false;
  r->launch->by = "tensor cores";
  cu_tensor_put(r, x);
  cuda_routine_close(r, x->tile == CU_TENSOR_LARGE ? "on tensor cores, a block for each tile of 128 by 128 results"
                                                   : "on tensor cores, a block for each tile of 64 by 64 results");
  return true;
}

bool cuda_print_tensor_product(cuda_routine *r) {
  cu_tensor_product x = {.dot = r->op, .numbers = {0, 1}, .between.more = NULL};
  return cu_tensor_print(r, &x, (ir_op *)(uintptr_t)r->op);
}

bool cuda_print_fused_product(cuda_routine *r) {
  cu_tensor_product x = {.kind = CUDA_TENSOR_NONE};
  fusion_attention of;
  if (!fusion_product_of(ir_root(r->op->called[0]), &of)) return false;
  x.dot = of.scores;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_op *operand = ir_operand(x.dot, i);
    if (operand->opcode != IR_OP_PARAMETER) return false;
    x.numbers[i] = (uint32_t)operand->u.number;
  }
  return cu_tensor_print(r, &x, of.x);
}
