/* Short rows as cycles. Of points of 3 coordinates, pixels of 4 channels, bits of a byte, what 48 iterations read
 * stands in memory to what the first of them reads as in the next 48 iterations: so lanes come from a vector or two by
 * one permutation that is known beforehand, iotas are constants, and so are the parts of a concatenation. All that
 * needs computing is how far a cycle has come.
 *
 *    x[i0, 2 - i1], 2000 by 3, in vectors of 16: cycles of 3 vectors, which read
 *        2 1 0 5 4 3 8 7 6 11 10 9 14 13 12 17,  16 15 20 19 ...,  and so on, from 48 elements further in each cycle
 *
 * Such code does whole cycles from their beginning on. What is before, behind, or so near the end of an array that a
 * vector would go over it, is left to the code of the longer rows (flatten.c). */
#include "emit.h"
#include "lower_inside.h"
#include "native_inside.h"

enum {
  CYCLE_MOST = 64,  /* iterations of the dimensions inside of the one that goes on from cycle to cycle */
  CYCLE_LEAST = 4,  /* cycles of a row */
  CYCLE_NEAR = 1024 /* elements: displacements are short */
};

/* Which dimensions: those from `first` on are one row, in which those from first + 1 on repeat. */
typedef struct cycle_run {
  const kernel *from;
  base_arena *arena;
  nat_cycle *to;
  uint32_t first;
  int64_t inside; /* iterations of those from first + 1 on */
} cycle_run;

static int64_t cycle_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Iterations of a cycle, a whole number of vectors. */
static int64_t cycle_trip(int64_t inside, uint32_t lanes) {
  return inside / cycle_gcd(inside, lanes) * lanes;
}

/* As many dimensions inside as give a cycle that is not too long, and rows of several. */
static bool cycle_choose(cycle_run *r) {
  const kernel *k = r->from;
  int64_t inside = 1;
  r->to->trip = 0;
  for (uint32_t d = k->rank - 1; d > 0 && inside * k->extents[d] <= CYCLE_MOST; d--) {
    inside *= k->extents[d];
    int64_t trip = cycle_trip(inside, r->to->lanes);
    if (inside == 1 || trip > (int64_t)NAT_MAX_TURNS * r->to->lanes) continue;
    if (k->extents[d - 1] * inside < CYCLE_LEAST * trip) continue;
    r->first = d - 1, r->inside = inside, r->to->trip = (uint32_t)trip;
  }
  return r->to->trip > 0;
}

/* What the index comes to at iteration i of a row, beside its offset and what is outside of rows. */
static int64_t cycle_at(const cycle_run *r, const kernel_index *x, int64_t i) {
  int64_t sum = 0;
  for (uint32_t d = r->from->rank; d-- > r->first + 1; i /= r->from->extents[d])
    sum += x->strides[d] * (i % r->from->extents[d]);
  return sum + x->strides[r->first] * i;
}

/* The index in the dimensions of rows. false: a row has gaps, and its part is left out. */
static bool cycle_index(const cycle_run *r, const kernel_index *x, kernel_index *y) {
  int64_t stride = x->strides[r->from->rank - 1], extent = 1;
  bool dense = true;
  for (uint32_t d = r->from->rank; d-- > r->first; extent *= r->from->extents[d])
    dense = dense && x->strides[d] == stride * extent;
  *y = (kernel_index){.offset = x->offset};
  for (uint32_t d = 0; d < r->first; d++) y->strides[d] = x->strides[d];
  if (dense) y->strides[r->first] = stride;
  return dense;
}

static bool cycle_is_whole(const cycle_run *r, const kernel_box *box) {
  for (uint32_t d = 0; d <= r->first; d++)
    if (box->from[d] != 0 || box->to[d] != r->from->extents[d]) return false;
  return true;
}

/* Whether iteration i of a row is in the box, which has all of the dimensions up to `first`. */
static bool cycle_is_in(const cycle_run *r, const kernel_box *box, int64_t i) {
  for (uint32_t d = r->from->rank; d-- > r->first + 1; i /= r->from->extents[d]) {
    int64_t at = i % r->from->extents[d];
    if (at < box->from[d] || at >= box->to[d]) return false;
  }
  return true;
}

