/* Compilation.
 *
 * xlac_compile copies the caller's module under its lock and hands the copy to driver/compile.c's line;
 * the executable then has nothing to do with the module any more. An executable does not change after it
 * is made, except for its variants, which have their own lock; any number of threads may run it. */
#include <stdlib.h>
#include <time.h>

#include "../driver/dump.h"
#include "../driver/rehearse.h"
#include "api.h"
#include "executable.h"
#include "variant.h"

static double compile_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Called after each pass: the time since the last one ended is this one's. */
static int compile_count_pass(void *ctx, const char *pass, uint32_t index, ir_module *m, xlac_error *err) {
  xlac_executable *exe = ctx;
  double now = compile_now();
  (void)index, (void)m, (void)err;
  if (exe->n_passes < API_MAX_PASSES) {
    exe->passes[exe->n_passes].name = pass;
    exe->passes[exe->n_passes++].seconds = now - exe->pass_began;
  }
  exe->pass_began = now;
  return 0;
}

/* The line's first step reads the caller's module, which nobody may edit meanwhile. MLIR form becomes HLO
 * form on the way. */
static int compile_copy(xlac_module *m, uint32_t n_devices, bool rehearsal, ir_module **out, spmd_program **partitioned,
                        xlac_error *err) {
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0)
    status = n_devices ? driver_partition(m->ir, n_devices, rehearsal, out, partitioned, err)
                       : driver_translate(m->ir, out, err);
  return api_done(m, status);
}

/* What a group is compiled from when it is loaded again. */
static int compile_keep_source(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options,
                               xlac_error *err) {
  ir_module *copy = NULL;
  if (!options->n_devices) return 0;
  exe->no_passes = options->no_passes;
  exe->n_donated = options->n_donate;
  exe->donated = malloc((options->n_donate + 1) * sizeof *exe->donated);
  if (!exe->donated) return base_oom(err, "an executable");
  if (options->n_donate) memcpy(exe->donated, options->donate, options->n_donate * sizeof *exe->donated);
  api_lock(m);
  TRY(api_done(m, ir_module_clone(&copy, m->ir, err)));
  return api_wrap(&exe->source, copy, err);
}

/* What the line calls back for. Lives as long as the compile call. */
typedef struct compile_request {
  xlac_executable *exe;
  const xlac_compile_options *options;
} compile_request;

/* After translation, before anything is expanded: parameters still have the numbers that the caller knows. */
static int compile_add_donors(void *ctx, ir_module *m, xlac_error *err) {
  return api_add_donors(m, ((const compile_request *)ctx)->options, err);
}

/* The first pass's clock starts when preparation has ended. */
static int compile_begin_passes(void *ctx, driver_stage stage, ir_module *m, xlac_error *err) {
  (void)m, (void)err;
  if (stage == DRIVER_PREPARED) ((const compile_request *)ctx)->exe->pass_began = compile_now();
  return 0;
}

/* All devices of a group share the threads, one each at least. */
static uint32_t compile_threads(const xlac_compile_options *options) {
  uint32_t all = options->threads ? options->threads : options->n_devices ? rt_cpu_count() : 0;
  if (options->n_devices < 2) return options->threads;
  return all > options->n_devices ? all / options->n_devices : 1;
}

/* What outlives the call: counters, options that shape plans, and the set of devices, an own one where no
 * runtime is named. */
static int compile_keep_options(xlac_executable *exe, const xlac_compile_options *options, xlac_error *err) {
  if ((unsigned)options->numerics > XLAC_NUMERICS_FAST)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "numerics %d is neither strict (0) nor fast (1)",
                     (int)options->numerics);
  exe->counters = xlac_counters_retain(options->counters);
  exe->options = (xlac_compile_options){XLAC_OPTIONS(xlac_compile_options), .threads = compile_threads(options),
                                        .n_devices = options->n_devices,    .no_blas = options->no_blas,
                                        .no_fusion = options->no_fusion,    .numerics = options->numerics};
  if (options->blas_path) exe->blas_path = strdup(options->blas_path); /* without it, the usual names */
  if (!options->runtime) return rt_device_set_create(&exe->devices, driver_device_kinds, base_alloc_libc, err);
  exe->devices = rt_device_set_retain(api_devices(options->runtime));
  return 0;
}

