/* The verifier of the sdy dialect: its ops, its attributes on all others, op sharding rules, propagation edges. Error
 * texts are Shardy's own, so that its tests apply.
 *
 * Two passes over each op: sdyv_check_own with the op where it stands, sdyv_check_names when all else is fine, as
 * MLIR resolves symbol uses last. */
#include <stdio.h>

#include "verify_sdy.h"

static const sdyv_where sdyv_at_op = {"", false, false, 0};

/* --- ops --- */

/* Ops that only say something about a value give it back as it is. */
static int sdyv_check_one_type(sdyv *v) {
  const ir_type *in = ir_operand_type(v->op, 0);
  if (ir_bare(in) == ir_bare(v->op->type)) return 0;
  return sdyv_fail(v, "requires the same type for all operands and results: %s and %s", SV_SHOW(in),
                   SV_SHOW(v->op->type));
}

/* The sharding that the constrained value had, whatever barriers stand between. */
static const sdy_sharding *sdyv_behind_barriers(const sdyv *v) {
  const ir_use *u = &v->op->operands[0];
  while (u->op->opcode == IR_OP_SDY_PROPAGATION_BARRIER) u = &u->op->operands[0];
  return sdy_shown(v->m, (ir_value){u->op, u->index});
}

/* sharding_constraint and reshard */
static int sdyv_check_reshard(sdyv *v) {
  const sdy_sharding *to = sdy_of(ir_mattr_of(v->op, "sharding"), SDY_SHARDING);
  TRY(sdyv_check_sharding(v, sdyv_at_op, to, v->op->type));
  const sdy_sharding *from = sdyv_behind_barriers(v);
  return from ? sdyv_check_unreduced(v, from, to, SDY_SUM, from->reduction) : 0;
}

/* Data flow edges stand between values of known sizes. */
static int sdyv_check_static(const sdyv *v) {
  if (sv_is_static(v->op->type)) return 0;
  return sdyv_fail(v, "expected %s to have a static-shaped result. type: %s", ir_opcode_info(v->op->opcode)->mlir->name,
                   SV_SHOW(v->op->type));
}

/* The edge is the one use of its input, so that all others see the value through it. */
static int sdyv_check_edge(sdyv *v) {
  const ir_use *in = &v->op->operands[0];
  const sdy_sharding *s = sdy_of(ir_mattr_of(v->op, "sharding"), SDY_SHARDING);
  TRY(sdyv_check_static(v));
  if (sdy_uses_up_to_2((ir_value){in->op, in->index}) != 1)
    return sdyv_fail(v, "expected input of sdy.data_flow_edge to have a single user");
  if (sdy_is_op(in->op) && !sdy_is_flow_op(in->op))
    return sdyv_fail(v,
                     "expected input of sdy.data_flow_edge to not be defined by an SdyDialect op (other than an "
                     "sdy.named_computation).");
  return s ? sdyv_check_sharding(v, sdyv_at_op, s, v->op->type) : 0;
}

/* The same across calls: arguments of functions and results of calls. */
static int sdyv_check_func_edge(sdyv *v) {
  const ir_use *in = &v->op->operands[0];
  TRY(sdyv_check_static(v));
  if (sdy_uses_up_to_2((ir_value){in->op, in->index}) != 1)
    return sdyv_fail(v, "expected operand of sdy.func_data_flow_edge to have a single user");
  if (in->op->opcode == IR_OP_PARAMETER && in->op->parent->kind != IR_FUNCTION)
    return sdyv_fail(v, "expected operand of sdy.func_data_flow_edge to be a block argument of a func op.");
  if (in->op->opcode != IR_OP_PARAMETER && in->op->opcode != IR_OP_CALL)
    return sdyv_fail(v, "expected operand of sdy.func_data_flow_edge to be a result of call op.");
  return 0;
}

