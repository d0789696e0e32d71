/* What host ops share: their inputs, outputs, attributes, errors. Nothing about a node is taken on trust but the
 * number of its inputs and outputs, which the import has checked against the op's definition: of which kind a
 * value is, each op asks. */
#include <stdio.h>

#include "../../lower/tensor.h"
#include "../run.h"

/* A search by name, once for each node when a program is made. */
const tfs_host_op *tfs_host_find(const tf_node *node) {
  assert(node->op);
  static const struct {
    tfs_host_op row;
    unsigned only; /* where not 0: only where this type comes in or out */
  } rows[] = {
#define HOST(op, fn, arg) {{#op, fn, arg}, 0},
#define HOST_VARIANT(op, fn, arg) {{#op, fn, arg}, TF_VARIANT},
#define HOST_STRING(op, fn, arg) {{#op, fn, arg}, TF_STRING},
#include "../host.def"
#undef HOST
#undef HOST_VARIANT
#undef HOST_STRING
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (tf_node_is(node, rows[i].row.op) && (!rows[i].only || tf_has_type(node, rows[i].only))) return &rows[i].row;
  return NULL;
}

/* The message is put together first: its arguments may point into the record. */
int tfs_fail(tfs_call *c, base_code code, const char *format, ...) {
  assert(code != 0);
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail(c->err, code, "%s", what);
}

int tfs_oom(tfs_call *c) {
  assert(c->run);
  return base_oom(c->err, "running a graph");
}

/* --- inputs --- */

/* Borrowed. A variable counts as its value: graphs of the first TensorFlow pass references where tensors are
 * meant. */
int tfs_tensor_in(tfs_call *c, uint32_t i, interp_value **out) {
  if (i >= c->n_in) return tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "input %u is missing", i);
  const tfs_value *v = &c->in[i];
  *out = v->kind == TFS_TENSOR ? v->tensor : tfs_is_object(v, TFS_VARIABLE) ? v->object->value : NULL;
  if (*out) return 0;
  if (tfs_is_object(v, TFS_VARIABLE))
    return tfs_fail(c, XLAC_E_EVAL, "variable '%.100s' has no value yet", v->object->name->s);
  return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "input %u is not a tensor of numbers", i);
}

/* Sizes, indices and numbers of outputs come this way. */
int tfs_int_in(tfs_call *c, uint32_t i, int64_t *out) {
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, i, &v));
  if (v->count != 1 || !base_dtype_is_integer((base_dtype)v->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u is not a single integer", i);
  *out = tfs_int_at(v, 0);
  return 0;
}

/* In the order of tfs_object_kind. */
int tfs_object_in(tfs_call *c, uint32_t i, tfs_object_kind kind, tfs_object **out) {
  assert(kind <= TFS_OPTIONAL);
  static const char *const kinds[] = {"a variable",    "strings", "a TensorList",
                                      "a TensorArray", "a stack", "an optional"};
  if (i >= c->n_in || !tfs_is_object(&c->in[i], kind))
    return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "input %u is not %s", i, kinds[kind]);
  *out = c->in[i].object;
  return 0;
}

/* Of what is not a scalar: whether it has elements. That is Python's rule, and TensorFlow's. */
int tfs_is_true(tfs_call *c, const tfs_value *v, bool *out) {
  const interp_value *t = v->kind == TFS_TENSOR ? v->tensor : tfs_is_object(v, TFS_VARIABLE) ? v->object->value : NULL;
  if (!t) return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "the condition is not a tensor of numbers");
  *out = t->rank > 0 ? t->count > 0 : base_load_f64((base_dtype)t->dtype, t->data) != 0;
  return 0;
}

/* --- outputs --- */

/* An output that nobody gets is released. */
int tfs_give_tensor(tfs_call *c, uint32_t i, interp_value *v) {
  if (!v) return tfs_oom(c);
  if (i < c->n_out)
    c->out[i] = tfs_of_tensor(v);
  else
    interp_release(v);
  return 0;
}

int tfs_give_object(tfs_call *c, uint32_t i, tfs_object *o) {
  if (!o) return tfs_oom(c);
  if (i < c->n_out)
    c->out[i] = tfs_of_object(o);
  else
    tfs_object_drop(o);
  return 0;
}

/* References count as what they refer to. */
base_dtype tfs_out_dtype(const tfs_call *c, uint32_t i) {
  return i < c->n_out ? tfl_dtype_of(tf_base_type(tf_output_type(c->node, i))) : BASE_DTYPE_INVALID;
}

