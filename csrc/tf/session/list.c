/* Lists of tensors: what TensorLists, TensorArrays and stacks share.
 *
 * A list has places for elements, NULL for those that were never written; such a one reads as zeros where its
 * shape and type are known. Lists are values in TensorFlow, so one is written in place only while nobody else
 * holds it (tfs_own_list); arrays and stacks are things, and always are. */
#include "list.h"

/* A limit, since the size comes from a tensor's value, which may be anything. */
enum { TFS_MOST_ELEMENTS = 1 << 26 };

/* Whether a shape input stands for an unknown rank: the scalar -1. */
static bool tfs_says_nothing(const interp_value *v) {
  assert(v);
  return v->rank == 0 && v->count == 1 && tfs_int_at(v, 0) == -1;
}

/* The rank may be known where sizes are not: -1 each. */
int tfs_set_element_shape(tfs_call *c, tfs_object *o, uint32_t i) {
  assert(o->kind == TFS_LIST || o->kind == TFS_ARRAY);
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, i, &v));
  o->rank_known = !tfs_says_nothing(v);
  return o->rank_known ? tfs_dims_in(c, i, &o->rank, o->dims) : 0;
}

/* Sizes that are unknown get those of `other`. *known says whether rank and dims mean anything yet; afterwards it
 * is true. dims has IR_MAX_RANK places. */
static int tfs_merge_dims(tfs_call *c, bool *known, uint32_t *rank, int64_t *dims, uint32_t n, const int64_t *other) {
  assert(n <= IR_MAX_RANK && *rank <= IR_MAX_RANK);
  if (*known && *rank != n) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "an element has %u dimensions, not %u", n, *rank);
  for (uint32_t d = 0; d < n; d++) {
    if (!*known || dims[d] < 0)
      dims[d] = other[d];
    else if (other[d] >= 0 && other[d] != dims[d])
      return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "an element has size %lld in dimension %u, not %lld",
                      (long long)other[d], d, (long long)dims[d]);
  }
  *rank = n;
  *known = true;
  return 0;
}

/* The first element that was written is enough: all have one shape, or stacking them fails. */
int tfs_element_dims(tfs_call *c, const tfs_object *o, int32_t i, uint32_t *rank, int64_t *dims) {
  assert(o->rank <= IR_MAX_RANK);
  bool known = o->rank_known;
  *rank = known ? o->rank : 0;
  if (*rank) memcpy(dims, o->dims, *rank * sizeof *dims);
  if (i >= 0) {
    interp_value *v = NULL;
    int64_t more[IR_MAX_RANK];
    uint32_t n = 0;
    TRY(tfs_tensor_in(c, (uint32_t)i, &v));
    if (!tfs_says_nothing(v)) {
      TRY(tfs_dims_in(c, (uint32_t)i, &n, more));
      TRY(tfs_merge_dims(c, &known, rank, dims, n, more));
    }
  }
  for (uint32_t k = 0; k < o->n; k++) {
    if (!o->items[k]) continue;
    TRY(tfs_merge_dims(c, &known, rank, dims, o->items[k]->rank, o->items[k]->dims));
    break;
  }
  bool all = known;
  for (uint32_t d = 0; d < *rank; d++) all = all && dims[d] >= 0;
  return all ? 0 : tfs_fail(c, XLAC_E_EVAL, "the shape of an element that was never written is not known");
}

/* Elements are held by both. Gradients and the like are not copied: they belong to the one array. */
tfs_object *tfs_copy_list(const tfs_object *o) {
  assert(!o->of_variants);
  tfs_object *copy = tfs_object_new(o->alloc, (tfs_object_kind)o->kind);
  if (!copy) return NULL;
  copy->dtype = o->dtype;
  copy->limit = o->limit;
  copy->rank_known = o->rank_known;
  copy->rank = o->rank;
  memcpy(copy->dims, o->dims, sizeof copy->dims);
  if (!tfs_object_reserve(copy, o->n)) {
    tfs_object_drop(copy);
    return NULL;
  }
  for (uint32_t i = 0; i < o->n; i++) copy->items[copy->n++] = o->items[i] ? interp_retain(o->items[i]) : NULL;
  return copy;
}

/* Taking input 0 out of c->in is what makes its count of holders 1 for good. */
int tfs_own_list(tfs_call *c, tfs_object **out) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  if (o->of_variants) return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "its list has variants, not tensors");
  if (o->refs == 1) {
    *out = o;
    c->in[0].kind = TFS_NONE;
    return 0;
  }
  *out = tfs_copy_list(o);
  return *out ? 0 : tfs_oom(c);
}

/* Shrinking releases what is beyond. */
int tfs_resize(tfs_call *c, tfs_object *o, int64_t n) {
  assert(o->n <= o->cap);
  if (n < 0 || n > TFS_MOST_ELEMENTS)
    return tfs_fail(c, XLAC_E_TOO_LARGE, "a list of %lld elements: at most %d work", (long long)n, TFS_MOST_ELEMENTS);
  while (o->n > n) interp_release(o->items[--o->n]);
  if (!tfs_object_reserve(o, (uint32_t)n - o->n)) return tfs_oom(c);
  while (o->n < n) o->items[o->n++] = NULL;
  return 0;
}

