/* To HLO and back: xla-sdy-round-trip-export-ops makes custom calls of constraints, groups and barriers;
 * xla-sdy-round-trip-export-shardy-attrs writes meshes, shardings and rules down as strings in frontend attributes,
 * those of results in a custom call before the return; both leave sdy.sharding for xla-sdy-stablehlo-export-shardings.
 * Requires: nothing. Preserves: what the program computes. */
#include "round_trip.h"

static int rt_out_oom(const opt_rewriter *rw) {
  return base_oom(rw->err, "shardings on their way to HLO");
}

/* --- ops --- */

/* A custom call in op's place, with its attributes but its own. */
static ir_op *rt_out_call(opt_rewriter *rw, ir_op *op, const char *target, const char *own) {
  ir_value in = opt_operand(op, 0);
  opt_at(rw, op);
  ir_op *call = rt_make_custom_call(rw, target, op->n_results, op->types, 1, &in);
  const ir_mdict *d = op->mlir;
  for (uint32_t i = 0; call && d && i < d->n; i++)
    if (strcmp(d->v[i].key->s, own) != 0 && !ir_m_set(call, d->v[i].key->s, d->v[i].value)) return NULL;
  return call;
}

static int rt_out_replace(opt_rewriter *rw, ir_op *op, ir_op *call) {
  if (call->n_results)
    opt_replace_one(rw, op, (ir_value){call, 0});
  else
    opt_erase(rw, op);
  return opt_rewriter_status(rw);
}

static int rt_out_constraint(opt_rewriter *rw, ir_op *op) {
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  ir_op *call = rt_out_call(rw, op, "Sharding", "sharding");
  const sdy_shardings *list = call ? sdy_shardings_make(rw->m, 1, &s) : NULL;
  bool ok = list && ir_m_set(call, "sdy.sharding", sdy_attr(rw->m, SDY_SHARDINGS, list)) &&
            (s->unreduced.n == 0 || ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)));
  return ok ? rt_out_replace(rw, op, call) : rt_out_oom(rw);
}

/* A group or barrier: its number goes into a frontend attribute. */
static int rt_out_number(opt_rewriter *rw, ir_op *op, const char *target, const char *own, const char *key) {
  const ir_mattr *text = rt_words(rw->m, ir_mattr_of(op, own));
  ir_op *call = rt_out_call(rw, op, target, own);
  bool ok = call && text && ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)) &&
            rt_front_set(rw->m, &call->mlir, key, text);
  return ok ? rt_out_replace(rw, op, call) : rt_out_oom(rw);
}

static int rt_out_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  switch (op->opcode) {
    case IR_OP_SDY_CONSTANT:
      op->opcode = IR_OP_CONSTANT;
      return 0;
    case IR_OP_SDY_SHARDING_CONSTRAINT:
      return rt_out_constraint(rw, op);
    case IR_OP_SDY_SHARDING_GROUP:
      return rt_out_number(rw, op, "xla.sdy.ShardingGroup", "group_id", "xla.sdy.sharding_group_id");
    case IR_OP_SDY_PROPAGATION_BARRIER:
      return rt_out_number(rw, op, "xla.sdy.PropagationBarrier", "allowed_direction", "xla.sdy.allowed_direction");
    default:
      return 0;
  }
}

int shard_round_trip_export_ops(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  m->verified = IR_UNVERIFIED;
  int status = shc_walk_module(m, true, rt_out_op, &rw);
  opt_rewriter_free(&rw);
  return status;
}

/* --- attributes --- */

static int rt_out_argument(opt_rewriter *rw, ir_op *p) {
  const sdy_sharding *s = sdy_get((ir_value){p, 0});
  if (!s) return 0;
  const ir_mattr *text = rt_words(rw->m, sdy_attr(rw->m, SDY_SHARDING, s));
  return text && rt_front_set(rw->m, &p->mlir, "xla.sdy.sharding", text) ? 0 : rt_out_oom(rw);
}

static int rt_out_result(opt_rewriter *rw, ir_computation *f, uint32_t i) {
  const sdy_sharding *s = sdy_get_result(f, i);
  ir_value v = f->results[i];
  if (!s) return 0;
  opt_at_end(rw, f, v.op);
  const ir_type *type = opt_type(v);
  ir_op *call = rt_make_custom_call(rw, "xla.sdy.FuncResultSharding", 1, &type, 1, &v);
  const sdy_shardings *list = sdy_shardings_make(rw->m, 1, &s);
  const ir_mattr *text = list ? rt_words(rw->m, sdy_attr(rw->m, SDY_SHARDINGS, list)) : NULL;
  bool ok = call && text && ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)) &&
            rt_front_set(rw->m, &call->mlir, "xla.sdy.sharding", text);
  if (!ok) return rt_out_oom(rw);
  f->results[i] = (ir_value){call, 0};
  return 0;
}

static int rt_out_attrs(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  const ir_mattr *list = ir_mattr_of(op, "sdy.sharding"), *rule = ir_mattr_of(op, "sdy.sharding_rule");
  if (list && !rt_front_set(rw->m, &op->mlir, "xla.sdy.sharding", rt_words(rw->m, list))) return rt_out_oom(rw);
  if (!rule) return 0;
  const ir_mattr *text = rt_words(rw->m, rule);
  bool ok =
      text && rt_front_set(rw->m, &op->mlir, "xla.sdy.sharding_rule", text) && ir_m_set(op, "sdy.sharding_rule", NULL);
  return ok ? 0 : rt_out_oom(rw);
}

static int rt_out_function(opt_rewriter *rw, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) TRY(rt_out_argument(rw, f->params[i]));
  for (uint32_t i = 0; i < f->n_results; i++) TRY(rt_out_result(rw, f, i));
  return shc_walk(f, false, rt_out_attrs, rw);
}

/* {mesh = #sdy.mesh<["x"=2]>}, as a string. */
static int rt_out_meshes(opt_rewriter *rw) {
  ir_module *m = rw->m;
  const ir_mdict *all = ir_mdict_make(m, 0, NULL);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const ir_mattr *mesh = ir_mattr_of(c->first, "mesh");
    all = all ? ir_mdict_with(m, all, ir_mattr_of(c->first, "sym_name")->str->s, mesh) : NULL;
  }
  if (!all) return rt_out_oom(rw);
  if (all->n == 0) return 0;
  const ir_mattr *text = rt_words(m, ir_m_dict(m, all));
  return text && rt_front_set(m, &m->mlir, "xla.sdy.meshes", text) ? 0 : rt_out_oom(rw);
}

int shard_export_attrs(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  int status = 0;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && status == 0) status = rt_out_function(&rw, c);
  if (status == 0) status = rt_out_meshes(&rw);
  opt_rewriter_free(&rw);
  return status;
}
