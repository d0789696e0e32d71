/* sdy-flatten-call-graph: every function but those that are called only once is copied for each further call, with all
 * that it calls, so that shardings may differ from call to call.
 * Requires: no function calls itself, by others neither. Preserves: what the program computes. */
#include "../round_trip/round_trip.h"

enum { IMP_FLATTEN_DEPTH = 256, IMP_FLATTEN_COPIES = 1 << 20 };

typedef struct imp_flatten {
  opt_rewriter rw;
  opt_symbols symbols;
  shc_names names;
  base_map called; /* functions that a call has been seen of */
  uint32_t depth, copies;
  bool bodies; /* of manual computations only */
} imp_flatten;

static int imp_flatten_copy(imp_flatten *x, const ir_op *call, const ir_computation *f, const base_istr **name);

static int imp_set_callee(imp_flatten *x, ir_op *call, const base_istr *name) {
  const ir_mattr *a = ir_m_symbol(x->rw.m, name->s, name->n);
  return a && ir_m_set(call, "callee", a) ? 0 : base_oom(x->rw.err, "sdy-flatten-call-graph");
}

/* A call in a copy gets a copy of its own. */
static int imp_flatten_inner(void *ctx, ir_op *op) {
  imp_flatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  const base_istr *name;
  if (!f) return 0;
  TRY(imp_flatten_copy(x, op, f, &name));
  return imp_set_callee(x, op, name);
}

static int imp_flatten_copy(imp_flatten *x, const ir_op *call, const ir_computation *f, const base_istr **name) {
  if (++x->depth > IMP_FLATTEN_DEPTH || ++x->copies > IMP_FLATTEN_COPIES)
    return opt_rewrite_fail(&x->rw, call, XLAC_E_TOO_LARGE,
                            "calls nest too deep, are recursive, or would make too many copies of functions");
  const base_istr *original = shc_original_name(f), *temporary = ir_intern(x->rw.m, "", 0);
  ir_computation *copy = temporary ? shc_copy_function(&x->rw, f, temporary) : NULL;
  const ir_mattr *a = ir_m_string(x->rw.m, original->s, original->n);
  if (!copy || !a || !shc_set_function(copy, "sdy.original_func_name", a))
    return base_oom(x->rw.err, "a copied function");
  TRY(shc_walk(copy, true, imp_flatten_inner, x));
  *name = shc_fresh(&x->names, f->name->s, f->name->n);
  if (!*name || !base_map_set(&x->symbols.by_name, base_key(*name), base_key(copy)))
    return base_oom(x->rw.err, "a copied function");
  copy->name = *name;
  shc_move(copy, NULL);
  x->depth--;
  return 0;
}

static int imp_flatten_call(void *ctx, ir_op *op) {
  imp_flatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  const base_istr *name;
  uint64_t seen;
  if (!f || (x->bodies && !rt_is_body(f->name))) return 0;
  if (!base_map_get(&x->called, base_key(f), &seen)) {
    if (!base_map_set(&x->called, base_key(f), 1)) return base_oom(x->rw.err, "sdy-flatten-call-graph");
    return x->bodies ? shc_walk(f, true, imp_flatten_inner, x) : 0; /* what it calls may be called by others too */
  }
  TRY(imp_flatten_copy(x, op, f, &name));
  return imp_set_callee(x, op, name);
}

static int imp_flatten_all(imp_flatten *x) {
  uint32_t n = 0;
  ir_computation **list = shc_functions(x->rw.m, &x->symbols, false, &x->rw.arena, &n);
  if (!list) return base_oom(x->rw.err, "sdy-flatten-call-graph");
  for (uint32_t i = 0; i < n; i++) TRY(shc_walk(list[i], true, imp_flatten_call, x));
  return 0;
}

int shard_flatten_calls(ir_module *m, bool bodies, xlac_error *err) {
  imp_flatten x = {.depth = 0, .bodies = bodies};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    base_map_init(&x.called, m->alloc);
    status = shc_names_init(&x.names, m) ? imp_flatten_all(&x) : base_oom(err, "sdy-flatten-call-graph");
    shc_names_free(&x.names);
    base_map_free(&x.called);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  return status;
}

int shard_flatten_call_graph(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return shard_flatten_calls(m, false, err);
}
