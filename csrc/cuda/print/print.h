/* Printing a kernel, inside: values as expressions, and the loops around them. */
#ifndef XLAC_CUDA_PRINT_H
#define XLAC_CUDA_PRINT_H

#include "source.h"

/* Where threads of a kernel of rows have an array (rows.c). */
typedef enum cuda_place {
  CUDA_NOWHERE,
  CUDA_IN_MEMORY, /* all rows have the same elements */
  CUDA_IN_PARTS,  /* in registers, a part of the row: "h<array>[j]" */
  CUDA_AS_ONE     /* in a register, one element for the row: "r<array>" */
} cuda_place;
/* A step of such a kernel. */
typedef struct cuda_held {
  const uint32_t *in, *out; /* arrays, by buffer */
  const cuda_rows_array *arrays;
  int64_t length;       /* elements of a row in this step */
  int64_t lanes, width; /* threads of a row, rows of a block */
  bool passes;          /* parts are not in registers: each access is read where it is used, as "h<array>" */
} cuda_held;

typedef struct cuda_print {
  cuda_source *s;
  const kernel *k;
  base_text *out;
  bool strange;   /* something has no form */
  uint32_t pack;  /* iterations of a thread that are one after another along the last dimension; 0 is 1 */
  uint32_t packs; /* of a thread, that are loaded before the first of them is used, as "p<i>[w]"; 0 is 1 */
  bool loaded;    /* they are */
  uint32_t
      given; /* 1 + the first input that is not in memory: its element is "given", the next one's "given1"; 0: none */
  const cuda_held *held; /* of a step whose rows are in registers; NULL: of others */
  uint32_t across;       /* 1 + the dimension along which some loads go through memory; 0: none, or not by tiles */
} cuda_print;

/* --- type.c --- */
/* The type of an element as stored in memory and in variables: floats of 16 bits and fewer are their bits. */
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

/* --- kernel.c --- */
/* Whether stores are numbered as their buffers are. */
bool cuda_print_is_plain(const kernel *k);
/* Whether all places and numbers fit in 32 bits. */
bool cuda_print_is_small(const kernel *k);
/* "i0", "i1", ... of iteration number `n`, an expression of type idx. */
void cuda_print_indexes(cuda_print *x, const char *n); /* of a step that is held, of "row" and "step" */
void cuda_print_zero_indexes(cuda_print *x);
/* "const idx n = ...": the thread's number; others than the first `count` times `each` have nothing to do. */
void cuda_print_guard(cuda_print *x, int64_t count, uint32_t each);

/* --- value.c --- */
/* "const float v3 = ...;": the value at indexes i0, i1, ... Scans have variables "carry<i>". */
void cuda_print_value(cuda_print *x, uint32_t i);
/* The op on the operands that are given as expressions, of the types in `l`. */
void cuda_print_op(cuda_print *x, const scalar_op *op, const scalar_loop *l, const char *const *operands);
/* An expression's bits as a number that is ordered as IEEE 754's total order, in the upper bits of 64. */
void cuda_print_total(cuda_print *x, base_dtype t, const char *operand);
/* The combination of two expressions of type t by `code`. */
void cuda_print_combine(cuda_print *x, scalar_code code, base_dtype t, const char *a, const char *b);
/* --- pack.c --- */
/* Sets x->pack: as many iterations as give accesses of 16 bytes. */
void cuda_print_choose_pack(cuda_print *x);
/* Whether value number i is loaded with its neighbours, as "p<i>". */
bool cuda_print_is_packed(const cuda_print *x, uint32_t i);
/* Whether the iteration is in the box, as a condition. */
void cuda_print_box(cuda_print *x, const kernel_box *box);
/* Sets x->packs, where a thread had better have several, and declares them. */
void cuda_print_choose_packs(cuda_print *x);
/* The indexes, values and stores of iteration number `n`, an expression of type idx, and of those that are one with it;
 * behind each of them what `each` prints, which may be NULL. `u` is its number among them. Of several packs, number w
 * is loaded, and nothing else, until x->loaded. */
void cuda_print_iterations(cuda_print *x, const char *n, void (*each)(cuda_print *x));

/* All values and stores at the indexes that there are. */
void cuda_print_body(cuda_print *x, void (*each)(cuda_print *x));

/* --- tile.c --- */
/* Sets x->across, and then no pack, where loads go across the stores' order. */
void cuda_print_choose_tile(cuda_print *x);
/* Whether value number i comes by way of shared memory, as "t<i>[t][r]". */
bool cuda_print_is_tiled(const cuda_print *x, uint32_t i);
/* The kernel, tile by tile: how many there are, a block for each. */
int64_t cuda_print_tiles(cuda_print *x);

/* --- reduce.c --- */
/* In a step that is held: "sum<i>" of each store that reduces; what each of the thread's iterations adds; and the row's
 * results, for each of its threads. */
void cuda_print_held_sums(cuda_print *x);
void cuda_print_held_add(cuda_print *x);
void cuda_print_held_results(cuda_print *x);
/* The kernel's reduction, however it is shared out. */
void cuda_print_reduction(cuda_print *x, cuda_launch *l);
/* What it needs besides inputs and outputs: to be known before the parameters are printed. */
void cuda_print_reduction_plan(cuda_print *x, cuda_launch *l);

/* --- rows.c --- */
/* Behind "r<array>" of output number i: its memory, where it has some. */
void cuda_print_held_one(cuda_print *x, uint32_t i, base_dtype t);

/* "0 + 3*i0 + 1*i1" */
void cuda_print_index(cuda_print *x, const kernel_index *index, const char *type);

#endif
