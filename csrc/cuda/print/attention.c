/* Attention as one kernel: what a fusion of fuse/attention.c's computes, around tensor.cuh's attention. Queries are the
 * rows of the first product's left operand, keys the columns of its right one and the terms of the second product.
 * What is between scores and softmax is lowered as any kernel, and printed with a score in the place of its load. */
#include <stdio.h>

#include "../../fuse/fuse.h"
#include "../../interp/algorithm/matmul.h"
#include "dot.h"

enum {
  CU_ATTENTION_ROWS = 64,   /* of a block */
  CU_ATTENTION_LEAST = 16,  /* queries: fewer leave a block mostly empty, and their scores are small */
  CU_ATTENTION_WIDE = 128,  /* terms, and columns of values, that there are registers for */
  CU_ATTENTION_ROOM = 40960 /* bytes of shared memory */
};

enum { CU_ATTENTION_F32 = 4 /* tensor.cuh's kind without tensor cores */ };

typedef struct cu_attention {
  cuda_routine *r;
  fusion_attention of;
  cuda_dot_side queries, keys, weights, values;
  const ir_op *operands[3]; /* parameters: queries, keys, values */
  base_dtype own;           /* of these */
  int kind;
  int64_t rows, depth, width, at_a_time; /* at_a_time: keys */
} cu_attention;

/* --- what is taken --- */

static base_dtype cu_attention_sum_type(const ir_op *dot) {
  return cuda_sum_type(interp_product_type((base_dtype)ir_operand_type(dot, 0)->dtype,
                                           (base_dtype)ir_operand_type(dot, 1)->dtype, (base_dtype)dot->type->dtype));
}

/* Both products by one instruction; of f32 one that may not be rounded decides for both. */
static bool cu_attention_choose_kind(cu_attention *x) {
  const ir_op *dots[] = {x->of.scores, x->of.out};
  x->own = (base_dtype)x->operands[0]->type->dtype;
  for (uint32_t i = 0; i < 2; i++) {
    base_dtype t = cu_attention_sum_type(dots[i]);
    if ((base_dtype)ir_operand_type(dots[i], 0)->dtype != x->own ||
        (base_dtype)ir_operand_type(dots[i], 1)->dtype != x->own || t != XLAC_F32)
      return false;
    cuda_tensor_kind kind = cuda_tensor_kind_of(x->r->source, dots[i], t);
    if (kind == CUDA_TENSOR_NONE && x->own != XLAC_F32) return false;
    if (x->kind != CU_ATTENTION_F32) x->kind = kind == CUDA_TENSOR_NONE ? CU_ATTENTION_F32 : (int)kind;
  }
  return true;
}

/* One dimension at most, which goes by that stride. */
static bool cu_attention_goes_by(const cuda_dot_role *role, int64_t count, int64_t stride) {
  return role->count == count && (role->n == 0 || (role->n == 1 && role->strides[0] == stride));
}

/* Weights lie as scores do: batches, queries, keys. */
static bool cu_attention_has_sides(cu_attention *x) {
  cuda_dot_side left, right;
  bool first = x->of.side == 0;
  cuda_dot_sides(x->of.scores, &x->queries, &x->keys);
  cuda_dot_sides(x->of.out, &left, &right);
  x->weights = first ? left : right;
  x->values = first ? right : left;
  x->rows = x->queries.free.count;
  x->depth = x->queries.contracting.count;
  x->width = x->values.free.count;
  int64_t keys = x->of.keys;
  return x->keys.free.count == keys && cu_attention_goes_by(&x->weights.contracting, keys, 1) &&
         cu_attention_goes_by(&x->weights.free, x->rows, keys) &&
         cu_attention_goes_by(&x->weights.batch, x->queries.batch.count, keys * x->rows);
}

static int64_t cu_attention_padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

/* As many keys at a time as there is room for. */
static bool cu_attention_has_room(cu_attention *x) {
  int64_t bytes = base_dtype_bytes(x->own);
  assert(bytes > 0 && x->depth > 0);
  int64_t each = (cu_attention_padded(x->depth) + cu_attention_padded(x->width)) * bytes + 32;
  for (x->at_a_time = 64; x->at_a_time >= 16; x->at_a_time /= 2)
    if (x->at_a_time * each <= CU_ATTENTION_ROOM) return true;
  return false;
}

static bool cu_attention_of(cuda_routine *r, cu_attention *x) {
  *x = (cu_attention){.r = r};
  if (!fusion_attention_of(ir_root(r->op->called[0]), &x->of)) return false;
  x->operands[0] = ir_operand(x->of.scores, 0);
  x->operands[1] = ir_operand(x->of.scores, 1);
  x->operands[2] = ir_operand(x->of.out, 1 - x->of.side);
  for (uint32_t i = 0; i < 3; i++)
    if (x->operands[i]->opcode != IR_OP_PARAMETER) return false;
  return cu_attention_choose_kind(x) && cu_attention_has_sides(x) && x->rows >= CU_ATTENTION_LEAST &&
         x->of.keys >= CU_ATTENTION_LEAST && x->depth <= CU_ATTENTION_WIDE && x->width <= CU_ATTENTION_WIDE &&
         x->depth > 0 && cu_attention_has_room(x);
}

