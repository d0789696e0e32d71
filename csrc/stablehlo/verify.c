/* The verifier of MLIR form: structure first, then every op in text order. */
#include "verify.h"
#include "verify_sdy.h"

static int sv_verify_one(ir_module *m, const ir_op *op, const sv_functions *functions, base_arena *arena,
                         xlac_error *err) {
  const ir_type *few[8];
  sv v = {.m = m, .op = op, .arena = arena, .functions = functions, .err = err};
  v.out = op->n_results <= 8 ? few : BASE_ARRAY(arena, const ir_type *, op->n_results);
  return v.out ? sv_verify_op(&v) : sv_oom(&v);
}

/* Depth is bounded by sv_check_module. */
static int sv_verify_ops(ir_module *m, const ir_computation *c, const sv_functions *functions, base_arena *arena,
                         xlac_error *err) {
  IR_FOR_OPS(op, c) {
    base_arena_mark mark = base_arena_here(arena);
    TRY(sv_verify_one(m, op, functions, arena, err));
    base_arena_back(arena, mark);
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(sv_verify_ops(m, op->called[i], functions, arena, err));
  }
  return 0;
}

static int sv_verify_module(ir_module *m, sv_functions *functions, base_arena *arena, xlac_error *err) {
  TRY(sv_check_module(m, functions, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (!c->owner) TRY(sv_verify_ops(m, c, functions, arena, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION) TRY(sv_check_interface(c, err));
  return sdyv_verify(m, arena, err);
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
