/* Loops of rows that go on until something holds. */
#ifndef XLAC_TF_LOWER_REPEAT_H
#define XLAC_TF_LOWER_REPEAT_H

#include "row.h"

enum { TFL_MOST_STATE = 16 };

/* A while loop with n values as its state, of which the first, a scalar of PRED, says whether to go on. Between begin
 * and end the cursor is in the body, and state has its arguments. */
typedef struct tfl_repeat {
  ir_op *op;
  ir_computation *body;
  tfl_cursor back;
  uint32_t n;
  ir_value state[TFL_MOST_STATE];
} tfl_repeat;

/* Fails where an init has no op; end must not be called then. */
XLAC_MUST_USE int tfl_repeat_begin(tfl_op *x, tfl_repeat *r, uint32_t n, const ir_value *inits);
void tfl_repeat_end(tfl_op *x, tfl_repeat *r, const ir_value *next, ir_value *results);
/* Whether any element of a PRED is true: a scalar. */
ir_value tfl_any(tfl_op *x, ir_value v);

#endif
