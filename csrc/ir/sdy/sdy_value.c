/* Shardings where ops and functions keep them. */
#include "sdy.h"

bool sdy_is_collective(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_SDY_ALL_GATHER:
    case IR_OP_SDY_ALL_SLICE:
    case IR_OP_SDY_ALL_TO_ALL:
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_REDUCE_SCATTER:
    case IR_OP_SDY_SHARDED_TO_UNREDUCED:
    case IR_OP_SDY_REPLICATED_TO_UNREDUCED:
      return true;
    default:
      return false;
  }
}

bool sdy_is_op(const ir_op *op) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return info && strncmp(info->name, "sdy.", 4) == 0;
}

const char *sdy_own_key(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
    case IR_OP_SDY_DATA_FLOW_EDGE:
      return "sharding";
    default:
      return sdy_is_collective(op) ? "out_sharding" : NULL;
  }
}

static const char *sdy_list_key(const ir_op *op) {
  bool computation = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
  return computation ? "out_shardings" : "sdy.sharding";
}

const sdy_shardings *sdy_get_list(const ir_op *op) {
  return op->mlir ? sdy_of(ir_mattr_of(op, sdy_list_key(op)), SDY_SHARDINGS) : NULL;
}

const sdy_sharding *sdy_get(ir_value v) {
  if (!v.op->mlir) return NULL;
  const char *key = v.op->opcode == IR_OP_PARAMETER ? "sdy.sharding" : sdy_own_key(v.op);
  if (key) return sdy_of(ir_mattr_of(v.op, key), SDY_SHARDING);
  const sdy_shardings *list = sdy_get_list(v.op);
  return list && v.index < list->n ? list->v[v.index] : NULL;
}

uint32_t sdy_rank(const ir_type *type) {
  return ir_is_tensor(type) ? type->rank : 0;
}

bool sdy_set_list(ir_op *op, const sdy_shardings *list) {
  ir_module *m = op->parent->module;
  const ir_mattr *a = list ? sdy_attr(m, SDY_SHARDINGS, list) : NULL;
  if (!list && !op->mlir) return true;
  return (a || !list) && ir_m_set(op, sdy_list_key(op), a);
}

static bool sdy_set_in_list(ir_value v, const sdy_sharding *s) {
  ir_module *m = v.op->parent->module;
  const sdy_shardings *old = sdy_get_list(v.op);
  uint32_t n = v.op->n_results;
  const sdy_sharding **list = BASE_ARRAY(&m->arena, const sdy_sharding *, n);
  sdy_shardings *to = BASE_NEW(&m->arena, sdy_shardings);
  if (!list || !to) return false;
  for (uint32_t i = 0; i < n; i++) {
    bool had = old && i < old->n;
    list[i] = i == v.index ? s : had ? old->v[i] : sdy_sharding_empty(m, s, sdy_rank(v.op->types[i]), true);
    if (!list[i]) return false;
  }
  *to = (sdy_shardings){n, list};
  return sdy_set_list(v.op, to);
}

bool sdy_set(ir_value v, const sdy_sharding *s) {
  assert(s);
  const char *key = v.op->opcode == IR_OP_PARAMETER ? "sdy.sharding" : sdy_own_key(v.op);
  if (!key) return sdy_set_in_list(v, s);
  const ir_mattr *a = sdy_attr(v.op->parent->module, SDY_SHARDING, s);
  return a && ir_m_set(v.op, key, a);
}

/* --- results of functions --- */

const sdy_sharding *sdy_get_result(const ir_computation *f, uint32_t i) {
  if (ir_returns_otherwise(f)) return NULL; /* it is of another type than the value */
  return sdy_of(ir_mdict_get(ir_result_attrs(f, i), "sdy.sharding"), SDY_SHARDING);
}

bool sdy_set_result(ir_computation *f, uint32_t i, const sdy_sharding *s) {
  if (ir_returns_otherwise(f)) return true;
  ir_module *m = f->module;
  const ir_mattr *a = s ? sdy_attr(m, SDY_SHARDING, s) : NULL;
  const ir_mdict *old = ir_result_attrs(f, i);
  if (!a && (s || !old)) return !s;
  const ir_mdict *d = ir_mdict_with(m, old, "sdy.sharding", a);
  return d && ir_set_result_attrs(f, i, d);
}
