/* Products of matrices by cuBLASLt, where it is found: what a dot op is told it. */
#ifndef XLAC_CUDA_PRODUCT_H
#define XLAC_CUDA_PRODUCT_H

#include "executable.h"

typedef struct cuda_product cuda_product;
struct cuda_run;

/* For a dot op. NULL: there is no cuBLASLt, it has no form for this op, or none is worth it; then a kernel does
 * it. Entered. */
cuda_product *cuda_product_make(cuda_executable *exe, const ir_op *dot);
/* Whether what is elementwise of the dot had better be computed with it, by xlac's kernel on tensor cores: there is no
 * such product of cuBLASLt's, or it has so few terms that writing and reading the product takes longer. Entered. */
bool cuda_product_gives_way(cuda_executable *exe, const ir_op *dot);
/* Has operands of a dot op transposed first, where the library has a form for it then, and not now, and that takes less
 * time than the kernel that is printed. Entered. */
XLAC_MUST_USE int cuda_product_arrange(cuda_executable *exe, ir_op *dot, bool *changed, xlac_error *err);
/* regroup.c: has operands and results moved instead of scores, where a program has these in another order than the
 * product makes or takes them. */
XLAC_MUST_USE int cuda_product_regroup(ir_module *m, ir_op *dot, bool *changed, xlac_error *err);
void cuda_product_destroy(cuda_executable *exe, cuda_product *p); /* entered; NULL is fine */
/* Memory that it needs while it runs. */
size_t cuda_product_scratch(const cuda_product *p);
/* Enqueues it: values are both operands, the result and the scratch memory, each at 16 bytes, as calls place them. */
XLAC_MUST_USE int cuda_product_run(struct cuda_run *run, const cuda_product *p, const cuda_address *values);
/* cuBLASLt's handle. Of a device that nobody uses any more, entered. */
void cuda_products_end(cuda_device *d);

#endif
