/* CHLO's broadcasting ops. */
#include "verify.h"

/* Merges dimension (dim2, bound2) into (dim, bound) as NumPy broadcasts; false when they don't fit. */
static bool sv_broadcast_dim(int64_t *dim, int64_t *bound, int64_t dim2, int64_t bound2) {
  if (*dim == 1) {
    *dim = dim2;
    *bound = bound2;
    return true;
  }
  if (dim2 == 1) return true;
  if (*dim == SV_DYNAMIC && dim2 != SV_DYNAMIC) {
    bool fits = *bound == SV_DYNAMIC || dim2 <= *bound;
    *dim = dim2;
    *bound = SV_DYNAMIC;
    return fits;
  }
  if (*dim == SV_DYNAMIC && (*bound == SV_DYNAMIC || (bound2 != SV_DYNAMIC && bound2 < *bound))) *bound = bound2;
  return sv_dims_fit(*dim, dim2);
}

static int sv_fail_broadcast(const sv *v, const ir_type *a, const ir_type *b) {
  return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has operands of %s and %s, which don't broadcast to one shape",
                      SV_SHOW(a), SV_SHOW(b));
}

/* Trailing dimensions against trailing ones. */
static int sv_broadcast_numpy(const sv *v, uint32_t n, sv_element e) {
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = sv_in(v, i);
    if (t->kind == IR_TYPE_UNRANKED) return sv_like(v, t, e, v->out);
    while (s.rank < t->rank) sv_push(&s, 1, SV_DYNAMIC);
  }
  for (uint32_t i = 0; i < s.rank; i++) s.dims[i] = 1;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = sv_in(v, i);
    for (uint32_t d = 0; d < t->rank; d++) {
      uint32_t to = s.rank - t->rank + d;
      if (!sv_broadcast_dim(&s.dims[to], &s.bounds[to], sv_dim(t, d), sv_bound(t, d)))
        return sv_fail_broadcast(v, sv_in(v, 0), t);
    }
  }
  return sv_make(v, &s, e, v->out);
}

/* The operand of lower rank lies along the given dimensions of the other. */
static int sv_broadcast_along(const sv *v, sv_ints dims, sv_element e) {
  const ir_type *x = sv_in(v, 0), *y = sv_in(v, 1);
  if (!ir_is_tensor(x) || !ir_is_tensor(y)) return sv_like(v, ir_is_tensor(x) ? y : x, e, v->out);
  const ir_type *large = x->rank > y->rank ? x : y, *small = large == x ? y : x;
  if (dims.n != small->rank) { /* as StableHLO does: nothing is known of the result */
    v->out[0] = ir_unranked(v->m, e.dtype, e.quant, e.text);
    return v->out[0] ? 0 : sv_oom(v);
  }
  TRY(sv_check_dims(v, NULL, "broadcast_dimensions", dims, large->rank));
  sv_shape s;
  sv_shape_of(large, &s);
  for (uint32_t i = 0; i < dims.n; i++)
    if (!sv_broadcast_dim(&s.dims[dims.v[i]], &s.bounds[dims.v[i]], sv_dim(small, i), sv_bound(small, i)))
      return sv_fail_broadcast(v, x, y);
  return sv_make(v, &s, e, v->out);
}

static int sv_broadcast_pair(const sv *v, sv_element e) {
  if (!sv_elements_fit(sv_in(v, 0), sv_in(v, 1)))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has operands of %s and %s; expected one element type",
                        SV_SHOW(sv_in(v, 0)), SV_SHOW(sv_in(v, 1)));
  const ir_mattr *dims = ir_mattr_of(v->op, "broadcast_dimensions");
  return dims ? sv_broadcast_along(v, sv_ints_of(v, dims), e) : sv_broadcast_numpy(v, 2, e);
}

int sv_infer_chlo_broadcast(const sv *v) {
  return sv_broadcast_pair(v, sv_element_of(sv_in(v, 0)));
}

int sv_infer_chlo_broadcast_complex(const sv *v) {
  return sv_broadcast_pair(v, sv_plain(sv_in(v, 0)->dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64));
}

int sv_infer_chlo_broadcast_compare(const sv *v) {
  return sv_broadcast_pair(v, sv_plain(XLAC_PRED));
}

int sv_infer_chlo_broadcast_select(const sv *v) {
  if (!sv_same_element(sv_in(v, 1), sv_in(v, 2)))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has values of %s and %s; expected one element type",
                        SV_SHOW(sv_in(v, 1)), SV_SHOW(sv_in(v, 2)));
  return sv_broadcast_numpy(v, 3, sv_element_of(sv_in(v, 1)));
}

int sv_infer_constant_like(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "value");
  if (!a || !a->type || a->type->kind != IR_TYPE_ELEMENT)
    return sv_like(v, sv_in(v, 0), sv_declared_element(v), v->out);
  return sv_like(v, sv_in(v, 0), sv_element_of(a->type), v->out);
}

int sv_verify_constant_like(const sv *v) {
  (void)v;
  return 0;
}
