/* The verifier of MLIR form: structure first, then every op in text order, then the ops that name functions or
 * meshes, last what functions take and give.
 *
 * A module with several faults gets the same first error that MLIR's verifier would give, which is why the order
 * follows MLIR's in two places where a plain walk would be simpler: ops with isolated regions come after their
 * neighbours, and symbols are resolved when all else is fine. */
#include "../../base/heed.h"
#include "../check/check.h"
#include "verify.h"
#include "verify_sdy.h"

enum { SV_TWINS = 64 };

/* What the check of a module holds. */
typedef struct sv_walk {
  ir_module *m;
  sv_functions *functions;
  base_arena *arena;
  sdyv *sdy;         /* NULL where the module has nothing of the dialect */
  bool names_others; /* ops that name functions or meshes were met */
  xlac_error *err;
  const ir_op *fine[SV_TWINS]; /* ops that the rules have passed, by sv_twin_place; NULL where there is none */
} sv_walk;

/* The scratch of one op's check is given back after it, so that a module of any size needs the scratch of its largest
 * op. On an error it stays, as the whole arena is about to go. */
static int sv_verify_one(ir_module *m, const ir_op *op, const sv_functions *functions, base_arena *arena,
                         xlac_error *err) {
  const ir_type *few[8];
  base_arena_mark mark = base_arena_here(arena);
  sv v = {.m = m, .op = op, .arena = arena, .functions = functions, .err = err};
  v.out = op->n_results <= 8 ? few : BASE_ARRAY(arena, const ir_type *, op->n_results);
  TRY(v.out ? sv_verify_op(&v) : sv_oom(&v));
  base_arena_back(arena, mark);
  return 0;
}

/* Programs repeat themselves, layer by layer. Rules look at an op's types and attributes, which are interned, and at
 * the module's functions, so what they have passed once they pass again. Other things they look at only where there are
 * regions, operands that are constants (sv_constant_ints), and in ops of sdy and of unknown dialects. */
static bool sv_can_have_twins(const ir_op *op) {
  if (op->n_called || op->opcode == IR_OP_UNREGISTERED || sdy_is_op(op)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand(op, i)->opcode == IR_OP_CONSTANT) return false;
  return true;
}

static size_t sv_twin_place(const ir_op *op) {
  uintptr_t sum = op->opcode * 37u + (uintptr_t)op->type / 16 + (uintptr_t)op->mlir / 16;
  if (op->n_operands) sum += (uintptr_t)ir_operand_type(op, 0) / 16 * 3;
  return (sum ^ sum >> 6 ^ sum >> 12) % SV_TWINS;
}

static bool sv_are_twins(const ir_op *a, const ir_op *b) {
  if (a->opcode != b->opcode || a->mlir != b->mlir || a->n_operands != b->n_operands || a->n_results != b->n_results)
    return false;
  for (uint32_t i = 0; i < a->n_operands; i++)
    if (ir_operand_type(a, i) != ir_operand_type(b, i)) return false;
  for (uint32_t i = 0; i < a->n_results; i++)
    if (a->types[i] != b->types[i]) return false;
  return true;
}

/* An op's rules, but for ops that are like one that was fine. */
static int sv_verify_unless_twin(sv_walk *w, const ir_op *op) {
  if (!sv_can_have_twins(op)) return sv_verify_one(w->m, op, w->functions, w->arena, w->err);
  const ir_op **like = &w->fine[sv_twin_place(op)];
  if (*like && sv_are_twins(*like, op)) return 0;
  TRY(sv_verify_one(w->m, op, w->functions, w->arena, w->err));
  *like = op;
  return 0;
}

/* Regions that use nothing from outside may be checked apart, by MLIR even in parallel. */
static bool sv_is_deferred(const ir_op *op) {
  return op->n_called && ir_is_isolated(op->opcode);
}

static int sv_verify_with_regions(sv_walk *w, const ir_op *op);

/* As MLIR does, so that of several errors the same one is told: ops with isolated regions come after all others of
 * what is around them (sv_verify_isolated). Depth is bounded by sv_check_module. */
static int sv_verify_ops(sv_walk *w, const ir_computation *c) {
  IR_FOR_OPS(op, c)
  if (!sv_is_deferred(op)) TRY(sv_verify_with_regions(w, op));
  return 0;
}

/* The second pass over the same list: what sv_verify_ops has left out. */
static int sv_verify_isolated(sv_walk *w, const ir_computation *c) {
  IR_FOR_OPS(op, c)
  if (sv_is_deferred(op)) TRY(sv_verify_with_regions(w, op));
  return 0;
}

