/* TensorArrays and stacks: lists with a state, within the graph that makes them. */
#include "../lists.h"

/* attribute element_shape where it is known; else the first element says it. */
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

static int larray_store(tfl_op *x, tfl_resource *r, const tfl_list *l) {
  tfl_value v;
  TRY(tfl_list_value(x, l, &v));
  if (!x->status) tfl_assign_value(x, r, &v);
  return x->status;
}

static void larray_flow(tfl_op *x, uint32_t i) {
  const float zero = 0;
  tfl_out_data(x, i, XLAC_F32, 0, NULL, &zero);
}

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

int tfl_row_array_read(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  tfl_out(x, 0, tfl_list_get(x, &l, tfl_in(x, 1)));
  return x->status;
}

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

int tfl_row_array_size(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r) return x->status;
  const int64_t *start = r->value.tag;
  int64_t size = r->value.n_parts ? r->value.parts[0].type->dims[0] : start ? start[0] : 0;
  tfl_out_ints(x, 0, 0, NULL, &size);
  return x->status;
}

int tfl_row_array_concat(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  return tfl_list_concat(x, &l);
}

int tfl_row_stack_new(tfl_op *x) {
  int64_t size = 0;
  TRY(tfl_int(x, 0, &size));
  if (size < 0) return tfl_fail(x, "a stack without a largest size");
  return larray_start(x, size, true, NULL, "elem_type");
}

int tfl_row_stack_push(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  TRY(larray_in(x, tfl_in(x, 1), &r, &l));
  TRY(tfl_list_push(x, &l, tfl_in(x, 1)));
  tfl_out_same(x, 0, 1);
  return larray_store(x, r, &l);
}

int tfl_row_stack_pop(tfl_op *x) {
  tfl_resource *r = NULL;
  tfl_list l = {.rank = 0};
  ir_value item = {NULL, 0};
  TRY(larray_in(x, (ir_value){NULL, 0}, &r, &l));
  TRY(tfl_list_pop(x, &l, &item));
  tfl_out(x, 0, item);
  return larray_store(x, r, &l);
}
