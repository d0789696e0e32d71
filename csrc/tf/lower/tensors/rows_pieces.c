/* Tensors of parts, and parts of tensors: concatenation, packing, splitting, padding, reversing, rolling. Sizes
 * and places are known while lowering but where a row's comment says otherwise. */
#include "../row.h"

/* n inputs from `from` on; NULL after a failure. */
static ir_value *pieces_in(tfl_op *x, uint32_t from, uint32_t n) {
  ir_value *v = BASE_ARRAY(x->arena, ir_value, (size_t)n + 1);
  if (!v) x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; v && i < n; i++) v[i] = tfl_in(x, from + i);
  return x->status ? NULL : v;
}

/* ConcatV2 has its axis last, Concat first. */
int tfl_row_concat(tfl_op *x) {
  bool last = x->row->arg == 2;
  if (x->n_in < 2) return tfl_fail(x, "it has no parts");
  uint32_t n = x->n_in - 1, first = last ? 0 : 1, dim = 0;
  int64_t axis = 0;
  TRY(tfl_int(x, last ? n : 0, &axis));
  TRY(tfl_axis(x, axis, tfl_in_type(x, first)->rank, &dim));
  ir_value *parts = pieces_in(x, first, n);
  if (parts) tfl_out(x, 0, tfl_concat(x, n, parts, dim));
  return x->status;
}

/* _ParallelConcat's parts have a first dimension already. */
int tfl_row_parallel_concat(tfl_op *x) {
  if (x->n_in == 0) return tfl_fail(x, "it has no parts");
  if (tfl_in_type(x, 0)->rank == 0) return tfl_fail(x, "its parts are scalars: expected one dimension or more");
  ir_value *parts = pieces_in(x, 0, x->n_in);
  if (parts) tfl_out(x, 0, tfl_concat(x, x->n_in, parts, 0));
  return x->status;
}

/* Where each part begins: known numbers, from the shapes. */
int tfl_row_concat_offset(tfl_op *x) {
  int64_t axis = 0, sum = 0;
  uint32_t dim = 0, n = 0;
  const int64_t *shape = NULL;
  TRY(tfl_int(x, 0, &axis));
  for (uint32_t i = 1; i < x->n_in; i++) {
    int64_t offset[TFL_MOST_DIMS] = {0};
    TRY(tfl_ints(x, i, &shape, &n));
    if (n > TFL_MOST_DIMS) return tfl_fail(x, "input %u has too many elements", i);
    TRY(tfl_axis(x, axis, n, &dim));
    offset[dim] = sum;
    sum += shape[dim];
    const int64_t count = n;
    tfl_out_ints(x, i - 1, 1, &count, offset);
  }
  return x->status;
}

/* t's sizes with a 1 put in before dimension `at`. */
static uint32_t pieces_expanded(const ir_type *t, uint32_t at, int64_t *dims) {
  uint32_t n = 0;
  for (uint32_t d = 0; d <= t->rank; d++) dims[d] = d == at ? 1 : t->dims[n++];
  return t->rank + 1;
}

/* Each part gets a dimension of size 1, along which they are concatenated. */
int tfl_row_pack(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  uint32_t dim = 0;
  int64_t dims[TFL_MOST_DIMS + 1];
  TRY(tfl_axis(x, tfl_attr_int(x, "axis"), t->rank + 1, &dim));
  if (t->rank >= TFL_MOST_DIMS) return tfl_fail(x, "it has too many dimensions");
  ir_value *parts = pieces_in(x, 0, x->n_in);
  for (uint32_t i = 0; parts && i < x->n_in; i++) {
    if (tfl_in_type(x, i) != t) return tfl_fail(x, "input %u has another shape than input 0", i);
    parts[i] = tfl_reshape(x, parts[i], pieces_expanded(t, dim, dims), dims);
  }
  if (parts) tfl_out(x, 0, tfl_concat(x, x->n_in, parts, dim));
  return x->status;
}

/* The other way. */
int tfl_row_unpack(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  uint32_t dim = 0, rank = 0;
  int64_t dims[TFL_MOST_DIMS];
  TRY(tfl_axis(x, tfl_attr_int(x, "axis"), t->rank, &dim));
  if (t->dims[dim] != x->n_out)
    return tfl_fail(x, "dimension %u has the size %lld, it gives %u parts", dim, (long long)t->dims[dim], x->n_out);
  for (uint32_t d = 0; d < t->rank; d++)
    if (d != dim) dims[rank++] = t->dims[d];
  ir_value v = tfl_in(x, 0);
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out(x, i, tfl_reshape(x, tfl_slice(x, v, dim, i, i + 1), rank, dims));
  return x->status;
}

/* split_dim, value */
int tfl_row_split(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 1);
  int64_t axis = 0;
  uint32_t dim = 0;
  TRY(tfl_int(x, 0, &axis));
  TRY(tfl_axis(x, axis, t->rank, &dim));
  if (x->n_out == 0 || t->dims[dim] % x->n_out != 0)
    return tfl_fail(x, "%lld elements can't be cut into %u equal parts", (long long)t->dims[dim], x->n_out);
  int64_t size = t->dims[dim] / x->n_out;
  ir_value v = tfl_in(x, 1);
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out(x, i, tfl_slice(x, v, dim, i * size, (i + 1) * size));
  return x->status;
}

