/* A GPU's row of the device table: the driver is loaded, its primary context kept, facts are asked for once. */
#include "device.h"

#include <time.h>

#include "product.h"

enum {
  CU_DEVICE_KEEP_MEMORY = 1 << 30, /* of the pool, between calls */
  CU_DEVICE_LANE_SHARE = 16,       /* of memory: the most that an idle lane keeps */
  CU_DEVICE_CACHE = 192 << 10,     /* of a multiprocessor, roughly: the driver doesn't say */
  CU_DEVICE_TILES = 8 << 10        /* bytes: for any more, one launch takes less time than several */
};

int cuda_enter(cuda_device *d, xlac_error *err) {
  if (d->process != getpid())
    return base_hint(err, base_fail(err, XLAC_E_DEVICE, "a forked process can't use the GPUs of its parent"),
                     "start the process with spawn, or open the device in the child");
  return cuda_check(&d->driver, d->driver.cuCtxPushCurrent_v2(d->context), "entering the GPU's context", err);
}

void cuda_leave(cuda_device *d) {
  cuda_context was = NULL;
  bool left = d->driver.cuCtxPopCurrent_v2(&was) == 0;
  assert(!left || was == d->context);
  (void)left;
}

/* --- lanes --- */

int cuda_lane_take(cuda_device *d, cuda_lane *out, xlac_error *err) {
  cuda_lane lane = {.stream = NULL};
  pthread_mutex_lock(&d->lock);
  if (d->idle.n) lane = d->idle.items[--d->idle.n];
  pthread_mutex_unlock(&d->lock);
  if (!lane.stream)
    TRY(cuda_check(&d->driver, d->driver.cuStreamCreate(&lane.stream, CUDA_STREAM_NON_BLOCKING), "making a stream",
                   err));
  *out = lane;
  return 0;
}

static void cu_device_drop_block(cuda_device *d, cuda_lane *lane) {
  cuda_give(d, lane->block, lane->stream);
  lane->block = 0;
  lane->bytes = 0;
}

/* Whose block is given back. */
static void cu_device_end_lane(cuda_device *d, cuda_lane *lane) {
  if (lane->stop) d->driver.cuMemFreeHost(lane->stop);
  d->driver.cuStreamDestroy_v2(lane->stream);
}

int cuda_lane_reserve_stop(cuda_device *d, cuda_lane *lane, xlac_error *err) {
  void *at = NULL;
  if (lane->stop) return 0;
  TRY(cuda_check(&d->driver, d->driver.cuMemHostAlloc(&at, sizeof *lane->stop, CUDA_HOST_PORTABLE),
                 "out of memory: pinned memory", err));
  lane->stop = at;
  return 0;
}

/* What is large for the device is not kept from others. */
void cuda_lane_give(cuda_device *d, cuda_lane *lane) {
  assert(lane->stream);
  if (lane->bytes > d->base.device.facts.spaces[CUDA_SPACE_DEVICE].bytes / CU_DEVICE_LANE_SHARE)
    cu_device_drop_block(d, lane);
  pthread_mutex_lock(&d->lock);
  bool kept = BASE_VEC_PUSH(d->base.alloc, &d->idle, *lane);
  pthread_mutex_unlock(&d->lock);
  if (kept) return;
  cu_device_drop_block(d, lane);
  cu_device_end_lane(d, lane);
}

int cuda_lane_reserve(cuda_device *d, cuda_lane *lane, size_t bytes, xlac_error *err) {
  if (bytes <= lane->bytes) return 0;
  cu_device_drop_block(d, lane);
  TRY(cuda_take(d, bytes, lane->stream, &lane->block, err));
  lane->bytes = bytes;
  return 0;
}

void cuda_lanes_trim(cuda_device *d) {
  pthread_mutex_lock(&d->lock);
  for (uint32_t i = 0; i < d->idle.n; i++) cu_device_drop_block(d, &d->idle.items[i]);
  pthread_mutex_unlock(&d->lock);
  cuda_spares_trim(d);
}

static double cu_device_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Looks again and again at first, as sleeping takes the host 50 us and more; then more and more rarely, at least every
 * millisecond. */
bool cuda_asks(cuda_device *d, cuda_stream stream, bool (*interrupted)(void *ctx), void *ctx, bool *done) {
  const double began = cu_device_now(), awake = 200e-6;
  double asked = began;
  cuda_result result;
  for (unsigned pause = 20; (result = d->driver.cuStreamQuery(stream)) == CUDA_NOT_READY;) {
    double now = cu_device_now();
    if (now - began > awake) {
      usleep(pause);
      pause += pause < 1000 ? pause / 4 + 1 : 0;
    }
    if (now - asked < 0.05) continue;
    if (interrupted(ctx)) return true;
    asked = cu_device_now();
  }
  *done = result == CUDA_SUCCESS;
  return false;
}

int cuda_wait(cuda_device *d, cuda_stream stream, bool (*interrupted)(void *ctx), void *ctx, xlac_error *err) {
  bool done = false, stopped = interrupted && cuda_asks(d, stream, interrupted, ctx, &done);
  if (done) return 0;
  int status = cuda_check(&d->driver, d->driver.cuStreamSynchronize(stream), "waiting for the GPU", err);
  if (status)
    return err ? base_hint(err, status, "XLAC_CUDA_CHECK=1 waits after each step, and names the one that fails")
               : status;
  return stopped ? base_fail(err, XLAC_E_INTERRUPTED, "the run was interrupted") : 0;
}

/* --- the device --- */

