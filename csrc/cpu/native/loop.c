/* Writing loops: which region a value belongs to. */
#include "loop.h"

bool nat_loop_begin(nat_loop *l, const nat_target *target, base_arena *arena) {
  *l = (nat_loop){.alloc = arena->alloc, .target = *target};
  l->target.vector = 16;
  if (!nat_begin(&l->body, NULL, &l->target, l->target.vector, arena)) return false;
  if (!BASE_VEC_PUSH(l->alloc, &l->regions, ((nat_region){.parent = 0}))) l->body.failed = true;
  return !l->body.failed;
}

void nat_loop_free(nat_loop *l) {
  for (uint32_t i = 0; i < l->regions.n; i++) BASE_VEC_FREE(l->alloc, &l->regions.items[i].items);
  BASE_VEC_FREE(l->alloc, &l->regions);
  BASE_VEC_FREE(l->alloc, &l->carries);
  BASE_VEC_FREE(l->alloc, &l->places);
  BASE_VEC_FREE(l->alloc, &l->owners);
  BASE_VEC_FREE(l->alloc, &l->lines);
}

static void nloop_item(nat_loop *l, uint32_t region, nat_item item) {
  item.line = l->lines.n;
  if (!BASE_VEC_PUSH(l->alloc, &l->regions.items[region].items, item)) l->body.failed = true;
}

/* What is computed in a branch stays in it, unless it does not change in the loop around that. */
static uint32_t nloop_stay(const nat_loop *l, uint32_t region) {
  uint32_t depth = l->regions.items[region].depth;
  for (uint32_t r = l->now; l->regions.items[r].depth > depth; r = l->regions.items[r].parent) {
    uint32_t around = r;
    while (l->regions.items[around].once) around = l->regions.items[around].parent;
    if (around != r && depth >= l->regions.items[around].depth) return r;
  }
  return region;
}

/* An instruction: of masks, those of 8 bytes are fewer than the lanes that may be selected by them. */
static nat_lanes nloop_op_lanes(const nat_loop *l, const nat_value *v) {
  uint32_t of = 0, from = l->body.values[v->in[0]].width;
  unsigned lane = 0;
  if (nat_loop_is_lane(v, &of, &lane)) return NAT_LANES_SAME;
  if (v->op == X86_PMULUDQ && v->width == 4) return NAT_LANES_FIRST;
  if (v->op == X86_SHUFPS) return v->in[0] == v->in[1] ? (nat_lanes)l->body.values[v->in[0]].lanes : NAT_LANES_DIFFER;
  return (v->width < from && v->width > 0) || (v->width == 0 && from == 8) ? NAT_LANES_FIRST : NAT_LANES_SAME;
}

static nat_lanes nloop_lanes(const nat_loop *l, const nat_value *v) {
  nat_lanes lanes = v->kind == NAT_CALL || v->kind == NAT_FAR ? NAT_LANES_FIRST : NAT_LANES_SAME;
  if (v->kind == NAT_LOAD_AT && l->places.items[(uint32_t)v->bits].width > v->width) return NAT_LANES_DIFFER;
  if (v->kind == NAT_ACC || v->kind == NAT_RESULT)
    return l->carries.items[v->bits].differs ? NAT_LANES_DIFFER : v->width < 4 ? NAT_LANES_FIRST : NAT_LANES_SAME;
  if (v->kind == NAT_OP) lanes = nloop_op_lanes(l, v);
  if (v->kind == NAT_OP && v->op == X86_SHUFPS) return lanes;
  for (uint32_t j = 0; j < v->n_in; j++) {
    nat_lanes in = (nat_lanes)l->body.values[v->in[j]].lanes;
    if (in == NAT_LANES_DIFFER) return NAT_LANES_DIFFER;
    if (in == NAT_LANES_FIRST && v->kind != NAT_LOAD_AT) lanes = NAT_LANES_FIRST;
  }
  return lanes;
}

/* `least`: the region that it is not to leave. */
static void nloop_own(nat_loop *l, uint32_t value, uint32_t least) {
  l->body.values[value].from = l->lines.n;
  l->body.values[value].lanes = (uint8_t)nloop_lanes(l, &l->body.values[value]);
  const nat_value *v = &l->body.values[value];
  uint32_t region = least;
  for (uint32_t j = 0; j < v->n_in; j++) {
    uint32_t of = l->owners.items[v->in[j]];
    if (l->regions.items[of].depth > l->regions.items[region].depth) region = of;
  }
  bool computed = v->kind == NAT_OP || v->kind == NAT_FAR || v->kind == NAT_CALL || v->kind == NAT_LOAD_AT;
  if (computed) region = nloop_stay(l, region);
  if (!BASE_VEC_PUSH(l->alloc, &l->owners, region)) l->body.failed = true;
  if (computed && !l->body.failed) nloop_item(l, region, (nat_item){.kind = NAT_ITEM_VALUE, .value = value});
}

bool nat_loop_settle(nat_loop *l) {
  while (!l->body.failed && l->owners.n < l->body.n_values) nloop_own(l, l->owners.n, 0);
  return !l->body.failed;
}

void nat_loop_line(nat_loop *l, const char *op) {
  if (nat_loop_settle(l) && !BASE_VEC_PUSH(l->alloc, &l->lines, op)) l->body.failed = true;
}

