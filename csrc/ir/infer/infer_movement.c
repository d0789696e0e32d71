/* Inference of ops that move or choose data: slices, updates, pad, concatenate, transpose, reverse, dimension sizes.
 * Where a result dimension is a part of a dynamic one, it stays dynamic only if it can still be the whole of it. */
#include "infer.h"

/* --- concatenate --- */

/* A dimension as XLA merges it: a size, unbounded when not known, and a bound, unbounded when the dimension is static.
 */
typedef struct sized_dim {
  int64_t size, bound;
} sized_dim;

static sized_dim sized_dim_of(const ir_type *t, uint32_t i) {
  assert(i < t->rank);
  return (sized_dim){t->dims[i], ir_dim_is_dynamic(t, i) ? t->dims[i] : IR_UNBOUNDED};
}

/* Sizes add up; anything with "?" is "?"; bounds count where one side has one. */
static int add_sized(sized_dim *sum, sized_dim d, xlac_error *err) {
  sized_dim r = {IR_UNBOUNDED, IR_UNBOUNDED};
  int64_t x = sum->bound != IR_UNBOUNDED ? sum->bound : sum->size, y = d.bound != IR_UNBOUNDED ? d.bound : d.size;
  bool has_bound = sum->bound != IR_UNBOUNDED || d.bound != IR_UNBOUNDED;
  bool ok = true;
  if (sum->size != IR_UNBOUNDED && d.size != IR_UNBOUNDED) ok = base_add_i64(sum->size, d.size, &r.size);
  if (has_bound && x != IR_UNBOUNDED && y != IR_UNBOUNDED) ok = ok && base_add_i64(x, y, &r.bound);
  if (!ok) return base_fail(err, XLAC_E_TOO_LARGE, "the concatenated dimension is larger than 2^63 - 1");
  *sum = r;
  return 0;
}

/* The more specific of two dimensions that must agree. */
static bool merge_sized(sized_dim *a, sized_dim b) {
  if (a->bound != IR_UNBOUNDED && b.bound != IR_UNBOUNDED && a->bound != b.bound) return false;
  if (a->size != IR_UNBOUNDED && b.size != IR_UNBOUNDED && a->size != b.size) return false;
  sized_dim r = {a->size != IR_UNBOUNDED ? a->size : b.size, a->bound != IR_UNBOUNDED ? a->bound : b.bound};
  if (r.size != IR_UNBOUNDED && r.bound != IR_UNBOUNDED && r.size != r.bound) return false;
  *a = r;
  return true;
}

/* Adds operand `at` to the dims and the element type so far. */
static int concatenate_one(const ir_op *op, uint32_t at, int64_t along, sized_dim *dims, base_dtype *dtype,
                           xlac_error *err) {
  const ir_type *first = ir_operand_type(op, 0), *t;
  TRY(ir_check_tensor(op, at, &t, err));
  if (t->rank != first->rank || !ir_same_dtype_or_float(t->dtype, first->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "concatenate takes operands of one rank and element type, but got %s and %s", IR_SHOW(first),
                     IR_SHOW(t));
  TRY(ir_infer_precision(*dtype, t->dtype, dtype, err));
  for (uint32_t i = 0; i < t->rank; i++) {
    sized_dim d = sized_dim_of(t, i);
    if ((int64_t)i == along) {
      TRY(add_sized(&dims[i], d, err));
    } else if (!merge_sized(&dims[i], d)) {
      return base_fail(err, XLAC_E_INFER,
                       "operand %u of concatenate, %s, differs from %s in dimension %u, not only in %lld", at,
                       IR_SHOW(t), IR_SHOW(first), i, (long long)along);
    }
  }
  return 0;
}

/* All dimensions but `along` must agree, bounds included; there sizes and bounds add up. */
int ir_infer_concatenate(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *first;
  int64_t along;
  TRY(ir_check_tensor(op, 0, &first, err));
  TRY(ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), first->rank, &along, err));
  assert(along >= 0 && along < first->rank);
  sized_dim dims[IR_MAX_RANK];
  for (uint32_t i = 0; i < first->rank; i++) dims[i] = (sized_dim){IR_UNBOUNDED, IR_UNBOUNDED};
  dims[along].size = 0;
  base_dtype dtype = first->dtype;
  for (uint32_t i = 0; i < op->n_operands; i++) TRY(concatenate_one(op, i, along, dims, &dtype, err));
  ir_dims d = {.rank = first->rank};
  for (uint32_t i = 0; i < d.rank; i++) {
    d.size[i] = dims[i].size;
    d.dynamic[i] = dims[i].bound != IR_UNBOUNDED || dims[i].size == IR_UNBOUNDED;
  }
  return ir_dims_tensor(m, dtype, &d, out, err);
}

