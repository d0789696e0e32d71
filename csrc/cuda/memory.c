/* Memory of a GPU: blocks of a pool of the driver's, in the order of a stream; and pinned memory of the host's. */
#include <stdio.h>

#include "context.h"

enum { CU_MEMORY_SPARE = 1 << 20 /* bytes: taking more is soon forgotten beside filling it */ };

int cuda_take(cuda_device *d, size_t bytes, cuda_stream stream, cuda_address *out, xlac_error *err) {
  char doing[80];
  cuda_address at = 0;
  cuda_result result = d->driver.cuMemAllocFromPoolAsync(&at, bytes ? bytes : 1, d->pool, stream);
  if (result == CUDA_OUT_OF_MEMORY) { /* what is free may be in others' blocks until their streams are done */
    cuda_lanes_trim(d);
    d->driver.cuCtxSynchronize();
    d->driver.cuMemPoolTrimTo(d->pool, 0);
    result = d->driver.cuMemAllocFromPoolAsync(&at, bytes ? bytes : 1, d->pool, stream);
  }
  if (result == CUDA_SUCCESS) {
    assert(at % 64 == 0);
    *out = at;
    return 0;
  }
  snprintf(doing, sizeof doing, "out of memory: %zu bytes of GPU memory", bytes);
  return cuda_check(&d->driver, result, doing, err);
}

void cuda_give(cuda_device *d, cuda_address at, cuda_stream stream) {
  if (at) d->driver.cuMemFreeAsync(at, stream);
}

/* Pinned memory is the host's: the GPU sees it, too, but calls copy it. */
bool cuda_is_device_memory(const cuda_device *d, const void *at) {
  unsigned type = 0;
  if (!at) return false;
  return d->driver.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (cuda_address)(uintptr_t)at) ==
             CUDA_SUCCESS &&
         type == CUDA_MEMORY_DEVICE;
}

/* --- what is out --- */

static cuda_block **cu_memory_slot(cuda_device *d, uintptr_t at) {
  return &d->blocks[(at >> 8 ^ at >> 18) % CUDA_BLOCK_SLOTS];
}

/* Takes b. */
static void cu_memory_note(cuda_device *d, cuda_block *b) {
  pthread_mutex_lock(&d->lock);
  cuda_block **slot = cu_memory_slot(d, b->at);
  b->next = *slot;
  *slot = b;
  d->stats.live++;
  d->stats.live_bytes += b->bytes;
  if (d->stats.live_bytes > d->stats.peak_bytes) d->stats.peak_bytes = d->stats.live_bytes;
  pthread_mutex_unlock(&d->lock);
}

/* The block at that address, which is the caller's from here on; NULL: it is spare now. */
static cuda_block *cu_memory_forget(cuda_device *d, uint32_t space, void *at) {
  pthread_mutex_lock(&d->lock);
  cuda_block **slot = cu_memory_slot(d, (uintptr_t)at), *b = NULL;
  while ((*slot)->at != (uintptr_t)at) slot = &(*slot)->next;
  b = *slot;
  *slot = b->next;
  d->stats.live--;
  d->stats.live_bytes -= b->bytes;
  bool spare = space == CUDA_SPACE_DEVICE && b->bytes <= CU_MEMORY_SPARE && d->n_spares < CUDA_SPARES;
  if (spare) d->spares[d->n_spares++] = b;
  pthread_mutex_unlock(&d->lock);
  return spare ? NULL : b;
}

/* Of so many bytes, that which was given back last; NULL: there is none. All work with it was waited for. */
static cuda_block *cu_memory_spare(cuda_device *d, size_t bytes) {
  cuda_block *b = NULL;
  pthread_mutex_lock(&d->lock);
  for (uint32_t i = d->n_spares; i-- > 0 && !b;) {
    if (d->spares[i]->bytes != bytes) continue;
    b = d->spares[i];
    memmove(&d->spares[i], &d->spares[i + 1], (--d->n_spares - i) * sizeof(cuda_block *));
  }
  pthread_mutex_unlock(&d->lock);
  return b;
}

void cuda_spares_trim(cuda_device *d) {
  pthread_mutex_lock(&d->lock);
  while (d->n_spares) {
    cuda_block *b = d->spares[--d->n_spares];
    cuda_give(d, b->at, d->memory);
    base_free(d->base.alloc, b);
  }
  pthread_mutex_unlock(&d->lock);
}

