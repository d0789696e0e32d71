/* Lists of tensors: TensorLists, which are values, and TensorArrays and stacks, which have a state. A list is one
 * tensor with an element more in front, so that loops carry it like any other value; reading and writing are
 * dynamic slices:
 *   TensorListSetItem(l, i, x)  =>  dynamic_update_slice(l, reshape(x, [1, ...]), i, 0, ...) */
#include "../lists.h"

/* --- TensorLists --- */

/* Takes the parts of the value at the cursor. */
int tfl_list_of(tfl_op *x, tfl_value *v, tfl_list *out) {
  assert(v != NULL);
  *out = (tfl_list){.size = 0};
  if (x->status) return x->status;
  if (v->kind != TFL_LIST || v->n_parts < 1) return tfl_fail(x, "a value is not a list of tensors of a known shape");
  tfl_value *parts = (tfl_value *)v->parts; /* they remember what is made of them */
  const ir_type *t = parts[0].type;
  *out = (tfl_list){.rank = t->rank - 1, .dims = t->dims + 1, .size = t->dims[0], .dtype = (base_dtype)t->dtype};
  out->items = tfl_use(x, &parts[0]);
  if (v->n_parts > 1) out->length = tfl_use(x, &parts[1]);
  return x->status;
}

int tfl_list_value(tfl_op *x, const tfl_list *l, tfl_value *out) {
  assert(l->items.op == NULL || opt_type(l->items)->rank == l->rank + 1);
  tfl_value *parts = BASE_ARRAY(x->arena, tfl_value, 2);
  if (!parts) return x->status = base_oom(x->err, "lowering");
  if (!l->items.op) return x->status;
  parts[0] = tfl_tensor(x, l->items);
  if (l->length.op) parts[1] = tfl_tensor(x, l->length);
  *out = (tfl_value){.kind = TFL_LIST, .input = -1, .n_parts = l->length.op ? 2 : 1, .parts = parts};
  return 0;
}

/* Output i is the list. */
static void list_out(tfl_op *x, uint32_t i, const tfl_list *l) {
  tfl_value v;
  if (!x->status && l->items.op && tfl_list_value(x, l, &v) == 0) tfl_out_value(x, i, &v);
}

/* `size` is checked, since it comes from the graph. */
int tfl_list_new(tfl_op *x, base_dtype dtype, int64_t size, uint32_t rank, const int64_t *dims, bool grows,
                 tfl_list *out) {
  int64_t *all = BASE_ARRAY(x->arena, int64_t, TFL_MOST_DIMS + 1);
  if (!all) return x->status = base_oom(x->err, "lowering");
  if (size < 0) return tfl_fail(x, "a list without a largest size");
  if (rank >= TFL_MOST_DIMS) return tfl_fail(x, "a list of elements of %u dimensions", rank);
  all[0] = size;
  for (uint32_t d = 0; d < rank; d++) all[1 + d] = dims[d];
  *out = (tfl_list){tfl_full(x, dtype, rank + 1, all, 0), {NULL, 0}, rank, all + 1, size, dtype};
  if (grows) out->length = tfl_scalar(x, XLAC_S32, 0);
  return x->status;
}

/* Where element `index` begins. */
static void list_starts(tfl_op *x, const tfl_list *l, ir_value index, ir_value *starts, int64_t *sizes) {
  assert(l->rank < TFL_MOST_DIMS);
  starts[0] = tfl_cast(x, index, XLAC_S32);
  sizes[0] = 1;
  for (uint32_t d = 0; d < l->rank; d++) {
    starts[1 + d] = tfl_scalar(x, XLAC_S32, 0);
    sizes[1 + d] = l->dims[d];
  }
}

/* An index out of range gives the nearest element, as dynamic_slice does; TensorFlow's CPU kernel fails there. */
ir_value tfl_list_get(tfl_op *x, const tfl_list *l, ir_value index) {
  ir_value starts[TFL_MOST_DIMS + 1];
  int64_t sizes[TFL_MOST_DIMS + 1];
  if (l->size == 0) return tfl_fail(x, "an element of an empty list"), (ir_value){NULL, 0};
  list_starts(x, l, index, starts, sizes);
  return tfl_reshape(x, tfl_dynamic_slice(x, l->items, starts, sizes), l->rank, l->dims);
}

