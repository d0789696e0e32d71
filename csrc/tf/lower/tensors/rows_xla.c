/* XLA's own ops (Xla* of tf2xla/ops/xla_ops.cc) that need no function: products, pads, slices, sorts, grids, and
 * what only passes values on. Dimension numbers are protocol buffer messages of XLA in a string attribute. */
#include "../xla.h"
#include "../tensor.h"

/* --- dimension numbers and functions --- */

/* One dimension of a list; fails where it is not below `rank`. */
static int xla_add(tfl_op *x, tfl_dims *out, uint64_t v, uint32_t rank) {
  if (v >= rank || out->n == TFL_MOST_DIMS)
    return tfl_fail(x, "dimension_numbers name dimension %lld of %u", (long long)v, rank);
  out->v[out->n++] = (int64_t)v;
  return 0;
}

/* Packed, or one by one. `number` is the field of the message (xla_data.proto). */
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

/* A field that is missing is 0. */
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

/* The function's results must have the very types, since regions can't convert. */
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

/* --- ops --- */

/* --- products --- */

/* Contracted, or batch, dimensions of both operands. */
static int xla_check_pairs(tfl_op *x, const ir_type *a, const ir_type *b, const tfl_dims *of_a, const tfl_dims *of_b) {
  bool fits = of_a->n == of_b->n;
  for (uint32_t i = 0; fits && i < of_a->n; i++) fits = a->dims[of_a->v[i]] == b->dims[of_b->v[i]];
  return fits ? 0 : tfl_fail(x, "the dimensions that go together have different sizes");
}

static bool xla_are_distinct(const tfl_dims *a, const tfl_dims *b) {
  assert(a->n <= TFL_MOST_DIMS && b->n <= TFL_MOST_DIMS);
  uint64_t seen = 0;
  for (uint32_t i = 0; i < a->n + b->n; i++) {
    uint64_t bit = (uint64_t)1 << (i < a->n ? a->v[i] : b->v[i - a->n]);
    if (seen & bit) return false;
    seen |= bit;
  }
  return true;
}

/* XlaDot: DotDimensionNumbers has 1 and 2 contracting, 3 and 4 batch dimensions. */
int tfl_row_xla_dot(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  tfl_dims contract[2], batch[2];
  for (uint32_t i = 0; i < 2; i++) {
    TRY(tfl_message_dims(x, 1 + i, i ? b->rank : a->rank, &contract[i]));
    TRY(tfl_message_dims(x, 3 + i, i ? b->rank : a->rank, &batch[i]));
    if (!xla_are_distinct(&contract[i], &batch[i])) return tfl_fail(x, "dimension_numbers name a dimension twice");
  }
  TRY(xla_check_pairs(x, a, b, &contract[0], &contract[1]));
  TRY(xla_check_pairs(x, a, b, &batch[0], &batch[1]));
  if (a->rank + b->rank > TFL_MOST_DIMS) return tfl_fail(x, "the operands have too many dimensions");
  tfl_dot d = {.n_batch = batch[0].n, .n_contract = contract[0].n};
  memcpy(d.a_batch, batch[0].v, sizeof d.a_batch);
  memcpy(d.b_batch, batch[1].v, sizeof d.b_batch);
  memcpy(d.a_contract, contract[0].v, sizeof d.a_contract);
  memcpy(d.b_contract, contract[1].v, sizeof d.b_contract);
  tfl_out(x, 0, tfl_dot_general(x, tfl_in(x, 0), tfl_in(x, 1), &d, tfl_out_dtype(x, 0)));
  return x->status;
}

/* --- convolutions --- */

