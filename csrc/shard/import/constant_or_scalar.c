/* Constants: one for each use while shardings are propagated, equal ones merged after. Without the first pass two
 * uses of one constant would propagate shardings to each other through it, which no data flow asks for. */
#include "../common/common.h"
#include "../rules/rule.h"

/* sdy-constant-or-scalar-splitter: constants become sdy.constant, which nobody merges, and every use of a constant
 * expression (or of a scalar spread out) by anything else gets a copy of it, so that each may be sharded by itself.
 * Scalars are left as they are: they are never sharded.
 * Requires: nothing. Preserves: what the program computes. */

/* Marks of an op: its results are a constant expression; a broadcast of a scalar. */
enum { IMP_CONSTANT = 1, IMP_SCALAR = 2, IMP_ON_LIST = 4 };

/* Tables are the rewriter's arena's; marks and lists are made again for each body. */
typedef struct imp_split {
  opt_rewriter rw;
  opt_symbols symbols;
  shc_names names;
  base_map computations, functions; /* names of those that are more than constant expressions */
  uint8_t *marks;                   /* by op id: IMP_... */
  uint32_t n_marks;
  ir_op **constants, **scalars; /* in the order of the text */
  uint32_t n_constants, n_scalars, cap_constants, cap_scalars;
  ir_op **stack; /* of the copier */
  uint32_t n_stack, cap_stack;
  base_map copies; /* op to its copy, in one expression */
  const ir_computation *f;
} imp_split;

static int imp_split_oom(imp_split *x) {
  return base_oom(x->rw.err, "sdy-constant-or-scalar-splitter");
}

/* Ops made since have none. */
static uint8_t imp_mark(const imp_split *x, const ir_op *op) {
  return op->id < x->n_marks ? x->marks[op->id] : 0;
}

/* The old array stays in the arena: doubling wastes no more than the last one holds. */
static bool imp_push(imp_split *x, ir_op ***list, uint32_t *n, uint32_t *cap, ir_op *op) {
  assert(*n <= *cap);
  if (*n == *cap) {
    uint32_t to = *cap ? *cap * 2 : 32;
    ir_op **grown = BASE_ARRAY(&x->rw.arena, ir_op *, to);
    if (!grown) return false;
    if (*n) memcpy(grown, *list, *n * sizeof *grown);
    *list = grown;
    *cap = to;
  }
  (*list)[(*n)++] = op;
  return true;
}

/* Scalars are never sharded, so they need no copies. */
static bool imp_is_scalar(ir_value v) {
  const ir_type *t = opt_type(v);
  return ir_is_tensor(t) && t->rank == 0;
}

/* --- what is a constant expression --- */

/* Whether the op is a constant expression if its operands are: pure elementwise ops, broadcasts, reshapes and slices
 * of static shape, and calls of functions (named computations) that hold nothing else. Constraints and reshards say
 * that somebody cares how the value is sharded, so they end an expression. */
static bool imp_keeps_constant(const imp_split *x, const ir_op *op) {
  uint64_t seen;
  if (op->opcode == IR_OP_CALL) {
    const ir_computation *f = opt_callee(&x->symbols, op);
    return f && !base_map_get(&x->functions, base_key(shc_original_name(f)), &seen);
  }
  if (op->opcode == IR_OP_SDY_NAMED_COMPUTATION)
    return !base_map_get(&x->computations, base_key(ir_mattr_of(op, "name")->str), &seen);
  if (op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT || op->opcode == IR_OP_SDY_RESHARD || !opt_is_pure_alone(op))
    return false;
  bool moves = op->opcode == IR_OP_BROADCAST || op->opcode == IR_OP_RESHAPE || op->opcode == IR_OP_SLICE;
  return (moves || shard_is_elementwise(op)) && shc_is_static(op->type);
}

/* Marks are found operands first; iota and constants are where it begins. */
static bool imp_is_constant(const imp_split *x, const ir_op *op) {
  if (op->opcode == IR_OP_SDY_CONSTANT || op->opcode == IR_OP_IOTA) return true;
  if (!imp_keeps_constant(x, op)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!(imp_mark(x, op->operands[i].op) & IMP_CONSTANT)) return false;
  return true;
}

/* NULL: op is in no named computation. */
static const ir_op *imp_named_around(const ir_op *op) {
  for (op = op->parent->owner; op; op = op->parent->owner)
    if (op->opcode == IR_OP_SDY_NAMED_COMPUTATION) return op;
  return NULL;
}

/* --- copies --- */

static int imp_copy_callee(imp_split *x, ir_op *call);

static int imp_copy_inner_call(void *ctx, ir_op *op) {
  return op->opcode == IR_OP_CALL ? imp_copy_callee(ctx, op) : 0;
}