static nat_pattern *cycle_new(cycle_run *r, uint32_t value) {
  nat_pattern *p = BASE_NEW(r->arena, nat_pattern);
  if (!p || !(p->at = BASE_ARRAY(r->arena, int64_t, r->to->trip))) return NULL;
  r->to->patterns[value] = p;
  return p;
}

/* Each vector of a cycle is the same. */
static void cycle_settle(const cycle_run *r, nat_pattern *p) {
  p->same = true;
  for (uint32_t i = r->to->lanes; i < r->to->trip; i++) p->same = p->same && p->at[i] == p->at[i % r->to->lanes];
}

/* Lanes that are not there read what one that is reads. */
static bool cycle_load(cycle_run *r, uint32_t value, const kernel_value *v, kernel_index *y) {
  nat_pattern *p = NULL;
  if (v->n_in || (v->box && !cycle_is_whole(r, v->box))) return false;
  if (cycle_index(r, v->index, y) && !v->box) return true;
  int64_t any = INT64_MIN, least = 0;
  if (!(p = cycle_new(r, value))) return false;
  y->strides[r->first] = 0;
  p->step = v->index->strides[r->first] * (int64_t)r->to->trip / r->inside;
  for (int64_t i = 0; i < r->to->trip && any == INT64_MIN; i++)
    if (!v->box || cycle_is_in(r, v->box, i)) any = cycle_at(r, v->index, i);
  for (int64_t i = 0; i < r->to->trip; i++) {
    if (!v->box || cycle_is_in(r, v->box, i)) any = cycle_at(r, v->index, i);
    if (any < -CYCLE_NEAR || any > CYCLE_NEAR) return false;
    p->at[i] = any;
  }
  for (uint32_t d = 0; d < r->first; d++)
    if (y->strides[d] < 0) return false;
  cycle_settle(r, p);
  return p->step >= 0 && kernel_load_reach(r->from, v, &least, &p->last);
}

/* An iota that counts within a cycle alone. */
static bool cycle_count(cycle_run *r, uint32_t value, const kernel_value *v, kernel_index *y) {
  nat_pattern *p = NULL;
  if (cycle_index(r, v->index, y)) return true;
  for (uint32_t d = 0; d <= r->first; d++)
    if (v->index->strides[d]) return false;
  if (!(p = cycle_new(r, value))) return false;
  for (int64_t i = 0; i < r->to->trip; i++) p->at[i] = v->index->offset + cycle_at(r, v->index, i);
  cycle_settle(r, p);
  return true;
}

/* 1 where a pick takes the first. */
static bool cycle_pick(cycle_run *r, uint32_t value, const kernel_value *v) {
  nat_pattern *p = cycle_is_whole(r, v->pick) ? cycle_new(r, value) : NULL;
  if (!p) return false;
  for (int64_t i = 0; i < r->to->trip; i++) p->at[i] = cycle_is_in(r, v->pick, i);
  cycle_settle(r, p);
  return true;
}

static bool cycle_value(cycle_run *r, uint32_t i, kernel_value *v) {
  const kernel_value of = *v;
  kernel_index *y = BASE_NEW(r->arena, kernel_index);
  if (!y) return false;
  v->box = v->pick = NULL;
  if (of.kind == KERNEL_LOAD || of.kind == KERNEL_COUNT_UP) v->index = y;
  if (of.kind == KERNEL_LOAD) return cycle_load(r, i, &of, y);
  if (of.kind == KERNEL_COUNT_UP) return cycle_count(r, i, &of, y);
  return of.kind == KERNEL_PICK ? cycle_pick(r, i, &of) : of.kind == KERNEL_CONSTANT || of.kind == KERNEL_OP;
}

static bool cycle_rewrite(cycle_run *r) {
  const kernel *k = r->from;
  kernel *to = base_arena_memdup(r->arena, k, sizeof *k);
  kernel_value *values = base_arena_memdup(r->arena, k->values, k->n_values * sizeof *values);
  kernel_store *stores = base_arena_memdup(r->arena, k->stores, k->n_stores * sizeof *stores);
  r->to->patterns = base_arena_zalloc(r->arena, k->n_values * sizeof *r->to->patterns);
  if (!to || !values || !stores || !r->to->patterns) return false;
  to->rank = r->first + 1, to->extents[r->first] *= r->inside;
  to->values = values, to->stores = stores;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (!cycle_value(r, i, &values[i])) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (!cycle_index(r, &k->stores[i].index, &stores[i].index)) return false;
  r->to->k = to;
  return true;
}