/* The item must have the list's type and shape. */
int tfl_list_set(tfl_op *x, tfl_list *l, ir_value index, ir_value item) {
  ir_value starts[TFL_MOST_DIMS + 1];
  int64_t sizes[TFL_MOST_DIMS + 1];
  const ir_type *t = opt_type(item);
  if (!t || x->status) return x->status;
  bool fits = t->rank == l->rank && t->dtype == l->dtype && l->size > 0;
  for (uint32_t d = 0; fits && d < t->rank; d++) fits = t->dims[d] == l->dims[d];
  if (!fits) return tfl_fail(x, "an item has not the shape and type of the list's elements");
  list_starts(x, l, index, starts, sizes);
  l->items = tfl_dynamic_update(x, l->items, tfl_reshape(x, item, l->rank + 1, sizes), starts);
  return x->status;
}

/* A list that does not grow within its size gets a new one of one element more. */
int tfl_list_push(tfl_op *x, tfl_list *l, ir_value item) {
  if (l->length.op) {
    TRY(tfl_list_set(x, l, l->length, item));
    l->length = tfl_with(x, IR_OP_ADD, l->length, 1);
    return x->status;
  }
  int64_t dims[TFL_MOST_DIMS + 1] = {1};
  for (uint32_t d = 0; d < l->rank; d++) dims[1 + d] = l->dims[d];
  ir_value both[] = {l->items, tfl_reshape(x, item, l->rank + 1, dims)};
  l->items = tfl_concat(x, 2, both, 0);
  l->size++;
  return x->status;
}

/* Elements behind the length stay in memory but are never read. */
int tfl_list_pop(tfl_op *x, tfl_list *l, ir_value *item) {
  if (l->length.op) {
    l->length = tfl_with(x, IR_OP_SUBTRACT, l->length, 1);
    *item = tfl_list_get(x, l, l->length);
    return x->status;
  }
  if (l->size == 0) return tfl_fail(x, "an element of an empty list");
  *item = tfl_reshape(x, tfl_slice(x, l->items, 0, l->size - 1, l->size), l->rank, l->dims);
  l->items = tfl_slice(x, l->items, 0, 0, l->size - 1);
  l->size--;
  return x->status;
}

/* A list that grows has a length that is known only at run time, which no static shape can say. */
ir_value tfl_list_all(tfl_op *x, const tfl_list *l) {
  if (!l->length.op) return l->items;
  return tfl_fail(x, "how many elements the list has is not known when it is compiled"), (ir_value){NULL, 0};
}

/* --- rows --- */

/* A shape given as a tensor of known integers, all of them 0 or more. */
static int list_shape(tfl_op *x, uint32_t i, const int64_t **dims, uint32_t *rank) {
  TRY(tfl_ints(x, i, dims, rank));
  bool known = tfl_in_type(x, i)->rank == 1;
  for (uint32_t d = 0; known && d < *rank; d++) known = (*dims)[d] >= 0;
  return known ? 0 : tfl_fail(x, "the shape of the list's elements is not known when it is compiled");
}

/* element_shape, size; arg: 1 EmptyTensorList, which grows up to it. */
int tfl_row_list_new(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  int64_t size = 0;
  tfl_list l = {.rank = 0};
  TRY(list_shape(x, 0, &dims, &rank));
  TRY(tfl_int(x, 1, &size));
  TRY(tfl_list_new(x, tfl_attr_dtype(x, "element_dtype"), size, rank, dims, x->row->arg == 1, &l));
  list_out(x, 0, &l);
  return x->status;
}

/* The tensor is the list: nothing is copied. */
int tfl_row_list_from_tensor(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank == 0) return tfl_fail(x, "a scalar: expected one dimension or more");
  tfl_list l = {tfl_in(x, 0), {NULL, 0}, t->rank - 1, t->dims + 1, t->dims[0], (base_dtype)t->dtype};
  list_out(x, 0, &l);
  return x->status;
}

