/* What work on the host needs: memory that is used again, pools of threads, lanes. Every device whose memory the host
 * sees has one of its own, and its executables share that. */
#ifndef XLAC_RUNTIME_HOST_H
#define XLAC_RUNTIME_HOST_H

#include "device.h"
#include "lane.h"
#include "recycle.h"
#include "threads.h"

/* Reference counted; thread-safe. */
typedef struct rt_host rt_host;

XLAC_MUST_USE int rt_host_create(rt_host **out, base_alloc alloc, xlac_error *err);
rt_host *rt_host_retain(rt_host *h);
void rt_host_release(rt_host *h); /* NULL is fine; not from inside a run */
rt_recycler *rt_host_memory(rt_host *h);
/* The pool of so many threads (0: as many as there are CPUs to use), which all who ask for that many share. Lives as
 * long as the host. */
XLAC_MUST_USE int rt_host_pool(rt_host *h, uint32_t threads, rt_pool **out, xlac_error *err);
/* The lane of that name with so many threads, which all who ask for it share. Lives as long as the host. */
XLAC_MUST_USE int rt_host_lane(rt_host *h, const char *name, uint32_t threads, rt_lane **out, xlac_error *err);
/* How many CPUs there are to use: counted once. */
uint32_t rt_host_cpus(rt_host *h);
/* Threads that work for it now. */
uint32_t rt_host_threads(const rt_host *h);

/* --- host_device.c: what is the same in devices on the host, which put this first --- */

typedef struct rt_host_device {
  rt_device device;
  base_alloc alloc;
  rt_host *host; /* a reference */
} rt_host_device;

/* `size` bytes for a device that begins so: its facts, one memory space, and a host of its own. */
XLAC_MUST_USE int rt_host_device_create(rt_host_device **out, size_t size, const rt_device_vtable *vtable,
                                        const char *kind, uint32_t ordinal, base_alloc alloc, xlac_error *err);
/* For its table; the first frees it. */
void rt_host_device_destroy(rt_device *d);
int rt_host_device_allocate(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err);
void rt_host_device_release(rt_device *d, uint32_t space, void *memory);
void rt_host_device_stats(rt_device *d, rt_memory_stats *out);
int rt_host_device_queue(rt_device *d, rt_queue **out, xlac_error *err);
/* host_queue.c: rt_host_queue_create for devices that copy in a way of their own: `copy` of some bytes, on the queue's
 * thread, which returns when they are copied. */
typedef int rt_copy_fn(rt_device *d, const rt_copy *c, xlac_error *err);
XLAC_MUST_USE int rt_host_queue_create_with(rt_device *d, rt_copy_fn *copy, base_alloc alloc, rt_queue **out,
                                            xlac_error *err);
/* The host of a device that begins so, borrowed. */
static inline rt_host *rt_host_of(const rt_device *d) {
  return ((const rt_host_device *)d)->host;
}

#endif
