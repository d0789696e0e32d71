/* Elementwise ops on two operands of any shapes that broadcast. */
#include "row.h"

int tfl_row_binary(tfl_op *x) {
  tfl_out(x, 0, tfl_binary(x, (ir_opcode)x->row->arg, tfl_in(x, 0), tfl_in(x, 1)));
  return x->status;
}
