/* Functions by name, and the passes that are about nothing else: symbol-dce and inline. Names are interned, so maps
 * are by pointer. */
#include "symbols.h"

/* Functions only; meshes have a table of their own. */
int opt_symbols_make(opt_symbols *s, const ir_module *m, xlac_error *err) {
  base_map_init(&s->by_name, m->alloc);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || base_map_set(&s->by_name, base_key(c->name), base_key(c))) continue;
    opt_symbols_free(s);
    return base_oom(err, "a pass");
  }
  return 0;
}

void opt_symbols_free(opt_symbols *s) {
  base_map_free(&s->by_name);
}

ir_computation *opt_symbol(const opt_symbols *s, const base_istr *name, bool body) {
  assert(name != NULL);
  ir_computation *c = base_map_ptr(&s->by_name, name);
  return c && body && c->declaration ? NULL : c;
}

/* Other ops that name functions (custom calls) do not call them. */
static const ir_mattr *callee_of(const ir_op *op) {
  if (op->opcode == IR_OP_CALL) return ir_mattr_of(op, "callee");
  if (op->opcode == IR_OP_COMPOSITE) return ir_mattr_of(op, "decomposition");
  return NULL;
}

/* Nested symbols (@a::@b) name nothing here. */
ir_computation *opt_callee(const opt_symbols *s, const ir_op *op) {
  const ir_mattr *a = callee_of(op);
  if (!a || a->kind != IR_M_SYMBOL || a->v.list->n != 1) return NULL;
  return opt_symbol(s, a->v.list->v[0]->str, true);
}

bool opt_is_private(const ir_computation *c) {
  const ir_mattr *a = ir_mdict_get(c->mlir, "sym_visibility");
  return a && a->kind == IR_M_STRING && strcmp(a->str->s, "private") == 0;
}

static void symbols_in_dict(const ir_mdict *d, void (*fn)(void *ctx, const base_istr *name), void *ctx);

/* Attributes nest as deep as the reader lets them. */
static void symbols_in(const ir_mattr *a, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  if (a->kind == IR_M_SYMBOL) fn(ctx, a->v.list->v[0]->str);
  if (a->kind == IR_M_ARRAY)
    for (uint32_t i = 0; i < a->v.list->n; i++) symbols_in(a->v.list->v[i], fn, ctx);
  if (a->kind == IR_M_DICT || a->kind == IR_M_STRUCT) symbols_in_dict(a->v.dict, fn, ctx);
}

static void symbols_in_dict(const ir_mdict *d, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  for (uint32_t i = 0; d && i < d->n; i++) symbols_in(d->v[i].value, fn, ctx);
}

void opt_for_symbols(const ir_op *op, void (*fn)(void *ctx, const base_istr *name), void *ctx) {
  assert(op->parent);
  symbols_in_dict(op->mlir, fn, ctx);
}

/* symbol-dce: removes private functions that no public one reaches.
 * Requires: nothing. Preserves: public functions, and whatever at module level is not a function. */

/* A worklist from the public functions; regions are marked like functions, since removal goes by computation. */
typedef struct symbol_dce {
  opt_symbols symbols;
  uint8_t *live; /* by computation id */
  ir_computation **pending;
  uint32_t n;
} symbol_dce;

/* Each once, so `pending` has room for all. NULL: a name that no function has. */
static void symbol_dce_mark(symbol_dce *d, ir_computation *c) {
  assert(d->pending != NULL);
  if (!c || d->live[c->id]) return;
  d->live[c->id] = 1;
  d->pending[d->n++] = c;
}

/* A declaration is live if it is named. */
static void symbol_dce_name(void *ctx, const base_istr *name) {
  symbol_dce *d = ctx;
  symbol_dce_mark(d, opt_symbol(&d->symbols, name, false));
}

/* Regions of what is live, and functions that any attribute of an op names. */
static void symbol_dce_walk(symbol_dce *d) {
  while (d->n) {
    const ir_computation *c = d->pending[--d->n];
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) symbol_dce_mark(d, op->called[i]);
      opt_for_symbols(op, symbol_dce_name, d);
    }
  }
}

