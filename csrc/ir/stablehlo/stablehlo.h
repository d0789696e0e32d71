/* StableHLO on the IR: its verifier and its inference. */
#ifndef XLAC_IR_STABLEHLO_STABLEHLO_H
#define XLAC_IR_STABLEHLO_STABLEHLO_H

#include "../ir.h"

/* Checks every op of a module in MLIR form by the constraints of the StableHLO 1.20 specification and CHLO, and the
 * structure of the module (symbols, calls, dominance, terminators' types). The error has line, column and op of the
 * first op that breaks a rule in text order, and the message names the constraint, what was expected and what was
 * found. What was found is noted (ir_note_verified). Thread-compatible: one call for a module at a time, since types
 * are interned and the result is noted. */
XLAC_MUST_USE int stablehlo_verify(ir_module *m, xlac_error *err);
/* Whether the attribute is of the kind that the op's definition (ODS) asks for; its value is for the verifier. */
bool stablehlo_attr_is_of(const ir_mattr_spec *spec, const ir_mattr *a);
/* Checks one op that is not a call and has no regions, whatever state the rest of the module is in. */
XLAC_MUST_USE int stablehlo_verify_op(ir_module *m, const ir_op *op, xlac_error *err);
/* The result types that follow from op's operands, attributes and regions; types has room for op->n_results.
 * CANNOT_INFER where they don't follow. Dynamic dimensions are inferred as far as they are known. */
XLAC_MUST_USE int stablehlo_infer(ir_module *m, const ir_op *op, const ir_type **types, xlac_error *err);
/* The type that says all that a and b, types of one value of op, say of its shape; its elements are a's. NULL where
 * they contradict one another, or one is not a tensor and they differ. */
const ir_type *stablehlo_most_specific(ir_module *m, const ir_op *op, const ir_type *a, const ir_type *b);

#endif
