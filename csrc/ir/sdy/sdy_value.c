/* Shardings of values: where ops and functions keep them, along data flow edges, and across manual computations.
 *
 * A value's sharding is found in one of five places: the attribute sdy.sharding of a function's argument or result;
 * the "sharding" or "out_sharding" of a constraint or collective; an op's list with one sharding a result; the
 * in_shardings and out_shardings of a manual or named computation; or the sdy.data_flow_edge op that stands for a set
 * of values (the results and region arguments of a while, say) which all must be sharded alike. sdy_shown and
 * sdy_show hide which. */
#include "sdy.h"

/* The ops whose result's sharding is an attribute of their own. */
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

/* By the name in the op table: unregistered ops of the dialect do not count. */
bool sdy_is_op(const ir_op *op) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return info && strncmp(info->name, "sdy.", 4) == 0;
}

/* The attribute of ops with one result and one sharding. */
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

/* Under which key the list of an op's result shardings stands. */
static const char *sdy_list_key(const ir_op *op) {
  bool computation = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
  return computation ? "out_shardings" : "sdy.sharding";
}

const sdy_shardings *sdy_get_list(const ir_op *op) {
  return op->mlir ? sdy_of(ir_mattr_of(op, sdy_list_key(op)), SDY_SHARDINGS) : NULL;
}

/* The list may be shorter than the results in a module that has not been verified. */
const sdy_sharding *sdy_get(ir_value v) {
  assert(v.op);
  if (!v.op->mlir) return NULL;
  const char *key = v.op->opcode == IR_OP_PARAMETER ? "sdy.sharding" : sdy_own_key(v.op);
  if (key) return sdy_of(ir_mattr_of(v.op, key), SDY_SHARDING);
  const sdy_shardings *list = sdy_get_list(v.op);
  return list && v.index < list->n ? list->v[v.index] : NULL;
}

/* 0 for what has no dimensions, so that its sharding has none. */
uint32_t sdy_rank(const ir_type *type) {
  return ir_is_tensor(type) ? type->rank : 0;
}

/* Removing a list that is not there makes no dictionary. */
bool sdy_set_list(ir_op *op, const sdy_shardings *list) {
  assert(op);
  ir_module *m = op->parent->module;
  const ir_mattr *a = list ? sdy_attr(m, SDY_SHARDINGS, list) : NULL;
  if (!list && !op->mlir) return true;
  return (a || !list) && ir_m_set(op, sdy_list_key(op), a);
}

/* Attribute lists are immutable: a new one, with the other results' shardings as they were. */
static bool sdy_set_in_list(ir_value v, const sdy_sharding *s) {
  assert(v.index < v.op->n_results);
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

/* An edit. */
bool sdy_set(ir_value v, const sdy_sharding *s) {
  assert(s);
  const char *key = v.op->opcode == IR_OP_PARAMETER ? "sdy.sharding" : sdy_own_key(v.op);
  if (!key) return sdy_set_in_list(v, s);
  const ir_mattr *a = sdy_attr(v.op->parent->module, SDY_SHARDING, s);
  return a && ir_m_set(v.op, key, a);
}

/* --- results of functions --- */

const sdy_sharding *sdy_get_result(const ir_computation *f, uint32_t i) {
  assert(f);
  if (ir_returns_otherwise(f)) return NULL; /* it is of another type than the value */
  return sdy_of(ir_mdict_get(ir_result_attrs(f, i), "sdy.sharding"), SDY_SHARDING);
}

/* s NULL takes the sharding away. True, with nothing done, for functions whose results have no value. */
bool sdy_set_result(ir_computation *f, uint32_t i, const sdy_sharding *s) {
  assert(f);
  if (ir_returns_otherwise(f)) return true;
  ir_module *m = f->module;
  const ir_mattr *a = s ? sdy_attr(m, SDY_SHARDING, s) : NULL;
  const ir_mdict *old = ir_result_attrs(f, i);
  if (!a && (s || !old)) return !s;
  const ir_mdict *d = ir_mdict_with(m, old, "sdy.sharding", a);
  return d && ir_set_result_attrs(f, i, d);
}

/* --- data flow edges: which values of an op must be sharded alike, and where their common sharding is kept ---
 *
 * In while(a, b) result 0, argument 0 of the condition and of the body, the body's returned value 0 and operand a are
 * one set: the edge's targets are the result and the arguments, and result 0 owns it. This is Shardy's
 * ShardableDataFlowOpInterface. */
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

/* False where a parameter's number has no result: only in a module that has not been verified. */
static bool sdy_result_owner(const ir_op *op, uint32_t i, ir_value *owner) {
  if (i >= op->n_results) return false;
  *owner = (ir_value){(ir_op *)(uintptr_t)op, i};
  return true;
}

/* Results of a flow op own their edges. Arguments of a while belong to its results; those of a manual or named
 * computation own edges of their own; a case has no arguments. */
bool sdy_owner(ir_value target, ir_value *owner) {
  assert(owner && target.op);
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
  assert(v.op->parent);
  const ir_computation *c = v.op->parent;
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == v.op && c->results[i].index == v.index) return true;
  return false;
}

