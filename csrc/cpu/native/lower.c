/* Kernels to bodies: the one file that reads a kernel's values. Each op becomes a few instructions on lanes; what has
 * no way here leaves the kernel to the vector VM.
 *
 * How a kernel's value is represented: f32 and f64 as they are; bf16 and f16 as f32 lanes that hold such numbers,
 * rounded after each op; integers of 8 to 64 bits in lanes of their size; a pred as a mask. */
#include "lower_inside.h"

/* What the type's lanes are, or width 0 where native code has none. */
nat_type nat_type_of(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  uint8_t bytes = info->bytes;
  switch ((base_dtype_kind)info->kind) {
    case BASE_KIND_PRED:
      return (nat_type){NAT_PRED, 1, 1};
    case BASE_KIND_SINT:
      return (nat_type){NAT_SIGNED, info->bits < 8 ? 0 : bytes, bytes};
    case BASE_KIND_UINT:
      return (nat_type){NAT_UNSIGNED, info->bits < 8 ? 0 : bytes, bytes};
    case BASE_KIND_FLOAT:
      if (t == XLAC_F32 || t == XLAC_F64) return (nat_type){NAT_FLOAT, bytes, bytes};
      if (t == XLAC_BF16 || t == XLAC_F16) return (nat_type){t == XLAC_BF16 ? NAT_BF16 : NAT_F16, 4, 2};
      break;
    default:
      break;
  }
  return (nat_type){NAT_NO_TYPE, 0, 0};
}

/* --- loads and stores --- */

/* The stream of that run of memory: one for each buffer and index. */
uint32_t nat_stream_of(nat_body *b, const nat_stream *s) {
  for (uint32_t i = 0; i < b->n_streams; i++) {
    const nat_stream *t = &b->streams[i];
    if (t->output == s->output && t->sum == s->sum && t->number == s->number && t->buffer == s->buffer &&
        t->width == s->width && !s->load->n_in && !t->load->n_in && memcmp(t->index, s->index, sizeof *s->index) == 0)
      return i;
  }
  if (b->n_streams == NAT_MAX_STREAMS) {
    b->failed = true;
    return 0;
  }
  b->streams[b->n_streams] = *s;
  return b->n_streams++;
}

static int64_t nat_inner_stride(const kernel *k, const kernel_index *x) {
  return k->rank ? x->strides[k->rank - 1] : 0;
}

uint32_t nat_unpack(nat_body *b, uint32_t x, nat_type t) {
  if (t.kind == NAT_BF16) return nat_shift(b, NAT_SHL, 4, nat_resize(b, x, 4, false), 16);
  if (t.kind == NAT_F16) return nat_op1(b, NAT_F2_F4, 4, x);
  if (t.kind == NAT_PRED) return nat_mask_of_bytes(b, x);
  return x;
}

uint32_t nat_pack(nat_body *b, uint32_t x, nat_type t) {
  if (t.kind == NAT_BF16) return nat_resize(b, nat_shift(b, NAT_SHR, 4, x, 16), 2, false);
  if (t.kind == NAT_F16) return nat_op1(b, NAT_F4_F2, 2, x);
  if (t.kind == NAT_PRED) return nat_bytes_of_mask(b, x);
  return x;
}

static uint32_t nat_lower_load(nat_lower_run *r, const kernel_value *v) {
  nat_body *b = r->b;
  nat_type t = nat_type_of((base_dtype)v->dtype);
  int64_t stride = nat_inner_stride(b->k, v->index);
  if (v->box || v->n_in || stride > NAT_MAX_STRIDE || stride < -NAT_MAX_STRIDE) return b->failed = true, 0;
  nat_stream s = {.buffer = v->buffer, .width = t.bytes, .stride = stride, .index = v->index, .load = v};
  return nat_unpack(b, nat_load(b, t.bytes, nat_stream_of(b, &s)), t);
}

