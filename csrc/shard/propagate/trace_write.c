/* Notes as attributes, in the form that Shardy gives them: sdy.propagation_edges lists for an op, step by step, which
 * axis went from which of its tensors to which others; sdy.sharding_origins names for each axis where it was first
 * written. */
#include <stdio.h>
#include <stdlib.h>

#include "trace.h"

/* --- edges --- */

/* The edges of one op (or function result) come together, by step, then by the axis's name.
 * As Shardy writes it: sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 ->
 * [result-0]}]}]>. */
static int write_order(const void *x, const void *y) {
  const shard_record *a = *(const shard_record *const *)x, *b = *(const shard_record *const *)y;
  uint32_t i = a->op ? a->op->id : 0, j = b->op ? b->op->id : 0;
  if ((!a->op) != (!b->op)) return a->op ? -1 : 1;
  if (i != j) return i < j ? -1 : 1;
  int axis = strcmp(a->axis.name->s, b->axis.name->s);
  if (axis) return axis;
  if (a->axis.pre != b->axis.pre) return a->axis.pre < b->axis.pre ? -1 : 1;
  if (a->axis.size != b->axis.size) return a->axis.size < b->axis.size ? -1 : 1;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  return a->step < b->step ? -1 : a->step > b->step;
}

/* Within an op, the order of the attribute. */
static int write_by_step(const void *x, const void *y) {
  const shard_record *a = *(const shard_record *const *)x, *b = *(const shard_record *const *)y;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  return write_order(x, y);
}

/* Shardy writes what it did for any of a function's results on the first one. */
static bool write_same_op(const shard_record *a, const shard_record *b) {
  return a->op == b->op;
}

static bool write_same_edge(const shard_record *a, const shard_record *b) {
  return sdy_axis_equal(a->axis, b->axis) && a->from == b->from && a->to == b->to;
}

static sdy_edge_value write_value(const shard_record *r, uint32_t tensor) {
  bool result = tensor >= r->n_operands;
  return (sdy_edge_value){result, result ? tensor - r->n_operands : tensor};
}

/* v[0..n): records of one step, sorted by axis and source.
 * Records of one axis and source are one edge with several targets. Returns the number of edges; 0: out of memory. */
static uint32_t write_step(base_arena *a, const shard_record **v, uint32_t n, sdy_step *step) {
  assert(n > 0);
  sdy_edge *edges = BASE_ARRAY(a, sdy_edge, n);
  sdy_edge_value *to = BASE_ARRAY(a, sdy_edge_value, n);
  *step = (sdy_step){v[0]->step, 0, edges};
  if (!edges || !to) return 0;
  for (uint32_t i = 0; i < n; i++) {
    to[i] = write_value(v[i], v[i]->to);
    sdy_edge *last = step->n ? &edges[step->n - 1] : NULL;
    if (last && i && sdy_axis_equal(last->axis, v[i]->axis) && v[i - 1]->from == v[i]->from) {
      last->n++;
      continue;
    }
    edges[step->n++] = (sdy_edge){.axis = v[i]->axis, .from = write_value(v[i], v[i]->from), .n = 1, .to = &to[i]};
  }
  return step->n;
}

/* Of records that differ only in their step the earliest counts: later rounds send the same axis again. */
static const ir_mattr *write_edges(const shard_state *s, base_arena *a, const shard_record **v, uint32_t n) {
  assert(n > 0);
  uint32_t kept = 0; /* of equal edges the first */
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || !write_same_edge(v[kept - 1], v[i])) v[kept++] = v[i];
  qsort(v, kept, sizeof *v, write_by_step);
  sdy_step *steps = BASE_ARRAY(a, sdy_step, kept);
  if (!steps) return NULL;
  uint32_t n_steps = 0;
  for (uint32_t i = 0, j = 0; i < kept; i = j) {
    for (j = i; j < kept && v[j]->step == v[i]->step;) j++;
    if (!write_step(a, v + i, j - i, &steps[n_steps++])) return NULL;
  }
  const sdy_edges *edges = sdy_edges_make(s->m, n_steps, steps);
  return edges ? sdy_attr(s->m, SDY_EDGES, edges) : NULL;
}

