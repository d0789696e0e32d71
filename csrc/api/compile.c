/* Compiled programs.
 *
 * xlac_compile copies the caller's module under its lock and hands the copy to driver/compile.c's line;
 * the executable then has nothing to do with the module any more. An executable does not change after it
 * is made, except for its variants, which have their own lock; any number of threads may run it. */
#include <stdlib.h>
#include <time.h>

#include "../driver/dump.h"
#include "api.h"
#include "../plan/report.h"
#include "variant.h"

enum { COMPILE_MAX_PASSES = 32 };

struct xlac_executable {
  rt_executable *rt;
  rt_device_set *devices; /* a reference: those that its variants may need */
  xlac_module view;       /* of the compiled module */
  double seconds[XLAC_COMPILE_STAGES];
  xlac_compile_options options; /* that shape the plan; no pointers */
  xlac_counters *counters;      /* or NULL */
  api_variants *variants;
  char *blas_path; /* or NULL */
  double pass_began;
  uint32_t n_passes;
  struct {
    const char *name;
    double seconds;
  } passes[COMPILE_MAX_PASSES];
};

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
  if (exe->n_passes < COMPILE_MAX_PASSES) {
    exe->passes[exe->n_passes].name = pass;
    exe->passes[exe->n_passes++].seconds = now - exe->pass_began;
  }
  exe->pass_began = now;
  return 0;
}

/* The line's first step reads the caller's module, which nobody may edit meanwhile. MLIR form becomes HLO
 * form on the way. */
static int compile_copy(xlac_module *m, ir_module **out, xlac_error *err) {
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0) status = driver_translate(m->ir, out, err);
  return api_done(m, status);
}

/* Called by the device after each run with what it had to copy, on the thread that ran. */
static void compile_count(void *ctx, const rt_tally *t) {
  assert(ctx && t);
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PLAN, t->copies);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PLAN, t->bytes);
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PROTECTION, t->protecting);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PROTECTION, t->protecting_bytes);
  xlac_counters_add(ctx, XLAC_COUNT_REUSED, t->reused);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_REUSED, t->reused_bytes);
}

/* Nothing points to the caller's options, as variants are built long after they have gone. */
static rt_build_options compile_build_options(const xlac_executable *exe) {
  return (rt_build_options){.threads = exe->options.threads,
                            .no_blas = exe->options.no_blas,
                            .blas_path = exe->blas_path,
                            .fast = exe->options.numerics == XLAC_NUMERICS_FAST,
                            .count = exe->counters ? compile_count : NULL,
                            .count_ctx = exe->counters};
}

/* The module has been through the passes; what is left to do is the clean-up that new layouts of
 * parameters allow. Lanes and async work are not repeated: variants run on the caller's thread. */
int api_compile_variant(const xlac_executable *exe, ir_module *m, const plan_options *plan, rt_executable **out,
                        xlac_error *err) {
  driver_options line = {.devices = exe->devices,
                         .device = exe->rt->device,
                         .build = compile_build_options(exe),
                         .plan = *plan,
                         .passes = "algebraic-simplification,cse,dce"};
  line.no_passes = line.plan.no_fusion = exe->options.no_fusion;
  return driver_finish(m, &line, NULL, out, err);
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

/* What outlives the call: counters, options that shape plans, and the set of devices, an own one where no
 * runtime is named. */
static int compile_keep_options(xlac_executable *exe, const xlac_compile_options *options, xlac_error *err) {
  if ((unsigned)options->numerics > XLAC_NUMERICS_FAST)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "numerics %d is neither strict (0) nor fast (1)",
                     (int)options->numerics);
  exe->counters = xlac_counters_retain(options->counters);
  exe->options = (xlac_compile_options){XLAC_OPTIONS(xlac_compile_options), .threads = options->threads,
                                        .no_blas = options->no_blas, .no_fusion = options->no_fusion,
                                        .numerics = options->numerics};
  if (options->blas_path) exe->blas_path = strdup(options->blas_path); /* without it, the usual names */
  if (!options->runtime) return rt_device_set_create(&exe->devices, driver_device_kinds, base_alloc_libc, err);
  exe->devices = rt_device_set_retain(api_devices(options->runtime));
  return 0;
}

/* Everything that the options say, but what is called back. Opens the device by name, "cpu:1" say; NULL is
 * the first kind's context 0. */
