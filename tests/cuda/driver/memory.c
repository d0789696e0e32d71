/* Memory: each allocation is a mapping of its own, at an odd multiple of 256 bytes and up to its last byte, with pages
 * around it that nothing may touch. What is freed stays mapped without access for a long time, so that its late use is
 * found. New memory is full of what no program wants. */
#include "sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, OFFSET = 256, KEPT = 1 << 14 };
static const uint64_t GARBAGE = 0xfff7fbfdfff7fbfdu; /* a NaN in every float type, and no small integer */

typedef struct sim_pool {
  sim_device *device;
  uint64_t threshold;
  size_t most, used;
  bool destroyed;
} sim_pool;

/* ---- mappings ---- */

static struct {
  void *at;
  size_t bytes;
} kept[KEPT]; /* mappings of what is freed, the oldest is given back */
static uint32_t n_kept;

static void keep_mapping(void *at, size_t bytes) {
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  uint32_t slot = n_kept++ % KEPT;
  if (kept[slot].at != NULL) {
    shadow_forget((address)(uintptr_t)kept[slot].at, kept[slot].bytes); /* the host's memory may be there next */
    munmap(kept[slot].at, kept[slot].bytes);
  }
  kept[slot].at = at;
  kept[slot].bytes = bytes;
}

static void fill(void *at, size_t bytes) {
  uint64_t *p = at;
  for (size_t i = 0; i < bytes / 8; i++) p[i] = GARBAGE;
  memcpy(p + bytes / 8, &GARBAGE, bytes % 8);
}

