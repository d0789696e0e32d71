/* Scalar programs: what a called computation (a reducer, a comparator, what map and scatter apply) does to one element
 * of each operand, as a list of ops in SSA form. Calls and tuples are gone, a branch is a select of what both sides
 * give. Plain data in its owner's arena, immutable once made: any number of threads may read it, and it outlives the
 * module.
 *
 *   %less (p0: f32[], p1: f32[]) -> pred[] {      program (f32[], f32[])
 *     c = f32[] constant(0)                       v2 = f32[] constant(0)
 *     a = f32[] add(p0, c)                        v3 = f32[] add(v0, v2)
 *     ROOT l = compare(a, p1), direction=LT       v4 = pred[] compare(v3, v1), direction=LT
 *   }                                             give (v4)
 *
 * kernel_put_program (kernel/kernel.h) prints them, since constants are spelt by the printer of HLO.
 *
 * Two backends run them: loops over lanes (below), the reference, whose bits are the interpreter's, and the CPU's
 * threaded code on one lane (cpu/body). */
#ifndef XLAC_SCALAR_PROGRAM_H
#define XLAC_SCALAR_PROGRAM_H

#include "loops/loops.h"

enum { SCALAR_BYTES = 16 /* room for an element of any type */, SCALAR_MAX_VALUES = 4096 };

/* A parameter, a constant or an op. */
typedef struct scalar_value {
  scalar_op op; /* of ops; else its code is SCALAR_NONE */
  uint8_t dtype, bytes;
  uint8_t n_in; /* of ops */
  bool read;    /* by an op, or a result */
  bool constant;
  uint32_t in[3];                     /* of ops: earlier values */
  uint64_t element[SCALAR_BYTES / 8]; /* of constants */
} scalar_value;

/* Values are the parameters, in their order, then constants and ops, each after those it uses. */
typedef struct scalar_program {
  uint32_t n_params, n_outs, n_values, n_ops;
  const scalar_value *values;
  const uint32_t *outs; /* values: the elements of the result, one where it is not a tuple */
} scalar_program;

/* A scalar, or an array of one element, which is as good: what StableHLO's rules let reducers take. */
static inline bool scalar_is_one(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && t->count == 1;
}

/* *out is NULL where c, in HLO form, does anything but ops on scalars: whoever wants it run calls it, then. Fails when
 * out of memory. Arrays of one element are as good as scalars. */
XLAC_MUST_USE int scalar_program_make(const ir_computation *c, base_arena *arena, const scalar_program **out,
                                      xlac_error *err);
/* What must hold of every program: INTERNAL, with the value, where it does not. */
XLAC_MUST_USE int scalar_program_verify(const scalar_program *p, xlac_error *err);
/* The op of a program that is nothing but it on its two parameters, which may be crossed if it commutes; else
 * SCALAR_NONE. */
scalar_code scalar_program_single(const scalar_program *p);
/* The type of result j. */
static inline uint8_t scalar_out_dtype(const scalar_program *p, uint32_t j) {
  return p->values[p->outs[j]].dtype;
}

/* --- lanes.c: many lanes at a time, op by op --- */

/* A program made ready: immutable, in its owner's arena. */
typedef struct scalar_lanes {
  const scalar_program *program;
  scalar_loop *loops; /* by value, of ops */
  uint32_t lanes;     /* of a block: as many as keep all values in a first-level cache */
  size_t bytes;       /* of memory to run it, aligned to 64 */
} scalar_lanes;
/* NULL when out of memory. */
const scalar_lanes *scalar_lanes_make(const scalar_program *p, base_arena *arena);

/* Memory to run it in, of one thread at a time. */
typedef struct scalar_lanes_run {
  const scalar_lanes *code;
  char **at, **own; /* of values: where their lanes are; where ops and constants have theirs */
} scalar_lanes_run;
/* memory: code->bytes, aligned to 64; x borrows it, and there is nothing to free. */
void scalar_lanes_begin(scalar_lanes_run *x, const scalar_lanes *code, char *memory);
/* Lanes begin..end of arrays for each parameter, and for each result. The only result of a program may lie over an
 * operand, as a whole; otherwise nothing overlaps. What is not read may be NULL. */
void scalar_lanes_go(scalar_lanes_run *x, int64_t begin, int64_t end, const void *const *in, void *const *out);

#endif
