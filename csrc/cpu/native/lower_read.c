/* What is read: loads of neighbours, of lanes that are apart, from places that are computed (gathers, and dynamic
 * slices, whose place is the same along a row), and loads that are there in a box of the iterations alone. A box is a
 * mask: the index of the iteration compared with its edges, of outer dimensions once a row. */
#include "emit.h"
#include "lower_inside.h"

static int64_t read_inner_stride(const kernel *k, const kernel_index *x) {
  return k->rank ? x->strides[k->rank - 1] : 0;
}

/* --- indexes as numbers --- */

/* The index, an s32 whatever it is. */
static uint32_t read_number(nat_body *b, const kernel_index *x) {
  int64_t least = 0, most = 0, stride = read_inner_stride(b->k, x);
  bool fits = kernel_reach(b->k, x, &least, &most) && least >= INT32_MIN && most <= INT32_MAX;
  if (!fits || stride != (int32_t)stride || 4 * b->lanes > b->target->vector) return b->failed = true, 0;
  nat_stream s = {.number = true, .width = 4, .index = x};
  uint32_t n = nat_load(b, 4, nat_stream_of(b, &s));
  if (!stride) return n;
  uint32_t count = nat_count(b);
  if (stride != 1) count = nat_op2(b, NAT_IMUL, 4, count, nat_constant(b, 4, (uint64_t)stride));
  return nat_op2(b, NAT_IADD, 4, count, n);
}

/* An iota; exact as f32 where the type is a narrow float. */
uint32_t nat_lower_count(nat_lower_run *r, const kernel_value *v) {
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  int64_t least = 0, most = 0, limit = t.kind == NAT_BF16 || t.kind == NAT_F16 ? 1 << 24 : INT32_MAX;
  bool fits = kernel_reach(r->b->k, v->index, &least, &most) && least >= -limit && most <= limit;
  if (!fits || t.kind == NAT_COMPLEX) return r->b->failed = true, 0;
  return nat_from_s32(r->b, read_number(r->b, v->index), t);
}

/* --- boxes --- */

static uint32_t box_and(nat_body *b, uint32_t x, uint32_t y) {
  return x == NAT_NONE ? y : nat_mask_op(b, NAT_AND, x, y);
}

/* Whether the iteration is in the box; NAT_NONE where all are. */
static uint32_t read_box(nat_body *b, const kernel_box *box) {
  uint32_t mask = NAT_NONE;
  for (uint32_t d = 0; d < b->k->rank && !b->failed; d++) {
    bool low = box->from[d] > 0, high = box->to[d] < b->k->extents[d];
    if (!low && !high) continue;
    kernel_index *x = BASE_NEW(b->arena, kernel_index);
    if (!x) return b->failed = true, 0;
    x->strides[d] = 1;
    uint32_t i = read_number(b, x);
    uint64_t from = (uint64_t)(box->from[d] - 1), to = (uint64_t)box->to[d];
    if (low) mask = box_and(b, mask, nat_compare_ints(b, 4, true, SCALAR_GT, i, nat_constant(b, 4, from)));
    if (high) mask = box_and(b, mask, nat_compare_ints(b, 4, true, SCALAR_LT, i, nat_constant(b, 4, to)));
  }
  return mask;
}

uint32_t nat_lower_pick(nat_lower_run *r, const kernel_value *v) {
  nat_body *b = r->b;
  uint32_t yes = r->values[v->in[0]], no = r->values[v->in[1]], mask = read_box(b, v->pick);
  if (mask == NAT_NONE || b->failed) return yes;
  if (nat_lane_type_of((base_dtype)v->dtype).kind == NAT_PRED) {
    uint32_t w = b->values[mask].width;
    yes = nat_mask(b, yes, w), no = nat_mask(b, no, w);
  }
  return nat_select(b, mask, yes, no);
}

/* --- places --- */

/* x * stride, of s32. */
static uint32_t place_times(nat_body *b, uint32_t x, int64_t stride) {
  bool power = stride > 0 && (stride & (stride - 1)) == 0;
  if (stride == 1) return x;
  if (power) return nat_shift(b, NAT_SHL, 4, x, (unsigned)__builtin_ctzll((uint64_t)stride));
  return nat_op2(b, NAT_IMUL, 4, x, nat_constant(b, 4, (uint64_t)stride));
}

/* The place, clamped as kernel_base_at does, times its stride. Types that end before the array does are not clamped,
 * nor are digits, which are in range. */