/* sdy.constant: a constant that is not shared when shardings differ. */
static int sdyv_check_constant(sdyv *v) {
  const ir_mattr *value = ir_mattr_of(v->op, "value");
  if (!sv_is_static(v->op->type))
    return sdyv_fail(v, "result #0 must be statically shaped tensor of any type values, but got '%s'",
                     SV_SHOW(v->op->type));
  if (!value->type || ir_bare(value->type) == ir_bare(v->op->type)) return 0;
  return sdyv_fail(v, "inferred type(s) '%s' are incompatible with return type(s) of operation '%s'",
                   SV_SHOW(value->type), SV_SHOW(v->op->type));
}

/* Directions: NONE, FORWARD, BACKWARD, BOTH; the last would make it no barrier. */
static int sdyv_check_barrier(sdyv *v) {
  TRY(sdyv_check_one_type(v));
  if (!ir_is_tensor(v->op->type))
    return sdyv_fail(v, "operand #0 must be ranked tensor of any type values, but got '%s'", SV_SHOW(v->op->type));
  int64_t direction = ir_m_get_int(v->op, "allowed_direction", 0);
  if (direction < 0 || direction > 3) return sdyv_fail(v, "has no direction %lld", (long long)direction);
  if (direction != 3) return 0;
  return sdyv_fail(
      v, "cannot specify `BOTH` as the direction. Not blocking propagation direction makes the op redundant.");
}

/* Members of one sharding_group are sharded alike; only ranked tensors can be. */
static int sdyv_check_group(sdyv *v) {
  const ir_type *t = ir_operand_type(v->op, 0);
  if (ir_is_tensor(t)) return 0;
  return sdyv_fail(v, "operand #0 must be ranked tensor of any type values, but got '%s'", SV_SHOW(t));
}

/* A mesh is a symbol of the module; that it is the only one of its name has been checked (ir_check_symbols). */
static int sdyv_check_mesh_op(sdyv *v) {
  return v->op->parent->kind == IR_SYMBOL ? 0 : sdyv_fail(v, "expects parent op 'builtin.module'");
}

static int sdyv_check_moved(sdyv *v) {
  TRY(sdyv_check_one_type(v));
  return sdyv_check_collective(v);
}

/* The rules of each op of the dialect, NULL where it has none: of the op itself, which look at meshes by name in
 * collectives alone, and those that wait until all else is fine. */
typedef struct sdyv_rules {
  int (*itself)(sdyv *v), (*names)(sdyv *v);
} sdyv_rules;
static const sdyv_rules sdyv_rules_by_op[] = {
#define RULES(name, itself, names) [IR_OP_SDY_##name - IR_OP_SDY_MESH] = {itself, names}
    RULES(MESH, sdyv_check_mesh_op, NULL),
    RULES(SHARDING_CONSTRAINT, sdyv_check_one_type, sdyv_check_reshard),
    RULES(RESHARD, sdyv_check_one_type, sdyv_check_reshard),
    RULES(MANUAL_COMPUTATION, sdyv_check_bound, sdyv_check_manual),
    RULES(NAMED_COMPUTATION, NULL, sdyv_check_named),
    RULES(SHARDING_GROUP, sdyv_check_group, NULL),
    RULES(CONSTANT, sdyv_check_constant, NULL),
    RULES(DATA_FLOW_EDGE, sdyv_check_one_type, sdyv_check_edge),
    RULES(FUNC_DATA_FLOW_EDGE, sdyv_check_one_type, sdyv_check_func_edge),
    RULES(PROPAGATION_BARRIER, sdyv_check_barrier, NULL),
    RULES(ALL_GATHER, sdyv_check_moved, NULL),
    RULES(ALL_SLICE, sdyv_check_moved, NULL),
    RULES(ALL_TO_ALL, sdyv_check_moved, NULL),
    RULES(COLLECTIVE_PERMUTE, sdyv_check_moved, NULL),
    RULES(ALL_REDUCE, sdyv_check_moved, NULL),
    RULES(REDUCE_SCATTER, sdyv_check_moved, NULL),
    RULES(SHARDED_TO_UNREDUCED, sdyv_check_moved, NULL),
    RULES(REPLICATED_TO_UNREDUCED, sdyv_check_moved, NULL),
#undef RULES
};
_Static_assert(sizeof sdyv_rules_by_op / sizeof *sdyv_rules_by_op == IR_OP_CHLO_BROADCAST_ADD - IR_OP_SDY_MESH,
               "all rows of the dialect, which CHLO's follow");

