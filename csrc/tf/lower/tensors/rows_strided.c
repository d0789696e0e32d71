/* Slices: Slice, and StridedSlice with its masks, its gradient and its update. Sizes must be known; where a slice
 * begins need not be, along dimensions it takes one element of. A spec of all dimensions is read once
 * (ValidateStridedSliceOp's rules) and serves all four ops.
 *   x[1:, ..., None, -1]   begin_mask 0, end_mask 1, ellipsis_mask 2, new_axis_mask 4, shrink_axis_mask 8 */
#include "../row.h"

/* One dimension of the input of a strided slice. */
typedef struct strided_dim {
  int64_t from, to, by, size; /* from is inclusive; to lies one step behind the last element */
  bool shrinks;               /* does not stay a dimension */
  bool open;                  /* one element, whose place is element `item` of the begins: known at run time */
  uint32_t item;
} strided_dim;

/* The whole slice: every dimension of the input, and the result's sizes. */
typedef struct strided_spec {
  uint32_t rank, n_out;
  strided_dim dims[TFL_MOST_DIMS];
  int64_t out[TFL_MOST_DIMS]; /* the result's sizes, new dimensions included */
} strided_spec;

/* The attributes and inputs as written; begin and end are NULL where they are not known as a whole. */
typedef struct strided_reader {
  uint32_t n; /* items of begin, end, strides */
  const int64_t *begin, *end, *by;
  int64_t begin_mask, end_mask, ellipsis, new_axis, shrink;
  uint32_t first; /* input number of begin */
} strided_reader;

/* Masks have bits for 32 items at most. */
static bool strided_bit(int64_t mask, uint32_t i) {
  return i < 63 && (mask >> i & 1) != 0;
}

/* Element i of input k, of which `all` has all elements where they are known. */
static bool strided_element(tfl_op *x, uint32_t k, const int64_t *all, uint32_t i, int64_t *v) {
  if (!all) return tfl_element(x, k, i, v);
  *v = all[i];
  return true;
}

/* Negative numbers count from the end; numbers beyond the ends are moved to them. */
static int64_t strided_clamp(int64_t v, int64_t size, int64_t low, int64_t high) {
  assert(low <= high + 1);
  if (v < 0) v += size;
  return v < low ? low : v > high ? high : v;
}

/* One item of begin, end and strides, for a dimension of that size. */
static int strided_one(tfl_op *x, const strided_reader *r, uint32_t i, int64_t size, strided_dim *d) {
  assert(i < r->n);
  int64_t by = r->by[i], begin = 0, end = 0;
  bool has_begin = strided_element(x, r->first, r->begin, i, &begin);
  bool has_end = strided_element(x, r->first + 1, r->end, i, &end);
  if (by == 0) return tfl_fail(x, "stride %u is 0", i);
  *d = (strided_dim){.by = by, .item = i, .shrinks = strided_bit(r->shrink, i)};
  if (d->shrinks) {
    if (by < 0) return tfl_fail(x, "it takes one element of a dimension with the stride %lld", (long long)by);
    d->open = !has_begin;
    d->from = begin < 0 ? begin + size : begin;
    if (!d->open && (d->from < 0 || d->from >= size))
      return tfl_fail(x, "index %lld is out of range for a dimension of size %lld", (long long)begin, (long long)size);
    d->by = d->size = 1;
    d->to = d->from + 1;
    return size > 0 ? 0 : tfl_fail(x, "it takes an element of an empty dimension");
  }
  bool whole_begin = strided_bit(r->begin_mask, i), whole_end = strided_bit(r->end_mask, i);
  if ((!has_begin && !whole_begin) || (!has_end && !whole_end))
    return tfl_fail(x, "where it begins and ends along a dimension it keeps must be known when it is compiled");
  int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  d->from = whole_begin ? (by > 0 ? low : high) : strided_clamp(begin, size, low, high);
  d->to = whole_end ? (by > 0 ? high : low) : strided_clamp(end, size, low, high);
  int64_t span = by > 0 ? d->to - d->from : d->from - d->to, step = by > 0 ? by : -by;
  d->size = span <= 0 ? 0 : (span - 1) / step + 1;
  return 0;
}