static uint32_t read_place(nat_body *b, const kernel_base *base, nat_type t, uint32_t x, bool digit) {
  uint64_t most = t.kind == NAT_SIGNED ? ((uint64_t)1 << (8 * t.width - 1)) - 1 : UINT64_MAX >> (64 - 8 * t.width);
  if (t.kind != NAT_SIGNED && t.kind != NAT_UNSIGNED) return b->failed = true, 0;
  if (digit) return place_times(b, x, base->stride);
  if (t.kind == NAT_SIGNED) x = nat_combine(b, SCALAR_MAXIMUM, t, x, nat_constant(b, t.width, 0));
  if ((uint64_t)base->last < most)
    x = nat_combine(b, SCALAR_MINIMUM, t, x, nat_constant(b, t.width, (uint64_t)base->last));
  return place_times(b, nat_resize(b, x, 4, false), base->stride);
}

/* What all places come to, in elements; *lead: the first one's part. */
static uint32_t read_places(nat_lower_run *r, const kernel_value *v, uint32_t *lead) {
  nat_body *b = r->b;
  uint32_t sum = NAT_NONE;
  int64_t least = 0, most = 0;
  if (!kernel_load_reach(b->k, v, &least, &most) || most > INT32_MAX || 4 * b->lanes > b->target->vector)
    return b->failed = true, 0;
  for (uint32_t j = 0; j < v->n_in && !b->failed; j++) {
    nat_type t = nat_lane_type_of((base_dtype)b->k->values[v->in[j]].dtype);
    uint32_t x = read_place(b, &v->bases[j], t, r->values[v->in[j]], v->flat);
    if (j == 0) *lead = x;
    sum = sum == NAT_NONE ? x : nat_op2(b, NAT_IADD, 4, sum, x);
  }
  return sum;
}

/* Each lane from where it is. */
static uint32_t read_lanes(nat_body *b, nat_stream s, uint32_t at, uint32_t mask) {
  int64_t stride = read_inner_stride(b->k, s.index);
  if (s.width < 4 || 4 * b->lanes > b->target->vector || stride != (int32_t)stride) return b->failed = true, 0;
  s.gathers = true;
  s.stride = 0;
  uint32_t along = stride ? place_times(b, nat_count(b), stride) : NAT_NONE;
  if (at == NAT_NONE)
    at = along == NAT_NONE ? nat_constant(b, 4, 0) : along;
  else if (along != NAT_NONE)
    at = nat_op2(b, NAT_IADD, 4, at, along);
  if (mask != NAT_NONE) mask = nat_mask(b, mask, s.width);
  return nat_read(b, NAT_GATHER, s.width, nat_stream_of(b, &s), at, mask);
}

/* Lanes of 1 or 2 bytes, from where they are: instructions gather 4 bytes, which here begin at the element, or before
 * it where they would go on behind the last that the kernel reads. What comes before the element is shifted out. */
static uint32_t read_narrow_lanes(nat_body *b, const kernel_value *v, nat_stream s, uint32_t at, uint32_t mask) {
  int64_t least = 0, most = 0, others = 4 / s.width - 1;
  kernel_index *start = BASE_NEW(b->arena, kernel_index);
  bool fits = start && kernel_load_reach(b->k, v, &least, &most) && most >= others && most <= INT32_MAX;
  if (!fits || 4 * b->lanes > b->target->vector || read_inner_stride(b->k, s.index) < 0) return b->failed = true, 0;
  uint32_t place = read_number(b, s.index);
  if (at != NAT_NONE) place = nat_op2(b, NAT_IADD, 4, place, at);
  uint32_t from = nat_op2(b, NAT_SMIN, 4, place, nat_constant(b, 4, (uint64_t)(most - others)));
  s.index = start, s.stride = 0, s.gathers = s.made = true;
  if (mask != NAT_NONE) mask = nat_mask(b, mask, 4);
  uint32_t x = nat_read(b, NAT_GATHER, 4, nat_stream_of(b, &s), from, mask);
  uint32_t before = nat_shift(b, NAT_SHL, 4, nat_op2(b, NAT_ISUB, 4, place, from), s.width == 1 ? 3 : 4);
  return nat_resize(b, nat_op2(b, NAT_SHRV, 4, x, before), s.width, false);
}

