/* Programs as lists of instructions: in small kernels each op on its few lanes is one call of a function. What is no
 * small kernel is run as a step. Loops bind addresses before the first trip, other programs as they go. */
#ifndef XLAC_CPU_LIST_H
#define XLAC_CPU_LIST_H

#include "group.h"

typedef struct list_inst list_inst;
typedef void list_fn(const list_inst *i);
struct list_inst {
  list_fn *fn;
  const void *in[3];
  void *out;
  int64_t n;        /* lanes; of copies bytes */
  const void *data; /* interp_loop, or kernel_value */
  const kernel *of; /* gathers and indexes */
};

/* Where an operand is, before it is bound. */
typedef enum list_area {
  LIST_BUFFER,  /* the program's buffer `at` */
  LIST_KEPT,    /* `at` bytes into what is written once, before the first trip of a loop */
  LIST_SCRATCH, /* ... into what a kernel uses while it runs */
  LIST_FIXED    /* in[] has the address already */
} list_area;
typedef struct list_cell {
  uint8_t area; /* list_area */
  uint32_t at;
  int64_t offset; /* bytes */
} list_cell;

typedef struct list_code {
  list_inst inst;
  uint8_t n_in;
  list_cell in[3], out;
} list_code;

/* Instructions, then a step or a group of steps, if any. */
typedef struct list_part {
  uint32_t first, n;
  const plan_step *step;
  const cpu_group *group;
} list_part;

typedef struct cpu_list {
  uint32_t n_codes, n_once; /* the first n_once are run before the first trip */
  const list_code *codes;
  uint32_t n_parts;
  const list_part *parts;
  uint32_t kept_bytes, scratch_bytes;
  uint64_t work; /* of all instructions */
} cpu_list;

/* --- list.c: of p, whose kernels and nested programs are ready, in arena. A loop's body keeps what is the same at each
 * trip. --- */
XLAC_MUST_USE int cpu_list_make(const plan_program *p, bool body, base_arena *arena, const cpu_list **out,
                                xlac_error *err);

/* --- list_run.c --- */
/* p, which is no loop's body, once, on its buffers. */
XLAC_MUST_USE int cpu_list_run(cpu_run *run, const plan_program *p, void *const *pointers);
/* Of its parts those from `first` on and before `last`. */
XLAC_MUST_USE int cpu_list_run_parts(cpu_run *run, const plan_program *p, void *const *pointers, uint32_t first,
                                     uint32_t last);
/* The loop s from the state at now[i] on, its next value alternately at next[i]. *swapped: the last value is at next.
 */
XLAC_MUST_USE int cpu_loop_run(cpu_run *run, const plan_step *s, char *condition_frame, char *body_frame,
                               void *const *now, void *const *next, bool *swapped);

/* --- list_scalar.c: a function for op on one lane that is faster than op's loop, or NULL --- */
list_fn *cpu_list_scalar(const ir_op *op, const interp_loop *l);
/* Copies of so many bytes. */
list_fn *cpu_list_copy(int64_t bytes);

#endif