/* Regions of a dead function are dead too: nobody has marked them. */
static void symbol_dce_sweep(const symbol_dce *d, ir_module *m) {
  for (ir_computation *c = m->last, *before = NULL; c; c = before) {
    before = c->prev;
    if (!d->live[c->id]) ir_computation_remove(c);
  }
}

/* The list holds each computation at most once. */
int opt_symbol_dce(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  symbol_dce d = {.n = 0};
  base_arena arena;
  TRY(opt_symbols_make(&d.symbols, m, err));
  base_arena_init(&arena, m->alloc);
  d.live = base_arena_zalloc(&arena, (size_t)m->n_computation_ids + 1);
  d.pending = BASE_ARRAY(&arena, ir_computation *, (size_t)m->n_computations + 1);
  bool ok = d.live && d.pending;
  if (ok) {
    IR_FOR_COMPUTATIONS(c, m)
    if (c->kind == IR_SYMBOL || (c->kind == IR_FUNCTION && !opt_is_private(c))) symbol_dce_mark(&d, c);
    symbol_dce_walk(&d);
    symbol_dce_sweep(&d, m);
  }
  base_arena_free(&arena);
  opt_symbols_free(&d.symbols);
  return ok ? 0 : base_oom(err, "symbol-dce");
}

/* inline: replaces calls of functions by their bodies; private functions nobody calls any more go.
 * Requires: nothing. Preserves: public functions, calls of declarations, calls that recurse, and calls that carry
 * no_inline, and those between which and their function sdy has edges. */

typedef struct minline {
  opt_rewriter rw;
  opt_symbols symbols;
  uint8_t *state; /* by computation id: 0 new, 1 in progress, 2 done */
  int64_t *sizes; /* by computation id, once done: ops it comes to have */
  int64_t total;  /* of all functions that are done */
  int64_t max_ops;
} minline;

/* A bound of the recursion below; deeper chains of calls keep a call. */
enum { MINLINE_MAX_DEPTH = 500 };

static int minline_function(minline *x, ir_computation *c, uint32_t depth);

/* Whether a sdy.func_data_flow_edge stands for how values pass between the call and the function: without the call it
 * would say nothing, and is not valid. */
static bool minline_reads_edge(const ir_op *op) {
  IR_FOR_USES(use, op)
  if (use->user->opcode == IR_OP_SDY_FUNC_DATA_FLOW_EDGE) return true;
  return false;
}

static bool minline_has_edge(const ir_op *call, const ir_computation *callee) {
  bool edge = minline_reads_edge(call);
  for (uint32_t i = 0; i < callee->n_params && !edge; i++) edge = minline_reads_edge(callee->params[i]);
  return edge;
}

/* no_inline on the call or on the function. */
static bool minline_is_candidate(const minline *x, const ir_op *op, ir_computation **callee) {
  if (op->opcode != IR_OP_CALL || ir_m_get_bool(op, "no_inline")) return false;
  *callee = opt_callee(&x->symbols, op);
  return *callee != NULL && !ir_mdict_get((*callee)->mlir, "no_inline") && !minline_has_edge(op, *callee);
}

/* --- how much it comes to: the same walk, which only counts --- */

static int minline_measure(minline *x, const ir_computation *c, uint32_t depth);

static int minline_too_large(minline *x, const ir_op *op, const ir_computation *callee) {
  return opt_rewrite_fail(&x->rw, op, XLAC_E_TOO_LARGE,
                          "inlining @%s would make more than %lld ops: set max-ops higher", callee->name->s,
                          (long long)x->max_ops);
}

/* What a call adds to *n. */
static int minline_measure_call(minline *x, const ir_op *op, ir_computation *callee, uint32_t depth, int64_t *n) {
  if (x->state[callee->id] == 0) TRY(minline_measure(x, callee, depth + 1));
  assert(x->total >= 0);
  if (x->state[callee->id] != 2) return 0;
  bool fits = base_add_i64(*n, x->sizes[callee->id], n) && *n <= x->max_ops - x->total;
  return fits ? 0 : minline_too_large(x, op, callee);
}

