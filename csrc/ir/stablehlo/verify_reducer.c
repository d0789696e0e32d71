/* Regions that reduce: reduce, reduce_window, scatter, select_and_scatter, all_reduce and its kin.
 *
 * With n inputs a reducer is (acc 0..n-1, value 0..n-1) -> acc 0..n-1. Its element types may be wider than the
 * inputs' (bf16 inputs summed in f32): the accumulator's is what the region returns, and that is the result's. Errors
 * carry reduce_c6 whatever the op, as upstream's do. */
#include "verify.h"

/* A region without a body, or of another form than checked yet, leaves the input's elements. */
sv_element sv_accumulator(const ir_computation *c, uint32_t i, const ir_type *input) {
  if (c->declaration || i >= c->n_results || !sv_is_shaped(sv_returned(c, i))) return sv_element_of(input);
  return sv_element_of(sv_returned(c, i));
}

/* Integers and preds count as one kind; quantised types go by what they express. */
static bool sv_same_number_kind(const ir_type *a, const ir_type *b) {
  if (a->quant || b->quant) return a->quant && b->quant && a->quant->expressed == b->quant->expressed;
  unsigned x = base_dtype_of((base_dtype)a->dtype)->kind, y = base_dtype_of((base_dtype)b->dtype)->kind;
  if (x == BASE_KIND_FLOAT || x == BASE_KIND_COMPLEX) return x == y;
  return y != BASE_KIND_FLOAT && y != BASE_KIND_COMPLEX && y != BASE_KIND_NONE;
}

/* Of one kind of number and no wider; floats of any width. */
static bool sv_is_promotable(const ir_type *from, const ir_type *to) {
  if (!sv_is_shaped(from) || !sv_is_shaped(to) || !sv_same_number_kind(from, to)) return false;
  return sv_is_float(from) || sv_element_bits(from) <= sv_element_bits(to);
}

/* The same shape and element type, or (loosely) any float for another. */
static bool sv_reducer_types_fit(const ir_type *a, const ir_type *b, bool any_float) {
  if (!sv_shapes_fit(a, b)) return false;
  return sv_same_element(a, b) || (any_float && sv_is_float(a) && sv_is_float(b));
}

/* Counts of parameters and returned values. */
static int sv_check_reducer_shape(const sv *v, const ir_computation *c, uint32_t n) {
  if (c->n_params != 2 * n)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6", "has a reducer of %u parameters; expected %u",
                        c->n_params, 2 * n);
  if (c->declaration || c->n_results != n)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6", "has a reducer that returns %u values; expected %u",
                        c->n_results, n);
  for (uint32_t i = 0; i < n; i++)
    if (!ir_is_tensor(sv_returned(c, i)))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6", "has a reducer that returns %s; expected tensors",
                          SV_SHOW(sv_returned(c, i)));
  return 0;
}

/* The argument's dimensions are among the allowed ones, in order. */
static int sv_check_reducer_dims(const sv *v, uint32_t i, const ir_type *arg, const sv_shape *allowed) {
  uint32_t found = 0;
  if (!ir_is_tensor(arg) || arg->rank > allowed->rank)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                        "has a reducer whose parameter %u is %s; expected rank %u at most", i, SV_SHOW(arg),
                        allowed->rank);
  for (uint32_t d = 0; d < allowed->rank && found < arg->rank; d++)
    found += sv_dims_fit(allowed->dims[d], sv_dim(arg, found));
  if (found == arg->rank) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                      "has a reducer whose parameter %u is %s, which does not fit the operand", i, SV_SHOW(arg));
}

/* returned i == acc i; value i may be another float; init and input must be promotable to what the reducer takes. */
static int sv_check_reducer_value(const sv *v, const ir_computation *c, uint32_t n, uint32_t i, const ir_type *input,
                                  const ir_type *init) {
  const ir_type *result = sv_returned(c, i), *first = sv_arg(c, i), *second = sv_arg(c, n + i);
  if (!sv_reducer_types_fit(result, first, false))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                        "has a reducer whose parameter %u is %s; expected %s, as it returns", i, SV_SHOW(first),
                        SV_SHOW(result));
  if (!sv_reducer_types_fit(result, second, true))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                        "has a reducer whose parameter %u is %s; expected %s, as it returns", n + i, SV_SHOW(second),
                        SV_SHOW(result));
  if (!sv_shapes_fit(init, result) || !sv_is_promotable(init, result))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                        "has a reducer that returns %s for an initial value of %s", SV_SHOW(result), SV_SHOW(init));
  if (!sv_is_promotable(input, second))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "reduce_c6",
                        "has a reducer whose parameter %u is %s; expected one that holds elements of %s", n + i,
                        SV_SHOW(second), SV_SHOW(input));
  return 0;
}

