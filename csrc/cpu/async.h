/* Async chains at work: a start posts a task to its lane, updates let it go on, the done waits. */
#ifndef XLAC_CPU_ASYNC_H
#define XLAC_CPU_ASYNC_H

#include <pthread.h>

#include "run.h"

/* What compilation makes of a start. */
typedef struct cpu_start {
  rt_lane *lane;
  uint32_t number;        /* of the lane, among those of the executable */
  bool at_once;           /* by whoever starts it: small, or dependent on what was done before */
  bool needs_interpreter; /* some step is evaluated by it */
  const int64_t *bytes;   /* of a copy, by leaf; else NULL */
  uint8_t cut;            /* how updates share the work: cpu_cut */
} cpu_start;
typedef enum cpu_cut {
  CPU_CUT_NOT,  /* all of it is begun by the start */
  CPU_CUT_STEP, /* one step, whose ranges are shared out */
  CPU_CUT_LIST  /* the parts of its list are */
} cpu_cut;

/* In the first CPU_TASK_BYTES of a start's frame, from its start to its done. */
typedef struct cpu_task {
  rt_task base;
  const plan_step *start;
  const cpu_start *how;
  void *const
      *pointers;   /* of the program it runs; of that which started it where the interpreter evaluates what it wraps */
  cpu_run *parent; /* who started it, and waits for it */
  pthread_t owner; /* the parent's thread */
  struct cpu_task *before, *after; /* of the parent's */
  const plan_program *program;     /* that has the start */
  uint32_t serial;
  bool posted;
  int status;
  cpu_units ran;
  xlac_error err;
} cpu_task;
_Static_assert(sizeof(cpu_task) <= CPU_TASK_BYTES, "a task does not fit into its frame");

/* async_make.c: of step s of p, whose nested program is ready. Opens lanes as they are needed. */
XLAC_MUST_USE int cpu_start_make(cpu_executable *exe, const rt_build_options *options, const plan_program *p,
                                 const plan_step *s, const cpu_start **out, xlac_error *err);

XLAC_MUST_USE int cpu_async_start(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers);
XLAC_MUST_USE int cpu_async_update(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers);
XLAC_MUST_USE int cpu_async_done(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers);
/* Of the chain of s, in the present run's profile. */
uint32_t cpu_async_serial(const plan_program *p, const plan_step *s, void *const *pointers);
/* The run has failed: nothing that it started goes on after this. */
void cpu_async_abandon(cpu_run *run);

#endif
