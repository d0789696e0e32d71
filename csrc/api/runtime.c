/* What executables share: a set of devices. */
#include "../driver/devices.h"
#include "api.h"
#include <stdatomic.h>

int xlac_runtime_create(xlac_runtime **out, xlac_error *err) {
  rt_device_set *set = NULL;
  TRY(rt_device_set_create(&set, driver_device_kinds, base_alloc_libc, err));
  *out = (xlac_runtime *)(void *)set;
  return 0;
}

/* Executables, buffers and blocks that are still there keep what they need. */
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
  rt_recycler_info m;
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

/* Aligned to 64 bytes, not cleared; NULL when out of memory. */
void *xlac_runtime_take(xlac_runtime *rt, size_t bytes) {
  return rt_recycler_take(rt_host_memory(rt_device_set_home(api_devices(rt))), bytes);
}

void *xlac_runtime_take_headed(xlac_runtime *rt, uint32_t header, size_t bytes) {
  _Static_assert((int)XLAC_BLOCK_HEADER == (int)RT_BLOCK_PREFIX, "every block has room for the largest header");
  return header <= XLAC_BLOCK_HEADER ? xlac_runtime_take(rt, bytes) : NULL;
}

void xlac_runtime_give(void *block) {
  rt_recycler_give(block);
}

/* --- devices --- */

/* A snapshot; the first memory space stands for the device's memory. */
void api_describe_device(rt_device *d, xlac_device_info *out) {
  assert(d->facts.n_spaces > 0);
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

/* --- Counts of what happens where arrays come in and go out. --- */

/* Relaxed atomics: each count is right, two of them need not be of the same moment. */
struct xlac_counters {
  atomic_uint refs;
  _Atomic int64_t counts[XLAC_COUNTERS];
};

/* A row a counter. What is alive is not an event: a reset leaves it. */
static const struct {
  const char *name;
  bool alive;
} counter_rows[] = {
    [XLAC_COUNT_LIVE_BUFFERS] = {"live_buffers", true},
    [XLAC_COUNT_LIVE_BYTES] = {"live_bytes", true},
    [XLAC_COUNT_LIVE_VIEWS] = {"live_views", true},
    [XLAC_COUNT_ARRAYS_IN] = {"arrays_in", false},
    [XLAC_COUNT_BYTES_IN] = {"bytes_in", false},
    [XLAC_COUNT_COPIES_IN] = {"copies_in", false},
    [XLAC_COUNT_BYTES_COPIED_IN] = {"bytes_copied_in", false},
    [XLAC_COUNT_ARRAYS_OUT] = {"arrays_out", false},
    [XLAC_COUNT_BYTES_OUT] = {"bytes_out", false},
    [XLAC_COUNT_COPIES_OUT] = {"copies_out", false},
    [XLAC_COUNT_BYTES_COPIED_OUT] = {"bytes_copied_out", false},
    [XLAC_COUNT_DLPACK_IMPORTS] = {"dlpack_imports", false},
    [XLAC_COUNT_DLPACK_EXPORTS] = {"dlpack_exports", false},
    [XLAC_COUNT_TAKEN] = {"taken", false},
    [XLAC_COUNT_BYTES_TAKEN] = {"bytes_taken", false},
    [XLAC_COUNT_COPIES_PLAN] = {"copies_plan", false},
    [XLAC_COUNT_BYTES_COPIED_PLAN] = {"bytes_copied_plan", false},
    [XLAC_COUNT_COPIES_PROTECTION] = {"copies_protection", false},
    [XLAC_COUNT_BYTES_COPIED_PROTECTION] = {"bytes_copied_protection", false},
    [XLAC_COUNT_REUSED] = {"reused", false},
    [XLAC_COUNT_BYTES_REUSED] = {"bytes_reused", false},
};
_Static_assert(sizeof counter_rows / sizeof *counter_rows == XLAC_COUNTERS, "every counter has a row");

/* All zero; one reference. */
int xlac_counters_create(xlac_counters **out, xlac_error *err) {
  xlac_counters *c = base_malloc(base_alloc_libc, sizeof *c);
  if (!c) return base_oom(err, "making counters");
  atomic_init(&c->refs, 1);
  for (uint32_t i = 0; i < XLAC_COUNTERS; i++) atomic_init(&c->counts[i], 0);
  *out = c;
  return 0;
}

xlac_counters *xlac_counters_retain(xlac_counters *c) {
  if (c) atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}

void xlac_counters_release(xlac_counters *c) {
  if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) base_free(base_alloc_libc, c);
}

/* NULL counters and numbers of newer headers are ignored, so callers need not ask. */
void xlac_counters_add(xlac_counters *c, uint32_t counter, int64_t n) {
  if (c && counter < XLAC_COUNTERS) atomic_fetch_add_explicit(&c->counts[counter], n, memory_order_relaxed);
}

int64_t xlac_counters_get(const xlac_counters *c, uint32_t counter) {
  return c && counter < XLAC_COUNTERS ? atomic_load_explicit(&c->counts[counter], memory_order_relaxed) : 0;
}

void xlac_counters_reset(xlac_counters *c) {
  for (uint32_t i = 0; c && i < XLAC_COUNTERS; i++)
    if (!counter_rows[i].alive) atomic_store_explicit(&c->counts[i], 0, memory_order_relaxed);
}

const char *xlac_counter_name(uint32_t counter) {
  return counter < XLAC_COUNTERS ? counter_rows[counter].name : NULL;
}
