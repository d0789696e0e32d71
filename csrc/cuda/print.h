/* Printing a kernel, inside: values as expressions, and the loops around them. */
#ifndef XLAC_CUDA_PRINT_H
#define XLAC_CUDA_PRINT_H

#include "source.h"

typedef struct cuda_print {
  cuda_source *s;
  const kernel *k;
  base_text *out;
  bool strange;       /* something has no form */
  uint32_t scan_from; /* unused where there are no scans */
} cuda_print;

/* --- print_type.c --- */
/* The type of an element as it lies in memory and in variables: floats of 16 bits and fewer are their bits. */
const char *cuda_type(base_dtype t);
/* "BF16": what names of functions in the prelude have behind them. */
const char *cuda_dtype_name(base_dtype t);
/* Floats that compute in f32. */
bool cuda_is_narrow_float(base_dtype t);
/* What values of type t are combined in: narrow floats in f32. */
base_dtype cuda_sum_type(base_dtype t);
/* Notes a function of the prelude; where there is none, the kernel is strange. */
void cuda_print_needs(cuda_print *x, const char *name);
/* `from`, an expression of type `source`, as one of type `to`: by base_convert's rules. */
void cuda_print_convert(cuda_print *x, base_dtype to, base_dtype source, const char *from);
/* The element at `data`. */
void cuda_print_constant(cuda_print *x, base_dtype t, const void *data);

/* --- print_value.c --- */
/* "const float v3 = ...;": the value at indexes i0, i1, ... Scans have variables "carry<i>". */
void cuda_print_value(cuda_print *x, uint32_t i);
/* The op on the operands that are given as expressions, of the types in `l`. */
void cuda_print_op(cuda_print *x, const scalar_op *op, const scalar_loop *l, const char *const *operands);
/* The combination of two expressions of type t by `code`. */
void cuda_print_combine(cuda_print *x, scalar_code code, base_dtype t, const char *a, const char *b);
/* "0 + 3*i0 + 1*i1" */
void cuda_print_index(cuda_print *x, const kernel_index *index, const char *type);

#endif
