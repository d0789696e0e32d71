/* Building bodies: values are found again by their contents, so that what is written twice is computed once. */
#include "body.h"

enum { NAT_FOUND = 2 * NAT_MAX_VALUES, NAT_FEW = 256 };
#define NAT_FORGOTTEN (NAT_NONE - 1) /* in the table: there was a value */

bool nat_begin(nat_body *b, const kernel *k, const nat_target *target, uint32_t widest, base_arena *arena) {
  *b = (nat_body){
      .arena = arena, .k = k, .target = target, .lanes = target->vector / widest, .turns = 1, .n_found = 4 * NAT_FEW};
  while ((!k || b->n_found < 128 * k->n_values) && b->n_found < NAT_FOUND) b->n_found *= 2;
  b->values = BASE_ARRAY(arena, nat_value, b->n_found / 2);
  b->found = base_arena_alloc(arena, b->n_found * sizeof *b->found);
  b->failed = !b->values || !b->found;
  if (!b->failed) memset(b->found, 255, b->n_found * sizeof *b->found);
  return !b->failed;
}

static bool nat_is_same(const nat_value *a, const nat_value *b) {
  return a->kind == b->kind && a->width == b->width && a->op == b->op && a->number == b->number &&
         a->in[0] == b->in[0] && a->in[1] == b->in[1] && a->in[2] == b->in[2] && a->in[3] == b->in[3] &&
         a->bits == b->bits;
}

static uint32_t nat_hash(const nat_value *v) {
  uint64_t h = v->bits * 0x9E3779B97F4A7C15u ^ v->in[0] * 0x85EBCA77u ^ (uint64_t)v->in[1] * 0xC2B2AE3D27D4EB4Fu;
  h ^= (uint64_t)v->in[2] << 20 ^
       (uint64_t)(v->op | v->number << 8 | v->width << 16 | v->kind << 24) * 0x27D4EB2F165667C5u;
  return (uint32_t)(h >> 32 ^ h);
}

/* The table is never more than half full: it has room for twice the values. */
uint32_t nat_add(nat_body *b, nat_value v) {
  /* Lanes that do not fit a vector would lose their upper half. */
  if (b->failed || 2 * (b->n_values + 1) > b->n_found || v.width * b->lanes > b->target->vector) {
    b->failed = true;
    return 0;
  }
  uint32_t at = nat_hash(&v) & (b->n_found - 1);
  for (; b->found[at] != NAT_NONE; at = (at + 1) & (b->n_found - 1))
    if (b->found[at] != NAT_FORGOTTEN && nat_is_same(&b->values[b->found[at]], &v)) return b->found[at];
  b->found[at] = b->n_values;
  b->values[b->n_values] = v;
  return b->n_values++;
}

void nat_forget(nat_body *b, uint32_t first) {
  for (uint32_t i = 0; !b->failed && first < b->n_values && i < b->n_found; i++)
    if (b->found[i] != NAT_NONE && b->found[i] >= first) b->found[i] = NAT_FORGOTTEN;
}

/* bits: of one lane. */
uint32_t nat_constant(nat_body *b, uint32_t width, uint64_t bits) {
  assert(width > 0 || bits == 0 || bits == UINT64_MAX);
  if (width && width < 8) bits &= ((uint64_t)1 << 8 * width) - 1;
  return nat_add(b, (nat_value){.kind = NAT_CONSTANT,
                                .width = (uint8_t)width,
                                .steady = true,
                                .in = {NAT_NONE, NAT_NONE, NAT_NONE},
                                .bits = bits});
}

uint32_t nat_table(nat_body *b, uint32_t half) {
  nat_value v = {.kind = NAT_TABLE, .width = 4, .steady = true, .in = {NAT_NONE, NAT_NONE, NAT_NONE}, .bits = half};
  return nat_add(b, v);
}

