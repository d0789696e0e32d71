/* Values of loops that have several elements of an array, a lane each, and how they come from values that have one, the
 * same in all lanes, and become such again: by one instruction, which takes two lanes of 4 bytes from each of two
 * registers. */
#include "loop.h"

/* Lane `lane` of value `of`. */
typedef struct nlane {
  uint32_t of;
  unsigned lane;
} nlane;

/* Two lanes of x and two of y, numbered from the lowest bits on. */
static uint32_t nlane_shuffle(nat_loop *l, uint32_t width, uint32_t x, uint32_t y, unsigned number) {
  if (!nat_loop_settle(l)) return 0;
  nat_value v = {.kind = NAT_OP, .width = (uint8_t)width, .op = X86_SHUFPS, .number = (uint8_t)number, .n_in = 2};
  v.in[0] = x, v.in[1] = y, v.in[2] = NAT_NONE;
  uint32_t value = nat_add(&l->body, v);
  return nat_loop_settle(l) ? value : 0;
}

static unsigned nlane_all(uint32_t width, unsigned lane) {
  return width == 4 ? lane * 0x55 : lane ? 0xEE : 0x44;
}

bool nat_loop_is_lane(const nat_value *v, uint32_t *of, unsigned *lane) {
  bool is = v->kind == NAT_OP && v->op == X86_SHUFPS && v->in[0] == v->in[1];
  if (!is) return false;
  *of = v->in[0];
  for (*lane = 0; *lane < 16u / v->width; ++*lane)
    if (v->number == nlane_all(v->width, *lane)) return true;
  return false;
}

/* Behind all shuffles. */
static nlane nlane_behind(const nat_loop *l, nlane x) {
  for (;;) {
    const nat_value *v = &l->body.values[x.of];
    if (v->kind != NAT_OP || v->op != X86_SHUFPS || l->body.values[v->in[0]].width != v->width) return x;
    unsigned two = v->width == 8 ? (unsigned)v->number >> 4 * x.lane & 0xF : (unsigned)v->number >> 2 * x.lane & 3;
    unsigned half = v->width == 8 ? x.lane : x.lane / 2;
    x = (nlane){v->in[half], v->width == 8 ? two == 0xE : two};
  }
}

uint32_t nat_loop_lane(nat_loop *l, uint32_t value, unsigned lane) {
  if (!nat_loop_settle(l) || l->body.values[value].lanes != NAT_LANES_DIFFER) return value;
  nlane from = nlane_behind(l, (nlane){value, lane});
  uint32_t width = l->body.values[value].width;
  if (l->body.values[from.of].lanes != NAT_LANES_DIFFER) return from.of;
  return nlane_shuffle(l, width, from.of, from.of, nlane_all(width, from.lane));
}

uint32_t nat_loop_spread(nat_loop *l, uint32_t value) {
  uint32_t width = l->body.values[value].width;
  if (!nat_loop_settle(l) || l->body.values[value].lanes != NAT_LANES_FIRST || width < 4) return value;
  return nlane_shuffle(l, width, value, value, nlane_all(width, 0));
}

/* Where the values come from, as many as lanes: the last one's again where there are fewer. */
static void nlane_sources(nat_loop *l, const uint32_t *values, unsigned n, nlane *from) {
  unsigned lanes = 16u / l->body.values[values[0]].width;
  assert(n > 0 && n <= lanes);
  for (unsigned i = 0; i < lanes; i++) {
    uint32_t value = values[i < n ? i : n - 1];
    from[i] = nlane_behind(l, (nlane){value, 0});
    if (l->body.values[from[i].of].lanes != NAT_LANES_DIFFER) from[i].lane = 0;
  }
}

/* The value that has them already; or NAT_NONE. */
static uint32_t nlane_whole(const nat_loop *l, const uint32_t *values, const nlane *from, unsigned n) {
  bool same = n == 1 || l->body.values[values[0]].lanes != NAT_LANES_FIRST, in_order = true;
  for (unsigned i = 0; i < n; i++) {
    same = same && values[i] == values[0];
    in_order = in_order && from[i].of == from[0].of && from[i].lane == i;
  }
  return same ? values[0] : in_order ? from[0].of : NAT_NONE;
}

static unsigned nlane_number(const nlane *from) {
  return from[0].lane | from[1].lane << 2 | from[2].lane << 4 | from[3].lane << 6;
}

unsigned nat_loop_pack_cost(nat_loop *l, const uint32_t *values, unsigned n) {
  nlane from[4];
  bool changes = false;
  if (!nat_loop_settle(l)) return 0;
  for (unsigned i = 0; i < n; i++)
    changes = changes || l->regions.items[l->owners.items[values[i]]].depth == l->regions.items[l->now].depth;
  nlane_sources(l, values, n, from);
  if (!changes || nlane_whole(l, values, from, n) != NAT_NONE) return 0;
  if (l->body.values[values[0]].width == 8) return 1;
  return from[0].of == from[1].of && from[2].of == from[3].of ? 1 : 3;
}

uint32_t nat_loop_pack(nat_loop *l, const uint32_t *values, unsigned n) {
  nlane from[4];
  if (!nat_loop_settle(l)) return 0;
  nlane_sources(l, values, n, from);
  uint32_t whole = nlane_whole(l, values, from, n), width = l->body.values[values[0]].width;
  if (whole != NAT_NONE) return whole;
  if (width == 8)
    return nlane_shuffle(l, 8, from[0].of, from[1].of,
                         (nlane_all(8, from[0].lane) & 0xF) | (nlane_all(8, from[1].lane) & 0xF0));
  if (from[0].of == from[1].of && from[2].of == from[3].of)
    return nlane_shuffle(l, 4, from[0].of, from[2].of, nlane_number(from));
  uint32_t low = nlane_shuffle(l, 4, from[0].of, from[1].of, from[0].lane * 5 | from[1].lane * 0x50);
  uint32_t high = nlane_shuffle(l, 4, from[2].of, from[3].of, from[2].lane * 5 | from[3].lane * 0x50);
  return nlane_shuffle(l, 4, low, high, 0x88);
}
