/* Kernels for ops that the plan leaves to the device: printed from the op itself. */
#ifndef XLAC_CUDA_ROUTINE_H
#define XLAC_CUDA_ROUTINE_H

#include "print.h"

/* Prints a kernel for op, whose parameters are the leaves of its operands, then those of its results. `scratch` is for
 * what is needed while that goes on. false, with the source as it was, where there is none. */
bool cuda_print_routine(cuda_source *s, const ir_op *op, base_arena *scratch, cuda_launch *out);

/* --- inside: a printer prints the kernel's body; false where it has no form --- */

typedef struct cuda_routine {
  cuda_source *source;
  cuda_print print; /* without a kernel */
  const ir_op *op;
  base_arena *scratch;
  cuda_launch *launch;
  uint32_t blocks; /* of a multiprocessor, for which there are to be registers; 0: as the compiler has it */
} cuda_routine;
typedef bool cuda_routine_printer(cuda_routine *r);

/* routine.c */
/* The loop IR's kernel as the body: NULL where there was no memory for it. */
bool cuda_routine_kernel(cuda_routine *r, const kernel *k);
/* "extern "C" ... {", with so many inputs and outputs, and what the launch says that there is besides, "scratch" and
 * "round"; and the same with n, the number of the thread, of `count`. */
void cuda_routine_head(cuda_routine *r, uint32_t n_in, uint32_t n_out);
void cuda_routine_open(cuda_routine *r, uint32_t n_in, uint32_t n_out, int64_t count);
void cuda_routine_close(cuda_routine *r, const char *how);
/* Row-major strides in elements. */
void cuda_routine_strides(const ir_type *t, int64_t *strides);
/* "const idx <name><d> = ...;" for each dimension of t, of element number n. */
void cuda_routine_indexes(cuda_routine *r, const ir_type *t, const char *name);

/* kernels.c: by the loop IR */
cuda_routine_printer cuda_print_move, cuda_print_concatenate, cuda_print_dynamic_slice, cuda_print_reduce;
/* scan.c: false for a window that is none, with the source as it was */
cuda_routine_printer cuda_print_scan;
/* body.c: by computations on scalars */
cuda_routine_printer cuda_print_reduce_body, cuda_print_reduce_window, cuda_print_select_and_scatter;
/* The op's only computation, where that is one on scalars; else, and without memory, NULL. */
const scalar_program *cuda_body_program(cuda_routine *r);
/* "const T <name>0 = <parameter 0>;" and so on, for parameters and all that is made of them. */
void cuda_body_put(cuda_print *x, const scalar_program *p, const char *name, char (*parameters)[64]);
/* sort.c, scatter.c */
cuda_routine_printer cuda_print_sort, cuda_print_topk, cuda_print_scatter;
/* Merging n numbers, level after level. A level needs "level", the place "p", the numbers so far "from" and the order
 * "less", and gives the number "self" and the place "at" that it goes to. */
uint32_t cuda_sort_levels(int64_t n);
void cuda_sort_put_merge(base_text *out, int64_t n);
/* conv.c, product.c */
cuda_routine_printer cuda_print_convolution, cuda_print_dot;
/* attention.c: of a fusion of fuse/attention.c's */
cuda_routine_printer cuda_print_fusion;
/* linalg.c, fft.c, rng.c */
cuda_routine_printer cuda_print_rng_bits, cuda_print_cholesky, cuda_print_triangular_solve, cuda_print_fft;
/* index.c */
cuda_routine_printer cuda_print_bitcast, cuda_print_gather, cuda_print_pad, cuda_print_dynamic_update_slice;

#endif
