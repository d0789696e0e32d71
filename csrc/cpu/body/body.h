/* Called computations on scalars (reducers, comparators, the bodies of scatter and map) lowered once, when the program
 * is planned, to a list of ops on lanes. Immutable; whoever runs one brings memory for it. Ops run by the loops of the
 * interpreter, so the bits are its.
 *
 * Two ways to run: many lanes at a time (cpu_body_lanes), or one after another where each needs what the one before
 * gave (cpu_body_one), some nanoseconds an op. */
#ifndef XLAC_CPU_BODY_BODY_H
#define XLAC_CPU_BODY_BODY_H

#include "../threaded/list.h"

enum { CPU_BODY_SLOT = 16 /* bytes: room for an element of any type */ };

typedef struct cpu_body_value {
  uint8_t dtype, bytes;
  uint8_t n_in; /* of ops */
  bool read;    /* by an op, or a result */
  uint32_t in[3];
  const void *constant; /* one element, or NULL */
  const ir_op *op;      /* of ops, but for selects that stand for branches */
  uint32_t one;         /* of ops: the instruction for one lane */
  uint32_t takes;       /* the value whose op that instruction does as well, or UINT32_MAX */
  bool taken;           /* it has no instruction of its own */
  interp_loop loop;     /* of ops */
} cpu_body_value;

/* Values are the parameters, then constants and ops in an order in which they can be computed. */
typedef struct cpu_body {
  uint32_t n_params, n_outs, n_values, n_ops, lanes;
  const cpu_body_value *values;
  const uint32_t *outs; /* values */
  const ir_op *single;  /* the op of a body that is nothing but it on its two parameters (crossed if it commutes) */
  bool passes;          /* some result is a parameter */
  size_t lanes_bytes, one_bytes; /* of memory to run it, aligned to 64 */
} cpu_body;

/* *out is NULL where c does something else than elementwise ops on scalars. Fails when out of memory only. body.c */
XLAC_MUST_USE int cpu_body_make(const ir_computation *c, base_arena *arena, const cpu_body **out, xlac_error *err);
/* The type of result j. */
static inline uint8_t cpu_body_out_dtype(const cpu_body *b, uint32_t j) {
  return b->values[b->outs[j]].dtype;
}

/* --- body_run.c --- */

/* n lanes of each parameter to n of each result; nothing overlaps. What is not read may be NULL. */
typedef struct cpu_body_lanes {
  const cpu_body *body;
  char **at; /* of values */
} cpu_body_lanes;
/* memory: b->lanes_bytes, aligned to 64; x borrows it, and there is nothing to free. */
void cpu_body_lanes_begin(cpu_body_lanes *x, const cpu_body *b, char *memory);
void cpu_body_lanes_run(cpu_body_lanes *x, int64_t n, const void *const *in, void *const *out);

/* One lane. Arguments are put in their slots, results are at out[] after the run, until the next. */
typedef struct cpu_body_one {
  const cpu_body *body;
  char *slots; /* of values, CPU_BODY_SLOT each */
  list_inst *insts;
} cpu_body_one;
void cpu_body_one_begin(cpu_body_one *x, const cpu_body *b, char *memory);
static inline void cpu_body_one_run(const cpu_body_one *x) {
  cpu_list_insts(x->insts);
}
/* Where the element of a value is: of parameter i, number i. */
static inline char *cpu_body_slot(const cpu_body_one *x, uint32_t value) {
  return x->slots + (size_t)value * CPU_BODY_SLOT;
}
static inline char *cpu_body_result(const cpu_body_one *x, uint32_t j) {
  return cpu_body_slot(x, x->body->outs[j]);
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
