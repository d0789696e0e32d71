/* Taking notes: origins before propagation, records of what an op did, clashes; and what sdy-sink-data-flow-edges and
 * sdy-apply-sharding-constraints do with notes. The forms are Shardy's debug attributes (sdy.sharding_origins,
 * sdy.propagation_edges), of which the records are a superset. */
#include <stdio.h>

#include "../common/common.h"
#include "../import/edges.h"
#include "trace.h"

void shard_trace_init(shard_trace *t, base_alloc alloc) {
  memset(t, 0, sizeof *t);
  t->alloc = alloc;
  base_map_init(&t->last_conflict, alloc);
  base_map_init(&t->first_origin, alloc);
}

void shard_trace_free(shard_trace *t) {
  BASE_VEC_FREE(t->alloc, &t->records);
  BASE_VEC_FREE(t->alloc, &t->looks);
  BASE_VEC_FREE(t->alloc, &t->phases);
  BASE_VEC_FREE(t->alloc, &t->gone);
  BASE_VEC_FREE(t->alloc, &t->conflicts);
  BASE_VEC_FREE(t->alloc, &t->origins);
  base_map_free(&t->last_conflict);
  base_map_free(&t->first_origin);
}

/* Steps go on counting over several runs of propagation on one module. */
uint32_t shard_trace_first_step(const ir_module *m) {
  int64_t last = -1;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      const sdy_edges *edges = op->mlir ? sdy_of(ir_mattr_of(op, "sdy.propagation_edges"), SDY_EDGES) : NULL;
      for (uint32_t i = 0; edges && i < edges->n; i++)
        if (edges->v[i].index > last) last = edges->v[i].index;
    }
  }
  return (uint32_t)(last + 1);
}

/* --- origins --- */

/* The first origin of an axis in a slot stays: who wrote it first is what is asked. Lists by slot are linked by
 * index. */
static void trace_add_origin(shard_trace *t, shard_origin o) {
  uint64_t first = 0;
  (void)base_map_get(&t->first_origin, o.slot, &first);
  for (uint32_t i = (uint32_t)first; i; i = t->origins.items[i - 1].next)
    if (sdy_axis_equal(t->origins.items[i - 1].axis, o.axis)) return;
  o.next = (uint32_t)first;
  if (!BASE_VEC_PUSH(t->alloc, &t->origins, o) || !base_map_set(&t->first_origin, o.slot, t->origins.n))
    t->failed = true;
}

/* The exact axis first; else one that contains it or is contained, as when an axis was split after it was noted. */
const shard_origin *shard_trace_origin(const shard_trace *t, uint32_t slot, sdy_axis axis) {
  uint64_t first = 0;
  const shard_origin *related = NULL;
  (void)base_map_get(&t->first_origin, slot, &first);
  for (uint32_t i = (uint32_t)first; i; i = t->origins.items[i - 1].next) {
    const shard_origin *o = &t->origins.items[i - 1];
    if (sdy_axis_equal(o->axis, axis)) return o;
    if (sdy_axis_contains(o->axis, axis) || sdy_axis_contains(axis, o->axis)) related = o;
  }
  return related;
}

/* All axes of a sharding have the same origin in the slot. */
static void trace_origins_of(shard_trace *t, uint32_t slot, const sdy_sharding *s, shard_source source, uint32_t index,
                             uint32_t id) {
  assert(source <= SHARD_FROM_OP);
  for (uint32_t d = 0; s && slot != SHARD_NO_SLOT && d < s->n_dims; d++)
    for (uint32_t i = 0; i < s->dims[d].axes.n; i++)
      trace_add_origin(t, (shard_origin){slot, s->dims[d].axes.v[i], (uint8_t)source, index, id, 0});
}

/* An operand's axes are the computation's input both in the body and outside of it.
 * The body sees the operand under its own name (the block argument), so both get the origin. */