static int compile_line_of(xlac_executable *exe, const xlac_compile_options *options, driver_options *line,
                           xlac_error *err) {
  rt_device *device = NULL;
  TRY(compile_keep_options(exe, options, err));
  TRY(rt_device_set_open(exe->devices, options->device, &device, err));
  *line = (driver_options){.devices = exe->devices,
                           .device = device,
                           .build = compile_build_options(exe),
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
  TRY(compile_copy(m, &copy, err));
  double copied = compile_now();
  line.look = compile_begin_passes;
  line.ctx = &request;
  line.watch = &watch;
  TRY(driver_finish(copy, &line, &times, &exe->rt, err));
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
  TRY(compile_copy(m, &copy, err));
  line.ctx = &request;
  return driver_dump(copy, &line, stage, out, err);
}

/* All but the lock. In the reverse order of making. Any part may be missing: this also ends a compilation
 * that failed. */
static void compile_free(xlac_executable *exe) {
  api_variants_free(exe->variants);
  rt_executable_destroy(exe->rt);
  rt_device_set_release(exe->devices);
  xlac_counters_release(exe->counters);
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
  *out = exe;
  return 0;
}

/* What a stage left, as text; the executable that it takes is thrown away. */
int xlac_compile_dump(xlac_module *m, const xlac_compile_options *given, const char *stage, char **text, size_t *n,
                      xlac_error *err) {
  xlac_compile_options options;
  base_text t;
  TRY(api_read_compile_options(&options, given, err));
  xlac_executable *exe = calloc(1, sizeof *exe);
  if (!exe) return base_oom(err, "an executable");
  base_text_init(&t, base_alloc_libc);
  int status = compile_dump(exe, m, &options, stage, &t, err);
  compile_free(exe);
  if (status == 0) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return status;
}

const rt_executable *api_executable_rt(const xlac_executable *exe) {
  assert(exe->rt);
  return exe->rt;
}

/* Every executable has a plan; an interpreted one's says why it is so. */
const plan_program *api_executable_plan(const xlac_executable *exe) {
  assert(exe->rt && exe->rt->plan);
  return exe->rt->plan;
}

xlac_runtime *api_executable_runtime(const xlac_executable *exe) {
  return (xlac_runtime *)(void *)exe->devices;
}

xlac_counters *api_executable_counters(const xlac_executable *exe) {
  return exe->counters;
}

api_variants *api_executable_variants(const xlac_executable *exe) {
  return exe->variants;
}

xlac_compile_options api_executable_options(const xlac_executable *exe) {
  return exe->options;
}

void xlac_executable_device(const xlac_executable *exe, xlac_device_info *out) {
  api_describe_device(exe->rt->device, out);
}

/* Borrowed; to be read, not edited or destroyed. */
xlac_module *xlac_executable_module(xlac_executable *exe) {
  return &exe->view;
}

void xlac_executable_destroy(xlac_executable *exe) {
  if (!exe) return;
  pthread_mutex_destroy(&exe->view.lock);
  compile_free(exe);
}

/* On values: arguments are the parameters, tuples whole; *out is a new value. */
int xlac_executable_run(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                        xlac_value *const *args, xlac_value **out, xlac_error *err) {
  assert(exe && out);
  rt_call_options inner;
  TRY(api_read_call_options(&inner, options, err));
  interp_value *result = NULL;
  TRY(rt_run_values(exe->rt, &inner, n_args, (interp_value *const *)(const void *)args, &result, NULL, err));
  *out = api_value_out(result);
  return 0;
}

/* On pointers, one a leaf: arguments dense, results with room. Programs that only the interpreter can run
 * have no such call, since the sizes of their results are unknown before. */
int xlac_executable_call(const xlac_executable *exe, const xlac_interpret_options *options, void *const *arguments,
                         void *const *results, xlac_error *err) {
  rt_call_options inner;
  TRY(api_read_call_options(&inner, options, err));
  if (exe->rt->on_values)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the interpreter runs this program whole, on values, since %s",
                     exe->rt->plan->why);
  return rt_call(exe->rt, &inner, arguments, results, err);
}

/* NULL past the end. The type and the name are the executable's. */
const xlac_type *xlac_executable_param(const xlac_executable *exe, uint32_t index, const char **name) {
  const ir_computation *entry = exe->rt->module->entry;
  if (index >= entry->n_params) return NULL;
  if (name) *name = entry->params[index]->name->s;
  return api_type_out(entry->params[index]->type);
}

const xlac_type *xlac_executable_result(const xlac_executable *exe) {
  return api_type_out(ir_root(exe->rt->module->entry)->type);
}

/* Steps of nested programs (bodies of loops, branches) count once, however often they run. */
static void compile_count_steps(const plan_program *p, xlac_executable_info *info) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    info->n_steps++;
    info->n_kernels += s->kind == PLAN_KERNEL;
    info->n_routines += s->kind == PLAN_ROUTINE && !s->routine->interpreted;
    info->n_interpreted += s->kind == PLAN_ROUTINE && s->routine->interpreted;
    for (uint32_t j = 0; j < s->n_nested; j++) compile_count_steps(s->nested[j], info);
  }
}

