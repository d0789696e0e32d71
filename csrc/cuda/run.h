/* Running a program, inside: what changes while it runs. */
#ifndef XLAC_CUDA_RUN_H
#define XLAC_CUDA_RUN_H

#include "graph.h"

/* One call, on one thread, entered. */
typedef struct cuda_run {
  const cuda_executable *exe;
  cuda_device *device;
  cuda_stream stream;
  interp_ctx ctx;   /* for interpreted steps, errors and interrupts */
  base_arena arena; /* of the host: tables of addresses */
  rt_tally tally;
  cuda_address scratch;       /* exe->scratch_bytes: conditions, and what a launch needs for itself */
  cuda_nodes *nodes;          /* where launches and copies are listed instead of enqueued; or NULL */
  uint32_t n_conditions;      /* of what is listed */
  uint32_t *stop;             /* nonzero ends loops of a graph; NULL: no graph has any */
  bool stopped;               /* the caller wanted no more */
  cuda_event *marks;          /* before each step of `marked`, and behind the last; NULL: nobody wants times */
  const plan_program *marked; /* the entry */
  bool meets;                 /* what other GPUs take part in may be in flight */
  uint64_t n_kernels, n_interpreted, n_loops, n_collectives;
} cuda_run;

/* --- run.c --- */
/* Enqueues p's steps, and waits where the host must know something. Addresses are of the GPU's memory, one a leaf. */
XLAC_MUST_USE int cuda_run_program(cuda_run *run, const plan_program *p, const cuda_address *arguments,
                                   const cuda_address *results, cuda_address frame);
/* The same of its steps from `from` on before `to`, whose buffers lie at these addresses. */
XLAC_MUST_USE int cuda_run_steps(cuda_run *run, const plan_program *p, uint32_t from, uint32_t to,
                                 const cuda_address *addresses);
/* Waits for what was enqueued; INTERRUPTED where the caller wants no more. */
XLAC_MUST_USE int cuda_run_wait(cuda_run *run);
/* Before copies to memory that is not pinned, which hold the thread up until they are done: waits for what other GPUs
 * take part in, as cuda_run_wait does, since they may never come. */
XLAC_MUST_USE int cuda_run_alone(cuda_run *run);
/* The same whatever happened before: err is NULL where that had an error. What others will not come to is given up. */
int cuda_run_settle(cuda_run *run, xlac_error *err);

/* --- profile.c --- */
/* From here on p's steps are timed. Whatever it returns, cuda_profile_end is to be called. */
XLAC_MUST_USE int cuda_profile_begin(cuda_run *run, const plan_program *p);
/* Before step number `step`, and behind the last; nothing where p isn't timed. */
XLAC_MUST_USE int cuda_profile_mark(cuda_run *run, const plan_program *p, uint32_t step);
/* JSON of a call that took so long, when its stream has been waited for. */
void cuda_profile_put(const cuda_run *run, const rt_trace *trace, double seconds);
void cuda_profile_end(cuda_run *run);

/* --- eval.c: on the host, with operands copied there and results back --- */
/* A step by the interpreter's evaluator. */
XLAC_MUST_USE int cuda_run_eval(cuda_run *run, const plan_program *p, const plan_step *s,
                                const cuda_address *addresses);
/* An async start without a program. */
XLAC_MUST_USE int cuda_run_eval_start(cuda_run *run, const plan_program *p, const plan_step *s,
                                      const cuda_address *addresses);
/* A kernel by the reference evaluator. */
XLAC_MUST_USE int cuda_run_host_kernel(cuda_run *run, const plan_program *p, const plan_step *s,
                                       const cuda_address *addresses);

#endif
