/* The loop IR: an iteration space, loads by affine index, a scalar body in SSA form, stores. Every fusion becomes a
 * kernel, and every backend consumes kernels. A kernel is plain data in its owner's arena, immutable once made; any
 * number of threads may read it.
 *
 *   kernel [4,3] from 2 inputs
 *   v0 = f32[] load in0[0 + 3*i0 + 1*i1]
 *   v1 = f32[] load in1[0 + 1*i1]
 *   v2 = f32[] add(v0, v1)
 *   v3 = f32[] constant(0)
 *   over [4,(3),1]
 *   store out0[0 + 3*i0 + 1*i1] v2
 *   store out1[0 + 1*i0] v2 by add from v3
 *
 * The lines of constants and ops are HLO's, on scalars. `index[...]` is the index itself as a number. Edges are boxes
 * of iterations: a value may be there in some iterations only, and a pick takes one of two values by where it is. A
 * load may begin at a place that is computed, `up to` the last that there is; where the place is the iteration's own,
 * it is a gather:
 *
 *   v0 = s32[] load in1[0]
 *   v1 = f32[] load in0[-2 + 1*i1 + 8*v0 up to 7] where 2 <= i1 < 10
 *   v2 = f32[] constant(0)
 *   v3 = f32[] pick(v1, v2) if 2 <= i1 < 10
 *
 * A scan is the combination of all values up to an iteration's own, in their order along a dimension:
 *
 *   v4 = f32[] scan(v3, v2) by add along [0 + 1*i1]
 */
#ifndef XLAC_KERNEL_KERNEL_H
#define XLAC_KERNEL_KERNEL_H

#include "../scalar/program.h"

enum {
  KERNEL_MAX_RANK = 12,
  KERNEL_MAX_STORES = 8,
  KERNEL_MAX_VALUES = 1 << 14,
  KERNEL_MAX_CARRY = 2048 /* iterations inside of a scan's dimension: results so far that a scan keeps at a time */
};

typedef enum kernel_kind {
  KERNEL_LOAD,     /* an element of an input */
  KERNEL_COUNT_UP, /* the index itself as a number of dtype (iota) */
  KERNEL_CONSTANT,
  KERNEL_PICK, /* in[0] where the iteration is in the box `pick`, in[1] elsewhere */
  KERNEL_SCAN, /* in[1] combined with the values of in[0] from the first to this one along a dimension */
  KERNEL_OP    /* an op on values */
} kernel_kind;

/* offset + sum of strides[d] * i_d, in elements. */
typedef struct kernel_index {
  int64_t offset, strides[KERNEL_MAX_RANK];
} kernel_index;

/* The iterations with from[d] <= i_d < to[d] in every dimension. */
typedef struct kernel_box {
  int64_t from[KERNEL_MAX_RANK], to[KERNEL_MAX_RANK];
} kernel_box;

/* A computed part of a load's place: stride times a value, which is clamped to 0..last. */
typedef struct kernel_base {
  int64_t stride, last;
} kernel_base;

/* One value of the scalar body. in[] holds numbers of earlier values, n_in of them. */
typedef struct kernel_value {
  uint8_t kind, dtype, n_in;
  uint32_t in[3];  /* OP, PICK, SCAN: earlier values; LOAD: integers that say where, see kernel_is_gather */
  uint32_t buffer; /* LOAD: number of the input */
  const kernel_index
      *index; /* LOAD, COUNT_UP; SCAN: the place in its order, with a stride of 1 or -1 along one dimension */
  const kernel_base *bases; /* LOAD: one for each of in */
  bool flat;     /* LOAD, in native code: all its places are digits of the iteration's number (native/flatten.c) ... */
  int64_t rises; /* ... and the first is the number over this; 0: the rest of that */
  const kernel_box *box;  /* the iterations in which it is defined; NULL: all */
  const kernel_box *pick; /* PICK */
  const void *data;       /* CONSTANT: one element */
  scalar_op op;           /* OP; SCAN: combines two values */
  uint32_t origin;        /* OP: id of the op of HLO that it is, for explanations alone */
} kernel_value;

/* One output of the kernel. */
typedef struct kernel_store {
  uint32_t value;
  uint32_t buffer; /* number of the output */
  kernel_index index;
  scalar_code by; /* combines two values: the store reduces; SCALAR_NONE: each iteration has an element of its own */
  uint32_t init;  /* where it reduces: a value that is the same at every iteration */
} kernel_store;

/* What all stores that reduce share: the kernel's dimensions are then outer kept ones, reduced ones, inner kept ones;
 * each number of iterations is theirs. An element of such a result, at outer index o and inner index i, is at
 * o * inner + i of the output: the combination of init and of the values at all reduced indexes, in an order that
 * depends on the extents alone. Other stores have an element for every iteration, reduced ones too. */
typedef struct kernel_reduction {
  int64_t outer, reduced, inner;
} kernel_reduction;