/* An op's attributes, the op, its regions. */
static int sv_verify_with_regions(sv_walk *w, const ir_op *op) {
  bool names = op->opcode == IR_OP_CALL;
  if (base_heed_tick(8)) return base_interrupted(w->err);
  if (w->sdy) TRY(sdyv_check_own(w->sdy, op));
  if (!names) TRY(sv_verify_unless_twin(w, op));
  w->names_others = w->names_others || names || (w->sdy && sdy_is_op(op));
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(sv_verify_ops(w, op->called[i]));
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(sv_verify_isolated(w, op->called[i]));
  return 0;
}

/* Ops that name functions or meshes, when all others are fine: those of a region first, then its regions, the last
 * one first, as MLIR does. */
static int sv_verify_names(sv_walk *w, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    if (op->opcode == IR_OP_CALL) TRY(sv_verify_one(w->m, op, w->functions, w->arena, w->err));
    if (w->sdy && sdy_is_op(op)) TRY(sdyv_check_names(w->sdy, op));
  }
  for (const ir_op *op = c->last; op; op = op->prev)
    for (uint32_t i = op->n_called; i-- > 0;)
      if (op->called[i]->owner == op) TRY(sv_verify_names(w, op->called[i]));
  return 0;
}

/* A function that declares other types than those of what it returns has a type of its own (text/mlir/read). */
static int sv_verify_return(const ir_computation *f, xlac_error *err) {
  if (!ir_returns_otherwise(f) || f->open_end || f->return_name)
    return 0; /* others than func.return have no such rule */
  const uint32_t n = ir_function_results(f);
  if (f->n_results != n)
    return base_fail_at(err, XLAC_E_VERIFY, f->return_line, f->return_col, "func.return",
                        "'func.return' op has %u operands, but enclosing function (@%s) returns %u", f->n_results,
                        f->name->s, n);
  for (uint32_t i = 0; i < n; i++) {
    const ir_value *v = &f->results[i];
    if (v->op->types[v->index] != ir_function_result_type(f, i))
      return base_fail_at(err, XLAC_E_VERIFY, f->return_line, f->return_col, "func.return",
                          "type of return operand %u (%s) doesn't match function result type (%s) in function @%s", i,
                          SV_SHOW(v->op->types[v->index]), SV_SHOW(ir_function_result_type(f, i)), f->name->s);
  }
  return 0;
}

/* Module-level symbols (meshes) before functions. In each function: signature, ops, return, isolated regions. */
static int sv_verify_functions(sv_walk *w) {
  IR_FOR_COMPUTATIONS(c, w->m)
  if (!c->owner && c->kind != IR_FUNCTION) TRY(sv_verify_ops(w, c));
  IR_FOR_COMPUTATIONS(c, w->m) {
    if (c->owner || c->kind != IR_FUNCTION) continue;
    if (w->sdy) TRY(sdyv_check_signature(w->sdy, c));
    TRY(sv_verify_ops(w, c));
    TRY(sv_verify_return(c, w->err));
    TRY(sv_verify_isolated(w, c));
  }
  if (!w->names_others) return 0;
  for (const ir_computation *c = w->m->last; c; c = c->prev)
    if (!c->owner) TRY(sv_verify_names(w, c));
  return 0;
}

/* sv_check_module must come first: all later checks follow pointers that it has looked at. */
static int sv_verify_module(ir_module *m, sv_functions *functions, base_arena *arena, xlac_error *err) {
  sdyv sdy;
  sv_walk w = {.m = m, .functions = functions, .arena = arena, .err = err};
  TRY(sv_check_module(m, functions, err));
  w.sdy = sdyv_begin(&sdy, m, arena, err) ? &sdy : NULL;
  TRY(sv_verify_functions(&w));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION) TRY(sv_check_interface(c, err));
  return 0;
}

/* Remembers the result until the next edit. *m changes in nothing else but types that are interned. */
int stablehlo_verify(ir_module *m, xlac_error *err) {
  assert(m->form == IR_FORM_MLIR);
  if (ir_verified_as(m) == IR_VERIFIED) return 0;
  sv_functions functions;
  base_arena arena;
  base_map_init(&functions.by_name, m->alloc);
  base_arena_init(&arena, m->alloc);
  base_arena_foresee(&arena, 1); /* a chunk that stays, since each op's check gives up what it has taken */
  int status = sv_verify_module(m, &functions, &arena, err);
  if (arena.failed) status = base_oom(err, "the check of a module");
  base_arena_free(&arena);
  base_map_free(&functions.by_name);
  if (status == 0) ir_note_verified(m, IR_VERIFIED);
  return status;
}

