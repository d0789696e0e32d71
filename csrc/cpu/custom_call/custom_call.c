/* Custom calls of native code. The name is looked up at every call, in what the run's registry has and then among the
 * built-in ones, so that registering is possible after compiling, and counts where it is done before a call. */
#include "../../interp/custom_call/native.h"
#include "../linalg/lapack.h"
#include "../routine.h"

/* What is known when the op is prepared. */
typedef struct custom_call_data {
  native_op op;
  rt_native builtin; /* run is NULL where there is none */
} custom_call_data;

/* What the run's registry has comes first; what it has but no native code for (such as a Python function) is the
 * interpreter's. */
static int custom_call_run(const cpu_routine_run *r) {
  const custom_call_data *d = r->data;
  const interp_options *options = &r->run->ctx.options;
  rt_native native = {.run = NULL};
  void *ctx = NULL;
  const rt_native *what = &d->builtin;
  if (options->registry) {
    /* What is registered may not bear to be cut short: only what is built in heeds a wish to stop. */
    bool other = rt_registry_find(options->registry, d->op.target, &ctx, &native) != NULL;
    if (other || native.run) rt_pool_heed(r->run->exe->pool, NULL);
    if (other) return cpu_run_eval(r->run, r->step, r->pointers);
    if (native.run) what = &native;
  }
  if (!what->run) return cpu_run_eval(r->run, r->step, r->pointers); /* which says what is missing */
  return native_call(&r->run->ctx, &d->op, what, r->run->exe->pool, r->in, r->out, r->scratch);
}

/* Attributes and layouts are read once here; only the target is looked up again at each call. */
int cpu_prepare_custom_call(cpu_prepare_run *x) {
  assert(x->op->opcode == IR_OP_CUSTOM_CALL);
  const char *target = ir_get_str(x->op, IR_ATTR_CUSTOM_CALL_TARGET);
  if (interp_is_builtin_call(target)) return cpu_prepare_builtin_call(x);
  custom_call_data *d = BASE_NEW(x->arena, custom_call_data);
  if (!d) return base_oom(x->err, "a custom call");
  TRY(native_prepare(x->op, x->arena, &d->op, x->err));
  if (!cpu_native(x->options->blas, target, &d->builtin)) d->builtin = (rt_native){.run = NULL};
  x->out->name = "custom-call";
  x->data = d;
  x->out->scratch_bytes = d->op.scratch_bytes;
  x->out->in_place = native_in_place(&d->op);
  x->out->stoppable = d->builtin.run != NULL;
  x->out->work = UINT64_MAX; /* nobody knows; what is registered may want to run without locks */
  x->code = custom_call_run;
  return 0;
}
