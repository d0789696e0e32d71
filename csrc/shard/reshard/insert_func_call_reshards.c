/* sdy-insert-func-call-reshards: a call has the shardings of its function's results; uses that expect what the call
 * had before get it by a reshard.
 * %0 = call @f(%a) {sharding A} where @f returns B becomes %0 = call @f(%a) {sharding B}, %1 = sdy.reshard %0 to A,
 * and all that read %0 read %1.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"
#include "explicit.h"

typedef struct exp_calls {
  opt_rewriter rw;
  opt_symbols symbols;
} exp_calls;

/* The same ranks and mesh, closed and without axes. */
static bool exp_closed_like(ir_module *m, const sdy_shardings *like, const sdy_shardings **out) {
  const sdy_sharding **v = BASE_ARRAY(&m->arena, const sdy_sharding *, (size_t)like->n + 1);
  sdy_shardings *list = BASE_NEW(&m->arena, sdy_shardings);
  for (uint32_t i = 0; v && i < like->n; i++)
    if (!(v[i] = sdy_sharding_empty(m, like->v[i], like->v[i]->n_dims, false))) return false;
  if (!v || !list) return false;
  *list = (sdy_shardings){like->n, v};
  *out = list;
  return true;
}

/* No reshard where the two shardings are equivalent; the call takes the function's spelling even so. */
static int exp_call_reshards(exp_calls *x, ir_op *op, const sdy_shardings *list) {
  assert(op->opcode == IR_OP_CALL && op->n_results > 0);
  opt_rewriter *rw = &x->rw;
  shc_at_value(rw, (ir_value){op, 0});
  ir_op *after = rw->before;
  for (uint32_t i = 0; i < op->n_results && i < list->n; i++) {
    ir_value v = {op, i};
    const sdy_sharding *had = sdy_get(v);
    if (explicit_equivalent(list->v[i], had)) continue;
    const sdy_sharding *to = had ? had : sdy_sharding_empty(rw->m, list->v[i], list->v[i]->n_dims, false);
    rw->before = i ? op->next : after; /* each right after the call, so the last comes first */
    ir_value reshard = opt_make(rw, IR_OP_SDY_RESHARD, opt_type(v), 1, &v);
    opt_set(rw, reshard, "sharding", sdy_attr(rw->m, SDY_SHARDING, to));
    shc_replace_value(rw, v, reshard, reshard.op);
  }
  if (!sdy_set_list(op, list)) rw->failed = true;
  return opt_rewriter_status(rw);
}

/* A function without shardings returns whole tensors: closed and without axes. */
static int exp_call_op(void *ctx, ir_op *op) {
  exp_calls *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  const sdy_shardings *list, *had = f ? sdy_get_list(op) : NULL;
  if (!f || op->n_results == 0) return 0;
  bool ok = shc_result_shardings(f, &list);
  if (ok && !list && !had) return 0;
  if (ok && !list) ok = exp_closed_like(x->rw.m, had, &list);
  return ok ? exp_call_reshards(x, op, list) : base_oom(x->rw.err, "sdy-insert-func-call-reshards");
}

int shard_call_reshards(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  exp_calls x = {.rw = {.m = m}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    status = shc_walk_module(m, true, exp_call_op, &x);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  /* edges of calls are at reshards now */
  return status == 0 && shc_has(m, IR_OP_SDY_FUNC_DATA_FLOW_EDGE) ? shc_verify(m, err) : status;
}
