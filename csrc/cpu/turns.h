/* Calls that go in turns: each as far as its next meeting, then the next one. */
#ifndef XLAC_CPU_TURNS_H
#define XLAC_CPU_TURNS_H

#include "run.h"
#include "threaded/list.h"

/* One of them, and where it is. */
typedef struct cpu_turn {
  cpu_run *run;
  char *frame;
  const bool *unread;   /* by result, as rt_turn's */
  uint32_t part;        /* of the entry's list: the next one; in a loop, that of the loop */
  bool goes;            /* in this round */
  uint32_t pack;        /* where all do a part together: which of what is packed it reads */
  bool shares;          /* the next part is one that all calls do together, and its instructions have been run */
  struct turn_loop *in; /* the loop in which it was left; NULL: none */
  int status;           /* of what it did last, */
  xlac_error err;       /* and why, where others run at the same time */
} cpu_turn;

/* --- turns_alike.c --- */
enum { CPU_MOST_ALIKE = 64 /* calls */ };
typedef struct cpu_alike {
  uint32_t n; /* calls */
  uint8_t
      *of; /* by buffer of the entry, by call: the first call that has the same value in it; a block of the host's */
  uint8_t *once; /* by part of the entry's list: whether it is run once for all calls that are alike in what it gives */
} cpu_alike;
/* false: nothing is known to be alike. Call i is participant i. */
bool cpu_alike_make(cpu_alike *a, const cpu_turn *turns, uint32_t n);
/* By call: the first one that has the same results of the part. */
void cpu_alike_part(const cpu_alike *a, const plan_program *p, const list_part *part, uint8_t *of);
/* The steps of a part, from *first on. */
uint32_t cpu_part_steps(const plan_program *p, const list_part *part, uint32_t *first);

/* --- turns.c --- */
/* All of them, whose frames are bound, to their ends. pool NULL: on the caller's thread. *failed: whose error it is. */
XLAC_MUST_USE int cpu_turns_run(cpu_turn *turns, uint32_t n, rt_pool *pool, uint32_t *failed);
/* What a turn that ended early has left. */
void cpu_turn_end(cpu_turn *t);
/* How many meetings the body of a loop has, which such calls leave and come back to. */
uint32_t cpu_turns_loop(const cpu_executable *exe, const plan_step *s);

#endif