/* NULL: not of the dialect. */
static const sdyv_rules *sdyv_rules_of(const ir_op *op) {
  uint32_t i = (uint32_t)op->opcode - IR_OP_SDY_MESH;
  return op->opcode >= IR_OP_SDY_MESH && i < sizeof sdyv_rules_by_op / sizeof *sdyv_rules_by_op ? &sdyv_rules_by_op[i]
                                                                                                : NULL;
}

int sdyv_check_names(sdyv *v, const ir_op *op) {
  assert(v && op);
  const sdyv_rules *rules = sdyv_rules_of(op);
  v->op = op;
  return rules && rules->names ? rules->names(v) : 0;
}

/* --- attributes on any op --- */

/* An array of propagation_edges attributes. */
static bool sdyv_all_edges(const ir_mattr *a) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (!sdy_of(a->v.list->v[i], SDY_EDGES)) return false;
  return true;
}

/* Keys are compared by pointer with the interned names of sdyv_begin. */
static int sdyv_check_attr(sdyv *v, const ir_mentry *e) {
  const ir_op *op = v->op;
  if (e->key == v->sharding) {
    const sdy_shardings *list = sdy_of(e->value, SDY_SHARDINGS);
    if (!list) return sdyv_fail(v, "should have a sharding attribute of type TensorShardingPerValueAttr");
    return sdyv_check_list(v, "result ", list, op->n_results, op->types);
  }
  if (e->key == v->rule) {
    const sdy_rule *rule = sdy_of(e->value, SDY_RULE);
    if (!rule)
      return sdyv_fail(v,
                       "should have a sharding rule attribute of type OpShardingRuleAttr for attr named "
                       "'sdy.sharding_rule'");
    return sdyv_check_rule(v, rule);
  }
  if (e->key == v->edges) {
    const sdy_edges *edges = sdy_of(e->value, SDY_EDGES);
    if (!edges)
      return sdyv_fail(v,
                       "should have a propagation edges attribute of type PropagationEdgesAttr for attr named "
                       "'sdy.propagation_edges'");
    return sdyv_check_edges(v, edges);
  }
  if ((e->key == v->result_edges || e->key == v->arg_edges) && !sdyv_all_edges(e->value))
    return sdyv_fail(v,
                     "should have a propagation edges attribute of type ArrayAttr<PropagationEdgesAttr> for attr named "
                     "'sdy.result_propagation_edges' or 'sdy.block_arg_propagation_edges'");
  return 0;
}

/* A quick look at the fourth byte ("sdy.") spares most attributes the rest. */
static int sdyv_check_dict(sdyv *v) {
  const ir_mdict *d = v->op->mlir;
  for (uint32_t i = 0; d && i < d->n; i++)
    if (d->v[i].key->n > 4 && d->v[i].key->s[3] == '.') TRY(sdyv_check_attr(v, &d->v[i]));
  return 0;
}

/* --- functions --- */

/* The sdy.sharding of a function's argument or result. */
static int sdyv_check_value(sdyv *v, const ir_mdict *d, const char *kind, uint32_t i, const ir_type *type) {
  for (uint32_t k = 0; d && k < d->n; k++) {
    if (d->v[k].key != v->sharding) continue;
    sdyv_where where = {kind, true, false, i};
    const sdy_sharding *s = sdy_of(d->v[k].value, SDY_SHARDING);
    if (!s) return sdyv_fail_in(v, where, "should have a sharding attribute of type TensorShardingAttr");
    base_arena_mark mark = base_arena_here(v->arena);
    TRY(sdyv_check_sharding(v, where, s, type));
    base_arena_back(v->arena, mark);
  }
  return 0;
}

/* Sets v->op to NULL: errors are the function's. */
int sdyv_check_signature(sdyv *v, const ir_computation *f) {
  assert(v && f);
  v->f = f;
  v->op = NULL;
  for (uint32_t i = 0; i < f->n_params; i++)
    TRY(sdyv_check_value(v, f->params[i]->mlir, "arg ", i, f->params[i]->type));
  for (uint32_t i = 0; f->result_mlir && i < ir_function_results(f); i++) {
    TRY(sdyv_check_value(v, ir_result_attrs(f, i), "result ", i, ir_function_result_type(f, i)));
  }
  return 0;
}