uint32_t nat_loop_enter(nat_loop *l, bool once) {
  uint32_t n = l->regions.n;
  if (!nat_loop_settle(l)) return 0;
  nat_region r = {.parent = l->now, .depth = l->regions.items[l->now].depth + 1, .first_carry = l->carries.n};
  r.once = once, r.first_value = l->body.n_values;
  l->regions.items[l->now].has_loops = true;
  if (!BASE_VEC_PUSH(l->alloc, &l->regions, r)) return l->body.failed = true, 0;
  return l->now = n;
}

void nat_loop_leave(nat_loop *l) {
  if (!nat_loop_settle(l)) return;
  uint32_t region = l->now;
  if (l->regions.items[region].once) nat_forget(&l->body, l->regions.items[region].first_value);
  l->now = l->regions.items[region].parent;
  nloop_item(l, l->now, (nat_item){.kind = NAT_ITEM_LOOP, .value = region});
}

/* A value that is where its carry is: what it has in a trip, or what it has come to. */
static uint32_t nloop_of_carry(nat_loop *l, nat_kind kind, uint32_t carry, uint32_t region) {
  uint8_t width = l->body.values[l->carries.items[carry].first].width;
  nat_value v = {.kind = (uint8_t)kind, .width = width, .in = {NAT_NONE, NAT_NONE, NAT_NONE}, .bits = carry};
  if (!nat_loop_settle(l)) return 0;
  uint32_t value = nat_add(&l->body, v);
  if (!l->body.failed && value == l->owners.n) nloop_own(l, value, region);
  return value;
}

/* All carries of a region are there before its first loop. */
uint32_t nat_loop_carry(nat_loop *l, uint32_t first, bool differs) {
  if (!nat_loop_settle(l)) return 0;
  nat_region *r = &l->regions.items[l->now];
  assert(r->first_carry + r->n_carries == l->carries.n && l->body.values[first].width > 0);
  if (!BASE_VEC_PUSH(l->alloc, &l->carries, ((nat_carry){first, NAT_NONE, NAT_NONE, l->now, differs})))
    return l->body.failed = true, 0;
  r->n_carries++;
  uint32_t acc = nloop_of_carry(l, NAT_ACC, l->carries.n - 1, l->now);
  l->carries.items[l->carries.n - 1].acc = acc;
  return acc;
}

/* What is another carry's is copied first, so that all may change at once. */
void nat_loop_carry_to(nat_loop *l, uint32_t acc, uint32_t value) {
  if (!nat_loop_settle(l)) return;
  nat_body *b = &l->body;
  value = nat_loop_spread(l, value);
  if (b->failed) return;
  assert(b->values[acc].kind == NAT_ACC && b->values[acc].width == b->values[value].width);
  if (value != acc && b->values[value].kind == NAT_ACC)
    value = nat_add(b, (nat_value){.kind = NAT_OP,
                                   .width = b->values[value].width,
                                   .op = X86_MOVUPS,
                                   .n_in = 1,
                                   .in = {value, NAT_NONE, NAT_NONE}});
  if (nat_loop_settle(l)) l->carries.items[b->values[acc].bits].value = value;
}

uint32_t nat_loop_result(nat_loop *l, uint32_t acc) {
  return l->body.failed ? 0 : nloop_of_carry(l, NAT_RESULT, (uint32_t)l->body.values[acc].bits, l->now);
}

/* --- memory --- */

static uint32_t nloop_place(nat_loop *l, nat_place p) {
  for (uint32_t i = 0; i < l->places.n; i++) {
    const nat_place *q = &l->places.items[i];
    if (q->array == p.array && q->width == p.width && q->offset == p.offset && q->stride == p.stride) return i;
  }
  if (!BASE_VEC_PUSH(l->alloc, &l->places, p)) l->body.failed = true;
  return l->places.n - 1;
}

uint32_t nat_loop_load(nat_loop *l, nat_place p, uint32_t width, uint32_t at, bool still) {
  if (!nat_loop_settle(l)) return 0;
  uint32_t place = nloop_place(l, p), serial = still ? 0 : l->body.n_values;
  nat_value v = {.kind = NAT_LOAD_AT,
                 .width = (uint8_t)width,
                 .n_in = at != NAT_NONE,
                 .in = {at, NAT_NONE, NAT_NONE},
                 .bits = place | (uint64_t)serial << 32};
  uint32_t value = nat_add(&l->body, v);
  if (!l->body.failed && value == l->owners.n) nloop_own(l, value, still ? 0 : l->now);
  return value;
}

void nat_loop_put(nat_loop *l, nat_place p, uint32_t at, uint32_t value) {
  if (!nat_loop_settle(l)) return;
  uint32_t place = nloop_place(l, p);
  nloop_item(l, l->now, (nat_item){.kind = NAT_ITEM_PUT, .value = value, .place = place, .at = at});
}

void nat_loop_copy(nat_loop *l, nat_place from, uint32_t from_at, nat_place to, uint32_t to_at, uint32_t bytes) {
  assert(bytes >= 4 && bytes <= NAT_LOOP_COPY);
  if (!nat_loop_settle(l)) return;
  nat_item item = {.kind = NAT_ITEM_COPY, .value = from_at, .at = to_at, .bytes = bytes};
  item.from = nloop_place(l, from);
  item.place = nloop_place(l, to);
  nloop_item(l, l->now, item);
}

void nat_loop_exit_unless(nat_loop *l, uint32_t mask) {
  if (nat_loop_settle(l)) nloop_item(l, l->now, (nat_item){.kind = NAT_ITEM_EXIT, .value = mask});
}