/* Function results, beside the type.
 * NULL: making the value has failed. */
static bool write_set_result(ir_computation *c, uint32_t i, const char *key, const ir_mattr *value) {
  ir_module *m = c->module;
  const ir_mdict *d = value ? ir_mdict_with(m, ir_result_attrs(c, i), key, value) : NULL;
  return d && ir_set_result_attrs(c, i, d);
}

/* Sorted by op, so that each op gets all of its records in one attribute, in the order of steps. */
int shard_trace_write_edges(const shard_trace *t, const shard_state *s, ir_computation *main, xlac_error *err) {
  base_arena arena;
  base_arena_init(&arena, t->alloc);
  uint32_t n = t->records.n;
  const shard_record **v = BASE_ARRAY(&arena, const shard_record *, n ? n : 1);
  bool ok = v != NULL;
  for (uint32_t i = 0; ok && i < n; i++) v[i] = &t->records.items[i];
  if (ok) qsort(v, n, sizeof *v, write_order);
  for (uint32_t i = 0, j = 0; ok && i < n; i = j) {
    for (j = i; j < n && write_same_op(v[j], v[i]);) j++;
    const shard_record *first = v[i];
    const ir_mattr *value = write_edges(s, &arena, v + i, j - i);
    ok = value && (first->op ? ir_m_set(first->op, "sdy.propagation_edges", value)
                             : write_set_result(main, 0, "sdy.propagation_edges", value));
  }
  base_arena_free(&arena);
  return ok ? 0 : base_oom(err, "propagation's notes");
}

/* --- origins --- */