/* Parameters are not copied. */
static int minline_measure_ops(minline *x, const ir_computation *c, uint32_t depth, int64_t *n) {
  IR_FOR_OPS(op, c) {
    ir_computation *callee = NULL;
    *n += op->opcode != IR_OP_PARAMETER;
    for (uint32_t i = 0; i < op->n_called; i++) TRY(minline_measure_ops(x, op->called[i], depth, n));
    if (minline_is_candidate(x, op, &callee)) TRY(minline_measure_call(x, op, callee, depth, n));
  }
  return 0;
}

/* How much it comes to: the same walk as that which inlines, only counting. Two calls of a function whose body has
 * two calls, and so on, is exponential in the text, so the size is known before anything is copied. */
static int minline_measure(minline *x, const ir_computation *c, uint32_t depth) {
  int64_t n = 0;
  if (depth > MINLINE_MAX_DEPTH) return 0;
  x->state[c->id] = 1;
  TRY(minline_measure_ops(x, c, depth, &n));
  x->state[c->id] = 2;
  x->sizes[c->id] = n;
  x->total += n;
  return 0;
}

/* --- doing it --- */

/* Callees first: a body is copied with its own calls inlined. */
static int minline_call(minline *x, ir_op *op, ir_computation *callee, uint32_t depth) {
  if (x->state[callee->id] == 0) TRY(minline_function(x, callee, depth + 1));
  if (x->state[callee->id] != 2) return 0; /* recursion, or too deep a chain of calls */
  ir_value *values = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  x->rw.failed = x->rw.failed || !values;
  for (uint32_t i = 0; values && i < op->n_operands; i++) values[i] = opt_operand(op, i);
  opt_at(&x->rw, op);
  assert(op->n_operands == callee->n_params);
  if (values) opt_inline(&x->rw, callee, values, values + op->n_operands);
  if (values) opt_replace_op(&x->rw, op, values + op->n_operands);
  return opt_rewriter_status(&x->rw);
}

/* Regions first: a call inside is inlined before the op around it is looked at. */
static int minline_ops(minline *x, ir_computation *c, uint32_t depth) {
  IR_FOR_OPS_SAFE(op, c) {
    ir_computation *callee = NULL;
    for (uint32_t i = 0; i < op->n_called; i++) TRY(minline_ops(x, op->called[i], depth));
    if (minline_is_candidate(x, op, &callee)) TRY(minline_call(x, op, callee, depth));
  }
  return 0;
}

/* state 1 while it runs: a call back to it is recursion, and stays. */
static int minline_function(minline *x, ir_computation *c, uint32_t depth) {
  if (depth > MINLINE_MAX_DEPTH) return 0;
  x->state[c->id] = 1;
  TRY(minline_ops(x, c, depth));
  x->state[c->id] = 2;
  return 0;
}

/* Functions that were there at the beginning. */
static bool minline_is_next(const minline *x, const ir_computation *c, uint32_t n) {
  return c->kind == IR_FUNCTION && !c->declaration && c->id < n && x->state[c->id] == 0;
}

/* Measured for all functions first, so that an error leaves the module as it was. */
static int minline_all(minline *x, ir_module *m) {
  uint32_t n = m->n_computation_ids;
  x->state = base_arena_zalloc(&x->rw.arena, (size_t)n + 1);
  x->sizes = BASE_ARRAY(&x->rw.arena, int64_t, (size_t)n + 1);
  x->rw.failed = x->rw.failed || !x->state || !x->sizes;
  TRY(opt_rewriter_status(&x->rw));
  for (ir_computation *c = m->first; c; c = c->next)
    if (minline_is_next(x, c, n)) TRY(minline_measure(x, c, 0));
  memset(x->state, 0, (size_t)n + 1);
  for (ir_computation *c = m->first; c; c = c->next)
    if (minline_is_next(x, c, n)) TRY(minline_function(x, c, 0));
  return 0;
}

/* Private functions that have lost their last call go at the end. */
int opt_inline_functions(ir_module *m, const opt_args *args, xlac_error *err) {
  minline x = {.max_ops = opt_get(args, "max-ops")};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    status = minline_all(&x, m);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  return status ? status : opt_symbol_dce(m, args, err);
}
