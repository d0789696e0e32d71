/* The verifier of the sdy dialect: its ops, and its attributes on all others. */
#include "verify_sdy.h"

static const sdyv_where sdyv_at_op = {"", false, false, 0};

/* --- ops --- */

static int sdyv_check_one_type(const sdyv *v) {
  const ir_type *in = ir_operand_type(v->op, 0);
  if (ir_bare(in) == ir_bare(v->op->type)) return 0;
  return sdyv_fail(v, "requires the same type for all operands and results: %s and %s", SV_SHOW(in),
                   SV_SHOW(v->op->type));
}

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

static int sdyv_check_static(const sdyv *v) {
  if (sv_is_static(v->op->type)) return 0;
  return sdyv_fail(v, "expected %s to have a static-shaped result. type: %s", ir_opcode_info(v->op->opcode)->mlir->name,
                   SV_SHOW(v->op->type));
}

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

static int sdyv_check_func_edge(const sdyv *v) {
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

static int sdyv_check_constant(const sdyv *v) {
  const ir_mattr *value = ir_mattr_of(v->op, "value");
  if (!sv_is_static(v->op->type))
    return sdyv_fail(v, "result #0 must be statically shaped tensor of any type values, but got '%s'",
                     SV_SHOW(v->op->type));
  if (!value->type || ir_bare(value->type) == ir_bare(v->op->type)) return 0;
  return sdyv_fail(v, "inferred type(s) '%s' are incompatible with return type(s) of operation '%s'",
                   SV_SHOW(value->type), SV_SHOW(v->op->type));
}

static int sdyv_check_barrier(const sdyv *v) {
  TRY(sdyv_check_one_type(v));
  if (!ir_is_tensor(v->op->type))
    return sdyv_fail(v, "operand #0 must be ranked tensor of any type values, but got '%s'", SV_SHOW(v->op->type));
  int64_t direction = ir_m_get_int(v->op, "allowed_direction", 0);
  if (direction < 0 || direction > 3) return sdyv_fail(v, "has no direction %lld", (long long)direction);
  if (direction != 3) return 0;
  return sdyv_fail(
      v, "cannot specify `BOTH` as the direction. Not blocking propagation direction makes the op redundant.");
}

static int sdyv_check_group(const sdyv *v) {
  const ir_type *t = ir_operand_type(v->op, 0);
  if (ir_is_tensor(t)) return 0;
  return sdyv_fail(v, "operand #0 must be ranked tensor of any type values, but got '%s'", SV_SHOW(t));
}

static int sdyv_check_mesh_op(const sdyv *v) {
  const base_istr *name = ir_mattr_of(v->op, "sym_name")->str;
  if (v->op->parent->kind != IR_SYMBOL) return sdyv_fail(v, "expects parent op 'builtin.module'");
  if (sdy_mesh_op(v->m, name) == v->op) return 0;
  return sdyv_fail(v, "redefinition of symbol named '%s'", name->s);
}

static int sdyv_check_itself(sdyv *v) {
  switch (v->op->opcode) {
    case IR_OP_SDY_MESH:
      return sdyv_check_mesh_op(v);
    case IR_OP_SDY_SHARDING_GROUP:
      return sdyv_check_group(v);
    case IR_OP_SDY_CONSTANT:
      return sdyv_check_constant(v);
    case IR_OP_SDY_PROPAGATION_BARRIER:
      return sdyv_check_barrier(v);
    case IR_OP_SDY_MANUAL_COMPUTATION:
      return sdyv_check_bound(v);
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
    case IR_OP_SDY_DATA_FLOW_EDGE:
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      return sdyv_check_one_type(v);
    default:
      if (!sdy_is_collective(v->op)) return 0;
      TRY(sdyv_check_one_type(v));
      return sdyv_check_collective(v);
  }
}

int sdyv_check_names(sdyv *v, const ir_op *op) {
  v->op = op;
  switch (op->opcode) {
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
      return sdyv_check_reshard(v);
    case IR_OP_SDY_MANUAL_COMPUTATION:
      return sdyv_check_manual(v);
    case IR_OP_SDY_NAMED_COMPUTATION:
      return sdyv_check_named(v);
    case IR_OP_SDY_DATA_FLOW_EDGE:
      return sdyv_check_edge(v);
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      return sdyv_check_func_edge(v);
    default:
      return 0;
  }
}

/* --- attributes on any op --- */

static bool sdyv_all_edges(const ir_mattr *a) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (!sdy_of(a->v.list->v[i], SDY_EDGES)) return false;
  return true;
}

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

static int sdyv_check_dict(sdyv *v) {
  const ir_mdict *d = v->op->mlir;
  for (uint32_t i = 0; d && i < d->n; i++)
    if (d->v[i].key->n > 4 && d->v[i].key->s[3] == '.') TRY(sdyv_check_attr(v, &d->v[i]));
  return 0;
}

/* --- functions --- */

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

int sdyv_check_signature(sdyv *v, const ir_computation *f) {
  v->f = f;
  v->op = NULL;
  for (uint32_t i = 0; i < f->n_params; i++)
    TRY(sdyv_check_value(v, f->params[i]->mlir, "arg ", i, f->params[i]->type));
  for (uint32_t i = 0; f->result_mlir && i < ir_function_results(f); i++) {
    TRY(sdyv_check_value(v, ir_result_attrs(f, i), "result ", i, ir_function_result_type(f, i)));
  }
  return 0;
}

int sdyv_check_own(sdyv *v, const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER) return 0;
  v->op = op;
  base_arena_mark mark = base_arena_here(v->arena);
  TRY(sdyv_check_dict(v));
  TRY(sdyv_check_itself(v));
  base_arena_back(v->arena, mark);
  return 0;
}

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
