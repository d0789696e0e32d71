/* Running programs, inside. */
#ifndef XLAC_CPU_RUN_H
#define XLAC_CPU_RUN_H

#include "profile.h"

/* A lane of the executable's, for async starts. */
typedef struct cpu_lane {
  const char *thread; /* of execution; "": of any that has no lane of its own */
  uint32_t threads;
  rt_lane *lane;
} cpu_lane;

enum { CPU_TASK_BYTES = 1536 /* the task of an async start, at the beginning of its frame */ };

/* What is made of a program of the plan. */
typedef struct cpu_code {
  const struct cpu_list *list; /* NULL: the interpreter runs it */
  const void **steps;          /* by step: a cpu_vm of a kernel, a cpu_start of an async start; else NULL */
} cpu_code;

/* What is made of a routine of the plan. */
struct cpu_routine_run;
typedef struct cpu_routine {
  int (*run)(const struct cpu_routine_run *r); /* a cpu_routine_fn */
  const void *data;                            /* immutable */
  const struct cpu_gemm *lines;                /* the same, some lines at a time (plan_lines); or NULL */
  bool as_lines;                               /* with the same bits */
} cpu_routine;
BASE_VEC(cpu_routines, cpu_routine);

/* Immutable once it is built, but for what has a lock of its own (the BLAS that is opened late, the pool, lanes). */
struct cpu_executable {
  rt_executable base; /* base.plan is the program */
  ir_module *owned;   /* the module, or NULL where it is somebody else's */
  base_alloc alloc;
  base_arena arena;         /* plan, kernels */
  bool fast;                /* numerics */
  cpu_code *codes;          /* by number of the program */
  cpu_routines routines;    /* by their number */
  cpu_native_store *native; /* machine code of kernels; NULL: there is none */
  cpu_blas_lazy *blas;      /* NULL: none */
  rt_host *host;            /* the device's */
  rt_pool *pool;            /* the host's */
  uint32_t n_lanes, next_lane;
  cpu_lane *lanes; /* NULL: the program has no async starts */
  bool needs_interpreter;
  bool needs_care; /* an argument may be one that kernels can't read: pred, narrow */
  void (*count)(void *ctx, const rt_tally *tally);
  void *count_ctx;
};

/* One call, or one part of an async task: all that changes while a program runs, but for its frame. On the stack
 * of the thread that runs it; other threads see it through a pool's ranges and through tasks. */
typedef struct cpu_run cpu_run;
struct cpu_run {
  const cpu_executable *exe;
  void *const *arguments, *const *results; /* of the entry; NULL in the run of a task */
  rt_tally tally;
  cpu_units ran;
  interp_ctx ctx;         /* for interpreted steps, errors and interrupts */
  cpu_profile *profile;   /* or NULL */
  uint32_t depth, lane;   /* for the profile: of steps in steps; where it runs */
  rt_stop stop;           /* asked inside long steps; asked is NULL where nobody can interrupt */
  struct cpu_task *tasks; /* started and not done, the last first */
  cpu_run *parent;        /* of a task's run: that which started it */
  atomic_bool cancelled;  /* what it has started shall stop */
};

/* executable.c: NULL where it is another device's. */
const cpu_executable *cpu_executable_of(const rt_executable *exe);
/* The plan of the entry, which is program number 0. */
static inline const plan_program *cpu_plan_of(const cpu_executable *exe) {
  return exe->base.plan;
}
/* What its products run with, once something has needed it; or NULL. */
static inline const cpu_blas *cpu_executable_blas(const cpu_executable *exe) {
  return cpu_blas_lazy_opened(exe->blas);
}
static inline const cpu_code *cpu_code_of(const cpu_executable *exe, const plan_program *p) {
  return &exe->codes[p->number];
}
/* What was made of step s of p: see cpu_code. */
static inline const void *cpu_step_code(const cpu_executable *exe, const plan_program *p, const plan_step *s) {
  return exe->codes[p->number].steps[s - p->steps];
}

/* --- run.c --- */
/* arguments and results: a pointer a leaf. frame: program->frame_bytes, aligned to PLAN_ALIGN. */
XLAC_MUST_USE int cpu_run_program(cpu_run *run, const plan_program *p, void *const *arguments, void *const *results,
                                  char *frame);

/* The program's table of pointers, at the beginning of its frame. */
void **cpu_bind_program(const plan_program *p, void *const *arguments, void *const *results, char *frame);

/* Whether all that the step writes are results that the program does not read again. */
static inline bool cpu_run_is_last(const plan_program *p, const plan_step *s) {
  for (uint32_t i = 0; i < s->n_out; i++) {
    const plan_buffer *b = &p->buffers[s->out[i]];
    if (b->place != PLAN_RESULT || b->borrowed || b->last != b->first) return false;
  }
  return true;
}
/* A step, by its kind: for runs that nobody watches or interrupts. */
typedef int cpu_step_fn(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers);
extern cpu_step_fn *const cpu_step_table[];
/* The same for all runs: with its times, and its share of what is counted between looks at interruptions. */
XLAC_MUST_USE int cpu_run_step(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers);
/* Pointers to the buffers of a program in the table `pointers`: to those in its frame, and to its interface. */
void cpu_bind_frame(const plan_program *p, char *frame, void **pointers);
void cpu_bind_interface(const plan_program *p, void *const *arguments, void *const *results, void **pointers);

/* Of a loop that is not run as one step: where condition and body have their frames, where the state lies in a trip and
 * where in the next one. And its end, where an odd number of trips was made. */
XLAC_MUST_USE int cpu_enter_while(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers,
                                  char **frames, void **now, void **next);
XLAC_MUST_USE int cpu_leave_while(cpu_run *run, const plan_program *p, const plan_step *s, void *const *now,
                                  void *const *next);

/* --- routine.c --- */
XLAC_MUST_USE int cpu_run_routine(cpu_run *run, const plan_step *s, void *const *pointers);

/* --- eval.c: a step that is one op by the interpreter, or by it the work of an async start --- */
XLAC_MUST_USE int cpu_run_eval(cpu_run *run, const plan_step *s, void *const *pointers);
XLAC_MUST_USE int cpu_run_eval_start(cpu_run *run, const plan_step *s, void *const *pointers);

/* What a step counts for between two looks at whether the call is interrupted, in some sixteen elements; one that is
 * run by itself counts for one more. */
static inline uint64_t cpu_step_work(const plan_step *s) {
  if (s->kind == PLAN_KERNEL) return (uint64_t)s->kernel->count / 16;
  return s->kind == PLAN_ROUTINE ? s->routine->work / 16 : 0;
}

#endif
