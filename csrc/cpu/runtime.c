#include "runtime.h"

#include <stdatomic.h>

/* Pools are only ever added to the list, each by one exchange, so that it needs no lock that a fork could catch held.
 */
typedef struct runtime_pool {
  struct runtime_pool *next;
  base_pool *pool;
} runtime_pool;

typedef struct runtime_lane {
  struct runtime_lane *next;
  base_lane *lane;
  char name[];
} runtime_lane;

struct cpu_runtime {
  base_alloc alloc;
  atomic_uint refs;
  base_recycler *memory;
  runtime_pool *_Atomic pools;
  runtime_lane *_Atomic lanes;
  atomic_uint cpus; /* 0: not counted yet */
};

int cpu_runtime_create(cpu_runtime **out, base_alloc alloc, xlac_error *err) {
  cpu_runtime *rt = base_malloc(alloc, sizeof *rt);
  if (!rt) return base_oom(err, "a runtime");
  memset(rt, 0, sizeof *rt);
  rt->alloc = alloc;
  atomic_init(&rt->refs, 1);
  int status = base_recycler_create(&rt->memory, alloc, err);
  if (status) {
    base_free(alloc, rt);
    return status;
  }
  *out = rt;
  return 0;
}

cpu_runtime *cpu_runtime_retain(cpu_runtime *rt) {
  atomic_fetch_add_explicit(&rt->refs, 1, memory_order_relaxed);
  return rt;
}

static void runtime_free_lanes(cpu_runtime *rt) {
  runtime_lane *l = atomic_load(&rt->lanes);
  while (l) {
    runtime_lane *next = l->next;
    base_lane_destroy(l->lane);
    base_free(rt->alloc, l);
    l = next;
  }
}

void cpu_runtime_release(cpu_runtime *rt) {
  if (!rt || atomic_fetch_sub_explicit(&rt->refs, 1, memory_order_acq_rel) != 1) return;
  runtime_pool *p = atomic_load(&rt->pools);
  while (p) {
    runtime_pool *next = p->next;
    base_pool_destroy(p->pool);
    base_free(rt->alloc, p);
    p = next;
  }
  runtime_free_lanes(rt);
  base_recycler_release(rt->memory);
  base_free(rt->alloc, rt);
}

base_recycler *cpu_runtime_memory(cpu_runtime *rt) {
  return rt->memory;
}

static base_pool *runtime_find(const cpu_runtime *rt, uint32_t size) {
  for (runtime_pool *p = atomic_load(&rt->pools); p; p = p->next)
    if (base_pool_size(p->pool) == size) return p->pool;
  return NULL;
}

/* Counting reads files, which takes longer than compiling a small program, so it is done once. */
static uint32_t runtime_cpus(cpu_runtime *rt) {
  uint32_t n = atomic_load_explicit(&rt->cpus, memory_order_relaxed);
  if (n) return n;
  n = base_cpu_count();
  atomic_store_explicit(&rt->cpus, n, memory_order_relaxed);
  return n;
}

int cpu_runtime_pool(cpu_runtime *rt, uint32_t threads, base_pool **out, xlac_error *err) {
  if (!threads) threads = runtime_cpus(rt);
  if ((*out = runtime_find(rt, threads))) return 0;
  runtime_pool *own = base_malloc(rt->alloc, sizeof *own);
  if (!own) return base_oom(err, "a thread pool");
  int status = base_pool_create(&own->pool, threads, rt->alloc, err);
  if (status) {
    base_free(rt->alloc, own);
    return status;
  }
  own->next = atomic_load(&rt->pools); /* two who ask at once may make two: either is right */
  while (!atomic_compare_exchange_weak(&rt->pools, &own->next, own)) {
  }
  *out = own->pool;
  return 0;
}

int cpu_runtime_lane(cpu_runtime *rt, const char *name, uint32_t threads, base_lane **out, xlac_error *err) {
  runtime_lane *own = atomic_load(&rt->lanes);
  while (own && (base_lane_size(own->lane) != threads || strcmp(own->name, name) != 0)) own = own->next;
  if (own) {
    *out = own->lane;
    return 0;
  }
  size_t bytes = strlen(name) + 1;
  if (!(own = base_malloc(rt->alloc, sizeof *own + bytes))) return base_oom(err, "a lane");
  memcpy(own->name, name, bytes);
  int status = base_lane_create(&own->lane, threads, rt->alloc, err);
  if (status) {
    base_free(rt->alloc, own);
    return status;
  }
  own->next = atomic_load(&rt->lanes);
  while (!atomic_compare_exchange_weak(&rt->lanes, &own->next, own)) {
  }
  *out = own->lane;
  return 0;
}

uint32_t cpu_runtime_threads(const cpu_runtime *rt) {
  uint32_t n = 0;
  for (runtime_pool *p = atomic_load(&rt->pools); p; p = p->next) n += base_pool_started(p->pool);
  for (runtime_lane *l = atomic_load(&rt->lanes); l; l = l->next) n += base_lane_started(l->lane);
  return n;
}
