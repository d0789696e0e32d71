/* Blocks: memory that buffers, runs and external references share. */
#include "pjrt.h"

pjrt_block *pjrt_block_create(void) {
  pjrt_block *b = pjrt_alloc(sizeof *b);
  if (!b) return NULL;
  atomic_init(&b->lives, 1);
  atomic_init(&b->users, 1);
  return b;
}

/* --- what a device has in use --- */

static void block_count(PJRT_Device *d, int64_t bytes) {
  int64_t now = atomic_fetch_add_explicit(&d->bytes, bytes, memory_order_relaxed) + bytes;
  assert(now >= 0 && "what is counted out was counted in");
  if (bytes <= 0) return;
  atomic_fetch_add_explicit(&d->allocations, 1, memory_order_relaxed);
  int64_t peak = atomic_load_explicit(&d->peak_bytes, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak(&d->peak_bytes, &peak, now)) continue;
  int64_t largest = atomic_load_explicit(&d->largest, memory_order_relaxed);
  while (bytes > largest && !atomic_compare_exchange_weak(&d->largest, &largest, bytes)) continue;
}

int pjrt_block_allocate(pjrt_block *b, PJRT_Device *d, size_t bytes, xlac_error *err) {
  assert(!b->data && "a block has one memory");
  if (!pjrt_is_here(d))
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "%s is a device of process %d", d->description.text,
                     d->description.process);
  b->data = xlac_runtime_take(d->client->runtime, bytes);
  if (!b->data) return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: a buffer of %zu bytes", bytes);
  b->bytes = bytes;
  b->release = xlac_runtime_give;
  b->ctx = b->data;
  b->device = d;
  if (!b->queue) b->queue = &d->work;
  block_count(d, (int64_t)bytes);
  return 0;
}

/* --- users --- */

/* The last user's leaving frees the memory, so that a count of 0 never goes up again. */
bool pjrt_block_use(pjrt_block *b) {
  unsigned n = atomic_load_explicit(&b->users, memory_order_relaxed);
  do {
    if (n == 0) return false;
  } while (!atomic_compare_exchange_weak_explicit(&b->users, &n, n + 1, memory_order_acquire, memory_order_relaxed));
  pjrt_block_keep(b);
  return true;
}

static void block_free_memory(pjrt_block *b) {
  assert(atomic_load(&b->users) == 0);
  if (b->device) block_count(b->device, -(int64_t)b->bytes);
  if (b->release) b->release(b->ctx);
  b->release = NULL;
  b->device = NULL;
  b->data = NULL;
}

void pjrt_block_leave(pjrt_block *b) {
  if (!b) return;
  unsigned before = atomic_fetch_sub_explicit(&b->users, 1, memory_order_acq_rel);
  assert(before > 0);
  if (before == 1) block_free_memory(b);
  pjrt_block_forget(b);
}

pjrt_block *pjrt_block_keep(pjrt_block *b) {
  unsigned before = atomic_fetch_add_explicit(&b->lives, 1, memory_order_relaxed);
  assert(before > 0);
  (void)before;
  return b;
}

void pjrt_block_forget(pjrt_block *b) {
  unsigned before = b ? atomic_fetch_sub_explicit(&b->lives, 1, memory_order_acq_rel) : 0;
  assert(!b || before > 0);
  if (before != 1) return;
  assert(!b->data && "users keep it, too");
  pjrt_free(b);
}

void pjrt_block_move(pjrt_block *to, pjrt_block *from) {
  assert(!to->data && !from->readonly);
  to->data = from->data;
  to->bytes = from->bytes;
  to->release = from->release;
  to->ctx = from->ctx;
  to->device = from->device;
  from->data = NULL;
  from->release = NULL;
  from->device = NULL;
}
