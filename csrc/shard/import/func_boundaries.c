/* Small passes on functions: their order, and the shardings of arguments, results and calls. Shardings of function
 * results are attributes of the function, beside those of the values that its body returns. */
#include "../../base/number/gcd.h"
#include "../common/common.h"

/* sdy-pre-order-funcs: functions come before those they call.
 * Requires: nothing. Preserves: all but the order of functions. */

int shard_pre_order_funcs(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_symbols symbols;
  base_arena arena;
  uint32_t n = 0;
  TRY(opt_symbols_make(&symbols, m, err));
  base_arena_init(&arena, m->alloc);
  ir_computation **list = shc_functions(m, &symbols, true, &arena, &n);
  for (uint32_t i = 0; list && i < n; i++) ir_computation_move(list[i], NULL);
  base_arena_free(&arena);
  opt_symbols_free(&symbols);
  return list ? 0 : base_oom(err, "sdy-pre-order-funcs");
}

/* sdy-propagate-sharding-from-func-to-call: calls without shardings get those of the function's results.
 * Requires: nothing. Preserves: all else. */

typedef struct imp_calls {
  opt_symbols symbols;
  xlac_error *err;
} imp_calls;

/* A call with a sharding of its own keeps it: a reshard after the call will make up the difference. */
static int imp_call_shardings(void *ctx, ir_op *op) {
  imp_calls *x = ctx;
  const sdy_shardings *list;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  if (!f || sdy_get_list(op)) return 0;
  bool ok = shc_result_shardings(f, &list) && (!list || sdy_set_list(op, list));
  return ok ? 0 : base_oom(x->err, "the shardings of a call");
}

int shard_func_to_call(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_calls x = {.err = err};
  TRY(opt_symbols_make(&x.symbols, m, err));
  int status = shc_walk_module(m, true, imp_call_shardings, &x);
  opt_symbols_free(&x.symbols);
  return status;
}

/* sdy-propagate-to-func-results: results of functions but the main one have the shardings of what is returned.
 * Requires: nothing. Preserves: all else. */

/* The main function's results are the user's to annotate; those of others follow what is returned. */
int shard_to_func_results(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  const ir_computation *entry = shc_main(m, true);
  bool ok = true;
  if (!entry) return shc_no_main(m, err);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || c->owner || c == entry || c->declaration) continue;
    for (uint32_t i = 0; i < c->n_results && ok; i++) ok = sdy_set_result(c, i, sdy_shown(m, c->results[i]));
  }
  return ok ? 0 : base_oom(err, "sdy-propagate-to-func-results");
}

/* sdy-remove-sub-axes-in-input-output-shardings: open dimensions of what the main function takes and gives lose the
 * first axis that is only a part of one, and all after it.
 * Requires: nothing. Preserves: all else. */

/* How many axes a dimension keeps: all of a closed one, else those before the first sub-axis. */
static uint32_t exp_whole_axes(const sdy_dim *d) {
  uint32_t n = 0;
  while (n < d->axes.n && (!d->open || !d->axes.v[n].size)) n++;
  return n;
}

/* s itself where nothing changes; the copy is the module's. */
static const sdy_sharding *exp_without_sub_axes(ir_module *m, const sdy_sharding *s) {
  sdy_dim *dims = NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    uint32_t n = exp_whole_axes(&s->dims[i]);
    if (n == s->dims[i].axes.n) continue;
    if (!dims && !(dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims))) return NULL;
    dims[i].axes.n = n;
  }
  sdy_sharding *to = dims ? base_arena_memdup(&m->arena, s, sizeof *s) : NULL;
  if (to) to->dims = dims;
  return dims ? to : s;
}

/* Of the main function only: what is inside may keep sub-axes, callers outside can't name them. */
int shard_drop_sub_axes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  ir_computation *f = shc_main(m, true);
  bool ok = true;
  if (!f) return shc_no_main(m, err);
  for (uint32_t i = 0; i < f->n_params && ok; i++) {
    ir_value v = {f->params[i], 0};
    const sdy_sharding *s = sdy_get(v), *to = s ? exp_without_sub_axes(m, s) : NULL;
    ok = to == s || (to && sdy_set(v, to));
  }
  for (uint32_t i = 0; i < f->n_results && ok; i++) {
    const sdy_sharding *s = sdy_get_result(f, i), *to = s ? exp_without_sub_axes(m, s) : NULL;
    ok = to == s || (to && sdy_set_result(f, i, to));
  }
  return ok ? shc_verify_fitting(m, err) : base_oom(err, "sdy-remove-sub-axes-in-input-output-shardings");
}