void cuda_device_stats(rt_device *device, rt_memory_stats *out) {
  cuda_device *d = cuda_device_of(device);
  pthread_mutex_lock(&d->lock);
  *out = d->stats;
  pthread_mutex_unlock(&d->lock);
}

/* --- for callers of the device: any stream may use it at once --- */

static int cu_memory_allocate(cuda_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err) {
  cuda_address at = 0;
  if (space == CUDA_SPACE_PINNED)
    return cuda_check(&d->driver, d->driver.cuMemHostAlloc(out, bytes ? bytes : 1, CUDA_HOST_PORTABLE),
                      "out of memory: pinned memory", err);
  TRY(cuda_take(d, bytes, d->memory, &at, err));
  *out = (void *)(uintptr_t)at;
  int status = cuda_wait(d, d->memory, NULL, NULL, err);
  if (status) cuda_give(d, at, d->memory);
  return status;
}

int cuda_device_allocate(rt_device *device, uint32_t space, size_t bytes, void **out, xlac_error *err) {
  cuda_device *d = cuda_device_of(device);
  char name[32];
  void *at = NULL;
  rt_device_name(device, name);
  if (bytes > device->facts.spaces[space].bytes)
    return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: %s has no %zu bytes", name, bytes);
  cuda_block *b = space == CUDA_SPACE_DEVICE && d->process == getpid() ? cu_memory_spare(d, bytes) : NULL;
  if (!b) {
    TRY(cuda_enter(d, err));
    b = base_malloc(d->base.alloc, sizeof *b);
    int status = b ? cu_memory_allocate(d, space, bytes, &at, err) : base_oom(err, "a block of GPU memory");
    cuda_leave(d);
    if (status) {
      base_free(d->base.alloc, b);
      return status;
    }
    *b = (cuda_block){.at = (uintptr_t)at, .bytes = bytes};
  }
  cu_memory_note(d, b);
  *out = (void *)b->at;
  return 0;
}

/* A process that can't use the device has none of its memory. */
void cuda_device_release(rt_device *device, uint32_t space, void *memory) {
  cuda_device *d = cuda_device_of(device);
  xlac_error err;
  cuda_block *b = cu_memory_forget(d, space, memory);
  if (!b) return;
  base_free(d->base.alloc, b);
  if (cuda_enter(d, &err)) return;
  if (space == CUDA_SPACE_PINNED)
    d->driver.cuMemFreeHost(memory);
  else
    cuda_give(d, (cuda_address)(uintptr_t)memory, d->memory);
  cuda_leave(d);
}

/* --- at once --- */

static cuda_result cu_memory_copy(cuda_device *d, const rt_copy *c) {
  cuda_address to = (cuda_address)(uintptr_t)c->to, from = (cuda_address)(uintptr_t)c->from;
  if (c->from_space == RT_HOST) return d->driver.cuMemcpyHtoDAsync_v2(to, c->from, c->bytes, d->memory);
  if (c->to_space == RT_HOST) return d->driver.cuMemcpyDtoHAsync_v2(c->to, from, c->bytes, d->memory);
  return d->driver.cuMemcpyDtoDAsync_v2(to, from, c->bytes, d->memory);
}

int cuda_device_copy(rt_device *device, const rt_copy *copy, xlac_error *err) {
  cuda_device *d = cuda_device_of(device);
  if (copy->bytes == 0) return 0;
  TRY(cuda_enter(d, err));
  int status = cuda_check(&d->driver, cu_memory_copy(d, copy), "copying an array", err);
  int waited = cuda_wait(d, d->memory, NULL, NULL, status ? NULL : err);
  cuda_leave(d);
  return status ? status : waited;
}

int cuda_device_join(rt_device *device, uint64_t stream, xlac_error *err) {
  cuda_device *d = cuda_device_of(device);
  TRY(cuda_enter(d, err));
  cuda_result result = stream == RT_ALL_STREAMS ? d->driver.cuCtxSynchronize()
                                                : d->driver.cuStreamSynchronize((cuda_stream)(uintptr_t)stream);
  int status = cuda_check(&d->driver, result, "waiting for a stream", err);
  cuda_leave(d);
  return status;
}
