/* Compiled programs. */
#include <stdlib.h>
#include <time.h>

#include "../cpu/executable.h"
#include "../cpu/profile.h"
#include "../driver/compile.h"
#include "api.h"
#include "variant.h"

enum { COMPILE_MAX_PASSES = 32 };

struct xlac_executable {
  cpu_executable *cpu;
  xlac_module view; /* of the compiled module */
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

/* The line's first step reads the caller's module, which nobody may edit meanwhile. */
static int compile_copy(xlac_module *m, ir_module **out, xlac_error *err) {
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0) status = driver_translate(m->ir, out, err);
  return api_done(m, status);
}

static void compile_count(void *ctx, const cpu_tally *t) {
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PLAN, t->copies);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PLAN, t->bytes);
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PROTECTION, t->protecting);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PROTECTION, t->protecting_bytes);
  xlac_counters_add(ctx, XLAC_COUNT_REUSED, t->reused);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_REUSED, t->reused_bytes);
}

static cpu_options compile_cpu_options(const xlac_executable *exe) {
  cpu_options cpu = {.alloc = base_alloc_libc, .threads = exe->options.threads, .blas_path = exe->blas_path};
  cpu.no_blas = exe->options.no_blas;
  cpu.plan.no_fusion = exe->options.no_fusion;
  cpu.fast = exe->options.numerics == XLAC_NUMERICS_FAST;
  if (exe->counters) cpu.count = compile_count;
  cpu.count_ctx = exe->counters;
  return cpu;
}

int api_compile_variant(const xlac_executable *exe, ir_module *m, const plan_options *plan, cpu_executable **out,
                        xlac_error *err) {
  driver_options line = {.cpu = compile_cpu_options(exe), .passes = "algebraic-simplification,cse,dce"};
  line.cpu.plan = *plan;
  line.no_passes = line.cpu.plan.no_fusion = exe->options.no_fusion;
  line.cpu.runtime = cpu_executable_runtime(exe->cpu);
  return driver_finish(m, &line, NULL, out, err);
}

/* What the line calls back for. */
typedef struct compile_request {
  xlac_executable *exe;
  const xlac_compile_options *options;
} compile_request;

static int compile_add_donors(void *ctx, ir_module *m, xlac_error *err) {
  return api_add_donors(m, ((const compile_request *)ctx)->options, err);
}

static int compile_begin_passes(void *ctx, driver_stage stage, ir_module *m, xlac_error *err) {
  (void)m, (void)err;
  if (stage == DRIVER_PREPARED) ((const compile_request *)ctx)->exe->pass_began = compile_now();
  return 0;
}

static int compile_keep_options(xlac_executable *exe, const xlac_compile_options *options, xlac_error *err) {
  if ((unsigned)options->numerics > XLAC_NUMERICS_FAST)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "numerics %d is neither strict (0) nor fast (1)",
                     (int)options->numerics);
  exe->counters = xlac_counters_retain(options->counters);
  exe->options = (xlac_compile_options){XLAC_OPTIONS(xlac_compile_options), .threads = options->threads,
                                        .no_blas = options->no_blas, .no_fusion = options->no_fusion,
                                        .numerics = options->numerics};
  if (options->blas_path) exe->blas_path = strdup(options->blas_path); /* without it, the usual names */
  return 0;
}