/* Callers only ask whether there is more than one use, so the list is not walked to its end. */
uint32_t sdy_uses_up_to_2(ir_value v) {
  uint32_t n = 0;
  for (const ir_use *u = v.op->uses; u && n < 2; u = u->next) n += u->index == v.index;
  if (n < 2 && sdy_is_returned(v)) n++;
  return n;
}

/* The edge must be the only use, or else other users would see another sharding than the edge has. */
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

/* NULL for a named computation, in which all axes stay free. */
static const sdy_names *sdy_manual_axes(const ir_op *op) {
  return op->opcode == IR_OP_SDY_MANUAL_COMPUTATION ? sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES) : NULL;
}

/* Inside a manual computation its manual axes are gone from types and shardings: an argument's local shape has them
 * divided out. */
const sdy_sharding *sdy_get_owner(ir_module *m, ir_value owner) {
  assert(owner.op);
  if (owner.op->opcode != IR_OP_PARAMETER) return sdy_get(owner);
  const ir_op *op = owner.op->parent->owner;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  if (!in || owner.op->u.number >= in->n) return NULL;
  const sdy_sharding *s = in->v[owner.op->u.number];
  const sdy_names *axes = sdy_manual_axes(op);
  return axes ? sdy_without_axes(m, s, axes, true) : s;
}

/* The new list has the manual axes of before and, behind them, the axes of s. */
static bool sdy_set_argument(ir_op *param, const sdy_sharding *s) {
  assert(param->opcode == IR_OP_PARAMETER && param->parent->owner);
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

/* Arguments of regions that are in no edge (a reducer's, a sort's) have no sharding. */
const sdy_sharding *sdy_shown(ir_module *m, ir_value v) {
  assert(v.op);
  ir_value owner;
  if (sdy_owner(v, &owner)) {
    const ir_op *edge = sdy_edge_op(owner);
    return edge ? sdy_get((ir_value){(ir_op *)(uintptr_t)edge, 0}) : sdy_get_owner(m, owner);
  }
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner) return NULL;
  return sdy_get(v);
}

bool sdy_show(ir_value v, const sdy_sharding *s) {
  assert(v.op && s);
  ir_value owner;
  if (sdy_owner(v, &owner)) {
    ir_op *edge = sdy_edge_op(owner);
    return edge ? sdy_set((ir_value){edge, 0}, s) : sdy_set_owner(owner, s);
  }
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent->owner) return true;
  return sdy_set(v, s);
}

/* --- shardings inside and outside of manual computations, and differences of lists of axes --- */
bool sdy_is_manual_axis(const sdy_names *axes, const base_istr *name) {
  for (uint32_t i = 0; i < axes->n; i++)
    if (sdy_name_equal(axes->v[i], name)) return true;
  return false;
}

/* Manual axes come first in a dimension: how many there are. */
static uint32_t sdy_n_manual(sdy_axes a, const sdy_names *axes) {
  uint32_t n = 0;
  while (n < a.n && sdy_is_manual_axis(axes, a.v[n].name)) n++;
  return n;
}

/* Replicated and unreduced lists are sorted by mesh, so manual axes stand anywhere in them. */
static sdy_axes sdy_free_only(sdy_axes a, const sdy_names *axes, sdy_axis *room) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a.n; i++)
    if (!sdy_is_manual_axis(axes, a.v[i].name)) room[n++] = a.v[i];
  return (sdy_axes){n, room};
}

