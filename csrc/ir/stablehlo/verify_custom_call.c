/* custom_call: layouts, aliases, backend_config, and the targets that StableHLO knows (CreateBuffer, Pin, Unpin).
 * What a target does with its operands is the target's own affair. */
#include "verify.h"

/* A minor-to-major order: a permutation of the dimensions. A value that is not a tensor has an empty one. */
static int sv_check_layout(const sv *v, const char *what, uint32_t i, const ir_type *t, const ir_mattr *a) {
  if (ir_is_tuple(t)) return sv_fail(v, NULL, "has a layout for %s %u, a tuple", what, i);
  sv_ints order = sv_ints_of(v, a);
  if (!sv_is_shaped(t) && order.n == 0) return 0;
  if (!sv_is_shaped(t)) return sv_fail(v, NULL, "has a layout for %s %u of %s", what, i, SV_SHOW(t));
  if (t->kind == IR_TYPE_UNRANKED) return 0;
  bool fits = order.n == t->rank && sv_is_unique(order);
  for (uint32_t k = 0; fits && k < order.n; k++) fits = order.v[k] >= 0 && order.v[k] < t->rank;
  if (fits) return 0;
  return sv_fail(v, NULL, "has the layout %s for %s %u of %s; expected a permutation of its dimensions",
                 SV_SHOW_INTS(order), what, i, SV_SHOW(t));
}

/* Of a single tuple result each element has a layout. */
static int sv_check_layouts(const sv *v) {
  const ir_mattr *in = ir_mattr_of(v->op, "operand_layouts"), *out = ir_mattr_of(v->op, "result_layouts");
  if (!in && !out) return 0;
  if (!in || !out) return sv_fail(v, NULL, "has layouts of operands or results only; expected both or none");
  if (in->v.list->n != v->op->n_operands)
    return sv_fail(v, NULL, "has %u operand_layouts for %u operands", in->v.list->n, v->op->n_operands);
  for (uint32_t i = 0; i < v->op->n_operands; i++) TRY(sv_check_layout(v, "operand", i, sv_in(v, i), in->v.list->v[i]));
  bool tuple = v->op->n_results == 1 && ir_is_tuple(sv_result(v, 0));
  uint32_t n = tuple ? sv_result(v, 0)->n_elements : v->op->n_results;
  if (out->v.list->n != n) return sv_fail(v, NULL, "has %u result_layouts for %u results", out->v.list->n, n);
  for (uint32_t i = 0; i < n; i++)
    TRY(sv_check_layout(v, "result", i, tuple ? sv_result(v, 0)->elements[i] : sv_result(v, i), out->v.list->v[i]));
  return 0;
}

/* The part of t that the path names, or NULL. */
static const ir_type *sv_type_part(const ir_type *t, sv_ints path) {
  for (uint32_t i = 0; i < path.n; i++) {
    if (!ir_is_tuple(t) || path.v[i] < 0 || path.v[i] >= t->n_elements) return NULL;
    t = t->elements[path.v[i]];
  }
  return t;
}

/* All results as one type. */
static const ir_type *sv_whole_result(const sv *v) {
  return v->op->n_results == 1 ? sv_result(v, 0) : ir_tuple(v->m, v->op->n_results, v->op->types);
}

/* An alias names a part of the result and a part of an operand, of one type. */
static int sv_check_alias(const sv *v, const ir_mattr *alias, const ir_type *result) {
  assert(result);
  int64_t operand = sv_field_int(alias, "operand_index", 0);
  if (operand < 0 || operand >= v->op->n_operands)
    return sv_fail_code(v, XLAC_E_VERIFY_ALIAS, NULL, "has operand_index = %lld in an alias; expected one in [0, %u)",
                        (long long)operand, v->op->n_operands);
  const ir_type *in = sv_type_part(sv_in(v, (uint32_t)operand), sv_field_ints(v, alias, "operand_tuple_indices"));
  const ir_type *out = sv_type_part(result, sv_field_ints(v, alias, "output_tuple_indices"));
  if (!in || !out)
    return sv_fail_code(v, XLAC_E_VERIFY_ALIAS, NULL, "has an alias whose %s is not there",
                        in ? "output_tuple_indices" : "operand_tuple_indices");
  if (in->bare == out->bare) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ALIAS, NULL, "has an alias of %s to %s; expected one type", SV_SHOW(in),
                      SV_SHOW(out));
}

/* NULL without the attribute. */
static const ir_mattrs *sv_aliases_of(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "output_operand_aliases");
  return a ? a->v.list : NULL;
}

static bool sv_same_ints(sv_ints a, sv_ints b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof *a.v) == 0);
}

/* How many aliases of buffers name this part of the result, or of the operand. */
static uint32_t sv_count_aliases(const sv *v, const char *field, sv_ints path, int64_t operand) {
  const ir_mattrs *all = sv_aliases_of(v);
  uint32_t n = 0;
  for (uint32_t i = 0; all && i < all->n; i++) {
    const ir_mattr *a = all->v[i];
    if (operand >= 0 && sv_field_int(a, "operand_index", 0) != operand) continue;
    n += sv_same_ints(sv_field_ints(v, a, field), path);
  }
  return n;
}

