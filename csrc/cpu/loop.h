/* Loops as lists of instructions: the small kernels of a loop's condition and body, each op on its few lanes one call
 * of a function on memory whose place is known before the first trip. What is no small kernel is run as a step. */
#ifndef XLAC_CPU_LOOP_H
#define XLAC_CPU_LOOP_H

#include "run.h"

typedef struct loop_inst loop_inst;
typedef void loop_fn(const loop_inst *i);
struct loop_inst {
  loop_fn *fn;
  const void *in[3];
  void *out;
  int64_t n;        /* lanes; of copies bytes */
  const void *data; /* interp_loop, or kernel_value */
  const kernel *of; /* gathers and indexes */
};

/* Where an operand is, before it is bound. */
typedef enum loop_area {
  LOOP_CONDITION, /* the buffer `at` of the condition */
  LOOP_BODY,
  LOOP_KEPT,    /* `at` bytes into what is written once, before the first trip */
  LOOP_SCRATCH, /* ... into what a kernel uses while it runs */
  LOOP_FIXED    /* in[] has the address already */
} loop_area;
typedef struct loop_cell {
  uint8_t area; /* loop_area */
  uint32_t at;
  int64_t offset; /* bytes */
} loop_cell;

typedef struct loop_code {
  loop_inst inst;
  uint8_t n_in;
  loop_cell in[3], out;
} loop_code;

/* Instructions, then a step, if any. */
typedef struct loop_part {
  uint32_t first, n;
  const plan_step *step;
} loop_part;

typedef struct cpu_loop {
  uint32_t n_codes, n_once; /* the first n_once are run before the first trip */
  const loop_code *codes;
  uint32_t n_parts, n_condition; /* the first n_condition parts are the condition's */
  const loop_part *parts;
  uint32_t kept_bytes, scratch_bytes;
  uint64_t work; /* of a trip's instructions */
  bool swaps;    /* some leaf of the state has two places in turn */
} cpu_loop;

/* --- loop.c: the loop of a PLAN_WHILE step, in arena --- */
XLAC_MUST_USE int cpu_loop_make(const plan_step *s, base_arena *arena, const cpu_loop **out, xlac_error *err);

/* --- loop_run.c: from the state at now[i] on, its next value alternately at next[i]. *swapped: the last value of what
 * doesn't stay is at next[i]. --- */
XLAC_MUST_USE int cpu_loop_run(cpu_run *run, const plan_step *s, char *condition_frame, char *body_frame,
                               void *const *now, void *const *next, bool *swapped);

/* --- loop_scalar.c: a function for a op on one lane that is faster than op's loop, or NULL --- */
loop_fn *cpu_loop_scalar(const ir_op *op, const interp_loop *l);
/* Copies of so many bytes. */
loop_fn *cpu_loop_copy(int64_t bytes);

#endif