/* shape_input: the input that says a shape, or -1. *out is held by the caller. */
int tfs_element(tfs_call *c, const tfs_object *o, int64_t i, int32_t shape_input, interp_value **out) {
  uint32_t rank = 0;
  int64_t dims[IR_MAX_RANK];
  if (i < 0 || i >= o->n) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of a list of %u", (long long)i, o->n);
  if (o->items[i]) {
    *out = interp_retain(o->items[i]);
    return 0;
  }
  if (o->dtype == BASE_DTYPE_INVALID) return tfs_fail(c, XLAC_E_EVAL, "element %lld was never written", (long long)i);
  const interp_value *like = o->like && i < o->like->n ? o->like->items[i] : NULL;
  if (like && (rank = like->rank) > 0) memcpy(dims, like->dims, rank * sizeof *dims);
  if (!like) TRY(tfs_element_dims(c, o, shape_input, &rank, dims));
  TRY(tfs_check_dims(c, rank, dims));
  *out = tfs_new_tensor(c->alloc, (base_dtype)o->dtype, rank, dims);
  if (*out && (*out)->count) memset((*out)->data, 0, interp_bytes(*out));
  return *out ? 0 : tfs_oom(c);
}

/* A caller's memory may change after the call, so it is copied; the executor's own is held. */
int tfs_put_element(tfs_call *c, tfs_object *o, int64_t i, interp_value *v) {
  assert(v);
  if (i < 0 || i >= o->n) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of a list of %u", (long long)i, o->n);
  if (o->dtype != BASE_DTYPE_INVALID && o->dtype != v->dtype)
    return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "the list's elements are %s, not %s",
                    base_dtype_of((base_dtype)o->dtype)->text, base_dtype_of((base_dtype)v->dtype)->text);
  interp_value *kept = tfs_is_lent(v) ? tfs_copy_tensor(c->alloc, v) : interp_retain(v);
  if (!kept) return tfs_oom(c);
  interp_release(o->items[i]);
  o->items[i] = kept;
  return 0;
}

/* For arrays of gradients. Sums are computed in double and rounded to the element's type; the old element may be
 * held elsewhere, so it is not added to in place. */
int tfs_add_to_element(tfs_call *c, tfs_object *o, int64_t i, const interp_value *by) {
  if (!by) return 0;
  if (i < 0 || i >= o->n) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of a list of %u", (long long)i, o->n);
  interp_value *old = o->items[i];
  base_dtype type = (base_dtype)by->dtype;
  if (!old) return tfs_put_element(c, o, i, (interp_value *)(uintptr_t)by);
  if (old->dtype != by->dtype || old->count != by->count || !base_dtype_is_float(type))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "element %lld has other shapes or types in the lists", (long long)i);
  interp_value *sum = tfs_new_tensor(c->alloc, type, old->rank, old->dims);
  if (!sum) return tfs_oom(c);
  size_t size = base_dtype_bytes(type);
  for (int64_t k = 0; k < sum->count; k++)
    base_store_f64(type, (char *)sum->data + (size_t)k * size,
                   base_load_f64(type, (char *)old->data + (size_t)k * size) +
                       base_load_f64(type, (char *)by->data + (size_t)k * size));
  interp_release(old);
  o->items[i] = sum;
  return 0;
}

/* NULL when out of memory. The view holds v. */
interp_value *tfs_row(tfs_call *c, interp_value *v, int64_t i) {
  assert(v->rank > 0 && i >= 0 && i < v->dims[0]);
  interp_value *row = tfs_reshaped(c->alloc, v, v->rank - 1, v->dims + 1);
  if (row) row->data = (char *)v->data + (size_t)i * interp_bytes(row);
  return row;
}

/* Elements go one behind the other into `to`, which has a row for each; each must have just a row's type and size. */
static int tfs_copy_rows(tfs_call *c, const tfs_object *o, const interp_value *indices, int32_t shape_input,
                         interp_value *to) {
  assert(to->rank > 0);
  size_t row = to->dims[0] ? interp_bytes(to) / (size_t)to->dims[0] : 0;
  for (int64_t k = 0; k < to->dims[0]; k++) {
    int64_t i = indices ? tfs_int_at(indices, k) : k;
    interp_value *v = NULL;
    TRY(tfs_element(c, o, i, shape_input, &v));
    bool fits = v->dtype == to->dtype && interp_bytes(v) == row && v->rank + 1 == to->rank;
    if (fits && row) memcpy((char *)to->data + (size_t)k * row, v->data, row);
    interp_release(v);
    if (!fits) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "element %lld has another shape", (long long)i);
  }
  return 0;
}

/* An empty list needs its shape from elsewhere, and its type from the output. */
int tfs_stack_elements(tfs_call *c, const tfs_object *o, const interp_value *indices, int32_t shape_input,
                       interp_value **out) {
  uint32_t rank = 0;
  int64_t dims[IR_MAX_RANK + 1] = {indices ? indices->count : o->n};
  TRY(tfs_element_dims(c, o, shape_input, &rank, dims + 1));
  if (rank + 1 > IR_MAX_RANK) return tfs_fail(c, XLAC_E_TOO_LARGE, "elements of rank %u", rank);
  TRY(tfs_check_dims(c, rank + 1, dims));
  base_dtype type = o->dtype != BASE_DTYPE_INVALID ? (base_dtype)o->dtype : tfs_out_dtype(c, 0);
  if (type == BASE_DTYPE_INVALID) return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "the elements have no type of numbers");
  interp_value *to = tfs_new_tensor(c->alloc, type, rank + 1, dims);
  if (!to) return tfs_oom(c);
  int status = tfs_copy_rows(c, o, indices, shape_input, to);
  if (status) {
    interp_release(to);
    return status;
  }
  *out = to;
  return 0;
}
