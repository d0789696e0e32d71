/* The traits of rules.def: operands and results against one another. */
#include "verify.h"

/* Value i of operands and results together. */
static const ir_type *sv_nth_type(const sv *v, uint32_t i) {
  return i < v->op->n_operands ? sv_in(v, i) : sv_result(v, i - v->op->n_operands);
}

typedef bool sv_fits_fn(const ir_type *a, const ir_type *b);

static int sv_check_all(const sv *v, uint32_t n, sv_fits_fn *fits, const char *what) {
  for (uint32_t i = 1; i < n; i++)
    if (!fits(sv_nth_type(v, i), sv_nth_type(v, 0)))
      return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "expects %s, but has %s and %s", what,
                          SV_SHOW(sv_nth_type(v, 0)), SV_SHOW(sv_nth_type(v, i)));
  return 0;
}

/* All shapes go together: a size that one of them fixes holds for every other. */
static int sv_check_shapes(const sv *v, uint32_t n) {
  const ir_type *first = NULL;
  int64_t known[IR_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = sv_nth_type(v, i);
    if (t->kind != IR_TYPE_TENSOR) continue;
    bool fits = !first || t->rank == first->rank;
    for (uint32_t d = 0; fits && d < t->rank; d++) {
      if (!first) known[d] = SV_DYNAMIC;
      fits = sv_dims_fit(known[d], sv_dim(t, d));
      if (known[d] == SV_DYNAMIC) known[d] = sv_dim(t, d);
    }
    if (!fits)
      return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL,
                          "expects one shape of all operands and results, but has %s and %s", SV_SHOW(first),
                          SV_SHOW(t));
    if (!first) first = t;
  }
  return 0;
}

static int sv_check_pairs(const sv *v, uint32_t traits) {
  if (!(traits & (SV_PAIRED_TYPE | SV_PAIRED_ELEMENT))) return 0;
  if (v->op->n_operands != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u operands and %u results; expected as many of each",
                        v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < v->op->n_operands; i++) {
    const ir_type *a = sv_in(v, i), *b = sv_result(v, i);
    if ((traits & SV_PAIRED_TYPE) ? a->bare != b->bare : !sv_same_element(a, b))
      return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL,
                          "has operand %u of %s but result %u of %s; expected the same %s", i, SV_SHOW(a), i,
                          SV_SHOW(b), traits & SV_PAIRED_TYPE ? "type" : "element type");
  }
  return 0;
}

static int sv_check_some(const sv *v, uint32_t traits) {
  if ((traits & SV_ELEMENT_01) && !sv_same_element(sv_in(v, 0), sv_in(v, 1)))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL,
                        "expects operands 0 and 1 of one element type, but has %s and %s", SV_SHOW(sv_in(v, 0)),
                        SV_SHOW(sv_in(v, 1)));
  if ((traits & SV_ELEMENT_OUT) && !sv_same_element(sv_in(v, 0), sv_result(v, 0)))
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL,
                        "expects operand 0 and the result of one element type, but has %s and %s", SV_SHOW(sv_in(v, 0)),
                        SV_SHOW(sv_result(v, 0)));
  if ((traits & SV_HALVES) && (v->op->n_operands % 2 != 0 || v->op->n_operands == 0))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL,
                        "has %u operands; expected at least one input and as many initial values", v->op->n_operands);
  return 0;
}

int sv_check_traits(const sv *v, const sv_rule *rule) {
  uint32_t in = v->op->n_operands, all = in + v->op->n_results;
  const uint32_t of_all = SV_SAME_TYPE | SV_SAME_ELEMENT | SV_OPERANDS_ELEMENT | SV_EQUAL_ELEMENT | SV_SAME_SHAPE;
  if ((rule->traits & of_all) && in == 0)
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "expects at least one operand");
  if (rule->traits & SV_SAME_TYPE)
    TRY(sv_check_all(v, all, sv_types_fit, "compatible types of all operands and results"));
  if (rule->traits & SV_SAME_ELEMENT)
    TRY(sv_check_all(v, all, sv_elements_fit, "compatible element types of all operands and results"));
  if (rule->traits & SV_OPERANDS_ELEMENT)
    TRY(sv_check_all(v, in, sv_elements_fit, "compatible element types of all operands"));
  if (rule->traits & SV_EQUAL_ELEMENT)
    TRY(sv_check_all(v, all, sv_same_element, "the same element type in all operands and results"));
  if (rule->traits & SV_SAME_SHAPE) TRY(sv_check_shapes(v, all));
  TRY(sv_check_pairs(v, rule->traits));
  return sv_check_some(v, rule->traits);
}
