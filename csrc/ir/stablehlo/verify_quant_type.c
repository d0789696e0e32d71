/* What a quantised type must be in itself: the specification's quantized_type_c1 to c13. Readers check most of it;
 * types from elsewhere come here unchecked. */
#include <math.h>
#include <stdio.h>

#include "verify.h"

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

static bool sv_parameters_are_broken(const ir_quant *q, sv_quant_fault *f) {
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
  return sv_storage_is_broken(t->quant, fault) || sv_parameters_are_broken(t->quant, fault) ||
         sv_axis_is_broken(t, fault);
}

/* Types nest as deep as their makers let them. */
static int sv_check_in(const ir_computation *c, const ir_type *t, xlac_error *err) {
  sv_quant_fault fault;
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(sv_check_in(c, t->elements[i], err));
  if (!t->quant || !sv_quant_is_broken(t, &fault)) return 0;
  return base_fail_at(err, XLAC_E_VERIFY, c->line, c->col, "func.func", "@%s has a type with %s%s%s%s", c->name->s,
                      fault.text, fault.id ? " (" : "", fault.id ? fault.id : "", fault.id ? ")" : "");
}

int sv_check_interface(const ir_computation *c, xlac_error *err) {
  if (c->function_type) TRY(sv_check_in(c, c->function_type, err));
  for (uint32_t i = 0; i < c->n_params; i++) TRY(sv_check_in(c, c->params[i]->type, err));
  for (uint32_t i = 0; i < c->n_results; i++) {
    ir_value v = c->results[i];
    TRY(sv_check_in(c, v.op->types[v.index], err));
  }
  return 0;
}
