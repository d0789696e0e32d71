/* Units: which kernels are compiled together, and compiling them on several threads. */
#include "units.h"

#include "../base/heed.h"

#include <stdio.h>
#include <stdlib.h>

/* A unit takes NVRTC some tenths of a second, of which some hundredths are a program's whatever is in it. */
enum { CU_UNIT_COST = 12000 };

typedef struct cu_unit {
  uint32_t *kernels, n;
  size_t cost;
  cuda_module module; /* NULL: not loaded */
} cu_unit;

struct cuda_units {
  cuda_device *device;
  const cuda_source *source;
  base_alloc alloc;
  base_arena arena;
  cuda_function *functions; /* by kernel */
  cu_unit *units;           /* those that take longest first, so that nobody waits for one that was begun last */
  uint32_t n;
  base_sum prelude;     /* cuda_source_functions_sum */
  pthread_mutex_t lock; /* of what follows */
  int status;           /* the first unit's that failed, where several did */
  uint32_t failed;
  xlac_error *err;
};

/* --- which kernels are in one --- */

/* One after another into the unit that is open, until that is full. */
static void cu_units_share_out(cuda_units *u, uint32_t *of) {
  uint32_t open = UINT32_MAX;
  for (uint32_t i = 0; i < u->source->kernels.n; i++) {
    size_t cost = cuda_source_cost(u->source, i);
    bool alone = cost >= CU_UNIT_COST, fits = open != UINT32_MAX && u->units[open].cost + cost <= CU_UNIT_COST;
    of[i] = fits ? open : u->n;
    if (!fits) u->units[u->n++] = (cu_unit){.n = 0};
    if (!alone) open = of[i];
    u->units[of[i]].n++;
    u->units[of[i]].cost += cost;
  }
}

static int cu_units_compare(const void *a, const void *b) {
  const cu_unit *x = a, *y = b;
  return x->cost != y->cost ? (x->cost < y->cost ? 1 : -1)
                            : (x->kernels[0] > y->kernels[0]) - (x->kernels[0] < y->kernels[0]);
}

static bool cu_units_list(cuda_units *u, const uint32_t *of) {
  for (uint32_t i = 0; i < u->n; i++) {
    u->units[i].kernels = BASE_ARRAY(&u->arena, uint32_t, u->units[i].n);
    if (!u->units[i].kernels) return false;
    u->units[i].n = 0;
  }
  for (uint32_t i = 0; i < u->source->kernels.n; i++) {
    cu_unit *unit = &u->units[of[i]];
    unit->kernels[unit->n++] = i;
  }
  qsort(u->units, u->n, sizeof *u->units, cu_units_compare);
  return true;
}

static cuda_units *cu_units_begin(cuda_device *d, const cuda_source *source, base_alloc alloc) {
  uint32_t n = source->kernels.n;
  cuda_units *u = base_malloc(alloc, sizeof *u);
  if (!u) return NULL;
  *u = (cuda_units){.device = d, .source = source, .alloc = alloc, .prelude = cuda_source_functions_sum()};
  base_arena_init(&u->arena, alloc);
  pthread_mutex_init(&u->lock, NULL);
  u->functions = base_arena_zalloc(&u->arena, n * sizeof *u->functions);
  uint32_t *of = BASE_ARRAY(&u->arena, uint32_t, n);
  u->units = BASE_ARRAY(&u->arena, cu_unit, n);
  bool ok = u->functions && of && u->units;
  if (ok) cu_units_share_out(u, of);
  if (ok && cu_units_list(u, of)) return u;
  cuda_units_destroy(u);
  return NULL;
}

/* --- making one --- */

static int cu_units_find(cuda_units *u, const cu_unit *unit, xlac_error *err) {
  const cuda_driver *c = &u->device->driver;
  for (uint32_t i = 0; i < unit->n; i++) {
    char name[24];
    snprintf(name, sizeof name, "k%u", (unsigned)unit->kernels[i]);
    TRY(cuda_check(c, c->cuModuleGetFunction(&u->functions[unit->kernels[i]], unit->module, name),
                   "finding a kernel in its module", err));
  }
  return 0;
}