/* sdy-update-non-divisible-input-output-shardings: what functions take and give, what calls give, and what manual
 * computations take and give is cut into even parts: a dimension keeps the longest beginning of its axes that divides
 * it, the last of them maybe split.
 * Requires: nothing. Preserves: all else. */

/* Keeps the axes that divide `size`: of [{"x", "y"}] with x=4, y=4 on 24 elements remain "x" and "y":(1)2. The
 * priority goes, as everywhere in propagation's results. false when out of memory. */
static bool exp_even_dim(ir_module *m, sdy_dim *d, int64_t size, const sdy_mesh *mesh) {
  assert(size >= 0);
  sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, (size_t)d->axes.n + 1);
  uint32_t n = 0;
  if (!v) return false;
  for (uint32_t i = 0; i < d->axes.n; i++) {
    sdy_axis a = d->axes.v[i];
    int64_t whole = sdy_axis_size(a, mesh), part = base_gcd(whole, size);
    if (part == 1) break;
    if (part != whole) {
      v[n++] = (sdy_axis){a.name, sdy_axis_pre(a), part};
      break;
    }
    v[n++] = a;
    size /= part;
  }
  *d = (sdy_dim){{n, v}, d->open, -1};
  return true;
}

/* d's shards have equal parts of a dimension of that size. */
static bool exp_divides(const sdy_dim *d, int64_t size, const sdy_mesh *mesh) {
  return size % sdy_axes_size(d->axes, mesh) == 0;
}

/* s where it is even; NULL when out of memory.
 * Types and shardings that do not belong together (dynamic shapes, tuples) are left for others to refuse. */
static const sdy_sharding *exp_even(ir_module *m, const sdy_sharding *s, const ir_type *type) {
  const sdy_mesh *mesh = sdy_mesh_of(m, s);
  sdy_dim *dims = NULL;
  if (!mesh || !shc_is_static(type) || s->n_dims != type->rank) return s;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    if (exp_divides(&s->dims[i], type->dims[i], mesh)) continue;
    if (!dims && !(dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims))) return NULL;
    if (!exp_even_dim(m, &dims[i], type->dims[i], mesh)) return NULL;
  }
  if (!dims) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  if (to) to->dims = dims;
  return to;
}

static bool exp_even_value(ir_module *m, ir_value v) {
  const sdy_sharding *s = sdy_get(v), *to = s ? exp_even(m, s, opt_type(v)) : NULL;
  return !s || to == s || (to && sdy_set(v, to));
}

/* Arguments, then results; a declaration has no types of values to look at. */
static bool exp_even_function(ir_module *m, ir_computation *f) {
  bool ok = true;
  for (uint32_t i = 0; i < f->n_params && ok; i++) ok = exp_even_value(m, (ir_value){f->params[i], 0});
  for (uint32_t i = 0; i < f->n_results && !f->declaration && ok; i++) {
    const sdy_sharding *s = sdy_get_result(f, i);
    const sdy_sharding *to = s ? exp_even(m, s, f->results[i].op->types[f->results[i].index]) : NULL;
    ok = !s || to == s || (to && sdy_set_result(f, i, to));
  }
  return ok;
}

/* Arguments of manual computations: the sharding is in a list on the op, written through its owner. */
static bool exp_even_owner(ir_module *m, ir_value owner) {
  const sdy_sharding *s = sdy_get_owner(m, owner), *to = s ? exp_even(m, s, opt_type(owner)) : NULL;
  return !s || to == s || (to && sdy_set_owner(owner, to));
}

/* Manual computations and calls have signatures too. */
static int exp_even_op(void *ctx, ir_op *op) {
  ir_module *m = ctx;
  bool manual = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION, ok = true;
  if (!manual && op->opcode != IR_OP_CALL) return 0;
  for (uint32_t i = 0; manual && i < op->called[0]->n_params && ok; i++)
    ok = exp_even_owner(m, (ir_value){op->called[0]->params[i], 0});
  for (uint32_t i = 0; i < op->n_results && ok; i++) ok = exp_even_value(m, (ir_value){op, i});
  return ok ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

int shard_even_signatures(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner) ok = ok && exp_even_function(m, c);
  ok = ok && shc_walk_module(m, false, exp_even_op, m) == 0;
  return ok ? shc_verify_fitting(m, err) : base_oom(err, "sdy-update-non-divisible-input-output-shardings");
}