/* One side of ConvolutionDimensionNumbers, by the numbers of its fields. */
static int xla_side(tfl_op *x, uint32_t batch, uint32_t feature, uint32_t spatial, uint32_t n, tfl_conv_dims *out) {
  int64_t one = 0, other = 0;
  tfl_dims list, ends = {2, {0}};
  TRY(tfl_message_dim(x, batch, n + 2, &one));
  TRY(tfl_message_dim(x, feature, n + 2, &other));
  TRY(tfl_message_dims(x, spatial, n + 2, &list));
  ends.v[0] = one;
  ends.v[1] = other;
  if (list.n != n || !xla_are_distinct(&list, &ends))
    return tfl_fail(x, "dimension_numbers do not name all dimensions");
  *out = (tfl_conv_dims){.batch = (uint32_t)one, .feature = (uint32_t)other};
  for (uint32_t i = 0; i < n; i++) out->spatial[i] = (uint32_t)list.v[i];
  return 0;
}

/* Inputs 2 to 6: strides, padding (pairs), dilations of both, groups. */
static int xla_conv_numbers(tfl_op *x, tfl_conv *c) {
  const int64_t *stride = NULL, *padding = NULL, *lhs = NULL, *rhs = NULL;
  TRY(tfl_known_list(x, 2, c->n, &stride));
  TRY(tfl_known_list(x, 3, 2 * c->n, &padding));
  TRY(tfl_known_list(x, 4, c->n, &lhs));
  TRY(tfl_known_list(x, 5, c->n, &rhs));
  TRY(tfl_int(x, 6, &c->feature_groups));
  for (uint32_t i = 0; i < c->n; i++) {
    if (stride[i] < 1 || lhs[i] < 1 || rhs[i] < 1) return tfl_fail(x, "strides and dilations must be positive");
    c->stride[i] = stride[i];
    c->low[i] = padding[2 * i];
    c->high[i] = padding[2 * i + 1];
    c->lhs_dilation[i] = lhs[i];
    c->rhs_dilation[i] = rhs[i];
  }
  return 0;
}

/* arg: the op's version. */
int tfl_row_xla_conv(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  if (a->rank != b->rank || a->rank < 2 || a->rank - 2 > TFL_MOST_SPATIAL)
    return tfl_fail(x, "operands of rank %u and %u: expected the same, with at most %d spatial dimensions", a->rank,
                    b->rank, TFL_MOST_SPATIAL);
  tfl_conv c = {.n = a->rank - 2, .batch_groups = x->row->arg == 2 ? tfl_attr_int(x, "batch_group_count") : 1};
  TRY(xla_side(x, 7, 8, 11, c.n, &c.lhs));
  TRY(xla_side(x, 3, 4, 6, c.n, &c.rhs));
  TRY(xla_side(x, 9, 10, 12, c.n, &c.out));
  TRY(xla_conv_numbers(x, &c));
  int64_t features = a->dims[c.lhs.feature], out = b->dims[c.rhs.feature], groups = c.feature_groups;
  if (groups < 1 || c.batch_groups < 1 || features % groups || out % groups || a->dims[c.lhs.batch] % c.batch_groups ||
      out % c.batch_groups || b->dims[c.rhs.batch] != features / groups)
    return tfl_fail(x, "%lld features in, %lld out, %lld and %lld groups do not fit together", (long long)features,
                    (long long)out, (long long)groups, (long long)c.batch_groups);
  base_dtype own = tfl_out_dtype(x, 0);
  tfl_out(x, 0, tfl_convolution(x, tfl_cast(x, tfl_in(x, 0), own), tfl_cast(x, tfl_in(x, 1), own), &c));
  return x->status;
}

/* --- pads, slices --- */

/* operand, value, low, high, interior; low and high may be negative. */
int tfl_row_xla_pad(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *low = NULL, *high = NULL, *interior = NULL;
  TRY(tfl_known_list(x, 2, t->rank, &low));
  TRY(tfl_known_list(x, 3, t->rank, &high));
  TRY(tfl_known_list(x, 4, t->rank, &interior));
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t inner = t->dims[d] ? (t->dims[d] - 1) * interior[d] : 0;
    if (interior[d] < 0 || interior[d] > INT32_MAX || t->dims[d] + inner + low[d] + high[d] < 0)
      return tfl_fail(x, "dimension %u of size %lld can't be padded so", d, (long long)t->dims[d]);
  }
  if (tfl_in_type(x, 1)->rank) return tfl_fail(x, "what it pads with is not a scalar");
  tfl_out(x, 0, tfl_pad(x, tfl_in(x, 0), tfl_in(x, 1), low, high, interior));
  return x->status;
}