/* --- slices --- */

/* [start:limit:stride], rounded up. A negative stride is not a slice: reverse does that. */
static int slice_size(const ir_type *t, uint32_t i, ir_slice_dim s, int64_t *size, xlac_error *err) {
  assert(i < t->rank && size);
  bool ok = s.start >= 0 && s.start <= s.limit && s.stride > 0 && (t->dims[i] == IR_UNBOUNDED || s.limit <= t->dims[i]);
  if (!ok)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "slice [%lld:%lld:%lld] does not fit dimension %u of %s",
                     (long long)s.start, (long long)s.limit, (long long)s.stride, i, IR_SHOW(t));
  int64_t length = s.limit - s.start;
  *size = length / s.stride + (length % s.stride != 0);
  return 0;
}

/* A slice of one element is static, whatever it is taken from: XLA's rule. */
int ir_infer_slice(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  assert(ir_attr_find(op, IR_ATTR_SLICE));
  const ir_slice *slice = ir_attr_find(op, IR_ATTR_SLICE)->v.slice;
  if (!slice || slice->n != t->rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "slice has %u ranges for the %u dimensions of %s",
                     slice ? slice->n : 0, t->rank, IR_SHOW(t));
  ir_dims d = {.rank = t->rank};
  for (uint32_t i = 0; i < t->rank; i++) {
    TRY(slice_size(t, i, slice->v[i], &d.size[i], err));
    d.dynamic[i] = d.size[i] != 1 && t->dims[i] != IR_UNBOUNDED && ir_dim_is_dynamic(t, i);
  }
  return ir_dims_tensor(m, t->dtype, &d, out, err);
}

/* Start indices from operand `first` on: one integer scalar per dimension, or one vector of them. */
static int check_start_indices(const ir_op *op, uint32_t first, uint32_t rank, xlac_error *err) {
  assert(op->n_operands >= first);
  uint32_t n = op->n_operands - first;
  const ir_type *index = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t;
    TRY(ir_check_tensor(op, first + i, &t, err));
    if (!base_dtype_is_integer(t->dtype) || (index && !ir_compatible(index, t)))
      return base_fail(err, XLAC_E_VERIFY_OPERANDS, "start indices must be integers of one type, but operand %u is %s",
                       first + i, IR_SHOW(t));
    if (i == 0) index = t;
  }
  bool vector = n == 1 && index->rank == 1 && index->dims[0] == (int64_t)rank;
  bool scalars = n == rank && (n == 0 || ir_is_scalar(index));
  if (vector || scalars) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s of rank %u takes %u scalar start indices, but has %u of type %s",
                   ir_opcode_text(op->opcode), rank, rank, n, n ? IR_SHOW(index) : "none");
}

/* (array, start indices...). Starts are clamped when it runs, so only sizes can be wrong. */
int ir_infer_dynamic_slice(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(check_start_indices(op, 1, t->rank, err));
  const ir_ints *sizes = ir_get_ints(op, IR_ATTR_DYNAMIC_SLICE_SIZES);
  ir_dims d = {.rank = t->rank};
  for (uint32_t i = 0; i < t->rank; i++) {
    if (sizes->n != t->rank || sizes->v[i] < 0 || (t->dims[i] != IR_UNBOUNDED && sizes->v[i] > t->dims[i]))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "dynamic_slice_sizes %s do not fit into %s",
                       IR_SHOW_INTS(sizes->n, sizes->v), IR_SHOW(t));
    d.size[i] = sizes->v[i];
    d.dynamic[i] = ir_dim_is_dynamic(t, i) && sizes->v[i] > 1 && sizes->v[i] == t->dims[i];
  }
  if (sizes->n != t->rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "dynamic_slice_sizes has %u entries for a scalar", sizes->n);
  return ir_dims_tensor(m, t->dtype, &d, out, err);
}

