/* Searches in sorted values, and small ops about places: formats, membership, sparse values, histograms. */
#include "../windows.h"

/* --- searches and places --- */

/* Over the last dimension: how many elements of it are true. */
static ir_value search_count(tfl_op *x, ir_value here, base_dtype dtype) {
  int64_t last = here.op ? (int64_t)opt_type(here)->rank - 1 : 0;
  return tfl_reduce(x, IR_OP_ADD, tfl_cast(x, here, dtype), 0, 1, &last);
}

/* [..., n] and [..., 1] from two lists: how many of the first are before each of the second. By comparing each
 * with each: sorted lists are short, and compiled code does it in one pass. */
static ir_value search_before(tfl_op *x, ir_direction direction, ir_value line, ir_value values, base_dtype dtype) {
  int64_t one[TFL_MOST_DIMS], many[TFL_MOST_DIMS];
  if (!line.op || !values.op) return values;
  const ir_type *s = opt_type(line), *v = opt_type(values);
  for (uint32_t d = 0; d < v->rank; d++) one[d] = many[d] = v->dims[d];
  one[v->rank] = 1;
  for (uint32_t d = 0; d + 1 < s->rank; d++) many[d] = s->dims[d];
  many[v->rank] = s->dims[s->rank - 1];
  if (s->rank > 1) many[v->rank - 1] = 1;
  ir_value row = s->rank > 1 ? tfl_reshape(x, line, v->rank + 1, many) : line;
  return search_count(x, tfl_compare(x, direction, row, tfl_reshape(x, values, v->rank + 1, one)), dtype);
}

/* sorted [batch, n], values [batch, m]; arg: 0 the first place that is not less, 1 the first that is greater. */
int tfl_row_bound(tfl_op *x) {
  const ir_type *s = tfl_in_type(x, 0), *v = tfl_in_type(x, 1);
  if (s->rank != 2 || v->rank != 2 || s->dims[0] != v->dims[0] || s->dtype != v->dtype)
    return tfl_fail(x, "sorted inputs and values are not [batch, n] and [batch, m]");
  tfl_out(x, 0,
          search_before(x, x->row->arg ? IR_DIRECTION_LE : IR_DIRECTION_LT, tfl_in(x, 0), tfl_in(x, 1),
                        tfl_out_dtype(x, 0)));
  return x->status;
}

/* How many boundaries are not above the value. */
int tfl_row_bucketize(tfl_op *x) {
  base_slice value = tf_attr_or_default(x->node->op, x->node->def->attrs, base_slice_of("boundaries"));
  const float *ends = NULL;
  uint32_t n = 0;
  TRY(tfl_attr_floats(x, value, &ends, &n));
  int64_t dims[TFL_MOST_DIMS], count = n;
  const ir_type *t = tfl_in_type(x, 0);
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = t->dims[d];
  if (n == 0) return tfl_out(x, 0, tfl_full(x, XLAC_S32, t->rank, dims, 0)), x->status;
  ir_value line = tfl_cast(x, tfl_constant_f32(x, 1, &count, ends), t->dtype == XLAC_F64 ? XLAC_F64 : XLAC_F32);
  ir_value v = base_dtype_is_float((base_dtype)t->dtype) ? tfl_in(x, 0) : tfl_cast(x, tfl_in(x, 0), XLAC_F32);
  tfl_out(x, 0, search_before(x, IR_DIRECTION_LE, line, v, XLAC_S32));
  return x->status;
}

/* predictions [batch, classes], targets [batch], k: fewer than k are greater, and all is finite. */
int tfl_row_in_top_k(tfl_op *x) {
  assert(x->n_in == 3);
  const ir_type *t = tfl_in_type(x, 0), *at = tfl_in_type(x, 1);
  if (t->rank != 2 || at->rank != 1 || at->dims[0] != t->dims[0])
    return tfl_fail(x, "predictions and targets are not [batch, classes] and [batch]");
  base_dtype index = (base_dtype)at->dtype;
  ir_value p = tfl_in(x, 0), targets = tfl_in(x, 1), own = tfl_take(x, p, targets, 1, 1);
  ir_value finite = tfl_reduce(
      x, IR_OP_AND, opt_make(x->rw, IR_OP_IS_FINITE, opt_with_dtype(x->rw, t, XLAC_PRED), 1, &p), 1, 1, &(int64_t){1});
  ir_value above = search_count(x, tfl_compare(x, IR_DIRECTION_GT, p, tfl_along(x, own, p, 0)), index);
  if (!above.op) return x->status;
  ir_value in = tfl_compare(x, IR_DIRECTION_LT, above, tfl_cast(x, tfl_in(x, 2), index));
  ir_value low = tfl_compare(x, IR_DIRECTION_GE, targets, tfl_like(x, targets, 0));
  ir_value high = tfl_compare(x, IR_DIRECTION_LT, targets, tfl_like(x, targets, (double)t->dims[1]));
  in = opt_binary(x->rw, IR_OP_AND, in, opt_binary(x->rw, IR_OP_AND, low, high));
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_AND, in, finite));
  return x->status;
}

