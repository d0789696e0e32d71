/* Quantised types in themselves (the specification's quantized_type_c1 to c13), and quantised operands and results
 * against one another.
 *
 * A stored integer s stands for (s - zero_point) * scale. Per-tensor types have one scale and zero point, per-axis
 * types one for each index of a dimension. Readers check most of what a type must be; types from elsewhere (builders,
 * VHLO) come here unchecked. */
#include <math.h>
#include <stdio.h>

#include "verify.h"

/* Always true: "it is broken". */
static bool sv_quant_says(sv_quant_fault *f, const char *id, const char *format, ...) BASE_PRINTF(3, 4);
static bool sv_quant_says(sv_quant_fault *f, const char *id, const char *format, ...) {
  if (!f) return true;
  va_list args;
  f->id = id;
  va_start(args, format);
  vsnprintf(f->text, sizeof f->text, format, args);
  va_end(args);
  return true;
}

/* Integers of 2 to 32 bits, and a range of at least two values within them. */
static bool sv_storage_is_broken(const ir_quant *q, sv_quant_fault *f) {
  const base_dtype_info *d = base_dtype_of((base_dtype)q->storage);
  if (!base_dtype_is_integer((base_dtype)q->storage) || d->bits < 2 || d->bits > 32)
    return sv_quant_says(f, NULL, "storage of %s; expected integers of 2 to 32 bits", d->text);
  bool is_signed = d->kind == BASE_KIND_SINT;
  int64_t low = is_signed ? -(INT64_C(1) << (d->bits - 1)) : 0, high = (INT64_C(1) << (d->bits - is_signed)) - 1;
  if (q->storage_min >= low && q->storage_min < q->storage_max && q->storage_max <= high) return false;
  return sv_quant_says(f, "quantized_type_c3", "the range %lld to %lld; expected one within %lld to %lld",
                       (long long)q->storage_min, (long long)q->storage_max, (long long)low, (long long)high);
}

/* Written as !(x > 0), so that a NaN is refused too. */
static bool sv_parameters_are_broken(const ir_quant *q, sv_quant_fault *f) {
  assert(q->n == 0 || (q->scales && q->zero_points));
  for (uint32_t i = 0; i < q->n; i++) {
    if (!(q->scales[i] > 0))
      return sv_quant_says(f, "quantized_type_c5", "scale %g; expected more than 0", q->scales[i]);
    if (!isfinite(q->scales[i])) return sv_quant_says(f, "quantized_type_c6", "scale %g, not finite", q->scales[i]);
    if (q->zero_points[i] < q->storage_min || q->zero_points[i] > q->storage_max)
      return sv_quant_says(f, "quantized_type_c7", "zero point %lld; expected one of %lld to %lld",
                           (long long)q->zero_points[i], (long long)q->storage_min, (long long)q->storage_max);
  }
  return false;
}

/* Only a tensor has a rank to compare with; a bare element type does not. */
static bool sv_axis_is_broken(const ir_type *t, sv_quant_fault *f) {
  const ir_quant *q = t->quant;
  if (q->axis == -1 && q->n != 1) return sv_quant_says(f, "quantized_type_c10", "%u scales; expected 1", q->n);
  if (q->axis < 0 || t->kind != IR_TYPE_TENSOR) return false;
  if ((uint32_t)q->axis >= t->rank)
    return sv_quant_says(f, "quantized_type_c12", "quantised dimension %d, but rank %u", q->axis, t->rank);
  int64_t size = sv_dim(t, (uint32_t)q->axis);
  if (size == SV_DYNAMIC || size == q->n) return false;
  return sv_quant_says(f, "quantized_type_c13", "%u scales along dimension %d; expected %lld, its size", q->n, q->axis,
                       (long long)size);
}

bool sv_quant_is_broken(const ir_type *t, sv_quant_fault *fault) {
  assert(t->quant);
  return sv_storage_is_broken(t->quant, fault) || sv_parameters_are_broken(t->quant, fault) ||
         sv_axis_is_broken(t, fault);
}

/* Types nest as deep as their makers let them. Element types at any depth of tuples, futures and functions. */
static int sv_check_in(const ir_computation *c, const ir_type *t, xlac_error *err) {
  sv_quant_fault fault;
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(sv_check_in(c, t->elements[i], err));
  if (!t->quant || !sv_quant_is_broken(t, &fault)) return 0;
  return base_fail_at(err, XLAC_E_VERIFY, c->line, c->col, "func.func", "@%s has a type with %s%s%s%s", c->name->s,
                      fault.text, fault.id ? " (" : "", fault.id ? fault.id : "", fault.id ? ")" : "");
}

