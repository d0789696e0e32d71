#include "devices.h"

#include "../cpu/device.h"
#include "../cuda/device.h"

/* The interpreter stands below the CPU and takes what it finds there: LAPACK for the custom calls that JAX makes. */
static int devices_create_interp(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  return interp_device_create(out, &cpu_interp_library, ordinal, alloc, err);
}

static int devices_create_cuda(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  return cuda_device_create(out, &cpu_interp_library, ordinal, alloc, err);
}

const rt_device_kind driver_device_kinds[] = {{"cpu", cpu_device_create, NULL},
                                              {"interp", devices_create_interp, NULL},
                                              {"cuda", devices_create_cuda, cuda_device_count},
                                              {NULL, NULL, NULL}};
const interp_library *const driver_interp_library = &cpu_interp_library;
