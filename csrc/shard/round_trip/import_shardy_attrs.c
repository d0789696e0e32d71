/* xla-sdy-round-trip-import-shardy-attrs: meshes, shardings and rules come back from the strings in frontend attributes
 * that they travelled through HLO in; those of results from custom calls that stood before the return. XLA's own
 * shardings, which went beside them, go.
 * Requires: nothing. Preserves: what the program computes. */
#include "round_trip.h"

BASE_VEC(rt_calls_found, ir_op *);
typedef struct rt_back {
  opt_rewriter rw;
  rt_calls_found results; /* @xla.sdy.FuncResultSharding of the function at hand */
} rt_back;

static int rt_back_oom(rt_back *x) {
  return base_oom(x->rw.err, "xla-sdy-round-trip-import-shardy-attrs");
}

/* --- meshes --- */

static int rt_back_meshes(rt_back *x) {
  ir_module *m = x->rw.m;
  const ir_mattr *a = NULL;
  ir_computation *first = m->first;
  TRY(rt_front_read(&x->rw, NULL, m->mlir, "xla.sdy.meshes", &a));
  for (uint32_t i = 0; a && a->kind == IR_M_DICT && i < a->v.dict->n; i++) {
    const ir_mentry *e = &a->v.dict->v[i];
    const sdy_mesh *mesh = sdy_of(e->value, SDY_MESH);
    if (!mesh)
      return base_fail(x->rw.err, XLAC_E_VERIFY_ATTRIBUTE, "xla.sdy.meshes has %s, which is no mesh", e->key->s);
    if (!rt_make_mesh(m, e->key, mesh, first)) return rt_back_oom(x);
  }
  return rt_front_set(m, &m->mlir, "xla.sdy.meshes", NULL) ? 0 : rt_back_oom(x);
}

/* Lists for the whole signature of the main function, on the module. */
static int rt_back_signature(rt_back *x, const char *key, bool results) {
  ir_module *m = x->rw.m;
  ir_computation *f = shc_main(m, false);
  const void *found = NULL;
  if (!f) return 0;
  TRY(rt_front_read_sdy(&x->rw, NULL, m->mlir, key, SDY_SHARDINGS, &found));
  const sdy_shardings *list = found;
  if (!list) return 0;
  uint32_t n = results ? f->n_results : f->n_params;
  if (list->n != n)
    return base_fail(x->rw.err, XLAC_E_VERIFY_ATTRIBUTE, "%s has %u shardings for %u values of the main function", key,
                     list->n, n);
  for (uint32_t i = 0; i < n; i++)
    if (results ? !sdy_set_result(f, i, list->v[i]) : !sdy_set((ir_value){f->params[i], 0}, list->v[i]))
      return rt_back_oom(x);
  return rt_front_set(m, &m->mlir, key, NULL) ? 0 : rt_back_oom(x);
}

/* --- functions --- */

static int rt_back_argument(rt_back *x, ir_op *p) {
  const void *found = NULL;
  ir_module *m = x->rw.m;
  TRY(rt_front_read_sdy(&x->rw, p, p->mlir, "xla.sdy.sharding", SDY_SHARDING, &found));
  if (found && (!sdy_set((ir_value){p, 0}, found) || !rt_front_set(m, &p->mlir, "xla.sdy.sharding", NULL)))
    return rt_back_oom(x);
  if (!ir_mdict_get(p->mlir, "mhlo.sharding")) return 0;
  return ir_m_set(p, "mhlo.sharding", NULL) ? 0 : rt_back_oom(x);
}

static bool rt_back_keeps_sharding(const ir_op *op) {
  return op->opcode == IR_OP_SEND || op->opcode == IR_OP_RECV || op->opcode == IR_OP_AFTER_ALL ||
         rt_calls(op, "Sharding") || rt_is_callback(op);
}

