/* What a program goes through before cpu_compile: a copy in HLO form, and the passes that make it quick. */
#ifndef XLAC_CPU_PREPARE_H
#define XLAC_CPU_PREPARE_H

#include "../pipeline/pipeline.h"

/* A copy of m in HLO form, not verified: what is in MLIR form becomes what it means, and CHLO's ops that are others
 * with a broadcast, those. */
XLAC_MUST_USE int cpu_copy_for_compiling(ir_module *m, ir_module **out, xlac_error *err);
/* Runs the passes, and verifies m, which is in HLO form and verified. Each keeps the bits of every result, unless
 * `fast`. watch is told of each; it may be NULL. Programs that the passes don't know stay as they are. */
XLAC_MUST_USE int cpu_run_passes(ir_module *m, bool fast, const opt_pipeline_options *watch, xlac_error *err);

#endif
