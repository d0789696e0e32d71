/* One op against column SHLO of its row of ops.def: counts, attributes, types of operands and results, traits, inferred
 * types, and at last the rule's own function. Each step may rely on those before it. Ops without one are fine:
 * parameters, and dialects that xlac does not know. */
#include <stdio.h>

#include "../check/check.h"
#include "stablehlo.h"
#include "verify.h"

/* --- the table of rules: column SHLO of ops.def as one array by opcode --- */
#define SETS(...) ((const uint32_t[]){__VA_ARGS__})
#define IN(...) .in = SETS(__VA_ARGS__), .n_in = sizeof(SETS(__VA_ARGS__)) / sizeof(uint32_t),
#define OUT(...) .out = SETS(__VA_ARGS__), .n_out = sizeof(SETS(__VA_ARGS__)) / sizeof(uint32_t),
#define HOLDS(set) .traits = (set),
#define INFERS(name) .infer = sv_infer_##name,
#define CHECKS(name) .verify = sv_verify_##name,
#include "../ops_columns.h"
#undef SHLO
#define SHLO(columns) columns
#define OP(code, text, arity, columns) [IR_OP_##code] = {columns},
static const sv_rule sv_rules[IR_OP_COUNT] = {
#include "../ops.def"
};
#undef OP
#undef SETS
#undef IN
#undef OUT
#undef HOLDS
#undef INFERS
#undef CHECKS

/* An op of MLIR form without a rule would go unchecked: it does not compile. */
#include "../ops_columns.h"
#undef SHLO
#undef MLIR
#define SHLO(...) | 2
#define MLIR(...) | 1
#define OP(code, text, arity, columns) _Static_assert((0 columns) != 1, #code " has a column MLIR and no column SHLO");
#include "../ops.def"
#undef OP

/* An opcode without a row has all zeros. */
const sv_rule *sv_rule_of(unsigned opcode) {
  assert(opcode < IR_OP_COUNT);
  const sv_rule *r = &sv_rules[opcode];
  return r->in || r->out || r->infer || r->verify ? r : NULL;
}

/* --- errors ---
 *
 * "stablehlo.add expects ... (add_c1)": the op's MLIR name, what is wrong, the constraint's name in the
 * specification. */
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

/* Struct attributes know where they were read, which on a long line is worth more than the op's own place. */
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

/* --- one op: counts, types, inference ---
 *
 * expected < 0: any number. */
static int sv_check_count(const sv *v, const char *what, int expected, uint32_t found) {
  if (expected < 0 || (uint32_t)expected == found) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %u %s; expected %d", found, what, expected);
}

/* Of a variadic op the sets of its fixed operands say how many there are at least. */
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

/* The last set stands for all further values. */
static uint32_t sv_set_at(const uint32_t *sets, uint32_t n, uint32_t i) {
  assert(n > 0);
  return sets[i < n ? i : n - 1];
}

/* A quantised type that is broken in itself is in no set; the message then says what is wrong with it and not with
 * its place. */
static int sv_check_type(const sv *v, const char *what, uint32_t i, const ir_type *t, uint32_t set) {
  if (sv_type_in(t, set)) return 0;
  char words[200];
  sv_quant_fault fault;
  if (t->quant && sv_quant_is_broken(t, &fault))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, fault.id, "has %s %u of a type with %s", what, i, fault.text);
  return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has %s %u of type %s; expected %s", what, i, SV_SHOW(t),
                      sv_set_text(set, words, sizeof words));
}

/* Token-taking ops (infeed, send, after_all) end in a token whatever the sets say. */
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

/* SV_SAME_TYPE: the most specific of the operands' types. add of tensor<?xf32> and tensor<4xf32> gives tensor<4xf32>.
 */
int sv_infer_same(const sv *v) {
  uint32_t n = v->op->n_operands;
  const ir_type **types = BASE_ARRAY(v->arena, const ir_type *, n + 1u);
  if (!types) return sv_oom(v);
  for (uint32_t i = 0; i < n; i++) types[i] = sv_in(v, i);
  if (n == 0 || v->op->n_results != 1) return sv_fail(v, NULL, "has no operands; expected at least one");
  return sv_most_specific(v, n, types, v->out);
}

/* CANNOT_INFER for ops whose type must be declared; reshape is one. */
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

/* The declared type may know less or more than the inferred one, as long as both can be true. An error of the
 * inference is kept back until it is known to be one: CANNOT_INFER is none. */
