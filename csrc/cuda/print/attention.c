/* Attention as one kernel, and products and sums whose scores are computed again: what fusions of fuse/attention.c's
 * compute, around tensor.cuh's attention and recomputed. Queries are the
 * rows of the first product's left operand, keys the columns of its right one and the terms of the second product.
 * What is between scores and softmax is lowered as any kernel, and printed with a score in the place of its load. */
#include <stdio.h>

#include "../../fuse/fuse.h"
#include "../../interp/algorithm/matmul.h"
#include "dot.h"

enum {
  CU_ATTENTION_ROWS = 64,      /* of a block */
  CU_ATTENTION_LEAST = 16,     /* queries: fewer leave a block mostly empty, and their scores are small */
  CU_ATTENTION_MOST = 1 << 30, /* queries, or keys: kernels count by int */
  CU_ATTENTION_WIDE = 128,     /* terms, and columns of values, that there are registers for */
  CU_ATTENTION_ROOM = 40960,   /* bytes of shared memory */
  CU_ATTENTION_REGISTERS = 176 /* of a thread, for operands and sums: as many are left for all else */
};

enum { CU_AGAIN_SHARED = 3 /* how values lie that are keys, too: tensor.cuh */ };
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

/* As many keys at a time as there is room for, in shared memory and in a thread's registers: its part of the left
 * operands, of scores, of sums and of the keys that are on their way. `deep` is the terms of all products with scores;
 * 0: not even 16. */
static int64_t cu_attention_at_a_time(int64_t most, int64_t deep, int64_t width, int64_t products, int64_t bytes) {
  assert(bytes > 0 && deep > 0);
  for (int64_t keys = most; keys >= 16; keys /= 2) {
    int64_t staged = keys * (deep + width) * bytes;
    int64_t registers = deep * bytes / 8 + width / 2 + products * keys / 2 + staged / (4 * 2 * CU_ATTENTION_ROWS);
    if (staged + 48 * keys <= CU_ATTENTION_ROOM && registers <= CU_ATTENTION_REGISTERS) return keys;
  }
  return 0;
}

static bool cu_attention_has_room(cu_attention *x) {
  x->at_a_time = cu_attention_at_a_time(64, cu_attention_padded(x->depth), cu_attention_padded(x->width), 1,
                                        base_dtype_bytes(x->own));
  return x->at_a_time > 0;
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
         x->rows <= CU_ATTENTION_MOST && x->of.keys <= CU_ATTENTION_MOST && x->of.keys >= CU_ATTENTION_LEAST &&
         x->depth <= CU_ATTENTION_WIDE && x->width <= CU_ATTENTION_WIDE && x->depth > 0 && cu_attention_has_room(x);
}

/* "[&](int at, int column, float sum) { ... return ...; }" */
static void cu_attention_put_x(cu_attention *x, const cuda_between *between) {
  char value[24];
  BASE_PUT(x->r->print.out, "    [&](int at, int column, float sum) -> float {\n");
  cuda_between_put(x->r, between, XLAC_F32, value);
  BASE_PUT(x->r->print.out, "      return ");
  cuda_print_convert(&x->r->print, XLAC_F32, (base_dtype)x->of.x->type->dtype, value);
  BASE_PUT(x->r->print.out, ";\n    },\n");
}

/* tensor.cuh's HIDES: fast numerics need not see an inf or a NaN whose weight is 0. */
static int cu_attention_hides(cuda_routine *r, const cuda_between *between, bool by_columns) {
  return !cuda_between_put_hidden(r, between, by_columns, NULL) ? 0 : r->source->fast ? 2 : 1;
}

/* Whether all of a block is hidden: of its first row and its first key; turned, these are a column and a row. */
static void cu_attention_put_hidden(cuda_routine *r, const cuda_between *between, bool by_columns, bool turned,
                                    int64_t keys) {
  char head[128];
  const char *row = turned ? "column" : "at", *key = turned ? "at" : "column";
  snprintf(head, sizeof head, "    [&](int %s, int %s) { int last_%s = %s + %d, last_%s = %s + %d;", row, key, row, row,
           CU_ATTENTION_ROWS - 1, key, key, (int)keys - 1);
  if (!cuda_between_put_hidden(r, between, by_columns, head))
    BASE_PUT(r->print.out, "    [](int, int) { return false; },\n");
}