/* As tell_axis has it, without quotes. */
static size_t write_axis(char *buf, size_t size, sdy_axis a) {
  int n = a.size ? snprintf(buf, size, "%s:(%lld)%lld", a.name->s, (long long)a.pre, (long long)a.size)
                 : snprintf(buf, size, "%s", a.name->s);
  return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* Shardy's names: "input: 0", "output: 1", "constraint_0", "mc_0_input: 2". */
static size_t write_origin(char *buf, size_t size, const shard_origin *o) {
  int n = 0;
  if (o->source == SHARD_FROM_CONSTRAINT)
    n = snprintf(buf, size, "constraint_%u", o->id);
  else if (o->source == SHARD_FROM_INPUT)
    n = snprintf(buf, size, "input: %u", o->index);
  else if (o->source == SHARD_FROM_OUTPUT)
    n = snprintf(buf, size, "output: %u", o->index);
  else if (o->source == SHARD_FROM_OP)
    n = snprintf(buf, size, ": 0");
  else if (o->source == SHARD_FROM_MANUAL_INPUT)
    n = snprintf(buf, size, "mc_%u_input: %u", o->id, o->index);
  else
    n = snprintf(buf, size, "mc_%u_output: %u", o->id, o->index);
  return n < 0 ? 0 : (size_t)n;
}

/* The origins of a slot as a dictionary; what is `self` is called so. NULL: out of memory. */
static const ir_mattr *write_dict(const shard_trace *t, const shard_state *s, uint32_t slot, const char *self) {
  uint64_t first = 0;
  (void)base_map_get(&t->first_origin, slot, &first);
  uint32_t n = 0;
  for (uint32_t i = (uint32_t)first; i; i = t->origins.items[i - 1].next) n++;
  ir_mentry *entries = BASE_ARRAY(&s->m->arena, ir_mentry, n ? n : 1);
  if (!entries) return NULL;
  n = 0;
  for (uint32_t i = (uint32_t)first; i; i = t->origins.items[i - 1].next) {
    const shard_origin *o = &t->origins.items[i - 1];
    char key[256], text[64];
    size_t k = write_axis(key, sizeof key, o->axis), l = write_origin(text, sizeof text, o);
    if (strcmp(text, self) == 0) l = (size_t)snprintf(text, sizeof text, "self");
    entries[n].key = ir_intern(s->m, key, k);
    entries[n].value = ir_m_string(s->m, text, l);
    if (!entries[n].key || !entries[n].value) return NULL;
    n++;
  }
  const ir_mdict *d = ir_mdict_make(s->m, n, entries);
  return d ? ir_m_dict(s->m, d) : NULL;
}

/* What an op calls its own shardings. */
static void write_self(const shard_state *s, uint32_t slot, char *buf, size_t size) {
  const ir_op *op = s->slots[slot].op;
  buf[0] = 0;
  if (op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT) {
    snprintf(buf, size, "%s", ir_m_get_str(op, "sdy.sharding_origin_name"));
  } else if (op->opcode == IR_OP_PARAMETER && op->parent->kind == IR_FUNCTION) {
    snprintf(buf, size, "input: %u", (unsigned)op->u.number);
  } else if (op->opcode == IR_OP_SDY_DATA_FLOW_EDGE) {
    const ir_use *input = &op->operands[0];
    bool argument = input->op->opcode == IR_OP_PARAMETER;
    const ir_op *flow = argument ? input->op->parent->owner : input->op;
    if (!flow || flow->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return;
    snprintf(buf, size, "%s_%s: %u", ir_m_get_str(flow, "sdy.sharding_origin_name"), argument ? "input" : "output",
             argument ? (unsigned)input->op->u.number : input->index);
  }
}

/* Ops with one place for a sharding have a dictionary; others a list of them, one for each result. */
static bool write_on_op(const shard_trace *t, const shard_state *s, uint32_t slot) {
  ir_op *op = s->slots[slot].op;
  assert(op != NULL && op->n_results > 0);
  char self[96];
  write_self(s, slot, self, sizeof self);
  const ir_mattr *value = write_dict(t, s, slot, self);
  if (!value) return false;
  bool one = op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT ||
             op->opcode == IR_OP_SDY_DATA_FLOW_EDGE;
  if (one) return ir_m_set(op, "sdy.sharding_origins", value);
  const ir_mattr *old = ir_mattr_of(op, "sdy.sharding_origins");
  const ir_mattr **list = BASE_ARRAY(&s->m->arena, const ir_mattr *, op->n_results);
  const ir_mdict *empty = ir_mdict_make(s->m, 0, NULL);
  const ir_mattr *none = empty ? ir_m_dict(s->m, empty) : NULL;
  if (!list || !none) return false;
  for (uint32_t i = 0; i < op->n_results; i++)
    list[i] = i == s->slots[slot].index ? value : old && old->kind == IR_M_ARRAY ? old->v.list->v[i] : none;
  const ir_mattr *array = ir_m_array(s->m, op->n_results, list);
  return array && ir_m_set(op, "sdy.sharding_origins", array);
}

/* A value that a function returns tells its origins on the result too. */
static bool write_on_results(const shard_trace *t, const shard_state *s, uint32_t slot) {
  for (uint32_t i = s->return_first[slot]; i < s->return_first[slot + 1]; i++) {
    const shard_return *r = &s->returns[i];
    if (r->c->kind != IR_FUNCTION) continue;
    char self[32];
    snprintf(self, sizeof self, "output: %u", r->index);
    if (!write_set_result(r->c, r->index, "sdy.sharding_origins", write_dict(t, s, slot, self))) return false;
  }
  return true;
}

/* sdy.sharding_origins = {x = "self", y = "input: 1"}: "self" where the value is that input itself. */
int shard_trace_write_origins(const shard_trace *t, const shard_state *s, xlac_error *err) {
  for (uint32_t slot = 0; slot < s->n_values; slot++) {
    uint64_t first = 0;
    if (!base_map_get(&t->first_origin, slot, &first)) continue;
    const ir_op *op = s->slots[slot].op;
    if (op->opcode == IR_OP_PARAMETER && op->parent->kind != IR_FUNCTION) continue;
    if (!write_on_results(t, s, slot) || !write_on_op(t, s, slot)) return base_oom(err, "propagation's notes");
  }
  return 0;
}