static int compile_module(xlac_executable *exe, xlac_module *m, const xlac_compile_options *options, xlac_error *err) {
  const opt_pipeline_options watch = {.after = compile_count_pass, .ctx = exe};
  compile_request request = {exe, options};
  driver_times times = {{0}};
  ir_module *copy = NULL;
  TRY(compile_keep_options(exe, options, err));
  double start = compile_now();
  TRY(compile_copy(m, &copy, err));
  double copied = compile_now();
  driver_options line = {.cpu = compile_cpu_options(exe),
                         .no_passes = options->no_passes,
                         .edit = compile_add_donors,
                         .look = compile_begin_passes,
                         .ctx = &request,
                         .watch = &watch};
  line.cpu.n_lanes = options->n_lanes;
  line.cpu.lanes = options->lanes;
  line.cpu.async_work = options->async_work;
  line.cpu.runtime = (cpu_runtime *)(void *)options->runtime;
  TRY(driver_finish(copy, &line, &times, &exe->cpu, err));
  exe->seconds[XLAC_COMPILE_COPY] = copied - start + times.stage[DRIVER_PREPARED];
  exe->seconds[XLAC_COMPILE_PASSES] = times.stage[DRIVER_OPTIMISED];
  exe->seconds[XLAC_COMPILE_PLAN] = times.stage[DRIVER_PLANNED];
  return 0;
}

int xlac_compile(xlac_module *m, const xlac_compile_options *given, xlac_executable **out, xlac_error *err) {
  xlac_compile_options options;
  TRY(api_read_compile_options(&options, given, err));
  xlac_executable *exe = calloc(1, sizeof *exe);
  if (!exe) return base_oom(err, "an executable");
  int status = api_variants_create(&exe->variants, err);
  if (status == 0) status = compile_module(exe, m, &options, err);
  if (status) {
    api_variants_free(exe->variants);
    xlac_counters_release(exe->counters);
    free(exe->blas_path);
    free(exe);
    return status;
  }
  exe->view.ir = (ir_module *)(uintptr_t)cpu_executable_module(exe->cpu);
  pthread_mutex_init(&exe->view.lock, NULL);
  *out = exe;
  return 0;
}

const cpu_executable *api_executable_cpu(const xlac_executable *exe) {
  return exe->cpu;
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

xlac_module *xlac_executable_module(xlac_executable *exe) {
  return &exe->view;
}

void xlac_executable_destroy(xlac_executable *exe) {
  if (!exe) return;
  pthread_mutex_destroy(&exe->view.lock);
  api_variants_free(exe->variants);
  cpu_executable_free(exe->cpu);
  xlac_counters_release(exe->counters);
  free(exe->blas_path);
  free(exe);
}

int xlac_executable_run(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                        xlac_value *const *args, xlac_value **out, xlac_error *err) {
  interp_options inner;
  TRY(api_read_run_options(&inner, options, err));
  interp_value *result = NULL;
  TRY(cpu_execute(exe->cpu, &inner, n_args, (interp_value *const *)(const void *)args, &result, err));
  *out = api_value_out(result);
  return 0;
}

int xlac_executable_call(const xlac_executable *exe, const xlac_interpret_options *options, void *const *arguments,
                         void *const *results, xlac_error *err) {
  interp_options inner;
  TRY(api_read_run_options(&inner, options, err));
  const plan_program *p = cpu_executable_program(exe->cpu);
  if (p->interpreted)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the interpreter runs this program whole, on values, since %s", p->why);
  return cpu_execute_leaves(exe->cpu, &inner, arguments, results, NULL, err);
}

const xlac_type *xlac_executable_param(const xlac_executable *exe, uint32_t index, const char **name) {
  const ir_computation *entry = cpu_executable_module(exe->cpu)->entry;
  if (index >= entry->n_params) return NULL;
  if (name) *name = entry->params[index]->name->s;
  return api_type_out(entry->params[index]->type);
}

const xlac_type *xlac_executable_result(const xlac_executable *exe) {
  return api_type_out(ir_root(cpu_executable_module(exe->cpu)->entry)->type);
}

static void compile_count_steps(const plan_program *p, xlac_executable_info *info) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    info->n_steps++;
    info->n_kernels += s->kind == PLAN_KERNEL;
    info->n_routines += s->kind == PLAN_ROUTINE;
    info->n_interpreted += s->kind == PLAN_EVAL;
    for (uint32_t j = 0; j < s->n_nested; j++) compile_count_steps(s->nested[j], info);
  }
}