/* `path` has the indices of the tuples around t; it is long enough for any type. */
static int sv_check_buffer_leaves(const sv *v, const ir_type *t, int64_t *path, uint32_t depth) {
  assert(depth <= IR_MAX_TYPE_DEPTH);
  if (sv_is_buffer(t)) {
    if (sv_count_aliases(v, "output_tuple_indices", (sv_ints){path, depth}, -1) == 1) return 0;
    return sv_fail_code(v, XLAC_E_VERIFY_ALIAS, NULL, "has a buffer result %s; expected exactly one alias for it",
                        SV_SHOW_INTS(((sv_ints){path, depth})));
  }
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) {
    path[depth] = i;
    TRY(sv_check_buffer_leaves(v, t->elements[i], path, depth + 1));
  }
  return 0;
}

/* A buffer operand can become one part of the result only; tensors may be aliased twice. */
static int sv_check_aliases(const sv *v, const ir_type *result) {
  const ir_mattrs *all = sv_aliases_of(v);
  for (uint32_t i = 0; all && i < all->n; i++) TRY(sv_check_alias(v, all->v[i], result));
  for (uint32_t i = 0; all && i < all->n; i++) {
    int64_t operand = sv_field_int(all->v[i], "operand_index", 0);
    sv_ints path = sv_field_ints(v, all->v[i], "operand_tuple_indices");
    const ir_type *t = sv_type_part(sv_in(v, (uint32_t)operand), path);
    if (sv_is_buffer(t) && sv_count_aliases(v, "operand_tuple_indices", path, operand) > 1)
      return sv_fail_code(v, XLAC_E_VERIFY_ALIAS, NULL, "has two aliases of one buffer, operand %lld",
                          (long long)operand);
  }
  return 0;
}

/* Typed FFI calls have a dictionary, all others a string. */
static int sv_check_backend_config(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "backend_config");
  bool typed = ir_m_get_int(v->op, "api_version", IR_API_ORIGINAL) == IR_API_TYPED_FFI; /* MLIR has it as a number */
  if (!a || a->kind == (typed ? IR_M_DICT : IR_M_STRING)) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL,
                      "has a backend_config that does not suit its api_version; expected a %s",
                      typed ? "dictionary" : "string");
}

/* Whether a memref is of the tensor's shape and elements: "memref<2x3xf32>" against "tensor<2x3xf32>". */
static bool sv_buffer_of_tensor(const ir_type *buffer, const ir_type *t) {
  if (buffer->kind == IR_TYPE_BUFFER) return buffer->inner->bare == t->bare;
  char text[200];
  sv_type_text(t, text, sizeof text);
  return strcmp(strchr(text, '<'), strchr(buffer->text->s, '<')) == 0;
}

/* What goes between buffers and tensors. *done: nothing else is asked of it. */
static int sv_check_known_target(const sv *v, bool *done) {
  const char *target = ir_m_get_str(v->op, "call_target_name");
  bool create = strcmp(target, "CreateBuffer") == 0, pin = strcmp(target, "Pin") == 0;
  bool unpin = strcmp(target, "Unpin") == 0;
  *done = create || pin || unpin;
  if (!*done) return 0;
  if (v->op->n_operands != (create ? 0u : 1u) || v->op->n_results != 1)
    return sv_fail(v, NULL, "of %s has %u operands and %u results; expected %d and 1", target, v->op->n_operands,
                   v->op->n_results, !create);
  const ir_type *out = sv_result(v, 0), *in = create ? NULL : sv_in(v, 0);
  if (sv_is_buffer(out) == unpin || (in && sv_is_buffer(in) != unpin))
    return sv_fail(v, NULL, "of %s has a result of %s; expected %s", target, SV_SHOW(out),
                   unpin    ? "a tensor from a buffer"
                   : create ? "a buffer"
                            : "a buffer from a tensor");
  if (in && !sv_buffer_of_tensor(unpin ? in : out, unpin ? out : in))
    return sv_fail(v, NULL, "of %s has %s and %s; expected one shape and element type", target, SV_SHOW(in),
                   SV_SHOW(out));
  return 0;
}

int sv_verify_custom_call(const sv *v) {
  assert(v->op->types || v->op->n_results == 0);
  bool done;
  const ir_type *result = sv_whole_result(v);
  if (!result) return sv_oom(v);
  TRY(sv_check_layouts(v));
  TRY(sv_check_aliases(v, result));
  TRY(sv_check_backend_config(v));
  TRY(sv_check_known_target(v, &done));
  int64_t path[IR_MAX_TYPE_DEPTH + 2];
  return done ? 0 : sv_check_buffer_leaves(v, result, path, 0);
}