/* value, sizes, split_dim; one size may be -1, what is left. */
int tfl_row_split_v(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t axis = 0, sum = 0, open = -1;
  const int64_t *sizes = NULL;
  uint32_t dim = 0, n = 0;
  TRY(tfl_int(x, 2, &axis));
  TRY(tfl_axis(x, axis, t->rank, &dim));
  TRY(tfl_ints(x, 1, &sizes, &n));
  if (n != x->n_out) return tfl_fail(x, "it has %u sizes for %u parts", n, x->n_out);
  for (uint32_t i = 0; i < n; i++) {
    if (sizes[i] == -1 && open < 0)
      open = i;
    else if (sizes[i] < 0 || !base_add_i64(sum, sizes[i], &sum))
      return tfl_fail(x, "size %lld is none", (long long)sizes[i]);
  }
  if (open < 0 ? sum != t->dims[dim] : sum > t->dims[dim])
    return tfl_fail(x, "its sizes add up to %lld, the dimension has %lld", (long long)sum, (long long)t->dims[dim]);
  ir_value v = tfl_in(x, 0);
  int64_t from = 0;
  for (uint32_t i = 0; i < n && v.op; i++) {
    int64_t size = i == open ? t->dims[dim] - sum : sizes[i];
    tfl_out(x, i, tfl_slice(x, v, dim, from, from + size));
    from += size;
  }
  return x->status;
}

/* --- padding, reversing, rolling --- */

/* arg none: Pad fills with zeros, PadV2 with input 2. */
int tfl_row_pad(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *by = NULL;
  int64_t low[TFL_MOST_DIMS], high[TFL_MOST_DIMS];
  uint32_t n = 0;
  TRY(tfl_ints(x, 1, &by, &n));
  if (n != 2 * t->rank) return tfl_fail(x, "it pads %u dimensions, its input has %u", n / 2, t->rank);
  for (uint32_t d = 0; d < t->rank; d++) {
    low[d] = by[2 * d];
    high[d] = by[2 * d + 1];
    if (low[d] < 0 || high[d] < 0) return tfl_fail(x, "it pads dimension %u by a negative size", d);
  }
  ir_value fill = x->n_in > 2 ? tfl_in(x, 2) : tfl_scalar(x, (base_dtype)t->dtype, 0);
  tfl_out(x, 0, tfl_pad(x, tfl_in(x, 0), fill, low, high, NULL));
  return x->status;
}

/* How far from the edge what is mirrored begins: SYMMETRIC repeats the edge itself. */
static int64_t pieces_mirror_skip(tfl_op *x) {
  return tfl_attr_is(x, "mode", "REFLECT") ? 1 : 0;
}

/* The paddings, checked. */
static int pieces_mirror(tfl_op *x, const int64_t **by) {
  const ir_type *t = tfl_in_type(x, 0);
  uint32_t n = 0;
  TRY(tfl_ints(x, 1, by, &n));
  if (n != 2 * t->rank) return tfl_fail(x, "it pads %u dimensions, its input has %u", n / 2, t->rank);
  for (uint32_t i = 0; i < n; i++)
    if ((*by)[i] < 0) return tfl_fail(x, "it pads dimension %u by a negative size", i / 2);
  return x->status;
}

/* Dimension by dimension: corners are mirrored of what was mirrored. */
int tfl_row_mirror_pad(tfl_op *x) {
  const int64_t *by = NULL;
  int64_t skip = pieces_mirror_skip(x);
  TRY(pieces_mirror(x, &by));
  ir_value v = tfl_in(x, 0);
  for (uint32_t d = 0; v.op && d < opt_type(v)->rank; d++) {
    int64_t size = opt_type(v)->dims[d], dim = d, low = by[2 * d], high = by[2 * d + 1];
    if (low + skip > size || high + skip > size)
      return tfl_fail(x, "dimension %u, of size %lld, can't be mirrored by %lld and %lld", d, (long long)size,
                      (long long)low, (long long)high);
    ir_value parts[] = {tfl_reverse(x, tfl_slice(x, v, d, skip, low + skip), 1, &dim), v,
                        tfl_reverse(x, tfl_slice(x, v, d, size - high - skip, size - skip), 1, &dim)};
    if (low || high) v = tfl_concat(x, 3, parts, d);
  }
  tfl_out(x, 0, v);
  return x->status;
}

/* A part of v, at `at` within dimension d of size `size`, zeros elsewhere. */
static ir_value pieces_placed(tfl_op *x, ir_value v, uint32_t d, int64_t at, int64_t size) {
  assert(at >= 0 && at <= size);
  int64_t low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0};
  if (!v.op) return v;
  low[d] = at;
  high[d] = size - at - opt_type(v)->dims[d];
  return tfl_pad(x, v, tfl_scalar(x, (base_dtype)opt_type(v)->dtype, 0), low, high, NULL);
}

