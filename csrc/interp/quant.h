/* Quantised tensors: their values are storage integers; real value = (stored - zero point) * scale. */
#ifndef XLAC_INTERP_QUANT_H
#define XLAC_INTERP_QUANT_H

#include "interp.h"

/* Whether op is to be computed on real values: operands dequantised, the result quantised. Ops that only move elements
 * work on the storage as it is. */
bool interp_quant_applies(const ir_op *op);
interp_eval_fn interp_eval_quantised;

/* What a CHLO op that broadcasts its operands does with them then, or IR_OP_INVALID for other ops. eval_chlo.c */
ir_opcode interp_broadcast_inner(unsigned opcode);

#endif
