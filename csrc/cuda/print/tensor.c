/* Products on tensor cores: which instruction computes a dot op, and the kernel around tensor.cuh's tensor_product. */
#include "dot.h"

enum {
  CU_TENSOR_MAJOR = 8,       /* of the first capability that has all the instructions */
  CU_TENSOR_LEAST = 16,      /* terms, and as many results as 8 by 8: for fewer a tile is mostly empty */
  CU_TENSOR_SMALL = 64,      /* rows and columns of a tile, where there are few: */
  CU_TENSOR_LARGE = 128,     /* else */
  CU_TENSOR_TILES = 128,     /* large ones that keep a GPU busy */
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
  base_putf(r->print.out, "    [&](int64_t at, int64_t term) { return &((const %s *)in%u)[0", cuda_type(t),
            (unsigned)number);
  cuda_dot_put_role(r, &x->batch, "batch");
  cuda_dot_put_role(r, &x->free, "at");
  cuda_dot_put_role(r, &x->contracting, "term");
  BASE_PUT(r->print.out, "]; },\n");
}

static void cu_tensor_put_store(cuda_routine *r, const cuda_dot_side *a, const cuda_dot_side *b, base_dtype t) {
  base_dtype result = (base_dtype)r->op->type->dtype;
  base_putf(r->print.out,
            "    [&](int64_t row, int64_t column, %s sum) {\n      if (row >= %lld || column >= %lld) return;\n"
            "      ((%s *)out0)[(batch * %lld + row) * %lld + column] = ",
            cuda_type(t), (long long)a->free.count, (long long)b->free.count, cuda_type(result),
            (long long)a->free.count, (long long)b->free.count);
  cuda_print_convert(&r->print, result, t, "sum");
  BASE_PUT(r->print.out, ";\n    });\n");
}

static int64_t cu_tensor_tiles(int64_t n, int64_t tile) {
  return (n + tile - 1) / tile;
}

static void cu_tensor_put(cuda_routine *r, cuda_tensor_kind kind, const cuda_dot_side *a, const cuda_dot_side *b,
                          int64_t tile, base_dtype t) {
  base_dtype own = (base_dtype)ir_operand_type(r->op, 0)->dtype;
  base_text *out = r->print.out;
  int64_t down = cu_tensor_tiles(a->free.count, tile), across = cu_tensor_tiles(b->free.count, tile);
  cuda_print_needs(&r->print, "tensor_product");
  cuda_routine_head(r, 2, 1);
  base_putf(out, "  __shared__ uint32_t lefts[2][%lld], rights[2][%lld];\n", (long long)tile * CU_TENSOR_STAGE_WORDS,
            (long long)tile * CU_TENSOR_STAGE_WORDS);
  base_putf(out, "  const idx tile = blockIdx.x, batch = tile / %lld, row = tile / %lld %% %lld * %lld, ",
            (long long)(down * across), (long long)across, (long long)down, (long long)tile);
  base_putf(out, "column = tile %% %lld * %lld;\n", (long long)across, (long long)tile);
  base_putf(out, "  tensor_product<%d, %s, %s, %lld, %d, %d>(lefts, rights, row, %lld, column, %lld, %lld,\n",
            (int)kind, cuda_type(own), cuda_type(t), (long long)tile, cuda_tensor_along(a, own),
            cuda_tensor_along(b, own), (long long)a->free.count, (long long)b->free.count,
            (long long)a->contracting.count);
  cuda_tensor_put_at(r, 0, a, own);
  cuda_tensor_put_at(r, 1, b, own);
  cu_tensor_put_store(r, a, b, t);
  r->launch->grid = down * across * a->batch.count;
}

bool cuda_print_tensor_product(cuda_routine *r, const cuda_dot_side *a, const cuda_dot_side *b, base_dtype t) {
  cuda_tensor_kind kind = cuda_tensor_kind_of(r->source, r->op, t);
  if (kind == CUDA_TENSOR_NONE || a->contracting.count < CU_TENSOR_LEAST) return false;
  if (a->free.count < CU_TENSOR_LEAST / 2 || b->free.count < CU_TENSOR_LEAST / 2) return false;
  int64_t tiles = cu_tensor_tiles(a->free.count, CU_TENSOR_LARGE) * cu_tensor_tiles(b->free.count, CU_TENSOR_LARGE);
  bool large = tiles * a->batch.count >= CU_TENSOR_TILES;
  r->launch->by = "tensor cores";
  cu_tensor_put(r, kind, a, b, large ? CU_TENSOR_LARGE : CU_TENSOR_SMALL, t);
  cuda_routine_close(r, large ? "on tensor cores, a block for each tile of 128 by 128 results"
                              : "on tensor cores, a block for each tile of 64 by 64 results");
  return true;
}
