/* What StableHLO has beyond HLO, expanded into what HLO has: run before the translation to HLO (driver/,
 * api/module.c). One thread a module; on failure a module that was to be changed in place is half-expanded and must
 * be dropped. */
#ifndef XLAC_PIPELINE_FOR_HLO_H
#define XLAC_PIPELINE_FOR_HLO_H

#include "../ir/ir.h"

/* Whether the module, in MLIR form, has ops that XLA's HLO has none for. */
bool pipeline_is_beyond_hlo(const ir_module *m);
/* Expands them, in place: CHLO's functions and broadcasts, deprecated ops, dynamic ops whose shapes are constants. Ops
 * that HLO has (erf, acos, top_k, ragged_dot, ...) stay. What can't be expanded stays too, or is an error. The module
 * is valid. */
XLAC_MUST_USE int pipeline_expand_for_hlo(ir_module *m, xlac_error *err);
/* Where a module in MLIR form has CHLO ops that other ops give to the bit (those that broadcast, constants), a copy of
 * it with them expanded; else, or where the module is not valid, *out is NULL. */
XLAC_MUST_USE int pipeline_expand_for_executor(ir_module *m, ir_module **out, xlac_error *err);

#endif