/* Lanes of a run that a vector holds: it is read once, and permuted. NAT_NONE where it is longer. */
static uint32_t read_table(nat_body *b, const kernel_value *v, nat_stream s, uint32_t at) {
  uint32_t width = s.width < 4 ? 4 : s.width;
  int64_t last = 0, others = s.width < 4 ? 4 / s.width - 1 : 0;
  for (uint32_t j = 0; j < v->n_in; j++) last += v->bases[j].stride * v->bases[j].last;
  s.stride = read_inner_stride(b->k, s.index);
  if (b->failed || s.stride || last >= b->lanes || last < others || !nat_has(b, NAT_PERM, width)) return NAT_NONE;
  uint32_t all = nat_op2(b, NAT_SMIN, 4, nat_lane_numbers(b), nat_constant(b, 4, (uint64_t)last));
  uint32_t x = s.width < 4 ? read_narrow_lanes(b, v, s, all, NAT_NONE) : read_lanes(b, s, all, NAT_NONE);
  return nat_resize(b, nat_op2(b, NAT_PERM, width, nat_resize(b, at, width, false), nat_resize(b, x, width, false)),
                    s.width, false);
}

/* One part of complex numbers of two f64 that are apart, or the same in all lanes: every second element. */
static uint32_t read_part(nat_body *b, const kernel_value *v, int64_t part) {
  kernel_index *index = base_arena_memdup(b->arena, v->index, sizeof *index);
  if (!index || b->failed) return b->failed = true, 0;
  index->offset = 2 * index->offset + part;
  for (uint32_t d = 0; d < b->k->rank; d++) index->strides[d] *= 2;
  nat_stream s = {.buffer = v->buffer, .width = 8, .made = true, .index = index};
  s.stride = read_inner_stride(b->k, index);
  return nat_load(b, 8, nat_stream_of(b, &s));
}

/* Complex numbers of two f64: neighbours as whole vectors, which are taken apart. */
static uint32_t read_wide(nat_body *b, const kernel_value *v) {
  int64_t stride = read_inner_stride(b->k, v->index);
  if (b->failed || v->n_in || v->box || 2 * stride > NAT_MAX_STRIDE || 2 * stride < -NAT_MAX_STRIDE)
    return b->failed = true, 0;
  if (stride != 1) {
    uint32_t re = read_part(b, v, 0);
    return nat_pair(b, re, read_part(b, v, 1));
  }
  nat_stream s = {.buffer = v->buffer, .width = 16, .stride = 1, .index = v->index};
  uint32_t stream = nat_stream_of(b, &s), low = nat_half(b, stream, 0), high = nat_half(b, stream, 1);
  uint32_t re = nat_weave(b, low, high, 2);
  return nat_pair(b, re, nat_weave(b, low, high, 3));
}

uint32_t nat_lower_load(nat_lower_run *r, const kernel_value *v) {
  nat_body *b = r->b;
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  if (nat_is_wide(t)) return read_wide(b, v);
  int64_t stride = read_inner_stride(b->k, v->index);
  bool apart = stride > NAT_MAX_STRIDE || stride < -NAT_MAX_STRIDE;
  nat_stream s = {.buffer = v->buffer, .width = t.bytes, .stride = stride, .index = v->index};
  uint32_t lead = NAT_NONE, at = v->n_in ? read_places(r, v, &lead) : NAT_NONE,
           mask = v->box ? read_box(b, v->box) : NAT_NONE, x = NAT_NONE;
  if (b->failed) return 0;
  s.begins = at != NAT_NONE && mask == NAT_NONE && stride && !apart && b->values[at].steady;
  if (v->flat && mask == NAT_NONE) x = nat_lower_near(b, v, s, lead, at);
  if (v->flat && mask == NAT_NONE && x == NAT_NONE) x = read_table(b, v, s, at);
  if (b->failed) return 0;
  if (x != NAT_NONE) return nat_unpack(b, x, t);
  if (s.begins || (at == NAT_NONE && mask == NAT_NONE && !apart))
    x = nat_read(b, NAT_LOAD, t.bytes, nat_stream_of(b, &s), at, NAT_NONE);
  else if (at == NAT_NONE && stride == 1 && (b->target->masks || t.bytes >= 4))
    x = nat_read(b, NAT_PART, t.bytes, nat_stream_of(b, &s), nat_mask(b, mask, t.bytes), NAT_NONE);
  else
    x = s.width < 4 ? read_narrow_lanes(b, v, s, at, mask) : read_lanes(b, s, at, mask);
  return nat_unpack(b, x, t);
}

bool nat_reads_fit(const nat_body *b) {
  bool tail = nat_has_tail(b);
  for (uint32_t i = 0; i < b->n_values && !tail; i++) {
    const nat_value *v = &b->values[i];
    if (v->kind == NAT_PART || (v->kind == NAT_LOAD && v->n_in)) return false;
    if (v->kind == NAT_GATHER && read_inner_stride(b->k, b->streams[v->bits].index)) return false;
  }
  return true;
}
