/* Calls as named computations while shardings are propagated, and named computations as functions and calls after. %r
 * = call @f(%x) becomes %r = sdy.named_computation<"f">(%x) (%arg) { body of @f }, with the shardings of f's
 * arguments as in_shardings: propagation then flows through the body as through any region, and can differ from call
 * to call. */
#include "edges.h"

/* sdy-import-func-calls: calls become named computations. The first call of a function takes its body, others a copy;
 * functions that were called are gone then.
 * Requires: no function calls itself, by others neither. Preserves: what the program computes. */

/* What calls need to know of a function, whose body may have gone to the first of them.
 * In text, with the edges that propagation needs at both ends:
 *    %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
 *      %2 = sdy.data_flow_edge %b;  %3 = stablehlo.abs %2;  sdy.return %3
 *    };  %1 = sdy.data_flow_edge %0 */
typedef struct imp_callee {
  ir_computation *f;
  const base_istr *name;
  const sdy_shardings *in; /* or NULL */
  const ir_mattr *thread;  /* or NULL */
  bool done;               /* its own calls are named computations */
  bool taken;              /* f is a region now */
} imp_callee;

typedef struct imp_inline {
  opt_rewriter rw;
  opt_symbols symbols;
  base_map callees; /* function to imp_callee */
} imp_inline;

static int imp_inline_oom(imp_inline *x) {
  return base_oom(x->rw.err, "sdy-import-func-calls");
}

/* The call's attributes that are not its own, and what the function says of arguments.
 * The call's sharding becomes out_shardings; attributes that calls alone have go. */
static int imp_named_attrs(imp_inline *x, ir_op *to, const ir_op *call, const imp_callee *c) {
  static const char *const gone[] = {"callee", "arg_attrs", "no_inline", "res_attrs", "sdy.sharding"};
  ir_module *m = x->rw.m;
  const sdy_shardings *out = sdy_get_list(call);
  const ir_mdict *d = call->mlir;
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof gone / sizeof *gone; i++)
    if (ir_mdict_get(d, gone[i])) ok = (d = ir_mdict_with(m, d, gone[i], NULL)) != NULL;
  ir_set_mlir(to, d);
  ok = ok && ir_m_set(to, "name", ir_m_string(m, c->name->s, c->name->n));
  if (ok && c->in) ok = ir_m_set(to, "in_shardings", sdy_attr(m, SDY_SHARDINGS, c->in));
  if (ok && out) ok = ir_m_set(to, "out_shardings", sdy_attr(m, SDY_SHARDINGS, out));
  if (ok && c->thread) ok = ir_m_set(to, "execution_thread", c->thread);
  return ok ? 0 : imp_inline_oom(x);
}

/* The function becomes a region and is not in the module's list of functions any more; no op is copied. */
static int imp_take_body(imp_inline *x, ir_op *op, imp_callee *c) {
  assert(!c->taken);
  c->taken = true;
  return shc_take_body(op, c->f) ? 0 : imp_inline_oom(x);
}

/* A later call of a function whose body is the region of the first call already: f is that region now. */
static int imp_copy_body(imp_inline *x, ir_op *op, const ir_computation *from) {
  opt_rewriter *rw = &x->rw;
  ir_computation *to = opt_region(rw, op, 0);
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)from->n_params + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)from->n_results + 1);
  if (!to || !args || !results) return imp_inline_oom(x);
  opt_at_end(rw, to, op);
  for (uint32_t i = 0; i < from->n_params; i++) args[i] = opt_region_argument(rw, to, from->params[i]->type);
  if (rw->failed) return imp_inline_oom(x);
  opt_inline(rw, from, args, results);
  opt_set_results(rw, to, from->n_results, results);
  to->return_name = from->return_name;
  to->return_loc = from->return_loc;
  ir_set_return_attrs(to, from->return_mlir);
  return opt_rewriter_status(rw);
}

/* The op stands where the call stood, with one region that takes the callee's body. */
static ir_op *imp_make_named(imp_inline *x, ir_op *call) {
  assert(call->opcode == IR_OP_CALL);
  ir_value *operands = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)call->n_operands + 1);
  if (!operands) return NULL;
  for (uint32_t i = 0; i < call->n_operands; i++) operands[i] = opt_operand(call, i);
  opt_at(&x->rw, call);
  return opt_make_n(&x->rw, IR_OP_SDY_NAMED_COMPUTATION, call->n_results, call->types, call->n_operands, operands, 1);
}