/* A copied call calls a copy of the function, with all that this calls. */
static int imp_copy_callee(imp_split *x, ir_op *call) {
  assert(call->opcode == IR_OP_CALL);
  ir_module *m = x->rw.m;
  const ir_computation *f = opt_callee(&x->symbols, call);
  const base_istr *original = f ? shc_original_name(f) : NULL;
  ir_computation *copy = f ? shc_copy_function(&x->rw, f, ir_intern(m, "", 0)) : NULL;
  if (!f) return 0;
  if (!copy || !shc_set_function(copy, "sdy.original_func_name", ir_m_string(m, original->s, original->n)))
    return imp_split_oom(x);
  TRY(shc_walk(copy, true, imp_copy_inner_call, x));
  const base_istr *name = shc_fresh(&x->names, f->name->s, f->name->n);
  const ir_mattr *symbol = name ? ir_m_symbol(m, name->s, name->n) : NULL;
  if (!symbol || !base_map_set(&x->symbols.by_name, base_key(name), base_key(copy))) return imp_split_oom(x);
  ir_set_computation_name(copy, name);
  ir_computation_move(copy, NULL);
  return ir_m_set(call, "callee", symbol) ? 0 : imp_split_oom(x);
}

/* Values that were not copied stand for themselves. */
static ir_value imp_copied(const imp_split *x, ir_value v) {
  ir_op *copy = base_map_ptr(&x->copies, v.op);
  return copy ? (ir_value){copy, v.index} : v;
}

/* The op's copy, right before it, and copies of its groups.
 * A sharding group that holds the original holds the copy too: membership is by value. */
static int imp_copy_op(imp_split *x, ir_op *op) {
  opt_rewriter *rw = &x->rw;
  ir_value *operands = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!operands || !results) return imp_split_oom(x);
  for (uint32_t i = 0; i < op->n_operands; i++) operands[i] = imp_copied(x, opt_operand(op, i));
  opt_at(rw, op);
  opt_copy_op(rw, op, operands, results);
  if (rw->failed || !base_map_set(&x->copies, base_key(op), base_key(results[0].op))) return imp_split_oom(x);
  if (op->opcode == IR_OP_CALL) TRY(imp_copy_callee(x, results[0].op));
  IR_FOR_USES(use, op) {
    if (use->user->opcode != IR_OP_SDY_SHARDING_GROUP) continue;
    ir_value in = {results[0].op, use->index};
    ir_op *group = opt_make_n(rw, IR_OP_SDY_SHARDING_GROUP, 0, NULL, 1, &in, 0);
    if (!group) return imp_split_oom(x);
    ir_set_mlir(group, use->user->mlir);
  }
  return 0;
}

/* Whether the copier has still to copy what gives v. */
static bool imp_wants_copy(const imp_split *x, ir_value v) {
  return v.op->opcode != IR_OP_PARAMETER && !imp_is_scalar(v) && !base_map_ptr(&x->copies, v.op);
}

/* Copies all of the expression that gives v: operands first, in their order.
 * An explicit stack, since expressions can be longer than the C stack is deep; `copies` gives each op of the
 * expression one copy however often it is used within. */
static int imp_copy_expression(imp_split *x, ir_value v, ir_value *out) {
  *out = v;
  if (imp_is_scalar(v)) return 0;
  base_map_clear(&x->copies);
  x->n_stack = 0;
  if (!imp_push(x, &x->stack, &x->n_stack, &x->cap_stack, v.op)) return imp_split_oom(x);
  while (x->n_stack) {
    ir_op *op = x->stack[x->n_stack - 1], *next = NULL;
    for (uint32_t i = 0; i < op->n_operands && !next; i++)
      if (imp_wants_copy(x, opt_operand(op, i))) next = op->operands[i].op;
    if (next) {
      if (!imp_push(x, &x->stack, &x->n_stack, &x->cap_stack, next)) return imp_split_oom(x);
      continue;
    }
    TRY(imp_copy_op(x, op));
    x->n_stack--;
  }
  *out = imp_copied(x, v);
  return 0;
}

/* Constants and scalars: what every reader gets a copy of. */
static bool imp_is_split(const imp_split *x, ir_value v) {
  return (imp_mark(x, v.op) & (IMP_CONSTANT | IMP_SCALAR)) != 0;
}

/* Every operand by itself: add(c, c) gets two copies, as in Shardy. */
static int imp_split_operands(imp_split *x, ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = opt_operand(op, i), copy;
    if (!imp_is_split(x, v)) continue;
    TRY(imp_copy_expression(x, v, &copy));
    ir_set_operand(op, i, copy);
  }
  return 0;
}

/* What a region returns is a use like any other. */
static int imp_split_results(imp_split *x, ir_computation *c) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    ir_value copy;
    if (!imp_is_split(x, c->results[i])) continue;
    TRY(imp_copy_expression(x, c->results[i], &copy));
    ir_set_result(c, i, copy);
  }
  return 0;
}