/* Dimensions share the original's arrays of axes: a suffix (manual) or a prefix of them. Openness and priorities
 * stay. */
const sdy_sharding *sdy_without_axes(ir_module *m, const sdy_sharding *s, const sdy_names *axes, bool manual) {
  assert(s && axes);
  if (manual && axes->n == 0) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  sdy_axis *room = BASE_ARRAY(&m->arena, sdy_axis, s->replicated.n + s->unreduced.n + 1u);
  if (!to || !dims || !room) return NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    sdy_axes *a = &dims[i].axes;
    uint32_t n = sdy_n_manual(*a, axes);
    *a = manual ? (sdy_axes){a->n - n, a->v ? a->v + n : NULL} : (sdy_axes){n, a->v};
  }
  to->dims = dims;
  to->replicated = sdy_free_only(s->replicated, axes, room);
  to->unreduced = sdy_free_only(s->unreduced, axes, room + s->replicated.n);
  return to;
}

/* Dimension by dimension the outer manual axes, then the free ones, with the openness and priority of `free`. */
const sdy_sharding *sdy_with_free_axes(ir_module *m, const sdy_sharding *outer, const sdy_sharding *free,
                                       const sdy_names *axes) {
  assert(outer && free && axes);
  sdy_sharding *to = base_arena_memdup(&m->arena, free, sizeof *free);
  sdy_dim *dims = base_arena_memdup(&m->arena, outer->dims, outer->n_dims * sizeof *dims);
  if (!to || !dims) return NULL;
  for (uint32_t i = 0; i < outer->n_dims; i++) {
    uint32_t n = sdy_n_manual(dims[i].axes, axes);
    dims[i].axes.n = n;
    if (i >= free->n_dims) continue;
    const sdy_dim *more = &free->dims[i];
    sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, n + more->axes.n + 1u);
    if (!v) return NULL;
    if (n) memcpy(v, dims[i].axes.v, n * sizeof *v);
    if (more->axes.n) memcpy(v + n, more->axes.v, more->axes.n * sizeof *v);
    dims[i] = (sdy_dim){{n + more->axes.n, v}, more->open, more->priority};
  }
  to->dims = dims;
  to->n_dims = outer->n_dims;
  to->replicated = outer->replicated;
  to->unreduced = outer->unreduced;
  to->reduction = SDY_SUM;
  return to;
}

/* Where an axis begins, among those of its name. */
static int sdy_compare_place(sdy_axis a, sdy_axis b) {
  int64_t x = sdy_axis_pre(a), y = sdy_axis_pre(b);
  return (x > y) - (x < y);
}

/* The first of b that overlaps a, by where it begins; -1: none. */
static int sdy_first_overlap(sdy_axis a, sdy_axes b) {
  int first = -1;
  for (uint32_t i = 0; i < b.n; i++)
    if (sdy_axis_overlaps(a, b.v[i]) && (first < 0 || sdy_compare_place(b.v[i], b.v[first]) < 0)) first = (int)i;
  return first;
}

/* Each axis of a is cut at its overlaps with b from the left: what comes before an overlap is kept, and what comes
 * after is cut further. At most one more part for each of b, hence the room. */
uint32_t sdy_axes_minus(sdy_axes a, sdy_axes b, const sdy_mesh *mesh, sdy_axis *v) {
  assert(mesh && v);
  uint32_t n = 0;
  for (uint32_t i = 0; i < a.n; i++) {
    sdy_axis rest = a.v[i], part;
    for (;;) {
      int at = sdy_first_overlap(rest, b);
      if (at < 0) {
        v[n++] = rest;
        break;
      }
      if (sdy_axis_before(rest, b.v[at], &part)) v[n++] = part;
      if (!sdy_axis_after(rest, b.v[at], mesh, &part)) break;
      rest = part;
    }
  }
  return n;
}

uint32_t sdy_axes_append(sdy_axis *v, uint32_t n, sdy_axis a, const sdy_mesh *mesh) {
  assert(v && mesh);
  if (n && sdy_axis_can_merge(v[n - 1], a)) {
    v[n - 1] = sdy_axis_merge(v[n - 1], a, mesh);
    return n;
  }
  v[n] = a;
  return n + 1;
}