static void trace_manual(shard_trace *t, const shard_state *s, const ir_op *op, uint32_t id) {
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  const ir_computation *body = op->n_called ? op->called[0] : NULL;
  for (uint32_t i = 0; in && body && i < in->n && i < body->n_params && i < op->n_operands; i++) {
    trace_origins_of(t, shard_home(s, shard_slot_of(s, body->params[i], 0)), in->v[i], SHARD_FROM_MANUAL_INPUT, i, id);
    uint32_t source = shard_home(s, shard_slot_of(s, op->operands[i].op, op->operands[i].index));
    trace_origins_of(t, source, shard_now(s, source), SHARD_FROM_MANUAL_INPUT, i, id);
  }
  for (uint32_t i = 0; out && i < out->n && i < op->n_results; i++)
    trace_origins_of(t, shard_home(s, shard_slot_of(s, op, i)), out->v[i], SHARD_FROM_MANUAL_OUTPUT, i, id);
}

/* The ops of one opcode, numbered over the whole module in the order of the text, inner ones first. */
typedef struct trace_naming {
  shard_trace *t;
  shard_state *s;
  ir_opcode opcode;
  uint32_t id;
} trace_naming;

/* constraint_0, mc_0, ...: names that origins refer to, also written on the ops where origins are asked for.
 * Both the constraint and the value that it constrains get the origin, as users may look at either. */
static int trace_name_op(void *ctx, ir_op *op) {
  trace_naming *x = ctx;
  if (op->opcode != x->opcode) return 0;
  char name[32];
  bool manual = x->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  uint32_t id = x->id++;
  int n = snprintf(name, sizeof name, manual ? "mc_%u" : "constraint_%u", id);
  if (x->t->with_origins && !ir_m_set(op, "sdy.sharding_origin_name", ir_m_string(x->s->m, name, (size_t)n)))
    x->t->failed = true;
  if (manual) {
    trace_manual(x->t, x->s, op, id);
    return 0;
  }
  uint32_t slot = shard_slot_of(x->s, op, 0);
  uint32_t input = shard_home(x->s, shard_slot_of(x->s, op->operands[0].op, op->operands[0].index));
  trace_origins_of(x->t, slot, x->s->slots[slot].now, SHARD_FROM_CONSTRAINT, 0, id);
  trace_origins_of(x->t, input, shard_now(x->s, input), SHARD_FROM_CONSTRAINT, 0, id);
  return 0;
}

/* Inner ops first, as Shardy numbers them. */
static void trace_named_ops(shard_trace *t, shard_state *s, ir_opcode opcode) {
  trace_naming x = {t, s, opcode, 0};
  if (shc_walk_module(s->m, true, trace_name_op, &x) != 0) t->failed = true;
}

/* Constraints, then manual computations, then functions: the first to name an axis of a value is its origin. */
void shard_trace_begin(shard_trace *t, shard_state *s) {
  bool constraints = false, manual = false;
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c) {
      constraints = constraints || op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT;
      manual = manual || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
    }
  }
  if (constraints) trace_named_ops(t, s, IR_OP_SDY_SHARDING_CONSTRAINT);
  if (manual) trace_named_ops(t, s, IR_OP_SDY_MANUAL_COMPUTATION);
  IR_FOR_COMPUTATIONS(c, s->m) {
    if (c->kind != IR_FUNCTION || c->declaration) continue;
    for (uint32_t i = 0; i < c->n_params; i++) {
      uint32_t slot = shard_slot_of(s, c->params[i], 0);
      trace_origins_of(t, slot, s->slots[slot].now, SHARD_FROM_INPUT, i, 0);
    }
    for (uint32_t i = 0; i < c->n_results; i++) {
      uint32_t slot = shard_home(s, shard_slot_of(s, c->results[i].op, c->results[i].index));
      trace_origins_of(t, slot, s->slots[s->first_result[c->id] + i].now, SHARD_FROM_OUTPUT, i, 0);
    }
  }
}

/* --- what an op did --- */

typedef struct trace_note {
  shard_trace *t;
  const shard_state *s;
  const shard_projection *p;
  const uint32_t *slots;
  uint32_t first; /* records of the tensor at hand begin here */
  shard_record r;
} trace_note;