/* What was mirrored out is added back. */
int tfl_row_mirror_pad_grad(tfl_op *x) {
  const int64_t *by = NULL;
  int64_t skip = pieces_mirror_skip(x);
  TRY(pieces_mirror(x, &by));
  ir_value v = tfl_in(x, 0);
  for (uint32_t d = 0; v.op && d < opt_type(v)->rank; d++) {
    int64_t all = opt_type(v)->dims[d], dim = d, low = by[2 * d], high = by[2 * d + 1], size = all - low - high;
    if (size < 0 || low + skip > size || high + skip > size)
      return tfl_fail(x, "dimension %u, of size %lld, is not mirrored by %lld and %lld", d, (long long)all,
                      (long long)low, (long long)high);
    ir_value left = tfl_reverse(x, tfl_slice(x, v, d, 0, low), 1, &dim);
    ir_value right = tfl_reverse(x, tfl_slice(x, v, d, all - high, all), 1, &dim);
    v = tfl_slice(x, v, d, low, low + size);
    v = opt_binary(x->rw, IR_OP_ADD, v, pieces_placed(x, left, d, skip, size));
    v = opt_binary(x->rw, IR_OP_ADD, v, pieces_placed(x, right, d, size - high - skip, size));
  }
  tfl_out(x, 0, v);
  return x->status;
}

/* arg 2: ReverseV2 lists axes; Reverse has a flag for each dimension. */
int tfl_row_reverse(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t dims[TFL_MOST_DIMS];
  uint32_t n = 0, count = 0, axis = 0;
  const int64_t *axes = NULL;
  const void *flags = NULL;
  if (x->row->arg == 2) {
    TRY(tfl_ints(x, 1, &axes, &n));
    for (uint32_t i = 0; i < n; i++) {
      TRY(tfl_axis(x, axes[i], t->rank, &axis));
      for (uint32_t k = 0; k < count; k++)
        if (dims[k] == axis) return tfl_fail(x, "axis %u is there twice", axis);
      dims[count++] = axis;
    }
  } else {
    TRY(tfl_data(x, 1, &flags));
    if (tfl_in_type(x, 1)->count != t->rank) return tfl_fail(x, "it has flags for other dimensions than its input's");
    for (uint32_t d = 0; d < t->rank; d++)
      if (((const uint8_t *)flags)[d]) dims[count++] = d;
  }
  tfl_out(x, 0, tfl_reverse(x, tfl_in(x, 0), count, dims));
  return x->status;
}

/* v with its elements moved by `by` places along a dimension, the last ones to the front. `by` may be a value. A
 * shift that is not known: of the value twice in a row a part is taken that begins there. */
static ir_value pieces_roll(tfl_op *x, ir_value v, uint32_t dim, const int64_t *known, ir_value by) {
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  int64_t n = t->dims[dim];
  if (n == 0) return v;
  if (known) {
    int64_t cut = (n - (*known % n + n) % n) % n;
    ir_value parts[] = {tfl_slice(x, v, dim, cut, n), tfl_slice(x, v, dim, 0, cut)};
    return cut == 0 ? v : tfl_concat(x, 2, parts, dim);
  }
  ir_value starts[TFL_MOST_DIMS], twice[] = {v, v}, size = tfl_like(x, by, (double)n);
  ir_value rest = opt_binary(x->rw, IR_OP_REMAINDER, by, size);
  ir_value from = opt_binary(x->rw, IR_OP_SUBTRACT, size, rest); /* in 1..2n-1 */
  from = opt_binary(x->rw, IR_OP_REMAINDER, from, size);
  for (uint32_t d = 0; d < t->rank; d++) starts[d] = d == dim ? from : tfl_like(x, by, 0);
  return tfl_dynamic_slice(x, tfl_concat(x, 2, twice, dim), starts, t->dims);
}

/* value, shifts (scalar or list), axes */
int tfl_row_roll(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *shifts = tfl_in_type(x, 1);
  const int64_t *axes = NULL, *known = NULL;
  uint32_t n = 0, m = 0, dim = 0;
  TRY(tfl_ints(x, 2, &axes, &n));
  bool is_known = tfl_try_ints(x, 1, &known, &m);
  if (x->status) return x->status;
  if (shifts->count != n) return tfl_fail(x, "it has %lld shifts for %u axes", (long long)shifts->count, n);
  ir_value v = tfl_in(x, 0), by = is_known ? v : tfl_in(x, 1);
  const int64_t all = n;
  if (!is_known) by = tfl_reshape(x, by, 1, &all);
  for (uint32_t i = 0; i < n; i++) {
    TRY(tfl_axis(x, axes[i], t->rank, &dim));
    ir_value one = is_known ? by : tfl_reshape(x, tfl_slice(x, by, 0, i, i + 1), 0, NULL);
    v = pieces_roll(x, v, dim, is_known ? &known[i] : NULL, one);
  }
  tfl_out(x, 0, v);
  return x->status;
}
