/* Times of one call, by step. */
#ifndef XLAC_CPU_PROFILE_H
#define XLAC_CPU_PROFILE_H

#include "../plan/report.h"
#include "executable.h"

enum { CPU_PROFILE_EVENTS = 1 << 18 };

typedef struct cpu_event {
  uint32_t program, step, depth;
  double start, seconds;
} cpu_event;

/* Of the run that it is given to; one thread. */
typedef struct cpu_profile {
  base_alloc alloc;
  plan_list programs;
  uint32_t *first; /* by program: where its steps' totals begin */
  double *seconds; /* by step of all programs */
  uint64_t *times; /* run so often */
  cpu_event *events;
  uint32_t n_events, cap_events, last, depth;
  bool cut; /* there were more events than are kept */
  double start;
} cpu_profile;

XLAC_MUST_USE int cpu_profile_begin(cpu_profile *x, base_alloc alloc, const plan_program *p, xlac_error *err);
void cpu_profile_end(cpu_profile *x);
/* Seconds since the beginning. */
double cpu_profile_now(const cpu_profile *x);
/* Step number `step` of p has run from `start` until now. */
void cpu_profile_add(cpu_profile *x, const plan_program *p, uint32_t step, double start);
/* In nanoseconds: {"ns", "cut", "steps": [[program, step, times, ns], ...],
 * "events": [[program, step, depth, start, ns], ...]} */
void cpu_profile_put(const cpu_profile *x, base_text *out);

#endif