uint32_t nat_read(nat_body *b, nat_kind kind, uint32_t width, uint32_t stream, uint32_t x, uint32_t mask) {
  if (b->failed) return 0;
  nat_value v = {.kind = (uint8_t)kind, .width = (uint8_t)width, .in = {x, mask, NAT_NONE}, .bits = stream};
  v.n_in = (uint8_t)((x != NAT_NONE) + (mask != NAT_NONE));
  v.steady = b->streams[stream].stride == 0;
  for (uint32_t j = 0; j < v.n_in; j++) v.steady = v.steady && b->values[v.in[j]].steady;
  return nat_add(b, v);
}

uint32_t nat_load(nat_body *b, uint32_t width, uint32_t stream) {
  return nat_read(b, NAT_LOAD, width, stream, NAT_NONE, NAT_NONE);
}

uint32_t nat_count(nat_body *b) {
  return nat_add(b, (nat_value){.kind = NAT_COUNT, .width = 4, .in = {NAT_NONE, NAT_NONE, NAT_NONE}});
}

uint32_t nat_lane_numbers(nat_body *b) {
  assert(b->failed || 4 * b->lanes <= b->target->vector);
  return nat_add(
      b, (nat_value){.kind = NAT_COUNT, .width = 4, .steady = true, .bits = 1, .in = {NAT_NONE, NAT_NONE, NAT_NONE}});
}

uint32_t nat_fold_from(nat_body *b, uint32_t first) {
  if (b->failed || b->n_folds == NAT_MAX_FOLDS) return b->failed = true, 0;
  nat_value v = {.kind = NAT_ACC, .width = b->values[first].width, .in = {NAT_NONE, NAT_NONE, NAT_NONE}};
  assert(v.width > 0 && b->values[first].kind == NAT_CONSTANT);
  v.bits = b->n_folds;
  b->folds[b->n_folds++] = (nat_fold){first, NAT_NONE};
  return nat_add(b, v);
}

void nat_fold_to(nat_body *b, uint32_t acc, uint32_t value) {
  if (b->failed) return;
  assert(b->values[acc].kind == NAT_ACC && b->values[acc].width == b->values[value].width);
  b->folds[b->values[acc].bits].value = value;
}

bool nat_repeat(nat_body *b, uint32_t turns, base_arena *arena) {
  uint32_t n = b->n_values;
  nat_value *all = BASE_ARRAY(arena, nat_value, (size_t)n * turns);
  assert(turns > 0 && turns <= NAT_MAX_TURNS && n <= NAT_MAX_VALUES);
  for (uint32_t t = 0; all && t < turns; t++)
    for (uint32_t i = 0; i < n; i++) {
      nat_value *v = &all[i + t * n];
      *v = b->values[i];
      v->turn = (uint8_t)t;
      for (uint32_t j = 0; j < v->n_in; j++)
        if (!b->values[v->in[j]].steady) v->in[j] += t * n;
    }
  b->values = all;
  b->turns = turns;
  b->n_once = n;
  b->n_values = n * turns;
  return all != NULL;
}

bool nat_has(const nat_body *b, nat_lane op, uint32_t width) {
  return b->target->ops[op][__builtin_ctz(width)] != X86_NONE;
}

/* Whether the instruction's result is a mask in a register of its own. */
static bool nat_gives_bits(uint8_t op) {
  const x86_row *row = &x86_table[op];
  return row->encoding == X86_MASK || row->shape == X86_KVM || row->shape == X86_KVMI;
}

uint32_t nat_op(nat_body *b, nat_lane op, uint32_t width, uint32_t x, uint32_t y, uint32_t z, unsigned number) {
  uint8_t code = b->target->ops[op][__builtin_ctz(width)];
  b->failed = b->failed || code == X86_NONE; /* a target without it leaves the kernel to the VM */
  if (b->failed) return 0;
  assert(x < b->n_values);
  nat_value v = {.kind = NAT_OP, .width = (uint8_t)width, .op = code, .number = (uint8_t)number, .in = {x, y, z}};
  if (b->target->masks && nat_gives_bits(code)) v.width = 0;
  v.n_in = (uint8_t)(1 + (y != NAT_NONE) + (z != NAT_NONE));
  v.steady = true;
  for (uint32_t j = 0; j < v.n_in; j++) v.steady = v.steady && b->values[v.in[j]].steady;
  return nat_add(b, v);
}

