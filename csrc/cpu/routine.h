/* Ops with an algorithm of their own: what each opcode's file prepares when a program is planned, and runs on its
 * buffers. Adding one is a file, a row of cpu_routine_table (routine.c) and nothing else. */
#ifndef XLAC_CPU_ROUTINE_H
#define XLAC_CPU_ROUTINE_H

#include "run.h"

/* What is the same for all ops of a plan, and what has been made of them. */
typedef struct cpu_prepare_options {
  cpu_blas_lazy *blas; /* NULL: none */
  base_arena *arena;   /* of what is prepared */
  base_alloc alloc;    /* of `routines` */
  cpu_routines routines;
} cpu_prepare_options;

typedef struct cpu_routine_run {
  cpu_run *run; /* run->exe: pool, blas; run->ctx: errors, interrupts, called computations */
  const plan_step *step;
  const void *data;      /* as prepared */
  const void *const *in; /* a pointer a leaf of the operands, then of the result; row-major, dense */
  void *const *out;
  void *scratch;         /* scratch_bytes, aligned to PLAN_ALIGN; or NULL */
  void *const *pointers; /* of all of the program's buffers, for cpu_run_eval */
} cpu_routine_run;

/* Fills all of out. Several threads may run one step at a time. Results are the same for any number of threads. */
typedef int cpu_routine_fn(const cpu_routine_run *r);

typedef struct cpu_prepare_run {
  const cpu_prepare_options *options;
  const ir_op *op;
  base_arena *arena;    /* lives as long as the program */
  plan_routine *out;    /* name, scratch_bytes, in_place, work, calls */
  const void *data;     /* to be set: for the run */
  cpu_routine_fn *code; /* to be set; stays NULL where op is of no form that the file knows: the interpreter's then */
  const struct cpu_gemm *lines; /* where out->lines says that there are some: the product by lines */
  bool as_lines;                /* and the whole has the bits of that */
  xlac_error *err;
} cpu_prepare_run;

/* Fails only when out of memory. Shapes are static here, and types plain. */
typedef int cpu_prepare_fn(cpu_prepare_run *x);
extern cpu_prepare_fn *const cpu_routine_table[IR_OP_COUNT];

/* gemm/dot_lines.c: says in x->out->lines whether a product with these dimensions, as yet without types, can be made by
 * lines. Fails only when out of memory. */
XLAC_MUST_USE int cpu_prepare_lines(cpu_prepare_run *x, const struct cpu_gemm *dims);

/* --- one for each file of routines --- */
cpu_prepare_fn cpu_prepare_collective;
cpu_prepare_fn cpu_prepare_convolution;
cpu_prepare_fn cpu_prepare_reduce_window, cpu_prepare_select_and_scatter; /* window*.c */
cpu_prepare_fn cpu_prepare_window_body, cpu_prepare_select_body;          /* what those leave to them */
cpu_prepare_fn cpu_prepare_custom_call;
cpu_prepare_fn cpu_prepare_dot, cpu_prepare_ragged_dot;
cpu_prepare_fn cpu_prepare_fft;
cpu_prepare_fn cpu_prepare_rng_bit_generator, cpu_prepare_rng;
cpu_prepare_fn cpu_prepare_cholesky, cpu_prepare_triangular_solve;
cpu_prepare_fn cpu_prepare_rearrange, cpu_prepare_copy; /* rearrange.c */
cpu_prepare_fn cpu_prepare_bitcast, cpu_prepare_bitcast_convert;
cpu_prepare_fn cpu_prepare_number; /* numbers.c */
cpu_prepare_fn cpu_prepare_eval;   /* eval.c: what none of the others knows, by the interpreter */
cpu_prepare_fn cpu_prepare_next_after;
cpu_prepare_fn cpu_prepare_builtin_call; /* what cpu_prepare_custom_call leaves to it */
cpu_prepare_fn cpu_prepare_concatenate, cpu_prepare_pad, cpu_prepare_gather, cpu_prepare_scatter, cpu_prepare_sort;
cpu_prepare_fn cpu_prepare_scatter_body; /* what cpu_prepare_scatter leaves to it */
cpu_prepare_fn cpu_prepare_map, cpu_prepare_topk;
cpu_prepare_fn cpu_prepare_topk_call;  /* topk.c: the custom call TopK */
cpu_prepare_fn cpu_prepare_arg_reduce; /* never says no to what opt_arg_reduction_of knows: fusion counts on it */
cpu_prepare_fn cpu_prepare_reduce;     /* reduce_body.c: that, or by any computation */
cpu_prepare_fn cpu_prepare_dynamic_slice, cpu_prepare_dynamic_update_slice; /* dynamic_slice.c */

/* Whether the step is a collective whose members all wait for the same ones: then nobody is left waiting when all have
 * come to it. collective.c */
bool cpu_is_meeting(const cpu_executable *exe, const plan_step *s);
/* Of such a step: the first of the participants that all get the same as this one does; UINT32_MAX: each gets something
 * else. */
uint32_t cpu_meeting_shares(const cpu_executable *exe, const plan_step *s, uint32_t participant);

/* Whether something is registered for this run under the name of the step's custom call. builtin_call.c */
bool cpu_builtin_is_registered(const cpu_routine_run *r);

/* The same for the routines of a plan that is there: BAD_ARGUMENT where one is not as the plan has it. */
int cpu_prepare_plan(const plan_program *p, cpu_prepare_options *options, xlac_error *err);
/* plan_prepare_fn: ctx is a cpu_prepare_options. */
int cpu_prepare(void *ctx, const ir_op *op, plan_routine *out, xlac_error *err);

#endif