/* By name; whole axes have no size, as in the attribute. */
static sdy_axis trace_axis(const sdy_mesh *mesh, shard_axis a) {
  assert(a.axis < mesh->n_axes);
  bool whole = a.pre == 1 && a.size == mesh->axes[a.axis].size;
  return (sdy_axis){mesh->axes[a.axis].name, whole ? 0 : a.pre, whole ? 0 : a.size};
}

/* The first tensor that had these axes along the factor before.
 * Before this visit, that is: shard_part_before. */
static bool trace_source(const shard_projection *p, uint32_t factor, shard_axes axes, uint32_t *from) {
  for (uint32_t t = 0; t < p->n_tensors; t++) {
    const shard_part *part = shard_part_of(&p->tensors[t], factor);
    if (!part || shard_axes_prefix(axes, shard_part_before(part)) == SHARD_NOT_PREFIX) continue;
    *from = t;
    return true;
  }
  return false;
}

/* Each axis once for a tensor: two factors can bring parts that make one axis. */
static void trace_add(trace_note *n, shard_axis axis) {
  shard_trace *t = n->t;
  n->r.axis = trace_axis(n->p->mesh, axis);
  for (uint32_t i = n->first; i < t->records.n; i++)
    if (sdy_axis_equal(t->records.items[i].axis, n->r.axis)) return;
  if (!BASE_VEC_PUSH(t->alloc, &t->records, n->r)) t->failed = true;
}

/* What was noted and is part of a merged axis now. Order within a step does not matter: it is sorted when written. */
static void trace_forget(trace_note *n, shard_axis axis) {
  shard_records *all = &n->t->records;
  sdy_axis gone = trace_axis(n->p->mesh, axis);
  for (uint32_t i = n->first; i < all->n; i++) {
    if (!sdy_axis_equal(all->items[i].axis, gone)) continue;
    all->items[i] = all->items[--all->n];
    return;
  }
}

/* A dimension's new axes, factor by factor. Parts of one axis that two factors got are one again.
 * For example a dimension of factors i and j, sharded by "x" of size 4: i has "x":(1)2, j "x":(2)2, and the note says
 * "x". */
static void trace_dim(trace_note *n, const shard_part *parts, uint32_t n_parts) {
  bool any = false;
  shard_axis before = {0, 1, 1};
  for (uint32_t i = 0; i < n_parts; i++) {
    const shard_part *part = &parts[i];
    if (!part->grown || part->axes.n == 0) continue;
    shard_axis last = part->axes.v[part->axes.n - 1], merged = last;
    assert(part->factor < n->p->rule->sizes.n);
    if (any && before.axis == last.axis && before.pre * before.size == last.pre) {
      trace_forget(n, before);
      merged = (shard_axis){last.axis, before.pre, before.size * last.size};
    }
    any = true;
    before = last;
    if (!trace_source(n->p, part->factor, part->axes, &n->r.from)) continue;
    n->r.factor = part->factor;
    n->r.from_slot = shard_home(n->s, n->slots[n->r.from]);
    uint32_t old = part->was.n, k = part->axes.n;
    shard_axis at_old = old == k ? merged : old ? part->axes.v[old - 1] : last;
    if (old && !shard_axis_same(part->was.v[old - 1], at_old)) trace_add(n, at_old);
    for (uint32_t a = old; a < k; a++) trace_add(n, a + 1 == k ? merged : part->axes.v[a]);
  }
}

/* Parts are by dimension, so dimensions are counted along the rule's map. */
static void trace_tensor(trace_note *n, uint32_t i) {
  const sdy_tensor_map *map = shard_map_of(n->p->rule, i);
  const shard_part *at = n->p->tensors[i].parts;
  n->first = n->t->records.n;
  n->r.to = i;
  n->r.to_slot = shard_home(n->s, n->slots[i]);
  for (uint32_t d = 0; d < map->n_dims; d++) {
    n->r.dim = d;
    trace_dim(n, at, map->dims[d].n);
    at += map->dims[d].n;
  }
}

/* Origins spread with the axes: the target's is that of the source.
 * One step for one visit, whichever tensors it updated. */
