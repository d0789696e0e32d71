/* Executables of the interpreter: the module, and what its runs need beside. */
#include "device.h"

#include <time.h>

#include "../runtime/host.h"

typedef struct interp_device {
  rt_host_device base;
  const interp_library *library;
} interp_device;

typedef struct interp_executable {
  rt_executable base;
  ir_module *owned; /* the module, or NULL where it is somebody else's */
  base_alloc alloc;
  base_arena arena;
  const interp_library *library;
  void *opened; /* what library->open has given */
} interp_executable;

typedef struct interp_build {
  rt_build base;
  interp_executable *exe;
} interp_build;

BASE_VEC(interp_arrays, void *);

/* Depth is that of a type, which is bounded. */
static bool interp_take_arrays(base_alloc alloc, const interp_value *v, interp_arrays *out) {
  if (v->kind != INTERP_TUPLE) return BASE_VEC_PUSH(alloc, out, v->data);
  for (uint32_t i = 0; i < v->n_elements; i++)
    if (!interp_take_arrays(alloc, v->elements[i], out)) return false;
  return true;
}

int interp_call_arrays(base_alloc alloc, interp_call_fn *call, const rt_executable *exe, const rt_call_options *options,
                       uint32_t n, interp_value *const *args, interp_value *result, const rt_trace *trace,
                       xlac_error *err) {
  interp_arrays arguments = {NULL, 0, 0}, results = {NULL, 0, 0};
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) ok = interp_take_arrays(alloc, args[i], &arguments);
  ok = ok && interp_take_arrays(alloc, result, &results);
  assert(!ok || (arguments.n == exe->n_arguments && results.n == exe->n_results));
  int status =
      ok ? call(exe, options, arguments.items, results.items, trace, err) : base_oom(err, "a call's arguments");
  BASE_VEC_FREE(alloc, &arguments);
  BASE_VEC_FREE(alloc, &results);
  return status;
}

void interp_read_call_options(interp_options *out, const rt_call_options *call) {
  *out = (interp_options){.interrupted = call->interrupted,
                          .interrupt_ctx = call->interrupt_ctx,
                          .registry = call->registry,
                          .seed = call->seed,
                          .probes = call->probes,
                          .replica = call->replica,
                          .partition = call->partition,
                          .communicator = call->communicator,
                          .async_order = call->async_order,
                          .async_seed = call->async_seed};
}

/* --- calls --- */

/* The interpreter's tables are made for each run: only a run knows what it calls. */
static int idev_begin(const interp_executable *exe, const rt_call_options *options, interp_ctx *ctx, xlac_error *err) {
  interp_options own;
  interp_read_call_options(&own, options);
  own.alloc = exe->alloc;
  own.natives = exe->library->find;
  own.natives_ctx = exe->opened;
  return interp_begin(ctx, exe->base.module, &own, err);
}

static double idev_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* There are no steps whose times could be told, only the whole. */
static void idev_trace(const rt_trace *trace, double began) {
  if (!trace) return;
  base_putf(trace->json, "{\"ns\": %.0f, \"cut\": false, ", 1e9 * (idev_now() - began));
  BASE_PUT(trace->json, "\"ran\": {\"kernels\": 0, \"groups\": 0, \"lists\": 0, \"loops\": 0}, ");
  BASE_PUT(trace->json, "\"units\": [], \"steps\": [], \"events\": []}");
}

/* Values go through as they are, with the sizes that arrays of dynamic dimensions have. */
static int idev_run(const rt_executable *base, const rt_call_options *options, uint32_t n, interp_value *const *args,
                    interp_value **out, const rt_trace *trace, xlac_error *err) {
  const interp_executable *exe = (const interp_executable *)base;
  interp_ctx ctx;
  double began = trace ? idev_now() : 0;
  TRY(interp_check_args(base->module->entry, n, args, err));
  TRY(idev_begin(exe, options, &ctx, err));
  int status = interp_run_in(&ctx, base->module->entry, n, args, out);
  interp_end(&ctx);
  if (status == 0) idev_trace(trace, began);
  return status;
}

/* The value of type t whose arrays are leaves[*at] and those after it. NULL when out of memory. Depth is that of a
 * type, which is bounded. */
static interp_value *idev_wrap(interp_ctx *ctx, const ir_type *t, void *const *leaves, uint32_t *at) {
  interp_value *v = NULL;
  if (!ir_is_tuple(t)) {
    void *data = leaves[(*at)++];
    return ir_is_token(t) ? interp_token(ctx)
                          : interp_lend(ctx->options.alloc, t->dtype, t->rank, t->dims, data, NULL, NULL);
  }
  interp_value **parts = base_malloc(ctx->options.alloc, (size_t)t->n_elements * sizeof *parts);
  uint32_t n = 0;
  while (parts && n < t->n_elements && (parts[n] = idev_wrap(ctx, t->elements[n], leaves, at))) n++;
  if (parts && n == t->n_elements) v = interp_tuple(ctx, n, parts);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(ctx->options.alloc, parts);
  return v;
}

/* The value's arrays to leaves[*at] and those after it, in the order of idev_wrap. */
static void idev_unwrap(const interp_value *v, void *const *leaves, uint32_t *at) {
  for (uint32_t i = 0; v->kind == INTERP_TUPLE && i < v->n_elements; i++) idev_unwrap(v->elements[i], leaves, at);
  if (v->kind == INTERP_TUPLE) return;
  void *to = leaves[(*at)++];
  if (v->kind == INTERP_ARRAY && v->count) memmove(to, v->data, interp_bytes(v));
}

