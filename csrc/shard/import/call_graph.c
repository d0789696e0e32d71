/* The call graph while shardings are propagated: a copy of a function for each call before, equal copies merged
 * after. Copies are named as MLIR's symbol table would rename them (f, f_0, f_1, ...) and remember the function they
 * are copies of in sdy.original_func_name. */
#include "../common/common.h"
#include "../round_trip/round_trip.h"

/* sdy-flatten-call-graph: every function but those that are called only once is copied for each further call, with all
 * that it calls, so that shardings may differ from call to call.
 * Requires: no function calls itself, by others neither. Preserves: what the program computes. */

/* Bounds of what recursion or an exponential call tree could make: f0 calls f1 twice, which calls f2 twice, ... */
enum { IMP_FLATTEN_DEPTH = 256, IMP_FLATTEN_COPIES = 1 << 20 };

/* bodies: only the bodies of manual computations that travelled as functions (round_trip), for XLA's import. */
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

/* The copy is made under the empty name, its inner calls are copied, and only then is its own name taken: names are
 * numbered in post-order, as in Shardy. */
static int imp_flatten_copy(imp_flatten *x, const ir_op *call, const ir_computation *f, const base_istr **name) {
  assert(f != NULL && !f->declaration);
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
  ir_set_computation_name(copy, *name);
  ir_computation_move(copy, NULL);
  x->depth--;
  return 0;
}

/* The first call of a function, in text order of callees first, keeps the original. */
static int imp_flatten_call(void *ctx, ir_op *op) {
  imp_flatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  const base_istr *name;
  uint64_t seen;
  if (!f || (x->bodies && !trip_is_body(f->name))) return 0;
  if (!base_map_get(&x->called, base_key(f), &seen)) {
    if (!base_map_set(&x->called, base_key(f), 1)) return base_oom(x->rw.err, "sdy-flatten-call-graph");
    return x->bodies ? shc_walk(f, true, imp_flatten_inner, x) : 0; /* what it calls may be called by others too */
  }
  TRY(imp_flatten_copy(x, op, f, &name));
  return imp_set_callee(x, op, name);
}

/* Callees before callers: a function's own calls are flattened before it is copied. */
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

/* sdy-unflatten-call-graph: calls of functions that were copies of one, and have the same shardings, call one of them
 * again. With dedup-functions-fully shardings may differ, and the one that most calls agree with stays.
 * Requires: nothing. Preserves: all else. */

/* Rows are groups of functions that count as one: those of one origin (and manual axes), with or without the same
 * argument and result shardings. */
typedef struct exp_unflatten {
  opt_rewriter rw;
  opt_symbols symbols;
  bool fully;
  ir_computation **shapes; /* the first function of each key with shardings */
  uint32_t *calls;         /* of those */
  uint32_t n_shapes;
  ir_computation **roots; /* of each key as the pass asks for it: the one that stays */
  uint32_t n_roots;
  base_map shape_of, root_of; /* a function to its row + 1 */
} exp_unflatten;

/* NULL: no sharding anywhere in the list. */
static bool exp_same_lists(const sdy_shardings *a, const sdy_shardings *b) {
  return a == b || (a && b && sdy_equal(SDY_SHARDINGS, a, b));
}

/* Noted on functions that were bodies of manual computations. */
static const sdy_names *exp_manual_axes(const ir_computation *f) {
  return sdy_of(ir_mdict_get(f->mlir, "sdy.func_manual_axes"), SDY_MANUAL_AXES);
}

/* Copies of one function remember its name. */
static bool exp_same_origin(const ir_computation *a, const ir_computation *b) {
  const sdy_names *x = exp_manual_axes(a), *y = exp_manual_axes(b);
  bool same_axes = x == y || (x && y && sdy_equal(SDY_MANUAL_AXES, x, y));
  return same_axes && sdy_name_equal(shc_original_name(a), shc_original_name(b));
}

/* *ok false: out of memory, and the answer means nothing. */
static bool exp_same_shardings(const ir_computation *a, const ir_computation *b, bool *ok) {
  const sdy_shardings *x, *y, *z, *w;
  *ok = *ok && shc_argument_shardings(a, &x) && shc_argument_shardings(b, &y) && shc_result_shardings(a, &z) &&
        shc_result_shardings(b, &w);
  return *ok && exp_same_lists(x, y) && exp_same_lists(z, w);
}

