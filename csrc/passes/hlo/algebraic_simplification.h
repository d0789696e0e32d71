/* Simplification of HLO, inside: rules by opcode, none of which changes a bit of a result. */
#ifndef XLAC_PASSES_HLO_ALGEBRAIC_SIMPLIFICATION_H
#define XLAC_PASSES_HLO_ALGEBRAIC_SIMPLIFICATION_H

#include "../effects.h"
#include "hlo_make.h"
#include "../pass.h"

typedef struct hs_run {
  hlo_maker x; /* before: the op at hand */
  opt_facts facts;
} hs_run;

/* What op's value is instead: an op that was there, a new one made before op, or op itself, changed in place.
 * NULL: nothing to gain. All types are plain (hlo_is_plain). */
typedef ir_op *hs_rule(hs_run *s, ir_op *op);
typedef struct hs_row {
  uint16_t opcode; /* IR_OP_INVALID ends a table */
  hs_rule *rule;
} hs_row;

extern const hs_row hs_math_rules[], hs_move_rules[], hs_dot_rules[], hs_window_rules[];
extern const hs_row hs_loose_rules[]; /* reassociate.c: these do change bits */

/* --- algebraic_simplification.c --- */
/* `with`, when it is of op's type. */
ir_op *hs_as(const ir_op *op, ir_op *with);
/* A constant, or a broadcast of one, all of whose elements have this value (and sign, for zeros). */
bool hs_is(const ir_op *op, double value);
bool hs_is_integral(const ir_type *t); /* integers and truth values */
/* The product with its sides changed, for a transposition that changes them back; or NULL. */
ir_op *hs_transpose_of_dot(hs_run *s, ir_op *op);

/* --- algebraic_simplification_sign.c: of integers; NULL or -1 where there is nothing to gain --- */
ir_op *hs_sign_of_both(const ir_op *op); /* of an `and` */
int hs_sign_compares(const ir_op *op);   /* whether a comparison holds */
ir_op *hs_sign_remainder(hs_run *s, ir_op *op);
ir_op *hs_sign_select(hs_run *s, ir_op *op);

/* --- algebraic_simplification_scatter.c --- */
ir_op *hs_scatter(hs_run *s, ir_op *op);

#endif
