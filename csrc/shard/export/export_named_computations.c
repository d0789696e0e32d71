/* sdy-export-named-computations: named computations become private functions and calls of them.
 * Requires: nothing. Preserves: what the program computes. */
#include "../import/edges.h"

BASE_VEC(exp_named_ops, ir_op *);
typedef struct exp_named {
  opt_rewriter rw;
  shc_names names;
  exp_named_ops ops; /* inner ones first */
} exp_named;

static int exp_named_oom(exp_named *x) {
  return base_oom(x->rw.err, "sdy-export-named-computations");
}

/* Uses of v's edge become uses of v. */
static void exp_drop_edge(exp_named *x, ir_value v) {
  ir_op *edge = sdy_edge_op(v);
  if (edge) opt_replace_one(&x->rw, edge, v);
}

static bool exp_function_attrs(ir_module *m, ir_computation *f, const ir_op *op) {
  const base_istr *name = ir_mattr_of(op, "name")->str;
  const ir_mattr *thread = ir_mattr_of(op, "execution_thread");
  bool ok = shc_set_function(f, "sym_visibility", ir_m_string(m, "private", 7)) &&
            shc_set_function(f, "sdy.original_func_name", ir_m_string(m, name->s, name->n));
  return ok && (!thread || shc_set_function(f, "execution_thread", thread));
}

static int exp_make_function(exp_named *x, ir_op *op, const base_istr **name) {
  ir_module *m = x->rw.m;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const base_istr *stem = ir_mattr_of(op, "name")->str;
  *name = shc_fresh(&x->names, stem->s, stem->n);
  if (!*name) return exp_named_oom(x);
  ir_computation *f = shc_give_body(op, *name);
  if (!exp_function_attrs(m, f, op)) return exp_named_oom(x);
  for (uint32_t i = 0; i < f->n_params; i++) {
    ir_value v = {f->params[i], 0};
    exp_drop_edge(x, v);
    if (in && i < in->n && !sdy_set(v, in->v[i])) return exp_named_oom(x);
  }
  return opt_rewriter_status(&x->rw);
}

/* The computation's attributes but its own, the callee, and its results' shardings. */
static bool exp_call_attrs(ir_module *m, ir_op *call, const ir_op *op, const base_istr *name) {
  static const char *const gone[] = {"name", "in_shardings", "out_shardings", "execution_thread"};
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  const ir_mdict *d = op->mlir;
  for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
    if (ir_mdict_get(d, gone[i]) && !(d = ir_mdict_with(m, d, gone[i], NULL))) return false;
  call->mlir = d;
  bool ok = ir_m_set(call, "callee", ir_m_symbol(m, name->s, name->n));
  return ok && (!out || sdy_set_list(call, out));
}

/* They are listed before any of them goes: with it go the edges after it. */
static int exp_named_list(void *ctx, ir_op *op) {
  exp_named *x = ctx;
  if (op->opcode != IR_OP_SDY_NAMED_COMPUTATION) return 0;
  return BASE_VEC_PUSH(x->rw.m->alloc, &x->ops, op) ? 0 : exp_named_oom(x);
}

static int exp_named_op(exp_named *x, ir_op *op) {
  const base_istr *name;
  TRY(shard_sink_edges(&x->rw, op));
  TRY(exp_make_function(x, op, &name));
  ir_value *operands = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_results + 1);
  if (!operands || !results) return exp_named_oom(x);
  for (uint32_t i = 0; i < op->n_operands; i++) operands[i] = opt_operand(op, i);
  opt_at(&x->rw, op);
  ir_op *call = opt_make_n(&x->rw, IR_OP_CALL, op->n_results, op->types, op->n_operands, operands, 0);
  if (!call || !exp_call_attrs(x->rw.m, call, op, name)) return exp_named_oom(x);
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = (ir_value){call, i};
  opt_replace_op(&x->rw, op, results);
  for (uint32_t i = 0; i < call->n_results; i++) exp_drop_edge(x, results[i]);
  return opt_rewriter_status(&x->rw);
}

int shard_export_named(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  exp_named x = {.rw = {.m = m}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = shc_names_init(&x.names, m) ? shc_walk_module(m, true, exp_named_list, &x) : exp_named_oom(&x);
  for (uint32_t i = 0; i < x.ops.n && status == 0; i++) status = exp_named_op(&x, x.ops.items[i]);
  BASE_VEC_FREE(m->alloc, &x.ops);
  shc_names_free(&x.names);
  opt_rewriter_free(&x.rw);
  return status;
}