/* An update's unbounded size, INT64_MIN, passes. */
static int check_update(const ir_type *t, const ir_type *update, xlac_error *err) {
  assert(ir_is_tensor(t) && ir_is_tensor(update));
  if (t->rank != update->rank || !ir_same_dtype_or_float(t->dtype, update->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "the update must have the rank and element type of %s, but is %s",
                     IR_SHOW(t), IR_SHOW(update));
  for (uint32_t i = 0; i < t->rank; i++)
    if (update->dims[i] > t->dims[i])
      return base_fail(err, XLAC_E_INFER, "the update %s does not fit into %s: dimension %u is too large",
                       IR_SHOW(update), IR_SHOW(t), i);
  return 0;
}

/* (array or buffer, update, start indices...). A dynamic update over a whole dimension makes the result's dynamic. */
int ir_infer_dynamic_update_slice(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_at_least(op, 2, err));
  const ir_type *whole = ir_operand_type(op, 0), *update;
  const ir_type *t = whole->kind == IR_TYPE_BUFFER ? whole->inner : whole;
  if (!ir_is_tensor(t))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "dynamic-update-slice takes a tensor or buffer as operand 0, but got %s", IR_SHOW(whole));
  TRY(ir_check_tensor(op, 1, &update, err));
  TRY(check_start_indices(op, 2, t->rank, err));
  TRY(check_update(t, update, err));
  *out = whole;
  if (!update->has_dynamic) return 0;
  ir_dims d;
  ir_dims_of(&d, t);
  for (uint32_t i = 0; i < d.rank; i++)
    d.dynamic[i] = d.dynamic[i] || (ir_dim_is_dynamic(update, i) && update->dims[i] == t->dims[i]);
  TRY(ir_dims_tensor_in(m, t->dtype, &d, t->layout, &t, err));
  *out = whole->kind == IR_TYPE_BUFFER ? ir_buffer(m, t) : t;
  return *out ? 0 : base_oom(err, "a buffer type");
}

/* --- pad --- */

/* size + low + high + (size - 1) * interior, checked; negative edges crop. */
int ir_infer_pad_size(ir_padding_dim p, int64_t size, int64_t *out, xlac_error *err) {
  if (p.interior < 0)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "interior padding must not be negative, but is %lld",
                     (long long)p.interior);
  *out = IR_UNBOUNDED;
  if (size == IR_UNBOUNDED) return 0;
  int64_t edges, inner, sum;
  bool ok = base_add_i64(p.low, p.high, &edges) && base_mul_i64(size > 0 ? size - 1 : 0, p.interior, &inner) &&
            base_add_i64(size, edges, &sum) && base_add_i64(sum, inner, &sum);
  if (!ok || sum < 0)
    return base_fail(err, XLAC_E_INFER, "padding %lld_%lld_%lld of a dimension of size %lld gives %s", (long long)p.low,
                     (long long)p.high, (long long)p.interior, (long long)size,
                     ok ? "a negative size" : "a size beyond 2^63 - 1");
  *out = sum;
  return 0;
}

