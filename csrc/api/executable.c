/* Compiled programs: what they are asked, and their runs. An executable does not change after it is made, except for
 * its variants, which have their own lock; any number of threads may run it. */
#include <stdlib.h>

#include "../plan/report.h"
#include "executable.h"

/* Called by the device after each run with what it had to copy, on the thread that ran. */
static void executable_count(void *ctx, const rt_tally *t) {
  assert(ctx && t);
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PLAN, t->copies);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PLAN, t->bytes);
  xlac_counters_add(ctx, XLAC_COUNT_COPIES_PROTECTION, t->protecting);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_COPIED_PROTECTION, t->protecting_bytes);
  xlac_counters_add(ctx, XLAC_COUNT_REUSED, t->reused);
  xlac_counters_add(ctx, XLAC_COUNT_BYTES_REUSED, t->reused_bytes);
}

/* Nothing points to the caller's options, as variants are built long after they have gone. */
rt_build_options api_build_options(const xlac_executable *exe) {
  return (rt_build_options){.threads = exe->options.threads,
                            .no_blas = exe->options.no_blas,
                            .blas_path = exe->blas_path,
                            .fast = exe->options.numerics == XLAC_NUMERICS_FAST,
                            .count = exe->counters ? executable_count : NULL,
                            .count_ctx = exe->counters};
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
static void executable_count_steps(const plan_program *p, xlac_executable_info *info) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    info->n_steps++;
    info->n_kernels += s->kind == PLAN_KERNEL;
    info->n_routines += s->kind == PLAN_ROUTINE && !s->routine->interpreted;
    info->n_interpreted += s->kind == PLAN_ROUTINE && s->routine->interpreted;
    for (uint32_t j = 0; j < s->n_nested; j++) executable_count_steps(s->nested[j], info);
  }
}

/* Depth is that of a type, which is bounded. Leaves that are not tensors take nothing. */
static int64_t executable_result_bytes(const ir_type *t) {
  int64_t bytes = ir_is_tensor(t) ? ir_type_bytes(t) : 0;
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) bytes += executable_result_bytes(t->elements[i]);
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
  if (!p->interpreted) out->result_bytes = executable_result_bytes(ir_root(exe->rt->module->entry)->type);
  executable_count_steps(p, out);
}

/* The error for a caller whose own allocation for this program failed: says how much the program needs,
 * and for what. Always fails. */
int xlac_executable_out_of_memory(const xlac_executable *exe, xlac_error *err) {
  return plan_out_of_memory(exe->rt->plan, err);
}

/* Passes in the order in which they ran, with seconds; past API_MAX_PASSES they are not listed. */
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
static int executable_run_traced(const xlac_executable *exe, const xlac_interpret_options *options, rt_trace_kind kind,
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
  return executable_run_traced(exe, options, RT_TRACE_STEPS, n_args, args, out, json, n, err);
}

/* What each lane did when. JSON. */
int xlac_executable_timeline(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                             xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return executable_run_traced(exe, options, RT_TRACE_LANES, n_args, args, out, json, n, err);
}

int xlac_executable_count(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                          xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err) {
  return executable_run_traced(exe, options, RT_TRACE_COUNTS, n_args, args, out, json, n, err);
}

bool xlac_executable_lane(const xlac_executable *exe, uint32_t index, xlac_lane *out) {
  return rt_executable_lane(exe->rt, index, out);
}

int xlac_executable_cost(const xlac_executable *exe, xlac_cost *out, xlac_error *err) {
  plan_cost c = {0};
  TRY(plan_total_cost(base_alloc_libc, exe->rt->plan, &c, err));
  *out = (xlac_cost){c.flops, c.transcendentals, c.read, c.written};
  return 0;
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
