/* What the rows of XLA's own ops share. */
#include "../xla.h"

#include "../tensor.h"

static int xla_add(tfl_op *x, tfl_dims *out, uint64_t v, uint32_t rank) {
  if (v >= rank || out->n == TFL_MOST_DIMS)
    return tfl_fail(x, "dimension_numbers name dimension %lld of %u", (long long)v, rank);
  out->v[out->n++] = (int64_t)v;
  return 0;
}

/* Packed, or one by one. */
int tfl_message_dims(tfl_op *x, uint32_t number, uint32_t rank, tfl_dims *out) {
  base_slice message = tfl_attr_str(x, "dimension_numbers");
  const char *at = message.p, *end = message.p + message.n;
  out->n = 0;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);) {
    if (f.number != number) continue;
    if (f.wire == 0) TRY(xla_add(x, out, f.value, rank));
    uint64_t v = 0;
    for (const char *p = f.bytes.p; f.wire == 2 && tfl_next_packed(&p, f.bytes.p + f.bytes.n, 0, &v);)
      TRY(xla_add(x, out, v, rank));
  }
  return x->status;
}

int tfl_message_dim(tfl_op *x, uint32_t number, uint32_t rank, int64_t *out) {
  tfl_dims list;
  TRY(tfl_message_dims(x, number, rank, &list));
  if (list.n > 1) return tfl_fail(x, "field %u of dimension_numbers is there %u times", number, list.n);
  *out = list.n ? list.v[0] : 0;
  return 0;
}

int tfl_known_list(tfl_op *x, uint32_t i, uint32_t n, const int64_t **out) {
  uint32_t found = 0;
  TRY(tfl_ints(x, i, out, &found));
  return found == n ? 0 : tfl_fail(x, "input %u has %u numbers, expected %u", i, found, n);
}

int tfl_function_region(tfl_op *x, ir_op *op, uint32_t index, const char *attr, uint32_t n, const ir_type *const *args,
                        uint32_t n_results, const ir_type *const *results) {
  tf_callee callee;
  TRY(tfl_named_callee(x, attr, &callee));
  tfl_value *values = BASE_ARRAY(x->arena, tfl_value, (size_t)n + 1);
  tfl_value *rets = BASE_ARRAY(x->arena, tfl_value, (size_t)n_results + 1);
  ir_value *out = BASE_ARRAY(x->arena, ir_value, (size_t)n_results + 1);
  ir_computation *region = op ? opt_region(x->rw, op, index) : NULL;
  if (!values || !rets || !out || !region) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < n; i++) values[i] = tfl_tensor(x, opt_region_argument(x->rw, region, args[i]));
  TRY(opt_rewriter_status(x->rw));
  tfl_cursor back = tfl_enter(x, region);
  int status = tfl_lower_body(x, &callee, n, values, n_results, rets);
  for (uint32_t i = 0; i < n_results && !status; i++) {
    if (rets[i].kind != TFL_TENSOR || rets[i].type != results[i])
      status = tfl_fail(x, "result %u of its function '%.*s' has not the type that it must have", i, (int)callee.name.n,
                        callee.name.p);
    else
      out[i] = tfl_use(x, &rets[i]);
  }
  if (!status && !x->status) opt_set_results(x->rw, region, n_results, out);
  tfl_leave(x, back);
  return status ? status : x->status;
}