/* The elements of input i, a list with one for each dimension, as scalars. */
static int xla_starts(tfl_op *x, uint32_t i, uint32_t rank, ir_value *out) {
  const ir_type *t = tfl_in_type(x, i);
  if (t->rank != 1 || t->dims[0] != rank) return tfl_fail(x, "input %u is not a list of %u places", i, rank);
  ir_value list = tfl_in(x, i);
  for (uint32_t d = 0; d < rank; d++) out[d] = tfl_reshape(x, tfl_slice(x, list, 0, d, d + 1), 0, NULL);
  return x->status;
}

/* operand, starts, sizes */
int tfl_row_xla_dynamic_slice(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *sizes = NULL;
  ir_value starts[TFL_MOST_DIMS];
  TRY(tfl_known_list(x, 2, t->rank, &sizes));
  TRY(xla_starts(x, 1, t->rank, starts));
  for (uint32_t d = 0; d < t->rank; d++)
    if (sizes[d] < 0 || sizes[d] > t->dims[d])
      return tfl_fail(x, "%lld of %lld elements", (long long)sizes[d], (long long)t->dims[d]);
  tfl_out(x, 0, tfl_dynamic_slice(x, tfl_in(x, 0), starts, sizes));
  return x->status;
}

/* operand, update, starts */
int tfl_row_xla_dynamic_update(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *part = tfl_in_type(x, 1);
  ir_value starts[TFL_MOST_DIMS];
  bool fits = part->rank == t->rank && part->dtype == t->dtype;
  for (uint32_t d = 0; fits && d < t->rank; d++) fits = part->dims[d] <= t->dims[d];
  if (!fits) return tfl_fail(x, "the update does not fit into the operand");
  TRY(xla_starts(x, 2, t->rank, starts));
  tfl_out(x, 0, tfl_dynamic_update(x, tfl_in(x, 0), tfl_in(x, 1), starts));
  return x->status;
}

/* --- sorts: along the last dimension, upwards, in the total order --- */

/* n - 1 values are moved with the keys. */
static int xla_sort(tfl_op *x, uint32_t n) {
  assert(n == 1 || n == 2);
  const ir_type *t = tfl_in_type(x, 0), *types[2], *scalars[2];
  ir_value in[2] = {tfl_in(x, 0), n > 1 ? tfl_in(x, 1) : (ir_value){NULL, 0}}, a = {NULL, 0}, b = {NULL, 0};
  if (t->rank == 0) return tfl_fail(x, "a scalar can't be sorted");
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *own = tfl_in_type(x, i);
    if (own->rank != t->rank || own->count != t->count) return tfl_fail(x, "keys and values have not the same shape");
    types[i] = own;
    scalars[i] = tfl_type(x, (base_dtype)own->dtype, 0, NULL);
  }
  if (x->status || !in[0].op || !in[n - 1].op) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_SORT, n, types, n, in, 1);
  opt_set(x->rw, opt_result(op, 0), "dimension", ir_m_i64(x->rw->m, (int64_t)t->rank - 1));
  opt_set(x->rw, opt_result(op, 0), "is_stable", ir_m_bool(x->rw->m, true));
  ir_computation *region = op ? opt_region(x->rw, op, 0) : NULL;
  if (!region) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < 2 * n; i++) {
    ir_value v = opt_region_argument(x->rw, region, scalars[i / 2]);
    if (i == 0) a = v;
    if (i == 1) b = v;
  }
  tfl_cursor back = tfl_enter(x, region);
  base_dtype dtype = (base_dtype)t->dtype;
  const ir_comparison kind = base_dtype_is_float(dtype)    ? IR_COMPARISON_TOTALORDER
                             : base_dtype_is_signed(dtype) ? IR_COMPARISON_SIGNED
                                                           : IR_COMPARISON_UNSIGNED;
  ir_value less = opt_compare(x->rw, IR_DIRECTION_LT, kind, a, b);
  opt_set_results(x->rw, region, 1, &less);
  tfl_leave(x, back);
  for (uint32_t i = 0; i < n; i++) tfl_out(x, i, opt_result(op, i));
  return x->status;
}

