/* For the PJRT plugin: how JAX wants arguments and results to lie, which attributes of StableHLO's main function say;
 * and which custom calls are known. */
#include "plugin.h"
#include "api.h"

#include "../driver/devices.h"
#include "../interp/interp.h"
#include "../ir/attrs/mattr.h"

static const char *placement_text(const ir_mattr *a) {
  return a && a->kind == IR_M_STRING ? a->str->s : NULL;
}

static void placement_of_argument(const ir_op *p, api_placement *out) {
  out->layout_mode = placement_text(ir_mattr_of(p, "mhlo.layout_mode"));
  out->memory_kind = placement_text(ir_mattr_of(p, "mhlo.memory_kind"));
}

static void placement_of_result(ir_module *m, const ir_computation *f, uint32_t i, api_placement *out) {
  const ir_mdict *facts = ir_result_attrs(f, i);
  const ir_op *op = i < f->n_results ? f->results[i].op : NULL;
  out->layout_mode = placement_text(ir_mdict_get(facts, "mhlo.layout_mode"));
  out->memory_kind = placement_text(ir_mdict_get(facts, "mhlo.memory_kind"));
  if (op && op->opcode == IR_OP_TRANSPOSE)
    out->transpose = ir_m_ints(ir_mattr_of(op, "permutation"), &m->arena, &out->rank);
}

bool api_module_placement(xlac_module *m, bool result, uint32_t index, api_placement *out) {
  assert(m && out);
  *out = (api_placement){.rank = 0};
  api_lock(m);
  const ir_computation *f = m->ir->entry;
  bool found = index < (result ? ir_function_results(f) : f->n_params);
  if (found && result) placement_of_result(m->ir, f, index, out);
  if (found && !result) placement_of_argument(f->params[index], out);
  api_unlock(m);
  return found;
}

bool api_knows_custom_call(const char *target) {
  rt_native native;
  assert(target);
  if (interp_is_builtin_call(target) || strncmp(target, "lapack_", 7) == 0) return true;
  return driver_interp_library->find(NULL, target,
                                     &native); /* no routine of LAPACK, which alone need what was opened */
}

static bool inspect_is_call(const ir_op *op, const char *target) {
  return op->opcode == IR_OP_CUSTOM_CALL && strcmp(ir_m_get_str(op, "call_target_name"), target) == 0;
}

static int inspect_all(const ir_module *m, const char *target, api_inspection *fn, void *ctx, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      const ir_mattr *config = inspect_is_call(op, target) ? ir_mattr_of(op, "backend_config") : NULL;
      if (config && config->kind == IR_M_STRING)
        TRY(fn(ctx, config->str->s, config->str->n, ir_m_get_str(op, "mhlo.sharding"), err));
    }
  }
  return 0;
}

/* Whether there are any; and takes them out. */
static bool inspect_find(xlac_module *m, const char *target, bool remove) {
  bool found = false;
  IR_FOR_COMPUTATIONS(c, m->ir) {
    IR_FOR_OPS_SAFE(op, c) {
      if (!inspect_is_call(op, target)) continue;
      found = true;
      if (remove && !op->uses && op != ir_root(c)) ir_op_remove(op);
    }
  }
  return found;
}

int api_module_inspect(xlac_module *m, const char *target, api_inspection *fn, void *ctx, xlac_error *err) {
  static const char spread[] = "sdy-propagation-pipeline,xla-sdy-stablehlo-export-pipeline";
  xlac_module *copy = NULL;
  api_lock(m);
  bool any = inspect_find(m, target, false);
  api_unlock(m);
  if (!any) return 0;
  if (fn) TRY(xlac_module_clone(&copy, m, err));
  int status = fn ? xlac_module_run(copy, spread, NULL, err) : 0;
  if (fn && status == 0) status = inspect_all(copy->ir, target, fn, ctx, err);
  xlac_module_destroy(copy);
  if (status) return status;
  TRY(api_lock_edit(m, err));
  inspect_find(m, target, true);
  return api_done(m, 0);
}
