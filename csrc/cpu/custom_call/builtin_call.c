/* Custom calls that mean something by themselves (interp/custom_call/eval_custom_call.c): those that pass their operand
 * on, make memory, or find the largest elements. What is registered under such a name comes first, at each call. */
#include "../../interp/custom_call/native.h"
#include "../move/move.h"
#include "../routine.h"

/* After this returns true, the run heeds no wish to stop for the rest of the step. */
bool cpu_builtin_is_registered(const cpu_routine_run *r) {
  const interp_options *options = &r->run->ctx.options;
  rt_native native = {.run = NULL};
  void *ctx = NULL;
  const char *target = ir_get_str(r->step->op, IR_ATTR_CUSTOM_CALL_TARGET);
  bool is = options->registry && (rt_registry_find(options->registry, target, &ctx, &native) || native.run);
  if (is) rt_pool_heed(r->run->exe->pool, NULL); /* what is registered may not bear to be cut short */
  return is;
}

/* Annotations for partitioning and placement: one device runs them as copies, which buffers mostly make
 * unnecessary. */
static int builtin_identity(const cpu_routine_run *r) {
  assert(r->step->n_in == 1 && r->step->n_out == 1);
  const int64_t *bytes = r->data;
  if (cpu_builtin_is_registered(r)) return cpu_run_eval(r->run, r->step, r->pointers);
  cpu_move_bytes(r->run->exe->pool, r->out[0], r->in[0], *bytes);
  return 0;
}

/* AllocateBuffer promises nothing of its contents; zeros make it the same in every run. */
static int builtin_zeros(const cpu_routine_run *r) {
  const int64_t *bytes = r->data;
  uint8_t zero = 0;
  if (cpu_builtin_is_registered(r)) return cpu_run_eval(r->run, r->step, r->pointers);
  cpu_move_fill(r->run->exe->pool, 1, r->out[0], *bytes, &zero);
  return 0;
}

/* Prepares `code` for a result of so many bytes. */
static int builtin_bytes(cpu_prepare_run *x, const char *name, cpu_routine_fn *code) {
  int64_t bytes = x->op->type->count * (int64_t)base_dtype_bytes(x->op->type->dtype);
  x->out->name = name;
  x->data = base_arena_memdup(x->arena, &bytes, sizeof bytes);
  x->out->work = UINT64_MAX; /* of what may be registered */
  x->out->stoppable = true;
  x->code = code;
  return x->data ? 0 : base_oom(x->err, "a custom call");
}

/* Leaves a call to the interpreter where its types are not those that its meaning asks for. */
int cpu_prepare_builtin_call(cpu_prepare_run *x) {
  static const char *const identities[] = {"LayoutConstraint",         "MoveToDevice", "MoveToHost",
                                           "SPMDFullToShardShape",     "Sharding",     "SPMDShardToFullShape",
                                           "annotate_device_placement"};
  const ir_op *op = x->op;
  assert(op->opcode == IR_OP_CUSTOM_CALL);
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  if (strcmp(target, "TopK") == 0) return cpu_prepare_topk_call(x);
  if (!ir_is_tensor(op->type)) return 0;
  if (strcmp(target, "AllocateBuffer") == 0 && op->n_operands == 0) return builtin_bytes(x, "zeros", builtin_zeros);
  if (op->n_operands != 1 || ir_operand_type(op, 0)->bare != op->type->bare) return 0;
  for (size_t i = 0; i < sizeof identities / sizeof *identities; i++)
    if (strcmp(target, identities[i]) == 0) return builtin_bytes(x, "copy", builtin_identity);
  return 0;
}
