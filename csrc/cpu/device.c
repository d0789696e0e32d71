/* The CPU's row of the device table: memory, statistics and queues are those of any host device (runtime/host.h),
 * and builds are this folder's own. */
#include "device.h"

#include <unistd.h>

#include "../base/isa/isa.h"
#include "executable.h"
#include "linalg/lapack.h"

static const rt_device_vtable cpu_device_vtable = {.destroy = rt_host_device_destroy,
                                                   .allocate = rt_host_device_allocate,
                                                   .release = rt_host_device_release,
                                                   .stats = rt_host_device_stats,
                                                   .queue = rt_host_device_queue,
                                                   .begin = cpu_build_begin};

/* One of sysconf's sizes, or 0. */
static uint64_t device_size(int name) {
  long bytes = sysconf(name);
  return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Virtual machines may not say how large their caches are. */
static rt_compute_facts device_compute(void) {
  base_isa isa = base_isa_best();
  return (rt_compute_facts){.vector_bytes = isa >= BASE_ISA_AVX512 ? 64
                                            : isa == BASE_ISA_AVX2 ? 32
                                                                   : 16,
                            .cache_bytes = {device_size(_SC_LEVEL1_DCACHE_SIZE), device_size(_SC_LEVEL2_CACHE_SIZE),
                                            device_size(_SC_LEVEL3_CACHE_SIZE)}};
}

int cpu_device_create(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  rt_host_device *d = NULL;
  TRY(rt_host_device_create(&d, sizeof *d, &cpu_device_vtable, "cpu", ordinal, alloc, err));
  d->device.facts.units = rt_host_cpus(d->host);
  d->device.facts.compute = device_compute();
  *out = &d->device;
  return 0;
}

/* --- what the interpreter borrows --- */

static int device_open_library(void **out, const char *path, base_alloc alloc, xlac_error *err) {
  cpu_blas_lazy *blas = NULL;
  TRY(cpu_blas_lazy_create(&blas, path, alloc, err));
  *out = blas;
  return 0;
}

static void device_close_library(void *library) {
  cpu_blas_lazy_destroy(library);
}

const interp_library cpu_interp_library = {
    .open = device_open_library, .find = cpu_native, .close = device_close_library};
