/* A host has what computing on the CPU shares: memory that is used again, pools of threads by size, lanes
 * by name and size, and the number of CPUs. Pools and lanes are made at first use and live as long as the
 * host. */
#include "host.h"

#include <stdatomic.h>

/* Pools are only ever added to the list, each by one exchange, so that it needs no lock that a fork could catch held.
 */
typedef struct host_pool {
  struct host_pool *next;
  rt_pool *pool;
} host_pool;

typedef struct host_lane {
  struct host_lane *next;
  rt_lane *lane;
  char name[];
} host_lane;

struct rt_host {
  base_alloc alloc;
  atomic_uint refs;
  rt_recycler *memory;
  host_pool *_Atomic pools;
  host_lane *_Atomic lanes;
  atomic_uint cpus; /* 0: not counted yet */
};

int rt_host_create(rt_host **out, base_alloc alloc, xlac_error *err) {
  rt_host *h = base_malloc(alloc, sizeof *h);
  if (!h) return base_oom(err, "a host");
  memset(h, 0, sizeof *h);
  h->alloc = alloc;
  atomic_init(&h->refs, 1);
  int status = rt_recycler_create(&h->memory, alloc, err);
  if (status) {
    base_free(alloc, h);
    return status;
  }
  *out = h;
  return 0;
}

rt_host *rt_host_retain(rt_host *h) {
  assert(atomic_load(&h->refs) > 0);
  atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
  return h;
}

/* Nobody runs on them any more: runs hold references to the host. */
static void host_free_lanes(rt_host *h) {
  host_lane *l = atomic_load(&h->lanes);
  while (l) {
    host_lane *next = l->next;
    rt_lane_destroy(l->lane);
    base_free(h->alloc, l);
    l = next;
  }
}

void rt_host_release(rt_host *h) {
  if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1) return;
  host_pool *p = atomic_load(&h->pools);
  while (p) {
    host_pool *next = p->next;
    rt_pool_destroy(p->pool);
    base_free(h->alloc, p);
    p = next;
  }
  host_free_lanes(h);
  rt_recycler_release(h->memory);
  base_free(h->alloc, h);
}

/* Blocks keep what they need of it, so they may outlive the host. */
rt_recycler *rt_host_memory(rt_host *h) {
  return h->memory;
}

/* The first of that size; a second one that a race has made stays unused. */
static rt_pool *host_find(const rt_host *h, uint32_t size) {
  for (host_pool *p = atomic_load(&h->pools); p; p = p->next)
    if (rt_pool_size(p->pool) == size) return p->pool;
  return NULL;
}

/* Counting reads files, which takes longer than compiling a small program, so it is done once. */
uint32_t rt_host_cpus(rt_host *h) {
  uint32_t n = atomic_load_explicit(&h->cpus, memory_order_relaxed);
  if (n) return n;
  n = rt_cpu_count();
  atomic_store_explicit(&h->cpus, n, memory_order_relaxed);
  return n;
}

int rt_host_pool(rt_host *h, uint32_t threads, rt_pool **out, xlac_error *err) {
  if (!threads) threads = rt_host_cpus(h);
  if ((*out = host_find(h, threads))) return 0;
  host_pool *own = base_malloc(h->alloc, sizeof *own);
  if (!own) return base_oom(err, "a thread pool");
  int status = rt_pool_create(&own->pool, threads, h->alloc, err);
  if (status) {
    base_free(h->alloc, own);
    return status;
  }
  own->next = atomic_load(&h->pools); /* two who ask at once may make two: either is right */
  while (!atomic_compare_exchange_weak(&h->pools, &own->next, own)) {
  }
  *out = own->pool;
  return 0;
}

/* Lanes of one name and size are one: programs that name a thread share it. */
int rt_host_lane(rt_host *h, const char *name, uint32_t threads, rt_lane **out, xlac_error *err) {
  host_lane *own = atomic_load(&h->lanes);
  while (own && (rt_lane_size(own->lane) != threads || strcmp(own->name, name) != 0)) own = own->next;
  if (own) {
    *out = own->lane;
    return 0;
  }
  size_t bytes = strlen(name) + 1;
  if (!(own = base_malloc(h->alloc, sizeof *own + bytes))) return base_oom(err, "a lane");
  memcpy(own->name, name, bytes);
  int status = rt_lane_create(&own->lane, threads, h->alloc, err);
  if (status) {
    base_free(h->alloc, own);
    return status;
  }
  own->next = atomic_load(&h->lanes);
  while (!atomic_compare_exchange_weak(&h->lanes, &own->next, own)) {
  }
  *out = own->lane;
  return 0;
}

/* Started, not merely allowed. */
uint32_t rt_host_threads(const rt_host *h) {
  uint32_t n = 0;
  for (host_pool *p = atomic_load(&h->pools); p; p = p->next) n += rt_pool_started(p->pool);
  for (host_lane *l = atomic_load(&h->lanes); l; l = l->next) n += rt_lane_started(l->lane);
  return n;
}