int tfl_row_xla_sort(tfl_op *x) {
  return xla_sort(x, 1);
}

int tfl_row_xla_sort_pairs(tfl_op *x) {
  return xla_sort(x, 2);
}

/* --- small ones --- */

/* operand; the bits are attributes. */
int tfl_row_xla_reduce_precision(tfl_op *x) {
  int64_t exponent = tfl_attr_int(x, "exponent_bits"), mantissa = tfl_attr_int(x, "mantissa_bits");
  const ir_type *t = tfl_in_type(x, 0);
  if (exponent < 1 || mantissa < 0 || exponent > 64 || mantissa > 64)
    return tfl_fail(x, "%lld exponent and %lld mantissa bits", (long long)exponent, (long long)mantissa);
  ir_value v = tfl_in(x, 0);
  if (x->status) return x->status;
  ir_value r = opt_make(x->rw, IR_OP_REDUCE_PRECISION, t, 1, &v);
  opt_set(x->rw, r, "exponent_bits", ir_m_i32(x->rw->m, exponent));
  opt_set(x->rw, r, "mantissa_bits", ir_m_i32(x->rw->m, mantissa));
  tfl_out(x, 0, r);
  return x->status;
}

/* The only one there is. */
int tfl_row_xla_replica(tfl_op *x) {
  const int32_t none = 0;
  tfl_out_data(x, 0, XLAC_S32, 0, NULL, &none);
  return x->status;
}

/* The operand of lower rank gets the other's rank: its dimensions lie at broadcast_dims, the others have size 1. */
int tfl_row_xla_broadcast_helper(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  const int64_t *places = NULL;
  uint32_t n = 0;
  TRY(tfl_ints(x, 2, &places, &n));
  tfl_out_same(x, 0, 0);
  tfl_out_same(x, 1, 1);
  if (n == 0)
    return a->rank == b->rank || !a->rank || !b->rank ? x->status : tfl_fail(x, "ranks %u and %u", a->rank, b->rank);
  uint32_t low = a->rank < b->rank ? 0 : 1, rank = low ? a->rank : b->rank;
  const ir_type *t = low ? b : a;
  int64_t dims[TFL_MOST_DIMS];
  if (n != t->rank || a->rank == b->rank) return tfl_fail(x, "%u places for %u dimensions", n, t->rank);
  for (uint32_t d = 0; d < rank; d++) dims[d] = 1;
  for (uint32_t d = 0; d < n; d++) {
    if (places[d] < 0 || places[d] >= rank || (d && places[d] <= places[d - 1]))
      return tfl_fail(x, "broadcast_dims are not rising places below %u", rank);
    dims[places[d]] = t->dims[d];
  }
  tfl_out(x, low, tfl_reshape(x, tfl_in(x, low), rank, dims));
  return x->status;
}

/* XlaOptimizationBarrier. */
int tfl_row_xla_barrier(tfl_op *x) {
  const ir_type **types = BASE_ARRAY(x->arena, const ir_type *, (size_t)x->n_in + 1);
  ir_value *in = BASE_ARRAY(x->arena, ir_value, (size_t)x->n_in + 1);
  if (!types || !in) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < x->n_in; i++) {
    in[i] = tfl_in(x, i);
    types[i] = tfl_in_type(x, i);
  }
  if (x->status) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_OPT_BARRIER, x->n_in, types, x->n_in, in, 0);
  for (uint32_t i = 0; i < x->n_out && op; i++) tfl_out(x, i, opt_result(op, i));
  return x->status;
}

/* --- XlaConcatND, XlaSplitND --- */

