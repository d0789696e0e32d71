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
