/* Counts of what happens where arrays come in and go out. */
#include <stdatomic.h>

#include "api.h"

struct xlac_counters {
  atomic_uint refs;
  _Atomic int64_t counts[XLAC_COUNTERS];
};

/* A row a counter. What is alive is no event: a reset leaves it. */
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
