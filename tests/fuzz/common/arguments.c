/* Arguments for programs that nobody knows. */
#include <math.h>

#include "fuzz.h"

enum { ARGUMENT_MAX_DEPTH = 4, ARGUMENT_MAX_RANK = 16, ARGUMENT_ELEMENTS = 1 << 14 };

/* What is drawn once for a call, so that most arguments go together. */
typedef struct draw_plan {
  int64_t size; /* of dimensions that are known at run time only */
  bool apart;   /* each argument has sizes of its own */
  bool wild;    /* infinities, NaN, the least and the greatest integers */
  uint64_t *state;
} draw_plan;

static int64_t draw_size(const draw_plan *p, int64_t bound) {
  static const int64_t sizes[] = {0, 1, 2, 3, 5, 8, 40, 40}; /* 40: beyond what memory is rounded up to */
  int64_t size = p->apart && fuzz_below(p->state, 2) ? sizes[fuzz_below(p->state, 8)] : p->size;
  return bound >= 0 && size > bound ? bound : size;
}

static double draw_float(const draw_plan *p) {
  static const double odd[] = {INFINITY, -INFINITY, NAN, -0.0, 1e30, -1e-30, 3.4e38, 1e-45};
  if (p->wild && fuzz_below(p->state, 6) == 0) return odd[fuzz_below(p->state, 8)];
  return (double)((int)fuzz_below(p->state, 65) - 32) / 8;
}

static int64_t draw_integer(const draw_plan *p) {
  static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 127, -128, 255, 65535};
  if (p->wild && fuzz_below(p->state, 6) == 0) return odd[fuzz_below(p->state, 8)];
  return (int64_t)fuzz_below(p->state, 12) - (fuzz_below(p->state, 3) ? 0 : 4);
}

/* Small multiples of a power of two, whose sums are mostly exact; of types that C lacks, any bits without the topmost
 * ones, so that they are finite. */
static void draw_element(const draw_plan *p, const char *kind, uint32_t bytes, const char *name, uint8_t *to) {
  double d = draw_float(p);
  float f = (float)d;
  int64_t i = draw_integer(p);
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (strcmp(name, "f32") == 0 || strcmp(name, "c64") == 0) {
    memcpy(to, &f, 4);
  } else if (strcmp(name, "f64") == 0 || strcmp(name, "c128") == 0) {
    memcpy(to, &d, 8);
  } else if (strcmp(name, "bf16") == 0) {
    memcpy(to, (uint8_t[]){(uint8_t)(bits >> 16), (uint8_t)(bits >> 24)}, 2);
  } else if (strcmp(name, "f16") == 0) {
    uint16_t half = (uint16_t)(fuzz_below(p->state, 0x0800) + 0x3800 + (fuzz_below(p->state, 2) << 15));
    memcpy(to, &half, 2);
  } else if (strcmp(kind, "float") == 0) {
    to[0] = (uint8_t)fuzz_below(p->state, name[1] == '4' ? 16 : 0x60);
  } else if (strcmp(kind, "pred") == 0) {
    to[0] = (uint8_t)fuzz_below(p->state, 2);
  } else {
    memcpy(to, &i, bytes);
  }
}

/* Elements narrower than a byte hold what their type can. */
static void clip_narrow(const char *kind, uint32_t bits, uint8_t *to) {
  if (bits >= 8 || strcmp(kind, "float") == 0 || strcmp(kind, "pred") == 0) return;
  bool negative = kind[0] == 's' && (*to >> (bits - 1) & 1);
  *to = (uint8_t)(*to & ((1u << bits) - 1));
  if (negative) *to = (uint8_t)(*to | (0xffu << bits));
}

static xlac_value *draw_array(const draw_plan *p, const xlac_type_info *t) {
  int64_t dims[ARGUMENT_MAX_RANK], count = 1;
  if (t->rank > ARGUMENT_MAX_RANK) return NULL;
  for (uint32_t d = 0; d < t->rank; d++) {
    bool dynamic = t->dynamic && t->dynamic[d];
    dims[d] = dynamic ? draw_size(p, t->dims[d]) : t->dims[d];
    if (dims[d] > ARGUMENT_ELEMENTS || (count *= dims[d]) > ARGUMENT_ELEMENTS) return NULL;
  }
  uint32_t bytes = xlac_dtype_bytes(t->dtype), bits = xlac_dtype_bits(t->dtype);
  const char *kind = xlac_dtype_kind(t->dtype), *name = xlac_dtype_text(t->dtype);
  bool complex_pair = strcmp(kind, "complex") == 0;
  uint32_t step = complex_pair ? bytes / 2 : bytes;
  uint8_t *data = calloc((size_t)count + 1, bytes);
  if (!data) return NULL;
  for (size_t at = 0; at < (size_t)count * bytes; at += step) {
    draw_element(p, kind, step, name, data + at);
    clip_narrow(kind, bits, data + at);
  }
  xlac_value *value = NULL;
  xlac_error err = {0};
  fuzz_failed(xlac_value_copy(&value, t->dtype, t->rank, dims, data, &err), &err);
  free(data);
  return value;
}