bool nat_cycle_of(const kernel *k, const nat_target *target, base_arena *arena, nat_cycle *to) {
  cycle_run r = {.from = k, .arena = arena, .to = to};
  uint32_t widest = 1;
  if (k->reduction || k->rank < 2 || !nat_types_fit(k, target, false, &widest)) return false;
  to->lanes = target->vector / widest;
  return cycle_choose(&r) && cycle_rewrite(&r);
}

/* --- lowering --- */

/* The number of the pattern in the body. */
static uint32_t cycle_add(nat_body *b, const nat_pattern *p) {
  if (b->n_patterns == NAT_MAX_PATTERNS) return b->failed = true, 0;
  b->patterns[b->n_patterns] = p;
  return b->n_patterns++;
}

/* Numbers of `width` bytes. */
static uint32_t cycle_numbers(nat_body *b, const nat_pattern *p, uint32_t width) {
  nat_value v = {.kind = NAT_NUMBERS, .width = (uint8_t)width, .in = {NAT_NONE, NAT_NONE, NAT_NONE}};
  v.bits = cycle_add(b, p);
  v.steady = p->same;
  return nat_add(b, v);
}

static uint32_t cycle_lower_load(nat_body *b, const kernel_value *v, const nat_pattern *p) {
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  nat_stream s = {
      .buffer = v->buffer, .width = t.bytes, .index = v->index, .spreads = true, .cycle = p->step, .room = INT64_MAX};
  uint32_t stream = nat_is_wide(t) ? NAT_NONE : nat_stream_of(b, &s);
  int64_t room = 0;
  if (stream == NAT_NONE || b->failed || !nat_spreads(b, p, t.bytes, &room)) return b->failed = true, 0;
  nat_stream *at = &b->streams[stream];
  if (room < at->room) at->room = room;
  nat_value x = {.kind = NAT_SPREAD, .width = t.bytes, .in = {NAT_NONE, NAT_NONE, NAT_NONE}};
  x.bits = stream | (uint64_t)cycle_add(b, p) << 32;
  x.steady = p->same && p->step == 0;
  return nat_unpack(b, nat_add(b, x), t);
}

static uint32_t cycle_lower_count(nat_body *b, const kernel_value *v, const nat_pattern *p) {
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  bool integer = (t.kind == NAT_SIGNED || t.kind == NAT_UNSIGNED) && !t.bits;
  if (integer) return cycle_numbers(b, p, t.width);
  if (t.kind == NAT_COMPLEX || nat_is_wide(t) || 4 * b->lanes > b->target->vector) return b->failed = true, 0;
  return nat_from_s32(b, cycle_numbers(b, p, 4), t);
}

static uint32_t cycle_lower_pick(nat_lower_run *r, const kernel_value *v, const nat_pattern *p) {
  nat_body *b = r->b;
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  uint32_t yes = r->values[v->in[0]], no = r->values[v->in[1]], width = t.width;
  if (nat_is_wide(t) || b->failed) return b->failed = true, 0;
  uint32_t mask = nat_compare_ints(b, width, false, SCALAR_EQ, cycle_numbers(b, p, width), nat_constant(b, width, 1));
  if (t.kind == NAT_PRED && !b->failed) {
    uint32_t w = b->values[mask].width;
    yes = nat_mask(b, yes, w), no = nat_mask(b, no, w);
  }
  return nat_select(b, mask, yes, no);
}

uint32_t nat_lower_cycled(nat_lower_run *r, const kernel_value *v, const nat_pattern *p) {
  if (v->kind == KERNEL_LOAD) return cycle_lower_load(r->b, v, p);
  return v->kind == KERNEL_PICK ? cycle_lower_pick(r, v, p) : cycle_lower_count(r->b, v, p);
}
