/* The smallest device there can be: memory from malloc with a limit, two spaces, and programs that are run whole by the
 * interpreter. What is asked of a device is in runtime/device.h; this is how little it takes to give that. */
#include "third.h"

#include <stdlib.h>

#include "interp/device.h"

enum { THIRD_MEMORY = 1 << 20, THIRD_HEAD = 64 /* before each block: its size */ };

typedef struct third_device {
  rt_device base;
  base_alloc alloc;
  atomic_ullong live, live_bytes, peak_bytes;
} third_device;

typedef struct third_executable {
  rt_executable base;
  ir_module *owned;
  base_alloc alloc;
  base_arena arena;
} third_executable;

typedef struct third_build {
  rt_build base;
  third_executable *exe;
} third_build;

/* --- memory --- */

static int third_allocate(rt_device *base, uint32_t space, size_t bytes, void **out, xlac_error *err) {
  third_device *d = (third_device *)base;
  bool fits = bytes <= THIRD_MEMORY && atomic_fetch_add(&d->live_bytes, bytes) + bytes <= THIRD_MEMORY;
  char *block = fits ? aligned_alloc(64, (THIRD_HEAD + bytes + 63) / 64 * 64) : NULL;
  if (!block) {
    if (bytes <= THIRD_MEMORY) atomic_fetch_sub(&d->live_bytes, bytes);
    return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: space %u of third has no %zu bytes", (unsigned)space,
                     bytes);
  }
  if (atomic_load(&d->live_bytes) > atomic_load(&d->peak_bytes))
    atomic_store(&d->peak_bytes, atomic_load(&d->live_bytes));
  atomic_fetch_add(&d->live, 1);
  memcpy(block, &bytes, sizeof bytes);
  *out = block + THIRD_HEAD;
  return 0;
}

static void third_release(rt_device *base, uint32_t space, void *memory) {
  third_device *d = (third_device *)base;
  size_t bytes;
  (void)space;
  memcpy(&bytes, (char *)memory - THIRD_HEAD, sizeof bytes);
  atomic_fetch_sub(&d->live_bytes, bytes);
  atomic_fetch_sub(&d->live, 1);
  free((char *)memory - THIRD_HEAD);
}

static void third_stats(rt_device *base, rt_memory_stats *out) {
  third_device *d = (third_device *)base;
  *out = (rt_memory_stats){atomic_load(&d->live), atomic_load(&d->live_bytes), atomic_load(&d->peak_bytes)};
}

static int third_queue(rt_device *base, rt_queue **out, xlac_error *err) {
  return rt_host_queue_create(base, ((third_device *)base)->alloc, out, err);
}

static void third_destroy(rt_device *base) {
  third_device *d = (third_device *)base;
  assert(atomic_load(&d->live) == 0 && "memory is given back before the device");
  base_free(d->alloc, d);
}

/* --- programs: each parameter and each result is one array --- */

static void third_read_options(const third_executable *exe, const rt_call_options *options, interp_options *out) {
  interp_read_call_options(out, options);
  out->alloc = exe->alloc;
}

static int third_run(const rt_executable *base, const rt_call_options *options, uint32_t n, interp_value *const *args,
                     interp_value **out, const rt_trace *trace, xlac_error *err) {
  interp_options own;
  interp_ctx ctx;
  (void)trace;
  third_read_options((const third_executable *)base, options, &own);
  TRY(interp_check_args(base->module->entry, n, args, err));
  TRY(interp_begin(&ctx, base->module, &own, err));
  int status = interp_run_in(&ctx, base->module->entry, n, args, out);
  interp_end(&ctx);
  return status;
}

static interp_value *third_lend(base_alloc alloc, const ir_type *t, void *data) {
  return interp_lend(alloc, t->dtype, t->rank, t->dims, data, NULL, NULL);
}

static void third_store(const interp_value *v, void *const *results) {
  for (uint32_t i = 0; v->kind == INTERP_TUPLE && i < v->n_elements; i++) third_store(v->elements[i], results + i);
  if (v->kind == INTERP_ARRAY) memmove(results[0], v->data, interp_bytes(v));
}

static int third_call(const rt_executable *base, const rt_call_options *options, void *const *arguments,
                      void *const *results, const rt_trace *trace, xlac_error *err) {
  base_alloc alloc = ((const third_executable *)base)->alloc;
  interp_value *values[8] = {NULL}, *result = NULL;
  uint32_t made = 0;
  assert(base->n_arguments <= 8);
  while (made < base->n_arguments && (values[made] = third_lend(alloc, base->argument_types[made], arguments[made])))
    made++;
  int status = made == base->n_arguments ? third_run(base, options, made, values, &result, trace, err)
                                         : base_oom(err, "the arguments");
  if (status == 0) third_store(result, results);
  interp_release(result);
  for (uint32_t i = 0; i < made; i++) interp_release(values[i]);
  return status;
}

static void third_destroy_executable(rt_executable *base) {
  third_executable *exe = (third_executable *)base;
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->owned);
  base_free(exe->alloc, exe);
}

static const rt_executable_vtable third_executable_vtable = {
    .destroy = third_destroy_executable, .call = third_call, .run = third_run};

static void third_abandon(rt_build *base) {
  third_build *b = (third_build *)base;
  third_executable *exe = b->exe;
  exe->arena = base->arena;
  base_free(exe->alloc, b);
  rt_executable_destroy(&exe->base);
}

static int third_finish(rt_build *base, ir_module *owned, const ir_module *m, const struct plan_program *plan,
                        rt_executable **out, xlac_error *err) {
  third_executable *exe = ((third_build *)base)->exe;
  exe->owned = owned;
  exe->base.plan = plan;
  int status = rt_executable_describe(&exe->base, m, &base->arena, err);
  if (status) {
    third_abandon(base);
    return status;
  }
  exe->arena = base->arena;
  base_free(exe->alloc, base);
  *out = &exe->base;
  return 0;
}

static const rt_build_vtable third_build_vtable = {.finish = third_finish, .abandon = third_abandon};

static int third_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err) {
  base_alloc alloc = ((third_device *)d)->alloc;
  third_build *b = base_malloc(alloc, sizeof *b);
  third_executable *exe = b ? base_malloc(alloc, sizeof *exe) : NULL;
  (void)options;
  if (!exe) {
    base_free(alloc, b);
    return base_oom(err, "an executable");
  }
  *exe =
      (third_executable){.base = {.vtable = &third_executable_vtable, .device = rt_device_retain(d)}, .alloc = alloc};
  exe->base.work = UINT64_MAX;
  *b = (third_build){.base = {.vtable = &third_build_vtable}, .exe = exe};
  base_arena_init(&b->base.arena, alloc);
  *out = &b->base;
  return 0;
}

/* --- the device --- */

static const rt_device_vtable third_vtable = {.destroy = third_destroy,
                                              .allocate = third_allocate,
                                              .release = third_release,
                                              .stats = third_stats,
                                              .queue = third_queue,
                                              .begin = third_begin};

int third_device_create(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  third_device *d = base_malloc(alloc, sizeof *d);
  if (!d) return base_oom(err, "a device");
  memset(d, 0, sizeof *d);
  rt_device_init(&d->base, &third_vtable, "third", ordinal);
  d->alloc = alloc;
  d->base.facts.calls_on_host = d->base.facts.whole = true;
  d->base.facts.n_spaces = 2;
  d->base.facts.spaces[0] = (rt_space){"main", true, THIRD_MEMORY};
  d->base.facts.spaces[1] = (rt_space){"side", true, THIRD_MEMORY};
  *out = &d->base;
  return 0;
}