/* An iota, by s32 arithmetic: all its numbers must be such, and exact as f32 where the type is a narrow float. */
static uint32_t nat_lower_count(nat_lower_run *r, const kernel_value *v) {
  nat_body *b = r->b;
  nat_type t = nat_type_of((base_dtype)v->dtype);
  int64_t least = 0, most = 0, stride = nat_inner_stride(b->k, v->index);
  int64_t limit = t.kind == NAT_BF16 || t.kind == NAT_F16 ? 1 << 24 : INT32_MAX;
  if (!kernel_reach(b->k, v->index, &least, &most) || least < -limit || most > limit || stride != (int32_t)stride ||
      4 * b->lanes > b->target->vector)
    return b->failed = true, 0;
  static const kernel_value none = {0};
  nat_stream s = {.number = true, .width = 4, .index = v->index, .load = &none};
  uint32_t x = nat_load(b, 4, nat_stream_of(b, &s));
  if (stride) {
    uint32_t n = nat_count(b);
    if (stride != 1) n = nat_op2(b, NAT_IMUL, 4, n, nat_constant(b, 4, (uint64_t)stride));
    x = nat_op2(b, NAT_IADD, 4, n, x);
  }
  return nat_from_s32(b, x, t);
}

static uint32_t nat_lower_constant(nat_lower_run *r, const kernel_value *v) {
  nat_type t = nat_type_of((base_dtype)v->dtype);
  uint64_t bits = 0;
  memcpy(&bits, v->data, t.bytes);
  if (t.kind == NAT_PRED) return nat_mask_constant(r->b, bits & 1);
  if (t.kind == NAT_BF16 || t.kind == NAT_F16) {
    float wide;
    base_convert(XLAC_F32, &wide, (base_dtype)v->dtype, v->data, 1);
    memcpy(&bits, &wide, sizeof wide);
  }
  return nat_constant(r->b, t.width, bits);
}

static void nat_lower_store(nat_lower_run *r, const kernel_store *s) {
  nat_body *b = r->b;
  const kernel_value *v = &b->k->values[s->value];
  nat_type t = nat_type_of((base_dtype)v->dtype);
  static const kernel_value none = {0};
  if (nat_inner_stride(b->k, &s->index) != 1) {
    b->failed = true;
    return;
  }
  nat_stream at = {
      .buffer = s->buffer, .output = true, .width = t.bytes, .stride = 1, .index = &s->index, .load = &none};
  uint32_t value = nat_pack(b, r->values[s->value], t);
  b->stores[b->n_stores++] = (nat_store){value, nat_stream_of(b, &at), false};
}

/* --- values --- */

/* Whether all types are those of lanes; and the widest. */
static bool nat_types_fit(const kernel *k, uint32_t *widest) {
  *widest = 1;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    nat_type t = nat_type_of((base_dtype)v->dtype);
    if (!t.width) return false;
    if (t.width > *widest) *widest = t.width;
    uint32_t inside = v->kind == KERNEL_OP ? nat_op_width(k, v) : 1;
    if (inside == 0) return false;
    if (inside > *widest) *widest = inside;
  }
  return true;
}

static uint32_t nat_lower_value(nat_lower_run *r, const kernel_value *v) {
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      return nat_lower_load(r, v);
    case KERNEL_CONSTANT:
      return nat_lower_constant(r, v);
    case KERNEL_COUNT_UP:
      return nat_lower_count(r, v);
    case KERNEL_OP:
      return nat_lower_op(r, v);
    default:
      return r->b->failed = true, 0;
  }
}

bool nat_lower(nat_body *b, const kernel *k, const nat_target *target, cpu_native_way way, base_arena *arena) {
  uint32_t widest = 1;
  nat_lower_run r = {.b = b};
  if (k->rank == 0 || !nat_types_fit(k, &widest)) return false;
  r.values = BASE_ARRAY(arena, uint32_t, k->n_values);
  if (!r.values || !nat_begin(b, k, target, widest, arena)) return false;
  b->way = way;
  for (uint32_t i = 0; i < k->n_values && !b->failed; i++) {
    uint32_t first = b->n_values;
    r.values[i] = nat_lower_value(&r, &k->values[i]);
    for (uint32_t j = first; j < b->n_values; j++) b->values[j].from = i;
  }
  for (uint32_t i = 0; i < k->n_stores && !b->failed; i++) {
    const kernel_store *s = &k->stores[i];
    if (s->by)
      nat_lower_fold(b, s, r.values[s->value]);
    else
      nat_lower_store(&r, s);
  }
  return !b->failed;
}
