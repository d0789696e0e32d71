/* What a dot op says of its operands: which dimensions are one index. */
#ifndef XLAC_CUDA_DOT_H
#define XLAC_CUDA_DOT_H

#include "routine.h"

/* Dimensions of an operand that are one index, outermost first; neighbours that are one walk are one dimension. */
typedef struct cuda_dot_role {
  uint32_t n;
  int64_t count, extents[IR_MAX_RANK], strides[IR_MAX_RANK];
} cuda_dot_role;

typedef struct cuda_dot_side {
  cuda_dot_role batch, contracting, free;
} cuda_dot_side;

void cuda_dot_sides(const ir_op *op, cuda_dot_side *a, cuda_dot_side *b);
/* " + place" of the index `name`. */
void cuda_dot_put_role(cuda_routine *r, const cuda_dot_role *x, const char *name);

/* --- between.c: what is computed of each sum of a product, within a fusion --- */
typedef struct cuda_between {
  const ir_op *dot, *more; /* more: another product, of which there is "sum1"; or NULL */
  const kernel *k;         /* NULL: nothing */
  int64_t rows, columns;   /* of the product, of each of its batches */
} cuda_between;
/* x is the product, or elementwise of it, and of out->more. false: not as one kernel. `out` lives as long as
 * r->scratch. */
bool cuda_between_make(cuda_routine *r, const ir_op *dot, ir_op *x, int64_t rows, int64_t columns, cuda_between *out);
/* The values at row `at` and `column` of `batch`, of the `sum`, which has type t; `value` is x's name. */
void cuda_between_put(cuda_routine *r, const cuda_between *x, base_dtype t, char value[24]);

/* --- hidden.c --- */
/* Whether a mask hides x's scores wherever its rows and columns say so, and x then follows from the row alone, or, if
 * by_columns, from the column alone. Behind `head`, unless that is NULL, a lambda's end: true where it does so from
 * "at" and "column" to "last_at" and "last_column". */
bool cuda_between_put_hidden(cuda_routine *r, const cuda_between *x, bool by_columns, const char *head);

/* --- tensor.c: products on tensor cores --- */
/* The instructions that there are: numbers of tensor.cuh. */
typedef enum cuda_tensor_kind {
  CUDA_TENSOR_F16,
  CUDA_TENSOR_BF16,
  CUDA_TENSOR_TF32,
  CUDA_TENSOR_S8,
  CUDA_TENSOR_NONE
} cuda_tensor_kind;
/* Which of them may compute the dot op, whose sums are of type t. f32 is rounded to tf32 only where the program lets it
 * be: its numerics are fast and it asks for no more precision, or its algorithm says so. */
cuda_tensor_kind cuda_tensor_kind_of(const cuda_source *s, const ir_op *dot, base_dtype t);
/* What pieces of 16 bytes go along, of an operand: 1 terms, 2 rows, 0 neither. */
int cuda_tensor_along(const cuda_dot_side *x, base_dtype t);
/* "[&](int64_t at, int64_t term) { return &((const float *)in0)[...]; }": where an operand's elements lie. */
void cuda_tensor_put_at(cuda_routine *r, uint32_t number, const cuda_dot_side *x, base_dtype t);
/* false: not by tensor cores. */
bool cuda_print_tensor_product(cuda_routine *r);
/* With what is elementwise of it: a fusion of fuse/attention.c's. */
bool cuda_print_fused_product(cuda_routine *r);

#endif
