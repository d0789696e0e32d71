/* Host ops on variables: their values are held, not copied. */
#include "../../lower/tensor.h"
#include "../run.h"

/* By shared_name, or the node's own, and its container. The handle is kept by the unit, as one more holder. */
static int tfs_name_variable(tfs_call *c) {
  assert(c->unit->constant.kind == TFS_NONE);
  tfs_session *s = tfs_context_of(c->run)->session;
  base_slice shared = tfs_attr_str(c, "shared_name"), container = tfs_attr_str(c, "container");
  unsigned type = 0;
  tfs_object *v = NULL;
  base_text name;
  (void)tf_attr_type(tf_attr_find(c->node->def->attrs, "dtype"), &type);
  if (shared.n == 0) shared = (base_slice){c->node->name->s, c->node->name->n};
  base_text_init(&name, c->alloc);
  base_put(&name, container.p, container.n);
  if (container.n) base_putc(&name, '/');
  base_put(&name, shared.p, shared.n);
  const base_istr *key = name.failed ? NULL : base_intern(&s->pass->def->strings, name.s, name.n);
  base_text_free(&name);
  if (!key) return tfs_oom(c);
  TRY(tfs_find_variable(s, key, type, &v, c->err));
  v->refs++;
  c->unit->constant = tfs_of_object(v);
  return 0;
}

/* The handle, whether there is a value or not. */
int tfs_host_variable(tfs_call *c) {
  if (c->unit->constant.kind == TFS_NONE) TRY(tfs_name_variable(c));
  c->out[0] = tfs_keep(c->unit->constant);
  return 0;
}

/* The value is held: a later assignment makes a new one instead of changing it. */
int tfs_host_read(tfs_call *c) {
  tfs_object *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_VARIABLE, &v));
  if (!v->value)
    return base_hint(c->err, tfs_fail(c, XLAC_E_EVAL, "variable '%.100s' has no value yet", v->name->s),
                     "run what initialises it first, or set it in variables");
  return tfs_give_tensor(c, 0, interp_retain(v->value));
}

/* The value is held, unless it is the caller's memory. */
static int tfs_store(tfs_call *c, tfs_object *v, interp_value *value) {
  assert(v->kind == TFS_VARIABLE);
  TRY(tfs_check_variable(v, value, c->err));
  interp_value *kept = tfs_is_lent(value) ? tfs_copy_tensor(c->alloc, value) : interp_retain(value);
  if (!kept) return tfs_oom(c);
  return tfs_set_variable(tfs_context_of(c->run)->session, v, kept, c->err);
}

/* A variable by handle or reference; the reference is the output, too. */
static int tfs_give_reference(tfs_call *c, tfs_object *v) {
  assert(v->kind == TFS_VARIABLE);
  if (c->n_out == 0) return 0;
  v->refs++;
  return tfs_give_object(c, 0, v);
}

/* Any shape: validate_shape is not looked at. */
int tfs_host_assign(tfs_call *c) {
  tfs_object *v = NULL;
  interp_value *value = NULL;
  TRY(tfs_object_in(c, 0, TFS_VARIABLE, &v));
  TRY(tfs_tensor_in(c, 1, &value));
  TRY(tfs_store(c, v, value));
  return tfs_give_reference(c, v);
}

/* Integers wrap around. */
static void tfs_add_element(base_dtype type, char *p, const char *a, const char *b, int32_t sign) {
  assert(sign == 1 || sign == -1);
  if (base_dtype_is_float(type))
    base_store_f64(type, p, base_load_f64(type, a) + sign * base_load_f64(type, b));
  else
    base_store_i64(type, p, (int64_t)((uint64_t)base_load_i64(type, a) + (uint64_t)(sign * base_load_i64(type, b))));
}

/* AssignAdd, AssignSub: the row's arg is the sign. A new array, as others may hold the old value. */
int tfs_host_assign_sum(tfs_call *c) {
  tfs_object *v = NULL;
  interp_value *by = NULL, *old = NULL;
  TRY(tfs_object_in(c, 0, TFS_VARIABLE, &v));
  TRY(tfs_tensor_in(c, 0, &old));
  TRY(tfs_tensor_in(c, 1, &by));
  bool fits = old->dtype == by->dtype && old->count == by->count && !base_dtype_is_complex((base_dtype)old->dtype);
  if (!fits) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "variable '%.100s' has another shape or type", v->name->s);
  size_t size = base_dtype_bytes((base_dtype)old->dtype);
  interp_value *sum = tfs_new_tensor(c->alloc, (base_dtype)old->dtype, old->rank, old->dims);
  if (!sum) return tfs_oom(c);
  for (int64_t i = 0; i < sum->count; i++)
    tfs_add_element((base_dtype)old->dtype, (char *)sum->data + (size_t)i * size,
                    (const char *)old->data + (size_t)i * size, (const char *)by->data + (size_t)i * size,
                    c->unit->host->arg);
  TRY(tfs_set_variable(tfs_context_of(c->run)->session, v, sum, c->err));
  return tfs_give_reference(c, v);
}

/* Of handles and of references. */
int tfs_host_is_initialized(tfs_call *c) {
  tfs_object *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_VARIABLE, &v));
  bool yes = v->value != NULL;
  return tfs_give_tensor(c, 0, tfs_new_scalar(c->alloc, XLAC_PRED, &yes));
}

/* The variable stays, without a value. */
int tfs_host_destroy(tfs_call *c) {
  tfs_object *v = NULL;
  TRY(tfs_object_in(c, 0, TFS_VARIABLE, &v));
  return tfs_set_variable(tfs_context_of(c->run)->session, v, NULL, c->err);
}