/* XlaConcatND and XlaSplitND: tensors in a grid, row-major, which are parts of one; padding behind its ends. */
typedef struct grid {
  uint32_t rank, n; /* dimensions, parts */
  const int64_t *parts;
  int64_t paddings[TFL_MOST_DIMS];
} grid;

/* The grid must have as many places as there are parts. */
static int grid_of(tfl_op *x, const char *attr, uint32_t rank, uint32_t n, grid *g) {
  const int64_t *paddings = NULL;
  uint32_t n_parts = 0, n_paddings = 0;
  int64_t count = 1;
  TRY(tfl_attr_ints(x, attr, &g->parts, &n_parts));
  TRY(tfl_attr_ints(x, "paddings", &paddings, &n_paddings));
  if (n_parts != rank || (n_paddings && n_paddings != rank))
    return tfl_fail(x, "%u numbers of parts and %u paddings for %u dimensions", n_parts, n_paddings, rank);
  for (uint32_t d = 0; d < rank; d++) {
    g->paddings[d] = n_paddings ? paddings[d] : 0;
    if (g->parts[d] < 1 || g->parts[d] > INT32_MAX || g->paddings[d] < 0 || !base_mul_i64(count, g->parts[d], &count))
      return tfl_fail(x, "%lld parts, padded by %lld", (long long)g->parts[d], (long long)g->paddings[d]);
  }
  if (count != n) return tfl_fail(x, "a grid of %lld parts, but there are %u", (long long)count, n);
  g->rank = rank;
  g->n = n;
  return x->status;
}

/* From the last dimension on: neighbours become one. */
int tfl_row_xla_concat(tfl_op *x) {
  grid g;
  TRY(grid_of(x, "num_concats", tfl_in_type(x, 0)->rank, x->n_in, &g));
  ir_value *v = BASE_ARRAY(x->arena, ir_value, (size_t)x->n_in + 1);
  if (!v) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (tfl_in_type(x, i) != tfl_in_type(x, 0)) return tfl_fail(x, "input %u has another type than the first", i);
    v[i] = tfl_in(x, i);
  }
  if (x->status) return x->status;
  uint32_t n = x->n_in;
  for (uint32_t d = g.rank; d-- > 0;) {
    uint32_t run = (uint32_t)g.parts[d];
    n /= run;
    for (uint32_t i = 0; i < n; i++) v[i] = tfl_concat(x, run, v + (size_t)i * run, d);
  }
  for (uint32_t d = 0; d < g.rank && v[0].op; d++) {
    int64_t size = opt_type(v[0])->dims[d];
    if (g.paddings[d] > size) return tfl_fail(x, "dimension %u is smaller than its padding", d);
    v[0] = tfl_slice(x, v[0], d, 0, size - g.paddings[d]);
  }
  tfl_out(x, 0, v[0]);
  return x->status;
}

/* Pads behind the ends first, so that all parts have one shape. */
int tfl_row_xla_split(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t low[TFL_MOST_DIMS] = {0}, size[TFL_MOST_DIMS];
  grid g;
  TRY(grid_of(x, "num_splits", t->rank, x->n_out, &g));
  ir_value v = tfl_pad(x, tfl_in(x, 0), tfl_scalar(x, (base_dtype)t->dtype, 0), low, g.paddings, NULL);
  for (uint32_t d = 0; d < g.rank; d++) {
    int64_t all = t->dims[d] + g.paddings[d];
    if (all % g.parts[d]) return tfl_fail(x, "%lld elements in %lld parts", (long long)all, (long long)g.parts[d]);
    size[d] = all / g.parts[d];
  }
  for (uint32_t i = 0; i < x->n_out; i++) {
    ir_value part = v;
    int64_t rest = i;
    for (uint32_t d = g.rank; d-- > 0; rest /= g.parts[d]) {
      int64_t at = rest % g.parts[d] * size[d];
      part = tfl_slice(x, part, d, at, at + size[d]);
    }
    tfl_out(x, i, part);
  }
  return x->status;
}