/* What is rounded to 16 bits needs no more than the GPU's own functions, as the weights themselves are made: in a
 * kernel's scope these hide the exact ones. */
static void cu_attention_put_functions(cuda_routine *r, int kind) {
  if (kind > (int)CUDA_TENSOR_BF16) return;
  cuda_print_needs(&r->print, "attention_exp");
  cuda_print_needs(&r->print, "attention_divide");
  base_putf(r->print.out,
            "  const auto op_EXP_F32 = [](float x) { return attention_exp<%d>(x); };\n"
            "  const auto op_DIVIDE_F32 = [](float x, float y) { return attention_divide(x, y); };\n",
            kind);
}

/* --- the kernel --- */

/* The result, of type t, has the weights' rows first, or the values' columns. */
static void cu_attention_put_store(cuda_routine *r, base_dtype t, bool first, int64_t rows, int64_t width) {
  base_putf(r->print.out,
            "    [&](int at, int column, float sum) {\n      if (at >= %lld || column >= %lld) return;\n"
            "      ((%s *)out0)[(batch * %lld + %s) * %lld + %s] = ",
            (long long)rows, (long long)width, cuda_type(t), (long long)(first ? rows : width), first ? "at" : "column",
            (long long)(first ? width : rows), first ? "column" : "at");
  cuda_print_convert(&r->print, t, XLAC_F32, "sum");
  BASE_PUT(r->print.out, ";\n    }");
}

/* Rows' maxima and sums, where they are results. */
static void cu_attention_put_rows(cu_attention *x) {
  const ir_op *const rows[] = {x->of.most, x->of.sum};
  BASE_PUT(x->r->print.out, ",\n    [&](int at, float most, float total) {\n");
  for (uint32_t i = 0; i < 2 && ir_is_tuple(x->r->op->type); i++) {
    base_dtype t = (base_dtype)rows[i]->type->dtype;
    base_putf(x->r->print.out, "      ((%s *)out%u)[batch * %lld + at] = ", cuda_type(t), (unsigned)i + 1,
              (long long)x->rows);
    cuda_print_convert(&x->r->print, t, XLAC_F32, i ? "total" : "most");
    BASE_PUT(x->r->print.out, ";\n");
  }
  BASE_PUT(x->r->print.out, "    });\n");
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
  cuda_routine_head(r, r->op->n_operands, ir_is_tuple(r->op->type) ? 3 : 1);
  cu_attention_put_functions(r, x->kind);
  base_putf(out, "  __shared__ uint32_t keys[%lld], values[%lld];\n", at_a_time * (depth / word + 4),
            at_a_time * (width / word + 4));
  base_putf(out, "  const idx batch = blockIdx.x / %lld, row = blockIdx.x %% %lld * %d;\n", (long long)tiles,
            (long long)tiles, CU_ATTENTION_ROWS);
  base_putf(out, "  attention<%d, %s, %lld, %lld, %lld, %d, %d, %d>(keys, values, row, %lld, %lld, %lld, %lld,\n",
            x->kind, cuda_type(x->own), (long long)depth, (long long)width, at_a_time,
            cuda_tensor_along(&x->keys, x->own), cuda_tensor_along(&values, x->own),
            cu_attention_hides(r, between, false), (long long)x->rows, (long long)x->of.keys, (long long)x->depth,
            (long long)x->width);
  for (uint32_t i = 0; i < 3; i++) cuda_tensor_put_at(r, (uint32_t)x->operands[i]->u.number, sides[i], x->own);
  cu_attention_put_x(x, between);
  cu_attention_put_hidden(r, between, false, false, at_a_time);
  cu_attention_put_store(r, (base_dtype)x->of.out->type->dtype, x->of.side == 0, x->rows, x->width);
  cu_attention_put_rows(x);
}

