/* Custom calls of jaxlib's for CPUs that need no library. Internal to csrc/cpu. */
#ifndef XLAC_CPU_OWN_CALLS_H
#define XLAC_CPU_OWN_CALLS_H

#include "../include/xlac_ffi.h"

xlac_ffi_fn cpu_own_tridiagonal, cpu_own_csr_product;

#endif
