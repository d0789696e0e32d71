/* Products of matrices, in tiles of 64 by 64 that a block of threads computes: 16 terms at a time lie in shared memory,
 * and each thread has 4 by 4 sums. Terms are added in their order. Any dimensions may be batch, contracting or free:
 * an index is taken apart into them. */
#include "../../interp/algorithm/matmul.h"
#include "dot.h"

enum { CU_DOT_TILE = 64, CU_DOT_DEPTH = 16, CU_DOT_STRIPE = CU_DOT_TILE / 16 };

/* 64 rows of 16 terms to shared memory: neighbouring threads read neighbours. */
static void cu_dot_put_fetch(cuda_routine *r, const char *shared, uint32_t number, const cuda_dot_side *x,
                             base_dtype own, base_dtype t, const char *first) {
  const char *c = cuda_type(own);
  bool along = x->contracting.n && x->contracting.strides[x->contracting.n - 1] == 1;
  base_putf(r->print.out, "  for (int e = threadIdx.x; e < %d; e += 256) {\n", CU_DOT_TILE * CU_DOT_DEPTH);
  base_putf(r->print.out, along ? "  const int i = e / %d, j = e %% %d;\n" : "  const int j = e / %d, i = e %% %d;\n",
            along ? CU_DOT_DEPTH : CU_DOT_TILE, along ? CU_DOT_DEPTH : CU_DOT_TILE);
  base_putf(r->print.out, "  const idx at = %s + i, term = from + j;\n  %s taken = {};\n", first, c);
  base_putf(r->print.out, "  if (at < %lld && term < %lld) taken = ((const %s *)in%u)[0", (long long)x->free.count,
            (long long)x->contracting.count, c, (unsigned)number);
  cuda_dot_put_role(r, &x->batch, "batch");
  cuda_dot_put_role(r, &x->free, "at");
  cuda_dot_put_role(r, &x->contracting, "term");
  base_putf(r->print.out, "];\n  %s[j][i] = ", shared);
  cuda_print_convert(&r->print, t, own, "taken");
  BASE_PUT(r->print.out, ";\n  }\n");
}

static void cu_dot_put_sums(cuda_routine *r, base_dtype t) {
  base_putf(r->print.out,
            "  for (int j = 0; j < %d; j++)\n  for (int y = 0; y < %d; y++)\n  for (int x = 0; x < %d; x++) {\n",
            CU_DOT_DEPTH, CU_DOT_STRIPE, CU_DOT_STRIPE);
  base_putf(r->print.out, "  const %s product = ", cuda_type(t));
  cuda_print_combine(&r->print, SCALAR_MULTIPLY, t, "a[j][ty + 16 * y]", "b[j][tx + 16 * x]");
  BASE_PUT(r->print.out, ";\n  sum[y][x] = ");
  cuda_print_combine(&r->print, SCALAR_ADD, t, "sum[y][x]", "product");
  BASE_PUT(r->print.out, ";\n  }\n");
}

static void cu_dot_put_stores(cuda_routine *r, const cuda_dot_side *a, const cuda_dot_side *b, base_dtype t) {
  base_dtype result = (base_dtype)r->op->type->dtype;
  base_putf(r->print.out, "  for (int y = 0; y < %d; y++)\n  for (int x = 0; x < %d; x++) {\n", CU_DOT_STRIPE,
            CU_DOT_STRIPE);
  BASE_PUT(r->print.out, "  const idx row = rows + ty + 16 * y, column = columns + tx + 16 * x;\n");
  base_putf(r->print.out, "  if (row < %lld && column < %lld)\n", (long long)a->free.count, (long long)b->free.count);
  base_putf(r->print.out, "  ((%s *)out0)[(batch * %lld + row) * %lld + column] = ", cuda_type(result),
            (long long)a->free.count, (long long)b->free.count);
  cuda_print_convert(&r->print, result, t, "sum[y][x]");
  BASE_PUT(r->print.out, ";\n  }\n");
}

static void cu_dot_put(cuda_routine *r, const cuda_dot_side *a, const cuda_dot_side *b, base_dtype t) {
  const char *c = cuda_type(t);
  int64_t down = (a->free.count + CU_DOT_TILE - 1) / CU_DOT_TILE,
          across = (b->free.count + CU_DOT_TILE - 1) / CU_DOT_TILE;
  cuda_routine_head(r, 2, 1);
  base_putf(r->print.out, "  __shared__ %s a[%d][%d], b[%d][%d];\n  %s sum[%d][%d] = {};\n", c, CU_DOT_DEPTH,
            CU_DOT_TILE + 1, CU_DOT_DEPTH, CU_DOT_TILE + 1, c, CU_DOT_STRIPE, CU_DOT_STRIPE);
  BASE_PUT(r->print.out, "  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;\n");
  base_putf(r->print.out, "  const idx tile = blockIdx.x, batch = tile / %lld, rows = tile / %lld %% %lld * %d, ",
            (long long)(down * across), (long long)across, (long long)down, CU_DOT_TILE);
  base_putf(r->print.out, "columns = tile %% %lld * %d;\n", (long long)across, CU_DOT_TILE);
  base_putf(r->print.out, "  for (idx from = 0; from < %lld; from += %d) {\n", (long long)a->contracting.count,
            CU_DOT_DEPTH);
  cu_dot_put_fetch(r, "a", 0, a, (base_dtype)ir_operand_type(r->op, 0)->dtype, t, "rows");
  cu_dot_put_fetch(r, "b", 1, b, (base_dtype)ir_operand_type(r->op, 1)->dtype, t, "columns");
  BASE_PUT(r->print.out, "  __syncthreads();\n");
  cu_dot_put_sums(r, t);
  BASE_PUT(r->print.out, "  __syncthreads();\n  }\n");
  cu_dot_put_stores(r, a, b, t);
  r->launch->grid = down * across * a->batch.count;
  cuda_routine_close(r, "a block for each tile of 64 by 64 results");
}

bool cuda_print_dot(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *x = ir_operand_type(op, 0), *y = ir_operand_type(op, 1);
  cuda_dot_side a, b;
  if (op->n_operands != 2) return false;
  base_dtype t =
      cuda_sum_type(interp_product_type((base_dtype)x->dtype, (base_dtype)y->dtype, (base_dtype)op->type->dtype));
  cuda_dot_sides(op, &a, &b);
  if (cuda_print_tensor_product(r)) return true;
  if (base_dtype_is_complex(t)) cuda_print_needs(&r->print, cuda_type(t));
  cu_dot_put(r, &a, &b, t);
  return true;
}