/* values[i] is NULL from the first that there was no memory for. */
static int idev_wrap_all(interp_ctx *ctx, const ir_computation *entry, void *const *arguments, interp_value **values) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < entry->n_params; i++)
    if (!(values[i] = idev_wrap(ctx, entry->params[i]->type, arguments, &at))) return base_oom(ctx->err, "arguments");
  return 0;
}

/* The result is the interpreter's own until all is computed: arguments may lie where results go. */
static int idev_call_begun(interp_ctx *ctx, const ir_computation *entry, void *const *arguments, void *const *results) {
  interp_value **values = base_arena_zalloc(&ctx->arena, (entry->n_params + (size_t)1) * sizeof *values);
  interp_value *result = NULL;
  uint32_t at = 0;
  int status = values ? idev_wrap_all(ctx, entry, arguments, values) : base_oom(ctx->err, "the arguments");
  if (status == 0) status = interp_run_in(ctx, entry, entry->n_params, values, &result);
  if (status == 0) idev_unwrap(result, results, &at);
  interp_release(result);
  for (uint32_t i = 0; values && i < entry->n_params; i++) interp_release(values[i]);
  return status;
}

/* Memory of unknown size can't be written to: such programs take values. */
static int idev_call(const rt_executable *base, const rt_call_options *options, void *const *arguments,
                     void *const *results, const rt_trace *trace, xlac_error *err) {
  interp_ctx ctx;
  double began = trace ? idev_now() : 0;
  assert(!base->on_values);
  TRY(idev_begin((const interp_executable *)base, options, &ctx, err));
  int status = idev_call_begun(&ctx, base->module->entry, arguments, results);
  interp_end(&ctx);
  if (status == 0) idev_trace(trace, began);
  return status;
}

/* --- executables --- */

static void idev_destroy_executable(rt_executable *base) {
  interp_executable *exe = (interp_executable *)base;
  if (exe->opened) exe->library->close(exe->opened);
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->owned);
  base_free(exe->alloc, exe);
}

static const rt_executable_vtable interp_executable_vtable = {
    .destroy = idev_destroy_executable, .call = idev_call, .run = idev_run};

/* Whether the type alone says how much memory a value takes. */
static bool idev_is_plain(const ir_type *t) {
  if (ir_is_token(t)) return true;
  return ir_is_tensor(t) && !t->has_dynamic && !t->quant && !t->text;
}

static int idev_describe(interp_executable *exe, const ir_module *m, xlac_error *err) {
  TRY(rt_executable_describe(&exe->base, m, &exe->arena, err));
  uint32_t n = exe->base.n_arguments + exe->base.n_results; /* the types of both lie one after another */
  for (uint32_t i = 0; i < n; i++)
    exe->base.on_values = exe->base.on_values || !idev_is_plain(exe->base.argument_types[i]);
  return 0;
}

/* What the build holds is the executable's, but for its arena. */
static void idev_abandon(rt_build *base) {
  interp_build *b = (interp_build *)base;
  interp_executable *exe = b->exe;
  base_arena_free(&base->arena);
  base_free(exe->alloc, b);
  rt_executable_destroy(&exe->base);
}

/* There is nothing to prepare. The plan, if any, only says why there is none. */
static int idev_finish(rt_build *base, ir_module *owned, const ir_module *m, const struct plan_program *plan,
                       rt_executable **out, xlac_error *err) {
  interp_build *b = (interp_build *)base;
  interp_executable *exe = b->exe;
  assert(!exe->owned && m->entry);
  exe->owned = owned;
  exe->arena = base->arena;
  base_free(exe->alloc, b);
  exe->base.plan = plan;
  int status = idev_describe(exe, m, err);
  if (status)
    rt_executable_destroy(&exe->base);
  else
    *out = &exe->base;
  return status;
}

static const rt_build_vtable interp_build_vtable = {.finish = idev_finish, .abandon = idev_abandon};

static int idev_build_begin(rt_device *device, const rt_build_options *options, rt_build **out, xlac_error *err) {
  interp_device *d = (interp_device *)device;
  base_alloc alloc = d->base.alloc;
  interp_build *b = base_malloc(alloc, sizeof *b);
  interp_executable *exe = b ? base_malloc(alloc, sizeof *exe) : NULL;
  if (!exe) {
    base_free(alloc, b);
    return base_oom(err, "an executable");
  }
  *exe = (interp_executable){.alloc = alloc, .library = d->library};
  exe->base = (rt_executable){.vtable = &interp_executable_vtable, .device = rt_device_retain(device)};
  exe->base.work = UINT64_MAX;
  base_arena_init(&exe->arena, alloc);
  *b = (interp_build){.exe = exe};
  b->base.vtable = &interp_build_vtable;
  base_arena_init(&b->base.arena, alloc);
  int status = options->no_blas ? 0 : d->library->open(&exe->opened, options->blas_path, alloc, err);
  if (status) {
    idev_abandon(&b->base);
    return status;
  }
  *out = &b->base;
  return 0;
}

/* --- the device --- */

static const rt_device_vtable interp_device_vtable = {.destroy = rt_host_device_destroy,
                                                      .allocate = rt_host_device_allocate,
                                                      .release = rt_host_device_release,
                                                      .stats = rt_host_device_stats,
                                                      .queue = rt_host_device_queue,
                                                      .begin = idev_build_begin};

int interp_device_create(rt_device **out, const interp_library *library, uint32_t ordinal, base_alloc alloc,
                         xlac_error *err) {
  rt_host_device *d = NULL;
  assert(library->open && library->find && library->close);
  TRY(rt_host_device_create(&d, sizeof(interp_device), &interp_device_vtable, "interp", ordinal, alloc, err));
  ((interp_device *)d)->library = library;
  d->device.facts.whole = true;
  *out = &d->device;
  return 0;
}