/* The op by its own rules, which rely on attributes that must be there. A reader of text refuses ops without them;
 * bytecode and editors can leave them out. */
static int sdyv_check_itself(sdyv *v) {
  const sdyv_rules *rules = sdyv_rules_of(v->op);
  if (!rules) return 0;
  sv one = {.m = v->m, .op = v->op, .arena = v->arena, .err = v->err};
  TRY(sv_check_attrs(&one));
  return rules->itself ? rules->itself(v) : 0;
}

/* Parameters were checked with their function's signature, or their op's lists. */
int sdyv_check_own(sdyv *v, const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER) return 0;
  v->op = op;
  base_arena_mark mark = base_arena_here(v->arena);
  TRY(sdyv_check_dict(v));
  TRY(sdyv_check_itself(v));
  base_arena_back(v->arena, mark);
  return 0;
}

/* Inside of sdy.manual_computation manual_axes={"a"} no sharding may name "a": it is divided out already. */
const ir_op *sdyv_bound_by(const ir_op *inside, const base_istr *axis) {
  for (const ir_op *op = inside ? inside->parent->owner : NULL; op; op = op->parent->owner) {
    if (op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) continue;
    if (sdy_is_manual_axis(sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES), axis)) return op;
  }
  return NULL;
}

/* The attribute's name, where the module has it. */
static const base_istr *sdyv_key(const ir_module *m, const char *key) {
  return base_intern_find(&m->strings, key, strlen(key));
}

/* Only asked when no attribute of the dialect is there. */
static bool sdyv_has_ops(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c) {
    if (sdy_is_op(op)) return true;
  }
  return false;
}

bool sdyv_begin(sdyv *v, ir_module *m, base_arena *arena, xlac_error *err) {
  *v = (sdyv){.m = m,
              .arena = arena,
              .sharding = sdyv_key(m, "sdy.sharding"),
              .rule = sdyv_key(m, "sdy.sharding_rule"),
              .edges = sdyv_key(m, "sdy.propagation_edges"),
              .result_edges = sdyv_key(m, "sdy.result_propagation_edges"),
              .arg_edges = sdyv_key(m, "sdy.block_arg_propagation_edges"),
              .err = err};
  return v->sharding || v->rule || v->edges || v->result_edges || v->arg_edges || sdyv_has_ops(m);
}

/* --- op sharding rules: ([i, k], [k, j])->([i, j]) {i=8, k=4, j=2} against the operands and results of their op ---
 *
 * Factor 0 is i, 17 is z, 18 is z_1. */
static char *sdyv_factor_text(int64_t factor, char *buf, size_t size) {
  int64_t z = 'z' - 'i';
  if (factor <= z)
    snprintf(buf, size, "%c", (char)('i' + factor));
  else
    snprintf(buf, size, "z_%lld", (long long)(factor - z));
  return buf;
}

typedef struct sdyv_factors {
  const sdy_rule *rule;
  bool *any, *one, *results; /* by factor: used anywhere, by the tensor at hand, by a result */
} sdyv_factors;

/* A factor occurs once in a tensor; n is how many factors its dimension has. */
static int sdyv_check_factor(const sdyv *v, sdyv_where where, sdyv_factors *f, int64_t factor, uint32_t n) {
  uint32_t total = f->rule->sizes.n;
  if (factor < 0 || factor >= total)
    return sdyv_fail_in(v, where,
                        "expecting factor indices to be within 0<=...<num_factors; received: %lld, num_factors: %u",
                        (long long)factor, total);
  if (f->one[factor]) return sdyv_fail_in(v, where, "cannot reuse factors for the same tensor value");
  if (f->rule->sizes.v[factor] == 1 && n > 1)
    return sdyv_fail_in(v, where, "dim mapping can't have a factor of size 1 if there are multiple factors");
  f->one[factor] = f->any[factor] = true;
  return 0;
}

