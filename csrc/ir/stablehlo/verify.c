/* The verifier of MLIR form: structure first, then every op in text order, then names. */
#include "verify.h"

#include "../../base/heed.h"
#include "verify_sdy.h"

/* What the check of a module holds. */
typedef struct sv_walk {
  ir_module *m;
  sv_functions *functions;
  base_arena *arena;
  sdyv *sdy;         /* NULL where the module has nothing of the dialect */
  bool names_others; /* ops that name functions or meshes were met */
  xlac_error *err;
} sv_walk;

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

static bool sv_is_deferred(const ir_op *op) {
  return op->n_called && sv_is_isolated(op);
}

static int sv_verify_with_regions(sv_walk *w, const ir_op *op);

/* As MLIR does, so that of several errors the same one is told: ops with isolated regions come after all others of
 * what is around them (sv_verify_isolated). Depth is bounded by sv_check_module. */
static int sv_verify_ops(sv_walk *w, const ir_computation *c) {
  IR_FOR_OPS(op, c)
  if (!sv_is_deferred(op)) TRY(sv_verify_with_regions(w, op));
  return 0;
}

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
  if (!names) TRY(sv_verify_one(w->m, op, w->functions, w->arena, w->err));
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

/* A function that declares other types than those of what it returns has a type of its own (mlir_read_func.c). */
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

int stablehlo_verify(ir_module *m, xlac_error *err) {
  assert(m->form == IR_FORM_MLIR);
  if (m->verified == IR_VERIFIED) return 0;
  sv_functions functions;
  base_arena arena;
  base_map_init(&functions.by_name, m->alloc);
  base_arena_init(&arena, m->alloc);
  base_arena_foresee(&arena, 1); /* a chunk that stays, since each op's check gives up what it has taken */
  int status = sv_verify_module(m, &functions, &arena, err);
  if (arena.failed) status = base_oom(err, "the check of a module");
  base_arena_free(&arena);
  base_map_free(&functions.by_name);
  if (status == 0) m->verified = IR_VERIFIED;
  return status;
}

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

int stablehlo_infer(ir_module *m, const ir_op *op, const ir_type **types, xlac_error *err) {
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  sv v = {.m = m, .op = op, .arena = &arena, .out = types, .err = err};
  int status = sv_infer_op(&v);
  if (arena.failed) status = base_oom(err, "the types of an op");
  base_arena_free(&arena);
  return status;
}

const ir_type *stablehlo_most_specific(ir_module *m, const ir_op *op, const ir_type *a, const ir_type *b) {
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
