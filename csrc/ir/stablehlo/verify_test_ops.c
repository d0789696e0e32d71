/* interpreter.run_parallel, the op by which StableHLO's tests run several participants. */
#include "verify.h"

typedef struct sv_parallel {
  uint32_t inputs, results, partitions;
} sv_parallel;

static int sv_find_program(const sv *v, const ir_mattr *symbol, const ir_computation **out) {
  *out = sv_function(v, symbol);
  if (*out) return sv_check_callable(v, *out, NULL);
  bool named = symbol->kind == IR_M_SYMBOL && symbol->v.list->n == 1;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "names the function @%s, which the module does not have",
                      named ? symbol->v.list->v[0]->str->s : "?");
}

static int sv_check_replica(const sv *v, const ir_mattr *row, sv_parallel *p) {
  if (row->kind != IR_M_ARRAY || row->v.list->n != p->partitions)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL,
                        "has %u programs in one replica; expected %u, as in the first",
                        row->kind == IR_M_ARRAY ? row->v.list->n : 0, p->partitions);
  for (uint32_t i = 0; i < row->v.list->n; i++) {
    const ir_computation *program;
    TRY(sv_find_program(v, row->v.list->v[i], &program));
    p->inputs += program->n_params;
    p->results += ir_function_results(program);
  }
  return 0;
}

static int sv_check_infeed(const sv *v, const ir_mattr *infeed) {
  if (infeed->kind != IR_M_ARRAY || infeed->v.list->n == 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has an empty infeed; expected functions, or no infeed");
  for (uint32_t i = 0; i < infeed->v.list->n; i++) {
    const ir_computation *source;
    TRY(sv_find_program(v, infeed->v.list->v[i], &source));
    if (ir_function_results(source) != 1)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has the infeed @%s of %u results; expected one tensor",
                          source->name->s, ir_function_results(source));
    const ir_type *t = ir_function_result_type(source, 0);
    if (!sv_is_shaped(t))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has the infeed @%s that gives %s; expected a tensor",
                          source->name->s, SV_SHOW(t));
  }
  return 0;
}

static int sv_check_run_parallel(const sv *v) {
  const ir_mattr *programs = ir_mattr_of(v->op, "programs"), *infeed = ir_mattr_of(v->op, "infeed");
  bool grid = programs && programs->kind == IR_M_ARRAY && programs->v.list->n > 0;
  const ir_mattr *first = grid ? programs->v.list->v[0] : NULL;
  if (!first || first->kind != IR_M_ARRAY || first->v.list->n == 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL,
                        "has no programs; expected lists of functions, one a replica");
  sv_parallel p = {.partitions = first->v.list->n};
  for (uint32_t i = 0; i < programs->v.list->n; i++) TRY(sv_check_replica(v, programs->v.list->v[i], &p));
  if (v->op->n_operands != p.inputs)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u operands, but its programs take %u", v->op->n_operands,
                        p.inputs);
  if (v->op->n_results != p.results)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u results, but its programs give %u", v->op->n_results,
                        p.results);
  return infeed ? sv_check_infeed(v, infeed) : 0;
}

int sv_verify_test_op(const sv *v) {
  assert(v->op->opcode == IR_OP_UNREGISTERED);
  if (strcmp(v->op->u.name->s, "interpreter.run_parallel") == 0) return sv_check_run_parallel(v);
  return 0;
}
