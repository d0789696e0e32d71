/* Windows as TensorFlow's attributes give them, and makers of convolutions and of ops over windows. */
#include "../windows.h"

/* --- formats, strides, dilations, padding --- */

/* "NHWC": 'C' last; "NCHW": 'C' second. The letters between are not looked at. */
int tfl_layout_of(tfl_op *x, uint32_t n, const ir_type *image, tfl_layout *out) {
  base_slice format = tfl_attr_str(x, "data_format");
  *out = (tfl_layout){.n = n};
  if (x->status) return x->status;
  bool last = format.n > 0 && format.p[format.n - 1] == 'C', first = format.n > 1 && format.p[1] == 'C';
  if (format.n != n + 2 || last == first)
    return tfl_fail(x, "data_format '%.*s' is none of %u spatial dimensions", (int)format.n, format.p, n);
  if (image->rank != n + 2)
    return tfl_fail(x, "an image of rank %u: data_format '%.*s' has %u dimensions", image->rank, (int)format.n,
                    format.p, n + 2);
  out->feature = last ? n + 1 : 1;
  for (uint32_t i = 0; i < n; i++) out->spatial[i] = i + (last ? 1 : 2);
  return 0;
}

int tfl_spatial_attr(tfl_op *x, const char *name, const tfl_layout *l, int64_t *out) {
  assert(l->n <= TFL_MOST_SPATIAL);
  const int64_t *v = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->n; i++) out[i] = 1;
  if (!tf_attr_or_default(x->node->op, x->node->def->attrs, base_slice_of(name)).p) return 0;
  TRY(tfl_attr_ints(x, name, &v, &n));
  if (n == 0) return 0;
  if (n != l->n + 2) return tfl_fail(x, "attribute '%s' has %u numbers: expected %u", name, n, l->n + 2);
  if (v[l->batch] != 1 || v[l->feature] != 1)
    return tfl_fail(x, "attribute '%s' is not 1 for batch and features", name);
  for (uint32_t i = 0; i < l->n; i++) {
    out[i] = v[l->spatial[i]];
    if (out[i] < 1 || out[i] > INT32_MAX) return tfl_fail(x, "attribute '%s' has %lld", name, (long long)out[i]);
  }
  return 0;
}

/* Pairs for all dimensions; those of batch and features do not count. */
static int windows_explicit(tfl_op *x, const tfl_layout *l, tfl_span *spans) {
  const int64_t *v = NULL;
  uint32_t n = 0;
  TRY(tfl_attr_ints(x, "explicit_paddings", &v, &n));
  if (n != 2 * (l->n + 2)) return tfl_fail(x, "explicit_paddings has %u numbers: expected %u", n, 2 * (l->n + 2));
  for (uint32_t i = 0; i < l->n; i++) {
    spans[i].low = v[2 * l->spatial[i]];
    spans[i].high = v[2 * l->spatial[i] + 1];
    if (spans[i].low < 0 || spans[i].high < 0 || spans[i].low > INT32_MAX || spans[i].high > INT32_MAX)
      return tfl_fail(x, "explicit_paddings has %lld, %lld", (long long)spans[i].low, (long long)spans[i].high);
  }
  return 0;
}

/* As few places as the stride asks for; of odd padding the larger half comes behind. */
static void windows_pad_same(tfl_span *s, int64_t reach) {
  assert(s->stride > 0 && reach > 0);
  int64_t out = (s->in + s->stride - 1) / s->stride;
  int64_t all = (out - 1) * s->stride + reach - s->in;
  if (all < 0) all = 0;
  s->low = all / 2;
  s->high = all - s->low;
}