/* "[&](int64_t at, int64_t column, float sum) { ... return ...; }" */
static void cu_attention_put_x(cu_attention *x, const cuda_between *between) {
  char value[24];
  BASE_PUT(x->r->print.out, "    [&](int64_t at, int64_t column, float sum) -> float {\n");
  cuda_between_put(x->r, between, XLAC_F32, value);
  BASE_PUT(x->r->print.out, "      return ");
  cuda_print_convert(&x->r->print, XLAC_F32, (base_dtype)x->of.x->type->dtype, value);
  BASE_PUT(x->r->print.out, ";\n    },\n");
}

/* --- the kernel --- */

/* The result has the weights' rows first, or the values' columns. */
static void cu_attention_put_store(cu_attention *x) {
  base_dtype t = (base_dtype)x->of.out->type->dtype;
  bool first = x->of.side == 0;
  base_putf(x->r->print.out,
            "    [&](int64_t at, int64_t column, float sum) {\n      if (at >= %lld || column >= %lld) return;\n"
            "      ((%s *)out0)[(batch * %lld + %s) * %lld + %s] = ",
            (long long)x->rows, (long long)x->width, cuda_type(t), (long long)(first ? x->rows : x->width),
            first ? "at" : "column", (long long)(first ? x->width : x->rows), first ? "column" : "at");
  cuda_print_convert(&x->r->print, t, XLAC_F32, "sum");
  BASE_PUT(x->r->print.out, ";\n    });\n");
}

/* Values as rows of keys. */
static cuda_dot_side cu_attention_turned(const cuda_dot_side *x) {
  return (cuda_dot_side){.batch = x->batch, .free = x->contracting, .contracting = x->free};
}

static void cu_attention_put(cu_attention *x, const cuda_between *between) {
  cuda_routine *r = x->r;
  base_text *out = r->print.out;
  int64_t tiles = (x->rows + CU_ATTENTION_ROWS - 1) / CU_ATTENTION_ROWS;
  cuda_dot_side values = cu_attention_turned(&x->values);
  const cuda_dot_side *sides[] = {&x->queries, &x->keys, &values};
  int64_t depth = cu_attention_padded(x->depth), width = cu_attention_padded(x->width);
  long long word = 4 / (long long)base_dtype_bytes(x->own), at_a_time = x->at_a_time;
  cuda_print_needs(&r->print, "attention");
  r->launch->by = "attention";
  r->launch->block = 2 * CU_ATTENTION_ROWS;
  r->launch->grid = tiles * x->queries.batch.count;
  cuda_routine_head(r, r->op->n_operands, 1);
  base_putf(out, "  __shared__ uint32_t keys[%lld], values[%lld];\n", at_a_time * (depth / word + 4),
            at_a_time * (width / word + 4));
  base_putf(out, "  const idx batch = blockIdx.x / %lld, row = blockIdx.x %% %lld * %d;\n", (long long)tiles,
            (long long)tiles, CU_ATTENTION_ROWS);
  base_putf(out, "  attention<%d, %s, %lld, %lld, %lld, %d, %d>(keys, values, row, %lld, %lld, %lld, %lld,\n", x->kind,
            cuda_type(x->own), (long long)depth, (long long)width, at_a_time, cuda_tensor_along(&x->keys, x->own),
            cuda_tensor_along(&values, x->own), (long long)x->rows, (long long)x->of.keys, (long long)x->depth,
            (long long)x->width);
  for (uint32_t i = 0; i < 3; i++) cuda_tensor_put_at(r, (uint32_t)x->operands[i]->u.number, sides[i], x->own);
  cu_attention_put_x(x, between);
  cu_attention_put_store(x);
}

static bool cu_attention_print(cuda_routine *r) {
  cu_attention x;
  cuda_between between;
  if (!cu_attention_of(r, &x) || !cuda_between_make(r, x.of.scores, x.of.x, x.rows, x.of.keys, &between)) return false;
  cu_attention_put(&x, &between);
  cuda_routine_close(r, x.kind == CU_ATTENTION_F32
                            ? "attention in one pass, a block for each 64 queries"
                            : "attention in one pass on tensor cores, a block for each 64 queries");
  return true;
}

bool cuda_print_fusion(cuda_routine *r) {
  return r->op->n_called == 1 && (cu_attention_print(r) || cuda_print_fused_product(r));
}