/* A dimension that no item indexes. */
static strided_dim strided_whole(int64_t size) {
  return (strided_dim){.to = size, .by = 1, .size = size};
}

/* A dimension of the result. */
static int strided_put_out(tfl_op *x, strided_spec *s, int64_t size) {
  if (s->n_out == TFL_MOST_DIMS) return tfl_fail(x, "its result has too many dimensions");
  s->out[s->n_out++] = size;
  return 0;
}

/* A dimension of the input, and of the result unless it shrinks. */
static int strided_put(tfl_op *x, strided_spec *s, uint32_t rank, const strided_dim *d) {
  if (s->rank == rank) return tfl_fail(x, "it indexes more dimensions than its input has: %u", rank);
  s->dims[s->rank++] = *d;
  return d->shrinks ? 0 : strided_put_out(x, s, d->size);
}

/* The ellipsis, or else the end, takes the dimensions that no item indexes. */
static int strided_items(tfl_op *x, const strided_reader *r, uint32_t rank, const int64_t *dims, strided_spec *s) {
  uint32_t used = 0; /* dimensions that items behind the ellipsis index */
  bool seen = false;
  for (uint32_t i = 0; i < r->n; i++) {
    seen = seen || strided_bit(r->ellipsis, i);
    used += seen && !strided_bit(r->ellipsis, i) && !strided_bit(r->new_axis, i);
  }
  for (uint32_t i = 0; i < r->n; i++) {
    strided_dim d;
    if (strided_bit(r->ellipsis, i)) {
      while (s->rank + used < rank) {
        d = strided_whole(dims[s->rank]);
        TRY(strided_put(x, s, rank, &d));
      }
    } else if (strided_bit(r->new_axis, i)) {
      TRY(strided_put_out(x, s, 1));
    } else {
      if (s->rank == rank) return tfl_fail(x, "it indexes more dimensions than its input has: %u", rank);
      TRY(strided_one(x, r, i, dims[s->rank], &d));
      TRY(strided_put(x, s, rank, &d));
    }
  }
  while (s->rank < rank) {
    strided_dim d = strided_whole(dims[s->rank]);
    TRY(strided_put(x, s, rank, &d));
  }
  return 0;
}

/* Inputs first, first+1, first+2 are begin, end and strides. */
static int strided_read(tfl_op *x, uint32_t first, uint32_t rank, const int64_t *dims, strided_spec *s) {
  strided_reader r = {.first = first,
                      .begin_mask = tfl_attr_int(x, "begin_mask"),
                      .end_mask = tfl_attr_int(x, "end_mask"),
                      .ellipsis = tfl_attr_int(x, "ellipsis_mask"),
                      .new_axis = tfl_attr_int(x, "new_axis_mask"),
                      .shrink = tfl_attr_int(x, "shrink_axis_mask")};
  uint32_t n = 0;
  *s = (strided_spec){.rank = 0};
  TRY(tfl_ints(x, first + 2, &r.by, &r.n));
  if (!tfl_try_ints(x, first, &r.begin, &n)) r.begin = NULL;
  if (!tfl_try_ints(x, first + 1, &r.end, &n)) r.end = NULL;
  for (uint32_t i = 0; i < 2; i++)
    if (tfl_in_type(x, first + i)->count != r.n) return tfl_fail(x, "begin, end and strides have different lengths");
  return x->status ? x->status : strided_items(x, &r, rank, dims, s);
}

/* Where each dimension begins, as scalars, for dynamic slices: a negative open index counts from the end. */
static bool strided_starts(tfl_op *x, uint32_t first, const strided_spec *s, const int64_t *sizes, ir_value *starts) {
  bool any = false;
  base_dtype t = (base_dtype)tfl_in_type(x, first)->dtype;
  for (uint32_t d = 0; d < s->rank; d++) any = any || s->dims[d].open;
  if (!any) return false;
  ir_value begin = tfl_in(x, first);
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!s->dims[d].open) {
      starts[d] = tfl_scalar(x, t, 0);
      continue;
    }
    int64_t at = s->dims[d].item;
    ir_value v = tfl_reshape(x, tfl_slice(x, begin, 0, at, at + 1), 0, NULL);
    ir_value from_end = tfl_with(x, IR_OP_ADD, v, (double)sizes[d]);
    starts[d] = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, v, tfl_like(x, v, 0)), from_end, v);
  }
  return true;
}

