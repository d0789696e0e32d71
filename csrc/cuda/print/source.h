/* CUDA C++ of kernels: what is printed, and the functions of the prelude that it calls.
 *
 * A source is written kernel after kernel by one thread, and then given as texts of some of them or all, which NVRTC
 * compiles without any header: a text's beginning declares the integer types, and the functions stand behind those that
 * they call. Kernels whose text is the same but for their name are one. */
#ifndef XLAC_CUDA_SOURCE_H
#define XLAC_CUDA_SOURCE_H

#include "../../base/file.h"
#include "../../kernel/kernel.h"

enum { CUDA_BLOCK_THREADS = 256, CUDA_SOURCE_KNOWN = 256 };
/* A macro that a text defines as 0 unless it is: blocks of a multiprocessor, in the bounds of kernels that name none
 * themselves; of others half as many where it isn't 0. compile.c defines it as 1 where one spills. */
#define CUDA_SOURCE_BLOCKS "BLOCKS"

/* The functions of prelude.def, by number. */
typedef enum cuda_function_number {
#define CUDA_FUNCTION(name, needs) CUDA_FUNCTION_##name,
#include "prelude.def"
  CUDA_FUNCTIONS
} cuda_function_number;

/* Some of them: a bit for each. */
typedef struct cuda_functions {
  uint64_t bits[(CUDA_FUNCTIONS + 63) / 64];
} cuda_functions;

/* A kernel that is whole. */
typedef struct cuda_source_kernel {
  size_t begin, end; /* of its text in the body */
  size_t name, more; /* in its text, where its name begins, and what stands behind that */
  uint32_t hash;     /* of the text, without the name */
  cuda_functions needed;
} cuda_source_kernel;
BASE_VEC(cuda_source_kernels, cuda_source_kernel);

typedef struct cuda_source {
  base_text body;
  uint32_t n_kernels;                /* that are printed, the last one of which may not be among `kernels` yet */
  int major;                         /* of the GPU's capability; 0: any */
  bool fast;                         /* numerics */
  cuda_functions needed;             /* since the last kernel was */
  uint16_t known[CUDA_SOURCE_KNOWN]; /* 1 + the number of a function whose name has that hash; 0: none was asked for */
  cuda_source_kernels kernels;
} cuda_source;
struct cuda_launch;

/* Empty. `alloc` must outlive it. */
void cuda_source_begin(cuda_source *s, base_alloc alloc);
void cuda_source_free(cuda_source *s);
/* As it was when it began, where no kernel was settled. */
void cuda_source_again(cuda_source *s);
/* Notes that the function of this name is called; false where there is none. */
bool cuda_source_needs(cuda_source *s, const char *name);
/* After each kernel that was printed, or that was to be and is not: the launch is told its number, which is that of an
 * earlier one where that has the same text. Memory that there is none of shows in s->body. */
void cuda_source_settle(cuda_source *s, struct cuda_launch *l);
/* The text of kernels with these numbers, to `out`, which notes a failure of memory. Any number of threads. */
void cuda_source_put(const cuda_source *s, const uint32_t *numbers, uint32_t n, base_text *out);
/* Of all functions. It takes longer than the sum of a unit's kernels, so callers keep it. */
base_sum cuda_source_functions_sum(void);
/* Behind `so_far`, which has the functions in it: of all that the text is made of, and quicker than making it. */
base_sum cuda_source_sum(const cuda_source *s, const uint32_t *numbers, uint32_t n, base_sum so_far);
/* About how long compiling the kernel takes: some hundredths of a millisecond each. */
size_t cuda_source_cost(const cuda_source *s, uint32_t number);

/* How a printed kernel is launched: its parameters are the addresses of inputs and outputs, in this order. */
typedef struct cuda_launch {
  uint32_t number; /* of the source's kernels: its name is "k" and the number */
  uint32_t block;  /* threads of a block */
  int64_t grid;    /* blocks; 0: there is nothing to do */
  uint32_t rounds; /* it is launched so often, with the number of the round as its last parameter; 0: once, without */
  int64_t scratch; /* bytes of memory of its own, the parameter behind the outputs; 0: none */
  bool changes;    /* it changes a part of its first operands, which first are copied to the results' memory */
  const char *how; /* for explanations: "a thread for each element"; static */
  const char *by;  /* and in profiles: "attention"; NULL: "kernel" */
} cuda_launch;

/* --- kernel.c --- */
/* Prints k behind what is there. False where it has no form in CUDA C++ (the caller has another way), and s is as it
 * was, but for functions that are noted. Memory that there is none of shows in s->body. */
bool cuda_print_kernel(cuda_source *s, const kernel *k, cuda_launch *out);

/* --- rows.c --- */
/* Kernels that may go through the same rows one after another, each a row at a time. Arrays have numbers, by which
 * their inputs and outputs are named. */
typedef struct cuda_rows_step {
  const kernel *k;
  const uint32_t *in, *out;
} cuda_rows_step;
typedef struct cuda_rows_array {
  bool kept; /* only these kernels know it: it needs no memory */
  /* rows.c's: */
  uint8_t place, dtype;
  bool written;
  uint32_t first, last; /* it is there before the steps first..last - 1 */
} cuda_rows_array;
typedef struct cuda_rows {
  int64_t rows;
  uint32_t n_steps, n_arrays;
  const cuda_rows_step *steps;
  cuda_rows_array *arrays; /* what is rows.c's is 0 at first */
} cuda_rows;
/* All of them as one kernel, whose parameters are the arrays that are not kept: it may say that some need memory after
 * all. False, and s as it was, where they are better or only done one by one: long rows that are few, or rows that are
 * read in another order than their own. */
bool cuda_print_rows(cuda_source *s, const cuda_rows *r, cuda_launch *out);

#endif