/* Each dimension has at least one factor; unmapped ones have a factor of their own by now. */
static int sdyv_check_map(const sdyv *v, sdyv_where where, sdyv_factors *f, const sdy_tensor_map *map,
                          const ir_type *type) {
  if (!ir_is_tensor(type) || type->has_dynamic)
    return sdyv_fail_in(v, where, "expected a ranked tensor with a static shape. type: %s", SV_SHOW(type));
  if (map->n_dims != type->rank)
    return sdyv_fail_in(v, where, "mapping rank must match: %u != %u", map->n_dims, type->rank);
  memset(f->one, 0, f->rule->sizes.n * sizeof *f->one);
  for (uint32_t d = 0; d < map->n_dims; d++) {
    sdy_ints factors = map->dims[d];
    if (factors.n == 0) return sdyv_fail_in(v, where, "dim mapping must have at least one factor");
    for (uint32_t i = 0; i < factors.n; i++) TRY(sdyv_check_factor(v, where, f, factors.v[i], factors.n));
  }
  return 0;
}

/* Notes which factors are in results, which reductions may not be. */
static int sdyv_check_maps(const sdyv *v, sdyv_factors *f, bool results) {
  const ir_op *op = v->op;
  uint32_t n = results ? op->n_results : op->n_operands;
  uint32_t have = results ? f->rule->n_results : f->rule->n_operands;
  const sdy_tensor_map *maps = results ? f->rule->results : f->rule->operands;
  const char *kind = results ? "result" : "operand";
  if (n != have) return sdyv_fail(v, "number of %ss and mappings must match: %u != %u", kind, n, have);
  if (n == 0)
    return sdyv_fail(v,
                     "number of %ss mappings cannot be 0. Op sharding rules can only be defined on operations with at "
                     "least one operand and result.",
                     kind);
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *type = results ? op->types[i] : ir_operand_type(op, i);
    sdyv_where where = {results ? "result " : "operand ", n > 1, n == 1, i};
    TRY(sdyv_check_map(v, where, f, &maps[i], type));
    for (uint32_t k = 0; results && k < f->rule->sizes.n; k++) f->results[k] = f->results[k] || f->one[k];
  }
  return 0;
}

/* The list of a kind of factors: sorted, unique, in range. */
static int sdyv_check_special(const sdyv *v, sdy_ints list, uint32_t total) {
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i - 1] > list.v[i]) return sdyv_fail(v, "indices of special factors must be sorted");
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i - 1] == list.v[i]) return sdyv_fail(v, "indices of special factors must be unique");
  if (list.n && list.v[list.n - 1] >= total)
    return sdyv_fail(v, "index must be less than %u, got: %lld", total, (long long)list.v[list.n - 1]);
  return 0;
}

/* A factor is of one kind; which dimensions are blocked is said besides. */
static int sdyv_check_kinds(const sdyv *v, sdyv_factors *f) {
  const sdy_rule *rule = f->rule;
  const sdy_ints kinds[] = {rule->reduction, rule->need_replication, rule->permutation};
  for (size_t i = 0; i < 3; i++) TRY(sdyv_check_special(v, kinds[i], rule->sizes.n));
  memset(f->one, 0, rule->sizes.n * sizeof *f->one);
  for (size_t i = 0; i < 3; i++)
    for (uint32_t k = 0; k < kinds[i].n; k++) {
      if (f->one[kinds[i].v[k]])
        return sdyv_fail(v,
                         "a factor can only be in one of the reduction, need replication, or permutation factor sets");
      f->one[kinds[i].v[k]] = true;
    }
  TRY(sdyv_check_special(v, rule->blocked, rule->sizes.n));
  for (uint32_t k = 0; k < rule->reduction.n; k++)
    if (f->results[rule->reduction.v[k]]) return sdyv_fail(v, "reduction factor cannot be in result mappings");
  return 0;
}

