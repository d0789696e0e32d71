/* Shardings of values, and the ops that change them. A value's sharding may be held by the data-flow edge that reads
 * it; an argument of a region shows that of its edge or of the op around it. */
#include "explicit.h"
#include "../state/state.h"

/* The first failure is the one that is told. */
void explicit_fail(explicit_pass *e, int status) {
  if (e->status == 0) e->status = status;
}

/* The only reader, where it is a data flow edge.
 * Values that loops carry have their sharding at the edge that reads them. */
static ir_op *explicit_edge(explicit_pass *e, ir_value v) {
  (void)e;
  ir_op *edge = NULL;
  IR_FOR_USES(use, v.op) {
    if (use->index != v.index) continue;
    if (edge || use->user->opcode != IR_OP_SDY_DATA_FLOW_EDGE) return NULL;
    edge = use->user;
  }
  return edge;
}

/* While regions show the edge of the result of the same number; arguments of other regions have no sharding. */
static const sdy_sharding *explicit_of_argument(explicit_pass *e, ir_value v) {
  assert(v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner);
  ir_op *owner = v.op->parent->owner;
  uint64_t i = (uint64_t)v.op->u.number;
  const ir_op *edge = NULL;
  if (owner->opcode == IR_OP_WHILE && i < owner->n_results) {
    ir_value result = {owner, (uint32_t)i};
    edge = explicit_edge(e, result);
    return edge ? sdy_of(ir_mattr_of(edge, "sharding"), SDY_SHARDING) : sdy_get(result);
  }
  if (owner->opcode != IR_OP_SDY_NAMED_COMPUTATION && owner->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return NULL;
  edge = explicit_edge(e, v);
  if (edge) return sdy_of(ir_mattr_of(edge, "sharding"), SDY_SHARDING);
  const sdy_shardings *list = sdy_of(ir_mattr_of(owner, "in_shardings"), SDY_SHARDINGS);
  const sdy_names *manual = sdy_of(ir_mattr_of(owner, "manual_axes"), SDY_MANUAL_AXES);
  if (!list || i >= list->n) return NULL;
  return manual ? shard_manual_inside(&e->pool, list->v[i], manual) : list->v[i];
}

const sdy_sharding *explicit_get(explicit_pass *e, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner) return explicit_of_argument(e, v);
  const ir_op *edge = shard_is_flow(v.op) ? explicit_edge(e, v) : NULL;
  return edge ? sdy_of(ir_mattr_of(edge, "sharding"), SDY_SHARDING) : sdy_get(v);
}

bool explicit_is_replicated(const sdy_sharding *s) {
  for (uint32_t d = 0; s && d < s->n_dims; d++)
    if (s->dims[d].axes.n) return false;
  return true;
}

/* By name where both have one: equal meshes of different names count as different, as in Shardy. */
static bool explicit_same_mesh(const sdy_sharding *a, const sdy_sharding *b) {
  if (a->mesh_name && b->mesh_name) return sdy_name_equal(a->mesh_name, b->mesh_name);
  return !a->mesh_name && !b->mesh_name && sdy_mesh_equal(a->mesh, b->mesh);
}

/* Open or closed, priorities and replicated axes say nothing of where elements are. NULL counts as replicated. */
bool explicit_equivalent(const sdy_sharding *a, const sdy_sharding *b) {
  if (explicit_is_replicated(a)) return explicit_is_replicated(b);
  if (!b || a->n_dims != b->n_dims || !explicit_same_mesh(a, b)) return false;
  for (uint32_t d = 0; d < a->n_dims; d++)
    if (!sdy_axes_equal(a->dims[d].axes, b->dims[d].axes)) return false;
  return true;
}

const sdy_mesh *explicit_mesh(explicit_pass *e, const sdy_sharding *s) {
  return sdy_mesh_of(e->rw.m, s);
}

/* `to` may lie in the pool: the attribute has a copy in the module. */
static ir_value explicit_make(explicit_pass *e, ir_opcode opcode, ir_value v, const char *key, const sdy_sharding *to) {
  const sdy_sharding *kept = to ? sdy_sharding_make(e->rw.m, to) : NULL;
  ir_value out = opt_make(&e->rw, opcode, v.op->types[v.index], 1, &v);
  opt_set(&e->rw, out, key, kept ? sdy_attr(e->rw.m, SDY_SHARDING, kept) : NULL);
  if (e->rw.failed || !out.op) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return v;
  }
  return out;
}

