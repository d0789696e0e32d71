/* A node's attributes for the rows. */
#include "build.h"
#include "tensor.h"

static base_slice attr_value_of(tfl_op *x, const char *name) {
  base_slice v = tf_attr_or_default(x->node->op, x->node->def->attrs, base_slice_of(name));
  if (!v.p) tfl_fail(x, "attribute '%s' is missing", name);
  return v;
}

static void attr_wrong(tfl_op *x, const char *name, const char *kind) {
  tfl_fail(x, "attribute '%s' is not %s", name, kind);
}

int64_t tfl_attr_int(tfl_op *x, const char *name) {
  int64_t v = 0;
  base_slice value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_int(value, &v)) attr_wrong(x, name, "an integer");
  return v;
}

bool tfl_attr_bool(tfl_op *x, const char *name) {
  bool v = false;
  base_slice value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_bool(value, &v)) attr_wrong(x, name, "a truth value");
  return v;
}

float tfl_attr_float(tfl_op *x, const char *name) {
  float v = 0;
  base_slice value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_float(value, &v)) attr_wrong(x, name, "a number");
  return v;
}

base_slice tfl_attr_str(tfl_op *x, const char *name) {
  base_slice v = {"", 0}, value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_string(value, &v)) attr_wrong(x, name, "a string");
  return v;
}

bool tfl_attr_is(tfl_op *x, const char *name, const char *word) {
  return base_slice_is(tfl_attr_str(x, name), word);
}

base_dtype tfl_attr_dtype(tfl_op *x, const char *name) {
  unsigned type = 0;
  base_slice value = attr_value_of(x, name);
  if (value.p && !tf_attr_type(value, &type)) attr_wrong(x, name, "an element type");
  base_dtype t = tfl_dtype_of(type);
  if (value.p && t == BASE_DTYPE_INVALID && !x->status)
    tfl_fail(x, "attribute '%s' is %s: expected numbers or truth values", name, tf_type_word(type));
  return t;
}

/* Field 3 of the list: packed, or one by one. */
static uint32_t attr_list_ints(base_slice list, int64_t *out) {
  uint32_t n = 0;
  const char *at = list.p;
  for (tf_raw_field f; tf_raw_next(&at, list.p + list.n, &f);) {
    if (f.number != 3) continue;
    if (f.wire == 0 && out) out[n] = (int64_t)f.value;
    if (f.wire == 0) n++;
    uint64_t v = 0;
    for (const char *p = f.bytes.p; f.wire == 2 && tfl_next_packed(&p, f.bytes.p + f.bytes.n, 0, &v); n++)
      if (out) out[n] = (int64_t)v;
  }
  return n;
}

int tfl_attr_ints(tfl_op *x, const char *name, const int64_t **v, uint32_t *n) {
  base_slice value = attr_value_of(x, name);
  tf_raw_field f;
  *v = NULL;
  *n = 0;
  if (x->status) return x->status;
  if (!tf_raw_find(value, 1, &f) || f.wire != 2) return value.n == 0 ? 0 : (attr_wrong(x, name, "a list"), x->status);
  *n = attr_list_ints(f.bytes, NULL);
  int64_t *list = BASE_ARRAY(x->arena, int64_t, (size_t)*n + 1);
  if (!list) return x->status = base_oom(x->err, "lowering");
  attr_list_ints(f.bytes, list);
  *v = list;
  return 0;
}

int tfl_attr_shape(tfl_op *x, const char *name, bool *known, const int64_t **dims, uint32_t *rank) {
  base_slice value = attr_value_of(x, name), shape = {NULL, 0};
  *known = false;
  *rank = 0;
  int64_t *list = BASE_ARRAY(x->arena, int64_t, TFL_MOST_DIMS);
  if (!list) return x->status = base_oom(x->err, "lowering");
  *dims = list;
  if (x->status || value.n == 0) return x->status;
  if (!tf_attr_shape(value, &shape)) attr_wrong(x, name, "a shape");
  if (x->status) return x->status;
  return x->status = tfl_read_shape(shape, known, rank, list, x->err);
}