/* indices (a scalar, a list, or a list of vectors), shape, values, the default */
int tfl_row_sparse_to_dense(tfl_op *x) {
  const ir_type *at = tfl_in_type(x, 0);
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  TRY(tfl_ints(x, 1, &dims, &rank));
  int64_t n = at->rank ? at->dims[0] : 1, shape[] = {n, rank};
  if (at->rank > 2 || at->count != n * rank)
    return tfl_fail(x, "indices of rank %u for a shape of %u dimensions", at->rank, rank);
  ir_value start = tfl_broadcast(x, tfl_in(x, 3), rank, dims);
  ir_value values = tfl_broadcast(x, tfl_in(x, 2), 1, &n);
  tfl_out(x, 0, tfl_put_nd(x, IR_OP_MAP, start, tfl_reshape(x, tfl_in(x, 0), 2, shape), values));
  return x->status;
}

/* Nobody relies on what is in it. */
int tfl_row_empty(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  TRY(tfl_ints(x, 0, &dims, &rank));
  tfl_out(x, 0, tfl_full(x, tfl_out_dtype(x, 0), rank, dims, 0));
  return x->status;
}

/* Of a scalar whether it is not 0, else whether there are elements. */
int tfl_row_to_bool(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const uint8_t some = t->count > 0;
  ir_value v = tfl_in(x, 0);
  if (t->rank > 0)
    tfl_out_data(x, 0, XLAC_PRED, 0, NULL, &some);
  else if (v.op)
    tfl_out(x, 0, tfl_compare(x, IR_DIRECTION_NE, v, tfl_like(x, v, 0)));
  return x->status;
}

/* --- formats: letters for dimensions --- */

/* Both have the same letters, each perhaps in another place. */
static int search_formats(tfl_op *x, base_slice *from, base_slice *to) {
  *from = tfl_attr_str(x, "src_format");
  *to = tfl_attr_str(x, "dst_format");
  bool good = from->n == to->n && from->n > 0 && from->n <= 8;
  for (size_t i = 0; good && i < to->n; i++) good = memchr(from->p, to->p[i], from->n) != NULL;
  return good ? x->status
              : tfl_fail(x, "formats '%.*s' and '%.*s' have not the same letters", (int)from->n, from->p, (int)to->n,
                         to->p);
}

/* The elements (or pairs) for the dimensions of one format in the order of another; two or more are the spatial ones.
 */
int tfl_row_format_permute(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  base_slice from, to;
  TRY(search_formats(x, &from, &to));
  int64_t n = (int64_t)from.n;
  if (t->rank < 1 || t->rank > 2 || t->dims[0] != n)
    return tfl_fail(x, "a value without an element for each letter of '%.*s'", (int)from.n, from.p);
  int32_t place[8];
  for (int64_t i = 0; i < n; i++) place[i] = (int32_t)((const char *)memchr(from.p, to.p[i], from.n) - from.p);
  tfl_out(x, 0, tfl_take(x, tfl_in(x, 0), tfl_constant_i32(x, 1, &n, place), 0, 0));
  return x->status;
}

/* Numbers of dimensions, maybe negative, of one format in the other. */
int tfl_row_format_map(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  base_slice from, to;
  TRY(search_formats(x, &from, &to));
  int64_t n = (int64_t)from.n;
  int32_t place[8];
  for (int64_t i = 0; i < n; i++) place[i] = (int32_t)((const char *)memchr(to.p, from.p[i], to.n) - to.p);
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  ir_value up =
      opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, v, tfl_like(x, v, 0)), tfl_with(x, IR_OP_ADD, v, (double)n), v);
  ir_value r = tfl_take(x, tfl_constant_i32(x, 1, &n, place), up, 0, 0);
  tfl_out(x, 0, tfl_cast(x, r, (base_dtype)t->dtype));
  return x->status;
}

/* --- histograms --- */

/* HistogramFixedWidth: how many values fall into each of some steps of a range; what is outside counts for the
 * ends. */
int tfl_row_histogram(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *range = tfl_in_type(x, 1);
  int64_t bins = 0, flat[] = {t->count, 1};
  TRY(tfl_int(x, 2, &bins));
  if (bins < 1 || range->rank != 1 || range->dims[0] != 2 || range->dtype != t->dtype)
    return tfl_fail(x, "%lld bins of a range that is not two numbers like the values", (long long)bins);
  ir_value v = tfl_reshape(x, tfl_in(x, 0), 1, flat), ends = tfl_in(x, 1);
  ir_value low = tfl_reshape(x, tfl_slice(x, ends, 0, 0, 1), 0, NULL);
  ir_value high = tfl_reshape(x, tfl_slice(x, ends, 0, 1, 2), 0, NULL);
  ir_value width = tfl_with(x, IR_OP_DIVIDE, opt_binary(x->rw, IR_OP_SUBTRACT, high, low), (double)bins);
  v = tfl_binary(x, IR_OP_SUBTRACT, tfl_binary(x, IR_OP_MAXIMUM, v, low), low);
  v = tfl_with(x, IR_OP_MINIMUM, tfl_binary(x, IR_OP_DIVIDE, v, width), (double)(bins - 1));
  ir_value at = tfl_reshape(x, tfl_cast(x, v, XLAC_S32), 2, flat);
  base_dtype own = tfl_out_dtype(x, 0);
  ir_value none = tfl_full(x, own, 1, &bins, 0), ones = tfl_full(x, own, 1, flat, 1);
  tfl_out(x, 0, tfl_put_nd(x, IR_OP_ADD, none, at, ones));
  return x->status;
}