/* low_high_interior: f32[3] with 1_2_1 has 1 + 3 + 2 + 2 = 8 elements; negative edges crop. */
int ir_infer_pad(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  assert(op->n_operands == 2);
  const ir_type *t, *value;
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_tensor(op, 1, &value, err));
  if (!ir_is_scalar(value) || !ir_same_dtype_or_float(t->dtype, value->dtype))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "pad takes a scalar of its operand's element type %s, but got %s",
                     base_dtype_of(t->dtype)->text, IR_SHOW(value));
  assert(ir_attr_find(op, IR_ATTR_PADDING));
  const ir_padding *padding = ir_attr_find(op, IR_ATTR_PADDING)->v.padding;
  if (!padding || padding->n != t->rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "padding has %u entries for the %u dimensions of %s",
                     padding ? padding->n : 0, t->rank, IR_SHOW(t));
  base_dtype dtype;
  TRY(ir_infer_precision(t->dtype, value->dtype, &dtype, err));
  ir_dims d;
  ir_dims_of(&d, t);
  for (uint32_t i = 0; i < d.rank; i++) TRY(ir_infer_pad_size(padding->v[i], t->dims[i], &d.size[i], err));
  return ir_dims_tensor(m, dtype, &d, out, err);
}

/* --- reverse and transpose --- */

int ir_infer_reverse(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_dims_set("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), NULL, t->rank, err));
  *out = t;
  return 0;
}

/* The layout that makes the transpose a no-op in memory, XLA's choice; the default one where t's layout is no
 * permutation. */
static const ir_layout *transposed_layout(ir_module *m, const ir_type *t, const ir_ints *permutation) {
  if (!t->layout) return NULL;
  const ir_layout *l = t->layout;
  bool whole = l->rank == t->rank && ir_check_permutation("layout", l->rank, l->minor_to_major, t->rank, NULL) == 0;
  if (!whole) return ir_layout_default(m, t->rank);
  int64_t inverse[IR_MAX_RANK], order[IR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++) inverse[permutation->v[i]] = i;
  for (uint32_t i = 0; i < t->rank; i++) order[i] = inverse[l->minor_to_major[i]];
  ir_layout moved = *l;
  moved.minor_to_major = order;
  return ir_layout_intern(m, &moved);
}

/* Result dimension i is the operand's dimensions[i]. */
int ir_infer_transpose(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  const ir_ints *permutation = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  TRY(ir_check_permutation("dimensions", permutation->n, permutation->v, t->rank, err));
  ir_dims d = {.rank = t->rank};
  for (uint32_t i = 0; i < t->rank; i++) {
    d.size[i] = t->dims[permutation->v[i]];
    d.dynamic[i] = ir_dim_is_dynamic(t, (uint32_t)permutation->v[i]);
  }
  const ir_layout *layout = transposed_layout(m, t, permutation);
  if (t->layout && !layout) return base_oom(err, "a layout");
  return ir_dims_tensor_in(m, t->dtype, &d, layout, out, err);
}

/* --- dimension sizes --- */

/* Sizes are s32 values in HLO, so a dimension beyond that has no size to get or set. */
static int sized_dimension(const ir_op *op, const ir_type **t, int64_t *dim, xlac_error *err) {
  TRY(ir_check_tensor(op, 0, t, err));
  TRY(ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), (*t)->rank, dim, err));
  if ((*t)->dims[*dim] > INT32_MAX)
    return base_fail(err, XLAC_E_INFER, "dimension %lld of %s is too large for %s, whose sizes are s32",
                     (long long)*dim, IR_SHOW(*t), ir_opcode_text(op->opcode));
  return 0;
}

/* The scalar s32 that the dimension has at run time. */
int ir_infer_get_dimension_size(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  int64_t dim;
  TRY(sized_dimension(op, &t, &dim, err));
  return ir_infer_scalar(m, XLAC_S32, out, err);
}

/* The dimension becomes dynamic, its size the bound. The operand may be dynamic there already. */
int ir_infer_set_dimension_size(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t, *size;
  int64_t dim;
  TRY(sized_dimension(op, &t, &dim, err));
  TRY(ir_check_tensor(op, 1, &size, err));
  if (!ir_is_scalar_of(size, XLAC_S32))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "set-dimension-size takes a scalar s32 size, but got %s",
                     IR_SHOW(size));
  ir_dims d;
  ir_dims_of(&d, t);
  d.dynamic[dim] = true;
  return ir_dims_tensor_in(m, t->dtype, &d, t->layout, out, err);
}