/* Depth is that of a type, which is bounded. Leaves that are no tensors take nothing. */
static int64_t compile_result_bytes(const ir_type *t) {
  int64_t bytes = ir_is_tensor(t) ? ir_type_bytes(t) : 0;
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) bytes += compile_result_bytes(t->elements[i]);
  return bytes;
}

/* Bytes of borrowed buffers are not counted: they lie in an argument or result that is. */
void xlac_executable_get(const xlac_executable *exe, xlac_executable_info *out) {
  const plan_program *p = exe->rt->plan;
  *out = (xlac_executable_info){.frame_bytes = p->frame_bytes,
                                .peak_bytes = p->peak_bytes,
                                .interpreted = p->interpreted ? p->why : NULL,
                                .n_arguments = p->n_arguments,
                                .n_results = p->n_results,
                                .n_donations = p->n_donations,
                                .numerics = exe->options.numerics,
                                .work = exe->rt->work,
                                .blas = rt_executable_library(exe->rt)};
  memcpy(out->seconds, exe->seconds, sizeof out->seconds);
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->borrowed) continue;
    if (b->place == PLAN_ARGUMENT) out->argument_bytes += b->bytes;
    if (b->place == PLAN_CONSTANT) out->constant_bytes += b->bytes;
  }
  if (!p->interpreted) out->result_bytes = compile_result_bytes(ir_root(exe->rt->module->entry)->type);
  compile_count_steps(p, out);
}

/* The error for a caller whose own allocation for this program failed: says how much the program needs,
 * and for what. Always fails. */
int xlac_executable_out_of_memory(const xlac_executable *exe, xlac_error *err) {
  return plan_out_of_memory(exe->rt->plan, err);
}

/* Passes in the order in which they ran, with seconds; past COMPILE_MAX_PASSES they are not listed. */
bool xlac_executable_pass(const xlac_executable *exe, uint32_t index, const char **name, double *seconds) {
  if (index >= exe->n_passes) return false;
  *name = exe->passes[index].name;
  *seconds = exe->passes[index].seconds;
  return true;
}

/* For people; its form may change. */
int xlac_executable_plan(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  plan_put(&t, exe->rt->plan);
  return api_give_text(&t, text, n, err);
}

/* The plan as JSON, for tools. */
int xlac_executable_report(const xlac_executable *exe, char **json, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  if (!plan_put_json(&t, base_alloc_libc, exe->rt->plan)) {
    base_text_free(&t);
    return base_oom(err, "a report");
  }
  return api_give_text(&t, json, n, err);
}

/* The run's result and its trace come together or not at all. */
static int compile_run_traced(const xlac_executable *exe, const xlac_interpret_options *options, rt_trace_kind kind,
                              uint32_t n_args, xlac_value *const *args, xlac_value **out, char **json, size_t *n,
                              xlac_error *err) {
  rt_call_options inner;
  interp_value *result = NULL;
  base_text t;
  TRY(api_read_call_options(&inner, options, err));
  base_text_init(&t, base_alloc_libc);
  const rt_trace trace = {kind, &t};
  int status = rt_run_values(exe->rt, &inner, n_args, (interp_value *const *)(const void *)args, &result, &trace, err);
  if (status)
    base_text_free(&t);
  else
    status = api_give_text(&t, json, n, err);
  if (status == 0)
    *out = api_value_out(result);
  else
    interp_release(result);
  return status;
}

/* Seconds by step. JSON. */
int xlac_executable_profile(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                            xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_traced(exe, options, RT_TRACE_STEPS, n_args, args, out, json, n, err);
}

/* What each lane did when. JSON. */
int xlac_executable_timeline(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                             xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_traced(exe, options, RT_TRACE_LANES, n_args, args, out, json, n, err);
}

int xlac_executable_count(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                          xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_traced(exe, options, RT_TRACE_COUNTS, n_args, args, out, json, n, err);
}

bool xlac_executable_lane(const xlac_executable *exe, uint32_t index, xlac_lane *out) {
  return rt_executable_lane(exe->rt, index, out);
}

int xlac_executable_fusion(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = plan_explain_fusion(&t, exe->rt->plan, err);
  BASE_PUT(&t, "\nwhat runs, in this order (predictions are of one thread):\n");
  if (status == 0) status = rt_executable_print(exe->rt, &t, err);
  if (status) {
    base_text_free(&t);
    return status;
  }
  return api_give_text(&t, text, n, err);
}