/* A priority of nothing is none: Shardy's verifier refuses it. */
static bool explicit_has_bare_priority(const sdy_sharding *s, uint32_t *dim) {
  for (*dim = 0; *dim < s->n_dims; ++*dim) {
    const sdy_dim *d = &s->dims[*dim];
    if (d->priority >= 0 && !d->open && d->axes.n == 0) return true;
  }
  return false;
}

/* The verifier would find this later, with less to say about where it came from. */
ir_value explicit_reshard(explicit_pass *e, ir_value v, const sdy_sharding *to) {
  uint32_t dim = 0;
  if (to && explicit_has_bare_priority(to, &dim)) {
    explicit_fail(e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, v.op->line, v.op->col, "sdy.reshard",
                                  "'sdy.reshard' op dim %u is empty and closed but has a priority", dim));
    return v;
  }
  return explicit_make(e, IR_OP_SDY_RESHARD, v, "sharding", to);
}

/* Whether the sharding uses the axis, for a dimension or explicitly replicated. */
static bool explicit_names(const sdy_sharding *s, sdy_axis axis) {
  for (uint32_t d = 0; d < s->n_dims; d++)
    if (sdy_axes_overlap(s->dims[d].axes, axis)) return true;
  return sdy_axes_overlap(s->replicated, axis);
}

/* The check is the verifier's, made here since the op that it would name is one the user has not written. */
ir_value explicit_all_reduce(explicit_pass *e, ir_value v, sdy_axes axes, uint8_t reduction, const sdy_sharding *out) {
  for (uint32_t i = 0; i < axes.n; i++) {
    if (!explicit_names(out, axes.v[i])) continue;
    explicit_fail(e, base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, v.op->line, v.op->col, "sdy.all_reduce",
                                  "reduction axis \"%s\" overlaps with operand dimension sharding or replicated axes",
                                  axes.v[i].name->s));
    return v;
  }
  ir_value made = explicit_make(e, IR_OP_SDY_ALL_REDUCE, v, "out_sharding", out);
  sdy_axes *kept = BASE_NEW(&e->rw.m->arena, sdy_axes);
  if (!kept || !sdy_axes_make(e->rw.m, axes, kept))
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
  else if (made.op != v.op)
    opt_set(&e->rw, made, "reduction_axes", sdy_attr(e->rw.m, SDY_AXES, kept));
  if (made.op != v.op && reduction != SDY_SUM) opt_set(&e->rw, made, "reduction_op", ir_m_i32(e->rw.m, reduction));
  return made;
}

/* Right after what makes v; for an argument at the start of its block. */
void explicit_after(explicit_pass *e, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER) {
    opt_at_start(&e->rw, v.op->parent);
  } else {
    e->rw.into = v.op->parent;
    e->rw.before = v.op->next;
  }
  e->rw.origin = v.op;
}

/* The new op reads `from` itself: its operand was replaced with all others, and is put back. */
void explicit_replace(explicit_pass *e, ir_value from, ir_value to) {
  assert(from.index < from.op->n_results);
  ir_value *all = BASE_ARRAY(&e->rw.arena, ir_value, from.op->n_results);
  if (!all) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return;
  }
  for (uint32_t i = 0; i < from.op->n_results; i++) all[i] = i == from.index ? to : (ir_value){from.op, i};
  opt_replace_results(&e->rw, from.op, all);
  for (uint32_t i = 0; i < to.op->n_operands; i++)
    if (to.op->operands[i].op == to.op) ir_set_operand(to.op, i, from);
}

ir_value explicit_used(explicit_use u) {
  assert(u.op ? u.index < u.op->n_operands : u.index < u.c->n_results);
  if (!u.op) return u.c->results[u.index];
  return (ir_value){u.op->operands[u.index].op, u.op->operands[u.index].index};
}

/* u.op NULL: one of a function's results. */
void explicit_set(explicit_pass *e, explicit_use u, ir_value v) {
  if (u.op) {
    ir_set_operand(u.op, u.index, v);
    return;
  }
  uint32_t n = u.c->n_results;
  ir_value *all = BASE_ARRAY(&e->rw.arena, ir_value, n);
  if (!all) {
    explicit_fail(e, base_oom(e->err, "explicit reshards"));
    return;
  }
  for (uint32_t i = 0; i < n; i++) all[i] = i == u.index ? v : u.c->results[i];
  opt_set_results(&e->rw, u.c, n, all);
}
