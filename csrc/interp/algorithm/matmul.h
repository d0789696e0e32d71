/* The one matrix product under dot, ragged-dot, scaled-dot and convolution. Operands are described by where their
 * elements lie, so that any dimension numbers need no copy but the packing that the kernel wants anyway.
 *
 * Every result is the sum over k in ascending order, in blocks of INTERP_MATMUL_BLOCK terms whose sums are added up in
 * turn; the order depends on nothing else. */
#ifndef XLAC_INTERP_ALGORITHM_MATMUL_H
#define XLAC_INTERP_ALGORITHM_MATMUL_H

#include "arrays.h"

enum { INTERP_MATMUL_BLOCK = 512 };

/* Where no element is: the product takes a zero there. */
#define INTERP_NOWHERE INT64_MIN

typedef struct interp_matmul interp_matmul;
struct interp_matmul {
  base_dtype dtype; /* F32, F64, S32, S64, C64 or C128: of both operands and the result */
  int64_t m, n, k;
  /* Element (i, p) of the left operand lies at left[left_m[i] + left_k[p]], (p, j) of the right at right[right_k[p] +
   * right_n[j]], (i, j) of the result at out[out_m[i] + out_n[j]]. */
  const void *left, *right;
  void *out;
  const int64_t *left_m, *left_k, *right_k, *right_n, *out_m, *out_n;
  /* For a left operand that is not so simple: the places of elements (i, p), p in [p0, p0 + count), or INTERP_NOWHERE.
   * NULL: by left_m and left_k. */
  void (*locate)(const void *locate_ctx, int64_t i, int64_t p0, int64_t count, int64_t *places);
  const void *locate_ctx;
  /* Packed operands, made by interp_matmul_begin and used by any number of runs of no larger m, n and k. */
  void *packed_left, *packed_right, *tile;
  int64_t *places;
};

XLAC_MUST_USE int interp_matmul_begin(interp_ctx *ctx, interp_matmul *mm);
XLAC_MUST_USE int interp_matmul_run(interp_ctx *ctx, const interp_matmul *mm);
void interp_matmul_end(interp_ctx *ctx, interp_matmul *mm);

/* The type in which products of these are computed and summed: XLA's, but f64 wherever an operand or the result is. */
base_dtype interp_product_type(base_dtype left, base_dtype right, base_dtype result);
/* Offsets of all index combinations of some dims, row-major: out[i] for i in [0, prod(dims)). Nonzero when the run was
 * interrupted. */
XLAC_MUST_USE int interp_offsets(interp_ctx *ctx, uint32_t rank, const int64_t *dims, const int64_t *strides,
                                 int64_t *out);
/* Multiples of `step`: out[i] = i * step for i < n. The same. */
XLAC_MUST_USE int interp_multiples(interp_ctx *ctx, int64_t n, int64_t step, int64_t *out);

#endif