/* Every row here has its list as input 0. */
static int list_in(tfl_op *x, tfl_list *l) {
  return x->n_in ? tfl_list_of(x, x->in[0], l) : tfl_fail(x, "it has no inputs");
}

/* handle, index, item */
int tfl_row_list_set(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  TRY(tfl_list_set(x, &l, tfl_in(x, 1), tfl_in(x, 2)));
  list_out(x, 0, &l);
  return x->status;
}

/* handle, index, element_shape (which is known already) */
int tfl_row_list_get(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  tfl_out(x, 0, tfl_list_get(x, &l, tfl_in(x, 1)));
  return x->status;
}

/* handle, tensor */
int tfl_row_list_push(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  TRY(tfl_list_push(x, &l, tfl_in(x, 1)));
  list_out(x, 0, &l);
  return x->status;
}

/* Outputs: the shorter list, the element. */
int tfl_row_list_pop(tfl_op *x) {
  tfl_list l = {.rank = 0};
  ir_value item = {NULL, 0};
  TRY(list_in(x, &l));
  TRY(tfl_list_pop(x, &l, &item));
  list_out(x, 0, &l);
  tfl_out(x, 1, item);
  return x->status;
}

int tfl_row_list_stack(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  tfl_out(x, 0, tfl_list_all(x, &l));
  return x->status;
}

/* handle, indices: elements side by side. */
int tfl_row_list_gather(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  tfl_out(x, 0, tfl_take(x, l.items, tfl_in(x, 1), 0, 0));
  return x->status;
}

/* Known where all elements are there. */
int tfl_row_list_length(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  if (l.length.op)
    tfl_out(x, 0, l.length);
  else
    tfl_out_ints(x, 0, 0, NULL, &l.size);
  return x->status;
}

/* i32 or i64, as the node says. */
int tfl_row_list_element_shape(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  int64_t rank = l.rank;
  tfl_out_ints(x, 0, 1, &rank, l.dims);
  return x->status;
}

/* All elements have one shape here, so the lengths are one number repeated. */
int tfl_list_concat(tfl_op *x, const tfl_list *l) {
  int64_t dims[TFL_MOST_DIMS];
  if (l->rank == 0) return tfl_fail(x, "elements are scalars: expected one dimension or more");
  for (uint32_t d = 0; d < l->rank; d++) dims[d] = l->dims[d];
  dims[0] *= l->size;
  tfl_out(x, 0, tfl_reshape(x, tfl_list_all(x, l), l->rank, dims));
  int64_t *lengths = BASE_ARRAY(x->arena, int64_t, (size_t)l->size + 1);
  if (!lengths) return x->status = base_oom(x->err, "lowering");
  for (int64_t i = 0; i < l->size; i++) lengths[i] = l->dims[0];
  tfl_out_ints(x, 1, 1, &l->size, lengths);
  return x->status;
}

int tfl_row_list_concat(tfl_op *x) {
  tfl_list l = {.rank = 0};
  TRY(list_in(x, &l));
  return tfl_list_concat(x, &l);
}

/* --- TensorArrays and stacks --- */

/* attribute element_shape where it is known; else the first element says it. `start` keeps what the first element
 * will need: the size, and whether it grows. It is the value's tag, which loops and branches hand on without
 * comparing. */
static int larray_start(tfl_op *x, int64_t size, bool grows, const char *shape_attr, const char *dtype_attr) {
  bool known = false;
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  tfl_resource *r = tfl_new_resource(x, 0);
  if (!r) return x->status;
  if (shape_attr) TRY(tfl_attr_shape(x, shape_attr, &known, &dims, &rank));
  for (uint32_t d = 0; known && d < rank; d++) known = dims[d] >= 0;
  int64_t *start = BASE_ARRAY(x->arena, int64_t, 2);
  if (!start) return x->status = base_oom(x->err, "lowering");
  start[0] = size;
  start[1] = grows;
  r->value = (tfl_value){.kind = TFL_LIST, .input = -1, .tag = start};
  if (!known) return x->status;
  tfl_list l = {.rank = 0};
  TRY(tfl_list_new(x, tfl_attr_dtype(x, dtype_attr), size, rank, dims, grows, &l));
  return tfl_list_value(x, &l, &r->value);
}

