/* Devices whose memory is the host's: one space, on memory that is used again. */
#include <unistd.h>

#include "host.h"

/* What the machine has; where that isn't told, no limit is known. */
static uint64_t hostd_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

int rt_host_device_create(rt_host_device **out, size_t size, const rt_device_vtable *vtable, const char *kind,
                          uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  assert(size >= sizeof(rt_host_device));
  rt_host_device *d = base_malloc(alloc, size);
  if (!d) return base_oom(err, "a device");
  memset(d, 0, size);
  int status = rt_host_create(&d->host, alloc, err);
  if (status) {
    base_free(alloc, d);
    return status;
  }
  rt_device_init(&d->device, vtable, kind, ordinal);
  d->alloc = alloc;
  d->device.facts.calls_on_host = true;
  d->device.facts.n_spaces = 1;
  d->device.facts.spaces[0] = (rt_space){.name = "host", .host_visible = true, .bytes = hostd_memory()};
  *out = d;
  return 0;
}

void rt_host_device_destroy(rt_device *device) {
  rt_host_device *d = (rt_host_device *)device;
  assert(atomic_load(&device->refs) == 0);
  rt_host_release(d->host);
  base_free(d->alloc, d);
}

int rt_host_device_allocate(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err) {
  char name[32];
  assert(space == 0);
  void *block = bytes <= d->facts.spaces[space].bytes ? rt_recycler_take(rt_host_memory(rt_host_of(d)), bytes) : NULL;
  if (block) {
    *out = block;
    return 0;
  }
  rt_device_name(d, name);
  return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: %s has no %zu bytes", name, bytes);
}

void rt_host_device_release(rt_device *d, uint32_t space, void *memory) {
  assert(space == 0);
  (void)d, (void)space;
  rt_recycler_give(memory);
}

void rt_host_device_stats(rt_device *d, rt_memory_stats *out) {
  rt_recycler_info m;
  rt_recycler_get(rt_host_memory(rt_host_of(d)), &m);
  *out = (rt_memory_stats){.live = m.live, .live_bytes = m.live_bytes, .peak_bytes = m.peak_bytes};
}

int rt_host_device_queue(rt_device *d, rt_queue **out, xlac_error *err) {
  return rt_host_queue_create(d, ((rt_host_device *)d)->alloc, out, err);
}
