/* StableHLO on the IR: its verifier, and the way between MLIR form and HLO form. */
#ifndef XLAC_IR_STABLEHLO_STABLEHLO_H
#define XLAC_IR_STABLEHLO_STABLEHLO_H

#include "../ir.h"

/* Checks every op of a module in MLIR form by the constraints of the StableHLO 1.20 specification and CHLO, and the
 * structure of the module (symbols, calls, dominance, terminators' types). The error has line, column and op of the
 * first op that breaks a rule in text order, and the message names the constraint, what was expected and what was
 * found. Sets m->verified. */
XLAC_MUST_USE int stablehlo_verify(ir_module *m, xlac_error *err);
/* Checks one op that is no call and has no regions, whatever state the rest of the module is in. */
XLAC_MUST_USE int stablehlo_verify_op(ir_module *m, const ir_op *op, xlac_error *err);
/* The result types that follow from op's operands, attributes and regions; types has room for op->n_results.
 * CANNOT_INFER where they don't follow. Dynamic dimensions are inferred as far as they are known. */
XLAC_MUST_USE int stablehlo_infer(ir_module *m, const ir_op *op, const ir_type **types, xlac_error *err);
/* The type that says all that a and b, types of one value of op, say of its shape; its elements are a's. NULL where
 * they contradict one another, or one is no tensor and they differ. */
const ir_type *stablehlo_most_specific(ir_module *m, const ir_op *op, const ir_type *a, const ir_type *b);

typedef struct stablehlo_to_hlo_options {
  /* Keep what HLO has no op for (dynamic ops, CHLO, quantised types, uniform_quantize, composites' calls): for the
   * interpreter. Else such ops are expanded or refused. */
  bool executable;
  bool return_tuple; /* the entry gives a tuple even of one result */
} stablehlo_to_hlo_options;

/* A new module in HLO form that computes the same. The entry is @main, else the only public function. Argument and
 * result attributes become HLO's: mhlo.sharding, tf.aliasing_output, jax.buffer_donor, mhlo.layout_mode, frontend
 * attributes; mhlo.num_partitions and num_replicas the module's counts. m is verified first unless it is. */
XLAC_MUST_USE int stablehlo_to_hlo(ir_module **out, ir_module *m, const stablehlo_to_hlo_options *options,
                                   xlac_error *err);
/* A new module in MLIR form (StableHLO) that computes the same; ops that StableHLO lacks become custom_calls or
 * compositions, as XLA's own translation does, or are refused by name. */
XLAC_MUST_USE int stablehlo_from_hlo(ir_module **out, ir_module *m, xlac_error *err);

#endif
