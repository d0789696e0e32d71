/* Kernels to bodies: this file and its neighbours read a kernel's values. Each op becomes a few instructions on lanes;
 * what has no way here leaves the kernel to the vector VM.
 *
 * How a kernel's value is represented: f32 and f64 as they are; bf16 and f16 as f32 lanes that hold such numbers,
 * rounded after each op; integers of 8 to 64 bits in lanes of their size; a pred as a mask. */
#include "lower_convert.h"

enum { NAT_CALL_OPS = 6, NAT_LONG = 30, NAT_LONG_OPS = 6 };

static nat_type nat_float_type(base_dtype t, uint8_t bytes) {
  if (t == XLAC_F32 || t == XLAC_F64) return (nat_type){NAT_FLOAT, bytes, bytes, 0, 0};
  if (t == XLAC_BF16 || t == XLAC_F16) return (nat_type){t == XLAC_BF16 ? NAT_BF16 : NAT_F16, 4, 2, 0, 0};
  return (nat_type){NAT_CODE, 4, bytes, (uint8_t)t, 0};
}

nat_type nat_lane_type_of(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  uint8_t bytes = info->bytes, few = (uint8_t)(info->bits < 8 ? info->bits : 0);
  switch ((base_dtype_kind)info->kind) {
    case BASE_KIND_PRED:
      return (nat_type){NAT_PRED, 1, 1, 0, 0};
    case BASE_KIND_SINT:
      return (nat_type){NAT_SIGNED, bytes, bytes, 0, few};
    case BASE_KIND_UINT:
      return (nat_type){NAT_UNSIGNED, bytes, bytes, 0, few};
    case BASE_KIND_FLOAT:
      return nat_float_type(t, bytes);
    case BASE_KIND_COMPLEX:
      return (nat_type){NAT_COMPLEX, 8, bytes, 0, 0};
    default:
      return (nat_type){NAT_NO_TYPE, 0, 0, 0, 0};
  }
}

nat_type nat_type_of(base_dtype t) {
  nat_type found = nat_lane_type_of(t);
  if (found.kind == NAT_CODE || found.kind == NAT_COMPLEX || found.bits) found.width = 0;
  return found;
}

/* --- loads and stores --- */

/* The stream of that run of memory: one for each buffer and index. */
uint32_t nat_stream_of(nat_body *b, const nat_stream *s) {
  for (uint32_t i = 0; i < b->n_streams; i++) {
    const nat_stream *t = &b->streams[i];
    if (t->output == s->output && t->sum == s->sum && t->number == s->number && t->gathers == s->gathers &&
        t->buffer == s->buffer && t->width == s->width && t->spreads == s->spreads && t->cycle == s->cycle &&
        !t->begins && !s->begins && memcmp(t->index, s->index, sizeof *s->index) == 0)
      return i;
  }
  if (b->n_streams == NAT_MAX_STREAMS) {
    b->failed = true;
    return 0;
  }
  b->streams[b->n_streams] = *s;
  return b->n_streams++;
}

uint32_t nat_unpack(nat_body *b, uint32_t x, nat_type t) {
  if (t.kind == NAT_BF16) return nat_shift(b, NAT_SHL, 4, nat_resize(b, x, 4, false), 16);
  if (t.kind == NAT_F16) return nat_op1(b, NAT_F2_F4, 4, x);
  if (t.kind == NAT_PRED) return nat_mask_of_bytes(b, x);
  if (t.kind == NAT_CODE) return nat_clean_code(b, nat_resize(b, x, 4, false), t);
  return nat_few_bits(b, x, t);
}

/* What an f32 of 16 bits was made of, if it was by that op; else x. */
static uint32_t nat_half_of(const nat_body *b, uint32_t x, nat_lane made_by) {
  if (b->failed) return x;
  const nat_value *v = &b->values[x];
  return v->kind == NAT_OP && v->width == 4 && v->op == b->target->ops[made_by][2] ? v->in[0] : x;
}

/* A bf16 without what is cut off anyway. */
static uint32_t nat_whole_of(const nat_body *b, uint32_t x) {
  uint32_t whole = nat_half_of(b, x, NAT_AND);
  if (whole == x) return x;
  const nat_value *by = &b->values[b->values[x].in[1]];
  return by->kind == NAT_CONSTANT && by->bits == 0xFFFF0000 ? whole : x;
}

uint32_t nat_pack(nat_body *b, uint32_t x, nat_type t) {
  if (t.kind == NAT_BF16) return nat_resize(b, nat_shift(b, NAT_SHR, 4, nat_whole_of(b, x), 16), 2, false);
  if (t.kind == NAT_F16) {
    uint32_t half = nat_half_of(b, x, NAT_F2_F4);
    return half == x ? nat_op1(b, NAT_F4_F2, 2, x) : half;
  }
  if (t.kind == NAT_PRED) return nat_bytes_of_mask(b, x);
  return t.kind == NAT_CODE ? nat_resize(b, x, 1, false) : x;
}