static bool cu_attention_print(cuda_routine *r) {
  cu_attention x;
  cuda_between between = {.more = NULL};
  if (!cu_attention_of(r, &x) || !cuda_between_make(r, x.of.scores, x.of.x, x.rows, x.of.keys, &between)) return false;
  cu_attention_put(&x, &between);
  cuda_routine_close(r, x.kind == CU_ATTENTION_F32
                            ? "attention in one pass, a block for each 64 queries"
                            : "attention in one pass on tensor cores, a block for each 64 queries");
  return true;
}

/* --- products and sums of rows of what is computed again --- */

/* x of one or two products, a block for each 64 of its rows; or, where it is turned, of its columns. */
typedef struct cu_again {
  cuda_routine *r;
  const ir_op *root, *value; /* root: a product of x and `value`, or a sum of x's rows, and no value */
  ir_op *x;
  uint32_t n, side; /* side: which operand of the root x is */
  const ir_op *dots[2];
  cuda_dot_side left[2], right[2], values;
  base_dtype own;
  int kind;
  bool turned;
  int shared; /* which product's keys the values are, too, as in gradients: they are staged once; -1: none's */
  int64_t depth[2], width, at_a_time; /* depth, width: 0 of what there is not */
} cu_again;

static bool cu_again_has_type(const cu_again *x, const ir_op *dot) {
  base_dtype t = cu_attention_sum_type(dot);
  return (base_dtype)ir_operand_type(dot, 0)->dtype == x->own && (base_dtype)ir_operand_type(dot, 1)->dtype == x->own &&
         t == XLAC_F32 && (int)cuda_tensor_kind_of(x->r->source, dot, t) == x->kind;
}

/* Products' operands lie in memory; all products are of one type and size. */
static bool cu_again_has_products(cu_again *x) {
  IR_FOR_OPS(op, x->r->op->called[0]) {
    if (op->opcode != IR_OP_DOT || op == x->root) continue;
    if (x->n == 2) return false;
    x->dots[x->n] = op;
    x->own = (base_dtype)ir_operand_type(op, 0)->dtype;
    x->kind = (int)cuda_tensor_kind_of(x->r->source, op, cu_attention_sum_type(op));
    cuda_dot_sides(op, &x->left[x->n], &x->right[x->n]);
    x->depth[x->n] = x->left[x->n].contracting.count;
    bool plain = ir_operand(op, 0)->opcode == IR_OP_PARAMETER && ir_operand(op, 1)->opcode == IR_OP_PARAMETER;
    if (!plain || x->depth[x->n] < 1 || x->depth[x->n] > CU_ATTENTION_WIDE) return false;
    x->n++;
  }
  for (uint32_t i = 0; i < x->n; i++)
    if (!cu_again_has_type(x, x->dots[i]) || x->left[i].batch.count != x->left[0].batch.count ||
        x->left[i].free.count != x->left[0].free.count || x->right[i].free.count != x->right[0].free.count)
      return false;
  return x->n > 0 && x->left[0].free.count <= CU_ATTENTION_MOST && x->right[0].free.count <= CU_ATTENTION_MOST &&
         x->kind < (int)CUDA_TENSOR_S8 && x->left[0].free.count >= CU_ATTENTION_LEAST &&
         x->right[0].free.count >= CU_ATTENTION_LEAST;
}

static bool cu_again_has_sums(cu_again *x) {
  base_dtype from = (base_dtype)x->x->type->dtype, to = (base_dtype)x->root->type->dtype;
  return fusion_row_length(x->root) == x->right[0].free.count && base_dtype_is_float(from) &&
         cuda_sum_type(from) == XLAC_F32 && cuda_sum_type(to) == XLAC_F32;
}

/* x lies as the products do: batches, rows, columns. */
static bool cu_again_has_values(cu_again *x) {
  cuda_dot_side sides[2];
  int64_t rows = x->left[0].free.count, columns = x->right[0].free.count;
  cuda_dot_sides(x->root, &sides[0], &sides[1]);
  const cuda_dot_side *own = &sides[x->side];
  x->values = cu_attention_turned(&sides[1 - x->side]);
  x->value = ir_operand(x->root, 1 - x->side);
  x->width = x->values.contracting.count;
  x->turned = !cu_attention_goes_by(&own->contracting, columns, 1);
  const cuda_dot_role *of_rows = x->turned ? &own->contracting : &own->free;
  const cuda_dot_role *of_columns = x->turned ? &own->free : &own->contracting;
  return x->value->opcode == IR_OP_PARAMETER && cu_again_has_type(x, x->root) &&
         cu_attention_goes_by(of_rows, rows, columns) && cu_attention_goes_by(of_columns, columns, 1) &&
         cu_attention_goes_by(&own->batch, x->left[0].batch.count, rows * columns) && x->width > 0 &&
         x->width <= CU_ATTENTION_WIDE;
}

