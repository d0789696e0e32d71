/* What the functions of rows ask for: inputs, outputs and attributes of the node being lowered. The first failure
 * is kept in x->status, with its message; later ones are silent, since they follow from it. */
#include <stdio.h>

#include "build.h"
#include "tensor.h"

/* --- attributes --- */

/* The node's value, or the op's default. As the bytes of an AttrValue; p NULL after a failure. */
static base_slice attr_value_of(tfl_op *x, const char *name) {
  assert(x->node->op != NULL);
  base_slice v = tf_attr_or_default(x->node->op, x->node->def->attrs, base_slice_of(name));
  if (!v.p) tfl_fail(x, "attribute '%s' is missing", name);
  return v;
}

/* The attribute holds another alternative of AttrValue. */
static void attr_wrong(tfl_op *x, const char *name, const char *kind) {
  tfl_fail(x, "attribute '%s' is not %s", name, kind);
}

/* 0 after a failure. An AttrValue of no bytes is a default value of its kind, as protocol buffers leave zeros out. */
int64_t tfl_attr_int(tfl_op *x, const char *name) {
  int64_t v = 0;
  base_slice value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_int(value, &v)) attr_wrong(x, name, "an integer");
  return v;
}

/* Each of these fails for an attribute that is missing or of another kind, and then gives a zero of its kind: rows
 * read all their attributes first, and ask x->status once. */
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

/* Borrowed from the graph. */
base_slice tfl_attr_str(tfl_op *x, const char *name) {
  base_slice v = {"", 0}, value = attr_value_of(x, name);
  if (value.p && value.n && !tf_attr_string(value, &v)) attr_wrong(x, name, "a string");
  return v;
}

bool tfl_attr_is(tfl_op *x, const char *name, const char *word) {
  assert(word);
  return base_slice_is(tfl_attr_str(x, name), word);
}

/* INVALID after a failure. */
base_dtype tfl_attr_dtype(tfl_op *x, const char *name) {
  unsigned type = 0;
  base_slice value = attr_value_of(x, name);
  if (value.p && !tf_attr_type(value, &type)) attr_wrong(x, name, "an element type");
  base_dtype t = tfl_dtype_of(type);
  if (value.p && t == BASE_DTYPE_INVALID && !x->status)
    tfl_fail(x, "attribute '%s' is %s: expected numbers or truth values", name, tf_type_word(type));
  return t;
}

/* Field 3 of the list: packed, or one by one. Counts where out is NULL. So it is called twice: to count, and to
 * fill what was allocated for the count. */
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

