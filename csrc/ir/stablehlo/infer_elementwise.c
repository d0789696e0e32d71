/* Shapes with bounds: building and merging them. Then the ops whose results take the shape of their operands, those
 * that make values from nothing, and CHLO's broadcasting ops.
 *
 * A dimension is (size, bound): (4, -) static, (?, 8) at most 8, (?, -) anything. Merging towards the most specific
 * type takes what either side knows: (?, 8) and (4, -) give (4, -). Towards the least specific it keeps what is true
 * of both: (?, 8). */
#include "verify.h"

/* A static dimension has no bound. */
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

/* Element type of a tensor, an unranked one or a bare element type. */
sv_element sv_element_of(const ir_type *t) {
  return (sv_element){(base_dtype)t->dtype, t->quant, t->text};
}

/* An element type that is neither quantised nor spelled by a text. */
sv_element sv_plain(base_dtype dtype) {
  return (sv_element){dtype, NULL, NULL};
}

/* For ops whose result's element type is free (convert, dot_general): what was declared is what is inferred. */
sv_element sv_declared_element(const sv *v) {
  const ir_op *op = v->op;
  bool declared = op->n_results && op->types && op->types[0] && sv_is_shaped(op->types[0]);
  return sv_element_of(declared ? op->types[0] : sv_in(v, 0));
}

/* Ranks up to SV_MAX_RANK may come about, as sums of others; beyond IR_MAX_RANK they are errors. */
int sv_make(const sv *v, const sv_shape *s, sv_element e, const ir_type **out) {
  assert(out && s->rank <= SV_MAX_RANK);
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

/* The shape of one type with the elements of another. */
int sv_like(const sv *v, const ir_type *shape, sv_element e, const ir_type **out) {
  assert(sv_is_shaped(shape));
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

/* Sizes must agree where both are known and be within the other's bound; of two bounds the smaller is kept. */
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

/* Different static sizes contradict one another here too: branches must be compatible, only unequal in knowledge. */
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

/* Unranked tensors say nothing and are passed over; if there are only such, the first is the answer. Element types
 * are those of the first ranked one. */
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

/* Element by element: column i of the list of tuples. */
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

/* --- ops that keep their operands' shape, and sources of values ---
 *
 * abs, real and imag of complex numbers are real. */
int sv_infer_abs(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  sv_element e = sv_element_of(t);
  if (!t->quant && !t->text) e.dtype = base_dtype_real_part(e.dtype);
  return sv_like(v, t, e, v->out);
}

int sv_infer_real(const sv *v) {
  return sv_infer_abs(v);
}

/* The operand's shape with i1. */
int sv_infer_pred(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_plain(XLAC_PRED), v->out);
}

/* f32 or f64, which the rule's set has seen to. */
int sv_infer_complex(const sv *v) {
  const ir_type *t = sv_in(v, 0);
  return sv_like(v, t, sv_plain(t->dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64), v->out);
}

/* Operand 0's very type. */
int sv_infer_first(const sv *v) {
  v->out[0] = sv_in(v, 0);
  return 0;
}

/* Each operand's type is that of the result at its place: optimization_barrier. */
int sv_infer_all(const sv *v) {
  if (v->op->n_operands != v->op->n_results)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has %u operands but %u results; expected as many",
                        v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < v->op->n_operands; i++) v->out[i] = sv_in(v, i);
  return 0;
}

/* INFER of ops that only order. */
int sv_infer_token(const sv *v) {
  v->out[0] = ir_token(v->m);
  return v->out[0] ? 0 : sv_oom(v);
}

/* replica_id and partition_id: ui32 scalars. */
int sv_infer_id(const sv *v) {
  v->out[0] = ir_scalar(v->m, XLAC_U32);
  return v->out[0] ? 0 : sv_oom(v);
}

/* What the value's own type says. */
int sv_infer_constant(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "value");
  if (!a || !a->type) return sv_fail(v, NULL, "has no value with a type");
  v->out[0] = a->type;
  return 0;
}

/* clamp_c1 and c2: bounds are scalars or have the operand's shape. */
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

/* select_c1 and c2. */
int sv_infer_select(const sv *v) {
  const ir_type *pred = sv_in(v, 0), *t = sv_in(v, 1), *f = sv_in(v, 2);
  if (!sv_shapes_fit(t, f) || !sv_same_element(t, f))
    return sv_fail(v, "select_c2", "has values of %s and %s; expected compatible types", SV_SHOW(t), SV_SHOW(f));
  if (pred->rank != 0 && !sv_shapes_fit(pred, t))
    return sv_fail(v, "select_c1", "has pred of %s; expected a scalar or the shape of %s", SV_SHOW(pred), SV_SHOW(t));
  const ir_type *both[2] = {t, f};
  return sv_most_specific(v, 2, both, v->out);
}

/* The element type is what was declared; the shape is the operand's. */
int sv_infer_convert(const sv *v) {
  return sv_like(v, sv_in(v, 0), sv_declared_element(v), v->out);
}

/* The rule's set has seen to it that the operand is quantised. */
int sv_infer_dequantize(const sv *v) {
  assert(sv_in(v, 0)->quant);
  return sv_like(v, sv_in(v, 0), sv_plain((base_dtype)sv_in(v, 0)->quant->expressed), v->out);
}

/* (a, b, shape): the size of `shape` is the rank; its values are known only of a constant. */
int sv_infer_rng(const sv *v) {
  bool uniform = ir_m_get_word(v->op, "rng_distribution") == IR_DISTRIBUTION_UNIFORM;
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

/* --- CHLO's broadcasting ops ---
 *
 * Merges dimension (dim2, bound2) into (dim, bound) as NumPy broadcasts; false when they don't fit. */
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

/* Trailing dimensions against trailing ones. Trailing dimensions against trailing ones; missing leading ones count as
 * 1. */
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

/* With broadcast_dimensions the smaller operand is laid along them, else as NumPy does. */
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

/* f32 and f32 to complex<f32>, f64 to complex<f64>. */
int sv_infer_chlo_broadcast_complex(const sv *v) {
  return sv_broadcast_pair(v, sv_plain(sv_in(v, 0)->dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64));
}

int sv_infer_chlo_broadcast_compare(const sv *v) {
  return sv_broadcast_pair(v, sv_plain(XLAC_PRED));
}

/* The pred takes part in broadcasting, but not in the element type. */
int sv_infer_chlo_broadcast_select(const sv *v) {
  if (!sv_same_element(sv_in(v, 1), sv_in(v, 2)))
    return sv_fail_code(v, XLAC_E_VERIFY_OPERANDS, NULL, "has values of %s and %s; expected one element type",
                        SV_SHOW(sv_in(v, 1)), SV_SHOW(sv_in(v, 2)));
  return sv_broadcast_numpy(v, 3, sv_element_of(sv_in(v, 1)));
}

/* chlo.constant_like: the operand's shape filled with one value. */
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
