/* NVIDIA GPUs as devices: each is one GPU, in the primary context that other libraries of the process use too. */
#ifndef XLAC_CUDA_DEVICE_H
#define XLAC_CUDA_DEVICE_H

#include "../interp/device.h"

/* GPU number `ordinal`. Its space 0 is the GPU's memory, which the host does not see, 1 is pinned memory of the host's.
 * Its builds want a plan. Calls may be given memory of the host's, which they copy. `library` is what the interpreter
 * finds custom calls in, and stays. *out: a new reference. DEVICE: no driver, no such GPU. */
XLAC_MUST_USE int cuda_device_create(rt_device **out, const interp_library *library, uint32_t ordinal, base_alloc alloc,
                                     xlac_error *err);
/* How many GPUs the driver has: none is opened. DEVICE: no driver. */
XLAC_MUST_USE int cuda_device_count(uint32_t *n, xlac_error *err);

#endif
