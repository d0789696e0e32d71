/* Simplification of HLO, inside: rules by opcode, none of which changes a bit of a result. */
#ifndef XLAC_OPT_HLO_SIMPLIFY_H
#define XLAC_OPT_HLO_SIMPLIFY_H

#include "effects.h"
#include "pass.h"

typedef struct hs_run {
  ir_module *m;
  opt_facts facts;
  bool failed; /* out of memory */
} hs_run;

/* What op's value is instead: an op that was there, a new one (hs_new) made before op, or op itself, changed in place.
 * NULL: nothing to gain. All types are static tensors with row-major layouts, or tuples (of operands only). */
typedef ir_op *hs_rule(hs_run *s, ir_op *op);
typedef struct hs_row {
  uint16_t opcode; /* IR_OP_INVALID ends a table */
  hs_rule *rule;
} hs_row;

extern const hs_row hs_math_rules[], hs_move_rules[], hs_dot_rules[];

/* --- hlo_simplify.c --- */
/* Before op, with its metadata. NULL (and s->failed) when out of memory. */
ir_op *hs_new(hs_run *s, const ir_op *op, ir_opcode opcode, const ir_type *type, uint32_t n, ir_op *const *operands);
/* A constant of op's type (elements of one value as a broadcast scalar). */
ir_op *hs_splat(hs_run *s, const ir_op *op, double value);
/* `with`, when it is of op's type. */
ir_op *hs_as(const ir_op *op, ir_op *with);
/* A constant, or a broadcast of one, all of whose elements have this value (and sign, for zeros). */
bool hs_is(const ir_op *op, double value);
bool hs_is_integral(const ir_type *t); /* integers and truth values */
/* --- hlo_simplify_dot.c: the product with its sides changed, for a transposition that changes them back; or NULL ---
 */
ir_op *hs_transpose_of_dot(hs_run *s, ir_op *op);

#endif