int sv_check_reducer(const sv *v, const ir_computation *c, uint32_t n, const ir_type *const *inputs,
                     const ir_type *const *inits, const sv_shape *allowed) {
  assert(n == 0 || (inputs && inits && allowed));
  TRY(sv_check_reducer_shape(v, c, n));
  for (uint32_t i = 0; i < n; i++) {
    TRY(sv_check_reducer_value(v, c, n, i, inputs[i], inits[i]));
    TRY(sv_check_reducer_dims(v, n + i, sv_arg(c, n + i), allowed));
  }
  return 0;
}

/* --- reduce --- */

/* Shapes of inputs 1..n-1 against input 0's. */
static int sv_check_inputs_alike(const sv *v, uint32_t n, const char *id) {
  for (uint32_t i = 1; i < n; i++)
    if (!sv_shapes_fit(sv_in(v, 0), sv_in(v, i)))
      return sv_fail(v, id, "has inputs of %s and %s; expected one shape", SV_SHOW(sv_in(v, 0)), SV_SHOW(sv_in(v, i)));
  return 0;
}

/* The inputs' dimensions that are not reduced: reduce_c1, c4, c5. */
static int sv_reduced_shape(const sv *v, sv_shape *s) {
  const ir_type *t = sv_in(v, 0);
  sv_ints dims = sv_attr_ints(v, "dimensions");
  TRY(sv_check_inputs_alike(v, v->op->n_operands / 2, "reduce_c1"));
  TRY(sv_check_dims(v, "reduce_c4", "dimensions", dims, t->rank));
  if (!sv_is_unique(dims))
    return sv_fail(v, "reduce_c5", "has dimensions = %s; expected no repetition", SV_SHOW_INTS(dims));
  s->rank = 0;
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sv_has(dims, i)) sv_push_dim(s, t, i);
  return 0;
}

/* Operands: n inputs, n initial values (SV_HALVES has seen to that). */
int sv_infer_reduce(const sv *v) {
  sv_shape s;
  uint32_t n = v->op->n_operands / 2;
  TRY(sv_reduced_shape(v, &s));
  if (v->op->n_results != n)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, "reduce_c3", "has %u results for %u inputs", v->op->n_results, n);
  for (uint32_t i = 0; i < n; i++) TRY(sv_make(v, &s, sv_accumulator(sv_region(v, 0), i, sv_in(v, i)), &v->out[i]));
  return 0;
}

/* Operands 0..n-1 are inputs, n..2n-1 initial values. */
static int sv_check_own_reducer(const sv *v, const sv_shape *allowed) {
  uint32_t n = v->op->n_operands / 2;
  const ir_type **types = BASE_ARRAY(v->arena, const ir_type *, 2u * n + 1u);
  if (!types) return sv_oom(v);
  for (uint32_t i = 0; i < 2 * n; i++) types[i] = sv_in(v, i);
  return sv_check_reducer(v, sv_region(v, 0), n, types, types + n, allowed);
}

/* The reducer's parameters may have the result's dimensions at most. */
int sv_verify_reduce(const sv *v) {
  sv_shape s;
  TRY(sv_reduced_shape(v, &s));
  return sv_check_own_reducer(v, &s);
}

/* --- reduce_window --- */

/* Lists that the op leaves out mean stride 1, dilation 1, no padding. */
static int sv_read_reduce_window(const sv *v, sv_window *w) {
  uint32_t n = v->op->n_operands / 2;
  TRY(sv_check_inputs_alike(v, n, "reduce_window_c2"));
  w->size = sv_attr_ints(v, "window_dimensions");
  w->stride = sv_attr_ints(v, "window_strides");
  w->base_dilation = sv_attr_ints(v, "base_dilations");
  w->dilation = sv_attr_ints(v, "window_dilations");
  TRY(sv_read_padding(v, &w->padding));
  if (w->size.n != sv_in(v, 0)->rank)
    return sv_fail(v, "reduce_window_c4", "has %u window_dimensions; expected %u, the inputs' rank", w->size.n,
                   sv_in(v, 0)->rank);
  return sv_check_window(v, w, (sv_ints){NULL, 0});
}