/* Three arrays of marks by factor, in one block. */
int sdyv_check_rule(sdyv *v, const sdy_rule *rule) {
  assert(v->op && rule);
  size_t n = rule->sizes.n + (size_t)1;
  bool *room = base_arena_zalloc(v->arena, n * 3);
  if (!room) return base_oom(v->err, "the check of a rule");
  sdyv_factors f = {rule, room, room + n, room + 2 * n};
  TRY(sdyv_check_maps(v, &f, false));
  TRY(sdyv_check_maps(v, &f, true));
  for (uint32_t i = 0; i < rule->sizes.n; i++)
    if (!f.any[i])
      return sdyv_fail(v, "has factor %s=%lld that isn't used in operand and result mappings",
                       sdyv_factor_text(i, (char[32]){0}, 32), (long long)rule->sizes.v[i]);
  return sdyv_check_kinds(v, &f);
}

/* --- propagation edges: the debugging attribute that says how axes came where they are ---
 *
 * False where the op has no such operand or result. */
static bool sdyv_edge_value(const ir_op *op, sdy_edge_value e, ir_value *out) {
  uint32_t n = e.result ? op->n_results : op->n_operands;
  if (e.index < 0 || e.index >= n) return false;
  *out = e.result ? (ir_value){(ir_op *)(uintptr_t)op, (uint32_t)e.index}
                  : (ir_value){op->operands[e.index].op, op->operands[e.index].index};
  return true;
}

/* Takes a note of the mesh of a value that an edge names. False where it is another than before. */
static bool sdyv_note_mesh(sdyv *v, sdy_edge_value e, const sdy_mesh **mesh) {
  ir_value value;
  if (!sdyv_edge_value(v->op, e, &value)) return true;
  const sdy_sharding *s = sdy_shown(v->m, value);
  const sdy_mesh *found = s ? sdyv_mesh(v, s) : NULL;
  if (!found) return true;
  if (!*mesh || sdy_mesh_is_empty(*mesh)) *mesh = found;
  return sdy_mesh_is_empty(found) || sdy_mesh_equal(found, *mesh);
}

/* Goes on after a difference: *mesh must be some mesh where there is any, as the error depends on it. */
static bool sdyv_common_edge_mesh(sdyv *v, const sdy_edges *edges, const sdy_mesh **mesh) {
  bool common = true;
  for (uint32_t i = 0; i < edges->n; i++)
    for (uint32_t k = 0; k < edges->v[i].n; k++) {
      const sdy_edge *e = &edges->v[i].edges[k];
      common = sdyv_note_mesh(v, e->from, mesh) && common;
      for (uint32_t t = 0; t < e->n; t++) common = sdyv_note_mesh(v, e->to[t], mesh) && common;
    }
  return common;
}

/* Edges of func_data_flow_edge refer to values elsewhere. */
static int sdyv_check_edge_value(const sdyv *v, sdy_edge_value e) {
  ir_value value;
  if (v->op->opcode == IR_OP_SDY_FUNC_DATA_FLOW_EDGE || sdyv_edge_value(v->op, e, &value)) return 0;
  return sdyv_fail(v, "expected a value ref to have %s index in range [0, %u), got: %lld",
                   e.result ? "a result" : "an operand", e.result ? v->op->n_results : v->op->n_operands,
                   (long long)e.index);
}

/* Axes are looked up in the common mesh of all values that the edges name. */
int sdyv_check_edges(sdyv *v, const sdy_edges *edges) {
  const sdy_mesh *mesh = NULL;
  bool common = sdyv_common_edge_mesh(v, edges, &mesh);
  if (!mesh) return sdyv_fail(v, "expected propagation edges attr to reference a sharding.");
  if (!common) return sdyv_fail(v, "expected a common mesh for propagation edges attr.");
  for (uint32_t i = 0; i < edges->n; i++)
    for (uint32_t k = 0; k < edges->v[i].n; k++) {
      const sdy_edge *e = &edges->v[i].edges[k];
      if (sdy_mesh_find(mesh, e->axis.name) < 0)
        return sdyv_fail(v, "expected axis ref to be in one of the meshes: \"%s\"", e->axis.name->s);
      TRY(sdyv_check_edge_value(v, e->from));
      for (uint32_t t = 0; t < e->n; t++) TRY(sdyv_check_edge_value(v, e->to[t]));
    }
  return 0;
}