/* Plain data in its owner's arena; indexes, boxes and constants that it points to live there too. Nothing of it is the
 * IR's. */
typedef struct kernel {
  uint32_t rank;
  int64_t extents[KERNEL_MAX_RANK], count; /* count: of iterations */
  uint32_t n_values, n_inputs, n_stores;
  const kernel_value *values; /* a value comes after those it uses */
  kernel_store *stores;
  const kernel_reduction *reduction; /* NULL: no store reduces */
} kernel;

/* Merges neighbouring dimensions that every index and box goes through as one, and drops those of extent 1. indexes
 * and boxes: all of the kernel's, changed in place. A box has every iteration of a dimension of extent 1. k->count is
 * left as it is. */
void kernel_collapse(kernel *k, uint32_t n, kernel_index *const *indexes, uint32_t n_boxes, kernel_box *const *boxes);
/* Whether `in`, or all of the kernel's iterations where that is NULL, has all iterations of b. */
bool kernel_box_has(const kernel *k, const kernel_box *in, const kernel_box *b);
/* The clamped value of type t at `from`, times the stride. */
int64_t kernel_base_at(const kernel_base *base, base_dtype t, const void *from);
/* The loop of value i, an op; false where it has none on the types of its operands. */
bool kernel_loop_of(const kernel *k, uint32_t i, scalar_loop *l);
/* Whether the index walks memory in the order of the iteration, without gaps: element number i at offset + i. */
bool kernel_is_dense(const kernel *k, const kernel_index *index);
/* The same element at every iteration. */
bool kernel_is_constant(const kernel *k, const kernel_index *index);
/* Into how many pieces the reduced range of each output is cut, so that few outputs keep many threads busy. It depends
 * on the extents alone. Where it is more than 1, a run needs room for that many partial results of every output. */
int64_t kernel_pieces(const kernel *k);
/* Bytes of partial results of all stores that reduce; 0 where nothing is cut. */
int64_t kernel_scratch_bytes(const kernel *k);
/* Bytes of the partial results of one store that reduces, rounded up to whole cache lines. */
int64_t kernel_partial_bytes(const kernel *k, const kernel_store *s);
/* The kernel's scans, which are all along one dimension and one way: iterations of all inside of that dimension
 * (inner), of it and all inside (span), and whether they go from its end. false where there are none. */
typedef struct kernel_scans {
  int64_t inner, span;
  bool back;
} kernel_scans;
bool kernel_find_scans(const kernel *k, kernel_scans *s);
/* Whether value i is the same at every iteration. Linear in the values before it, without memory: one flag each on the
 * stack, 16 KB at most. */
bool kernel_is_same(const kernel *k, uint32_t i);
/* Whether some place of v, a load, differs between iterations: then each element is found by itself. */
bool kernel_is_gather(const kernel *k, const kernel_value *v);
/* The least and the most that the index comes to over all iterations; false where that is not an int64_t, or where
 * there are none. Callers compare *most with what they know of the array. */
bool kernel_reach(const kernel *k, const kernel_index *index, int64_t *least, int64_t *most);
/* The least and greatest element that a load reads, over the iterations in which it is defined and all its offsets. */
bool kernel_load_reach(const kernel *k, const kernel_value *v, int64_t *least, int64_t *most);

/* print.c: the text above, and that of scalar programs. `out` notes a failure of memory. */
void kernel_put(base_text *out, const kernel *k);
void kernel_put_program(base_text *out, const scalar_program *p);
/* parse.c: reads it back, into `arena`, verified. Errors have line and column. */
XLAC_MUST_USE int kernel_parse(kernel **out, base_arena *arena, const char *text, size_t n, xlac_error *err);
/* verify.c: what must hold of every kernel, whatever made it; an error names the value. */
XLAC_MUST_USE int kernel_verify(const kernel *k, xlac_error *err);
/* The same, and where the fault is: in which value or store. */
typedef enum kernel_part { KERNEL_SPACE, KERNEL_VALUE, KERNEL_STORE, KERNEL_REDUCTION } kernel_part;
XLAC_MUST_USE int kernel_find_fault(const kernel *k, kernel_part *part, uint32_t *number, xlac_error *err);
/* eval.c: all iterations one after another, each op by the interpreter's loop on one lane: slow, and the reference for
 * backends. A reduction combines in the order of the iterations (narrow floats in f32). in_bytes and out_bytes are the
 * sizes of the arrays: what would be outside of one is an error. */
XLAC_MUST_USE int kernel_eval(const kernel *k, base_alloc alloc, const void *const *in, const int64_t *in_bytes,
                              void *const *out, const int64_t *out_bytes, xlac_error *err);
/* The same check alone: n_out is the number of outputs that there are. */
XLAC_MUST_USE int kernel_check_memory(const kernel *k, const int64_t *in_bytes, uint32_t n_out,
                                      const int64_t *out_bytes, xlac_error *err);

#endif
