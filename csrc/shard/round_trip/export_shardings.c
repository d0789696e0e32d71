/* The last passes before XLA's partitioner: the dialect's ops and shardings become mhlo.copy and mhlo.sharding. */
#include "round_trip.h"

/* xla-sdy-export-ops: what moves data becomes mhlo.copy with the sharding it moves to (or, of constraints and reshards,
 * with keep-hlo-sharding-constraints, a custom call @Sharding): XLA's partitioner does the rest. What reduces without a
 * reshard, and barriers, go: the partitioner needs no telling.
 * Requires: data flow edges and groups are gone. Preserves: what the program computes. */

/* On <["x"=2, "y"=4]>, as XLA's partitioner reads them in the end:
 *    [{"y"}, {}]       {devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}
 *    [{"y", "x"}, {}]  {devices=[8,1]<=[2,4]T(1,0)} */
typedef struct trip_lower {
  opt_rewriter rw;
  bool keep;
} trip_lower;

/* The new op has the sharding as a list of one, which the next pass turns into text. */
static int trip_lower_move(trip_lower *x, ir_op *op, bool constraint) {
  assert(op->n_results == 1);
  opt_rewriter *rw = &x->rw;
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  const sdy_shardings *list = s ? sdy_shardings_make(rw->m, 1, &s) : NULL;
  ir_value in = opt_operand(op, 0);
  opt_at(rw, op);
  ir_op *made = constraint && x->keep ? trip_make_custom_call(rw, "Sharding", 1, op->types, 1, &in)
                                      : opt_make_n(rw, IR_OP_COPY, 1, op->types, 1, &in, 0);
  if (!made || !list || !ir_m_set(made, "sdy.sharding", sdy_attr(rw->m, SDY_SHARDINGS, list)))
    return base_oom(rw->err, "xla-sdy-export-ops");
  opt_replace_one(rw, op, (ir_value){made, 0});
  return opt_rewriter_status(rw);
}

/* sdy.constant kept constants apart for propagation, which is over. */
static int trip_lower_op(void *ctx, ir_op *op) {
  trip_lower *x = ctx;
  switch (op->opcode) {
    case IR_OP_SDY_CONSTANT:
      ir_set_opcode(op, IR_OP_CONSTANT);
      return 0;
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
      return trip_lower_move(x, op, true);
    case IR_OP_SDY_ALL_GATHER:
    case IR_OP_SDY_ALL_SLICE:
    case IR_OP_SDY_ALL_TO_ALL:
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
    case IR_OP_SDY_REDUCE_SCATTER:
      return trip_lower_move(x, op, false);
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_PROPAGATION_BARRIER:
      opt_replace_one(&x->rw, op, opt_operand(op, 0));
      return opt_rewriter_status(&x->rw);
    default:
      return 0;
  }
}

int shard_export_ops(ir_module *m, const opt_args *args, xlac_error *err) {
  trip_lower x = {.keep = opt_get(args, "keep-hlo-sharding-constraints")};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = shc_walk_module(m, true, trip_lower_op, &x);
  opt_rewriter_free(&x.rw);
  return status;
}

/* xla-sdy-stablehlo-export-shardings: shardings of sdy become XLA's (mhlo.sharding), within the manual axes that values
 * are marked with; meshes go, but those that groups of devices name.
 * Requires: no manual computations, no ops of sdy that keep shardings. Preserves: all else. */

typedef struct trip_export {
  ir_module *m;
  bool control_flow; /* loops and branches without a sharding get a replicated one */
  base_map named;
  base_map done; /* sharding or list, outside of manual axes, to its text */
  bool failed;
} trip_export;

/* The dictionary with XLA's sharding instead of sdy's.
 * Text of shardings within manual axes depends on these, so only others are remembered. */
static const ir_mdict *trip_export_dict(trip_export *x, const ir_mdict *d) {
  const ir_mattr *a = ir_mdict_get(d, "sdy.sharding");
  const sdy_names *manual = sdy_of(ir_mdict_get(d, "xla.sdy.manual_axes"), SDY_MANUAL_AXES);
  const ir_mattr *text = NULL;
  if (manual && d) d = ir_mdict_with(x->m, d, "xla.sdy.manual_axes", NULL);
  if (!d || !a || a->kind != IR_M_SDY || (a->sub != SDY_SHARDING && a->sub != SDY_SHARDINGS)) return d;
  if (!manual) text = base_map_ptr(&x->done, a->v.sdy);
  if (!text) {
    text = a->sub == SDY_SHARDING ? trip_to_hlo(x->m, a->v.sdy, manual) : trip_list_to_hlo(x->m, a->v.sdy, manual);
    if (!text || (!manual && !base_map_set(&x->done, base_key(a->v.sdy), base_key(text)))) return NULL;
  }
  d = ir_mdict_with(x->m, d, "sdy.sharding", NULL);
  return d ? ir_mdict_with(x->m, d, "mhlo.sharding", text) : NULL;
}