static bool cu_again_has_room(cu_again *x) {
  int64_t deep = cu_attention_padded(x->depth[0]) + cu_attention_padded(x->depth[1]);
  x->at_a_time =
      cu_attention_at_a_time(x->n == 2 ? 32 : 64, deep, cu_attention_padded(x->width), x->n, base_dtype_bytes(x->own));
  return x->at_a_time > 0;
}

static bool cu_again_same_role(const cuda_dot_role *a, const cuda_dot_role *b) {
  bool same = a->n == b->n;
  for (uint32_t i = 0; same && i < a->n; i++) same = a->strides[i] == b->strides[i] && a->extents[i] == b->extents[i];
  return same;
}

static int cu_again_find_shared(const cu_again *x) {
  const cuda_dot_side *keys = x->turned ? x->left : x->right, *values = &x->values;
  for (uint32_t i = 0; x->value && i < x->n; i++)
    if (ir_operand(x->dots[i], x->turned ? 0 : 1) == x->value && cu_again_same_role(&keys[i].batch, &values->batch) &&
        cu_again_same_role(&keys[i].free, &values->free) &&
        cu_again_same_role(&keys[i].contracting, &values->contracting))
      return (int)i;
  return -1;
}

static bool cu_again_of(cuda_routine *r, cu_again *x) {
  *x = (cu_again){.r = r, .root = ir_root(r->op->called[0])};
  bool dot = x->root->opcode == IR_OP_DOT;
  if (!dot && fusion_row_length(x->root) == 0) return false;
  x->side = dot && ir_operand(x->root, 0)->opcode == IR_OP_PARAMETER;
  x->x = ir_operand(x->root, x->side);
  if (!cu_again_has_products(x) || x->x->type->count != x->dots[0]->type->count) return false;
  if (!(dot ? cu_again_has_values(x) : cu_again_has_sums(x)) || !cu_again_has_room(x)) return false;
  x->shared = cu_again_find_shared(x);
  return true;
}

static void cu_again_put_operand(cu_again *x, uint32_t i, bool left) {
  const ir_op *operand = ir_operand(x->dots[i], left ? 0 : 1);
  cuda_tensor_put_at(x->r, (uint32_t)operand->u.number, left ? &x->left[i] : &x->right[i], x->own);
}

/* What x's elements are combined by, or where the values lie. */
static void cu_again_put_values(cu_again *x) {
  if (x->value) {
    cuda_tensor_put_at(x->r, (uint32_t)x->value->u.number, &x->values, x->own);
    return;
  }
  BASE_PUT(x->r->print.out, "    [&](float a, float b) { return ");
  cuda_print_combine(&x->r->print, scalar_code_of((ir_opcode)fusion_reduction(x->root)->opcode), XLAC_F32, "a", "b");
  BASE_PUT(x->r->print.out, "; },\n");
}

static void cu_again_put_x(cu_again *x, const cuda_between *between) {
  char value[24];
  base_putf(x->r->print.out, "    [&](int %s, int %s, float sum, float sum1) -> float {\n", x->turned ? "column" : "at",
            x->turned ? "at" : "column");
  cuda_between_put(x->r, between, XLAC_F32, value);
  BASE_PUT(x->r->print.out, "      return ");
  cuda_print_convert(&x->r->print, XLAC_F32, (base_dtype)x->x->type->dtype, value);
  BASE_PUT(x->r->print.out, ";\n    },\n");
}

