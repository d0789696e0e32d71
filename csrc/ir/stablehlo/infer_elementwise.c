/* Result types of ops that keep their operands' shape, and of those that make values from nothing. */
#include "verify.h"

int sv_infer_abs(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_element e = sv_element_of(t);
  if (!t->quant && !t->text) e.dtype = base_dtype_real_part(e.dtype);
  return sv_like(v, t, e, v->out);
}

int sv_infer_real(const sv *v) {
  return sv_infer_abs(v);
}

int sv_infer_pred(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_plain(XLAC_PRED), v->out);
}

int sv_infer_complex(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  return sv_like(v, t, sv_plain(t->dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64), v->out);
}

int sv_infer_first(const sv *v) {
  v->out[0] = sv_in(v, 0);
  return 0;
}

int sv_infer_all(const sv *v) {
  if (v->op->n_operands != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has %u operands but %u results; expected as many",
                        v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < v->op->n_operands; i++) v->out[i] = sv_in(v, i);
  return 0;
}

int sv_infer_token(const sv *v) {
  v->out[0] = ir_token(v->m);
  return v->out[0] ? 0 : sv_oom(v);
}

int sv_infer_id(const sv *v) {
  v->out[0] = ir_scalar(v->m, XLAC_U32);
  return v->out[0] ? 0 : sv_oom(v);
}

int sv_infer_constant(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "value");
  if (!a || !a->type) return sv_fail(v, NULL, "has no value with a type");
  v->out[0] = a->type;
  return 0;
}

int sv_infer_clamp(const sv *v) {
  for (uint32_t i = 0; i < 3; i += 2) {
    const ir_type *bound = sv_in(v, i), *t = sv_in(v, 1);
    if (bound->rank != 0 && !sv_shapes_fit(bound, t))
      return sv_fail(v, i ? "clamp_c2" : "clamp_c1", "has %s of %s; expected a scalar or the shape of %s",
                     i ? "max" : "min", SV_SHOW(bound), SV_SHOW(t));
  }
  v->out[0] = sv_in(v, 1);
  return 0;
}

int sv_infer_compare(const sv *v) {
  return sv_infer_pred(v);
}

int sv_infer_select(const sv *v) {
  const ir_type *pred = sv_in(v, 0), *t = sv_in(v, 1), *f = sv_in(v, 2);
  if (!sv_shapes_fit(t, f) || !sv_same_element(t, f))
    return sv_fail(v, "select_c2", "has values of %s and %s; expected compatible types", SV_SHOW(t), SV_SHOW(f));
  if (pred->rank != 0 && !sv_shapes_fit(pred, t))
    return sv_fail(v, "select_c1", "has pred of %s; expected a scalar or the shape of %s", SV_SHOW(pred), SV_SHOW(t));
  const ir_type *both[2] = {t, f};
  return sv_most_specific(v, 2, both, v->out);
}

int sv_infer_convert(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_declared_element(v), v->out);
}

int sv_infer_dequantize(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_plain((base_dtype)sv_in(v, 0)->quant->expressed), v->out);
}

int sv_infer_rng(const sv *v) {
  bool uniform = strcmp(ir_m_get_str(v->op, "rng_distribution"), "UNIFORM") == 0;
  if (!uniform && !(sv_is_float(sv_in(v, 0)) && sv_is_float(sv_in(v, 1))))
    return sv_fail(v, "rng_c2", "has mu of %s and sigma of %s; expected floats", SV_SHOW(sv_in(v, 0)),
                   SV_SHOW(sv_in(v, 1)));
  sv_shape s = {.rank = 0};
  sv_ints sizes;
  bool known = sv_constant_ints(v, 2, &sizes);
  int64_t rank = sv_in(v, 2)->dims[0];
  if (rank > IR_MAX_RANK) return sv_fail(v, NULL, "has a shape of %lld dimensions", (long long)rank);
  for (uint32_t i = 0; i < (uint32_t)rank; i++) {
    if (known && sizes.v[i] < 0) return sv_fail(v, "rng_c3", "has the size %lld in its shape", (long long)sizes.v[i]);
    sv_push(&s, known ? sizes.v[i] : SV_DYNAMIC, SV_DYNAMIC);
  }
  return sv_make(v, &s, sv_element_of(sv_in(v, 1)), v->out);
}