/* The dictionary as it was where memory has run out. */
static const ir_mdict *trip_export_or_fail(trip_export *x, const ir_mdict *d) {
  if (!d) return NULL;
  const ir_mdict *to = trip_export_dict(x, d);
  x->failed = x->failed || !to;
  return to ? to : d;
}

/* Custom calls that stand for ops of CHLO (erf, topk) carry their attributes in a dictionary of their own, where the
 * HLO exporter looks for the sharding. */
static bool trip_export_inner(trip_export *x, ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "mhlo.sharding"), *inner = ir_mattr_of(op, "mhlo.attributes");
  if (!a || !inner || inner->kind != IR_M_DICT || (!trip_calls(op, "mhlo.erf") && !trip_calls(op, "mhlo.topk")))
    return true;
  const ir_mdict *d = ir_mdict_with(x->m, inner->v.dict, "mhlo.sharding", a);
  return d && ir_m_set(op, "mhlo.sharding", NULL) && ir_m_set(op, "mhlo.attributes", ir_m_dict(x->m, d));
}

/* The ops with regions that HLO has. */
static bool trip_is_control_flow(const ir_op *op) {
  return op->opcode == IR_OP_WHILE || op->opcode == IR_OP_CONDITIONAL || op->opcode == IR_OP_IF;
}

/* {replicated} on loops and branches keeps XLA's sharding propagation from inventing one. */
static int trip_export_op(void *ctx, ir_op *op) {
  trip_export *x = ctx;
  ir_set_mlir(op, trip_export_or_fail(x, op->mlir));
  if (x->control_flow && trip_is_control_flow(op) && !ir_mattr_of(op, "mhlo.sharding") &&
      !ir_m_set(op, "mhlo.sharding", ir_m_string(x->m, "{replicated}", 12)))
    x->failed = true;
  x->failed = x->failed || !trip_export_inner(x, op);
  return x->failed ? -XLAC_E_OUT_OF_MEMORY : 0;
}

/* Signature first, then the body. */
static void trip_export_function(trip_export *x, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) ir_set_mlir(f->params[i], trip_export_or_fail(x, f->params[i]->mlir));
  for (uint32_t i = 0; i < ir_function_results(f) && !x->failed; i++) {
    const ir_mdict *old = ir_result_attrs(f, i), *d = trip_export_or_fail(x, old);
    if (d != old && !ir_set_result_attrs(f, i, d)) x->failed = true;
  }
  if (!x->failed && shc_walk(f, false, trip_export_op, x) != 0) x->failed = true;
}

/* Replica groups name meshes (opt_for_symbols). */
static void trip_export_note(void *ctx, const base_istr *name) {
  trip_export *x = ctx;
  x->failed = x->failed || !base_map_set(&x->named, base_key(name), 1);
}

/* mhlo.sharding says devices by number; meshes that nothing names any more are dropped. */
static void trip_export_meshes(trip_export *x) {
  ir_module *m = x->m;
  uint64_t named;
  IR_FOR_COMPUTATIONS(c, m) IR_FOR_OPS(op, c) opt_for_symbols(op, trip_export_note, x);
  for (ir_computation *c = m->first, *next = NULL; c; c = next) {
    next = c->next;
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    if (base_map_get(&x->named, base_key(ir_mattr_of(c->first, "sym_name")->str), &named)) continue;
    ir_computation_remove(c);
  }
}

/* Regions have no functions of their own here: the walk of their function enters them. */
static int trip_export_shardings(ir_module *m, bool control_flow, xlac_error *err) {
  trip_export x = {.m = m, .control_flow = control_flow};
  base_map_init(&x.named, m->alloc);
  base_map_init(&x.done, m->alloc);
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && !x.failed) trip_export_function(&x, c);
  if (!x.failed) trip_export_meshes(&x);
  base_map_free(&x.named);
  base_map_free(&x.done);
  return x.failed ? base_oom(err, "xla-sdy-stablehlo-export-shardings") : shc_verify(m, err);
}

int shard_export_shardings(ir_module *m, const opt_args *args, xlac_error *err) {
  return trip_export_shardings(m, opt_get(args, "add-missing-sharding-to-control-flow"), err);
}