/* Each dimension, and each bound, becomes the number of places of its window. */
int sv_infer_reduce_window(const sv *v) {
  sv_window w;
  TRY(sv_read_reduce_window(v, &w));
  uint32_t n = v->op->n_operands / 2;
  if (v->op->n_results != n)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, "reduce_window_c1", "has %u results for %u inputs", v->op->n_results,
                        n);
  for (uint32_t k = 0; k < n; k++) {
    const ir_type *t = sv_in(v, k);
    sv_shape s = {.rank = 0};
    for (uint32_t i = 0; i < t->rank; i++)
      sv_push(&s, sv_window_output(&w, i, sv_dim(t, i)), sv_window_output(&w, i, sv_bound(t, i)));
    TRY(sv_make(v, &s, sv_accumulator(sv_region(v, 0), k, t), &v->out[k]));
  }
  return 0;
}

/* Parameters of the reducer may have the window's dimensions at most. */
int sv_verify_reduce_window(const sv *v) {
  sv_window w;
  TRY(sv_read_reduce_window(v, &w));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < w.size.n; i++) sv_push(&s, w.size.v[i], SV_DYNAMIC);
  return sv_check_own_reducer(v, &s);
}

/* --- select_and_scatter --- */

/* The operand's shape, with the elements that the scatter region returns. */
int sv_infer_select_and_scatter(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_accumulator(sv_region(v, 1), 0, sv_in(v, 0)), v->out);
}

/* select: two scalars of the operand's elements to i1. */
static int sv_check_selector(const sv *v) {
  const ir_computation *c = sv_region(v, 0);
  const ir_type *scalar;
  TRY(sv_scalar_like(v, sv_in(v, 0), &scalar));
  if (c->n_params != 2)
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "select_and_scatter_c9", "has a select of %u parameters; expected 2",
                        c->n_params);
  for (uint32_t i = 0; i < 2; i++)
    if (!sv_reducer_types_fit(scalar, sv_arg(c, i), true))
      return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "select_and_scatter_c9",
                          "has a select whose parameter %u is %s; expected %s", i, SV_SHOW(sv_arg(c, i)),
                          SV_SHOW(scalar));
  if (c->n_results != 1 || !sv_is_scalar_of(sv_returned(c, 0), XLAC_PRED))
    return sv_fail_code(v, XLAC_E_VERIFY_CALLED, "select_and_scatter_c9",
                        "has a select that returns %u values, not one of tensor<i1>", c->n_results);
  return 0;
}

/* The source has one element for each place of the window over the operand. */
int sv_verify_select_and_scatter(const sv *v) {
  const ir_type *t = sv_in(v, 0), *source = sv_in(v, 1), *init = sv_in(v, 2), *scalar;
  TRY(sv_check_selector(v));
  TRY(sv_scalar_like(v, source, &scalar));
  sv_shape none = {.rank = 0};
  TRY(sv_check_reducer(v, sv_region(v, 1), 1, &scalar, &init, &none));
  sv_window w = {.size = sv_attr_ints(v, "window_dimensions"), .stride = sv_attr_ints(v, "window_strides")};
  if (w.size.n != t->rank)
    return sv_fail(v, "select_and_scatter_c4", "has %u window_dimensions; expected %u, the operand's rank", w.size.n,
                   t->rank);
  TRY(sv_read_padding(v, &w.padding));
  TRY(sv_check_window(v, &w, (sv_ints){NULL, 0}));
  sv_shape s = {.rank = 0};
  const ir_type *expected;
  for (uint32_t i = 0; i < t->rank; i++) sv_push(&s, sv_window_output(&w, i, sv_dim(t, i)), SV_DYNAMIC);
  TRY(sv_make(v, &s, sv_element_of(t), &expected));
  if (sv_reducer_types_fit(expected, source, true)) return 0;
  return sv_fail(v, "select_and_scatter_c1", "has a source of %s; expected %s", SV_SHOW(source), SV_SHOW(expected));
}