/* What this process has of n devices. Those that can't be shared evenly are an error when it joins the others. */
static rt_seats compile_seats(const xlac_compile_options *options, uint32_t n) {
  const uint32_t all = options->processes, here = all ? n / all : n;
  const bool even = all && options->process < all && n % all == 0;
  return even ? (rt_seats){n, options->process * here, here} : (rt_seats){n, 0, n};
}

/* Everything that the options say, but what is called back. Opens the device by name, "cpu:1" say; NULL is
 * the first kind's context 0. */
static int compile_line_of(xlac_executable *exe, const xlac_compile_options *options, driver_options *line,
                           xlac_error *err) {
  const bool group = options->n_devices > 0 && options->n_devices <= SPMD_MOST_DEVICES; /* more are only rehearsed */
  const rt_seats seats = compile_seats(options, group ? options->n_devices : 1);
  TRY(compile_keep_options(exe, options, err));
  if (!(exe->seats = malloc(seats.n * sizeof(rt_device *)))) return base_oom(err, "an executable");
  if (group)
    TRY(rt_device_set_open_group(exe->devices, options->device, &seats, exe->seats, err));
  else
    TRY(rt_device_set_open(exe->devices, options->device, exe->seats, err));
  *line = (driver_options){.devices = exe->devices,
                           .device = exe->seats[seats.from],
                           .seats = group ? exe->seats : NULL,
                           .build = api_build_options(exe),
                           .plan = {.no_fusion = options->no_fusion},
                           .no_passes = options->no_passes,
                           .edit = compile_add_donors};
  line->build.n_lanes = options->n_lanes;
  line->build.lanes = options->lanes;
  line->build.async_work = options->async_work;
  return 0;
}

/* Times in seconds: copying includes translation and preparation, planning includes the device's own work. */
static int compile_module(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options, xlac_error *err) {
  assert(!exe->rt);
  const opt_pipeline_options watch = {.after = compile_count_pass, .ctx = exe};
  compile_request request = {exe, options};
  driver_times times = {{0}};
  ir_module *copy = NULL;
  driver_options line;
  TRY(compile_line_of(exe, options, &line, err));
  double start = compile_now();
  TRY(compile_keep_source(exe, m, options, err));
  TRY(compile_copy(m, options->n_devices, false, &copy, &line.partitioned, err));
  double copied = compile_now();
  line.look = compile_begin_passes;
  line.ctx = &request;
  line.watch = &watch;
  TRY(api_finish(copy, options, &line, &times, exe->cache, &exe->rt, err));
  exe->seconds[XLAC_COMPILE_COPY] = copied - start + times.stage[DRIVER_PREPARED];
  exe->seconds[XLAC_COMPILE_PASSES] = times.stage[DRIVER_OPTIMISED];
  exe->seconds[XLAC_COMPILE_PLAN] = times.stage[DRIVER_PLANNED];
  return 0;
}

/* As compile_module, but ends after the stage and prints it. */
static int compile_dump(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options, const char *stage,
                        base_text *out, xlac_error *err) {
  compile_request request = {exe, options};
  ir_module *copy = NULL;
  driver_options line;
  TRY(api_check_text(stage, "the stage", err));
  TRY(compile_line_of(exe, options, &line, err));
  TRY(compile_copy(m, options->n_devices, false, &copy, &line.partitioned, err));
  line.ctx = &request;
  return driver_dump(copy, &line, stage, out, err);
}

/* What the cache would know the program by. */
static int compile_put_key(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options, base_text *out,
                           xlac_error *err) {
  ir_module *copy = NULL;
  driver_options line;
  TRY(compile_line_of(exe, options, &line, err));
  TRY(compile_copy(m, 0, false, &copy, &line.partitioned, err));
  int status = api_cache_put_key(out, copy, options, &line, err);
  ir_module_destroy(copy);
  return status;
}

/* All but the lock. In the reverse order of making. Any part may be missing: this also ends a compilation
 * that failed. */