/* The list is in the arena; *v is NULL where it is empty. */
int tfl_attr_ints(tfl_op *x, const char *name, const int64_t **v, uint32_t *n) {
  assert(v && n);
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

/* *dims has room for TFL_MOST_DIMS whatever the rank. *known is false where the rank is not known; sizes may be
 * -1. */
int tfl_attr_shape(tfl_op *x, const char *name, bool *known, const int64_t **dims, uint32_t *rank) {
  assert(known && dims && rank);
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

/* --- inputs and outputs --- */

/* Fails with the node's name, and that of the function it is in. Where memory is out, values are missing for that
 * reason, and that is what is said. */
int tfl_fail(tfl_op *x, const char *format, ...) {
  assert(x->node && x->node->op);
  char what[400];
  va_list args;
  if (x->status) return x->status;
  if (x->rw->failed) return x->status = base_oom(x->err, "lowering"); /* what seems wrong is only missing */
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const base_istr *fn = x->frame->function;
  return x->status = base_fail_at(x->err, XLAC_E_LOWER, 0, 0, x->node->op->name->s, "node '%.100s'%s%.60s%s: %s",
                                  x->node->name->s, fn ? " of function '" : "", fn ? fn->s : "", fn ? "'" : "", what);
}

/* --- inputs --- */

/* For messages, by tfl_kind. */
static const char *value_kind_text(const tfl_value *v) {
  static const char *const texts[] = {"nothing", "a tensor", "a resource", "a list of tensors"};
  assert(v->kind < sizeof texts / sizeof *texts);
  return texts[v->kind];
}

/* Fails where input i is missing or of another kind. */
static bool value_must_be(tfl_op *x, uint32_t i, tfl_kind kind) {
  assert(kind <= TFL_LIST);
  const tfl_value expected = {.kind = (uint8_t)kind};
  if (i >= x->n_in) {
    tfl_fail(x, "it has %u inputs, needs number %u", x->n_in, i);
    return false;
  }
  if (x->in[i]->kind == kind) return true;
  tfl_fail(x, "input %u is %s, expected %s", i, value_kind_text(x->in[i]), value_kind_text(&expected));
  return false;
}

/* Small data becomes a constant where it is used, so that values known in one region need not be passed into
 * another. The attribute is made once and shared. Larger data is made once, by whoever first asked for it.
 * v->data: what is known of it. v->v may have no op then, if nobody has made a constant of it yet. */
ir_value tfl_use_value(tfl_build *b, tfl_value *v) {
  bool as_constant = v->data && (!v->v.op || v->type->count <= TFL_SMALL);
  assert(v->kind == TFL_TENSOR);
  if (!as_constant) return v->v;
  if (v->constant) {
    ir_value c = opt_make(&b->rw, IR_OP_CONSTANT, v->type, 0, NULL);
    opt_set(&b->rw, c, "value", v->constant);
    return c;
  }
  ir_value c = opt_constant_data(&b->rw, v->type, v->data, false);
  if (c.op) v->constant = ir_mattr_of(c.op, "value");
  return c;
}

/* Without op after a failure. */
ir_value tfl_use(tfl_op *x, tfl_value *v) {
  if (v->kind == TFL_TENSOR) return tfl_use_value(x->b, v);
  tfl_fail(x, "a value is %s, expected a tensor", value_kind_text(v));
  return (ir_value){NULL, 0};
}

/* Input i as a value to compute with. */
ir_value tfl_in(tfl_op *x, uint32_t i) {
  return value_must_be(x, i, TFL_TENSOR) ? tfl_use_value(x->b, x->in[i]) : (ir_value){NULL, 0};
}

/* The static type after a failure lets a row go on without checks. */
const ir_type *tfl_in_type(tfl_op *x, uint32_t i) {
  static const ir_type none = {.kind = IR_TYPE_TENSOR, .dtype = XLAC_F32, .count = 1};
  return value_must_be(x, i, TFL_TENSOR) ? x->in[i]->type : &none;
}

/* Handles are numbers of tfl_build.resources. NULL after a failure. */
tfl_resource *tfl_in_resource(tfl_op *x, uint32_t i) {
  return value_must_be(x, i, TFL_HANDLE) ? x->b->resources.items[x->in[i]->number] : NULL;
}

/* *data NULL where it is not known. Values that follow from known ones are worked out here, by the interpreter,
 * and kept. */
static int value_data(tfl_op *x, uint32_t i, const void **data) {
  assert(data);
  *data = NULL;
  if (!value_must_be(x, i, TFL_TENSOR)) return x->status;
  return x->status = tfl_evaluate(x->b, x->in[i], data);
}

/* needs_data tells the caller of tfl_lower that more constants might help: the session then runs the cluster's
 * parts. */
int tfl_data(tfl_op *x, uint32_t i, const void **data) {
  TRY(value_data(x, i, data));
  if (*data) return 0;
  x->b->out->needs_data = true;
  return tfl_fail(x, "input %u must be known when it is compiled: it depends on values", i);
}

/* As 64-bit integers in the arena, whatever the element type. */
static int value_ints(tfl_op *x, uint32_t i, const void *data, const int64_t **v, uint32_t *n) {
  assert(data != NULL);
  const ir_type *t = tfl_in_type(x, i);
  if (t->count > INT32_MAX) return tfl_fail(x, "input %u has %lld elements", i, (long long)t->count);
  int64_t *list = BASE_ARRAY(x->arena, int64_t, (size_t)t->count + 1);
  if (!list) return x->status = base_oom(x->err, "lowering");
  base_convert(XLAC_S64, list, (base_dtype)t->dtype, data, (size_t)t->count);
  *v = list;
  *n = (uint32_t)t->count;
  return 0;
}

/* Fails where the input is not known: shapes and axes must be. */
int tfl_ints(tfl_op *x, uint32_t i, const int64_t **v, uint32_t *n) {
  const void *data = NULL;
  *v = NULL;
  *n = 0;
  TRY(tfl_data(x, i, &data));
  if (!base_dtype_is_integer((base_dtype)tfl_in_type(x, i)->dtype))
    return tfl_fail(x, "input %u has elements of %s, expected integers", i,
                    base_dtype_of((base_dtype)tfl_in_type(x, i)->dtype)->text);
  return value_ints(x, i, data, v, n);
}

/* False, and no failure, where it is not known. */
bool tfl_try_ints(tfl_op *x, uint32_t i, const int64_t **v, uint32_t *n) {
  const void *data = NULL;
  return value_data(x, i, &data) == 0 && data && value_ints(x, i, data, v, n) == 0;
}

/* A single one. */
int tfl_int(tfl_op *x, uint32_t i, int64_t *v) {
  const int64_t *list = NULL;
  uint32_t n = 0;
  *v = 0;
  TRY(tfl_ints(x, i, &list, &n));
  if (n != 1) return tfl_fail(x, "input %u has %u elements, expected 1", i, n);
  *v = list[0];
  return 0;
}

/* A single number of any type, as a double. */
int tfl_number(tfl_op *x, uint32_t i, double *v) {
  assert(v);
  const void *data = NULL;
  *v = 0;
  TRY(tfl_data(x, i, &data));
  if (tfl_in_type(x, i)->count != 1)
    return tfl_fail(x, "input %u has %lld elements, expected 1", i, (long long)tfl_in_type(x, i)->count);
  *v = base_load_f64((base_dtype)tfl_in_type(x, i)->dtype, data);
  return 0;
}

/* Looks through the graph, not the values: [batch, 4] packed from an unknown batch and a known 4 has a known
 * element 1. Element i of input k, which is a list; the rest of the list need not be known. */
bool tfl_element(tfl_op *x, uint32_t k, uint32_t i, int64_t *v) {
  assert(v);
  const tf_graph *g = x->frame->graph;
  const void *data = NULL;
  int32_t output = 0;
  const tf_node *from = &g->nodes.items[tf_producer(g, x->node, (int32_t)k, &output)];
  for (int steps = 0; from->role == TF_ROLE_IDENTITY && steps < 16; steps++)
    from = &g->nodes.items[tf_producer(g, from, 0, &output)];
  if (!tf_is_op(from) || !tf_node_is(from, "Pack") || i >= from->n_inputs) return false;
  uint32_t src = tf_producer(g, from, (int32_t)i, &output);
  if (src == TF_SOURCE || (uint32_t)output >= g->nodes.items[src].n_outputs) return false;
  tfl_value *one = &x->frame->values[x->frame->first[src] + (uint32_t)output];
  if (one->kind != TFL_TENSOR || one->type->count != 1) return false;
  if (!x->status) x->status = tfl_evaluate(x->b, one, &data);
  if (data) *v = base_load_i64((base_dtype)one->type->dtype, data);
  return data != NULL;
}

/* Negative axes count from the end. */
int tfl_axis(tfl_op *x, int64_t axis, uint32_t rank, uint32_t *out) {
  assert(out != NULL);
  *out = 0;
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return tfl_fail(x, "axis %lld is out of range: expected one of -%u to %d", (long long)axis, rank, (int)rank - 1);
  *out = (uint32_t)(axis < 0 ? axis + rank : axis);
  return 0;
}

/* --- outputs --- */

/* INVALID for an output that there is not: ops with optional outputs ask. */
base_dtype tfl_out_dtype(const tfl_op *x, uint32_t i) {
  return i < x->n_out ? tfl_dtype_of(tf_output_type(x->node, i)) : BASE_DTYPE_INVALID;
}

/* As an output: nothing is known of its elements. */
tfl_value tfl_tensor(const tfl_op *x, ir_value v) {
  assert(v.op != NULL || x->status != 0 || x->rw->failed);
  return (tfl_value){.kind = TFL_TENSOR, .fixed = x->fixed, .type = opt_type(v), .v = v, .input = -1};
}

/* Outputs beyond the node's are left out, for rows that serve several ops. */
void tfl_out_value(tfl_op *x, uint32_t i, const tfl_value *v) {
  assert(v);
  if (i < x->n_out) x->out[i] = *v;
}

/* Output i is v; nothing where v has no op, since the failure is noted already. */
void tfl_out(tfl_op *x, uint32_t i, ir_value v) {
  if (!v.op || x->status) return;
  tfl_value value = tfl_tensor(x, v);
  tfl_out_value(x, i, &value);
}

/* Also keeps `input`, so that a graph that hands an input through gives the very input. Output i is input k. */
void tfl_out_same(tfl_op *x, uint32_t i, uint32_t k) {
  if (k < x->n_in)
    tfl_out_value(x, i, x->in[k]);
  else
    tfl_fail(x, "it has %u inputs, needs number %u", x->n_in, k);
}

/* fixed: later rows may ask for it as for a constant's. The data are copied: a row's own may lie on its stack. */
void tfl_out_data(tfl_op *x, uint32_t i, base_dtype dtype, uint32_t rank, const int64_t *dims, const void *data) {
  assert(rank == 0 || dims);
  tfl_value v = {.kind = TFL_TENSOR, .fixed = true, .type = tfl_type(x, dtype, rank, dims), .input = -1};
  if (!v.type) return;
  size_t size = (size_t)v.type->count * base_dtype_bytes(dtype);
  char *copy = base_arena_aligned(x->arena, size + 1, 64);
  if (!copy) {
    x->status = base_oom(x->err, "lowering");
    return;
  }
  if (size) memcpy(copy, data, size);
  v.data = copy;
  tfl_out_value(x, i, &v);
}

/* Other types than integers get i64, which the check of outputs then reports. Known integers, in the type that the
 * output has. */
void tfl_out_ints(tfl_op *x, uint32_t i, uint32_t rank, const int64_t *dims, const int64_t *v) {
  base_dtype t = tfl_out_dtype(x, i);
  size_t n = 1;
  if (i >= x->n_out) return;
  if (!base_dtype_is_integer(t)) t = XLAC_S64;
  for (uint32_t d = 0; d < rank; d++) n *= (size_t)dims[d];
  char *data = base_arena_array(x->arena, n + 1, base_dtype_bytes(t));
  if (!data) {
    x->status = base_oom(x->err, "lowering");
    return;
  }
  base_convert(t, data, XLAC_S64, v, n);
  tfl_out_data(x, i, t, rank, dims, data);
}

/* r may be NULL, after a failure. From now on reads of the resource give v; what it is at the end becomes an
 * update of the module. */
void tfl_assign_value(tfl_op *x, tfl_resource *r, const tfl_value *v) {
  assert(v);
  if (!r || x->status) return;
  r->value = *v;
  r->written = true;
}

/* The same of a value that was computed. */
void tfl_assign(tfl_op *x, tfl_resource *r, ir_value v) {
  tfl_value value = tfl_tensor(x, v);
  if (v.op) tfl_assign_value(x, r, &value);
}

/* Its value is TFL_NONE until the row assigns one. A resource that the graph itself makes, such as a stack or a
 * TensorArray: it is not an input, and nothing of it is left at the end. */
tfl_resource *tfl_new_resource(tfl_op *x, uint32_t i) {
  tfl_resource *r = BASE_NEW(x->arena, tfl_resource);
  tfl_value handle = {.kind = TFL_HANDLE, .input = -1, .number = x->b->resources.n};
  if (!r || !BASE_VEC_PUSH(x->arena->alloc, &x->b->resources, r)) {
    x->status = base_oom(x->err, "lowering");
    return NULL;
  }
  r->input = -1;
  tfl_out_value(x, i, &handle);
  return r;
}
