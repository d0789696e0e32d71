/* TensorArrays and stacks: things with a state, that live as long as the call. Their handles are the objects
 * themselves; what a call fails in the midst of goes with it, so nothing needs to be put back. */
#include "../list.h"

/* --- stacks --- */

/* Any number of elements: max_size is a hint only. */
int tfs_host_stack_new(tfs_call *c) {
  tfs_object *o = tfs_object_new(c->alloc, TFS_STACK);
  if (!o) return tfs_oom(c);
  o->dtype = (uint8_t)tfs_attr_dtype(c, "elem_type");
  return tfs_give_object(c, 0, o);
}

/* The value is the output, too, so that what follows can wait for it. */
int tfs_host_stack_push(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_STACK, &o));
  TRY(tfs_tensor_in(c, 1, &v));
  TRY(tfs_resize(c, o, (int64_t)o->n + 1));
  TRY(tfs_put_element(c, o, (int64_t)o->n - 1, v));
  return tfs_give_tensor(c, 0, interp_retain(v));
}

/* *v is held by the stack and once more by tfs_element; one of the two holders is given away. */
int tfs_host_stack_pop(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_STACK, &o));
  if (o->n == 0) return tfs_fail(c, XLAC_E_EVAL, "the stack is empty");
  TRY(tfs_element(c, o, (int64_t)o->n - 1, -1, &v));
  o->n--;
  interp_release(v); /* the stack's own reference is the caller's now */
  return tfs_give_tensor(c, 0, v);
}

/* --- TensorArrays: the flow is a scalar that only orders --- */

/* Its value says nothing: 0. */
static int tfs_give_flow(tfs_call *c, uint32_t k) {
  float zero = 0;
  return tfs_give_tensor(c, k, tfs_new_scalar(c->alloc, XLAC_F32, &zero));
}

/* All elements are unwritten. */
int tfs_host_array_new(tfs_call *c) {
  int64_t n = 0;
  TRY(tfs_int_in(c, 0, &n));
  tfs_object *o = tfs_object_new(c->alloc, TFS_ARRAY);
  if (!o) return tfs_oom(c);
  o->dtype = (uint8_t)tfs_attr_dtype(c, "dtype");
  o->grows = tfs_attr_bool(c, "dynamic_size");
  int status = tfs_resize(c, o, n);
  if (status) {
    tfs_object_drop(o);
    return status;
  }
  TRY(tfs_give_object(c, 0, o));
  return tfs_give_flow(c, 1);
}

/* One way for all ops that write. Arrays of gradients add to what is there. */
static int tfs_write_array(tfs_call *c, tfs_object *o, int64_t i, interp_value *v) {
  assert(o->kind == TFS_ARRAY);
  if (i >= o->n && o->grows) TRY(tfs_resize(c, o, i + 1));
  return o->sums ? tfs_add_to_element(c, o, i, v) : tfs_put_element(c, o, i, v);
}

/* Input 3, the flow, orders and is not looked at. */
int tfs_host_array_write(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  int64_t i = 0;
  TRY(tfs_object_in(c, 0, TFS_ARRAY, &o));
  TRY(tfs_int_in(c, 1, &i));
  TRY(tfs_tensor_in(c, 2, &v));
  TRY(tfs_write_array(c, o, i, v));
  return tfs_give_flow(c, 0);
}

/* An element that was never written reads as zeros where its shape is known. */
int tfs_host_array_read(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *v = NULL;
  int64_t i = 0;
  TRY(tfs_object_in(c, 0, TFS_ARRAY, &o));
  TRY(tfs_int_in(c, 1, &i));
  TRY(tfs_element(c, o, i, -1, &v));
  return tfs_give_tensor(c, 0, v);
}

/* How many elements an object of the kind the row says has. */
int tfs_host_count(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, (tfs_object_kind)c->unit->host->arg, &o));
  return tfs_give_int(c, 0, o->of_variants ? o->n_parts : o->n);
}

/* TensorArrayGather: rows for these indices, in their order. */
int tfs_host_array_gather(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *indices = NULL, *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_ARRAY, &o));
  TRY(tfs_tensor_in(c, 1, &indices));
  TRY(tfs_stack_elements(c, o, indices, -1, &v));
  return tfs_give_tensor(c, 0, v);
}

/* Rows are views; the array holds them, and so the whole value, until they are written anew. */
int tfs_host_array_scatter(tfs_call *c) {
  tfs_object *o = NULL;
  interp_value *indices = NULL, *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_ARRAY, &o));
  TRY(tfs_tensor_in(c, 1, &indices));
  TRY(tfs_tensor_in(c, 2, &v));
  if (v->rank == 0 || v->dims[0] != indices->count)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "the value needs a row for each of %lld indices",
                    (long long)indices->count);
  for (int64_t k = 0; k < indices->count; k++) {
    interp_value *row = tfs_row(c, v, k);
    if (!row) return tfs_oom(c);
    int status = tfs_write_array(c, o, tfs_int_at(indices, k), row);
    interp_release(row);
    if (status) return status;
  }
  return tfs_give_flow(c, 0);
}

/* The array of gradients of an array, one for each source; made when first asked for. `like` is a copy of the
 * array as it is now: gradients that nobody writes are zeros of its elements' shapes. */
int tfs_host_array_gradient(tfs_call *c) {
  tfs_object *o = NULL, *g = NULL;
  base_slice source = tfs_attr_str(c, "source");
  TRY(tfs_object_in(c, 0, TFS_ARRAY, &o));
  for (g = o->gradients; g; g = g->other)
    if (g->source.n == source.n && memcmp(g->source.p, source.p, source.n) == 0) break;
  if (!g) {
    if (!(g = tfs_copy_list(o))) return tfs_oom(c);
    int status = (g->like = tfs_copy_list(o)) ? 0 : tfs_oom(c);
    if (status == 0) status = tfs_resize(c, g, 0);
    if (status == 0) status = tfs_resize(c, g, o->n);
    if (status) {
      tfs_object_drop(g);
      return status;
    }
    g->sums = true;
    g->source = source;
    g->other = o->gradients;
    o->gradients = g;
  }
  g->refs++;
  TRY(tfs_give_object(c, 0, g));
  return tfs_give_flow(c, 1);
}