/* Depth is that of a type, which is bounded. */
static int64_t compile_result_bytes(const ir_type *t) {
  int64_t bytes = ir_is_tensor(t) ? ir_type_bytes(t) : 0;
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) bytes += compile_result_bytes(t->elements[i]);
  return bytes;
}

void xlac_executable_get(const xlac_executable *exe, xlac_executable_info *out) {
  const plan_program *p = cpu_executable_program(exe->cpu);
  *out = (xlac_executable_info){.frame_bytes = p->frame_bytes,
                                .peak_bytes = p->peak_bytes,
                                .interpreted = p->interpreted ? p->why : NULL,
                                .n_arguments = p->n_arguments,
                                .n_results = p->n_results,
                                .n_donations = p->n_donations,
                                .numerics = exe->options.numerics,
                                .work = cpu_executable_work(exe->cpu),
                                .blas = cpu_blas_describe(cpu_executable_blas(exe->cpu))};
  memcpy(out->seconds, exe->seconds, sizeof out->seconds);
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->borrowed) continue;
    if (b->place == PLAN_ARGUMENT) out->argument_bytes += b->bytes;
    if (b->place == PLAN_CONSTANT) out->constant_bytes += b->bytes;
  }
  if (!p->interpreted) out->result_bytes = compile_result_bytes(ir_root(cpu_executable_module(exe->cpu)->entry)->type);
  compile_count_steps(p, out);
}

int xlac_executable_out_of_memory(const xlac_executable *exe, xlac_error *err) {
  return plan_out_of_memory(cpu_executable_program(exe->cpu), err);
}

bool xlac_executable_pass(const xlac_executable *exe, uint32_t index, const char **name, double *seconds) {
  if (index >= exe->n_passes) return false;
  *name = exe->passes[index].name;
  *seconds = exe->passes[index].seconds;
  return true;
}

int xlac_executable_plan(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  plan_put(&t, cpu_executable_program(exe->cpu));
  return api_give_text(&t, text, n, err);
}

int xlac_executable_report(const xlac_executable *exe, char **json, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  if (!plan_put_json(&t, base_alloc_libc, cpu_executable_program(exe->cpu))) {
    base_text_free(&t);
    return base_oom(err, "a report");
  }
  return api_give_text(&t, json, n, err);
}

typedef enum compile_clock { CLOCK_STEPS, CLOCK_LANES, CLOCK_NONE } compile_clock;

static int compile_run_profiled(const xlac_executable *exe, const xlac_interpret_options *options, compile_clock clock,
                                uint32_t n_args, xlac_value *const *args, xlac_value **out, char **json, size_t *n,
                                xlac_error *err) {
  interp_options inner;
  TRY(api_read_run_options(&inner, options, err));
  interp_value *result = NULL;
  cpu_profile profile;
  base_text t;
  TRY(cpu_profile_begin(&profile, base_alloc_libc, exe->cpu, clock == CLOCK_LANES, err));
  profile.quiet = clock == CLOCK_NONE;
  base_text_init(&t, base_alloc_libc);
  int status =
      cpu_execute_profiled(exe->cpu, &inner, n_args, (interp_value *const *)(const void *)args, &result, &profile, err);
  if (status == 0) cpu_profile_put(&profile, &t);
  cpu_profile_end(&profile);
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

int xlac_executable_profile(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                            xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_profiled(exe, options, CLOCK_STEPS, n_args, args, out, json, n, err);
}

int xlac_executable_timeline(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                             xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_profiled(exe, options, CLOCK_LANES, n_args, args, out, json, n, err);
}

int xlac_executable_count(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                          xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return compile_run_profiled(exe, options, CLOCK_NONE, n_args, args, out, json, n, err);
}

bool xlac_executable_lane(const xlac_executable *exe, uint32_t index, xlac_lane *out) {
  return cpu_executable_lane(exe->cpu, index, out);
}

int xlac_executable_fusion(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = plan_explain_fusion(&t, cpu_executable_program(exe->cpu), err);
  if (status) {
    base_text_free(&t);
    return status;
  }
  return api_give_text(&t, text, n, err);
}
