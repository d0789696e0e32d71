/* Constants, what passes its inputs on, variables, calls. */
#include "../build.h"
#include "../tensor.h"

int tfl_row_const(tfl_op *x) {
  base_slice message = {NULL, 0};
  tfl_shape shape;
  xlac_error why = {.code = 0};
  void *data = NULL;
  if (!tf_attr_tensor(tf_attr_find(x->node->def->attrs, "value"), &message))
    return tfl_fail(x, "attribute 'value' is no tensor");
  int status = tfl_read_tensor(message, x->arena, &shape, &data, &why);
  if (status == -XLAC_E_OUT_OF_MEMORY) return x->status = base_oom(x->err, "lowering");
  if (status) return tfl_fail(x, "%s", why.message);
  tfl_value v = {.kind = TFL_TENSOR,
                 .fixed = true,
                 .type = tfl_type(x, shape.dtype, shape.rank, shape.dims),
                 .data = data,
                 .input = -1};
  if (v.type) tfl_out_value(x, 0, &v);
  return x->status;
}

int tfl_row_same(tfl_op *x) {
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out_same(x, i, i);
  return x->status;
}

int tfl_row_nothing(tfl_op *x) {
  return x->status;
}

/* What a branch gives in place of what only another one computes. Its attribute shape is not to be trusted: it has no
 * value, and the op with the branches makes one. */
int tfl_row_fake_param(tfl_op *x) {
  return x->status;
}

/* The CPU's place in the list. */
int tfl_row_device_index(tfl_op *x) {
  tf_raw_field list, f = {.number = 0};
  const char *at = NULL;
  int32_t index = -1, n = 0;
  base_slice value = tf_attr_find(x->node->def->attrs, "device_names");
  if (!value.p || !tf_raw_find(value, 1, &list) || list.wire != 2)
    return tfl_fail(x, "attribute 'device_names' is no list");
  for (at = list.bytes.p; tf_raw_next(&at, list.bytes.p + list.bytes.n, &f);) {
    if (f.number != 2) continue;
    if (index < 0 && f.bytes.n == 3 && memcmp(f.bytes.p, "CPU", 3) == 0) index = n;
    n++;
  }
  if (index < 0) index = n;
  tfl_out_data(x, 0, XLAC_S32, 0, NULL, &index);
  return x->status;
}

/* --- variables --- */

static bool flow_has_value(tfl_op *x, const tfl_resource *r) {
  if (r && r->value.kind == TFL_TENSOR) return true;
  tfl_fail(x, "the variable has no value yet");
  return false;
}

int tfl_row_read_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (r && flow_has_value(x, r)) tfl_out_value(x, 0, &r->value);
  return x->status;
}

int tfl_row_assign_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r || x->in[1]->kind != TFL_TENSOR) return tfl_in_type(x, 1), x->status;
  if (r->value.kind == TFL_TENSOR && r->value.type->dtype != x->in[1]->type->dtype)
    return tfl_fail(x, "the variable has elements of %s, the value of %s",
                    base_dtype_of((base_dtype)r->value.type->dtype)->text,
                    base_dtype_of((base_dtype)x->in[1]->type->dtype)->text);
  tfl_value v = *x->in[1];
  v.input = -1;
  tfl_assign_value(x, r, &v);
  return x->status;
}

int tfl_row_update_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r || !flow_has_value(x, r)) return x->status;
  ir_value old = tfl_use(x, &r->value), by = tfl_in(x, 1);
  if (old.op && by.op && opt_type(old) != opt_type(by))
    return tfl_fail(x, "the variable and what changes it have different shapes or element types");
  x->fixed = false;
  tfl_assign(x, r, opt_binary(x->rw, (ir_opcode)x->row->arg, old, by));
  return x->status;
}

int tfl_row_is_initialized(tfl_op *x) {
  const tfl_resource *r = tfl_in_resource(x, 0);
  bool has = r && r->value.kind != TFL_NONE;
  if (r) tfl_out_data(x, 0, XLAC_PRED, 0, NULL, &has);
  return x->status;
}

/* --- calls --- */

int tfl_row_call(tfl_op *x) {
  tf_callees callees;
  x->status = tf_find_callees(x->b->bodies, x->node, &callees, x->err);
  if (x->status) return x->status;
  if (callees.n != 1) return tfl_fail(x, "it names no function");
  tfl_value *args = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_in + 1);
  tfl_value *rets = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_out + 1);
  if (!args || !rets) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < x->n_in; i++) args[i] = *x->in[i];
  TRY(tfl_lower_body(x, &callees.list[0], x->n_in, args, x->n_out, rets));
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out_value(x, i, &rets[i]);
  return x->status;
}