/* Without a table of functions: sv_function then searches the module, which for one op is cheaper than a table. */
int stablehlo_verify_op(ir_module *m, const ir_op *op, xlac_error *err) {
  sv_functions none;
  base_arena arena;
  assert(op->n_called == 0);
  base_map_init(&none.by_name, m->alloc);
  base_arena_init(&arena, m->alloc);
  int status = sv_verify_one(m, op, &none, &arena, err);
  if (arena.failed) status = base_oom(err, "the check of an op");
  base_arena_free(&arena);
  base_map_free(&none.by_name);
  return status;
}

/* The op need not have result types yet, nor be verified: rules check what they rely on. */
int stablehlo_infer(ir_module *m, const ir_op *op, const ir_type **types, xlac_error *err) {
  assert(m && op && types);
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  sv v = {.m = m, .op = op, .arena = &arena, .out = types, .err = err};
  int status = sv_infer_op(&v);
  if (arena.failed) status = base_oom(err, "the types of an op");
  base_arena_free(&arena);
  return status;
}

/* tensor<2x?xf32> and tensor<?x3xf32> say tensor<2x3xf32>. No errors: the caller only asks whether they go together. */
const ir_type *stablehlo_most_specific(ir_module *m, const ir_op *op, const ir_type *a, const ir_type *b) {
  assert(a && b);
  if (a == b) return a;
  if (ir_is_tuple(a) || !sv_is_shaped(a) || !sv_is_shaped(b)) return NULL;
  if (b->kind == IR_TYPE_UNRANKED || (ir_is_tensor(a) && a->encoding)) return a;
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  const sv v = {.m = m, .op = op, .arena = &arena};
  const ir_type *types[] = {a, b}, *merged = NULL, *out = NULL;
  if (sv_most_specific(&v, 2, types, &merged) != 0 || sv_like(&v, merged, sv_element_of(a), &out) != 0) out = NULL;
  base_arena_free(&arena);
  return out;
}

/* --- the module's structure: symbols, regions with all their parts, uses after definitions and within reach ---
 *
 * How deep regions may nest: the walks over them recurse, and 512 frames fit any thread's stack. */
#define SV_MAX_DEPTH 512

/* An error about a function or region as a whole, at its line. */
static int sv_fail_at(const ir_computation *c, xlac_error *err, const char *what) {
  return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, c->line, c->col, c->name ? c->name->s : "", "%s %s",
                      c->kind == IR_FUNCTION ? "the function" : "a region", what);
}

/* Operands, results, parameters and regions are there and have types; after this ir_operand_type and its like may be
 * called freely. */
static int sv_check_parts(const ir_computation *c, xlac_error *err) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i] || !c->params[i]->type) return sv_fail_at(c, err, "lacks a parameter");
  for (uint32_t i = 0; i < c->n_results; i++) {
    const ir_value *r = &c->results[i];
    if (!r->op || r->index >= r->op->n_results || !r->op->types || !r->op->types[r->index])
      return sv_fail_at(c, err, "returns no value");
  }
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_results; i++)
      if (!op->types || !op->types[i])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "a result has no type"), err);
    for (uint32_t i = 0; i < op->n_operands; i++) {
      const ir_use *u = &op->operands[i];
      if (!u->op || u->index >= u->op->n_results || !u->op->types || !u->op->types[u->index])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "operand %u is not a value", i), err);
    }
    for (uint32_t i = 0; i < op->n_called; i++)
      if (!op->called[i])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "region %u is missing", i), err);
  }
  return 0;
}

/* Numbers ops in text order; where a region is inside its op comes after it. */
typedef struct sv_order {
  uint32_t *place; /* by op id; 0: not reached */
  uint32_t next;
} sv_order;

/* Ops of all computations get numbers in one sequence; the numbers of a region lie between those of its op and of the
 * next. */
static int sv_number_ops(const ir_computation *c, sv_order *order, uint32_t depth, xlac_error *err) {
  if (depth > SV_MAX_DEPTH) return base_fail_at(err, XLAC_E_TOO_DEEP, c->line, c->col, "", "regions nest too deep");
  IR_FOR_OPS(op, c) {
    order->place[op->id] = order->next++;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(sv_number_ops(op->called[i], order, depth + 1, err));
  }
  return 0;
}