/* What was made so far, whatever failed. */
static void cuda_device_destroy(rt_device *device) {
  cuda_device *d = cuda_device_of(device);
  xlac_error err;
  if (d->retained && cuda_enter(d, &err) == 0) {
    if (d->memory) d->driver.cuStreamSynchronize(d->memory);
    cuda_lanes_trim(d);
    cuda_products_end(d);
    for (uint32_t i = 0; i < d->idle.n; i++) cu_device_end_lane(d, &d->idle.items[i]);
    if (d->conditions) d->driver.cuModuleUnload(d->conditions);
    if (d->memory) d->driver.cuStreamDestroy_v2(d->memory);
    if (d->pool) d->driver.cuMemPoolDestroy(d->pool);
    cuda_leave(d);
    d->driver.cuDevicePrimaryCtxRelease_v2(d->device);
  }
  BASE_VEC_FREE(d->base.alloc, &d->idle);
  pthread_mutex_destroy(&d->lock);
  rt_host_device_destroy(device);
}

static const rt_device_vtable cuda_device_vtable = {.destroy = cuda_device_destroy,
                                                    .allocate = cuda_device_allocate,
                                                    .release = cuda_device_release,
                                                    .stats = cuda_device_stats,
                                                    .queue = cuda_queue_create,
                                                    .copy = cuda_device_copy,
                                                    .join = cuda_device_join,
                                                    .begin = cuda_build_begin};

/* 0 where the driver doesn't know. */
static int cu_device_attribute(const cuda_device *d, cuda_attribute attribute) {
  int value = 0;
  return d->driver.cuDeviceGetAttribute(&value, attribute, d->device) == CUDA_SUCCESS ? value : 0;
}

int cuda_device_count(uint32_t *out, xlac_error *err) {
  cuda_driver d;
  int n = 0;
  TRY(cuda_driver_begin(&d, err));
  TRY(cuda_check(&d, d.cuDeviceGetCount(&n), "counting GPUs", err));
  *out = (uint32_t)n;
  return 0;
}

static int cu_device_find(cuda_device *d, uint32_t ordinal, xlac_error *err) {
  int n = 0;
  TRY(cuda_driver_open(&d->driver, err));
  TRY(cuda_check(&d->driver, d->driver.cuDeviceGetCount(&n), "counting GPUs", err));
  if (ordinal >= (uint32_t)n)
    return base_hint(err, base_fail(err, XLAC_E_DEVICE, "there is no cuda:%u: the driver has %d GPUs", ordinal, n),
                     "CUDA_VISIBLE_DEVICES says which GPUs a process sees");
  TRY(cuda_check(&d->driver, d->driver.cuDeviceGet(&d->device, (int)ordinal), "opening the GPU", err));
  TRY(cuda_check(&d->driver, d->driver.cuDevicePrimaryCtxRetain(&d->context, d->device), "opening the GPU", err));
  d->retained = true;
  return 0;
}

static int cu_device_describe(cuda_device *d, xlac_error *err) {
  size_t bytes = 0;
  rt_device_facts *f = &d->base.device.facts;
  TRY(cuda_check(&d->driver, d->driver.cuDeviceTotalMem_v2(&bytes, d->device), "asking the GPU for its memory", err));
  if (d->driver.cuDeviceGetName(d->name, (int)sizeof d->name, d->device)) d->name[0] = 0;
  d->major = cu_device_attribute(d, CUDA_CAPABILITY_MAJOR);
  d->minor = cu_device_attribute(d, CUDA_CAPABILITY_MINOR);
  int units = cu_device_attribute(d, CUDA_MULTIPROCESSORS), level2 = cu_device_attribute(d, CUDA_L2_BYTES);
  f->units = units > 0 ? (uint32_t)units : 1;
  f->calls_on_host = false;
  f->compute = (rt_compute_facts){.vector_bytes = 128,
                                  .cache_bytes = {CU_DEVICE_CACHE, (uint64_t)level2, (uint64_t)level2},
                                  .tiles_from = CU_DEVICE_TILES,
                                  .native = true};
  f->spaces[CUDA_SPACE_PINNED] = (rt_space){"pinned", true, f->spaces[0].bytes};
  f->spaces[CUDA_SPACE_DEVICE] = (rt_space){"device", false, bytes};
  f->n_spaces = 2;
  return 0;
}

static int cu_device_open(cuda_device *d, xlac_error *err) {
  const cuda_pool_properties plain = {.allocation = 1, .location_type = 1, .location = d->device};
  uint64_t keep = CU_DEVICE_KEEP_MEMORY;
  const cuda_driver *c = &d->driver;
  TRY(cuda_check(c, c->cuMemPoolCreate(&d->pool, &plain), "making a pool of GPU memory", err));
  TRY(cuda_check(c, c->cuMemPoolSetAttribute(d->pool, CUDA_POOL_RELEASE_THRESHOLD, &keep), "making a pool", err));
  return cuda_check(c, c->cuStreamCreate(&d->memory, CUDA_STREAM_NON_BLOCKING), "making a stream", err);
}

int cuda_device_create(rt_device **out, const interp_library *library, uint32_t ordinal, base_alloc alloc,
                       xlac_error *err) {
  rt_host_device *base = NULL;
  TRY(rt_host_device_create(&base, sizeof(cuda_device), &cuda_device_vtable, "cuda", ordinal, alloc, err));
  cuda_device *d = cuda_device_of(&base->device);
  d->library = library;
  d->process = getpid();
  pthread_mutex_init(&d->lock, NULL);
  int status = cu_device_find(d, ordinal, err);
  if (status == 0) status = cu_device_describe(d, err);
  if (status == 0) status = cuda_enter(d, err);
  if (status == 0) {
    status = cu_device_open(d, err);
    cuda_leave(d);
  }
  if (status)
    rt_device_release(&d->base.device);
  else
    *out = &d->base.device;
  return status;
}
