/* Data flow edges: which values of an op must be sharded alike, and where their common sharding is kept. */
#include "sdy.h"

bool sdy_is_flow_op(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_WHILE:
    case IR_OP_CONDITIONAL:
    case IR_OP_OPT_BARRIER:
    case IR_OP_SDY_MANUAL_COMPUTATION:
    case IR_OP_SDY_NAMED_COMPUTATION:
      return true;
    default:
      return false;
  }
}

/* A manual or named computation: its arguments own edges of their own. */
static bool sdy_is_computation(const ir_op *op) {
  return op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
}

static bool sdy_result_owner(const ir_op *op, uint32_t i, ir_value *owner) {
  if (i >= op->n_results) return false;
  *owner = (ir_value){(ir_op *)(uintptr_t)op, i};
  return true;
}

bool sdy_owner(ir_value target, ir_value *owner) {
  const ir_op *op = target.op;
  if (op->opcode != IR_OP_PARAMETER) return sdy_is_flow_op(op) && sdy_result_owner(op, target.index, owner);
  const ir_op *around = op->parent->owner;
  if (!around || !sdy_is_flow_op(around)) return false;
  if (sdy_is_computation(around)) return *owner = target, true;
  return around->opcode == IR_OP_WHILE && sdy_result_owner(around, (uint32_t)op->u.number, owner);
}

/* --- edges --- */

/* By its own region; what inner regions return of it is not seen. */
static bool sdy_is_returned(ir_value v) {
  const ir_computation *c = v.op->parent;
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == v.op && c->results[i].index == v.index) return true;
  return false;
}

uint32_t sdy_uses_up_to_2(ir_value v) {
  uint32_t n = 0;
  for (const ir_use *u = v.op->uses; u && n < 2; u = u->next) n += u->index == v.index;
  if (n < 2 && sdy_is_returned(v)) n++;
  return n;
}

ir_op *sdy_edge_op(ir_value owner) {
  ir_op *edge = NULL;
  for (const ir_use *u = owner.op->uses; u; u = u->next) {
    if (u->index != owner.index) continue;
    if (edge || u->user->opcode != IR_OP_SDY_DATA_FLOW_EDGE) return NULL;
    edge = u->user;
  }
  return edge && !sdy_is_returned(owner) ? edge : NULL;
}

/* --- the owner's own sharding --- */

static const sdy_names *sdy_manual_axes(const ir_op *op) {
  return op->opcode == IR_OP_SDY_MANUAL_COMPUTATION ? sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES) : NULL;
}

const sdy_sharding *sdy_get_owner(ir_module *m, ir_value owner) {
  if (owner.op->opcode != IR_OP_PARAMETER) return sdy_get(owner);
  const ir_op *op = owner.op->parent->owner;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  if (!in || owner.op->u.number >= in->n) return NULL;
  const sdy_sharding *s = in->v[owner.op->u.number];
  const sdy_names *axes = sdy_manual_axes(op);
  return axes ? sdy_without_axes(m, s, axes, true) : s;
}

static bool sdy_set_argument(ir_op *param, const sdy_sharding *s) {
  ir_op *op = param->parent->owner;
  ir_module *m = op->parent->module;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_names *axes = sdy_manual_axes(op);
  uint32_t n = op->called[0]->n_params, at = (uint32_t)param->u.number;
  const sdy_sharding **list = BASE_ARRAY(&m->arena, const sdy_sharding *, n);
  sdy_shardings *to = BASE_NEW(&m->arena, sdy_shardings);
  if (!list || !to) return false;
  for (uint32_t i = 0; i < n; i++) {
    bool had = in && i < in->n;
    list[i] = had ? in->v[i] : sdy_sharding_empty(m, s, sdy_rank(op->called[0]->params[i]->type), true);
    if (i == at) list[i] = had && axes ? sdy_with_free_axes(m, in->v[i], s, axes) : s;
    if (!list[i]) return false;
  }
  *to = (sdy_shardings){n, list};
  const ir_mattr *a = sdy_attr(m, SDY_SHARDINGS, to);
  return a && ir_m_set(op, "in_shardings", a);
}

bool sdy_set_owner(ir_value owner, const sdy_sharding *s) {
  return owner.op->opcode == IR_OP_PARAMETER ? sdy_set_argument(owner.op, s) : sdy_set(owner, s);
}

/* --- as all see it --- */

const sdy_sharding *sdy_shown(ir_module *m, ir_value v) {
  ir_value owner;
  if (sdy_owner(v, &owner)) {
    const ir_op *edge = sdy_edge_op(owner);
    return edge ? sdy_get((ir_value){(ir_op *)(uintptr_t)edge, 0}) : sdy_get_owner(m, owner);
  }
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner) return NULL;
  return sdy_get(v);
}

bool sdy_show(ir_value v, const sdy_sharding *s) {
  ir_value owner;
  if (sdy_owner(v, &owner)) {
    ir_op *edge = sdy_edge_op(owner);
    return edge ? sdy_set((ir_value){edge, 0}, s) : sdy_set_owner(owner, s);
  }
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner) return true;
  return sdy_set(v, s);
}