static xlac_value *draw_value(const draw_plan *p, const xlac_type *type, int depth) {
  xlac_type_info t;
  xlac_value *value = NULL, *elements[ARGUMENT_ELEMENTS / 256] = {NULL};
  xlac_error err = {0};
  xlac_type_get(type, &t);
  if (t.kind == XLAC_TYPE_TENSOR) return draw_array(p, &t);
  if (t.kind == XLAC_TYPE_TOKEN) {
    xlac_value_token(&value, &err);
    return value;
  }
  if (t.kind != XLAC_TYPE_TUPLE || depth == ARGUMENT_MAX_DEPTH || t.n_elements > sizeof elements / sizeof *elements)
    return NULL;
  bool whole = true;
  for (uint32_t i = 0; i < t.n_elements; i++) {
    elements[i] = draw_value(p, xlac_type_element(type, i), depth + 1);
    whole = whole && elements[i];
  }
  if (whole) fuzz_failed(xlac_value_tuple(&value, t.n_elements, elements, &err), &err);
  for (uint32_t i = 0; i < t.n_elements; i++) xlac_value_release(elements[i]);
  return value;
}

bool fuzz_draw_arguments(xlac_module *m, bool apart, uint64_t *state, fuzz_arguments *out) {
  static const int64_t sizes[] = {1, 2, 3, 3, 4, 4, 5, 8};
  xlac_computation *c = xlac_module_entry(m);
  draw_plan p = {.size = sizes[fuzz_below(state, 8)],
                 .apart = apart || fuzz_below(state, 3) == 0,
                 .wild = fuzz_below(state, 8) == 0,
                 .state = state};
  out->n = 0;
  if (!c || xlac_computation_param_count(m, c) > FUZZ_MAX_ARGS) return false;
  while (out->n < xlac_computation_param_count(m, c)) {
    xlac_op_info info;
    xlac_op *param = xlac_computation_param(m, c, out->n);
    if (!param) break;
    xlac_op_get(m, param, &info);
    xlac_value *value = info.type ? draw_value(&p, info.type, 0) : NULL;
    if (!value) break;
    out->values[out->n++] = value;
  }
  if (out->n == xlac_computation_param_count(m, c)) return true;
  fuzz_free_arguments(out);
  return false;
}

void fuzz_free_arguments(fuzz_arguments *args) {
  for (uint32_t i = 0; i < args->n; i++) xlac_value_release(args->values[i]);
  args->n = 0;
}

/* Some units in the last place of each float. */
static void shake(const char *name, uint32_t bytes, uint8_t *data, int64_t i) {
  uint8_t delta = (uint8_t)(1 + i % 3);
  (void)bytes;
  if (name[0] == 'c' || strcmp(name, "f32") == 0 || strcmp(name, "f64") == 0 || strcmp(name, "f16") == 0 ||
      strcmp(name, "bf16") == 0)
    data[0] ^= delta;
}

bool fuzz_shake_arguments(const fuzz_arguments *args, fuzz_arguments *out) {
  bool any = false;
  out->n = 0;
  for (uint32_t a = 0; a < args->n; a++) {
    xlac_value_info v;
    xlac_error err = {0};
    xlac_value_get(args->values[a], &v);
    const char *kind = v.kind == XLAC_VALUE_ARRAY ? xlac_dtype_kind(v.dtype) : "";
    if (strcmp(kind, "float") != 0 && strcmp(kind, "complex") != 0) {
      xlac_value_retain(args->values[a]);
      out->values[out->n++] = args->values[a];
      continue;
    }
    uint8_t *data = malloc(v.bytes + 1);
    if (!data) exit(3);
    if (v.bytes) memcpy(data, v.data, v.bytes);
    uint32_t step = xlac_dtype_bytes(v.dtype) / (kind[0] == 'c' ? 2 : 1);
    for (size_t at = 0; at < v.bytes; at += step)
      shake(xlac_dtype_text(v.dtype), step, data + at, (int64_t)(at / step));
    if (xlac_value_copy(&out->values[out->n], v.dtype, v.rank, v.dims, data, &err) == 0) out->n++;
    free(data);
    any = any || v.bytes > 0;
  }
  return any;
}