/* The dimensions that are reversed: those with negative strides. */
static uint32_t strided_backwards(const strided_spec *s, int64_t *dims) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dims[d].by < 0 && s->dims[d].size > 0) dims[n++] = d;
  return n;
}

/* The first place in memory order and the step there. Of a dimension that is reversed it is the last element
 * taken. */
static int64_t strided_low(const strided_dim *d) {
  if (d->size == 0 || d->open) return 0;
  return d->by > 0 ? d->from : d->from + (d->size - 1) * d->by;
}

static int64_t strided_step(const strided_dim *d) {
  assert(d->by != 0);
  return d->by > 0 ? d->by : -d->by;
}

/* Dynamic first, for open places; then a static slice, reversed where the stride is negative; then the shape. */
static ir_value strided_take(tfl_op *x, const strided_spec *s, ir_value v, uint32_t first) {
  assert(!v.op || s->rank == opt_type(v)->rank);
  int64_t low[TFL_MOST_DIMS], high[TFL_MOST_DIMS], by[TFL_MOST_DIMS], sizes[TFL_MOST_DIMS], backwards[TFL_MOST_DIMS];
  ir_value starts[TFL_MOST_DIMS];
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  for (uint32_t d = 0; d < s->rank; d++) sizes[d] = s->dims[d].open ? 1 : t->dims[d];
  if (strided_starts(x, first, s, t->dims, starts)) v = tfl_dynamic_slice(x, v, starts, sizes);
  for (uint32_t d = 0; d < s->rank; d++) {
    low[d] = strided_low(&s->dims[d]);
    by[d] = strided_step(&s->dims[d]);
    high[d] = s->dims[d].size == 0 ? low[d] : low[d] + (s->dims[d].size - 1) * by[d] + 1;
  }
  v = opt_slice(x->rw, v, low, high, by);
  v = tfl_reverse(x, v, strided_backwards(s, backwards), backwards);
  return tfl_reshape(x, v, s->n_out, s->out);
}

/* input, begin, end, strides */
int tfl_row_strided_slice(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  strided_spec s;
  TRY(strided_read(x, 1, t->rank, t->dims, &s));
  tfl_out(x, 0, strided_take(x, &s, tfl_in(x, 0), 1));
  return x->status;
}

/* v, of the slice's shape, in its places in a tensor of sizes dims; `fill` elsewhere. */
static ir_value strided_place(tfl_op *x, const strided_spec *s, const int64_t *dims, ir_value v, ir_value fill,
                              uint32_t first) {
  int64_t low[TFL_MOST_DIMS], high[TFL_MOST_DIMS], inside[TFL_MOST_DIMS], shape[TFL_MOST_DIMS],
      backwards[TFL_MOST_DIMS];
  ir_value starts[TFL_MOST_DIMS];
  if (!v.op) return v;
  for (uint32_t d = 0; d < s->rank; d++) {
    const strided_dim *one = &s->dims[d];
    shape[d] = one->size;
    low[d] = strided_low(one);
    inside[d] = strided_step(one) - 1;
    int64_t end = one->size == 0 ? 0 : low[d] + (one->size - 1) * strided_step(one) + 1;
    if (one->size == 0) low[d] = 0;
    high[d] = one->open ? 0 : dims[d] - end;
  }
  v = tfl_reshape(x, v, s->rank, shape);
  v = tfl_reverse(x, v, strided_backwards(s, backwards), backwards);
  v = tfl_pad(x, v, fill, low, high, inside);
  if (!v.op || !strided_starts(x, first, s, dims, starts)) return v;
  ir_value all = tfl_broadcast(x, fill, s->rank, dims);
  return tfl_dynamic_update(x, all, v, starts);
}