static void compile_free(xlac_executable *exe) {
  api_variants_free(exe->variants);
  rt_executable_destroy(exe->rt);
  rt_device_set_release(exe->devices);
  xlac_counters_release(exe->counters);
  xlac_module_destroy(exe->source);
  free(exe->seats);
  free(exe->donated);
  free(exe->blas_path);
  free(exe);
}

/* The view of the compiled module borrows its ir from the executable, which the view's users must keep. It
 * is never edited, so the const that is cast away is not broken. */
int xlac_compile(xlac_module *m, const xlac_compile_options *given, xlac_executable **out, xlac_error *err) {
  xlac_compile_options options;
  TRY(api_read_compile_options(&options, given, err));
  xlac_executable *exe = calloc(1, sizeof *exe);
  if (!exe) return base_oom(err, "an executable");
  int status = api_variants_create(&exe->variants, err);
  if (status == 0) status = compile_module(exe, m, &options, err);
  if (status) {
    compile_free(exe);
    return status;
  }
  exe->view.ir = (ir_module *)(uintptr_t)exe->rt->module;
  pthread_mutex_init(&exe->view.lock, NULL);
  if (exe->rt->n_devices) exe->local.ir = (ir_module *)(uintptr_t)spmd_group_local(exe->rt)->module;
  pthread_mutex_init(&exe->local.lock, NULL);
  *out = exe;
  return 0;
}

/* The stage's text, or without one the cache's key; the executable that it takes is thrown away. */
static int compile_give_text(xlac_module *m, const xlac_compile_options *given, const char *stage, bool key,
                             char **text, size_t *n, xlac_error *err) {
  xlac_compile_options options;
  base_text t;
  TRY(api_read_compile_options(&options, given, err));
  xlac_executable *exe = calloc(1, sizeof *exe);
  if (!exe) return base_oom(err, "an executable");
  base_text_init(&t, base_alloc_libc);
  int status = key ? compile_put_key(exe, m, &options, &t, err) : compile_dump(exe, m, &options, stage, &t, err);
  compile_free(exe);
  if (status == 0) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return status;
}

int xlac_compile_dump(xlac_module *m, const xlac_compile_options *options, const char *stage, char **text, size_t *n,
                      xlac_error *err) {
  return compile_give_text(m, options, stage, false, text, n, err);
}

int xlac_cache_key(xlac_module *m, const xlac_compile_options *options, char **text, size_t *n, xlac_error *err) {
  return compile_give_text(m, options, NULL, true, text, n, err);
}

const char *xlac_executable_cache(const xlac_executable *exe) {
  return exe->cache;
}

/* As compile_module, but what would be run is written down. */
static int compile_rehearsal(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options,
                             const char *passes, base_text *out, ir_module **local, xlac_error *err) {
  compile_request request = {exe, options};
  ir_module *copy = NULL;
  driver_options line;
  TRY(compile_line_of(exe, options, &line, err));
  TRY(compile_copy(m, options->n_devices, true, &copy, &line.partitioned, err));
  line.ctx = &request;
  line.then = passes;
  return driver_rehearse(copy, &line, out, local, err);
}

int xlac_rehearse(xlac_module *m, const xlac_compile_options *given, const char *passes, xlac_module **local,
                  char **json, size_t *n, xlac_error *err) {
  xlac_compile_options options;
  ir_module *ir = NULL;
  base_text t;
  TRY(api_read_compile_options(&options, given, err));
  if (options.n_devices == 0) return base_fail(err, XLAC_E_BAD_ARGUMENT, "a rehearsal needs a number of devices");
  xlac_executable *exe = calloc(1, sizeof *exe);
  if (!exe) return base_oom(err, "a rehearsal");
  base_text_init(&t, base_alloc_libc);
  int status = compile_rehearsal(exe, m, &options, passes, &t, &ir, err);
  compile_free(exe);
  if (status == 0) status = api_wrap(local, ir, err); /* frees ir on failure */
  if (status == 0) {
    status = api_give_text(&t, json, n, err);
    if (status) xlac_module_destroy(*local);
    return status;
  }
  base_text_free(&t);
  return status;
}

void xlac_executable_destroy(xlac_executable *exe) {
  if (!exe) return;
  pthread_mutex_destroy(&exe->view.lock);
  pthread_mutex_destroy(&exe->local.lock);
  compile_free(exe);
}