static int sv_check_inferred(const sv *v) {
  xlac_error local = {0};
  sv w = *v;
  w.err = &local;
  int status = sv_infer_op(&w);
  if (status == -XLAC_E_CANNOT_INFER) return 0;
  if (status != 0) {
    if (v->err) *v->err = local;
    return ir_check_stamp(v->op, status, v->err); /* a shape that is too large has no place of its own */
  }
  for (uint32_t i = 0; i < v->op->n_results; i++)
    if (!sv_result_fits(v, v->out[i], sv_result(v, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "is declared as %s, but its operands and attributes give %s",
                          SV_SHOW(sv_result(v, i)), SV_SHOW(v->out[i]));
  return 0;
}

int sv_verify_op(const sv *v) {
  assert(v->op && v->out);
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

/* --- inherent attributes: there, of their kind, within their range --- */

/* An optional attribute that is absent is fine; a wrong kind is not, whether optional or not. */
static int sv_check_attr(const sv *v, const ir_mattr_spec *spec) {
  const ir_mattr *a = ir_mattr_of(v->op, spec->name);
  if (!a && (spec->flags & IR_REQUIRED))
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "lacks the attribute '%s'", spec->name);
  if (!a) return 0;
  if (!stablehlo_attr_is_of(spec, a))
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has an attribute '%s' of the wrong kind", spec->name);
  if (a->kind != IR_M_INTEGER) return 0;
  if ((spec->flags & IR_NON_NEGATIVE) && a->v.i < 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %s = %lld; expected a number that is not negative",
                        spec->name, (long long)a->v.i);
  if ((spec->flags & IR_POSITIVE) && a->v.i <= 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %s = %lld; expected a positive number", spec->name,
                        (long long)a->v.i);
  return 0;
}

/* Discardable attributes are not in the row and not looked at. */
int sv_check_attrs(const sv *v) {
  const ir_mattr_spec *spec = ir_opcode_info(v->op->opcode)->mlir->attrs;
  for (; spec && spec->name; spec++) TRY(sv_check_attr(v, spec));
  return 0;
}

/* --- lists of integers --- */

/* Empty for what is not a list of integers, and where memory ran out: the arena then has `failed`, and the whole check
 * ends in that. */
sv_ints sv_ints_of(const sv *v, const ir_mattr *a) {
  sv_ints list = {NULL, 0};
  list.v = ir_m_ints(a, v->arena, &list.n);
  return list;
}

/* Of a field that was not written, or is not an integer, `otherwise`. */
int64_t sv_field_int(const ir_mattr *a, const char *name, int64_t otherwise) {
  const ir_mattr *field = ir_m_field(a, name);
  return field && field->kind == IR_M_INTEGER ? field->v.i : otherwise;
}

/* Linear: lists of dimensions are short. */
bool sv_has(sv_ints list, int64_t x) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.v[i] == x) return true;
  return false;
}

/* Not strictly: repetitions are another constraint's. */
bool sv_is_sorted(sv_ints list) {
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i] < list.v[i - 1]) return false;
  return true;
}

/* Lists of dimensions are short where they are valid at all: one that is longer than ranks go repeats a number or is
 * out of range, so that the square loop never runs long. */
bool sv_is_unique(sv_ints list) {
  if (list.n > 4 * IR_MAX_RANK) return false;
  for (uint32_t i = 0; i < list.n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (list.v[i] == list.v[j]) return false;
  return true;
}

/* Shape operands of dynamic_* ops are often constants; then their values are checked like attributes. At most 4
 * ranks' worth. */
bool sv_constant_ints(const sv *v, uint32_t i, sv_ints *out) {
  const ir_op *def = ir_operand(v->op, i);
  if (def->opcode != IR_OP_CONSTANT) return false;
  const ir_mattr *a = ir_mattr_of(def, "value");
  if (!a || a->kind != IR_M_DENSE || !a->type || a->type->quant || a->type->count > 4 * IR_MAX_RANK) return false;
  *out = sv_ints_of(v, a);
  return out->v != NULL;
}

int sv_check_dims(const sv *v, const char *id, const char *what, sv_ints dims, int64_t below) {
  assert(what);
  for (uint32_t i = 0; i < dims.n; i++)
    if (dims.v[i] < 0 || dims.v[i] >= below)
      return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, id, "has %lld in %s; expected numbers in [0, %lld)",
                          (long long)dims.v[i], what, (long long)below);
  return 0;
}

/* No number twice, neither within a list nor across the two. Bounded like sv_is_unique, for lists that no other check
 * has limited yet. */
int sv_check_distinct(const sv *v, const char *id, const char *what, sv_ints a, const char *what2, sv_ints b) {
  for (uint32_t k = 0; k < a.n + b.n; k++) {
    int64_t x = k < a.n ? a.v[k] : b.v[k - a.n];
    for (uint32_t j = 0; j < k && k < 8 * IR_MAX_RANK; j++)
      if (x == (j < a.n ? a.v[j] : b.v[j - a.n]))
        return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, id, "has dimension %lld twice in %s and %s", (long long)x, what,
                            what2);
  }
  return 0;
}

/* --- traits: operands and results against one another ---
 *
 * Value i of operands and results together. */
static const ir_type *sv_nth_type(const sv *v, uint32_t i) {
  return i < v->op->n_operands ? sv_in(v, i) : sv_result(v, i - v->op->n_operands);
}

typedef bool sv_fits_fn(const ir_type *a, const ir_type *b);

/* Each of the first n values against value 0. */
static int sv_check_all(const sv *v, uint32_t n, sv_fits_fn *fits, const char *what) {
  assert(fits && what);
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

/* Operand i against result i. */
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

/* Traits of a few ops each. */
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

/* In MLIR's order of traits, so that of several errors the same one is told. */
int sv_check_traits(const sv *v, const sv_rule *rule) {
  assert(rule);
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
