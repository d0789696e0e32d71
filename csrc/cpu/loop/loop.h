/* While loops that are machine code as a whole: condition, body and the loops in them become one function
 * (native/loop.h). What is small - counters, states of a few numbers - is in registers; larger arrays lie where the
 * plan has them, and are read and written element by element or row by row. A loop with anything else in it runs as
 * lists of instructions (threaded/list.h).
 *
 * Codes are immutable and in the executable's arena. */
#ifndef XLAC_CPU_LOOP_LOOP_H
#define XLAC_CPU_LOOP_LOOP_H

#include "../run.h"

/* The memory of an array, before a run: of the loop's own state, or in one of its two frames. */
typedef enum loop_area {
  LOOP_NOW,  /* the state, leaf `at` */
  LOOP_NEXT, /* where its next value would be */
  LOOP_CONDITION_FRAME,
  LOOP_BODY_FRAME,
  LOOP_FIXED
} loop_area;
typedef struct loop_memory {
  uint8_t area;
  int64_t at; /* leaf; bytes */
  const void *fixed;
} loop_memory;

typedef struct cpu_loop {
  const cpu_native_loop *code;
  uint32_t n_arrays;
  const loop_memory *arrays;
} cpu_loop;

/* Of step s, a PLAN_WHILE; NULL where it has no way. */
const cpu_loop *cpu_loop_make(cpu_executable *exe, const plan_step *s);
/* Runs it, where cpu_native_loop_is_ready; the state is at now[i] before and after. */
XLAC_MUST_USE int cpu_loop_run_code(cpu_run *run, const cpu_loop *l, char *condition_frame, char *body_frame,
                                    void *const *now, void *const *next);

/* The op for which a loop's code has no way, where it is one; for explanations. */
const ir_op *cpu_loop_stops(const cpu_executable *exe, const plan_step *s);

/* The code of step s as text, a line an instruction; false where it has none. */
bool cpu_loop_put(base_text *out, const cpu_executable *exe, const plan_step *s);

#endif
