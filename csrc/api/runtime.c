/* What executables share: a set of devices. */
#include "../driver/devices.h"
#include "api.h"

int xlac_runtime_create(xlac_runtime **out, xlac_error *err) {
  rt_device_set *set = NULL;
  TRY(rt_device_set_create(&set, driver_device_kinds, base_alloc_libc, err));
  *out = (xlac_runtime *)(void *)set;
  return 0;
}

void xlac_runtime_destroy(xlac_runtime *rt) {
  rt_device_set_release(api_devices(rt));
}

uint64_t xlac_runtime_trim(xlac_runtime *rt, uint64_t keep) {
  return rt_device_set_trim(api_devices(rt), keep);
}

void xlac_runtime_limit(xlac_runtime *rt, uint64_t bytes) {
  rt_device_set_limit(api_devices(rt), bytes);
}

void xlac_runtime_get(xlac_runtime *rt, xlac_runtime_info *out) {
  base_recycler_info m;
  rt_device_set_memory(api_devices(rt), &m);
  *out = (xlac_runtime_info){.taken = m.taken,
                             .reused = m.reused,
                             .live = m.live,
                             .live_bytes = m.live_bytes,
                             .peak_bytes = m.peak_bytes,
                             .kept = m.kept,
                             .kept_bytes = m.kept_bytes,
                             .limit_bytes = m.limit_bytes,
                             .threads = rt_device_set_threads(api_devices(rt))};
}

void *xlac_runtime_take(xlac_runtime *rt, size_t bytes) {
  return base_recycler_take(rt_host_memory(rt_device_set_home(api_devices(rt))), bytes);
}

void *xlac_runtime_take_headed(xlac_runtime *rt, uint32_t header, size_t bytes) {
  _Static_assert((int)XLAC_BLOCK_HEADER == (int)BASE_BLOCK_PREFIX, "every block has room for the largest header");
  return header <= XLAC_BLOCK_HEADER ? xlac_runtime_take(rt, bytes) : NULL;
}

void xlac_runtime_give(void *block) {
  base_recycler_give(block);
}

/* --- devices --- */

void api_describe_device(rt_device *d, xlac_device_info *out) {
  rt_memory_stats stats = {0};
  const rt_space *space = &d->facts.spaces[0];
  if (d->vtable->stats) d->vtable->stats(d, &stats);
  *out = (xlac_device_info){.kind = d->facts.kind,
                            .ordinal = d->facts.ordinal,
                            .units = d->facts.units,
                            .memory = space->name,
                            .memory_bytes = space->bytes,
                            .host_visible = space->host_visible,
                            .live_bytes = stats.live_bytes,
                            .peak_bytes = stats.peak_bytes};
  _Static_assert(sizeof out->name == 32, "as long as names of devices are");
  rt_device_name(d, out->name);
}

int xlac_runtime_open_device(xlac_runtime *rt, const char *name, xlac_device_info *out, xlac_error *err) {
  rt_device *d = NULL;
  TRY(rt_device_set_open(api_devices(rt), name, &d, err));
  api_describe_device(d, out);
  return 0;
}

bool xlac_runtime_device(xlac_runtime *rt, uint32_t index, xlac_device_info *out) {
  rt_device *d = rt_device_set_at(api_devices(rt), index);
  if (d) api_describe_device(d, out);
  return d != NULL;
}