/* The row of f among functions; a new one where none is like it. */
static uint32_t exp_row_of(ir_computation *f, bool shardings, base_map *rows, ir_computation **list, uint32_t *n,
                           bool *ok) {
  uint64_t row;
  if (base_map_get(rows, base_key(f), &row)) return (uint32_t)row;
  uint32_t i = 0;
  for (; i < *n && *ok; i++)
    if (exp_same_origin(list[i], f) && (!shardings || exp_same_shardings(list[i], f, ok))) break;
  if (i == *n) list[(*n)++] = f;
  assert(i < *n);
  *ok = *ok && base_map_set(rows, base_key(f), i);
  return i;
}

/* Makes the rows in the order of calls; in the default mode the first function of a row is the one that stays. */
static int exp_count_call(void *ctx, ir_op *op) {
  exp_unflatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  bool ok = true;
  if (!f) return 0;
  exp_row_of(f, !x->fully, &x->root_of, x->roots, &x->n_roots, &ok);
  return ok ? 0 : base_oom(x->rw.err, "sdy-unflatten-call-graph");
}

/* The one with most calls so far stands for all that came from one function. */
static int exp_choose_call(void *ctx, ir_op *op) {
  exp_unflatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  bool ok = true;
  if (!f) return 0;
  uint32_t root = exp_row_of(f, false, &x->root_of, x->roots, &x->n_roots, &ok);
  uint32_t mine = exp_row_of(f, true, &x->shape_of, x->shapes, &x->n_shapes, &ok);
  uint32_t best = exp_row_of(x->roots[root], true, &x->shape_of, x->shapes, &x->n_shapes, &ok);
  assert(mine < x->n_shapes && best < x->n_shapes);
  x->calls[mine]++;
  if (x->calls[mine] > x->calls[best]) x->roots[root] = f;
  return ok ? 0 : base_oom(x->rw.err, "sdy-unflatten-call-graph");
}

/* Functions that nobody calls any more are left to symbol-dce. */
static int exp_redirect_call(void *ctx, ir_op *op) {
  exp_unflatten *x = ctx;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  bool ok = true;
  if (!f) return 0;
  const base_istr *name = x->roots[exp_row_of(f, !x->fully, &x->root_of, x->roots, &x->n_roots, &ok)]->name;
  if (name == f->name) return 0;
  const ir_mattr *symbol = ir_m_symbol(x->rw.m, name->s, name->n);
  ok = ok && symbol && ir_m_set(op, "callee", symbol);
  return ok ? 0 : base_oom(x->rw.err, "sdy-unflatten-call-graph");
}

/* The attributes that flattening left are removed from all functions, merged or not. */
static int exp_unflatten_all(exp_unflatten *x) {
  ir_module *m = x->rw.m;
  size_t most = (size_t)m->n_computations + 1;
  x->shapes = BASE_ARRAY(&x->rw.arena, ir_computation *, most);
  x->roots = BASE_ARRAY(&x->rw.arena, ir_computation *, most);
  x->calls = base_arena_zalloc(&x->rw.arena, most * sizeof *x->calls);
  if (!x->shapes || !x->roots || !x->calls) return base_oom(x->rw.err, "sdy-unflatten-call-graph");
  TRY(shc_walk_module(m, true, exp_count_call, x));
  if (x->fully) TRY(shc_walk_module(m, true, exp_choose_call, x));
  TRY(shc_walk_module(m, true, exp_redirect_call, x));
  static const char *const gone[] = {"sdy.original_func_name", "sdy.func_manual_axes"};
  IR_FOR_COMPUTATIONS(c, m)
  for (size_t i = 0; c->kind == IR_FUNCTION && !c->owner && i < 2; i++)
    if (ir_mdict_get(c->mlir, gone[i]) && !shc_set_function(c, gone[i], NULL))
      return base_oom(x->rw.err, "sdy-unflatten-call-graph");
  return 0;
}

int shard_unflatten_call_graph(ir_module *m, const opt_args *args, xlac_error *err) {
  exp_unflatten x = {.fully = opt_get(args, "dedup-functions-fully")};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    base_map_init(&x.shape_of, m->alloc);
    base_map_init(&x.root_of, m->alloc);
    status = exp_unflatten_all(&x);
    base_map_free(&x.root_of);
    base_map_free(&x.shape_of);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  return status;
}
