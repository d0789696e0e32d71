/* Called computations on scalars (reducers, comparators, the bodies of scatter and map) as scalar programs, made ready
 * once, when the program is planned. Immutable; whoever runs one brings memory for it. The bits are the interpreter's.
 *
 * Two ways to run: many lanes at a time (scalar_lanes), or one after another where each needs what the one before
 * gave (cpu_body_one), some nanoseconds an op. */
#ifndef XLAC_CPU_BODY_BODY_H
#define XLAC_CPU_BODY_BODY_H

#include "../threaded/list.h"

/* How one lane of a value is computed. */
typedef struct cpu_body_inst {
  uint32_t code;  /* of ops: the instruction */
  uint32_t takes; /* the value whose op it does as well, or UINT32_MAX */
  bool taken;     /* the value has no instruction of its own */
} cpu_body_inst;

typedef struct cpu_body {
  const scalar_program *program;
  const scalar_lanes *lanes;
  const cpu_body_inst *insts; /* by value */
  bool passes;                /* some result is a parameter */
  size_t one_bytes;           /* of memory to run one lane, aligned to 64 */
} cpu_body;

/* *out is NULL where c is not a scalar program, or a long one. Fails when out of memory only. */
XLAC_MUST_USE int cpu_body_make(const ir_computation *c, base_arena *arena, const cpu_body **out, xlac_error *err);
/* One lane. Arguments are put in their slots; results are at out[] after the run, until the next. */
typedef struct cpu_body_one {
  const cpu_body *body;
  char *slots; /* of values, SCALAR_BYTES each */
  list_inst *insts;
} cpu_body_one;
void cpu_body_one_begin(cpu_body_one *x, const cpu_body *b, char *memory);
static inline void cpu_body_one_run(const cpu_body_one *x) {
  cpu_list_insts(x->insts);
}
/* Where the element of a value is: of parameter i, number i. */
static inline char *cpu_body_slot(const cpu_body_one *x, uint32_t value) {
  return x->slots + (size_t)value * SCALAR_BYTES;
}
static inline char *cpu_body_result(const cpu_body_one *x, uint32_t j) {
  return cpu_body_slot(x, x->body->program->outs[j]);
}

/* Elements of an array on their way into a slot. */
typedef struct cpu_body_read {
  size_t bytes;
  const char *from;
  int64_t step; /* bytes from an element to the next */
  char *slot;
} cpu_body_read;

/* The results become the first parameters of the next run. */
void cpu_body_one_feed(const cpu_body_one *x);

/* An element: a copy whose size the compiler knows costs nothing. */
static inline void cpu_body_copy(size_t bytes, void *to, const void *from) {
  if (bytes == 4)
    memcpy(to, from, 4);
  else if (bytes == 8)
    memcpy(to, from, 8);
  else if (bytes == 1)
    memcpy(to, from, 1);
  else if (bytes == 2)
    memcpy(to, from, 2);
  else
    memcpy(to, from, 16);
}

/* Element `at` of each. */
static inline void cpu_body_fetch(uint32_t n, const cpu_body_read *reads, int64_t at) {
  for (const cpu_body_read *r = reads, *end = reads + n; r < end; r++)
    cpu_body_copy(r->bytes, r->slot, r->from + at * r->step);
}

#endif