void shard_trace_note(shard_trace *t, const shard_state *s, const shard_projection *p, ir_op *op, uint32_t op_index,
                      const uint32_t *slots, int level, int64_t user_priority, uint8_t strategy) {
  trace_note n = {.t = t, .s = s, .p = p, .slots = slots};
  n.r = (shard_record){.step = t->step++,
                       .op = op,
                       .op_index = op_index,
                       .n_operands = p->n_operands,
                       .level = level,
                       .user_priority = user_priority,
                       .strategy = strategy};
  uint32_t begin = t->records.n;
  assert(level >= 0);
  for (uint32_t i = 0; i < p->n_tensors; i++)
    if (p->updated[i]) trace_tensor(&n, i);
  if (!t->with_origins) return; /* they follow from the steps */
  for (uint32_t i = begin; i < t->records.n; i++) {
    const shard_record *r = &t->records.items[i];
    const shard_origin *o = shard_trace_origin(t, r->from_slot, r->axis);
    shard_origin copy = o ? *o : (shard_origin){r->from_slot, r->axis, SHARD_FROM_OP, 0, 0, 0};
    if (!o && r->from_slot != SHARD_NO_SLOT) trace_add_origin(t, copy);
    if (r->to_slot == SHARD_NO_SLOT) continue;
    copy.slot = r->to_slot;
    copy.axis = r->axis;
    trace_add_origin(t, copy);
  }
}

/* Rounds find the same conflict again; it is noted once for an op, factor, tensor and axis. */
static bool trace_knows(const shard_trace *t, uint32_t last, const shard_conflict *c) {
  for (uint32_t i = last; i; i = t->conflicts.items[i - 1].earlier) {
    const shard_conflict *old = &t->conflicts.items[i - 1];
    if (old->factor == c->factor && old->tensor == c->tensor && sdy_axis_equal(old->axis, c->axis)) return true;
  }
  return false;
}

/* A clash is met once a sweep until nothing changes any more: known ones are not noted again. */
void shard_trace_clashes(shard_trace *t, const shard_state *s, const shard_projection *p, ir_op *op,
                         const uint32_t *slots, int level, int64_t user_priority) {
  for (uint32_t i = 0; op && i < p->n_clashes; i++) {
    const shard_clash *clash = &p->clashes[i];
    assert(clash->tensor < p->n_tensors);
    uint64_t last = 0;
    (void)base_map_get(&t->last_conflict, op->id, &last);
    shard_conflict c = {.op = op,
                        .axis = trace_axis(p->mesh, clash->axis),
                        .against = trace_axis(p->mesh, clash->against),
                        .factor = clash->factor,
                        .tensor = clash->tensor,
                        .slot = shard_home(s, slots[clash->tensor]),
                        .reason = clash->reason,
                        .level = level,
                        .user_priority = user_priority,
                        .earlier = (uint32_t)last};
    if (trace_knows(t, (uint32_t)last, &c)) continue;
    if (!BASE_VEC_PUSH(t->alloc, &t->conflicts, c) || !base_map_set(&t->last_conflict, op->id, t->conflicts.n))
      t->failed = true;
  }
}

/* --- sinking notes: those of data flow edges go to the ops that own the edges; constraints that were applied before
 * propagation get theirs --- */

/* The notes of the edges of n owners under `key`, those that have any, as op's attribute `to`. */
static bool sink_notes(ir_op *op, uint32_t n, const ir_value *owners, const char *key, const char *to) {
  ir_module *m = op->parent->module;
  const ir_mattr **list = BASE_ARRAY(&m->arena, const ir_mattr *, n ? n : 1);
  if (!list) return false;
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    const ir_op *edge = sdy_edge_op(owners[i]);
    const ir_mattr *note = edge ? ir_mattr_of(edge, key) : NULL;
    if (note) list[k++] = note;
  }
  const ir_mattr *array = ir_m_array(m, k, list);
  return array && ir_m_set(op, to, array);
}

