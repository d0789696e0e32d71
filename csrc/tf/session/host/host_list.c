/* TensorLists: values, written in place where nobody else holds them. */
#include "../list.h"

/* Empty; dtype INVALID for elements that are not numbers. */
static int tfs_new_list(tfs_call *c, tfs_object **out) {
  tfs_object *o = tfs_object_new(c->alloc, TFS_LIST);
  if (!o) return tfs_oom(c);
  o->dtype = (uint8_t)tfs_attr_dtype(c, "element_dtype");
  *out = o;
  return 0;
}

/* Gives o as output 0, or frees it after a failure. */
static int tfs_give_list(tfs_call *c, tfs_object *o, int status) {
  assert(o);
  if (status == 0) return tfs_give_object(c, 0, o);
  tfs_object_drop(o);
  return status;
}

/* EmptyTensorList(shape, most), TensorListReserve(shape, n). Which of the two the row's arg says. */
int tfs_host_list_new(tfs_call *c) {
  tfs_object *o = NULL;
  int64_t n = 0;
  TRY(tfs_int_in(c, 1, &n));
  TRY(tfs_new_list(c, &o));
  int status = tfs_set_element_shape(c, o, 0);
  bool reserved = c->unit->host->arg == 1;
  unsigned type = 0;
  base_slice attr = tf_attr_or_default(c->node->op, c->node->def->attrs, BASE_SLICE("element_dtype"));
  if (!reserved) o->limit = n;
  if (status == 0 && tf_attr_type(attr, &type) && type == TF_VARIANT)
    status = tfs_variants_new(c, o, reserved ? n : 0);
  else if (status == 0 && reserved)
    status = tfs_resize(c, o, n);
  return tfs_give_list(c, o, status);
}

/* Rows are views of v, which they hold. */
static int tfs_fill_list(tfs_call *c, tfs_object *o, interp_value *v) {
  assert(v->rank > 0);
  TRY(tfs_resize(c, o, v->dims[0]));
  for (int64_t i = 0; i < v->dims[0]; i++) {
    interp_value *row = tfs_row(c, v, i);
    if (!row) return tfs_oom(c);
    int status = tfs_put_element(c, o, i, row);
    interp_release(row);
    if (status) return status;
  }
  return 0;
}

/* TensorListFromTensor: a list of rows. */
int tfs_host_list_from(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, 0, &v));
  if (v->rank == 0) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "a scalar has no rows");
  TRY(tfs_new_list(c, &o));
  int status = tfs_set_element_shape(c, o, 1);
  if (status == 0) status = tfs_fill_list(c, o, v);
  return tfs_give_list(c, o, status);
}

/* TensorListStack: one tensor with a row for each element. */
int tfs_host_list_stack(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  TRY(tfs_stack_elements(c, o, NULL, 1, &v));
  return tfs_give_tensor(c, 0, v);
}

/* TensorListGather: the shape is input 2. */
int tfs_host_list_gather(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *indices = NULL, *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  TRY(tfs_tensor_in(c, 1, &indices));
  TRY(tfs_stack_elements(c, o, indices, 2, &v));
  return tfs_give_tensor(c, 0, v);
}

/* All other inputs are read before the list is taken from its place, since a failure in between would lose it. */
int tfs_host_list_set(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  int64_t i = 0;
  if (tfs_has_variants(c, 0)) return tfs_variants_set(c);
  TRY(tfs_int_in(c, 1, &i));
  TRY(tfs_tensor_in(c, 2, &v));
  TRY(tfs_own_list(c, &o));
  int status = 0;
  if (i >= o->n && tfs_attr_bool(c, "resize_if_index_out_of_bounds")) status = tfs_resize(c, o, i + 1);
  if (status == 0) status = tfs_put_element(c, o, i, v);
  return tfs_give_list(c, o, status);
}

