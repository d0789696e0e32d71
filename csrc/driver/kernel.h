/* A kernel alone, run as a compiled program would. */
#ifndef XLAC_DRIVER_KERNEL_H
#define XLAC_DRIVER_KERNEL_H

#include "../kernel/kernel.h"

/* On the host's memory. BAD_ARGUMENT: it would read or write outside of an array. `arena`: for what it
 * becomes. call->n_in is the kernel's number of inputs, which the caller has checked. */
XLAC_MUST_USE int driver_run_kernel(const kernel *k, base_arena *arena, const xlac_kernel_call *call, xlac_error *err);

#endif
