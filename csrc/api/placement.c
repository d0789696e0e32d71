/* How JAX wants the arguments and results of a program to lie: attributes of StableHLO's main function. */
#include "api.h"
#include "placement.h"

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