/* --- the walk --- */

/* The function (and the named computation around op) is more than a constant expression: calls of it are none. */
static int imp_note_other(imp_split *x, const ir_op *op) {
  const ir_op *named = imp_named_around(op);
  bool ok = base_map_set(&x->functions, base_key(shc_original_name(x->f)), 1);
  if (named) ok = ok && base_map_set(&x->computations, base_key(ir_mattr_of(named, "name")->str), 1);
  return ok ? 0 : imp_split_oom(x);
}

/* Ops of the expression itself are not split from their operands; they are copied as a whole at each use outside. */
static int imp_split_op(imp_split *x, ir_op *op) {
  assert(x->f != NULL);
  if (op->opcode == IR_OP_SDY_SHARDING_GROUP || op->opcode == IR_OP_PARAMETER || op->id >= x->n_marks) return 0;
  if (imp_is_constant(x, op)) {
    x->marks[op->id] = IMP_CONSTANT;
    return imp_push(x, &x->constants, &x->n_constants, &x->cap_constants, op) ? 0 : imp_split_oom(x);
  }
  if (!imp_keeps_constant(x, op)) TRY(imp_note_other(x, op));
  if (op->opcode == IR_OP_BROADCAST && imp_is_scalar(opt_operand(op, 0))) {
    x->marks[op->id] = IMP_SCALAR;
    return imp_push(x, &x->scalars, &x->n_scalars, &x->cap_scalars, op) ? 0 : imp_split_oom(x);
  }
  return imp_split_operands(x, op);
}

/* Depth is bounded by the verifier.
 * Named computations are split on their own before (imp_split_named), as functions are. */
static int imp_split_region(imp_split *x, ir_computation *c) {
  IR_FOR_OPS_SAFE(op, c) {
    TRY(imp_split_op(x, op));
    if (op->opcode == IR_OP_SDY_NAMED_COMPUTATION) continue;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(imp_split_region(x, op->called[i]));
  }
  return imp_split_results(x, c);
}

/* An op that only groups use goes, with those. */
static int imp_drop_unused(imp_split *x, ir_op *op) {
  IR_FOR_USES(use, op)
  if (use->user->opcode != IR_OP_SDY_SHARDING_GROUP) return 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (shc_count_uses(&x->rw, (ir_value){op, i}, UINT32_MAX) > ir_use_count(op)) return 0;
  while (op->uses) opt_erase(&x->rw, op->uses->user);
  if (opt_is_used(&x->rw, op)) return 0;
  opt_erase(&x->rw, op);
  return opt_rewriter_status(&x->rw);
}

/* Originals that have only copies left go: scalars in text order, then constants from the last to the first, so that
 * users go before what they use. */
static int imp_split_body(imp_split *x, ir_computation *c) {
  x->n_constants = x->n_scalars = 0;
  x->n_marks = x->rw.m->n_ids;
  x->marks = base_arena_zalloc(&x->rw.arena, (size_t)x->n_marks + 1);
  if (!x->marks) return imp_split_oom(x);
  TRY(imp_split_region(x, c));
  for (uint32_t i = 0; i < x->n_scalars; i++) TRY(imp_drop_unused(x, x->scalars[i]));
  for (uint32_t i = x->n_constants; i-- > 0;) TRY(imp_drop_unused(x, x->constants[i]));
  return 0;
}

static int imp_split_named(void *ctx, ir_op *op) {
  return op->opcode == IR_OP_SDY_NAMED_COMPUTATION ? imp_split_body(ctx, op->called[0]) : 0;
}

/* stablehlo.constant is merged by every pass that folds; sdy.constant is not. */
static int imp_own_constant(void *ctx, ir_op *op) {
  (void)ctx;
  if (op->opcode == IR_OP_CONSTANT) ir_set_opcode(op, IR_OP_SDY_CONSTANT);
  return 0;
}

/* Callees first: whether a call is a constant expression is known when its caller is looked at. */
static int imp_split_all(imp_split *x) {
  uint32_t n = 0;
  ir_computation **list = shc_functions(x->rw.m, &x->symbols, false, &x->rw.arena, &n);
  if (!list) return imp_split_oom(x);
  TRY(shc_walk_module(x->rw.m, false, imp_own_constant, NULL));
  for (uint32_t i = 0; i < n; i++) {
    x->f = list[i];
    TRY(shc_walk(list[i], true, imp_split_named, x));
    TRY(imp_split_body(x, list[i]));
  }
  return 0;
}