uint32_t nat_op_within(nat_body *b, nat_lane op, uint32_t width, uint32_t whole, uint32_t x, uint32_t y) {
  uint8_t code = b->target->ops[op][__builtin_ctz(width)];
  if (b->failed || code == X86_NONE) return b->failed = true, 0;
  assert(width != whole && b->values[x].width == whole && b->values[y].width == whole);
  nat_value v = {.kind = NAT_OP, .width = (uint8_t)whole, .op = code, .n_in = 2, .in = {x, y, NAT_NONE}};
  v.steady = b->values[x].steady && b->values[y].steady;
  return nat_add(b, v);
}

uint32_t nat_shift_pairs(nat_body *b, nat_lane op, uint32_t x, unsigned by) {
  uint8_t code = b->target->ops[op][1];
  if (b->failed || code == X86_NONE) return b->failed = true, 0;
  nat_value v = {
      .kind = NAT_OP, .width = 1, .op = code, .number = (uint8_t)by, .n_in = 1, .in = {x, NAT_NONE, NAT_NONE}};
  assert(b->values[x].width == 1 && by < 16);
  v.steady = b->values[x].steady;
  return nat_add(b, v);
}

uint32_t nat_far(nat_body *b, unsigned which, uint32_t near, uint32_t x, uint32_t far) {
  if (b->failed) return 0;
  nat_value v = {.kind = NAT_FAR, .number = (uint8_t)which, .n_in = 3, .in = {near, x, far}};
  v.width = b->values[near].width;
  return nat_add(b, v);
}

uint32_t nat_call(nat_body *b, uintptr_t fn, uint32_t x, uint32_t y) {
  if (b->failed) return 0;
  nat_value v = {.kind = NAT_CALL, .width = b->values[x].width, .in = {x, y, NAT_NONE}, .bits = fn};
  v.n_in = (uint8_t)(1 + (y != NAT_NONE));
  v.steady = b->values[x].steady && (y == NAT_NONE || b->values[y].steady);
  return nat_add(b, v);
}

/* --- complex numbers of two f64 --- */

uint32_t nat_pair(nat_body *b, uint32_t re, uint32_t im) {
  nat_value v = {.kind = NAT_PAIR, .width = 8, .n_in = 2, .in = {re, im, NAT_NONE}};
  assert(b->failed || (b->values[re].width == 8 && b->values[im].width == 8));
  return nat_add(b, v);
}

uint32_t nat_half(nat_body *b, uint32_t stream, unsigned half) {
  nat_value v = {.kind = NAT_HALF, .width = 8, .number = (uint8_t)half, .bits = stream};
  v.in[0] = v.in[1] = v.in[2] = NAT_NONE;
  assert(b->failed || (b->streams[stream].width == 16 && half < 2));
  return nat_add(b, v);
}

/* What is taken apart and put together again is what it was. */
uint32_t nat_weave(nat_body *b, uint32_t x, uint32_t y, unsigned which) {
  if (b->failed) return 0;
  const nat_value *p = &b->values[x], *q = &b->values[y];
  unsigned back = which < 2 ? 2 : 0;
  bool known = p->kind == NAT_WEAVE && q->kind == NAT_WEAVE && p->number == back && q->number == back + 1;
  if (known && p->in[0] == q->in[0] && p->in[1] == q->in[1]) return p->in[which & 1];
  nat_value v = {.kind = NAT_WEAVE, .width = 8, .number = (uint8_t)which, .n_in = 2, .in = {x, y, NAT_NONE}};
  v.steady = p->steady && q->steady;
  return nat_add(b, v);
}

uint32_t nat_far_loop(nat_body *b, uintptr_t fn, bool wide, uint32_t near, uint32_t x, uint32_t y, uint32_t far) {
  if (b->failed) return 0;
  nat_value v = {.kind = NAT_FAR, .width = 8, .number = wide, .n_in = 3, .in = {near, x, far}, .bits = fn};
  if (y != NAT_NONE) v.in[3] = y, v.n_in = 4;
  return nat_add(b, v);
}

