/* The loop IR: an iteration space, loads by affine index, a scalar body in SSA form, stores. Every fusion becomes a kernel,
 * and every backend consumes kernels. A kernel is plain data in its owner's arena, immutable once made; any number of
 * threads may read it.
 *
 *   kernel f32[4,3] from in0 f32, in1 f32
 *   v0 f32 = load in0 [0 + 3*i0 + 1*i1]
 *   v1 f32 = load in1 [0 + 1*i1]
 *   v2 f32 = add v0, v1
 *   store out0 [0 + 3*i0 + 1*i1] v2
 */
#ifndef XLAC_KERNEL_KERNEL_H
#define XLAC_KERNEL_KERNEL_H

#include "../interp/loops.h"

enum { KERNEL_MAX_RANK = 12, KERNEL_MAX_STORES = 8 };

typedef enum kernel_kind {
  KERNEL_LOAD,     /* an element of an input */
  KERNEL_COUNT_UP, /* the index itself as a number of dtype (iota) */
  KERNEL_CONSTANT,
  KERNEL_OP /* an elementwise op on values: the loop of its row in ops.def */
} kernel_kind;

/* offset + sum of strides[d] * i_d, in elements. */
typedef struct kernel_index {
  int64_t offset, strides[KERNEL_MAX_RANK];
} kernel_index;

typedef struct kernel_value {
  uint8_t kind, dtype, n_in;
  uint32_t in[3];          /* OP: earlier values */
  uint32_t buffer;         /* LOAD: number of the input */
  const kernel_index *index; /* LOAD, COUNT_UP */
  const void *data;        /* CONSTANT: one element */
  const ir_op *op;         /* OP: for its attributes, and for explanations */
} kernel_value;

typedef struct kernel_store {
  uint32_t value;
  uint32_t buffer; /* number of the output */
  kernel_index index;
} kernel_store;

typedef struct kernel {
  uint32_t rank;
  int64_t extents[KERNEL_MAX_RANK], count; /* count: of iterations */
  uint32_t n_values, n_inputs, n_stores;
  const kernel_value *values; /* a value comes after those it uses */
  kernel_store stores[KERNEL_MAX_STORES];
} kernel;

/* Merges neighbouring dimensions that every index walks as one, and drops those of extent 1. indexes: all of the kernel's,
 * n of them, changed in place. */
void kernel_collapse(kernel *k, uint32_t n, kernel_index *const *indexes);
/* Whether the index walks memory in the order of the iteration, without gaps: element number i at offset + i. */
bool kernel_is_dense(const kernel *k, const kernel_index *index);
/* The same element at every iteration. */
bool kernel_is_constant(const kernel *k, const kernel_index *index);
/* The text above. false when out of memory. */
void kernel_put(base_text *out, const kernel *k);
/* What must hold of every kernel, whatever made it; an error names the value. */
XLAC_MUST_USE int kernel_verify(const kernel *k, xlac_error *err);

#endif