int shard_split_constants(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_split x = {.n_marks = 0};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    base_map_init(&x.computations, m->alloc);
    base_map_init(&x.functions, m->alloc);
    base_map_init(&x.copies, m->alloc);
    status = shc_names_init(&x.names, m) ? imp_split_all(&x) : imp_split_oom(&x);
    shc_names_free(&x.names);
    base_map_free(&x.copies);
    base_map_free(&x.functions);
    base_map_free(&x.computations);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  return status;
}

/* sdy-constant-or-scalar-merger: equal constants, and equal broadcasts of one scalar, become one within their region;
 * equal in all attributes, shardings too.
 * Requires: nothing. Preserves: what the program computes. */

typedef struct exp_row {
  ir_op *op;
  uint64_t hash;
} exp_row;

/* A hash table of ops, in open addressing. */
typedef struct exp_merge {
  opt_rewriter *rw;
  exp_row *rows;
  uint32_t n, cap;
} exp_merge;

/* Broadcasts of scalars are what the splitter copied as scalars. */
static bool exp_is_merged(const ir_op *op) {
  if (op->opcode == IR_OP_SDY_CONSTANT || op->opcode == IR_OP_CONSTANT) return true;
  return op->opcode == IR_OP_BROADCAST && ir_is_tensor(ir_operand_type(op, 0)) && ir_operand_type(op, 0)->rank == 0;
}

/* Shardings are in the attributes that are compared, so differently sharded constants stay apart. */
static bool exp_same(const ir_op *a, const ir_op *b) {
  bool constants = a->n_operands == 0 && b->n_operands == 0; /* StableHLO's and Shardy's are one */
  if ((a->opcode != b->opcode && !constants) || a->parent != b->parent || a->type != b->type ||
      !ir_mdict_equal(a->mlir, b->mlir))
    return false;
  return a->n_operands == 0 || (a->operands[0].op == b->operands[0].op && a->operands[0].index == b->operands[0].index);
}

/* The first 64 bytes of a constant are enough to tell most apart, and large ones would be slow to hash. */
static uint64_t exp_hash(const ir_op *op) {
  uint64_t h = ir_mdict_hash(op->mlir) + op->n_operands + (uint64_t)(uintptr_t)op->parent * 31 +
               (uint64_t)(uintptr_t)op->type * 17;
  if (op->n_operands) h += (uint64_t)op->operands[0].op->id * UINT64_C(0x9E3779B97F4A7C15);
  const ir_mattr *value = op->n_operands ? NULL : ir_mattr_of(op, "value");
  const ir_literal *l = value && value->kind == IR_M_DENSE ? value->v.literal : NULL;
  size_t bytes = l ? (size_t)l->type->count * base_dtype_bytes((base_dtype)l->type->dtype) : 0;
  if (bytes) h += base_hash(l->data, bytes < 64 ? bytes : 64);
  h *= UINT64_C(0xD6E8FEB86659FD93);
  return h ^ h >> 32;
}

/* Open addressing, by the low bits; the table is never full (exp_grow). */
static void exp_put(exp_row *rows, uint32_t cap, exp_row row) {
  assert(cap != 0 && (cap & (cap - 1)) == 0);
  uint32_t i = (uint32_t)row.hash & (cap - 1);
  while (rows[i].op) i = (i + 1) & (cap - 1);
  rows[i] = row;
}

/* At most half full, so that probing ends after a step or two. */
static bool exp_grow(exp_merge *x) {
  if (x->n * 2 < x->cap) return true;
  uint32_t cap = x->cap ? x->cap * 2 : 64;
  exp_row *rows = base_arena_zalloc(&x->rw->arena, cap * sizeof *rows);
  if (!rows) return false;
  for (uint32_t i = 0; i < x->cap; i++)
    if (x->rows[i].op) exp_put(rows, cap, x->rows[i]);
  x->rows = rows;
  x->cap = cap;
  return true;
}

/* The first of equal ones stays, and it comes before all the others in its block. */
static int exp_merge_op(void *ctx, ir_op *op) {
  exp_merge *x = ctx;
  if (!exp_is_merged(op)) return 0;
  if (!exp_grow(x)) return base_oom(x->rw->err, "sdy-constant-or-scalar-merger");
  uint64_t hash = exp_hash(op);
  assert(x->n < x->cap);
  for (uint32_t i = (uint32_t)hash & (x->cap - 1); x->rows[i].op; i = (i + 1) & (x->cap - 1)) {
    if (x->rows[i].hash != hash || !exp_same(x->rows[i].op, op)) continue;
    opt_replace_one(x->rw, op, (ir_value){x->rows[i].op, 0});
    return opt_rewriter_status(x->rw);
  }
  exp_put(x->rows, x->cap, (exp_row){op, hash});
  x->n++;
  return 0;
}

int shard_merge_constants(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  exp_merge x = {.rw = &rw};
  int status = shc_walk_module(m, true, exp_merge_op, &x);
  opt_rewriter_free(&rw);
  return status;
}
