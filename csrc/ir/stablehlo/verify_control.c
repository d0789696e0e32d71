/* Control flow, calls, async ops, transfers, and the op by which StableHLO's tests run several participants.
 *
 * Regions have been found whole: parameters and returned values are there and have types. A region's values are
 * compared with the op's by compatibility, so that tensor<?xf32> may meet tensor<4xf32>; functions are called with
 * exactly their types. */
#include "verify.h"

/* --- if, case --- */

/* Branches take no arguments (they use values from around them) and return compatible types: if_c2, case_c3. */
static int sv_check_branches(const sv *v) {
  uint32_t n = v->op->n_called;
  const char *id = v->op->opcode == IR_OP_IF ? "if_c2" : "case_c3";
  if (n == 0) return sv_fail(v, "case_c1", "has no branches; expected at least one");
  for (uint32_t i = 0; i < n; i++) {
    const ir_computation *c = sv_region(v, i), *first = sv_region(v, 0);
    if (c->declaration) return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has an empty branch %u", i);
    if (c->n_params != 0)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has a branch %u of %u parameters; expected none", i,
                          c->n_params);
    if (c->n_results != first->n_results)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has branches that return %u and %u values", first->n_results,
                          c->n_results);
    for (uint32_t k = 0; k < c->n_results; k++)
      if (!sv_types_fit(sv_returned(first, k), sv_returned(c, k)))
        return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has branches 0 and %u that return %s and %s", i,
                            SV_SHOW(sv_returned(first, k)), SV_SHOW(sv_returned(c, k)));
  }
  return 0;
}

/* `if` by a pred, `case` by an i32. A result is as specific as the least specific branch: of tensor<4xf32> and
 * tensor<?xf32> the latter. */
int sv_infer_case(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  base_dtype dtype = v->op->opcode == IR_OP_IF ? XLAC_PRED : XLAC_S32;
  if (!sv_is_scalar_of(t, dtype))
    return sv_fail(v, v->op->opcode == IR_OP_IF ? "if_i1" : "case_i1", "has an operand of %s; expected tensor<%s>",
                   SV_SHOW(t), dtype == XLAC_PRED ? "i1" : "i32");
  TRY(sv_check_branches(v));
  uint32_t n = v->op->n_called, n_results = sv_region(v, 0)->n_results;
  if (n_results != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has %u results, but its branches return %u", v->op->n_results,
                        n_results);
  const ir_type **types = BASE_ARRAY(v->arena, const ir_type *, n);
  if (!types) return sv_oom(v);
  for (uint32_t k = 0; k < n_results; k++) {
    for (uint32_t i = 0; i < n; i++) types[i] = sv_returned(sv_region(v, i), k);
    TRY(sv_least_specific(v, n, types, &v->out[k]));
  }
  return 0;
}

/* --- while --- */

