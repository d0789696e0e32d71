/* Values of a running graph: tensors, which the interpreter's arrays are, and objects, with counts of their
 * holders. */
#include "value.h"

/* With one holder: who asked. */
tfs_object *tfs_object_new(base_alloc alloc, tfs_object_kind kind) {
  tfs_object *o = base_malloc(alloc, sizeof *o);
  if (!o) return NULL;
  memset(o, 0, sizeof *o);
  *o = (tfs_object){.refs = 1, .kind = (uint8_t)kind, .alloc = alloc, .limit = -1};
  return o;
}

/* Gradients of gradients nest as deep as a program has them: a few levels; optionals TFS_MOST_NESTED. */
void tfs_object_drop(tfs_object *o) {
  assert(!o || o->refs > 0);
  if (!o || --o->refs > 0) return;
  for (tfs_object *g = o->gradients, *other = NULL; g; g = other) {
    other = g->other;
    tfs_object_drop(g);
  }
  tfs_object_drop(o->like);
  for (uint32_t i = 0; i < o->n; i++) interp_release(o->items[i]);
  interp_release(o->value);
  for (uint32_t i = 0; i < o->n_parts; i++) tfs_drop(&o->parts[i]);
  base_free(o->alloc, o->parts);
  base_free(o->alloc, o->items);
  base_free(o->alloc, o->strings);
  base_free(o->alloc, o);
}

/* Twice is fine. */
void tfs_drop(tfs_value *v) {
  if (v->kind == TFS_TENSOR) interp_release(v->tensor);
  if (v->kind == TFS_OBJECT) tfs_object_drop(v->object);
  v->kind = TFS_NONE;
}

/* Grows by more than is asked for, so that pushing one element after another is linear. */
bool tfs_object_reserve(tfs_object *o, uint32_t n) {
  assert(o->n <= o->cap);
  size_t need = (size_t)o->n + n;
  return need <= o->cap || base_vec_grow(o->alloc, (void **)&o->items, &o->cap, sizeof *o->items, need);
}

/* Not cleared. The sizes must have been checked (tfs_check_dims). */
interp_value *tfs_new_tensor(base_alloc alloc, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  interp_ctx ctx = {.options = {.alloc = alloc}};
  assert(dtype != BASE_DTYPE_INVALID);
  return interp_array(&ctx, dtype, rank, dims);
}

/* `data`: an element of that type. NULL when out of memory. */
interp_value *tfs_new_scalar(base_alloc alloc, base_dtype dtype, const void *data) {
  assert(data);
  interp_value *v = tfs_new_tensor(alloc, dtype, 0, NULL);
  if (v) memcpy(v->data, data, base_dtype_bytes(dtype));
  return v;
}

/* Dense, as all arrays here. NULL when out of memory. */
interp_value *tfs_copy_tensor(base_alloc alloc, const interp_value *v) {
  assert(v);
  interp_value *copy = tfs_new_tensor(alloc, (base_dtype)v->dtype, v->rank, v->dims);
  if (copy && v->count) memcpy(copy->data, v->data, interp_bytes(v));
  return copy;
}

/* A view is the sole one only where nobody else holds the array behind it. Acquire: what another thread did with
 * it, before it let go, is over. */
bool tfs_is_sole(const interp_value *v) {
  assert(v);
  if (tfs_is_lent(v) || atomic_load_explicit(&v->refs, memory_order_acquire) != 1) return false;
  return !v->base || atomic_load_explicit(&v->base->refs, memory_order_acquire) == 1;
}

/* NULL when out of memory. */
interp_value *tfs_reshaped(base_alloc alloc, interp_value *v, uint32_t rank, const int64_t *dims) {
  assert(v);
  interp_ctx ctx = {.options = {.alloc = alloc}};
  return interp_view(&ctx, v, (base_dtype)v->dtype, rank, dims);
}
