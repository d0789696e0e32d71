/* Shapes with bounds: building them, merging them. */
#include "verify.h"

void sv_push(sv_shape *s, int64_t dim, int64_t bound) {
  assert(s->rank < SV_MAX_RANK);
  s->dims[s->rank] = dim;
  s->bounds[s->rank++] = dim == SV_DYNAMIC ? bound : SV_DYNAMIC;
}

void sv_shape_of(const ir_type *t, sv_shape *shape) {
  assert(ir_is_tensor(t));
  shape->rank = 0;
  for (uint32_t i = 0; i < t->rank; i++) sv_push_dim(shape, t, i);
}

sv_element sv_element_of(const ir_type *t) {
  return (sv_element){(base_dtype)t->dtype, t->quant, t->text};
}

sv_element sv_plain(base_dtype dtype) {
  return (sv_element){dtype, NULL, NULL};
}

sv_element sv_declared_element(const sv *v) {
  const ir_op *op = v->op;
  bool declared = op->n_results && op->types && op->types[0] && sv_is_shaped(op->types[0]);
  return sv_element_of(declared ? op->types[0] : sv_in(v, 0));
}

int sv_make(const sv *v, const sv_shape *s, sv_element e, const ir_type **out) {
  if (s->rank > IR_MAX_RANK)
    return sv_fail_code(v, XLAC_E_TOO_LARGE, NULL, "gives a tensor of rank %u; at most %d is allowed", s->rank,
                        IR_MAX_RANK);
  int64_t dims[IR_MAX_RANK] = {0};
  bool dynamic[IR_MAX_RANK] = {false};
  for (uint32_t i = 0; i < s->rank; i++) {
    dynamic[i] = s->dims[i] == SV_DYNAMIC;
    dims[i] = dynamic[i] ? s->bounds[i] : s->dims[i];
  }
  *out = ir_tensor_mlir(v->m, e.dtype, e.quant, e.text, s->rank, dims, dynamic, NULL, v->err);
  return *out ? 0 : v->err ? -(int)v->err->code : sv_oom(v);
}

int sv_like(const sv *v, const ir_type *shape, sv_element e, const ir_type **out) {
  if (shape->kind == IR_TYPE_UNRANKED) {
    *out = ir_unranked(v->m, e.dtype, e.quant, e.text);
    return *out ? 0 : sv_oom(v);
  }
  sv_shape s;
  sv_shape_of(shape, &s);
  return sv_make(v, &s, e, out);
}

int sv_scalar_like(const sv *v, const ir_type *t, const ir_type **out) {
  sv_shape s = {.rank = 0};
  return sv_make(v, &s, sv_element_of(t), out);
}

int sv_most_specific_dim(const sv *v, uint32_t i, int64_t *dim, int64_t *bound, int64_t dim2, int64_t bound2) {
  if (*dim == SV_DYNAMIC && dim2 == SV_DYNAMIC) {
    if (*bound == SV_DYNAMIC || (bound2 != SV_DYNAMIC && bound2 < *bound)) *bound = bound2;
    return 0;
  }
  if (*dim != SV_DYNAMIC && dim2 != SV_DYNAMIC && *dim != dim2)
    return sv_fail(v, NULL, "has sizes %lld and %lld in dimension %u; expected equal ones", (long long)*dim,
                   (long long)dim2, i);
  int64_t size = *dim != SV_DYNAMIC ? *dim : dim2, limit = *bound != SV_DYNAMIC ? *bound : bound2;
  if (limit != SV_DYNAMIC && size > limit)
    return sv_fail(v, NULL, "has size %lld in dimension %u, whose bound is %lld elsewhere", (long long)size, i,
                   (long long)limit);
  *dim = size;
  *bound = SV_DYNAMIC;
  return 0;
}

static int sv_least_specific_dim(const sv *v, uint32_t i, int64_t *dim, int64_t *bound, int64_t dim2, int64_t bound2) {
  int64_t a = *dim != SV_DYNAMIC ? *dim : *bound, b = dim2 != SV_DYNAMIC ? dim2 : bound2;
  if (*dim != SV_DYNAMIC && dim2 != SV_DYNAMIC) {
    if (*dim != dim2)
      return sv_fail(v, NULL, "has sizes %lld and %lld in dimension %u; expected equal ones", (long long)*dim,
                     (long long)dim2, i);
    return 0;
  }
  *dim = SV_DYNAMIC;
  *bound = a == SV_DYNAMIC || b == SV_DYNAMIC ? SV_DYNAMIC : a > b ? a : b;
  return 0;
}

typedef int sv_merge_dim_fn(const sv *v, uint32_t i, int64_t *dim, int64_t *bound, int64_t dim2, int64_t bound2);

static int sv_merge_tensors(const sv *v, sv_merge_dim_fn *merge, uint32_t n, const ir_type *const *types,
                            const ir_type **out) {
  sv_shape s;
  const ir_type *first = NULL;
  for (uint32_t i = 0; i < n; i++) {
    if (!ir_is_tensor(types[i])) continue;
    if (!first) {
      first = types[i];
      sv_shape_of(first, &s);
      continue;
    }
    if (types[i]->rank != s.rank)
      return sv_fail(v, NULL, "has types of ranks %u and %u; expected the same rank", s.rank, types[i]->rank);
    for (uint32_t d = 0; d < s.rank; d++)
      TRY(merge(v, d, &s.dims[d], &s.bounds[d], sv_dim(types[i], d), sv_bound(types[i], d)));
  }
  if (first) return sv_make(v, &s, sv_element_of(first), out);
  *out = types[0];
  return 0;
}

static int sv_merge_types(const sv *v, sv_merge_dim_fn *merge, uint32_t n, const ir_type *const *types,
                          const ir_type **out);

static int sv_merge_tuples(const sv *v, sv_merge_dim_fn *merge, uint32_t n, const ir_type *const *types,
                           const ir_type **out) {
  uint32_t size = types[0]->n_elements;
  const ir_type **parts = BASE_ARRAY(v->arena, const ir_type *, size + 1u);
  const ir_type **column = BASE_ARRAY(v->arena, const ir_type *, n);
  if (!parts || !column) return sv_oom(v);
  for (uint32_t i = 0; i < n; i++)
    if (!ir_is_tuple(types[i]) || types[i]->n_elements != size)
      return sv_fail(v, NULL, "has tuples of different sizes, or tuples and other types; expected one kind");
  for (uint32_t e = 0; e < size; e++) {
    for (uint32_t i = 0; i < n; i++) column[i] = types[i]->elements[e];
    TRY(sv_merge_types(v, merge, n, column, &parts[e]));
  }
  *out = ir_tuple(v->m, size, parts);
  return *out ? 0 : sv_oom(v);
}

/* Depth is that of tuple types, which their maker bounds. */
static int sv_merge_types(const sv *v, sv_merge_dim_fn *merge, uint32_t n, const ir_type *const *types,
                          const ir_type **out) {
  assert(n > 0);
  return (ir_is_tuple(types[0]) ? sv_merge_tuples : sv_merge_tensors)(v, merge, n, types, out);
}

int sv_most_specific(const sv *v, uint32_t n, const ir_type *const *types, const ir_type **out) {
  return sv_merge_types(v, sv_most_specific_dim, n, types, out);
}

int sv_least_specific(const sv *v, uint32_t n, const ir_type *const *types, const ir_type **out) {
  return sv_merge_types(v, sv_least_specific_dim, n, types, out);
}
