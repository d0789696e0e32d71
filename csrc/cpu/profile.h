/* Times of one call, by step. */
#ifndef XLAC_CPU_PROFILE_H
#define XLAC_CPU_PROFILE_H

#include <pthread.h>

#include "../plan/report.h"
#include "executable.h"

enum { CPU_PROFILE_EVENTS = 1 << 18 };

typedef struct cpu_event {
  uint32_t program, step, depth;
  uint32_t lane;   /* 0: who called; else 1 + the number of the executable's lane */
  uint32_t serial; /* tells the starts, tasks and dones of a run apart; 0: none of these */
  bool task;       /* what the start did on its lane, or a part of it */
  double start, seconds;
} cpu_event;

/* What a run has run: kernels that are steps by themselves, groups of kernels, lists of instructions, and loops that
 * are nothing but a list. */
typedef struct cpu_units {
  uint64_t kernels, groups, lists, loops;
} cpu_units;
static inline void cpu_units_add(cpu_units *to, const cpu_units *more) {
  to->kernels += more->kernels;
  to->groups += more->groups;
  to->lists += more->lists;
  to->loops += more->loops;
}

/* Of the run that it is given to. With `lanes`, async work goes on beside it and is written down, too; without, it is
 * run where it is started, so that all times are of one thread. */
typedef struct cpu_profile {
  base_alloc alloc;
  const cpu_executable *exe;
  plan_list programs;
  uint32_t *first; /* by program: where its steps' totals begin */
  double *seconds; /* by step of all programs */
  uint64_t *times; /* run so often */
  cpu_event *events;
  uint32_t n_events, cap_events, last;
  bool lanes;
  bool quiet;           /* there is no clock: only what ran is counted */
  cpu_units ran;        /* when it is over */
  pthread_mutex_t lock; /* of all that changes */
  uint32_t serials;
  bool cut; /* there were more events than are kept */
  double start;
} cpu_profile;

XLAC_MUST_USE int cpu_profile_begin(cpu_profile *x, base_alloc alloc, const cpu_executable *exe, bool lanes,
                                    xlac_error *err);
void cpu_profile_end(cpu_profile *x);
/* Seconds since the beginning. */
double cpu_profile_now(const cpu_profile *x);
/* The step of p has run from e.start until now; the rest of e is filled but for program, step and seconds. */
void cpu_profile_add(cpu_profile *x, const plan_program *p, const plan_step *s, cpu_event e);
uint32_t cpu_profile_serial(cpu_profile *x); /* a new one */
/* In nanoseconds: {"ns", "cut", "ran": {"kernels", "groups", "lists", "loops"}, "units": [[program, step, n, kind],
 * ...], "steps": [[program, step, times, ns], ...], "events": [[program, step, depth, start, ns], ...]}; with lanes,
 * events also have lane, serial and whether it is the task (1) or the step itself (0). Steps that "units" lists are run
 * with those after them, n in all, as one "group" or "list": times are of all of them. */
void cpu_profile_put(const cpu_profile *x, base_text *out);
/* Tells the options' `step` of all events. */
void cpu_profile_tell(const cpu_profile *x, const rt_call_options *options);

#endif