/* False for ops without a rule, unregistered ones among them. */
bool ir_is_isolated(unsigned opcode) {
  const sv_rule *r = sv_rule_of(opcode);
  return r && (r->traits & SV_ISOLATED);
}

/* Whether code at place `at` of computation c may use def: c or one around it holds it, before. */
static const char *sv_use_error(const ir_op *def, const ir_computation *c, uint32_t at, const sv_order *order) {
  const ir_op *inside = NULL;
  bool isolated = false;
  while (c && c != def->parent) {
    inside = c->owner;
    isolated = isolated || (inside && ir_is_isolated(inside->opcode));
    c = inside ? inside->parent : NULL;
  }
  if (!c) return "uses a value of another region";
  if (isolated) return "uses a value from outside its region, which is isolated from above";
  if (order->place[def->id] >= at || inside == def) return "uses a value that is not defined before it";
  return NULL;
}

/* SSA dominance: regions have one block, so a definition dominates all that comes after it in the same block and in
 * the regions there. */
static int sv_check_uses(const ir_computation *c, const sv_order *order, xlac_error *err) {
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
      const char *what = sv_use_error(op->operands[i].op, c, order->place[op->id], order);
      if (what) return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "operand %u %s", i, what), err);
    }
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(sv_check_uses(op->called[i], order, err));
  }
  for (uint32_t i = 0; i < c->n_results; i++) {
    /* Returned values are used after the last op of the block. */
    uint32_t end = c->last ? order->place[c->last->id] + 1 : c->owner ? order->place[c->owner->id] : 0;
    const char *what = sv_use_error(c->results[i].op, c, end, order);
    if (what) return sv_fail_at(c, err, what);
  }
  return 0;
}

/* Two passes, as a region's op may be used by none, but must have its number before its region is looked at. */
static int sv_check_order(ir_module *m, xlac_error *err) {
  sv_order order = {.next = 1};
  size_t bytes;
  if (!base_mul(m->n_ids + (size_t)1, sizeof *order.place, &bytes)) return base_oom(err, "the order of ops");
  order.place = base_malloc(m->alloc, bytes);
  if (!order.place) return base_oom(err, "the order of ops");
  memset(order.place, 0, bytes);
  int status = 0;
  for (const ir_computation *c = m->first; c && status == 0; c = c->next)
    if (!c->owner) status = sv_number_ops(c, &order, 0, err);
  for (const ir_computation *c = m->first; c && status == 0; c = c->next)
    if (!c->owner) status = sv_check_uses(c, &order, err);
  base_free(m->alloc, order.place);
  return status;
}

/* Fills `functions` on the way. Regions and symbols that are not functions have no entry there. */
int sv_check_module(ir_module *m, sv_functions *functions, xlac_error *err) {
  assert(m->form == IR_FORM_MLIR);
  IR_FOR_COMPUTATIONS(c, m) {
    TRY(sv_check_parts(c, err));
    if (c->kind != IR_FUNCTION || c->owner) continue;
    if (!base_map_set(&functions->by_name, base_key(c->name), base_key(c)))
      return base_oom(err, "the functions' names");
  }
  TRY(ir_check_symbols(m, err));
  return sv_check_order(m, err);
}

/* NULL for nested references @a::@b and for names that the module does not have. Names are interned: equal ones have
 * one pointer. */
const ir_computation *sv_function(const sv *v, const ir_mattr *symbol) {
  if (symbol->kind != IR_M_SYMBOL || symbol->v.list->n != 1) return NULL;
  const base_istr *s = symbol->v.list->v[0]->str;
  if (v->functions) return base_map_ptr(&v->functions->by_name, s);
  IR_FOR_COMPUTATIONS(c, v->m)
  if (c->kind == IR_FUNCTION && !c->owner && c->name == s) return c;
  return NULL;
}

/* MLIR verifies func.return only; a function that ends in another op may declare what it does not give. Nobody may
 * run it. */
int sv_check_callable(const sv *v, const ir_computation *f, const char *id) {
  if (!ir_returns_otherwise(f)) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id,
                      "calls @%s, whose last op does not give what it declares; expected func.return", f->name->s);
}

/* Functions and module-level symbols share one name space. */
bool sv_symbol_exists(const sv *v, const char *name) {
  IR_FOR_COMPUTATIONS(c, v->m) {
    if (c->owner) continue;
    if (c->name && strcmp(c->name->s, name) == 0) return true;
    if (c->kind == IR_SYMBOL && c->first && strcmp(ir_m_get_str(c->first, "sym_name"), name) == 0) return true;
  }
  return false;
}