/* An op's results, or the arguments of its computation, for which it owns edges. */
static bool sink_owners(opt_rewriter *rw, ir_op *op, bool results, ir_value **owners, uint32_t *n) {
  bool computation = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
  *n = results ? op->n_results : computation ? op->called[0]->n_params : 0;
  *owners = BASE_ARRAY(&rw->arena, ir_value, *n + 1);
  for (uint32_t i = 0; *owners && i < *n; i++)
    (*owners)[i] = results ? (ir_value){op, i} : (ir_value){op->called[0]->params[i], 0};
  return *owners != NULL;
}

/* What edges noted becomes lists on the op, an entry for each result or block argument. */
int shard_sink_notes(opt_rewriter *rw, ir_op *op, bool origins, bool edges) {
  for (int results = 0; results < 2 && (origins || edges); results++) {
    ir_value *owners = NULL;
    uint32_t n = 0;
    bool ok = sink_owners(rw, op, results, &owners, &n);
    ok = ok && (!origins || sink_notes(op, n, owners, "sdy.sharding_origins",
                                       results ? "sdy.result_sharding_origins" : "sdy.block_arg_sharding_origins"));
    ok = ok && (!edges || sink_notes(op, n, owners, "sdy.propagation_edges",
                                     results ? "sdy.result_propagation_edges" : "sdy.block_arg_propagation_edges"));
    if (!ok) return base_oom(rw->err, "propagation's notes");
  }
  return 0;
}

/* --- applied constraints: their axes came from the result to the operand, a step each --- */

/* As if the constraint had been propagated through: a step from its result to its operand, edges sorted by axis. */
static bool sink_note_constraint(ir_op *op, int64_t step) {
  ir_module *m = op->parent->module;
  const sdy_sharding *s = sdy_of(ir_mattr_of(op, "sharding"), SDY_SHARDING);
  uint32_t n = 0;
  for (uint32_t d = 0; s && d < s->n_dims; d++) n += s->dims[d].axes.n;
  if (n == 0) return true;
  sdy_edge *edges = BASE_ARRAY(&m->arena, sdy_edge, n);
  sdy_edge_value *to = BASE_NEW(&m->arena, sdy_edge_value);
  if (!edges || !to) return false;
  *to = (sdy_edge_value){false, 0};
  n = 0;
  for (uint32_t d = 0; d < s->n_dims; d++) {
    for (uint32_t a = 0; a < s->dims[d].axes.n; a++) {
      uint32_t i = n++; /* by name */
      for (; i > 0 && strcmp(edges[i - 1].axis.name->s, s->dims[d].axes.v[a].name->s) > 0; i--) edges[i] = edges[i - 1];
      edges[i] = (sdy_edge){.axis = s->dims[d].axes.v[a], .from = {true, 0}, .n = 1, .to = to};
    }
  }
  sdy_step one = {step, n, edges};
  const sdy_edges *made = sdy_edges_make(m, 1, &one);
  return made && ir_m_set(op, "sdy.propagation_edges", sdy_attr(m, SDY_EDGES, made));
}

typedef struct sink_constraints {
  int64_t step;
  const uint8_t *marked; /* by op id, what had a rule before */
  uint32_t n_ids;
} sink_constraints;

/* Those with a rule from before are none that this run has applied. */
static int sink_constraint(void *ctx, ir_op *op) {
  sink_constraints *x = ctx;
  if (op->opcode != IR_OP_SDY_SHARDING_CONSTRAINT || !ir_mattr_of(op, "sdy.sharding_rule")) return 0;
  if (op->id < x->n_ids && x->marked[op->id]) return 0;
  return sink_note_constraint(op, x->step++) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* `marked`: by op id, what had a rule before constraints were applied (a constraint that is applied gets one). Steps
 * are in the order of the text, inner ops first. */
int shard_note_constraints(ir_module *m, const uint8_t *marked, uint32_t n_ids, xlac_error *err) {
  sink_constraints x = {shard_trace_first_step(m), marked, n_ids};
  return shc_walk_module(m, true, sink_constraint, &x) == 0 ? 0 : base_oom(err, "propagation's notes");
}