/* Ops that count or say places let the graph choose s32 or s64. */
int tfs_index_type(tfs_call *c, uint32_t i, base_dtype *out) {
  *out = tfs_out_dtype(c, i);
  if (i >= c->n_out) *out = XLAC_S32; /* nobody gets it */
  return base_dtype_is_integer(*out) ? 0 : tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "output %u is of no integer type", i);
}

/* Cut off where the type is narrower. */
int tfs_give_int(tfs_call *c, uint32_t i, int64_t v) {
  base_dtype type = BASE_DTYPE_INVALID;
  TRY(tfs_index_type(c, i, &type));
  interp_value *t = tfs_new_tensor(c->alloc, type, 0, NULL);
  if (t) base_store_i64((base_dtype)t->dtype, t->data, v);
  return tfs_give_tensor(c, i, t);
}

/* --- attributes --- */

/* The attribute's text, the op's default, or nothing. */
static base_slice tfs_attr(const tfs_call *c, const char *name) {
  assert(name);
  return tf_attr_or_default(c->node->op, c->node->def->attrs, base_slice_of(name));
}

/* An attribute of another kind counts as absent: the import has checked attributes against the op's definition. */
int64_t tfs_attr_int(const tfs_call *c, const char *name, int64_t otherwise) {
  int64_t v = otherwise;
  return tf_attr_int(tfs_attr(c, name), &v) ? v : otherwise;
}

bool tfs_attr_bool(const tfs_call *c, const char *name) {
  bool v = false;
  return tf_attr_bool(tfs_attr(c, name), &v) && v;
}

/* Borrowed from the graph; p is never NULL. */
base_slice tfs_attr_str(const tfs_call *c, const char *name) {
  base_slice v = {"", 0};
  if (!tf_attr_string(tfs_attr(c, name), &v) || !v.p) v = (base_slice){"", 0};
  return v;
}

base_dtype tfs_attr_dtype(const tfs_call *c, const char *name) {
  unsigned type = 0;
  return tf_attr_type(tfs_attr(c, name), &type) ? tfl_dtype_of(type) : BASE_DTYPE_INVALID;
}

/* --- shapes --- */

/* A scalar is one size. */
int tfs_dims_in(tfs_call *c, uint32_t i, uint32_t *rank, int64_t *dims) {
  assert(rank && dims);
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, i, &v));
  if (v->rank > 1 || !base_dtype_is_integer((base_dtype)v->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u is not a list of integers", i);
  if (v->count > IR_MAX_RANK) return tfs_fail(c, XLAC_E_TOO_LARGE, "a shape of %lld sizes", (long long)v->count);
  *rank = (uint32_t)v->count;
  for (int64_t k = 0; k < v->count; k++) dims[k] = tfs_int_at(v, k);
  return 0;
}

/* Sizes of 0 are left out of the product, so that it bounds each part of a shape. */
int tfs_check_dims(tfs_call *c, uint32_t rank, const int64_t *dims) {
  assert(rank <= IR_MAX_RANK + 1);
  int64_t count = 1;
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] < 0) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "size %lld is negative", (long long)dims[d]);
    if (dims[d] && !base_mul_i64(count, dims[d], &count))
      return tfs_fail(c, XLAC_E_TOO_LARGE, "the shape is too large");
  }
  return 0;
}

/* --- for messages --- */

/* Numbers as C prints them. */
static void tfs_put_one(base_text *t, const interp_value *v, int64_t i) {
  assert(i >= 0 && i < v->count);
  const char *p = (const char *)v->data + (size_t)i * base_dtype_bytes((base_dtype)v->dtype);
  if (base_dtype_is_float((base_dtype)v->dtype))
    base_putf(t, "%g", base_load_f64((base_dtype)v->dtype, p));
  else
    base_putf(t, "%lld", (long long)base_load_i64((base_dtype)v->dtype, p));
}

/* A list however many dimensions there are, as Assert and Print of TensorFlow write it. */
void tfs_put_summary(base_text *t, const tfs_value *v, int64_t most) {
  assert(t && v);
  const interp_value *a = v->kind == TFS_TENSOR ? v->tensor : tfs_is_object(v, TFS_VARIABLE) ? v->object->value : NULL;
  bool strings = tfs_is_object(v, TFS_STRINGS);
  int64_t n = a ? a->count : strings ? v->object->n_strings : 0;
  if (most < 0) most = n;
  base_putc(t, '[');
  for (int64_t i = 0; i < n && i < most; i++) {
    if (i) base_putc(t, ' ');
    if (a)
      tfs_put_one(t, a, i);
    else
      base_put(t, v->object->strings[i].p, v->object->strings[i].n);
  }
  if (n > most) BASE_PUT(t, "...");
  base_putc(t, ']');
}