/* shape, begin, end, strides, dy: zeros but in the slice's places. */
int tfl_row_strided_slice_grad(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t rank = 0;
  strided_spec s;
  TRY(tfl_ints(x, 0, &dims, &rank));
  if (rank > TFL_MOST_DIMS) return tfl_fail(x, "%u dimensions: at most %d work", rank, TFL_MOST_DIMS);
  TRY(strided_read(x, 1, rank, dims, &s));
  tfl_out(x, 0, strided_place(x, &s, dims, tfl_in(x, 4), tfl_scalar(x, tfl_out_dtype(x, 0), 0), 1));
  return x->status;
}

/* `old` with v, which is broadcast to the slice's shape, in the slice's place. */
static ir_value strided_update(tfl_op *x, const strided_spec *s, ir_value old, ir_value v) {
  if (!old.op || !v.op) return v;
  const int64_t *dims = opt_type(old)->dims;
  v = tfl_broadcast(x, v, s->n_out, s->out);
  ir_value all = strided_place(x, s, dims, v, tfl_scalar(x, (base_dtype)opt_type(old)->dtype, 0), 1);
  ir_value on = tfl_full(x, XLAC_PRED, s->n_out, s->out, 1);
  on = strided_place(x, s, dims, on, tfl_scalar(x, XLAC_PRED, 0), 1);
  return opt_select(x->rw, on, all, old);
}

/* input, begin, end, strides, value */
int tfl_row_strided_slice_update(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  strided_spec s;
  TRY(strided_read(x, 1, t->rank, t->dims, &s));
  tfl_out(x, 0, strided_update(x, &s, tfl_in(x, 0), tfl_in(x, 4)));
  return x->status;
}

/* The same on a variable. */
int tfl_row_strided_slice_assign(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  strided_spec s;
  if (!r) return x->status;
  if (r->value.kind != TFL_TENSOR) return tfl_fail(x, "the variable has no value yet");
  TRY(strided_read(x, 1, r->value.type->rank, r->value.type->dims, &s));
  x->fixed = false;
  tfl_assign(x, r, strided_update(x, &s, tfl_use(x, &r->value), tfl_in(x, 4)));
  return x->status;
}

/* --- Slice --- */

/* input, begin, size; -1 is what is left. A begin that is not known is moved by dynamic_slice so that the slice
 * fits. */
int tfl_row_slice(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  const int64_t *begin = NULL, *given = NULL;
  int64_t sizes[TFL_MOST_DIMS], ends[TFL_MOST_DIMS], ones[TFL_MOST_DIMS];
  ir_value starts[TFL_MOST_DIMS];
  uint32_t n = 0;
  TRY(tfl_ints(x, 2, &given, &n));
  bool known = tfl_try_ints(x, 1, &begin, &n);
  if (x->status) return x->status;
  if (n != t->rank && known) return tfl_fail(x, "it begins in %u dimensions, its input has %u", n, t->rank);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (given[d] == -1 && !known) return tfl_fail(x, "size -1 needs a begin that is known when it is compiled");
    sizes[d] = given[d] == -1 ? t->dims[d] - begin[d] : given[d];
    ones[d] = 1;
    if (sizes[d] < 0 || sizes[d] > t->dims[d] || (known && (begin[d] < 0 || begin[d] + sizes[d] > t->dims[d])))
      return tfl_fail(x, "%lld elements from %lld on are not within dimension %u, of size %lld", (long long)given[d],
                      (long long)(known ? begin[d] : 0), d, (long long)t->dims[d]);
    ends[d] = known ? begin[d] + sizes[d] : 0;
  }
  ir_value v = tfl_in(x, 0);
  if (known) return tfl_out(x, 0, opt_slice(x->rw, v, begin, ends, ones)), x->status;
  ir_value at = tfl_in(x, 1);
  for (uint32_t d = 0; d < t->rank; d++) starts[d] = tfl_reshape(x, tfl_slice(x, at, 0, d, d + 1), 0, NULL);
  tfl_out(x, 0, tfl_dynamic_slice(x, v, starts, sizes));
  return x->status;
}