uint32_t nat_lower_constant(nat_lower_run *r, const kernel_value *v) {
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  uint64_t bits = 0, parts[2];
  if (nat_is_wide(t)) {
    memcpy(parts, v->data, sizeof parts);
    return nat_pair(r->b, nat_constant(r->b, 8, parts[0]), nat_constant(r->b, 8, parts[1]));
  }
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
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  if (s->index.strides[b->k->rank - 1] != 1) {
    b->failed = true;
    return;
  }
  nat_stream at = {.buffer = s->buffer, .output = true, .width = t.bytes, .stride = 1, .index = &s->index};
  uint32_t value = r->values[s->value], stream = nat_stream_of(b, &at);
  if (b->failed) return;
  if (nat_is_wide(t)) {
    nat_parts z = nat_split(b, value);
    for (uint16_t half = 0; half < 2; half++)
      b->stores[b->n_stores++] = (nat_store){nat_weave(b, z.re, z.im, half), stream, 0, half};
  } else {
    value = nat_pack(b, value, t);
    b->stores[b->n_stores++] = (nat_store){value, stream, 0, 0};
  }
}

/* --- values --- */

bool nat_types_fit(const kernel *k, const nat_target *target, bool counts, uint32_t *widest) {
  *widest = 1;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    nat_type t = nat_lane_type_of((base_dtype)v->dtype);
    if (!t.width) return false;
    if (t.width > *widest) *widest = t.width;
    uint32_t inside = v->kind == KERNEL_OP ? nat_op_width(k, v) : 1;
    if (inside == 0) return false;
    uint32_t shifted = v->kind == KERNEL_OP ? nat_shift_width(target, k, v) : 1;
    if (shifted > inside) inside = shifted;
    bool number = v->box || v->kind == KERNEL_PICK || v->kind == KERNEL_COUNT_UP || (v->kind == KERNEL_LOAD && v->n_in);
    if (counts && number && inside < 4) inside = 4;
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
    case KERNEL_PICK:
      return nat_lower_pick(r, v);
    case KERNEL_OP:
      return nat_lower_op(r, v);
    default:
      return r->b->failed = true, 0;
  }
}

/* Whether the only op is a product of complex numbers: the VM's loop of it does not take numbers apart. */
static bool nat_is_one_product(const kernel *k) {
  uint32_t ops = 0, products = 0;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_OP) continue;
    ops++;
    products += v->op.code == SCALAR_MULTIPLY && v->dtype == XLAC_C64;
  }
  return ops == 1 && products == 1;
}

/* A call for each vector takes as long as NAT_CALL_OPS ops that go through memory in the VM, and what native code has
 * instructions for instead of a function of some length saves as much as NAT_LONG_OPS of them. */
static bool nat_calls_pay(const nat_body *b) {
  uint32_t calls = 0, ops = 0, from = NAT_NONE, n = 0;
  for (uint32_t i = 0; i < b->k->n_values; i++) ops += b->k->values[i].kind == KERNEL_OP;
  for (uint32_t i = 0; i < b->n_values; i++) {
    calls += b->values[i].kind == NAT_CALL;
    n = b->values[i].from == from ? n + 1 : 1;
    from = b->values[i].from;
    if (n == NAT_LONG) ops += NAT_LONG_OPS;
  }
  return ops >= calls * (NAT_CALL_OPS + 1);
}

/* patterns: of cycles, else NULL. */
static bool nat_lower_all(nat_body *b, const nat_pattern *const *patterns, base_arena *arena) {
  const kernel *k = b->k;
  nat_lower_run r = {b, BASE_ARRAY(arena, uint32_t, k->n_values)};
  if (!r.values) return false;
  for (uint32_t i = 0; i < k->n_values && !b->failed; i++) {
    uint32_t first = b->n_values;
    const nat_pattern *p = patterns ? patterns[i] : NULL;
    r.values[i] = p ? nat_lower_cycled(&r, &k->values[i], p) : nat_lower_value(&r, &k->values[i]);
    for (uint32_t j = first; j < b->n_values; j++) b->values[j].from = i;
  }
  for (uint32_t i = 0; i < k->n_stores && !b->failed; i++) {
    const kernel_store *s = &k->stores[i];
    if (s->by)
      nat_lower_fold(b, s, r.values[s->value]);
    else
      nat_lower_store(&r, s);
  }
  return !b->failed && nat_folds_fit(b) && nat_reads_fit(b) && nat_calls_pay(b);
}

bool nat_lower(nat_body *b, const kernel *k, const nat_target *target, cpu_native_way way, base_arena *arena) {
  uint32_t widest = 1;
  if (k->rank == 0 || !nat_types_fit(k, target, true, &widest) || nat_is_one_product(k)) return false;
  if (!nat_begin(b, k, target, widest, arena)) return false;
  b->way = way;
  return nat_lower_all(b, NULL, arena);
}

bool nat_lower_cycle(nat_body *b, const nat_cycle *c, const nat_target *target, base_arena *arena) {
  if (nat_is_one_product(c->k) || !nat_begin(b, c->k, target, target->vector / c->lanes, arena)) return false;
  b->way = CPU_NATIVE_VALUES;
  b->trip = c->trip, b->turns = c->trip / c->lanes;
  return nat_lower_all(b, c->patterns, arena);
}
