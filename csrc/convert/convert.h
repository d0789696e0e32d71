/* The way between MLIR form and HLO form. Modules that are read are changed only in that they are verified; what is
 * made is the caller's to destroy. One thread a module.
 *
 * Where the forms differ, and what becomes of it:
 *
 *   HLO                                MLIR form (StableHLO)
 *   tuples everywhere                  several results; a tuple only where an op insists
 *   layouts in types                   no layouts; mhlo.layout_mode on the entry's arguments
 *   computations named by ops          regions, or private functions that are called
 *   branches take their operand        branches use what is outside of them
 *   async chains of three values       futures, in one op with a region
 *
 * The way there and back gives a program that computes the same, not the same text. */
#ifndef XLAC_CONVERT_CONVERT_H
#define XLAC_CONVERT_CONVERT_H

#include "../ir/stablehlo/stablehlo.h"

/* What a caller may choose of the translation to HLO. Zeros are the strict form, which prints as HLO text. */
typedef struct convert_to_hlo_options {
  /* Keep what HLO has no op for (dynamic ops, CHLO, quantised types, uniform_quantize, composites' calls): for the
   * interpreter. Else such ops are expanded or refused. */
  bool executable;
  const ir_computation *entry; /* the function to begin with, or NULL: the module's own */
  bool return_tuple;           /* the entry gives a tuple even of one result */
} convert_to_hlo_options;

/* A new module in HLO form that computes the same. The entry is @main, else the only public function. Argument and
 * result attributes become HLO's: mhlo.sharding, tf.aliasing_output, jax.buffer_donor, mhlo.layout_mode, frontend
 * attributes; mhlo.num_partitions and num_replicas the module's counts. m is verified first unless it is. */
XLAC_MUST_USE int convert_to_hlo(ir_module **out, ir_module *m, const convert_to_hlo_options *options, xlac_error *err);
/* A new module in MLIR form (StableHLO) that computes the same; ops that StableHLO lacks become custom_calls or
 * compositions, as XLA's own translation does, or are refused by name. */
XLAC_MUST_USE int convert_from_hlo(ir_module **out, ir_module *m, xlac_error *err);

#endif
