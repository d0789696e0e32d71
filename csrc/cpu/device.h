/* The CPU as a device: programs compiled for the machine that this runs on. */
#ifndef XLAC_CPU_DEVICE_H
#define XLAC_CPU_DEVICE_H

#include "../interp/device.h"
#include "../runtime/host.h"

/* A context on this machine's CPUs: memory, pools of threads and lanes of its own, so that two of them share nothing.
 * Its builds want a plan. *out: a new reference. */
XLAC_MUST_USE int cpu_device_create(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err);
/* The custom calls that the interpreter runs with a library found here (linalg/lapack.h). */
extern const interp_library cpu_interp_library;

#endif