/* Sizes are held below 2^31, so that sums of them do not overflow. */
int tfl_pad_spans(tfl_op *x, const tfl_layout *l, tfl_span *spans) {
  base_slice padding = tfl_attr_str(x, "padding");
  if (x->status) return x->status;
  bool same = base_slice_is(padding, "SAME"), given = base_slice_is(padding, "EXPLICIT");
  if (!same && !given && !base_slice_is(padding, "VALID"))
    return tfl_fail(x, "padding '%.*s': expected SAME, VALID or EXPLICIT", (int)padding.n, padding.p);
  if (given) TRY(windows_explicit(x, l, spans));
  for (uint32_t i = 0; i < l->n; i++) {
    tfl_span *s = &spans[i];
    if (s->size < 1 || s->size > INT32_MAX || s->in > INT32_MAX)
      return tfl_fail(x, "a window of %lld over %lld elements", (long long)s->size, (long long)s->in);
    int64_t reach = (s->size - 1) * s->dilation + 1;
    if (!given) s->low = s->high = 0;
    if (same) windows_pad_same(s, reach);
    int64_t room = s->in + s->low + s->high - reach;
    if (room < 0)
      return tfl_fail(x, "a window of %lld goes over %lld elements", (long long)reach,
                      (long long)(s->in + s->low + s->high));
    s->out = room / s->stride + 1;
  }
  return 0;
}

/* Field 2 of the list. */
static uint32_t windows_strings(base_slice list, base_slice *out) {
  uint32_t n = 0;
  const char *at = list.p;
  for (tf_raw_field f; tf_raw_next(&at, list.p + list.n, &f);) {
    if (f.number != 2 || f.wire != 2) continue;
    if (out) out[n] = f.bytes;
    n++;
  }
  return n;
}

/* An absent attribute is an empty list. The strings lie in the node's bytes. */
int tfl_attr_strings(tfl_op *x, const char *name, const base_slice **v, uint32_t *n) {
  base_slice value = tf_attr_or_default(x->node->op, x->node->def->attrs, base_slice_of(name));
  tf_raw_field f;
  *v = NULL;
  *n = 0;
  if (!value.p || !tf_raw_find(value, 1, &f) || f.wire != 2) return x->status;
  *n = windows_strings(f.bytes, NULL);
  base_slice *list = BASE_ARRAY(x->arena, base_slice, (size_t)*n + 1);
  if (!list) return x->status = base_oom(x->err, "lowering");
  windows_strings(f.bytes, list);
  *v = list;
  return x->status;
}

/* Field 4 of the list: packed, or one by one. Counts where out is NULL. */
static uint32_t windows_floats(base_slice list, float *out) {
  uint32_t n = 0;
  const char *at = list.p;
  for (tf_raw_field f; tf_raw_next(&at, list.p + list.n, &f);) {
    if (f.number != 4) continue;
    uint32_t bits = (uint32_t)f.value, many = f.wire == 2 ? (uint32_t)(f.bytes.n / 4) : f.wire == 5;
    if (out && f.wire == 2) memcpy(out + n, f.bytes.p, (size_t)many * 4);
    if (out && f.wire == 5) memcpy(out + n, &bits, 4);
    n += many;
  }
  return n;
}

/* An absent attribute is an empty list. */
int tfl_attr_floats(tfl_op *x, base_slice value, const float **v, uint32_t *n) {
  tf_raw_field f;
  *v = NULL;
  *n = 0;
  if (!value.p || !tf_raw_find(value, 1, &f) || f.wire != 2) return x->status;
  *n = windows_floats(f.bytes, NULL);
  float *list = BASE_ARRAY(x->arena, float, (size_t)*n + 1);
  if (!list) return x->status = base_oom(x->err, "lowering");
  windows_floats(f.bytes, list);
  *v = list;
  return x->status;
}

/* --- makers --- */

static ir_value windows_nothing(void) {
  return (ir_value){NULL, 0};
}

/* Pairs (low, high), as an n x 2 tensor. */
static const ir_mattr *windows_padding(tfl_op *x, uint32_t n, const int64_t *low, const int64_t *high) {
  int64_t pairs[2 * TFL_MOST_DIMS], dims[] = {n, 2};
  for (uint32_t d = 0; d < n; d++) {
    pairs[2 * d] = low[d];
    pairs[2 * d + 1] = high[d];
  }
  return ir_m_dense_i64(x->rw->m, 2, dims, pairs);
}

