/* The door: arguments checked and taken apart into leaves, results made. */
#include "lapack.h"
#include "run.h"

BASE_VEC(call_leaves, void *);

static bool call_take_leaves(base_alloc alloc, const interp_value *v, call_leaves *leaves) {
  if (v->kind != INTERP_TUPLE) return BASE_VEC_PUSH(alloc, leaves, v->data);
  for (uint32_t i = 0; i < v->n_elements; i++)
    if (!call_take_leaves(alloc, v->elements[i], leaves)) return false;
  return true;
}

/* A value of type t with memory for its arrays. NULL when out of memory. */
static interp_value *call_new_value(interp_ctx *ctx, const ir_type *t) {
  if (ir_is_token(t)) return interp_token(ctx);
  if (ir_is_tensor(t)) return interp_array(ctx, t->dtype, t->rank, t->dims);
  interp_value **parts = base_malloc(ctx->options.alloc, (size_t)t->n_elements * sizeof *parts), *v = NULL;
  uint32_t n = 0;
  while (parts && n < t->n_elements && (parts[n] = call_new_value(ctx, t->elements[n]))) n++;
  if (parts && n == t->n_elements) v = interp_tuple(ctx, n, parts);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(ctx->options.alloc, parts);
  return v;
}

static int call_with_leaves(cpu_run *run, const call_leaves *arguments, const call_leaves *results) {
  cpu_executable *exe = (cpu_executable *)(uintptr_t)run->exe;
  assert(arguments->n == exe->program->n_arguments && results->n == exe->program->n_results);
  char *frame = cpu_frame_take(exe);
  if (!frame) return base_oom(run->ctx.err, "a call's memory");
  char *aligned = (char *)(((uintptr_t)frame + PLAN_ALIGN - 1) & ~(uintptr_t)(PLAN_ALIGN - 1));
  int status = cpu_run_program(run, exe->program, arguments->items, results->items, aligned);
  cpu_frame_give(exe, frame);
  return status;
}

static int call_planned(cpu_run *run, uint32_t n, interp_value *const *args, interp_value **out) {
  call_leaves arguments = {NULL, 0, 0}, results = {NULL, 0, 0};
  base_alloc alloc = run->exe->alloc;
  interp_value *result = call_new_value(&run->ctx, ir_root(run->exe->m->entry)->type);
  bool ok = result != NULL;
  for (uint32_t i = 0; i < n && ok; i++) ok = call_take_leaves(alloc, args[i], &arguments);
  ok = ok && call_take_leaves(alloc, result, &results);
  int status = ok ? call_with_leaves(run, &arguments, &results) : base_oom(run->ctx.err, "a call's results");
  BASE_VEC_FREE(alloc, &arguments);
  BASE_VEC_FREE(alloc, &results);
  if (status) {
    interp_release(result);
    return status;
  }
  *out = result;
  return 0;
}

static int call_cleaned(cpu_run *run, const ir_computation *entry, interp_value *const *args, interp_value **out) {
  uint32_t n = entry->n_params, made = 0;
  interp_value *few[32], **clean = few;
  int status = 0;
  if (n > 32 && !(clean = base_malloc(run->exe->alloc, n * sizeof *clean)))
    return base_oom(run->ctx.err, "the arguments");
  while (made < n && (clean[made] = interp_clean(&run->ctx, args[made]))) made++;
  status = made == n ? call_planned(run, n, clean, out) : base_oom(run->ctx.err, "the arguments");
  for (uint32_t i = 0; i < made; i++) interp_release(clean[i]);
  if (clean != few) base_free(run->exe->alloc, clean);
  return status;
}

int cpu_execute(const cpu_executable *exe, const interp_options *options, uint32_t n_args, interp_value *const *args,
                interp_value **out, xlac_error *err) {
  cpu_run run;
  interp_options own = *options;
  const ir_computation *entry = exe->m->entry;
  own.alloc = exe->alloc;
  own.natives = exe->blas ? cpu_lapack_native : NULL;
  own.natives_ctx = exe->blas;
  TRY(interp_check_args(entry, n_args, args, err));
  run.exe = exe;
  if (!exe->needs_interpreter) {
    memset(&run.ctx, 0, sizeof run.ctx);
    run.ctx.options = own;
    run.ctx.err = err;
    return call_cleaned(&run, entry, args, out);
  }
  TRY(interp_begin(&run.ctx, exe->m, &own, err));
  int status = exe->program->interpreted ? interp_run_in(&run.ctx, entry, n_args, args, out)
                                         : call_cleaned(&run, entry, args, out);
  interp_end(&run.ctx);
  return status;
}
