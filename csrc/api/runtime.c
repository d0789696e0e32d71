/* What executables share. */
#include "../cpu/executable.h"
#include "api.h"

/* A handle is the inner struct under another name. */
static cpu_runtime *runtime_inner(xlac_runtime *rt) {
  return (cpu_runtime *)(void *)rt;
}

int xlac_runtime_create(xlac_runtime **out, xlac_error *err) {
  cpu_runtime *rt = NULL;
  TRY(cpu_runtime_create(&rt, base_alloc_libc, err));
  *out = (xlac_runtime *)(void *)rt;
  return 0;
}

void xlac_runtime_destroy(xlac_runtime *rt) {
  cpu_runtime_release(runtime_inner(rt));
}

uint64_t xlac_runtime_trim(xlac_runtime *rt, uint64_t keep) {
  return base_recycler_trim(cpu_runtime_memory(runtime_inner(rt)), keep);
}

void xlac_runtime_limit(xlac_runtime *rt, uint64_t bytes) {
  base_recycler_limit(cpu_runtime_memory(runtime_inner(rt)), bytes);
}

void xlac_runtime_get(xlac_runtime *rt, xlac_runtime_info *out) {
  base_recycler_info m;
  base_recycler_get(cpu_runtime_memory(runtime_inner(rt)), &m);
  *out = (xlac_runtime_info){.taken = m.taken,
                             .reused = m.reused,
                             .live = m.live,
                             .live_bytes = m.live_bytes,
                             .peak_bytes = m.peak_bytes,
                             .kept = m.kept,
                             .kept_bytes = m.kept_bytes,
                             .limit_bytes = m.limit_bytes,
                             .threads = cpu_runtime_threads(runtime_inner(rt))};
}

void *xlac_runtime_take(xlac_runtime *rt, size_t bytes) {
  return base_recycler_take(cpu_runtime_memory(runtime_inner(rt)), bytes);
}

void *xlac_runtime_take_headed(xlac_runtime *rt, uint32_t header, size_t bytes) {
  _Static_assert((int)XLAC_BLOCK_HEADER == (int)BASE_BLOCK_PREFIX, "every block has room for the largest header");
  return header <= XLAC_BLOCK_HEADER ? xlac_runtime_take(rt, bytes) : NULL;
}

void xlac_runtime_give(void *block) {
  base_recycler_give(block);
}
