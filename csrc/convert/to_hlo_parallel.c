/* interpreter.run_parallel, the op by which upstream's tests run several participants: its programs (one list a
 * replica) and the functions that give its infeed become the op's called computations, in that order. */
#include "to_hlo.h"

static const base_istr *parallel_symbol(const ir_mattr *a) {
  bool flat = a->kind == IR_M_SYMBOL && a->v.list->n == 1;
  return flat ? a->v.list->v[0]->str : NULL;
}

static uint32_t parallel_length(const ir_mattr *a) {
  return a && a->kind == IR_M_ARRAY ? a->v.list->n : 0;
}

static int parallel_bad(to_hlo_op *x) {
  return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE,
                     "programs must be an array of arrays of function symbols, infeed an array of them");
}

static int parallel_functions(to_hlo_op *x, const ir_mattr *list, ir_computation **called, uint32_t *n) {
  for (uint32_t i = 0; i < parallel_length(list); i++) {
    const base_istr *name = parallel_symbol(list->v.list->v[i]);
    if (!name) return parallel_bad(x);
    TRY(to_hlo_function(x, name, &called[(*n)++]));
  }
  return 0;
}

int to_hlo_run_parallel(to_hlo_op *x) {
  const ir_mattr *programs = ir_mattr_of(x->op, "programs"), *infeed = ir_mattr_of(x->op, "infeed");
  uint32_t rows = parallel_length(programs), n = parallel_length(infeed), done = 0;
  for (uint32_t r = 0; r < rows; r++) n += parallel_length(programs->v.list->v[r]);
  if (rows == 0 || parallel_length(programs->v.list->v[0]) == 0) return parallel_bad(x);
  ir_computation **called = BASE_ARRAY(&x->t->to->arena, ir_computation *, n + 1u);
  if (!called) return to_hlo_no_memory(x->t);
  for (uint32_t r = 0; r < rows; r++) {
    const ir_mattr *row = programs->v.list->v[r];
    if (parallel_length(row) != parallel_length(programs->v.list->v[0])) return parallel_bad(x);
    TRY(parallel_functions(x, row, called, &done));
  }
  TRY(parallel_functions(x, infeed, called, &done));
  ir_op *made = to_hlo_emit(x, IR_OP_UNREGISTERED, to_hlo_result_type(x), x->op->n_operands, x->operands, n);
  if (!made) return to_hlo_no_memory(x->t);
  memcpy(made->called, called, n * sizeof *called);
  made->mlir = ir_mdict_import(x->t->to, x->op->mlir);
  made->u.name = ir_intern(x->t->to, x->op->u.name->s, x->op->u.name->n);
  return made->mlir && made->u.name ? to_hlo_results(x, made) : to_hlo_no_memory(x->t);
}