/* Callees are done before their callers, so a callee that is not done yet calls itself. */
static int imp_inline_call(void *ctx, ir_op *op) {
  imp_inline *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  imp_callee *c = f ? base_map_ptr(&x->callees, f) : NULL;
  if (!c) return 0;
  if (!c->done)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_STRUCTURE, "@%s calls itself, which can't be inlined",
                            f->name->s);
  ir_op *to = imp_make_named(x, op);
  ir_value *results = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_results + 1);
  if (!to || !results) return imp_inline_oom(x);
  TRY(imp_named_attrs(x, to, op, c));
  TRY(c->taken ? imp_copy_body(x, to, f) : imp_take_body(x, to, c));
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = (ir_value){to, i};
  opt_replace_op(&x->rw, op, results);
  return opt_rewriter_status(&x->rw);
}

/* Noted before any body moves: shardings and attributes are the function's, and go with it. */
static int imp_note_callee(imp_inline *x, ir_computation *f) {
  imp_callee *c = BASE_NEW(&x->rw.arena, imp_callee);
  if (!c) return imp_inline_oom(x);
  c->f = f;
  c->name = shc_original_name(f);
  c->thread = ir_mdict_get(f->mlir, "execution_thread");
  bool ok = shc_argument_shardings(f, &c->in) && base_map_set(&x->callees, base_key(f), base_key(c));
  return ok ? 0 : imp_inline_oom(x);
}

/* Callees first, so that a body that is copied has no calls left in it. */
static int imp_inline_all(imp_inline *x) {
  uint32_t n = 0;
  ir_computation **list = shc_functions(x->rw.m, &x->symbols, false, &x->rw.arena, &n);
  if (!list) return imp_inline_oom(x);
  for (uint32_t i = 0; i < n; i++) TRY(imp_note_callee(x, list[i]));
  for (uint32_t i = 0; i < n; i++) {
    TRY(shc_walk(list[i], true, imp_inline_call, x));
    ((imp_callee *)base_map_ptr(&x->callees, list[i]))->done = true;
  }
  return 0;
}

static int imp_edges_of_named(void *ctx, ir_op *op) {
  return op->opcode == IR_OP_SDY_NAMED_COMPUTATION ? shard_add_edges(ctx, op) : 0;
}

/* Edges that were there may have been those of calls, which are not there any more: the verifier says so. */
int shard_import_func_calls(ir_module *m, const opt_args *args, xlac_error *err) {
  imp_inline x = {.rw = {.m = m}};
  bool had_edges = shc_has(m, IR_OP_SDY_DATA_FLOW_EDGE);
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    base_map_init(&x.callees, m->alloc);
    status = imp_inline_all(&x);
    if (status == 0 && opt_get(args, "add-data-flow-edges-on-named-computations"))
      status = shc_walk_module(m, true, imp_edges_of_named, &x.rw);
    base_map_free(&x.callees);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  TRY(status);
  bool changed = shc_has(m, IR_OP_SDY_FUNC_DATA_FLOW_EDGE) || had_edges; /* of calls that are none any more */
  return changed ? shc_verify(m, err) : 0;
}

/* sdy-export-named-computations: named computations become private functions and calls of them.
 * Requires: nothing. Preserves: what the program computes. */

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

/* Private, since nothing outside of the module knows the name; the original name lets calls be merged again. */
static bool exp_function_attrs(ir_module *m, ir_computation *f, const ir_op *op) {
  const base_istr *name = ir_mattr_of(op, "name")->str;
  const ir_mattr *thread = ir_mattr_of(op, "execution_thread");
  bool ok = shc_set_function(f, "sym_visibility", ir_m_string(m, "private", 7)) &&
            shc_set_function(f, "sdy.original_func_name", ir_m_string(m, name->s, name->n));
  return ok && (!thread || shc_set_function(f, "execution_thread", thread));
}

/* Edges on arguments go: a function's argument holds its own sharding. */
static int exp_make_function(exp_named *x, ir_op *op, const base_istr **name) {
  ir_module *m = x->rw.m;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const base_istr *stem = ir_mattr_of(op, "name")->str;
  *name = shc_fresh(&x->names, stem->s, stem->n);
  if (!*name) return exp_named_oom(x);
  ir_computation *f = shc_give_body(op, *name);
  assert(f->kind == IR_FUNCTION && f->n_params == op->n_operands);
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
  ir_set_mlir(call, d);
  bool ok = ir_m_set(call, "callee", ir_m_symbol(m, name->s, name->n));
  return ok && (!out || sdy_set_list(call, out));
}

/* They are listed before any of them goes: with it go the edges after it. */
static int exp_named_list(void *ctx, ir_op *op) {
  exp_named *x = ctx;
  if (op->opcode != IR_OP_SDY_NAMED_COMPUTATION) return 0;
  return BASE_VEC_PUSH(x->rw.m->alloc, &x->ops, op) ? 0 : exp_named_oom(x);
}

/* First the edges' shardings go into the op's lists, then these become the function's and the call's. */
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