/* The list of input 0, made now where `item`, a first element, says its shape. */
static int larray_in(tfl_op *x, ir_value item, tfl_resource **r, tfl_list *l) {
  *r = tfl_in_resource(x, 0);
  if (!*r) return x->status;
  tfl_value *v = &(*r)->value;
  if (v->kind == TFL_LIST && v->n_parts == 0 && v->tag && item.op) {
    const int64_t *start = v->tag;
    const ir_type *t = opt_type(item);
    return tfl_list_new(x, (base_dtype)t->dtype, start[0], t->rank, t->dims, start[1] != 0, l);
  }
  return tfl_list_of(x, v, l);
}

/* Assigns the changed list to the resource. */
static int larray_store(tfl_op *x, tfl_resource *r, const tfl_list *l) {
  tfl_value v;
  TRY(tfl_list_value(x, l, &v));
  if (!x->status) tfl_assign_value(x, r, &v);
  return x->status;
}

/* The flow output: a scalar whose only purpose is the order of nodes, which is settled here. */
static void larray_flow(tfl_op *x, uint32_t i) {
  const float zero = 0;
  tfl_out_data(x, i, XLAC_F32, 0, NULL, &zero);
}

/* TensorArrayV3: outputs are the handle and the flow. */
int tfl_row_array_new(tfl_op *x) {
  int64_t size = 0;
  TRY(tfl_int(x, 0, &size));
  larray_flow(x, 1);
  return larray_start(x, size, false, "element_shape", "dtype");
}

/* handle, index, value, flow */
int tfl_row_array_write(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, tfl_in(x, 2), &r, &l));
  TRY(tfl_list_set(x, &l, tfl_in(x, 1), tfl_in(x, 2)));
  larray_flow(x, 0);
  return larray_store(x, r, &l);
}

/* handle, index, flow */
int tfl_row_array_read(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  tfl_out(x, 0, tfl_list_get(x, &l, tfl_in(x, 1)));
  return x->status;
}

/* handle, indices, flow */
int tfl_row_array_gather(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  tfl_out(x, 0, tfl_take(x, l.items, tfl_in(x, 1), 0, 0));
  return x->status;
}

/* handle, indices, values, flow */
int tfl_row_array_scatter(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  const ir_type *t = tfl_in_type(x, 2);
  if (t->rank == 0) return tfl_fail(x, "a scalar: expected one dimension or more");
  ir_value first = tfl_full(x, (base_dtype)t->dtype, t->rank - 1, t->dims + 1, 0);
  TRY(larray_in(x, first, &r, &l));
  l.items = tfl_put_rows(x, IR_OP_MAP, l.items, tfl_in(x, 1), tfl_in(x, 2));
  larray_flow(x, 0);
  return larray_store(x, r, &l);
}

/* Known from the start. */
int tfl_row_array_size(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r) return x->status;
  const int64_t *start = r->value.tag;
  int64_t size = r->value.n_parts ? r->value.parts[0].type->dims[0] : start ? start[0] : 0;
  tfl_out_ints(x, 0, 0, NULL, &size);
  return x->status;
}

/* handle, flow; all elements have one shape. */
int tfl_row_array_concat(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  return tfl_list_concat(x, &l);
}

/* StackV2 with max_size; -1, without a limit, can't be lowered. */
int tfl_row_stack_new(tfl_op *x) {
  int64_t size = 0;
  TRY(tfl_int(x, 0, &size));
  if (size < 0) return tfl_fail(x, "a stack without a largest size");
  return larray_start(x, size, true, NULL, "elem_type");
}

/* Output 0 is the element. */
int tfl_row_stack_push(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, tfl_in(x, 1), &r, &l));
  TRY(tfl_list_push(x, &l, tfl_in(x, 1)));
  tfl_out_same(x, 0, 1);
  return larray_store(x, r, &l);
}

/* handle */
int tfl_row_stack_pop(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  ir_value item = {NULL, 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  TRY(tfl_list_pop(x, &l, &item));
  tfl_out(x, 0, item);
  return larray_store(x, r, &l);
}