/* Results of functions without a body too: their declared type has them. */
int sv_check_interface(const ir_computation *c, xlac_error *err) {
  if (c->function_type) TRY(sv_check_in(c, c->function_type, err));
  for (uint32_t i = 0; i < c->n_params; i++) TRY(sv_check_in(c, c->params[i]->type, err));
  for (uint32_t i = 0; i < c->n_results; i++) {
    ir_value v = c->results[i];
    TRY(sv_check_in(c, v.op->types[v.index], err));
  }
  return 0;
}

/* --- operands and results against one another --- */
static bool sv_same_scales(const ir_quant *a, const ir_quant *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->scales[i] != b->scales[i] || a->zero_points[i] != b->zero_points[i]) return false;
  return true;
}

/* Per-tensor types must be equal, per-axis ones have equal parameters; where one is per tensor and the other per axis
 * another rule speaks. */
int sv_check_same_scales(const sv *v, const char *id, const ir_type *a, const ir_type *b) {
  bool bad = (sv_is_quant_tensor(a) && sv_is_quant_tensor(b) && !ir_quant_equal(a->quant, b->quant)) ||
             (sv_is_quant_axis(a) && sv_is_quant_axis(b) && !sv_same_scales(a->quant, b->quant));
  if (!bad) return 0;
  return sv_fail(v, id, "expects the same scales and zero points in %s and %s", SV_SHOW(a), SV_SHOW(b));
}

/* -1 on overflow. */
static int64_t sv_product_before(const ir_type *t, int32_t axis) {
  assert(axis >= 0 && (uint32_t)axis <= t->rank);
  int64_t n = 1;
  for (int32_t i = 0; i < axis; i++)
    if (!base_mul_i64(n, t->dims[i], &n)) return -1;
  return n;
}

/* A reshape keeps the quantised dimension: it has the same size, and as many elements before it. */
int sv_check_reshape_quant(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  TRY(sv_check_same_scales(v, "reshape_c1", a, b));
  if (!sv_is_quant_axis(a) || !sv_is_quant_axis(b)) return 0;
  if (!sv_dims_fit(sv_dim(a, (uint32_t)a->quant->axis), sv_dim(b, (uint32_t)b->quant->axis)))
    return sv_fail(v, "reshape_c3", "expects quantised dimensions of one size in %s and %s", SV_SHOW(a), SV_SHOW(b));
  if (a->has_dynamic || b->has_dynamic || sv_product_before(a, a->quant->axis) == sv_product_before(b, b->quant->axis))
    return 0;
  return sv_fail(v, "reshape_c3", "expects as many elements before the quantised dimension in %s and %s", SV_SHOW(a),
                 SV_SHOW(b));
}

/* The quantised dimension goes where broadcast_dimensions sends it. If it is stretched from 1, all its scales are the
 * one there was. */
int sv_check_broadcast_quant(const sv *v, sv_ints dims) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  if (!sv_is_quant_axis(b)) return 0;
  if (!sv_is_quant_axis(a))
    return sv_fail(v, "broadcast_in_dim_c6", "has a result quantised per axis, but an operand of %s", SV_SHOW(a));
  int32_t axis = a->quant->axis;
  if (b->quant->axis != dims.v[axis])
    return sv_fail(v, "broadcast_in_dim_c6", "has a result quantised along dimension %d; expected %lld", b->quant->axis,
                   (long long)dims.v[axis]);
  if (sv_dim(a, (uint32_t)axis) != 1) return 0;
  for (uint32_t i = 0; i < b->quant->n; i++)
    if (b->quant->scales[i] != a->quant->scales[0] || b->quant->zero_points[i] != a->quant->zero_points[0])
      return sv_fail(v, "broadcast_in_dim_c6", "has scale %g and zero point %lld at index %u; expected %g and %lld",
                     b->quant->scales[i], (long long)b->quant->zero_points[i], i, a->quant->scales[0],
                     (long long)a->quant->zero_points[0]);
  return 0;
}

/* Rules of dot_general by their numbers there; convolutions have them too, under their own. dot_general_c14 is
 * convolution_c28, and so on. */
static const char *sv_product_rule(const sv *v, int number, char id[32]) {
  const char *op = v->op->opcode == IR_OP_CONVOLUTION    ? "convolution"
                   : v->op->opcode == IR_OP_DYNAMIC_CONV ? "dynamic_conv"
                                                         : "dot_general";
  snprintf(id, 32, "%s_c%d", op, v->op->opcode == IR_OP_DOT ? number : number + 14);
  return id;
}

