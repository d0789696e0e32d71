/* Rehearsals: what each of many devices would run, planned and not made. */
#ifndef XLAC_DRIVER_REHEARSE_H
#define XLAC_DRIVER_REHEARSE_H

#include "compile.h"

/* Appends JSON to `out`: {"sharding", "collectives", "donations", "plan"} (docs/executor.md), and gives the program of
 * one device after the passes, the caller's. options->partitioned is that of a rehearsal (driver_partition), and is
 * taken, like translated, also on failure; look is not set. BAD_ARGUMENT where the interpreter would run the program
 * whole. */
XLAC_MUST_USE int driver_rehearse(ir_module *translated, const driver_options *options, base_text *out,
                                  ir_module **local, xlac_error *err);

#endif