tfl_window tfl_window_of(const ir_type *t, const tfl_layout *l, const tfl_span *spans) {
  assert(l->n + 2 == t->rank);
  tfl_window w = {.rank = t->rank};
  for (uint32_t d = 0; d < t->rank; d++) w.size[d] = w.stride[d] = 1;
  for (uint32_t i = 0; i < l->n; i++) {
    uint32_t d = l->spatial[i];
    w.size[d] = spans[i].size;
    w.stride[d] = spans[i].stride;
    w.low[d] = spans[i].low;
    w.high[d] = spans[i].high;
  }
  return w;
}

/* Attributes that reduce_window and select_and_scatter share. */
static void windows_set(tfl_op *x, ir_value v, const tfl_window *w) {
  ir_module *m = x->rw->m;
  opt_set(x->rw, v, "window_dimensions", ir_m_i64s(m, w->rank, w->size));
  opt_set(x->rw, v, "window_strides", ir_m_i64s(m, w->rank, w->stride));
  opt_set(x->rw, v, "padding", windows_padding(x, w->rank, w->low, w->high));
}

/* A window that is larger than its room gives no elements. */
ir_value tfl_reduce_window(tfl_op *x, ir_opcode opcode, ir_value v, ir_value init, const tfl_window *w) {
  int64_t dims[TFL_MOST_DIMS];
  const ir_type *t = opt_type(v);
  if (!t || !init.op) return windows_nothing();
  assert(w->rank == t->rank);
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t room = t->dims[d] + w->low[d] + w->high[d] - w->size[d];
    dims[d] = room < 0 ? 0 : room / w->stride[d] + 1;
  }
  const ir_type *type = tfl_type(x, (base_dtype)t->dtype, t->rank, dims);
  ir_value both[] = {v, init};
  ir_op *op = opt_make_n(x->rw, IR_OP_REDUCE_WINDOW, 1, &type, 2, both, 1);
  windows_set(x, opt_result(op, 0), w);
  if (op) opt_make_reducer(x->rw, op, opcode, opt_type(init));
  return opt_result(op, 0);
}

/* Region 0 of select_and_scatter chooses (the first that is not smaller), region 1 adds. */
static void windows_region(tfl_op *x, ir_op *op, uint32_t index, bool select) {
  assert(index < 2);
  ir_computation *region = opt_region(x->rw, op, index);
  const ir_type *scalar = opt_type(opt_operand(op, 2));
  if (!region) return;
  ir_value a = opt_region_argument(x->rw, region, scalar), b = opt_region_argument(x->rw, region, scalar);
  tfl_cursor back = tfl_enter(x, region);
  ir_value result = select ? tfl_compare(x, IR_DIRECTION_GE, a, b) : opt_binary(x->rw, IR_OP_ADD, a, b);
  opt_set_results(x->rw, region, 1, &result);
  tfl_leave(x, back);
}

ir_value tfl_scatter_to_largest(tfl_op *x, ir_value v, ir_value source, const tfl_window *w) {
  const ir_type *t = opt_type(v);
  if (!t || !source.op) return windows_nothing();
  ir_value all[] = {v, source, tfl_scalar(x, (base_dtype)t->dtype, 0)};
  ir_op *op = opt_make_n(x->rw, IR_OP_SELECT_AND_SCATTER, 1, &t, 3, all, 2);
  windows_set(x, opt_result(op, 0), w);
  if (op) {
    windows_region(x, op, 0, true);
    windows_region(x, op, 1, false);
  }
  return opt_result(op, 0);
}

/* --- convolutions --- */