/* The operands' types are the loop's; `value` reads a parameter or a returned value of c. */
static int sv_check_loop_values(const sv *v, const char *id, const char *what, uint32_t n,
                                const ir_type *(*value)(const ir_computation *, uint32_t), const ir_computation *c) {
  if (n != v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has %u %s; expected %u, as operands", n, what, v->op->n_operands);
  for (uint32_t i = 0; i < n; i++)
    if (!sv_types_fit(sv_in(v, i), value(c, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has %s whose number %u is %s; expected %s", what, i,
                          SV_SHOW(value(c, i)), SV_SHOW(sv_in(v, i)));
  return 0;
}

/* sv_arg and sv_returned as functions that have an address. */
static const ir_type *sv_loop_param(const ir_computation *c, uint32_t i) {
  return sv_arg(c, i);
}
static const ir_type *sv_loop_result(const ir_computation *c, uint32_t i) {
  return sv_returned(c, i);
}

/* Regions: cond, body. */
int sv_verify_while(const sv *v) {
  const ir_computation *cond = sv_region(v, 0), *body = sv_region(v, 1);
  TRY(sv_check_loop_values(v, "while_c1", "parameters of cond", cond->n_params, sv_loop_param, cond));
  TRY(sv_check_loop_values(v, "while_c2", "parameters of body", body->n_params, sv_loop_param, body));
  TRY(sv_check_loop_values(v, "while_c2", "results of body", body->n_results, sv_loop_result, body));
  if (cond->n_results != 1 || !sv_is_scalar_of(sv_returned(cond, 0), XLAC_PRED))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "while_c1", "has a cond that returns %u values, not one tensor<i1>",
                        cond->n_results);
  return 0;
}

/* --- calls --- */

/* The attribute's kind has been checked: a symbol. */
static int sv_find_function(const sv *v, const char *attr, const char *id, const ir_computation **out) {
  assert(out);
  const ir_mattr *a = ir_mattr_of(v->op, attr);
  *out = a ? sv_function(v, a) : NULL;
  if (*out) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "names @%s, which is not a function of the module",
                      ir_m_get_str(v->op, attr));
}

/* Types are interned, so comparing their bare forms is exact equality but for layouts, which MLIR form has none of. */
static int sv_check_signature(const sv *v, const ir_computation *f, const char *id) {
  TRY(sv_check_callable(v, f, id));
  if (f->n_params != v->op->n_operands || ir_function_results(f) != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has %u operands and %u results, but @%s takes %u and gives %u",
                        v->op->n_operands, v->op->n_results, f->name->s, f->n_params, ir_function_results(f));
  for (uint32_t i = 0; i < v->op->n_operands; i++)
    if (sv_in(v, i)->bare != sv_arg(f, i)->bare)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has operand %u of %s, but @%s takes %s", i,
                          SV_SHOW(sv_in(v, i)), f->name->s, SV_SHOW(sv_arg(f, i)));
  for (uint32_t i = 0; v->op->types && i < v->op->n_results; i++)
    if (sv_result(v, i)->bare != ir_function_result_type(f, i)->bare)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id, "has result %u of %s, but @%s gives %s", i,
                          SV_SHOW(sv_result(v, i)), f->name->s, SV_SHOW(ir_function_result_type(f, i)));
  return 0;
}

/* A call's results are what the function declares; they are compared with the op's own when it has them already. */
int sv_infer_call(const sv *v) {
  const ir_computation *f;
  TRY(sv_find_function(v, "callee", NULL, &f));
  TRY(sv_check_signature(v, f, NULL));
  for (uint32_t i = 0; i < v->op->n_results; i++) v->out[i] = ir_function_result_type(f, i);
  return 0;
}

/* A letter, letters, digits and underscores; then dots, each with letters, digits, _ and $ after it. "my.op",
 * "a.b.c": composite_c1. */
static bool sv_is_namespaced(const char *s) {
  uint32_t dots = 0;
  if (!((*s | 32) >= 'a' && (*s | 32) <= 'z')) return false;
  for (const char *p = s; *p; p++) {
    bool letter = (*p | 32) >= 'a' && (*p | 32) <= 'z';
    bool plain = letter || (*p >= '0' && *p <= '9') || *p == '_' || (*p == '$' && dots);
    if (*p == '.' && p[1] && p[1] != '.')
      dots++;
    else if (!plain)
      return false;
  }
  return dots > 0;
}

/* The decomposition is called with the composite's operands, and gives its results. */
int sv_verify_composite(const sv *v) {
  const ir_computation *f;
  if (!sv_is_namespaced(ir_m_get_str(v->op, "name")))
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, "composite_c1",
                        "has the name \"%s\"; expected one such as \"namespace.op\"", ir_m_get_str(v->op, "name"));
  TRY(sv_find_function(v, "decomposition", "composite_c2", &f));
  return sv_check_signature(v, f, "composite_c3");
}

/* --- async --- */

/* The ops that upstream allows inside of async_start. */
static bool sv_may_be_async(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_REDUCE:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_SLICE:
      return true;
    default:
      return false;
  }
}

/* The region is one op on the region's arguments; the result is a future of what it returns. */
int sv_infer_async_start(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  const ir_op *only = NULL;
  uint32_t n = 0;
  IR_FOR_OPS(op, c) {
    if (op->opcode == IR_OP_PARAMETER) continue;
    only = op;
    n++;
  }
  if (n != 1 || !sv_may_be_async(only->opcode))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has a region of %u ops; expected one, a collective or a slice",
                        n);
  if (c->n_params != v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has %u operands, but its region takes %u", v->op->n_operands,
                        c->n_params);
  for (uint32_t i = 0; i < c->n_params; i++)
    if (sv_arg(c, i)->bare != sv_in(v, i)->bare)
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has operand %u of %s, but its region takes %s", i,
                          SV_SHOW(sv_in(v, i)), SV_SHOW(sv_arg(c, i)));
  if (c->n_results != 1)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "has a region that returns %u values; expected 1", c->n_results);
  const ir_type *t = sv_returned(c, 0);
  v->out[0] = ir_future(v->m, 1, &t);
  return v->out[0] ? 0 : sv_oom(v);
}