uint32_t nat_call_both(nat_body *b, uintptr_t fn, uint32_t x, bool second) {
  if (b->failed) return 0;
  nat_value call = {.kind = NAT_CALL, .width = b->values[x].width, .number = 1, .n_in = 1, .bits = fn};
  call.in[0] = x, call.in[1] = call.in[2] = NAT_NONE, call.steady = b->values[x].steady;
  uint32_t first = nat_add(b, call);
  nat_value more = {.kind = NAT_SECOND, .width = call.width, .n_in = 1, .in = {first, NAT_NONE, NAT_NONE}};
  more.steady = call.steady;
  uint32_t other = nat_add(b, more);
  assert(b->failed || other == first + 1);
  return second ? other : first;
}

/* Packs of a register's two halves; where it is half full at most, both are the same. */
static uint32_t nat_halve(nat_body *b, uint32_t x, bool saturates) {
  uint32_t width = b->values[x].width, full = b->lanes * width == b->target->vector;
  uint32_t high = full ? nat_op(b, NAT_HIGH, width, x, NAT_NONE, NAT_NONE, 1) : x;
  if (width == 8) return nat_op(b, NAT_EVEN, 4, x, high, NAT_NONE, 0x88);
  return nat_op2(b, saturates ? NAT_SPACK : NAT_UPACK, width / 2, x, high);
}

static uint32_t nat_widen(nat_body *b, uint32_t x, uint32_t width, bool sign) {
  static const uint8_t with[2][3] = {{NAT_ZX1, NAT_ZX2, NAT_ZX4}, {NAT_SX1, NAT_SX2, NAT_SX4}};
  return nat_op1(b, (nat_lane)with[sign][__builtin_ctz(b->values[x].width)], width, x);
}

/* Before packs, which saturate, only the low bits are kept. */
static uint32_t nat_pack_down(nat_body *b, uint32_t x, uint32_t width) {
  while (!b->failed && b->values[x].width > width) {
    uint32_t now = b->values[x].width;
    if (now < 8) x = nat_op2(b, NAT_AND, now, x, nat_constant(b, now, now == 4 ? 0xFFFF : 0xFF));
    x = nat_halve(b, x, false);
  }
  return x;
}

/* What x, which was made wider, is of `width` bytes or fewer, if those are enough; else NAT_NONE. sign: as it was. */
static uint32_t nat_before_widening(const nat_body *b, uint32_t x, uint32_t width, bool *sign) {
  static const uint8_t widening[2][3] = {{NAT_ZX1, NAT_ZX2, NAT_ZX4}, {NAT_SX1, NAT_SX2, NAT_SX4}};
  const nat_value *v = &b->values[x];
  if (v->kind != NAT_OP || v->n_in != 1) return NAT_NONE;
  uint32_t from = b->values[v->in[0]].width;
  for (unsigned i = 0; i < 2; i++)
    if (from && from <= width && from < v->width &&
        v->op == b->target->ops[widening[i][__builtin_ctz(from)]][__builtin_ctz(v->width)])
      return *sign = i, v->in[0];
  return NAT_NONE;
}

uint32_t nat_resize(nat_body *b, uint32_t x, uint32_t width, bool sign) {
  static const uint8_t cut[] = {[2] = NAT_TR2, [4] = NAT_TR4, [8] = NAT_TR8};
  if (b->failed || b->values[x].width == width) return x;
  uint32_t now = b->values[x].width;
  if (now < width) return nat_widen(b, x, width, sign);
  uint32_t before = nat_before_widening(b, x, width, &sign);
  if (before != NAT_NONE) return nat_resize(b, before, width, sign);
  if (nat_has(b, (nat_lane)cut[now], width)) return nat_op1(b, (nat_lane)cut[now], width, x);
  return nat_pack_down(b, x, width);
}

uint32_t nat_narrow_mask(nat_body *b, uint32_t mask, uint32_t width) {
  while (!b->failed && b->values[mask].width > width) mask = nat_halve(b, mask, true);
  return mask;
}
uint32_t nat_widen_mask(nat_body *b, uint32_t mask, uint32_t width) {
  return nat_widen(b, mask, width, true);
}