/* #stablehlo.conv; batch and feature of the kernel are its input and output features. */
static const ir_mattr *windows_numbers(tfl_op *x, const tfl_conv *c) {
  ir_module *m = x->rw->m;
  const struct {
    const char *name;
    const ir_mattr *value;
  } list[] = {{"input_batch_dimension", ir_m_i64(m, c->lhs.batch)},
              {"input_feature_dimension", ir_m_i64(m, c->lhs.feature)},
              {"input_spatial_dimensions", NULL},
              {"kernel_input_feature_dimension", ir_m_i64(m, c->rhs.batch)},
              {"kernel_output_feature_dimension", ir_m_i64(m, c->rhs.feature)},
              {"kernel_spatial_dimensions", NULL},
              {"output_batch_dimension", ir_m_i64(m, c->out.batch)},
              {"output_feature_dimension", ir_m_i64(m, c->out.feature)},
              {"output_spatial_dimensions", NULL}};
  const tfl_conv_dims *sides[] = {&c->lhs, &c->rhs, &c->out};
  ir_mentry fields[9];
  for (int i = 0; i < 9; i++) {
    int64_t spatial[TFL_MOST_SPATIAL];
    for (uint32_t d = 0; d < c->n; d++) spatial[d] = sides[i / 3]->spatial[d];
    fields[i].key = ir_intern(m, list[i].name, strlen(list[i].name));
    fields[i].value = i % 3 == 2 ? ir_m_i64s(m, c->n, spatial) : list[i].value;
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(m, "stablehlo", "conv", 9, fields);
}

/* The result's sizes; what is not divisible has been refused by the rows. */
static const ir_type *windows_conv_type(tfl_op *x, const ir_type *a, const ir_type *b, const tfl_conv *c) {
  assert(c->batch_groups > 0);
  int64_t dims[TFL_MOST_SPATIAL + 2];
  dims[c->out.batch] = a->dims[c->lhs.batch] / c->batch_groups;
  dims[c->out.feature] = b->dims[c->rhs.feature];
  for (uint32_t i = 0; i < c->n; i++) {
    int64_t in = a->dims[c->lhs.spatial[i]], size = b->dims[c->rhs.spatial[i]];
    int64_t reach = size ? (size - 1) * c->rhs_dilation[i] + 1 : 0;
    int64_t room = (in ? (in - 1) * c->lhs_dilation[i] + 1 : 0) + c->low[i] + c->high[i] - reach;
    dims[c->out.spatial[i]] = room < 0 ? 0 : room / c->stride[i] + 1;
  }
  return tfl_type(x, (base_dtype)a->dtype, c->n + 2, dims);
}

ir_value tfl_convolution(tfl_op *x, ir_value lhs, ir_value rhs, const tfl_conv *c) {
  assert(c->n <= TFL_MOST_SPATIAL);
  ir_module *m = x->rw->m;
  if (!lhs.op || !rhs.op) return windows_nothing();
  int64_t reversed[TFL_MOST_SPATIAL] = {c->reversed, c->reversed, c->reversed};
  ir_value both[] = {lhs, rhs};
  ir_value v = opt_make(x->rw, IR_OP_CONVOLUTION, windows_conv_type(x, opt_type(lhs), opt_type(rhs), c), 2, both);
  opt_set(x->rw, v, "dimension_numbers", windows_numbers(x, c));
  opt_set(x->rw, v, "window_strides", ir_m_i64s(m, c->n, c->stride));
  opt_set(x->rw, v, "padding", windows_padding(x, c->n, c->low, c->high));
  opt_set(x->rw, v, "lhs_dilation", ir_m_i64s(m, c->n, c->lhs_dilation));
  opt_set(x->rw, v, "rhs_dilation", ir_m_i64s(m, c->n, c->rhs_dilation));
  opt_set(x->rw, v, "window_reversal", ir_m_bools(m, c->n, reversed));
  opt_set(x->rw, v, "feature_group_count", ir_m_i64(m, c->feature_groups));
  opt_set(x->rw, v, "batch_group_count", ir_m_i64(m, c->batch_groups));
  return v;
}
