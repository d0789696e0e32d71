/* Lists whose elements are variants themselves: lists, optionals. What gradients of conditionals in loops keep. */
#include "../list.h"

enum { TFS_MOST_NESTED_LISTS = 64 };

/* False for an input that is not there. */
bool tfs_has_variants(const tfs_call *c, uint32_t i) {
  return i < c->n_in && tfs_is_object(&c->in[i], TFS_LIST) && c->in[i].object->of_variants;
}

/* n_parts are in use; `cap` is that of parts here, since such a list has no items. */
static int variants_resize(tfs_call *c, tfs_object *o, int64_t n) {
  assert(o->of_variants);
  if (n < 0 || n > (1 << 26)) return tfs_fail(c, XLAC_E_TOO_LARGE, "a list of %lld elements", (long long)n);
  while (o->n_parts > n) tfs_drop(&o->parts[--o->n_parts]);
  if (n > o->cap && !base_vec_grow(o->alloc, (void **)&o->parts, &o->cap, sizeof *o->parts, (size_t)n))
    return tfs_oom(c);
  while (o->n_parts < n) o->parts[o->n_parts++] = (tfs_value){.kind = TFS_NONE};
  return 0;
}

/* A list that only this call holds: input 0, or a copy of it. The copy holds the same elements. A failure leaves
 * input 0 where it was. */
static int variants_own(tfs_call *c, tfs_object **out) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  if (o->refs == 1) {
    c->in[0].kind = TFS_NONE;
    *out = o;
    return 0;
  }
  tfs_object *copy = tfs_object_new(o->alloc, TFS_LIST);
  if (!copy) return tfs_oom(c);
  copy->of_variants = true;
  copy->limit = o->limit;
  copy->nested = o->nested;
  int status = variants_resize(c, copy, o->n_parts);
  for (uint32_t i = 0; i < o->n_parts && status == 0; i++) copy->parts[i] = tfs_keep(o->parts[i]);
  if (status == 0)
    *out = copy;
  else
    tfs_object_drop(copy);
  return status;
}

/* Nesting is bounded, because freeing follows it. */
static int variants_put(tfs_call *c, tfs_object *o, int64_t i, const tfs_value *v) {
  assert(o->of_variants);
  uint32_t nested = v->kind == TFS_OBJECT ? v->object->nested + 1 : 1;
  if (i < 0 || i >= o->n_parts)
    return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of a list of %u", (long long)i, o->n_parts);
  if (nested > TFS_MOST_NESTED_LISTS)
    return tfs_fail(c, XLAC_E_TOO_DEEP, "lists nest deeper than %d", TFS_MOST_NESTED_LISTS);
  if (nested > o->nested) o->nested = nested;
  tfs_value kept = tfs_keep(*v);
  tfs_drop(&o->parts[i]);
  o->parts[i] = kept;
  return 0;
}

/* Gives o as output 0, or frees it after a failure. */
static int variants_give(tfs_call *c, tfs_object *o, int status) {
  assert(o);
  if (status == 0) return tfs_give_object(c, 0, o);
  tfs_object_drop(o);
  return status;
}

/* A new list of n elements, none of them there yet. */
int tfs_variants_new(tfs_call *c, tfs_object *o, int64_t n) {
  o->of_variants = true;
  return variants_resize(c, o, n);
}

/* Input 1 may be the list itself: then somebody else holds it, and o is a copy. */
int tfs_variants_push(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(variants_own(c, &o));
  if (o->limit >= 0 && o->n_parts >= o->limit)
    return variants_give(c, o, tfs_fail(c, XLAC_E_EVAL, "the list is full: it has %u elements", o->n_parts));
  int status = variants_resize(c, o, (int64_t)o->n_parts + 1);
  if (status == 0) status = variants_put(c, o, (int64_t)o->n_parts - 1, &c->in[1]);
  return variants_give(c, o, status);
}

/* The element moves out of the list. */
int tfs_variants_pop(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(variants_own(c, &o));
  if (o->n_parts == 0) return variants_give(c, o, tfs_fail(c, XLAC_E_EVAL, "the list is empty"));
  tfs_value last = o->parts[--o->n_parts];
  if (c->n_out > 1)
    c->out[1] = last;
  else
    tfs_drop(&last);
  return variants_give(c, o, 0);
}

/* The inputs are looked at before the list is taken from its place. */
int tfs_variants_set(tfs_call *c) {
  tfs_object *o = NULL;
  int64_t i = 0;
  TRY(tfs_int_in(c, 1, &i));
  if (c->n_in < 3) return tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "input 2 is missing");
  TRY(variants_own(c, &o));
  return variants_give(c, o, variants_put(c, o, i, &c->in[2]));
}

/* The element stays in the list. */
int tfs_variants_get(tfs_call *c) {
  tfs_object *o = NULL;
  int64_t i = 0;
  TRY(tfs_object_in(c, 0, TFS_LIST, &o));
  TRY(tfs_int_in(c, 1, &i));
  if (i < 0 || i >= o->n_parts || o->parts[i].kind == TFS_NONE)
    return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "element %lld of a list of %u is not there", (long long)i, o->n_parts);
  c->out[0] = tfs_keep(o->parts[i]);
  return 0;
}