/* The set of the rule has seen to it that the operand is a future. */
int sv_infer_async_done(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  if (t->n_elements != 1) return sv_fail(v, NULL, "has a future of %u values; expected 1", t->n_elements);
  v->out[0] = t->elements[0];
  return 0;
}

/* --- transfers --- */

/* channel types: 1 device to device, 2 device to host, 3 host to device. */
static int sv_check_channel_type(const sv *v, int64_t host_type, const char *id) {
  bool host = ir_m_get_bool(v->op, "is_host_transfer");
  int64_t type = sv_field_int(ir_mattr_of(v->op, "channel_handle"), "type", 0), expected = host ? host_type : 1;
  if (type == expected) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, id,
                      "has a channel of type %lld; expected %lld, as is_host_transfer is %s", (long long)type,
                      (long long)expected, host ? "true" : "false");
}

/* Gives a token. A send to the host has channel type 2. */
int sv_infer_send(const sv *v) {
  TRY(sv_check_channel_type(v, 2, "send_c1"));
  return sv_infer_token(v);
}

/* (tensors..., token), as infeed and recv give. */
static int sv_check_results_then_token(const sv *v, const char *id) {
  uint32_t n = v->op->n_results;
  if (n == 0) return sv_fail(v, id, "has no results; expected at least a token");
  for (uint32_t i = 0; i + 1 < n; i++)
    if (!sv_is_shaped(sv_result(v, i)))
      return sv_fail(v, id, "has result %u of %s; expected tensors before the token", i, SV_SHOW(sv_result(v, i)));
  if (sv_result(v, n - 1)->kind != IR_TYPE_TOKEN)
    return sv_fail(v, id, "has a last result of %s; expected a token", SV_SHOW(sv_result(v, n - 1)));
  return 0;
}

/* From the host by channel type 3. */
int sv_verify_recv(const sv *v) {
  TRY(sv_check_channel_type(v, 3, "recv_c1"));
  return sv_check_results_then_token(v, "recv_c2");
}

/* `layout` has a list of integers for each tensor: its minor-to-major order. */
int sv_verify_infeed(const sv *v) {
  TRY(sv_check_results_then_token(v, "infeed_c1"));
  const ir_mattr *layout = ir_mattr_of(v->op, "layout");
  if (!layout) return 0;
  if (layout->v.list->n + 1 != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %u layouts; expected %u, one for each tensor",
                        layout->v.list->n, v->op->n_results - 1);
  for (uint32_t i = 0; i < layout->v.list->n; i++) {
    const ir_mattr *a = layout->v.list->v[i];
    bool ok = a->kind == IR_M_ARRAY;
    for (uint32_t k = 0; ok && k < a->v.list->n; k++) ok = a->v.list->v[k]->kind == IR_M_INTEGER;
    if (!ok) return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has layout %u that is not a list of integers", i);
  }
  return 0;
}

typedef struct sv_parallel {
  uint32_t inputs, results, partitions;
} sv_parallel;

/* --- interpreter.run_parallel --- */
static int sv_find_program(const sv *v, const ir_mattr *symbol, const ir_computation **out) {
  *out = sv_function(v, symbol);
  if (*out) return sv_check_callable(v, *out, NULL);
  bool named = symbol->kind == IR_M_SYMBOL && symbol->v.list->n == 1;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, NULL, "names the function @%s, which the module does not have",
                      named ? symbol->v.list->v[0]->str->s : "?");
}

/* One row of the grid: a program for each partition. Operands and results of all programs are strung together. */
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

/* Functions without arguments that are called one after another, each for one infeed. */
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

/* programs = [[@p00, @p01], [@p10, @p11]]: replicas by partitions. */
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