static void cu_again_put_call(cu_again *x, const cuda_between *between, int64_t rows, int64_t all) {
  const cuda_dot_side *keys = x->turned ? x->left : x->right;
  int lies = x->value ? cuda_tensor_along(&x->values, x->own) : 0;
  bool most = !x->value && fusion_reduction(x->root)->opcode == IR_OP_MAXIMUM;
  base_putf(x->r->print.out, "  recomputed<%d, %s, %lld, %lld, %lld, %lld, %d, %d, %d, %d>(", x->kind,
            cuda_type(x->own), (long long)cu_attention_padded(x->depth[0]), (long long)cu_attention_padded(x->depth[1]),
            (long long)cu_attention_padded(x->width), (long long)x->at_a_time, cuda_tensor_along(&keys[0], x->own),
            x->n == 2 ? cuda_tensor_along(&keys[1], x->own) : 0, x->shared < 0 ? lies : CU_AGAIN_SHARED,
            x->value ? cu_attention_hides(x->r, between, true) : 0);
  base_putf(x->r->print.out, "keys, others, %s, row, %lld, %lld, %lld, %lld, %lld, %s,\n",
            x->shared < 0    ? "values"
            : x->shared == 0 ? "keys"
                             : "others",
            (long long)rows, (long long)all, (long long)x->depth[0], (long long)x->depth[1], (long long)x->width,
            most ? "__int_as_float(0xff800000)" : "0.0f");
}

static void cu_again_put(cu_again *x, const cuda_between *between) {
  cuda_routine *r = x->r;
  int64_t rows = x->left[0].free.count, all = x->right[0].free.count, bytes = base_dtype_bytes(x->own);
  int64_t own = x->turned ? all : rows, tiles = (own + CU_ATTENTION_ROWS - 1) / CU_ATTENTION_ROWS;
  const int64_t terms[] = {x->depth[0], x->depth[1], x->width};
  const char *const names[] = {"keys", "others", "values"};
  cuda_print_needs(&r->print, "recomputed");
  r->launch->by = "recomputed";
  r->launch->block = 2 * CU_ATTENTION_ROWS;
  r->launch->grid = tiles * x->left[0].batch.count;
  cuda_routine_head(r, r->op->n_operands, 1);
  cu_attention_put_functions(r, x->kind);
  for (uint32_t i = 0; i < 2u + (x->shared < 0); i++)
    base_putf(r->print.out, "  __shared__ uint32_t %s[%lld];\n", names[i],
              (long long)(x->at_a_time * (cu_attention_padded(terms[i]) * bytes / 4 + 4)));
  base_putf(r->print.out, "  const idx batch = blockIdx.x / %lld, row = blockIdx.x %% %lld * %d;\n", (long long)tiles,
            (long long)tiles, CU_ATTENTION_ROWS);
  cu_again_put_call(x, between, own, x->turned ? rows : all);
  for (uint32_t i = 0; i < x->n; i++) {
    cu_again_put_operand(x, i, !x->turned);
    cu_again_put_operand(x, i, x->turned);
  }
  if (x->n == 1) BASE_PUT(r->print.out, "    0, 0,\n");
  if (x->shared < 0)
    cu_again_put_values(x);
  else
    BASE_PUT(r->print.out, "    0,\n"); /* they are staged as keys */
  cu_again_put_x(x, between);
  cu_attention_put_hidden(r, between, true, x->turned, x->at_a_time);
  cu_attention_put_store(r, (base_dtype)x->root->type->dtype, x->side == 0, own, x->value ? x->width : 1);
  BASE_PUT(r->print.out, ");\n");
}

static bool cu_again_print(cuda_routine *r) {
  cu_again x;
  if (!cu_again_of(r, &x)) return false;
  cuda_between between = {.more = x.n == 2 ? x.dots[1] : NULL};
  if (!cuda_between_make(r, x.dots[0], x.x, x.left[0].free.count, x.right[0].free.count, &between)) return false;
  cu_again_put(&x, &between);
  cuda_routine_close(r, x.value ? "a product of scores computed again on tensor cores, a block for each 64 rows"
                                : "sums of scores computed again on tensor cores, a block for each 64 rows");
  return true;
}

bool cuda_print_fusion(cuda_routine *r) {
  return r->op->n_called == 1 && (cu_attention_print(r) || cu_again_print(r) || cuda_print_fused_product(r));
}