/* Entered. Whether it fails or not, what the driver has of it is there to be unloaded. */
static int cu_units_load(cuda_units *u, cu_unit *unit, const char *image, xlac_error *err) {
  const cuda_driver *c = &u->device->driver;
  int status = cuda_check(c, c->cuModuleLoadData(&unit->module, image), "loading kernels", err);
  if (status) unit->module = NULL;
  if (status && c->compiler_major > c->version / 1000)
    return base_hint(err, status,
                     "NVRTC is newer than the driver: update the driver, or install NVRTC of its CUDA version");
  return status ? status : cu_units_find(u, unit, err);
}

/* On any thread. */
static int cu_units_make(cuda_units *u, cu_unit *unit, xlac_error *err) {
  const cuda_compiled what = {
      .source = u->source, .kernels = unit->kernels, .n_kernels = unit->n, .functions = u->prelude};
  char *image = NULL;
  assert(!unit->module && unit->n > 0);
  TRY(cuda_compile(u->device, &what, u->alloc, &image, err));
  int status = cuda_enter(u->device, err);
  if (status == 0) {
    status = cu_units_load(u, unit, image, err);
    cuda_leave(u->device);
  }
  base_free(u->alloc, image);
  return status;
}

/* --- all of them --- */

/* The error that a single thread would have met first, as far as others came. */
static void cu_units_note(cuda_units *u, uint32_t number, int status, const xlac_error *err) {
  pthread_mutex_lock(&u->lock);
  if (u->status == 0 || number < u->failed) {
    __atomic_store_n(&u->status, status, __ATOMIC_RELAXED);
    u->failed = number;
    if (u->err) *u->err = *err;
  }
  pthread_mutex_unlock(&u->lock);
}

static void cu_units_make_some(void *ctx, size_t begin, size_t end) {
  cuda_units *u = ctx;
  for (size_t i = begin; i < end && __atomic_load_n(&u->status, __ATOMIC_RELAXED) == 0; i++) {
    xlac_error err;
    int status = cu_units_make(u, &u->units[i], &err);
    if (status) cu_units_note(u, (uint32_t)i, status, &err);
  }
}

/* Between units, on the thread whose wish counts. */
static bool cu_units_asked(void *ctx) {
  (void)ctx;
  return base_heed_tick(UINT32_MAX);
}

int cuda_units_make(cuda_units **out, cuda_device *d, const cuda_source *source, base_alloc alloc, xlac_error *err) {
  rt_pool *pool = NULL;
  rt_stop stop = {.asked = cu_units_asked};
  cuda_units *u = *out = cu_units_begin(d, source, alloc);
  if (!u) return base_oom(err, "an executable");
  if (u->n > 1) TRY(rt_host_pool(d->base.host, 0, &pool, err));
  u->err = err;
  if (pool) rt_pool_heed(pool, &stop);
  rt_parallel_for(pool, u->n, 1, cu_units_make_some, u);
  if (pool) rt_pool_heed(pool, NULL);
  u->err = NULL;
  if (u->status) return u->status;
  return stop.stopped ? base_interrupted(err) : 0;
}

cuda_function cuda_units_function(const cuda_units *u, uint32_t number) {
  assert(number < u->source->kernels.n && u->functions[number]);
  return u->functions[number];
}

void cuda_units_unload(cuda_units *u) {
  for (uint32_t i = 0; u && i < u->n; i++)
    if (u->units[i].module) u->device->driver.cuModuleUnload(u->units[i].module);
}

void cuda_units_destroy(cuda_units *u) {
  if (!u) return;
  base_alloc alloc = u->alloc;
  pthread_mutex_destroy(&u->lock);
  base_arena_free(&u->arena);
  base_free(alloc, u);
}