static int map(allocation *a, size_t bytes) {
  size_t inner = (OFFSET + bytes + PAGE - 1) / PAGE * PAGE;
  if (inner < bytes) return OUT_OF_MEMORY;
  a->mapped = inner + 2 * PAGE;
  a->mapping = mmap(NULL, a->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (a->mapping == MAP_FAILED) return OUT_OF_MEMORY;
  char *at = (char *)a->mapping + PAGE;
  if (mprotect(at, inner, PROT_READ | PROT_WRITE) != 0) return munmap(a->mapping, a->mapped), OUT_OF_MEMORY;
  a->at = (address)(uintptr_t)at + OFFSET;
  fill(at, inner);
  return SUCCESS;
}

/* ---- allocations; sim.lock held ---- */

static int make(sim_device *d, size_t bytes, memory_kind kind, allocation **out) {
  if (bytes == 0) return INVALID_VALUE;
  if (kind == MEMORY_DEVICE && bytes > d->total - d->used) return OUT_OF_MEMORY;
  allocation *a = calloc(1, sizeof *a);
  *a = (allocation){.bytes = bytes, .kind = kind, .device = d->ordinal, .owned = true, .number = ++sim.n_allocations};
  int result = map(a, bytes);
  if (result != SUCCESS) return free(a), result;
  protect_new(a);
  shadow_add(a);
  if (kind == MEMORY_DEVICE) d->used += bytes;
  a->next = sim.allocations;
  if (a->next != NULL) a->next->previous = a;
  sim.allocations = a;
  *out = a;
  return SUCCESS;
}

static void unlink_allocation(allocation *a) {
  if (a->previous != NULL)
    a->previous->next = a->next;
  else
    sim.allocations = a->next;
  if (a->next != NULL) a->next->previous = a->previous;
  if (a->kind == MEMORY_DEVICE) sim.devices[a->device].used -= a->bytes;
  if (a->pool != NULL) a->pool->used -= a->bytes;
}

/* Its record stays, for its pages name it. sim.executing held, too. */
static void end(allocation *a, uint32_t op) {
  a->freed = true;
  a->gone = op;
  shadow_remove(a);
  keep_mapping(a->mapping, a->mapped);
}

/* An allocation that begins at an address and may be freed; reports what is wrong with it. */
static allocation *find_live(address at, memory_kind kind, const char *call) {
  sim_page *page = shadow_page(at);
  allocation *a = page != NULL ? page->owner : NULL;
  if (a == NULL || a->at != at || a->kind != kind || !a->owned) {
    report(INVALID_VALUE, "%s of 0x%llx, where no allocation begins", call, (unsigned long long)at);
    return NULL;
  }
  if (!a->freed && a->dying == 0) return a;
  report(INVALID_VALUE, "%s of 0x%llx, which was freed before", call, (unsigned long long)at);
  return NULL;
}

/* Waits for the device, as the documentation says, and frees. */
static int free_now(address at, memory_kind kind, const char *call) {
  pthread_mutex_lock(&sim.executing);
  pthread_mutex_lock(&sim.lock);
  allocation *a = find_live(at, kind, call);
  if (a != NULL) {
    a->dying = 1;
    unlink_allocation(a);
  }
  pthread_mutex_unlock(&sim.lock);
  pthread_mutex_unlock(&sim.executing);
  if (a == NULL) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  streams_wait_all(&sim.devices[a->device]);
  pthread_mutex_unlock(&sim.lock);
  pthread_mutex_lock(&sim.executing);
  end(a, 0);
  pthread_mutex_unlock(&sim.executing);
  return SUCCESS;
}

EXPORT int cuMemAlloc_v2(address *at, size_t bytes) {
  sim_device *d;
  ENTER_DEVICE(cuMemAlloc_v2, &d);
  if (at == NULL) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  allocation *a = NULL;
  int result = make(d, bytes, MEMORY_DEVICE, &a);
  if (result == SUCCESS) *at = a->at;
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuMemFree_v2(address at) {
  ENTER_DEVICE(cuMemFree_v2, NULL);
  return at == 0 ? SUCCESS : free_now(at, MEMORY_DEVICE, "cuMemFree");
}

EXPORT int cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
  sim_device *d;
  ENTER_DEVICE(cuMemHostAlloc, &d);
  if (at == NULL || flags > 7) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  allocation *a = NULL;
  int result = make(d, bytes, MEMORY_HOST, &a);
  if (result == SUCCESS) *at = (void *)(uintptr_t)a->at;
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuMemAllocHost_v2(void **at, size_t bytes) {
  ENTER(cuMemAllocHost_v2);
  return cuMemHostAlloc(at, bytes, 0);
}

EXPORT int cuMemFreeHost(void *at) {
  ENTER_DEVICE(cuMemFreeHost, NULL);
  return at == NULL ? INVALID_VALUE : free_now((address)(uintptr_t)at, MEMORY_HOST, "cuMemFreeHost");
}

EXPORT int cuMemHostGetDevicePointer_v2(address *out, void *at, unsigned flags) {
  ENTER_DEVICE(cuMemHostGetDevicePointer_v2, NULL);
  if (out == NULL || flags != 0 || shadow_find((address)(uintptr_t)at) == NULL) return INVALID_VALUE;
  *out = (address)(uintptr_t)at;
  return SUCCESS;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  sim_device *d;
  ENTER_DEVICE(cuMemGetInfo_v2, &d);
  pthread_mutex_lock(&sim.lock);
  if (free_bytes != NULL) *free_bytes = d->total - d->used;
  if (total != NULL) *total = d->total;
  pthread_mutex_unlock(&sim.lock);
  return SUCCESS;
}

/* CUpointer_attribute: 1 context, 2 kind, 3 device's pointer, 4 host's pointer, 9 device, 11 start, 12 bytes. */
EXPORT int cuPointerGetAttribute(void *value, int attribute, address at) {
  ENTER_DEVICE(cuPointerGetAttribute, NULL);
  pthread_mutex_lock(&sim.lock);
  allocation *a = shadow_find(at);
  int result = value != NULL && a != NULL && !a->freed ? SUCCESS : INVALID_VALUE;
  if (result == SUCCESS) switch (attribute) {
      case 1:
        *(void **)value = &sim.devices[a->device];
        break;
      case 2:
        *(unsigned *)value = a->kind == MEMORY_DEVICE ? 2 : 1;
        break;
      case 3:
        *(address *)value = at;
        break;
      case 4:
        if (a->kind == MEMORY_DEVICE)
          result = INVALID_VALUE;
        else
          *(void **)value = (void *)(uintptr_t)at;
        break;
      case 9:
        *(int *)value = a->device;
        break;
      case 11:
        *(address *)value = a->at;
        break;
      case 12:
        *(size_t *)value = a->bytes;
        break;
      default:
        result = NOT_SUPPORTED;
    }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

/* ---- pools, and memory in the order of streams ---- */

/* CUmemPoolProps, the part that is looked at. */
typedef struct pool_properties {
  int allocation, handles, location_type, location;
  void *security;
  size_t most;
} pool_properties;

EXPORT int cuMemPoolCreate(void **pool, const pool_properties *p) {
  ENTER_DEVICE(cuMemPoolCreate, NULL);
  if (pool == NULL || p == NULL || p->allocation != 1 || p->location_type != 1) return INVALID_VALUE;
  if (p->location < 0 || p->location >= sim.n_devices) return INVALID_DEVICE;
  sim_pool *made = calloc(1, sizeof *made);
  *made = (sim_pool){.device = &sim.devices[p->location], .most = p->most};
  pthread_mutex_lock(&sim.lock);
  sim.n_pools++;
  pthread_mutex_unlock(&sim.lock);
  *pool = made;
  return SUCCESS;
}

EXPORT int cuMemPoolDestroy(sim_pool *pool) {
  ENTER_DEVICE(cuMemPoolDestroy, NULL);
  if (pool == NULL || pool->destroyed) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  pool->destroyed = true; /* what is allocated from it lives on */
  sim.n_pools--;
  pthread_mutex_unlock(&sim.lock);
  return SUCCESS;
}

EXPORT int cuDeviceGetDefaultMemPool(sim_pool **pool, int device) {
  static sim_pool pools[DEVICES_MAX];
  ENTER(cuDeviceGetDefaultMemPool);
  if (device < 0 || device >= sim.n_devices) return INVALID_DEVICE;
  pools[device].device = &sim.devices[device];
  *pool = &pools[device];
  return SUCCESS;
}

/* CUmemPool_attribute: 1 to 3 are what may be used again when, 4 the threshold, 5 and 7 bytes now, 6 and 8 at most. */
EXPORT int cuMemPoolSetAttribute(sim_pool *pool, int attribute, void *value) {
  ENTER_DEVICE(cuMemPoolSetAttribute, NULL);
  if (pool == NULL || pool->destroyed || value == NULL || attribute < 1 || attribute > 8) return INVALID_VALUE;
  if (attribute == 4) pool->threshold = *(uint64_t *)value;
  return SUCCESS;
}

EXPORT int cuMemPoolGetAttribute(sim_pool *pool, int attribute, void *value) {
  ENTER_DEVICE(cuMemPoolGetAttribute, NULL);
  if (pool == NULL || pool->destroyed || value == NULL || attribute < 1 || attribute > 8) return INVALID_VALUE;
  if (attribute < 4)
    *(int *)value = 1;
  else
    *(uint64_t *)value = attribute == 4 ? pool->threshold : pool->used;
  return SUCCESS;
}

EXPORT int cuMemPoolTrimTo(sim_pool *pool, size_t bytes) {
  ENTER_DEVICE(cuMemPoolTrimTo, NULL);
  (void)bytes;
  return pool == NULL || pool->destroyed ? INVALID_VALUE : SUCCESS;
}

typedef struct memory_work {
  sim_work work;
  allocation *a;
} memory_work;

static int begin_life(sim_work *w) {
  (void)w;
  return SUCCESS;
}

EXPORT int cuMemAllocFromPoolAsync(address *at, size_t bytes, sim_pool *pool, void *stream) {
  ENTER_DEVICE(cuMemAllocFromPoolAsync, NULL);
  if (at == NULL || pool == NULL || pool->destroyed) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  allocation *a = NULL;
  int result = s == NULL ? INVALID_HANDLE : s->capture != NULL ? NOT_SUPPORTED : SUCCESS;
  if (result == SUCCESS && pool->most > 0 && bytes > pool->most - pool->used) result = OUT_OF_MEMORY;
  if (result == SUCCESS) result = make(pool->device, bytes, MEMORY_DEVICE, &a);
  if (result == SUCCESS) {
    memory_work *w = calloc(1, sizeof *w);
    w->work.execute = begin_life;
    a->pool = pool;
    pool->used += bytes;
    result = stream_enqueue(s, &w->work, "allocation", "");
    a->made = w->work.op->id;
    *at = a->at;
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuMemAllocAsync(address *at, size_t bytes, void *stream) {
  sim_device *d;
  sim_pool *pool = NULL;
  ENTER_DEVICE(cuMemAllocAsync, &d);
  int result = cuDeviceGetDefaultMemPool(&pool, d->ordinal);
  return result != SUCCESS ? result : cuMemAllocFromPoolAsync(at, bytes, pool, stream);
}

/* A free is a write of all of it: whatever touched it must be ordered before. */
static int end_life(sim_work *w) {
  allocation *a = ((memory_work *)w)->a;
  touch.op = w->op;
  touch.kernel = NULL;
  touch.acquired = NULL;
  touch.mark = (sim_mark){.op = w->op->id};
  int result = shadow_range(a->at, a->bytes, ACCESS_WRITE);
  end(a, w->op->id);
  return result;
}

EXPORT int cuMemFreeAsync(address at, void *stream) {
  ENTER_DEVICE(cuMemFreeAsync, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  allocation *a = NULL;
  int result = s == NULL ? INVALID_HANDLE : s->capture != NULL ? NOT_SUPPORTED : SUCCESS;
  if (result == SUCCESS && (a = find_live(at, MEMORY_DEVICE, "cuMemFreeAsync")) == NULL) result = INVALID_VALUE;
  if (result == SUCCESS) {
    memory_work *w = calloc(1, sizeof *w);
    w->work.execute = end_life;
    w->a = a;
    a->dying = 1;
    unlink_allocation(a);
    result = stream_enqueue(s, &w->work, "free", "");
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}
