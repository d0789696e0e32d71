/* One op: counts, attributes, types of operands and results, traits, inference, and the rule's own function. */
#include "verify.h"

#include <stdio.h>

static int sv_fail_v(const sv *v, base_code code, const char *id, uint32_t line, uint32_t col, const char *format,
                     va_list args) {
  char message[sizeof v->err->message];
  vsnprintf(message, sizeof message, format, args);
  const ir_op *op = v->op;
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  const char *what = info ? info->name : op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : ir_opcode_text(op->opcode);
  const char *name = op->name && op->name->n ? op->name->s : what;
  return base_fail_at(v->err, code, line, col, name, id ? "%s %s (%s)" : "%s %s", what, message, id);
}

int sv_fail_code(const sv *v, base_code code, const char *id, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int status = sv_fail_v(v, code, id, v->op->line, v->op->col, format, args);
  va_end(args);
  return status;
}

int sv_fail(const sv *v, const char *id, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int status = sv_fail_v(v, XLAC_E_VERIFY, id, v->op->line, v->op->col, format, args);
  va_end(args);
  return status;
}

int sv_fail_attr(const sv *v, const ir_mattr *a, const char *id, const char *format, ...) {
  va_list args;
  bool known = a && a->kind == IR_M_STRUCT && a->at.line;
  va_start(args, format);
  int status = sv_fail_v(v, XLAC_E_VERIFY_ATTRIBUTE, id, known ? a->at.line : v->op->line,
                         known ? a->at.col : v->op->col, format, args);
  va_end(args);
  return status;
}

int sv_oom(const sv *v) {
  return base_oom(v->err, "the check of an op");
}

static int sv_check_count(const sv *v, const char *what, int expected, uint32_t found) {
  if (expected < 0 || (uint32_t)expected == found) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u %s; expected %d", found, what, expected);
}

static int sv_check_counts(const sv *v, const sv_rule *rule) {
  const ir_mlir_info *info = ir_opcode_info(v->op->opcode)->mlir;
  TRY(sv_check_count(v, "operands", info->operands, v->op->n_operands));
  TRY(sv_check_count(v, "results", info->results, v->op->n_results));
  TRY(sv_check_count(v, "regions", info->regions, v->op->n_called));
  if (rule->n_in > 1 && v->op->n_operands + 1u < rule->n_in)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u operands; expected at least %u", v->op->n_operands,
                        rule->n_in - 1u);
  if ((rule->traits & SV_LAST_IS_TOKEN) && v->op->n_operands == 0)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has no operands; expected at least a token");
  return 0;
}

static uint32_t sv_set_at(const uint32_t *sets, uint32_t n, uint32_t i) {
  return sets[i < n ? i : n - 1];
}

static int sv_check_type(const sv *v, const char *what, uint32_t i, const ir_type *t, uint32_t set) {
  if (sv_type_in(t, set)) return 0;
  char words[200];
  sv_quant_fault fault;
  if (t->quant && sv_quant_is_broken(t, &fault))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, fault.id, "has %s %u of a type with %s", what, i, fault.text);
  return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %s %u of type %s; expected %s", what, i, SV_SHOW(t),
                      sv_set_text(set, words, sizeof words));
}

static int sv_check_types(const sv *v, const sv_rule *rule) {
  uint32_t n = v->op->n_operands;
  if (rule->traits & SV_LAST_IS_TOKEN) {
    n--;
    TRY(sv_check_type(v, "operand", n, sv_in(v, n), SV_TOKEN));
  }
  for (uint32_t i = 0; rule->in && i < n; i++)
    TRY(sv_check_type(v, "operand", i, sv_in(v, i), sv_set_at(rule->in, rule->n_in, i)));
  for (uint32_t i = 0; rule->out && i < v->op->n_results; i++)
    TRY(sv_check_type(v, "result", i, sv_result(v, i), sv_set_at(rule->out, rule->n_out, i)));
  return 0;
}

int sv_infer_same(const sv *v) {
  uint32_t n = v->op->n_operands;
  const ir_type **types = BASE_ARRAY(v->arena, const ir_type *, n + 1u);
  if (!types) return sv_oom(v);
  for (uint32_t i = 0; i < n; i++) types[i] = sv_in(v, i);
  if (n == 0 || v->op->n_results != 1) return sv_fail(v, NULL, "has no operands; expected at least one");
  return sv_most_specific(v, n, types, v->out);
}

int sv_infer_op(const sv *v) {
  const sv_rule *rule = sv_rule_of(v->op->opcode);
  sv_fn *infer = rule ? rule->infer : NULL;
  if (rule && !infer && (rule->traits & SV_SAME_TYPE)) infer = sv_infer_same;
  if (!infer) return sv_fail_code(v, XLAC_E_CANNOT_INFER, NULL, "has a type that does not follow from its operands");
  return infer(v);
}

/* A constant of quantised type holds its storage. */
static bool sv_result_fits(const sv *v, const ir_type *inferred, const ir_type *declared) {
  if (v->op->opcode == IR_OP_CONSTANT && declared->quant && !inferred->quant)
    return sv_shapes_fit(inferred, declared) && inferred->dtype == declared->quant->storage;
  if (v->op->opcode == IR_OP_CONSTANT) return inferred->bare == declared->bare;
  return sv_types_fit(inferred, declared);
}

static int sv_check_inferred(const sv *v) {
  xlac_error local = {0};
  sv w = *v;
  w.err = &local;
  int status = sv_infer_op(&w);
  if (status == -XLAC_E_CANNOT_INFER) return 0;
  if (status != 0) {
    if (v->err) *v->err = local;
    return status;
  }
  for (uint32_t i = 0; i < v->op->n_results; i++)
    if (!sv_result_fits(v, v->out[i], sv_result(v, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "is declared as %s, but its operands and attributes give %s",
                          SV_SHOW(sv_result(v, i)), SV_SHOW(v->out[i]));
  return 0;
}

int sv_verify_op(const sv *v) {
  const sv_rule *rule = sv_rule_of(v->op->opcode);
  if (v->op->opcode == IR_OP_UNREGISTERED) return sv_verify_test_op(v);
  if (!rule || !ir_opcode_info(v->op->opcode)->mlir) return 0;
  TRY(sv_check_counts(v, rule));
  TRY(sv_check_attrs(v));
  TRY(sv_check_types(v, rule));
  TRY(sv_check_traits(v, rule));
  TRY(sv_check_inferred(v));
  return rule->verify ? rule->verify(v) : 0;
}
