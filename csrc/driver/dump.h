/* What each stage of the compile line leaves, as text. */
#ifndef XLAC_DRIVER_DUMP_H
#define XLAC_DRIVER_DUMP_H

#include "compile.h"

/* The line up to the stage of that name, and what it leaves: "translated", "prepared" and "optimised" are the module as
 * HLO text, "fused" says which ops are one kernel and why, "kernels" are the kernels' text, "programs" the
 * scalar programs of called computations, "plan" the steps, and "executable" what the device makes of them.
 * options->look is not called. Takes the copy, also on failure. BAD_ARGUMENT: there is no such stage. */
XLAC_MUST_USE int driver_dump(ir_module *translated, const driver_options *options, const char *stage, base_text *out,
                              xlac_error *err);
/* The kernels of a plan and of the programs its steps run, each after a comment with its step. false: out of memory. */
bool driver_put_kernels(base_text *out, const plan_program *plan);

#endif