/* TensorListGetItem; later versions say a shape besides. */
int tfs_host_list_get(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  int64_t i = 0;
  if (tfs_has_variants(c, 0)) return tfs_variants_get(c);
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  TRY(tfs_int_in(c, 1, &i));
  TRY(tfs_element(c, o, i, c->n_in > 2 ? 2 : -1, &v));
  return tfs_give_tensor(c, 0, v);
}

/* A list with a limit can be full. */
int tfs_host_list_push(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  if (tfs_has_variants(c, 0)) return tfs_variants_push(c);
  TRY(tfs_tensor_in(c, 1, &v));
  TRY(tfs_own_list(c, &o));
  int status = o->limit >= 0 && o->n >= o->limit
                   ? tfs_fail(c, XLAC_E_EVAL, "the list is full: it has %u elements", o->n)
                   : tfs_resize(c, o, (int64_t)o->n + 1);
  if (status == 0) status = tfs_put_element(c, o, (int64_t)o->n - 1, v);
  return tfs_give_list(c, o, status);
}

/* Outputs: the list, and what was its last element. */
int tfs_host_list_pop(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  if (tfs_has_variants(c, 0)) return tfs_variants_pop(c);
  TRY(tfs_own_list(c, &o));
  int status = o->n == 0 ? tfs_fail(c, XLAC_E_EVAL, "the list is empty")
                         : tfs_element(c, o, (int64_t)o->n - 1, c->n_in > 1 ? 1 : -1, &v);
  if (status == 0) status = tfs_resize(c, o, (int64_t)o->n - 1);
  if (status == 0) status = tfs_give_tensor(c, 1, v);
  return tfs_give_list(c, o, status);
}

/* Elements beyond are dropped, new ones are unwritten. */
int tfs_host_list_resize(tfs_call *c) {
  tfs_object *o = NULL;
  int64_t n = 0;
  TRY(tfs_int_in(c, 1, &n));
  TRY(tfs_own_list(c, &o));
  return tfs_give_list(c, o, tfs_resize(c, o, n));
}

/* -1, a scalar, where nothing is known. */
int tfs_host_list_shape(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  if (!o->rank_known) return tfs_give_int(c, 0, -1);
  base_dtype type = BASE_DTYPE_INVALID;
  TRY(tfs_index_type(c, 0, &type));
  int64_t n = o->rank;
  interp_value *v = tfs_new_tensor(c->alloc, type, 1, &n);
  for (uint32_t d = 0; v && d < o->rank; d++)
    base_store_i64(type, (char *)v->data + d * base_dtype_bytes(type), o->dims[d]);
  return tfs_give_tensor(c, 0, v);
}

/* --- zeros and sums of lists, which gradients of loops need --- */

/* New arrays: the elements may be held elsewhere. */
int tfs_host_list_zeros(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(tfs_own_list(c, &o));
  for (uint32_t i = 0; i < o->n; i++) {
    if (!o->items[i]) continue;
    interp_value *v = tfs_new_tensor(c->alloc, (base_dtype)o->items[i]->dtype, o->items[i]->rank, o->items[i]->dims);
    if (!v) return tfs_give_list(c, o, tfs_oom(c));
    if (v->count) memset(v->data, 0, interp_bytes(v));
    interp_release(o->items[i]);
    o->items[i] = v;
  }
  return tfs_give_object(c, 0, o);
}

/* Element by element, over all inputs; an element that one list lacks counts as zero. */
int tfs_host_list_sum(tfs_call *c) {
  tfs_object *o = NULL, *other = NULL;
  TRY(tfs_own_list(c, &o));
  int status = 0;
  for (uint32_t k = 1; k < c->n_in && status == 0; k++) {
    status = tfs_object_in(c, k, TFS_LIST, &other);
    if (status == 0 && other->n != o->n) status = tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "lists of different lengths");
    for (uint32_t i = 0; status == 0 && i < o->n; i++) status = tfs_add_to_element(c, o, i, other->items[i]);
  }
  return tfs_give_list(c, o, status);
}