/* Hybrid quantisation has a float lhs and result and a quantised rhs; else all three are quantised. */
int sv_check_product_quant(const sv *v) {
  char id[32];
  const ir_type *lhs = sv_in(v, 0), *rhs = sv_in(v, 1), *result = sv_result(v, 0);
  if (!rhs->quant || !lhs->quant != !result->quant)
    return sv_fail(v, sv_product_rule(v, 14, id),
                   "expects rhs to be quantised, and lhs when the result is; has %s, %s and %s", SV_SHOW(lhs),
                   SV_SHOW(rhs), SV_SHOW(result));
  if (!lhs->quant) {
    bool fits = sv_element_is(lhs, (base_dtype)rhs->quant->expressed) && sv_same_element(lhs, result);
    if (fits) return 0;
    return sv_fail(v, sv_product_rule(v, 20, id), "expects lhs and result of rhs' expressed type; has %s, %s and %s",
                   SV_SHOW(lhs), SV_SHOW(rhs), SV_SHOW(result));
  }
  if (lhs->quant->storage != rhs->quant->storage)
    return sv_fail(v, sv_product_rule(v, 17, id), "has operands of %s and %s; expected one storage type", SV_SHOW(lhs),
                   SV_SHOW(rhs));
  if (lhs->quant->expressed != rhs->quant->expressed || lhs->quant->expressed != result->quant->expressed)
    return sv_fail(v, sv_product_rule(v, 18, id), "has %s, %s and %s; expected one expressed type", SV_SHOW(lhs),
                   SV_SHOW(rhs), SV_SHOW(result));
  if (sv_is_quant_tensor(rhs) && !sv_is_quant_tensor(result))
    return sv_fail(v, sv_product_rule(v, 19, id), "has rhs quantised per tensor, but the result %s", SV_SHOW(result));
  return 0;
}

/* From floats, or from one quantised type to another: the real values' type stays. */
int sv_verify_quantize(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  base_dtype expected = a->quant ? (base_dtype)a->quant->expressed : (base_dtype)a->dtype;
  if (b->quant->expressed == expected) return 0;
  return sv_fail(v, "uniform_quantize_c2", "has a result with expressed type %s; expected %s",
                 base_dtype_of((base_dtype)b->quant->expressed)->text, base_dtype_of(expected)->text);
}

/* add_c1 to add_c7 of the specification. */
static int sv_check_sum(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_in(v, 1), *c = sv_result(v, 0);
  if (!a->quant && !b->quant && !c->quant) {
    if (sv_same_element(a, b) && sv_same_element(a, c)) return 0;
    return sv_fail(v, "add_c1", "expects one element type; has %s, %s and %s", SV_SHOW(a), SV_SHOW(b), SV_SHOW(c));
  }
  if (!a->quant || !b->quant || !c->quant)
    return sv_fail(v, "add_c2", "expects all operands and results quantised or none; has %s, %s and %s", SV_SHOW(a),
                   SV_SHOW(b), SV_SHOW(c));
  if (a->quant->storage != b->quant->storage || a->quant->storage != c->quant->storage)
    return sv_fail(v, "add_c3", "expects one storage type; has %s, %s and %s", SV_SHOW(a), SV_SHOW(b), SV_SHOW(c));
  if (a->quant->expressed != b->quant->expressed || a->quant->expressed != c->quant->expressed)
    return sv_fail(v, "add_c4", "expects one expressed type; has %s, %s and %s", SV_SHOW(a), SV_SHOW(b), SV_SHOW(c));
  bool any = sv_is_quant_axis(a) || sv_is_quant_axis(b);
  if (any != sv_is_quant_axis(c))
    return sv_fail(v, "add_c5", "expects the result quantised per axis when an operand is; has %s, %s and %s",
                   SV_SHOW(a), SV_SHOW(b), SV_SHOW(c));
  if (sv_is_quant_axis(a) && a->quant->axis != c->quant->axis)
    return sv_fail(v, "add_c6", "has lhs quantised along dimension %d, the result along %d", a->quant->axis,
                   c->quant->axis);
  if (sv_is_quant_axis(b) && b->quant->axis != c->quant->axis)
    return sv_fail(v, "add_c7", "has rhs quantised along dimension %d, the result along %d", b->quant->axis,
                   c->quant->axis);
  return 0;
}

/* Whether the types fit comes first: its rules have names. */
int sv_infer_add(const sv *v) {
  if (sv_result(v, 0)) TRY(sv_check_sum(v));
  return sv_infer_same(v);
}