/* What XLA makes of other ops may have their attributes but not their shapes: only some give theirs back. */
static int rt_back_op(void *ctx, ir_op *op) {
  rt_back *x = ctx;
  ir_module *m = x->rw.m;
  const void *rule = NULL, *list = NULL;
  if (op->opcode != IR_OP_INFEED && op->opcode != IR_OP_OUTFEED && ir_mattr_of(op, "mhlo.sharding") &&
      !ir_m_set(op, "mhlo.sharding", NULL))
    return rt_back_oom(x);
  TRY(rt_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.sharding_rule", SDY_RULE, &rule));
  bool ok = !rule || (ir_m_set(op, "sdy.sharding_rule", sdy_attr(m, SDY_RULE, rule)) &&
                      rt_front_set(m, &op->mlir, "xla.sdy.sharding_rule", NULL));
  if (!ok) return rt_back_oom(x);
  if (rt_calls(op, "xla.sdy.FuncResultSharding")) return BASE_VEC_PUSH(m->alloc, &x->results, op) ? 0 : rt_back_oom(x);
  if (rt_back_keeps_sharding(op)) {
    TRY(rt_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.sharding", SDY_SHARDINGS, &list));
    if (list && !sdy_set_list(op, list)) return rt_back_oom(x);
  }
  return rt_front_set(m, &op->mlir, "xla.sdy.sharding", NULL) ? 0 : rt_back_oom(x);
}

/* --- results --- */

/* The X64Combine that both halves of a 64-bit result go to, or NULL. */
static ir_op *rt_back_combine(const ir_op *call) {
  ir_op *user = NULL;
  uint32_t n = 0;
  IR_FOR_USES(use, call) {
    if (user && use->user != user) return NULL;
    user = use->user;
    n++;
  }
  return call->n_results == 2 && n == 2 && user && rt_calls(user, "X64Combine") ? user : NULL;
}

static bool rt_back_open(rt_back *x, ir_op *call, const sdy_sharding *s, ir_value *out) {
  sdy_sharding open = *s;
  sdy_dim *dims = base_arena_memdup(&x->rw.m->arena, s->dims, s->n_dims * sizeof *dims);
  if (s->n_dims && !dims) return false;
  for (uint32_t i = 0; i < s->n_dims; i++) dims[i].open = true;
  open.dims = dims;
  const sdy_sharding *made = sdy_sharding_make(x->rw.m, &open);
  ir_value in = opt_operand(call, 0);
  opt_at(&x->rw, call);
  *out = opt_make(&x->rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(in), 1, &in);
  opt_set(&x->rw, *out, "sharding", sdy_attr(x->rw.m, SDY_SHARDING, made));
  return out->op != NULL;
}

/* The function returns `v` here and there: those results are sharded so. */
static bool rt_back_returned(ir_computation *f, const ir_op *by, const sdy_sharding *s) {
  for (uint32_t i = 0; i < f->n_results; i++)
    if (f->results[i].op == by && !sdy_set_result(f, i, s)) return false;
  return true;
}

/* Of a function that was inlined the calls are left where other ops use them: as constraints, open ones. */
static int rt_back_result(rt_back *x, ir_computation *f, ir_op *call) {
  const void *found = NULL;
  TRY(rt_front_read_sdy(&x->rw, call, call->mlir, "xla.sdy.sharding", SDY_SHARDINGS, &found));
  const sdy_shardings *list = found;
  if (!list || list->n == 0 || call->n_operands == 0 || call->n_operands < call->n_results)
    return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_ATTRIBUTE,
                            "@xla.sdy.FuncResultSharding needs an operand and its xla.sdy.sharding");
  ir_op *combine = rt_back_combine(call), *by = call;
  bool other = call->uses != NULL && !combine;
  if (combine && !sdy_set_list(combine, list)) return rt_back_oom(x);
  if (combine) by = combine;
  if (!combine && !call->uses && !opt_is_used(&x->rw, call)) by = opt_operand(call, 0).op; /* of no elements */
  if (!rt_back_returned(f, by, list->v[0])) return rt_back_oom(x);
  ir_value *values = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)call->n_results + 1);
  if (!values) return rt_back_oom(x);
  for (uint32_t i = 0; i < call->n_results; i++) values[i] = opt_operand(call, i);
  if (other && call->n_results == 1 && !rt_back_open(x, call, list->v[0], &values[0])) return rt_back_oom(x);
  opt_replace_op(&x->rw, call, values);
  return opt_rewriter_status(&x->rw);
}

static int rt_back_function(rt_back *x, ir_computation *f) {
  ir_module *m = x->rw.m;
  for (uint32_t i = 0; i < f->n_params; i++) TRY(rt_back_argument(x, f->params[i]));
  for (uint32_t i = 0; i < f->n_results; i++) {
    const ir_mdict *d = ir_result_attrs(f, i);
    if (!ir_mdict_get(d, "mhlo.sharding")) continue;
    d = ir_mdict_with(m, d, "mhlo.sharding", NULL);
    if (!d || !ir_set_result_attrs(f, i, d)) return rt_back_oom(x);
  }
  x->results.n = 0;
  TRY(shc_walk(f, true, rt_back_op, x));
  for (uint32_t i = 0; i < x->results.n; i++) TRY(rt_back_result(x, f, x->results.items[i]));
  return 0;
}

static int rt_back_all(rt_back *x) {
  TRY(rt_back_meshes(x));
  TRY(rt_back_signature(x, "xla.sdy.tuple_args_shardings", false));
  TRY(rt_back_signature(x, "xla.sdy.tuple_results_shardings", true));
  IR_FOR_COMPUTATIONS(c, x->rw.m)
  if (c->kind == IR_FUNCTION && !c->owner) TRY(rt_back_function(x, c));
  return 0;
}

int shard_import_attrs(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  rt_back x = {.results = {0}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = rt_back_all(&x);
  BASE_VEC_FREE(m->alloc, &x.results);
  opt_rewriter_free(&x.rw);
  return status == 0 ? shc_verify(m, err) : status; /* strings may say anything */
}
