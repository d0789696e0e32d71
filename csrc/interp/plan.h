/* What the engine knows of a computation before it runs it: the order of its live ops, which slots they read and where
 * each value is read last. Made once a run, at the computation's first call. */
#ifndef XLAC_INTERP_PLAN_H
#define XLAC_INTERP_PLAN_H

#include "interp.h"

typedef struct interp_step {
  const ir_op *op;
  const uint32_t *operands; /* slots; the step's own slot is its number */
  uint64_t last;            /* bit i: operand i is read here for the last time (its first 64 operands only) */
  uint32_t n_dead;          /* slots to release after this step */
  const uint32_t *dead;
  bool quantised;     /* to be computed on real values: quant.h */
  bool moves_element; /* get-tuple-element that may take the element out of a tuple nobody else holds */
} interp_step;

typedef struct interp_plan {
  const ir_computation *computation;
  uint32_t n_steps, max_operands, root;
  interp_step *steps;
} interp_plan;

/* NULL when out of memory (err then filled). */
const interp_plan *interp_plan_of(interp_ctx *ctx, const ir_computation *c);

/* Whether a custom call must run though nobody reads its result: where it says so, and checks. eval_custom_call.c */
bool interp_call_has_effect(const ir_op *op);

#endif
