/* The first stages of the compile line. */
#ifndef XLAC_DRIVER_PREPARE_H
#define XLAC_DRIVER_PREPARE_H

#include "compile.h"

/* Runs the passes, and verifies m, which is in HLO form and verified. Each of the usual passes keeps the bits of every
 * result, unless numerics are fast. Programs of forms that the passes don't know stay as they are. */
XLAC_MUST_USE int driver_run_passes(ir_module *m, const driver_options *options, xlac_error *err);

#endif
