/* Windows as TensorFlow's attributes give them: formats, strides, dilations, padding. */
#include "../windows.h"

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

static void windows_pad_same(tfl_span *s, int64_t reach) {
  int64_t out = (s->in + s->stride - 1) / s->stride;
  int64_t all = (out - 1) * s->stride + reach - s->in;
  if (all < 0) all = 0;
  s->low = all / 2;
  s->high = all - s->low;
}

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

/* Field 4 of the list: packed, or one by one. */
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
